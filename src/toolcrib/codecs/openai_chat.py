"""OpenAI Chat Completions, the format of vLLM, Ollama, llama.cpp, LM Studio and many more: writes requests.

`openai_chat_answer.py` reads the answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.codec import Features, ModelError
from toolcrib.codecs.openai_chat_answer import ChatDecoder, read_error, read_response
from toolcrib.codecs.openai_chat_servers import OTHERS, SERVERS, ChatServer, in_strict_order, strict_end
from toolcrib.codecs.pairing import EMPTY_TURN, Answered, ConversationStep, write
from toolcrib.codecs.strictness import strictness
from toolcrib.codecs.tool_names import our_names, wire_names
from toolcrib.codecs.wire_json import (
    arguments_object,
    as_dict,
    compact,
    is_json_object,
    own_extras,
    own_item,
)
from toolcrib.content import Audio, File, Image, Json, Media, Text
from toolcrib.dataclass import replace
from toolcrib.merged_fields import merged
from toolcrib.messages import Reasoning, Request, Response
from toolcrib.spec import ToolSpec

# Kept on an answer and never sent: the format takes no more than audio's id.
NEVER_SENT = frozenset({"annotations", "audio"})
MARKS = frozenset({"refusal", "spoken"})  # notes of ours on a part, no fields of the format
IN_FUNCTION = frozenset({"name", "description", "parameters", "strict"})
STRICT_DIALECT = "openai-strict"


class OpenAIChatCodec:
    """The Chat Completions format.

    `provider` names the server: it selects the row of `SERVERS` (else a careful default) and is the key of the
    extras, which go back to the same provider alone. `dialect` overrides the row's schema dialect.

    >>> from toolcrib.messages import Message
    >>> OpenAIChatCodec().request(Request([Message.user("Hi")]), model="gpt-5", stream=False)
    {'model': 'gpt-5', 'messages': [{'role': 'user', 'content': 'Hi'}]}
    """

    name = "openai_chat"
    features = Features(
        parallel_switch=True,
        images=True,
        files=True,
        audio=True,
        reasoning=True,
        items=True,
        partial_arguments=True,
        logit_bias=True,
        logprobs=True,
    )

    def __init__(self, provider: str = "openai", *, dialect: str | None = None) -> None:
        self.provider = provider
        self.server = SERVERS.get(provider, OTHERS)
        self.dialect = dialect or self.server.dialect
        self.features = replace(
            self.features,
            tool_choice=self.server.choices,
            logit_bias=self.server.logit_bias,
            logprobs=self.server.logprobs,
        )

    def request(self, request: Request, *, model: str, stream: bool) -> dict[str, Any]:
        """The body of `POST /chat/completions`."""
        names = wire_names(request)
        made = partial(_Writer, self.provider, names, self.server)
        written = write(request, self, self.server.ids, made, settings=names, head=list)
        wire = [*written.head_wire, *written.writer.wire]
        wire += strict_end(wire) if self.server.strict_order else []
        body: dict[str, Any] = {
            "model": model,
            "messages": written.wire(wire or [{"role": "user", "content": EMPTY_TURN}]),
        }
        body |= self._tools(request, names)
        if request.max_tokens is not None:
            body[self.server.max_tokens] = request.max_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.stop:
            body["stop"] = list(request.stop)
        body |= self._token_fields(request)
        if stream:
            body["stream"] = True
            if self.server.stream_usage:
                body["stream_options"] = {"include_usage": True}
        return merged(body, own_extras(request, self.provider))

    def response(self, body: dict[str, Any], request: Request | None = None) -> Response:
        """Reads a whole answer; raises ModelError for a body that is not an answer."""
        return read_response(body, self.provider, our_names(request))

    def decoder(self, request: Request | None = None) -> ChatDecoder:
        """A fresh decoder for one streamed answer."""
        return ChatDecoder(self.provider, our_names(request))

    def error(self, body: Any, status: int | None = None, retry_after: float | None = None) -> ModelError:
        """The error that a body describes."""
        return read_error(body, status, retry_after)

    def _token_fields(self, request: Request) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if request.logit_bias and self.features.logit_bias:
            fields["logit_bias"] = dict(request.logit_bias)
        if self.features.logprobs and (request.logprobs or request.top_logprobs is not None):
            fields["logprobs"] = True
            if request.top_logprobs is not None:
                fields["top_logprobs"] = request.top_logprobs
        return fields

    def _tools(self, request: Request, names: dict[str, str]) -> dict[str, Any]:
        choice, taken = request.tool_choice, self.server.choices
        offered = {spec.name for spec in request.tools}
        wanted = [name for name in dict.fromkeys(choice.names) if name in offered and choice.mode != "none"]
        one = choice.mode == "required" and len(wanted) == 1 and "one" in taken
        # All tools are kept where the choice says enough: what changes them costs the prompt's cache.
        narrowed = bool(choice.names) and choice.mode != "none" and not (wanted and (one or "set" in taken))
        tools = [spec for spec in request.tools if not narrowed or spec.name in wanted]
        if not tools or (choice.mode == "none" and "none" not in taken):
            return {}
        body: dict[str, Any] = {"tools": [self._tool(spec, names) for spec in tools]}
        kinds = {spec.name: tool["type"] for spec, tool in zip(tools, body["tools"], strict=True)}
        refs = [
            {
                "type": kinds.get(name, "function"),
                kinds.get(name, "function"): {"name": names.get(name, name)},
            }
            for name in wanted
        ]
        word = self.server.required if choice.mode == "required" else choice.mode
        if one:
            body["tool_choice"] = refs[0]
        elif wanted and not narrowed:
            allowed = {"mode": choice.mode, "tools": refs}
            body["tool_choice"] = {"type": "allowed_tools", "allowed_tools": allowed}
        elif choice.mode != "auto" and choice.mode in taken:
            body["tool_choice"] = word
        if request.parallel_calls is not None:
            body["parallel_tool_calls"] = request.parallel_calls
        return body

    def _tool(self, spec: ToolSpec, names: dict[str, str]) -> dict[str, Any]:
        own = as_dict(dict(spec.extras.get(self.provider, {})))
        if own.get("type") == "custom":
            return _custom(spec, names.get(spec.name, spec.name), own)
        if (
            own.get("type", "function") != "function"
        ):  # a tool of the provider's that this format does not have
            own = {}
        dialect, strict = strictness(spec, self.dialect, own, STRICT_DIALECT)
        function: dict[str, Any] = {
            "name": names.get(spec.name, spec.name),
            "description": spec.description,
            "parameters": spec.in_dialect(dialect),
        }
        if strict:
            function["strict"] = True
        function |= {name: value for name, value in own.items() if name in IN_FUNCTION}
        beside = {name: value for name, value in own.items() if name not in {*IN_FUNCTION, "function"}}
        return {"type": "function", "function": {**function, **as_dict(own.get("function"))}, **beside}


def _custom(spec: ToolSpec, name: str, own: dict[str, Any]) -> dict[str, Any]:
    """The declaration of a tool that takes free text, whose extras are written as Responses has them, or as here."""
    custom: dict[str, Any] = {"name": name, "description": spec.description}
    format = as_dict(own.get("format"))
    if format.get("type") == "grammar" and "grammar" not in format:
        format = {
            "type": "grammar",
            "grammar": {key: value for key, value in format.items() if key != "type"},
        }
    if format:
        custom["format"] = format
    return {"type": "custom", "custom": {**custom, **as_dict(own.get("custom"))}}


class _Writer:
    """Neutral messages to wire messages."""

    def __init__(self, provider: str, names: dict[str, str], server: ChatServer) -> None:
        self.wire: list[dict[str, Any]] = []
        self._drawn: list[dict[str, Any]] = []  # the model's own pictures, until the user speaks again
        self._provider = provider
        self._names = names
        self._flavour = server

    def add(self, step: ConversationStep) -> None:
        if step.message.role != "assistant":
            role = "system" if step.message.role == "system" else "user"
            content = self._content(step.parts, media=role == "user")
            if self._drawn and role == "user":
                spoken = content if isinstance(content, list) else _text_parts(content)
                content, self._drawn = [*self._drawn, *spoken], []
            if content:
                self._append({"role": role, "content": content, **self._own(step.message)})
            return
        self._drawn += _labelled("Pictures of your answer:", step.parts)
        assistant = self._assistant(step)
        if assistant is None:
            return
        self._append(assistant)
        for answer in step.answers:
            self._append(self._answer(answer))
        if pictures := self._media_of(step.answers):
            self._append({"role": "user", "content": pictures})

    def _append(self, message: dict[str, Any]) -> None:
        before = self.wire[-1]["role"] if self.wire else ""
        self.wire += in_strict_order(before, message) if self._flavour.strict_order else [message]

    def _assistant(self, step: ConversationStep) -> dict[str, Any] | None:
        own = self._own(step.message)
        refused = [part for part in step.parts if isinstance(part, Text) and self._marked(part, "refusal")]
        left_out = {id(part) for part in refused}
        if "audio" in own:  # its id stands for sound and words
            left_out |= {id(part) for part in step.parts if self._marked(part, "spoken")}
        spoken = [part for part in step.parts if id(part) not in left_out]
        refusal = "".join(part.text for part in refused)
        reasoning = self._reasoning(step)
        thoughts = reasoning.pop("content", [])
        content: Any = self._content(spoken, media=False) or None
        if thoughts:
            content = [*thoughts, *(content if isinstance(content, list) else _text_parts(content))]
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if refusal:
            message["refusal"] = refusal
        message |= reasoning | own
        if step.answers:
            message["tool_calls"] = [self._call(answer) for answer in step.answers]
        elif content is None and not refusal and "audio" not in message:
            return None
        return message

    def _call(self, answer: Answered) -> dict[str, Any]:
        call = answer.call
        extras = own_extras(call, self._provider)
        name = self._names.get(call.name, call.name)
        if extras.get("type") == "custom":
            return {**extras, "id": answer.id, "custom": {"name": name, "input": call.arguments}}
        function = {"name": name, "arguments": _sendable(call)}
        return {"id": answer.id, "type": "function", "function": function, **extras}

    def _answer(self, answer: Answered) -> dict[str, Any]:
        own = own_extras(answer.result, self._provider)
        return {"role": "tool", "tool_call_id": answer.id, "content": answer.text, **own}

    def _media_of(self, answers: list[Answered]) -> list[dict[str, Any]]:
        """The images and files of results as a user message: the role "tool" takes only text."""
        return [
            block
            for answer in answers
            for block in _labelled(f"From the result of {answer.call.name}:", answer.result.parts)
        ]

    def _content(self, parts: Iterable[Any], *, media: bool) -> str | list[dict[str, Any]]:
        """A string where the content is plain text, else a list of blocks."""
        parts = tuple(parts)
        if len(parts) == 1 and type(parts[0]) is Text and not parts[0].extras:
            return parts[0].text
        blocks: list[dict[str, Any]] = []
        plain = True
        for part in parts:
            if (item := own_item(part, self._provider)) is not None:
                plain = False
                blocks.append(item)
            if not isinstance(part, Text | Json | Media):
                continue
            block = _media_block(part) if media and isinstance(part, Media) else None
            extras = own_extras(part, self._provider)
            own = {name: value for name, value in extras.items() if name not in MARKS}
            plain = plain and block is None and not own
            if block is None:
                block = {"type": "text", "text": part.as_text()}
            if block["type"] != "text" or block["text"]:
                blocks.append({**block, **own})
        return "\n".join(block["text"] for block in blocks) if plain else blocks

    def _reasoning(self, step: ConversationStep) -> dict[str, Any]:
        """This provider's own reasoning fields, as they came; never another provider's."""
        fields: dict[str, Any] = {}
        for part in step.parts:
            if not isinstance(part, Reasoning):
                continue
            extras = own_extras(part, self._provider)
            where = extras.get("field")
            if where == "content":
                thought = {"type": "thinking", "thinking": [{"type": "text", "text": part.text}]}
                fields.setdefault("content", []).append(thought)
            elif where:
                fields[where] = fields.get(where, "") + part.text
            if extras.get("reasoning_details"):
                fields["reasoning_details"] = (
                    fields.get("reasoning_details", []) + extras["reasoning_details"]
                )
        if step.answers and not fields and self._flavour.no_thinking is not None:
            return {"reasoning_content": self._flavour.no_thinking}
        return fields

    def _own(self, message: Any) -> dict[str, Any]:
        extras = own_extras(message, self._provider)
        own = {name: value for name, value in extras.items() if name not in NEVER_SENT}
        audio = extras.get("audio")
        return {**own, "audio": {"id": audio["id"]}} if isinstance(audio, dict) and "id" in audio else own

    def _marked(self, part: Any, mark: str) -> bool:
        return bool(own_extras(part, self._provider).get(mark))


def _labelled(label: str, parts: Iterable[Any]) -> list[dict[str, Any]]:
    """The media of the given parts, after a text that says which result they belong to."""
    blocks = [block for part in parts if isinstance(part, Media) and (block := _media_block(part))]
    return [{"type": "text", "text": label}, *blocks] if blocks else []


def _text_parts(content: str | None) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if content else []


def _sendable(call: ToolCall) -> str:
    """Arguments as JSON text that every server can read back; several fail on text that is not a JSON object."""
    if isinstance(call.arguments, str) and is_json_object(call.arguments):
        return call.arguments
    return compact(arguments_object(call.arguments))


def _media_block(part: Media) -> dict[str, Any] | None:
    """The media block; None where the format can carry only the label."""
    address = part.url or (f"data:{part.media_type};base64,{part.data}" if part.data else "")
    if isinstance(part, Image) and address:
        return {"type": "image_url", "image_url": {"url": address}}
    if isinstance(part, Audio) and part.data:
        kind = "mp3" if part.media_type in ("audio/mpeg", "audio/mp3") else "wav"
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": kind}}
    if isinstance(part, File) and part.data:
        return {"type": "file", "file": {"filename": part.name or "file", "file_data": address}}
    return None
