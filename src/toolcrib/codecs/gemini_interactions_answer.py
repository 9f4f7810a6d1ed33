"""Gemini's Interactions: reads answers, whole or streamed. A streamed step grows until it equals a whole one."""

from __future__ import annotations

from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.codec import ModelError
from toolcrib.codecs.gemini_answer import read_error
from toolcrib.codecs.gemini_parts import without
from toolcrib.codecs.pairing import known_id
from toolcrib.codecs.sse import DONE
from toolcrib.codecs.wire_json import (
    as_count,
    as_dict,
    as_index,
    as_list,
    as_str,
    compact,
    dicts,
    extras_for,
    joined,
)
from toolcrib.content import Audio, File, Image, Text
from toolcrib.messages import (
    CallChunk,
    Chunk,
    Message,
    MessagePart,
    Opaque,
    Reasoning,
    ReasoningChunk,
    Response,
    StopReason,
    TextChunk,
    Usage,
)

STOP_REASONS: dict[str, StopReason] = {
    "completed": "end",  # becomes "tool_calls" where there are calls
    "requires_action": "end",
    "incomplete": "length",
    "budget_exceeded": "length",
    "requires_continuation": "pause",
}
UNFINISHED = frozenset({"", "in_progress", "queued"})
FAILED = frozenset({"failed", "cancelled"})
MEDIA: dict[str, type[Image | Audio | File]] = {
    "image": Image,
    "audio": Audio,
    "document": File,
    "video": File,
    "file": File,
}


def read_response(body: dict[str, Any], provider: str, names: dict[str, str]) -> Response:
    """Reads a whole interaction."""
    if body.get("error"):
        raise read_error(body)
    if not isinstance(body.get("steps"), list):
        raise ModelError("the answer holds no steps: it is not an interaction", retryable=True)
    parts = [part for step in dicts(body["steps"]) for part in read_step(step, provider, names)]
    return _response(body, parts, provider)


class InteractionsDecoder:
    """Events of an interaction in, neutral chunks out."""

    def __init__(self, provider: str = "gemini_interactions", names: dict[str, str] | None = None) -> None:
        self._provider = provider
        self._names = names or {}
        self._interaction: dict[str, Any] = {}
        self._steps: list[_Step] = []
        self._open: dict[int | None, _Step] = {}
        self._calls = 0
        self.complete = False

    def feed(self, event: dict[str, Any]) -> list[Chunk]:
        """Reads one event and returns its chunks; raises ModelError for an error event."""
        kind = as_str(event.get("event_type")) or as_str(event.get("type"))
        if kind == "error" or event.get("error"):
            error = read_error(event)
            error.partial = self._partial()
            raise error
        told = as_dict(event.get("interaction"))
        self._interaction |= {name: value for name, value in told.items() if value is not None}
        if kind == "interaction.completed" or event.get(DONE):
            self.complete = True
            return []
        index = as_index(event.get("index"))
        if kind == "step.start":
            return self._start(index, as_dict(event.get("step")))
        step = self._open.get(index)
        if step is None:
            return []
        if kind == "step.delta":
            return step.take(as_dict(event.get("delta")))
        return step.close() if kind == "step.stop" else []

    def finish(self) -> Response:
        """The whole answer."""
        if not self.complete:
            raise ModelError(
                "the stream ended before the answer was complete", retryable=True, partial=self._partial()
            )
        return _response(self._interaction, self._parts(), self._provider)

    def _start(self, index: int | None, content: dict[str, Any]) -> list[Chunk]:
        step = _Step(content, self._calls)
        self._steps.append(step)
        self._open[index] = step
        if step.kind == "function_call":
            self._calls += 1
            name = as_str(content.get("name"))
            return [CallChunk(step.number, self._names.get(name, name), known_id(content.get("id")))]
        whole = read_step(content, self._provider, self._names)
        said = [part for part in whole if isinstance(part, Text | Reasoning) and part.text]
        return [
            TextChunk(part.text) if isinstance(part, Text) else ReasoningChunk(part.text) for part in said
        ]

    def _parts(self) -> list[MessagePart]:
        whole = (step.whole() for step in self._steps)
        return [part for step in whole for part in read_step(step, self._provider, self._names)]

    def _partial(self) -> Response:
        return _response({**self._interaction, "status": "partial"}, self._parts(), self._provider)


