"""Cohere Chat, version 2: writes requests. `cohere_answer.py` reads the answers.

Source: https://docs.cohere.com/reference/chat.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.codec import Features, ModelError
from toolcrib.codecs.cohere_answer import BILLED, PLAN, THINKING, CohereDecoder, read_error, read_response
from toolcrib.codecs.pairing import EMPTY_TURN, Answered, ConversationStep, IdRule, write
from toolcrib.codecs.strictness import STRICT
from toolcrib.codecs.tool_names import our_names, wire_names
from toolcrib.codecs.wire_json import (
    arguments_object,
    as_dict,
    compact,
    is_json_object,
    own_extras,
    own_item,
)
from toolcrib.content import Image, Json, Media, Text
from toolcrib.merged_fields import merged
from toolcrib.messages import Message, Reasoning, Request, Response

ANY_ID = IdRule(re.compile(r"[\x21-\x7e]{1,256}"))
CHOICES = {"none": "NONE", "required": "REQUIRED"}
NO_ARGUMENTS = frozenset({"", "null"})


class CohereCodec:
    """The format of `POST /v2/chat`.

    `provider` is the key of the extras (thinking, plans, citations), which go back to the same provider
    alone. `dialect` is that of the schemas; one whose name ends in "-strict" also sends `strict_tools`. A
    part of a result whose extras hold a `document` (an `id`, say) is sent as one that can be cited.

    >>> from toolcrib.messages import Message
    >>> body = CohereCodec().request(Request([Message.user("Hi")]), model="command-a", stream=False)
    >>> body["messages"]
    [{'role': 'user', 'content': 'Hi'}]
    """

    name = "cohere"
    features = Features(
        tool_choice=frozenset({"auto", "none", "required"}),
        images=True,
        reasoning=True,
        items=True,
        partial_arguments=True,
        logprobs=True,
    )

    def __init__(self, provider: str = "cohere", *, dialect: str | None = None) -> None:
        self.provider = provider
        self.dialect = dialect or "conservative"

    def request(self, request: Request, *, model: str, stream: bool) -> dict[str, Any]:
        """The body of `POST /v2/chat`."""
        names = wire_names(request)
        made = partial(_Writer, self.provider, names)
        written = write(request, self, ANY_ID, made, settings=names, head=list)
        wire = [*written.head_wire, *written.writer.wire]
        body: dict[str, Any] = {
            "model": model,
            "messages": written.wire(wire or [{"role": "user", "content": EMPTY_TURN}]),
        }
        body |= self._tools(request, names)
        if request.max_tokens is not None:
            body["max_tokens"] = request.max_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.stop:
            body["stop_sequences"] = list(request.stop)
        if request.logprobs or request.top_logprobs is not None:
            body["logprobs"] = True
        if stream:
            body["stream"] = True
        return merged(body, own_extras(request, self.provider))

    def response(self, body: dict[str, Any], request: Request | None = None) -> Response:
        """Reads a whole answer; raises ModelError for a body that is not an answer."""
        return read_response(body, self.provider, our_names(request))

    def decoder(self, request: Request | None = None) -> CohereDecoder:
        """A fresh decoder for one streamed answer."""
        return CohereDecoder(self.provider, our_names(request))

    def error(self, body: Any, status: int | None = None, retry_after: float | None = None) -> ModelError:
        """The error that a body describes."""
        return read_error(body, status, retry_after)

    def _tools(self, request: Request, names: dict[str, str]) -> dict[str, Any]:
        choice = request.tool_choice
        specs = [spec for spec in request.tools if not choice.names or spec.name in choice.names]
        if not specs:
            return {}
        # One switch holds for all tools, so all their arguments have to be sayable in the strict dialect.
        strict = self.dialect.endswith(STRICT) and all(spec.fits(self.dialect) for spec in specs)
        dialect = self.dialect if strict else self.dialect.removesuffix(STRICT)
        tools: list[dict[str, Any]] = []
        for spec in specs:
            own = own_extras(spec, self.provider)
            function = {
                "name": names.get(spec.name, spec.name),
                "description": spec.description,
                "parameters": spec.in_dialect(dialect),
                **as_dict(own.get("function")),
            }
            tools.append({"type": "function", **own, "function": function})
        body: dict[str, Any] = {"tools": tools}
        if choice.mode in CHOICES:
            body["tool_choice"] = CHOICES[choice.mode]
        if strict:
            body["strict_tools"] = True
        return body


class _Writer:
    """Neutral messages to wire messages."""

    def __init__(self, provider: str, names: dict[str, str]) -> None:
        self.wire: list[dict[str, Any]] = []
        self._provider = provider
        self._names = names

    def add(self, step: ConversationStep) -> None:
        if step.message.role != "assistant":
            role = "system" if step.message.role == "system" else "user"
            content = _shortest(self._blocks(step.parts, images=role == "user"))
            if content:
                self.wire.append({"role": role, "content": content, **self._own(step.message)})
            return
        if (said := self._assistant(step)) is not None:
            self.wire.append(said)
        self.wire.extend(self._answer(answer) for answer in step.answers)
        if pictures := self._pictures_of(step.answers):
            self.wire.append({"role": "user", "content": pictures})

    def _assistant(self, step: ConversationStep) -> dict[str, Any] | None:
        plan, content = "", list[dict[str, Any]]()
        for part in step.parts:
            if isinstance(part, Reasoning):
                own = own_extras(part, self._provider)
                rest = {name: value for name, value in own.items() if name != "field"}
                if own.get("field") == PLAN:
                    plan += part.text
                elif own.get("field") == THINKING:
                    content.append({"type": "thinking", "thinking": part.text, **rest})
            else:
                content.extend(self._blocks([part], images=False))
        message: dict[str, Any] = {"role": "assistant", **self._own(step.message)}
        if content:
            message["content"] = _shortest(content)
        if step.answers:
            # A plan stands with the calls that it is for: without them the field is none.
            message |= {"tool_plan": plan} if plan else {}
            message["tool_calls"] = [self._call(answer) for answer in step.answers]
        return message if content or step.answers else None

    def _call(self, answer: Answered) -> dict[str, Any]:
        call = answer.call
        function = {"name": self._names.get(call.name, call.name), "arguments": _sendable(call)}
        own = own_extras(call, self._provider)
        return {"id": answer.id, "type": "function", "function": function, **own}

    def _answer(self, answer: Answered) -> dict[str, Any]:
        parts = answer.result.parts
        content: str | list[dict[str, Any]] = answer.text
        if any(own_extras(part, self._provider) for part in parts):
            content = self._blocks(parts, images=False)
        own = own_extras(answer.result, self._provider)
        return {"role": "tool", "tool_call_id": answer.id, "content": content, **own}

    def _pictures_of(self, answers: list[Answered]) -> list[dict[str, Any]]:
        """The images of results as a user message: the role "tool" takes only text and documents."""
        blocks: list[dict[str, Any]] = []
        for answer in answers:
            parts = answer.result.parts
            pictures = [part for part in parts if isinstance(part, Image) and (part.data or part.url)]
            if pictures:
                blocks.append({"type": "text", "text": f"From the result of {answer.call.name}:"})
                blocks.extend(self._blocks(pictures, images=True))
        return blocks

    def _blocks(self, parts: Iterable[Any], *, images: bool) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        for part in parts:
            if (item := own_item(part, self._provider)) is not None:
                blocks.append(item)
            if not isinstance(part, Text | Json | Media):
                continue
            own = own_extras(part, self._provider)
            if isinstance(own.get("document"), dict):
                blocks.append({"type": "document", **own, "document": {**_data(part), **own["document"]}})
            elif images and isinstance(part, Image) and (part.data or part.url):
                address = part.url or f"data:{part.media_type or 'image/png'};base64,{part.data}"
                picture = {"url": address, **as_dict(own.get("image_url"))}
                blocks.append({"type": "image_url", **own, "image_url": picture})
            elif text := part.as_text():
                blocks.append({"type": "text", "text": text, **own})
        return blocks

    def _own(self, message: Message) -> dict[str, Any]:
        extras = own_extras(message, self._provider)
        return {name: value for name, value in extras.items() if name != BILLED}


def _shortest(blocks: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """A string where the blocks are plain text, else the list of blocks."""
    plain = all(block.keys() == {"type", "text"} for block in blocks)
    return "\n".join(block["text"] for block in blocks) if plain else blocks


def _data(part: Text | Json | Media) -> dict[str, Any]:
    value = part.value if isinstance(part, Json) else None
    return {"data": value if isinstance(value, dict) else {"text": part.as_text()}}


def _sendable(call: ToolCall) -> str:
    """Arguments as the text of a JSON object; a call without arguments gets "{}"."""
    if isinstance(call.arguments, str):
        if call.arguments.strip() in NO_ARGUMENTS:
            return "{}"
        if is_json_object(call.arguments):
            return call.arguments
    return compact(arguments_object(call.arguments))
