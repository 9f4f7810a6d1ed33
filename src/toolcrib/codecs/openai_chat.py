"""OpenAI Chat Completions: what is sent. The format of vLLM, Ollama, llama.cpp, LM Studio and many more.

What comes back is read in `openai_chat_answer.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.codec import Features, ModelError
from toolcrib.codecs.loose import arguments_object, compact, json_object, own_extras, with_extras
from toolcrib.codecs.names import our_names, wire_names
from toolcrib.codecs.openai_chat_answer import ChatDecoder, read_error, read_response
from toolcrib.codecs.pairing import Answered, IdRule, Step, arrange
from toolcrib.content import Audio, File, Image, Json, Media, Text
from toolcrib.messages import Reasoning, Request, Response

ANY_ID = IdRule(re.compile(r"[\x21-\x7e]{1,256}"))
NOTHING_SAID = "Continue."
NEVER_SENT = frozenset(
    {"annotations", "audio"}
)  # kept on an answer; the format takes no more than audio's id


@dataclass(frozen=True, slots=True)
class Flavour:
    """How one server's Chat Completions differ from the others'."""

    dialect: str = "conservative"
    ids: IdRule = ANY_ID
    max_tokens: str = "max_tokens"
    stream_usage: bool = True
    allowed_tools: bool = False


FLAVOURS = {
    # https://platform.openai.com/docs/api-reference/chat/create; ids of more than 40 characters are refused
    "openai": Flavour(
        "openai", IdRule(re.compile(r"[\x21-\x7e]{1,40}")), "max_completion_tokens", allowed_tools=True
    ),
    # https://docs.mistral.ai/api: ids are nine letters or digits; usage comes without being asked for
    "mistral": Flavour("mistral", IdRule(re.compile("[A-Za-z0-9]{9}"), "", 9), stream_usage=False),
    "ollama": Flavour("ollama"),
}
OTHERS = Flavour()


class OpenAIChatCodec:
    """The Chat Completions format.

    `provider` names who answers: it chooses the flavour (`FLAVOURS`, else a careful one) and is the key of
    the extras, which go back to the same provider alone. `dialect` overrides the flavour's schema dialect.

    >>> from toolcrib.messages import Message
    >>> OpenAIChatCodec().request(Request([Message.user("Hi")]), model="gpt-5", stream=False)
    {'model': 'gpt-5', 'messages': [{'role': 'user', 'content': 'Hi'}]}
    """

    name = "openai_chat"
    features = Features(
        tool_choice=frozenset({"auto", "none", "required", "one", "set"}),
        parallel_switch=True,
        images=True,
        files=True,
        audio=True,
        reasoning=True,
        partial_arguments=True,
    )

    def __init__(self, provider: str = "openai", *, dialect: str | None = None) -> None:
        self.provider = provider
        self.flavour = FLAVOURS.get(provider, OTHERS)
        self.dialect = dialect or self.flavour.dialect

    def request(self, request: Request, *, model: str, stream: bool) -> dict[str, Any]:
        """The body of `POST /chat/completions`."""
        names = wire_names(request)
        writer = _Writer(self.provider, names)
        body: dict[str, Any] = {
            "model": model,
            "messages": writer.messages(arrange(request.messages, self.flavour.ids)),
        }
        body |= self._tools(request, names)
        if request.max_tokens is not None:
            body[self.flavour.max_tokens] = request.max_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.stop:
            body["stop"] = list(request.stop)
        if stream:
            body["stream"] = True
            if self.flavour.stream_usage:
                body["stream_options"] = {"include_usage": True}
        return with_extras(body, own_extras(request, self.provider))

    def response(self, body: dict[str, Any], request: Request | None = None) -> Response:
        """What a whole answer says; ModelError when it is not an answer."""
        return read_response(body, self.provider, our_names(request))

    def decoder(self, request: Request | None = None) -> ChatDecoder:
        """A fresh decoder for one streamed answer."""
        return ChatDecoder(self.provider, our_names(request))

    def error(self, body: Any, status: int | None = None, retry_after: float | None = None) -> ModelError:
        """The error that a body describes."""
        return read_error(body, status, retry_after)

    def _tools(self, request: Request, names: dict[str, str]) -> dict[str, Any]:
        choice = request.tool_choice
        wanted = frozenset(choice.names)
        narrowed = bool(wanted) and not self.flavour.allowed_tools
        tools = [spec for spec in request.tools if not narrowed or spec.name in wanted]
        if not tools:
            return {}
        strict = {"strict": True} if self.dialect.endswith("-strict") else {}
        body: dict[str, Any] = {
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": names.get(spec.name, spec.name),
                        "description": spec.description,
                        "parameters": spec.in_dialect(self.dialect),
                        **strict,
                    },
                }
                for spec in tools
            ]
        }
        refs = [{"type": "function", "function": {"name": names.get(name, name)}} for name in choice.names]
        if choice.mode == "none" or not refs:
            if choice.mode != "auto":
                body["tool_choice"] = choice.mode
        elif choice.mode == "required" and len(refs) == 1:
            body["tool_choice"] = refs[0]
        elif not narrowed:
            body["tool_choice"] = {
                "type": "allowed_tools",
                "allowed_tools": {"mode": choice.mode, "tools": refs},
            }
        elif choice.mode == "required":
            body["tool_choice"] = "required"
        if request.parallel_calls is not None:
            body["parallel_tool_calls"] = request.parallel_calls
        return body


class _Writer:
    """Neutral messages to wire messages, for one request."""

    def __init__(self, provider: str, names: dict[str, str]) -> None:
        self._provider = provider
        self._names = names

    def messages(self, steps: list[Step]) -> list[dict[str, Any]]:
        wire: list[dict[str, Any]] = []
        for step in steps:
            if step.message.role != "assistant":
                role = "system" if step.message.role == "system" else "user"
                content = self._content(step.parts, media=role == "user")
                if content:
                    wire.append({"role": role, "content": content, **self._own(step.message)})
                continue
            assistant = self._assistant(step)
            if assistant is None:
                continue
            wire.append(assistant)
            wire.extend(self._answer(answer) for answer in step.answers)
            if pictures := self._media_of(step.answers):
                wire.append({"role": "user", "content": pictures})
        return wire or [{"role": "user", "content": NOTHING_SAID}]

    def _assistant(self, step: Step) -> dict[str, Any] | None:
        spoken = [part for part in step.parts if isinstance(part, Text | Json | Media)]
        refusal = "".join(part.text for part in spoken if isinstance(part, Text) and self._refuses(part))
        spoken = [part for part in spoken if not (isinstance(part, Text) and self._refuses(part))]
        reasoning = self._reasoning(part for part in step.parts if isinstance(part, Reasoning))
        thoughts = reasoning.pop("content", [])
        content: Any = self._content(spoken, media=False) or None
        if thoughts:
            content = [*thoughts, *(content if isinstance(content, list) else _text_parts(content))]
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if refusal:
            message["refusal"] = refusal
        message |= reasoning | self._own(step.message)
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
        """Pictures and files of results: the role "tool" takes text alone, so they follow as the user's."""
        blocks: list[dict[str, Any]] = []
        for answer in answers:
            parts = answer.result.parts if answer.result is not None else ()
            media = [block for part in parts if isinstance(part, Media) and (block := _media_block(part))]
            if media:
                blocks.append({"type": "text", "text": f"From the result of {answer.call.name}:"})
                blocks.extend(media)
        return blocks

    def _content(self, parts: Iterable[Any], *, media: bool) -> str | list[dict[str, Any]]:
        """Text as a string where that says it all, else a list of blocks."""
        blocks: list[dict[str, Any]] = []
        plain = True
        for part in parts:
            if not isinstance(part, Text | Json | Media):
                continue
            block = _media_block(part) if media and isinstance(part, Media) else None
            own = own_extras(part, self._provider)
            plain = plain and block is None and not own
            if block is None:
                block = {"type": "text", "text": part.as_text()}
            if block["type"] != "text" or block["text"]:
                blocks.append({**block, **own})
        return "\n".join(block["text"] for block in blocks) if plain else blocks

    def _reasoning(self, parts: Iterable[Reasoning]) -> dict[str, Any]:
        """What this provider sent of its thinking, in the fields in which it came; never another's."""
        fields: dict[str, Any] = {}
        for part in parts:
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
        return fields

    def _own(self, message: Any) -> dict[str, Any]:
        extras = own_extras(message, self._provider)
        own = {name: value for name, value in extras.items() if name not in NEVER_SENT}
        audio = extras.get("audio")
        return {**own, "audio": {"id": audio["id"]}} if isinstance(audio, dict) and "id" in audio else own

    def _refuses(self, part: Text) -> bool:
        return bool(own_extras(part, self._provider).get("refusal"))


def _text_parts(content: str | None) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if content else []


def _sendable(call: ToolCall) -> str:
    """Arguments as a text that every server can read back: several fail on one that is not a JSON object."""
    if isinstance(call.arguments, str) and json_object(call.arguments) is not None:
        return call.arguments
    return compact(arguments_object(call.arguments))


def _media_block(part: Media) -> dict[str, Any] | None:
    """A block for what the format can carry; None where only its label can be sent."""
    address = part.url or (f"data:{part.media_type};base64,{part.data}" if part.data else "")
    if isinstance(part, Image) and address:
        return {"type": "image_url", "image_url": {"url": address}}
    if isinstance(part, Audio) and part.data:
        kind = "mp3" if part.media_type in ("audio/mpeg", "audio/mp3") else "wav"
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": kind}}
    if isinstance(part, File) and part.data:
        return {"type": "file", "file": {"filename": part.name or "file", "file_data": address}}
    return None
