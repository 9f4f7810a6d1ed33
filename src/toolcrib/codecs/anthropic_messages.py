"""Anthropic Messages: writes requests. `anthropic_answer.py` reads the answers.

Source: https://docs.anthropic.com/en/api/messages.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.anthropic_answer import MessagesDecoder, read_error, read_response
from toolcrib.codecs.cache_breakpoints import CacheLifetime, mark_messages
from toolcrib.codecs.codec import Features, ModelError
from toolcrib.codecs.other_names import OtherNames, names_in_answer, names_in_request
from toolcrib.codecs.pairing import (
    EMPTY_ANSWER,
    EMPTY_FAILURE,
    EMPTY_TURN,
    Answered,
    ConversationStep,
    IdRule,
    write,
)
from toolcrib.codecs.strictness import strictness
from toolcrib.codecs.tool_names import declared_names
from toolcrib.codecs.wire_json import arguments_object, as_dict, as_str, own_extras, own_item
from toolcrib.content import Audio, File, Image, Json, Media, Text
from toolcrib.merged_fields import merged
from toolcrib.messages import Message, Reasoning, Request, Response
from toolcrib.spec import ToolSpec

# The format has no default of its own; every model since Claude 3.7 can write this much in one answer.
MAX_TOKENS = 16_384
IDS = IdRule(re.compile("[A-Za-z0-9_-]{1,64}"), "toolu_")
PICTURES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
STRICT_DIALECT = "anthropic-strict"
THOUGHTS = ("thinking", "redacted_thinking")  # not a set: a kept block may have anything for its type


class AnthropicMessagesCodec:
    """The Messages format.

    `provider` is the key of the extras (signatures, server-side tools), which go back to the same provider
    alone; `max_tokens` is sent where the request names none. `cache` is how long the provider keeps what it
    read (None: no marks); a `cache_control` of the request's own replaces our marks. The format cannot restrict
    the choice to a set of tools, so only the tools of the set are sent then; that costs the prompt cache. For
    one required tool, or none, all tools stay in the request.

    >>> from toolcrib.messages import Message
    >>> body = AnthropicMessagesCodec().request(Request([Message.user("Hi")]), model="claude-x", stream=False)
    >>> body["messages"]
    [{'role': 'user', 'content': [{'type': 'text', 'text': 'Hi'}]}]
    """

    name = "anthropic_messages"
    features = Features(
        parallel_switch=True,
        images=True,
        files=True,
        media_in_results=True,
        reasoning=True,
        items=True,
        partial_arguments=True,
    )

    def __init__(
        self,
        provider: str = "anthropic",
        *,
        dialect: str = "anthropic",
        max_tokens: int = MAX_TOKENS,
        cache: CacheLifetime | None = None,
    ) -> None:
        self.provider = provider
        self.dialect = dialect
        self.max_tokens = max_tokens
        self.cache: CacheLifetime | None = cache

    def request(self, request: Request, *, model: str, stream: bool) -> dict[str, Any]:
        """The body of `POST /v1/messages`."""
        names = names_in_request(request, self.dialect, declared_names(request, self.provider))
        written = write(request, self, IDS, partial(_Writer, self.provider, names), settings=names)
        writer, turns = written.writer, written.wire(written.writer.turns())
        system = [block for message in written.head for block in writer.blocks(message.parts)]
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": self.max_tokens if request.max_tokens is None else request.max_tokens,
        }
        if system:
            body["system"] = system
        body["messages"] = turns
        body |= self._tools(request, names, writer.called)
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.stop:
            body["stop_sequences"] = list(request.stop)
        if container := self._container(written.steps):
            body["container"] = container
        if stream:
            body["stream"] = True
        body = merged(body, own_extras(request, self.provider))
        unmarked = None if writer.has_marks else turns
        return mark_messages(body, self.cache, unmarked)

    def response(self, body: dict[str, Any], request: Request | None = None) -> Response:
        """Reads a whole answer; raises ModelError for a body that is not an answer."""
        return read_response(body, self.provider, self._our_names(request))

    def decoder(self, request: Request | None = None) -> MessagesDecoder:
        """A fresh decoder for one streamed answer."""
        return MessagesDecoder(self.provider, self._our_names(request))

    def _our_names(self, request: Request | None) -> OtherNames:
        return names_in_answer(request, self.dialect, declared_names(request, self.provider))

    def error(self, body: Any, status: int | None = None, retry_after: float | None = None) -> ModelError:
        """The error that a body describes."""
        return read_error(body, status, retry_after)

    def _tools(self, request: Request, names: OtherNames, called: Iterable[str]) -> dict[str, Any]:
        choice = request.tool_choice
        wanted = frozenset(choice.names) if choice.mode != "none" else frozenset[str]()
        one = choice.mode == "required" and len(wanted) == 1
        specs = [spec for spec in request.tools if one or not wanted or spec.name in wanted]
        if one and not any(spec.name in wanted for spec in specs):
            specs = []
        tools = [self._tool(spec, names) for spec in specs]
        mode = choice.mode
        if not tools and not own_extras(request, self.provider).get("tools"):
            # A conversation that holds calls is refused unless tools are defined, even if none may be called.
            tools = [{"name": names.tool(n), "input_schema": {"type": "object"}} for n in called]
            mode = "none"
        if not tools:
            return {}
        if one and specs:
            name = choice.names[0]
            wire_choice: dict[str, Any] = {"type": "tool", "name": names.tool(name)}
        else:
            wire_choice = {"type": {"required": "any"}.get(mode, mode)}
        if request.parallel_calls is not None and mode != "none":
            wire_choice["disable_parallel_tool_use"] = not request.parallel_calls
        return (
            {"tools": tools}
            if wire_choice == {"type": "auto"}
            else {"tools": tools, "tool_choice": wire_choice}
        )

    def _tool(self, spec: ToolSpec, names: OtherNames) -> dict[str, Any]:
        own = dict(spec.extras.get(self.provider, {}))
        if (
            own.get("type", "custom") != "custom"
        ):  # a tool of Anthropic's, whose description and schema it knows
            return {"name": names.tool(spec.name), **own}
        if isinstance(examples := own.get("input_examples"), list):  # the API checks them
            own["input_examples"] = [names.arguments(spec.name, example) for example in examples]
        dialect, strict = strictness(spec, self.dialect, own, STRICT_DIALECT)
        tool = {
            "name": names.tool(spec.name),
            "description": spec.description,
            "input_schema": names.schema(spec, dialect),
        }
        return {**tool, **({"strict": True} if strict else {}), **own}

    def _container(self, steps: list[ConversationStep]) -> str:
        """The id of the container whose code waits for the results of the last calls."""
        last = next((step for step in reversed(steps) if step.message.role == "assistant"), None)
        if last is None or not any(self._from_code(answer.call) for answer in last.answers):
            return ""
        return as_str(as_dict(own_extras(last.message, self.provider).get("container")).get("id"))

    def _from_code(self, call: ToolCall) -> bool:
        return "tool_id" in as_dict(own_extras(call, self.provider).get("caller"))


class _Writer:
    """Neutral messages to wire messages: alternating turns of user and assistant. Results stand at the start of the
    user turn that follows their calls.
    """

    def __init__(self, provider: str, names: OtherNames) -> None:
        self.wire: list[dict[str, Any]] = []
        self.called: dict[str, None] = {}  # the names of the tools that were called
        self.has_marks = False  # whether the conversation has cache marks of its own
        self._provider = provider
        self._names = names

    def add(self, step: ConversationStep) -> None:
        role = "assistant" if step.message.role == "assistant" else "user"
        blocks = self._assistant(step) if role == "assistant" else self._user(step.message, step.parts)
        if blocks:
            self._append(role, blocks)
        if step.answers:
            self.called |= dict.fromkeys(answer.call.name for answer in step.answers)
            self._append("user", [self._result(answer) for answer in step.answers])

    def turns(self) -> list[dict[str, Any]]:
        """The turns as a request has them, whose last one may not end in thinking or white space."""
        turns = list(self.wire)
        if not turns or turns[0]["role"] == "assistant":
            turns.insert(0, {"role": "user", "content": [{"type": "text", "text": EMPTY_TURN}]})
        turns[-1] = _without_blank_end(_ended(turns[-1]))
        return turns

    def _append(self, role: str, blocks: list[dict[str, Any]]) -> None:
        self.has_marks = self.has_marks or any("cache_control" in block for block in blocks)
        if self.wire and self.wire[-1]["role"] == role:
            self.wire[-1]["content"].extend(blocks)
            return
        if self.wire:
            self.wire[-1] = _ended(self.wire[-1])
        self.wire.append({"role": role, "content": list(blocks)})

    def blocks(self, parts: Iterable[Any]) -> list[dict[str, Any]]:
        """Content blocks of text, media and own items, without blank texts, which the API refuses."""
        blocks: list[dict[str, Any]] = []
        for part in parts:
            if (item := own_item(part, self._provider)) is not None:
                blocks.append(item)
            if isinstance(part, Text | Json | Media):
                block = _media_block(part) if isinstance(part, Media) else None
                block = block or {"type": "text", "text": part.as_text()}
                if block["type"] != "text" or str(block["text"]).strip():
                    blocks.append({**block, **own_extras(part, self._provider)})
        return blocks

    def _user(self, message: Message, parts: Sequence[Any]) -> list[dict[str, Any]]:
        blocks = self.blocks(parts)
        if message.role == "system" and blocks:  # instructions in the middle have no place of their own
            opening, closing = {"type": "text", "text": "<system>"}, {"type": "text", "text": "</system>"}
            return [opening, *blocks, closing]
        return blocks

    def _assistant(self, step: ConversationStep) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        answers = iter(step.answers)
        for part in step.parts:
            if isinstance(part, ToolCall):
                blocks.append(self._call(next(answers)))
            elif isinstance(part, Reasoning):
                extras = own_extras(part, self._provider)
                if extras:  # thinking without its signature is refused
                    text = {"thinking": part.text} if extras.get("type") != "redacted_thinking" else {}
                    blocks.append({"type": "thinking", **text, **extras})
            elif isinstance(part, Media):
                blocks.append({"type": "text", "text": part.as_text()})
            else:
                blocks.extend(self.blocks([part]))
        return blocks

    def _call(self, answer: Answered) -> dict[str, Any]:
        call = answer.call
        return {
            "type": "tool_use",
            "id": answer.id,
            "name": self._names.tool(call.name),
            "input": self._names.arguments(call.name, arguments_object(call.arguments)),
            **own_extras(call, self._provider),
        }

    def _result(self, answer: Answered) -> dict[str, Any]:
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": answer.id}
        parts = answer.result.parts
        content = self.blocks(parts)
        if len(content) == 1 and content[0].keys() == {"type", "text"}:
            block["content"] = content[0]["text"]
        elif content:
            block["content"] = content
        if answer.is_error:
            block |= {"content": block.get("content", EMPTY_FAILURE), "is_error": True}
        return {**block, **own_extras(answer.result, self._provider)}


def _ended(turn: dict[str, Any]) -> dict[str, Any]:
    """A turn that does not end in thinking, which the API refuses."""
    if turn["content"][-1].get("type") not in THOUGHTS:
        return turn
    return {**turn, "content": [*turn["content"], {"type": "text", "text": EMPTY_ANSWER}]}


def _without_blank_end(turn: dict[str, Any]) -> dict[str, Any]:
    """A turn without white space at the end of an answer that is to be continued: the API refuses it."""
    *before, last = turn["content"]
    if turn["role"] != "assistant" or last.get("type") != "text":
        return turn
    return {**turn, "content": [*before, {**last, "text": last["text"].rstrip()}]}


def _media_block(part: Media) -> dict[str, Any] | None:
    """The media block; None where the format can carry only the label."""
    if isinstance(part, Audio) or not (part.data or part.url):
        return None
    base64 = {"type": "base64", "media_type": part.media_type, "data": part.data}
    source = base64 if part.data else {"type": "url", "url": part.url}
    if isinstance(part, Image):
        return {"type": "image", "source": source} if part.url or part.media_type in PICTURES else None
    if not isinstance(part, File):
        return None
    if part.data and part.media_type.startswith("text/"):
        try:
            text = b64decode(part.data).decode()
        except ValueError:
            return None
        if not text.strip():  # refused, as blank texts are
            return None
        source = {"type": "text", "media_type": "text/plain", "data": text}  # the one type that it may name
    elif part.media_type not in ("application/pdf", ""):
        return None
    elif part.data:
        source = {**base64, "media_type": "application/pdf"}
    return {"type": "document", "source": source, **({"title": part.name} if part.name else {})}
