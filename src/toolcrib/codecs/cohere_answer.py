"""Cohere Chat, version 2: reads answers, whole or streamed."""

from __future__ import annotations

from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.call_slots import CallSlots, arguments_text, call_extras, called_function
from toolcrib.codecs.codec import ModelError, is_retryable, unread_error
from toolcrib.codecs.concatenated_calls import split_concatenated
from toolcrib.codecs.pairing import known_id
from toolcrib.codecs.sse import DONE
from toolcrib.codecs.wire_json import (
    as_count,
    as_dict,
    as_float,
    as_index,
    as_list,
    as_str,
    dicts,
    extras_for,
    joined,
)
from toolcrib.content import Text
from toolcrib.messages import (
    Chunk,
    Message,
    MessagePart,
    Opaque,
    Reasoning,
    ReasoningChunk,
    Response,
    StopReason,
    TextChunk,
    TokenLogprob,
    Usage,
)

PLAN = "tool_plan"  # the model's words before its calls; thinking that has a field of its own
THINKING = "thinking"
BILLED = "billed_units"  # kept on an answer, never sent
STOP_REASONS: dict[str, StopReason] = {
    "COMPLETE": "end",
    "STOP_SEQUENCE": "end",
    "TOOL_CALL": "end",  # becomes "tool_calls" where there are calls
    "MAX_TOKENS": "length",
    "ERROR_LIMIT": "length",
    "ERROR_TOXIC": "filter",
}
NO_INDEX = -1  # of a piece that does not say which block it goes on with: the last one of its kind
BROKEN = {
    "ERROR": "the model broke off its answer",
    "TIMEOUT": "the model took too long and broke off its answer",
}


def read_response(body: dict[str, Any], provider: str, names: dict[str, str]) -> Response:
    """Reads a whole answer."""
    message = body.get("message")
    if not isinstance(message, dict):
        if body.get("message") or body.get("error"):
            raise read_error(body)
        raise ModelError("the answer holds no message: it is not a chat answer", retryable=True)
    answer = _Answer(provider)
    answer.add(message)
    for item in dicts(body.get("logprobs")):
        answer.add_logprob(item)
    answer.end(body)
    calls = [
        call
        for item in dicts(message.get("tool_calls"))
        for call in split_concatenated(_call(item, provider, names))
    ]
    return answer.response(calls)


class CohereDecoder:
    """Events of a chat stream in, neutral chunks out."""

    def __init__(self, provider: str = "cohere", names: dict[str, str] | None = None) -> None:
        self._answer = _Answer(provider)
        self._slots = CallSlots(provider, names or {})
        self._open: set[int | None] = set()
        self.complete = False

    def feed(self, event: dict[str, Any]) -> list[Chunk]:
        """Reads one event and returns its chunks; raises ModelError for an error event."""
        kind, delta = as_str(event.get("type")), as_dict(event.get("delta"))
        if event.get(DONE):
            self.complete = True
            return [*self._slots.done()]
        if kind == "error" or event.get("error") or (not kind and as_str(event.get("message"))):
            error = read_error(event)
            error.partial = self._partial()
            raise error
        message = as_dict(delta.get("message"))
        if kind.startswith("tool-call-"):
            return self._call_event(kind, as_index(event.get("index")), message)
        index = as_index(event.get("index"))
        index = NO_INDEX if index is None else index
        chunks = self._answer.add(message, index if kind.startswith("content-") else None)
        if chunks and any(isinstance(chunk, TextChunk) for chunk in chunks):
            self._answer.add_logprob(as_dict(event.get("logprobs")))
        if kind == "message-end":
            self.complete = True
            self._answer.end(delta)
            chunks.extend(self._slots.done())
        return chunks

    def end(self) -> list[Chunk]:
        """Chunks that end the calls of which a piece came after the end of the message."""
        return [*self._slots.done()]

    def finish(self) -> Response:
        """The whole answer."""
        if not self.complete:
            raise ModelError(
                "the stream ended before the answer was complete", retryable=True, partial=self._partial()
            )
        return self._answer.response(self._slots.calls())

    def _call_event(self, kind: str, index: int | None, message: dict[str, Any]) -> list[Chunk]:
        calls = message.get("tool_calls")
        found = dicts(calls if isinstance(calls, list) else [calls])
        try:
            chunks: list[Chunk] = [*self._slots.feed([_indexed(call, index) for call in found])]
        except RecursionError:
            raise ModelError(
                "a call's arguments are nested too deeply", True, partial=self._partial()
            ) from None
        if kind == "tool-call-end":
            self._open.discard(index)
            return chunks if self._open else [*chunks, *self._slots.done()]
        self._open.add(index)
        return chunks

    def _partial(self) -> Response:
        return self._answer.response(self._slots.calls(), broken=True)


class _Block:
    """One content block, or the plan, that is still streaming."""

    __slots__ = ("extras", "kind", "pieces")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.pieces: list[str] = []
        self.extras: dict[str, Any] = {}

    def part(self, provider: str) -> MessagePart | None:
        text = joined(self.pieces)
        if self.kind in (PLAN, THINKING):
            return Reasoning(text, {provider: {"field": self.kind, **self.extras}}) if text else None
        if self.kind == "text":
            return Text(text, extras_for(provider, self.extras)) if text else None
        return Opaque(provider, {"type": self.kind, **self.extras})


