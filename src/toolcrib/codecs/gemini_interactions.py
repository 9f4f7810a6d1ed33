"""Gemini's Interactions, the API beside generateContent: writes requests. `gemini_interactions_answer.py` reads
the answers.

Every request carries the whole conversation and is not stored (`store: false`), unless a request's extras set
`store`. Source: https://ai.google.dev/gemini-api/docs/interactions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.codec import Features, ModelError
from toolcrib.codecs.gemini import USUAL_TYPES, joined_tools
from toolcrib.codecs.gemini_answer import read_error
from toolcrib.codecs.gemini_interactions_answer import InteractionsDecoder, read_response
from toolcrib.codecs.pairing import EMPTY_FAILURE, EMPTY_TURN, Answered, ConversationStep, IdRule, write
from toolcrib.codecs.tool_names import our_names, wire_names
from toolcrib.codecs.wire_json import arguments_object, own_extras, own_item
from toolcrib.content import Audio, File, Image, Json, Media, Text
from toolcrib.merged_fields import merged
from toolcrib.messages import Opaque, Reasoning, Request, Response

IDS = IdRule(re.compile(r"[A-Za-z0-9_.:-]{1,128}"))
EMPTY_STEP = {"type": "user_input", "content": [{"type": "text", "text": EMPTY_TURN}]}
KINDS: dict[type[Media], str] = {Image: "image", Audio: "audio", File: "document"}


class GeminiInteractionsCodec:
    """The Interactions format; options are those of `GeminiCodec`.

    Its extras are not those of generateContent, so its provider has a name of its own.

    >>> from toolcrib.messages import Message
    >>> codec = GeminiInteractionsCodec()
    >>> codec.request(Request([Message.user("Hi")]), model="gemini-3-pro", stream=False)["input"]
    [{'type': 'user_input', 'content': [{'type': 'text', 'text': 'Hi'}]}]
    """

    name = "gemini_interactions"
    features = Features(
        tool_choice=frozenset({"auto", "none", "required", "one", "set"}),
        images=True,
        files=True,
        audio=True,
        media_in_results=True,
        reasoning=True,
        items=True,
        partial_arguments=True,
    )

    def __init__(self, provider: str = "gemini_interactions", *, dialect: str | None = None) -> None:
        self.provider = provider
        self.dialect = dialect or "gemini"

    def request(self, request: Request, *, model: str, stream: bool) -> dict[str, Any]:
        """The body of `POST …/interactions`."""
        names = wire_names(request)
        written = write(request, self, IDS, partial(_Writer, self.provider, names), settings=names)
        spoken = (
            "\n".join(part.as_text() for part in message.parts if isinstance(part, Text | Json | Media))
            for message in written.head
        )
        system = [text for text in spoken if text]
        steps = list(written.writer.wire) or [EMPTY_STEP]
        body: dict[str, Any] = {"model": model, "input": written.wire(steps), "store": False}
        if system:
            body["system_instruction"] = "\n".join(system)
        config = {
            "max_output_tokens": request.max_tokens,
            "temperature": request.temperature,
            "stop_sequences": list(request.stop) or None,
        }
        tools, choice = self._tools(request, names)
        if tools:
            body["tools"] = tools
            config["tool_choice"] = choice
        if config := {name: value for name, value in config.items() if value is not None}:
            body["generation_config"] = config
        if stream:
            body["stream"] = True
        return merged(body, own_extras(request, self.provider), joined_tools)

    def response(self, body: dict[str, Any], request: Request | None = None) -> Response:
        """Reads a whole answer; raises ModelError for a body that is not an answer."""
        return read_response(body, self.provider, our_names(request))

    def decoder(self, request: Request | None = None) -> InteractionsDecoder:
        """A fresh decoder for one streamed answer."""
        return InteractionsDecoder(self.provider, our_names(request))

    def error(self, body: Any, status: int | None = None, retry_after: float | None = None) -> ModelError:
        """The error that a body describes."""
        return read_error(body, status, retry_after)

    def _tools(self, request: Request, names: dict[str, str]) -> tuple[list[dict[str, Any]], Any]:
        choice = request.tool_choice
        declared = {spec.name for spec in request.tools}
        allowed = [names.get(name, name) for name in dict.fromkeys(choice.names) if name in declared]
        if not declared or (choice.names and not allowed):
            return [], None
        tools = [
            {
                "type": "function",
                "name": names.get(spec.name, spec.name),
                **({"description": spec.description} if spec.description else {}),
                "parameters": spec.in_dialect(self.dialect),
                **own_extras(spec, self.provider),
            }
            for spec in request.tools
        ]
        mode = {"auto": "auto", "none": "none", "required": "any"}[choice.mode]
        if allowed and mode != "none":
            return tools, {"allowed_tools": {"mode": mode, "tools": allowed}}
        return tools, None if mode == "auto" else mode


class _Writer:
    """Neutral messages to wire steps."""

    def __init__(self, provider: str, names: dict[str, str]) -> None:
        self.wire: list[dict[str, Any]] = []
        self._provider = provider
        self._names = names

    def add(self, step: ConversationStep) -> None:
        if step.message.role == "assistant":
            self._model(step)
            self.wire.extend(self._result(answer) for answer in step.answers)
            return
        content = self._content(step.parts)
        if step.message.role == "system" and content:
            marks = [{"type": "text", "text": mark} for mark in ("<system>", "</system>")]
            content = [marks[0], *content, marks[1]]
        if content:
            _extend(self.wire, "user_input", content)

    def _model(self, step: ConversationStep) -> None:
        wire = self.wire
        answers = iter(step.answers)
        for part in step.parts:
            if isinstance(part, ToolCall):
                wire.append(self._call(next(answers)))
            elif isinstance(part, Reasoning):
                own = own_extras(part, self._provider)
                if own.get("type") == "thought":
                    wire.append(own)
            elif isinstance(part, Opaque):
                if (item := own_item(part, self._provider)) is not None and item.get("type"):
                    wire.append(item)
            elif content := self._content([part]):
                _extend(wire, "model_output", content)

    def _call(self, answer: Answered) -> dict[str, Any]:
        return {
            "type": "function_call",
            "id": answer.id,
            "name": self._names.get(answer.call.name, answer.call.name),
            "arguments": arguments_object(answer.call.arguments),
            **own_extras(answer.call, self._provider),
        }

    def _result(self, answer: Answered) -> dict[str, Any]:
        parts = answer.result.parts
        content = self._content(parts)
        plain = all(item.keys() == {"type", "text"} for item in content)
        wire: dict[str, Any] = {
            "type": "function_result",
            "call_id": answer.id,
            "name": self._names.get(answer.call.name, answer.call.name),
            "result": "\n".join(item["text"] for item in content) if plain else content,
        }
        if answer.is_error:
            wire |= {"is_error": True, "result": wire["result"] or EMPTY_FAILURE}
        return {**wire, **own_extras(answer.result, self._provider)}

    def _content(self, parts: Iterable[Any]) -> list[dict[str, Any]]:
        """Text, media and own items, without empty texts."""
        content: list[dict[str, Any]] = []
        for part in parts:
            if (own := own_item(part, self._provider)) is not None:
                content.append(own)
            if isinstance(part, Text | Json | Media):
                item = _media(part) if isinstance(part, Media) else None
                item = item or {"type": "text", "text": part.as_text()}
                if item["type"] != "text" or item["text"]:
                    content.append({**item, **own_extras(part, self._provider)})
        return content


def _extend(wire: list[dict[str, Any]], kind: str, content: list[dict[str, Any]]) -> None:
    if wire and wire[-1].get("type") == kind and wire[-1].keys() == {"type", "content"}:
        wire[-1] = {"type": kind, "content": [*wire[-1]["content"], *content]}
    else:
        wire.append({"type": kind, "content": content})


def _media(part: Media) -> dict[str, Any] | None:
    """Media bytes or a URL in the wire format; None where the part has neither."""
    kind = KINDS.get(type(part), "document")
    if part.data:
        return {
            "type": kind,
            "data": part.data,
            "mime_type": part.media_type or USUAL_TYPES.get(type(part), "image/png"),
        }
    if part.url:
        return {"type": kind, "uri": part.url, **({"mime_type": part.media_type} if part.media_type else {})}
    return None