class _Step:
    """One step that is still streaming."""

    __slots__ = ("_arguments", "_content", "_rest", "closed", "kind", "number")

    def __init__(self, content: dict[str, Any], number: int) -> None:
        self.kind = as_str(content.get("type"))
        self.number = number
        self.closed = False
        self._rest = dict(content)
        self._content: list[dict[str, Any]] = []  # a growing text is the list of its pieces
        self._arguments: list[str] = []

    def take(self, delta: dict[str, Any]) -> list[Chunk]:
        """Takes one delta and returns the chunks that it adds."""
        kind = as_str(delta.get("type"))
        if self.kind == "function_call" and isinstance(piece := delta.get("arguments"), str):
            self._arguments.append(piece)
            return [CallChunk(self.number, arguments=piece)] if piece else []
        if self.kind == "thought" and kind in ("thought_summary", "text"):
            return self._grow(as_dict(delta.get("content")) or delta)
        if self.kind == "model_output":
            if kind == "text":
                return self._grow(delta)
            if kind in MEDIA:
                self._content.append(dict(delta))
                return []
            if delta.get("annotations") and self._content:
                last = self._content[-1]
                last["annotations"] = [*as_list(last.get("annotations")), *as_list(delta["annotations"])]
                return []
        self._rest |= {name: value for name, value in delta.items() if name != "type" and value is not None}
        return []

    def close(self) -> list[Chunk]:
        if self.closed or self.kind != "function_call":
            return []
        self.closed = True
        given = self._rest.get("arguments")
        said = "" if self._arguments or not given else given if isinstance(given, str) else compact(given)
        return [CallChunk(self.number, arguments=said, done=True)]

    def whole(self) -> dict[str, Any]:
        """The step as a whole answer would hold it."""
        grown = [
            {**item, "text": joined(item["text"])} if isinstance(item.get("text"), list) else item
            for item in self._content
        ]
        name = "summary" if self.kind == "thought" else "content"
        step = {**self._rest, name: [*as_list(self._rest.get(name)), *grown]} if grown else dict(self._rest)
        return {**step, "arguments": joined(self._arguments)} if self._arguments else step

    def _grow(self, content: dict[str, Any]) -> list[Chunk]:
        text = content.get("text")
        if not isinstance(text, str):
            return []
        rest = without(content, "text")
        last = self._content[-1] if self._content else {}
        if isinstance(last.get("text"), list) and rest.keys() <= {"type"}:
            last["text"].append(text)
        else:
            self._content.append({"type": "text", **rest, "text": [text]})
        thought = self.kind == "thought"
        return [ReasoningChunk(text) if thought else TextChunk(text)] if text else []


def read_step(step: dict[str, Any], provider: str, names: dict[str, str]) -> list[MessagePart]:
    """The neutral parts of one step; a step that only the provider understands becomes an Opaque part."""
    kind = step.get("type")
    if kind == "thought":
        summary = "".join(as_str(item.get("text")) for item in dicts(step.get("summary")))
        return [Reasoning(summary, {provider: dict(step)})]
    if kind == "model_output":
        return [_content(item, provider) for item in dicts(step.get("content"))]
    if kind == "function_call":
        given, name = step.get("arguments"), as_str(step.get("name"))
        own = {k: v for k, v in without(step, "type", "id", "name", "arguments").items() if v}
        arguments = given if isinstance(given, str | dict) else {} if given is None else compact(given)
        return [
            ToolCall(names.get(name, name), arguments, known_id(step.get("id")), extras_for(provider, own))
        ]
    return [Opaque(provider, step)]


def _content(item: dict[str, Any], provider: str) -> MessagePart:
    kind = as_str(item.get("type"))
    if kind == "text":
        own = {k: v for k, v in without(item, "type", "text").items() if v}
        return Text(as_str(item.get("text")), extras_for(provider, own))
    if kind in MEDIA and (item.get("data") or item.get("uri")):
        own = without(item, "type", "data", "uri", "mime_type") | ({"type": kind} if kind == "video" else {})
        data, url, media_type = (as_str(item.get(name)) for name in ("data", "uri", "mime_type"))
        return MEDIA[kind](data, url, media_type, "", extras_for(provider, own))
    return Opaque(provider, {"type": "model_output", "content": [item]})


def _response(interaction: dict[str, Any], parts: list[MessagePart], provider: str) -> Response:
    status = as_str(interaction.get("status"))
    stop = STOP_REASONS.get(status, "other") if status not in UNFINISHED else "end"
    if stop == "end" and any(isinstance(part, ToolCall) for part in parts):
        stop = "tool_calls"
    id = as_str(interaction.get("id"))
    message = Message("assistant", parts, extras_for(provider, {"interaction_id": id} if id else {}))
    usage = read_usage(as_dict(interaction.get("usage")))
    response = Response(message, stop, usage, as_str(interaction.get("model")), status)
    if status in FAILED:
        said = next((as_str(item.get("message")) for item in dicts(interaction.get("errors"))), "")
        words = said or f"the interaction ended as {status}"
        raise ModelError(words, retryable=status == "failed", partial=response)
    return response


def read_usage(usage: dict[str, Any]) -> Usage:
    """Usage as neutral counts; this API counts thinking and the results of server-side tools separately."""
    thoughts = as_count(usage.get("total_thought_tokens"))
    return Usage(
        as_count(usage.get("total_input_tokens")) + as_count(usage.get("total_tool_use_tokens")),
        as_count(usage.get("total_output_tokens")) + thoughts,
        as_count(usage.get("total_cached_tokens")),
        reasoning_tokens=thoughts,
    )