class _Answer:
    """An answer's plan, content, citations, usage and stop reason. Its texts are joined once, at the end."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._blocks: list[_Block] = []
        self._by_index: dict[int, _Block] = {}
        self._plan: _Block | None = None
        self._citations: list[Any] = []
        self._usage: dict[str, Any] = {}
        self._logprobs: list[TokenLogprob] = []
        self._stop = ""
        self._said = ""

    def add(self, message: dict[str, Any], index: int | None = None) -> list[Chunk]:
        """Takes a message, or one event's piece of it; `index` is the index of a content block."""
        chunks: list[Chunk] = []
        if plan := as_str(message.get(PLAN)):
            if self._plan is None:
                self._plan = self._opened(PLAN)
            self._plan.pieces.append(plan)
            chunks.append(ReasoningChunk(plan))
        content = message.get("content")
        if isinstance(content, str):
            content = {"type": "text", "text": content} if content else None
        for item in dicts(content if isinstance(content, list) else [content]):
            self._add_block(item, index, chunks)
        citations = message.get("citations")
        self._citations.extend(dicts(citations if isinstance(citations, list) else [citations]))
        return chunks

    def _add_block(self, item: dict[str, Any], index: int | None, chunks: list[Chunk]) -> None:
        kind = as_str(item.get("type")) or next((name for name in (THINKING, "text") if name in item), "")
        block = self._by_index.get(index) if index is not None else None
        if block is None or (kind and kind != block.kind):
            block = self._opened(kind or "text")
            if index is not None:
                self._by_index[index] = block
        for name, value in item.items():
            if name == block.kind and isinstance(value, str):
                if value:
                    block.pieces.append(value)
                    chunks.append(TextChunk(value) if name == "text" else ReasoningChunk(value))
            elif name != "type" and value is not None:
                block.extras[name] = value

    def _opened(self, kind: str) -> _Block:
        block = _Block(kind)
        self._blocks.append(block)
        return block

    def add_logprob(self, item: dict[str, Any]) -> None:
        """Adds the log-probability of a piece of text, which is the sum of those of its tokens."""
        values = [value for raw in as_list(item.get("logprobs")) if (value := as_float(raw)) is not None]
        if values:
            self._logprobs.append(TokenLogprob(as_str(item.get("text")), sum(values)))

    def end(self, body: dict[str, Any]) -> None:
        """Takes the end of an answer: stop reason, usage and error."""
        self._stop = as_str(body.get("finish_reason"))
        self._usage = as_dict(body.get("usage"))
        self._said = as_str(body.get("error"))

    def response(self, calls: list[ToolCall], *, broken: bool = False) -> Response:
        if not broken and (self._stop in BROKEN or self._said):
            words = self._said or BROKEN[self._stop]
            raise ModelError(words, retryable=True, partial=self.response(calls, broken=True))
        parts = [part for block in self._blocks if (part := block.part(self._provider)) is not None]
        own: dict[str, Any] = {"citations": self._citations} if self._citations else {}
        if billed := as_dict(self._usage.get(BILLED)):
            own[BILLED] = billed
        reason = STOP_REASONS.get(self._stop, "other") if self._stop else "end"
        if reason == "end" and calls:
            reason = "tool_calls"
        return Response(
            Message("assistant", [*parts, *calls], extras_for(self._provider, own)),
            "other" if broken else reason,
            read_usage(self._usage),
            "",
            self._stop,
            tuple(self._logprobs),
        )


def _call(item: dict[str, Any], provider: str, names: dict[str, str]) -> ToolCall:
    function = called_function(item)
    name, raw = as_str(function.get("name")), function.get("arguments")
    extras = call_extras(item)
    return ToolCall(
        names.get(name, name),
        raw if isinstance(raw, dict) else arguments_text(function),
        known_id(item.get("id")),
        extras_for(provider, extras),
    )


def _indexed(call: dict[str, Any], index: int | None) -> dict[str, Any]:
    return call if index is None else {**call, "index": index}


def read_usage(usage: dict[str, Any]) -> Usage:
    """Usage as neutral counts: all tokens that the model read and wrote, of which Cohere bills a part."""
    tokens = as_dict(usage.get("tokens")) or as_dict(usage.get(BILLED))
    return Usage(
        _count(tokens.get("input_tokens")),
        _count(tokens.get("output_tokens")),
        _count(usage.get("cached_tokens")),
    )


def _count(value: Any) -> int:
    """A number of tokens, which this API declares as a floating-point number."""
    return as_count(int(value) if isinstance(value, float) and value.is_integer() else value)


def read_error(body: Any, status: int | None = None, retry_after: float | None = None) -> ModelError:
    """The error that a body describes; an error in the middle of a stream counts as retryable."""
    fields = as_dict(body)
    error = fields.get("error", body)
    words = (
        as_str(fields.get("message"))
        or as_str(as_dict(error).get("message"))
        or as_str(error)
        or as_str(fields.get("data"))
        or unread_error(body)
    )
    return ModelError(words, status is None or is_retryable(status, ""), status, retry_after)
