"""Ollama's own chat format: reads answers, whole or streamed."""

from __future__ import annotations

from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.codec import ModelError, is_retryable, unread_error
from toolcrib.codecs.concatenated_calls import split_concatenated
from toolcrib.codecs.pairing import known_id
from toolcrib.codecs.sse import DONE
from toolcrib.codecs.unread_calls import with_unread_call
from toolcrib.codecs.wire_json import (
    as_count,
    as_dict,
    as_float,
    as_index,
    as_list,
    as_str,
    compact,
    dicts,
    extras_for,
    joined,
)
from toolcrib.content import Image, Text
from toolcrib.messages import (
    CallChunk,
    Chunk,
    Message,
    MessagePart,
    Reasoning,
    ReasoningChunk,
    Response,
    StopReason,
    TextChunk,
    TokenLogprob,
    Usage,
)

STOP_REASONS: dict[str, StopReason] = {"stop": "end", "length": "length"}  # "load", "unload": no answer
# How the base64 of a picture begins; the format says nothing of its type.
PICTURES = {"iVBOR": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
STANDARD_FIELDS = frozenset({"id", "type", "function"})
STANDARD_FUNCTION = frozenset({"name", "arguments", "index"})


def read_response(body: dict[str, Any], provider: str, names: dict[str, str]) -> Response:
    """Reads a whole answer."""
    decoder = OllamaDecoder(provider, names)
    decoder.feed({"done": True, **body})
    return decoder.finish()


class OllamaDecoder:
    """Takes the lines of a chat stream and gives neutral chunks. A whole answer is a stream of one line."""

    def __init__(self, provider: str = "ollama", names: dict[str, str] | None = None) -> None:
        self._provider = provider
        self._names = names or {}
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._images: list[Image] = []
        self._calls: list[ToolCall] = []
        self._logprobs: list[TokenLogprob] = []
        self._last: dict[str, Any] = {}
        self._model = ""
        self._spoke = False
        self.complete = False

    def feed(self, event: dict[str, Any]) -> list[Chunk]:
        """Reads one line and returns its chunks; raises ModelError for an error line."""
        if event.get(DONE):
            self.complete = True
            return []
        if _error_in(event):
            error = read_error(event)
            error.partial = self._response("other")
            raise error
        self._model = self._model or as_str(event.get("model"))
        message = _message_in(event)
        self._spoke = self._spoke or message is not None
        chunks = self._add(message or {})
        self._logprobs += [read for item in dicts(event.get("logprobs")) if (read := _logprob(item))]
        if event.get("done"):
            self._last = event
            self.complete = True
        return chunks

    def finish(self) -> Response:
        """The whole answer."""
        if not (self.complete and self._spoke):
            words = "the stream ended before the answer was complete"
            if self.complete:
                words = "the answer holds no message: it is not a chat answer"
            raise ModelError(words, retryable=True, partial=self._response("other"))
        stop = as_str(self._last.get("done_reason"))
        reason = STOP_REASONS.get(stop, "other") if stop else "end"
        return self._response("tool_calls" if reason == "end" and self._calls else reason)

    def _add(self, message: dict[str, Any]) -> list[Chunk]:
        chunks: list[Chunk] = []
        if thought := as_str(message.get("thinking")):
            self._thinking.append(thought)
            chunks.append(ReasoningChunk(thought))
        if text := as_str(message.get("content")):
            self._text.append(text)
            chunks.append(TextChunk(text))
        for data in as_list(message.get("images")):
            if isinstance(data, str) and data:
                kind = next((kind for start, kind in PICTURES.items() if data.startswith(start)), "")
                self._images.append(Image(data, media_type=kind))
        for item in dicts(message.get("tool_calls")):
            for call in split_concatenated(self._call(item)):
                text = call.arguments if isinstance(call.arguments, str) else _as_json(call.arguments)
                chunks.append(CallChunk(len(self._calls), call.name, call.id, text, done=True))
                self._calls.append(call)
        return chunks

    def _call(self, item: dict[str, Any]) -> ToolCall:
        function = as_dict(item.get("function"))
        name, raw = as_str(function.get("name")), function.get("arguments")
        arguments = raw if isinstance(raw, str | dict) else "" if raw is None else _as_json(raw)
        own = _rest(item, STANDARD_FIELDS)
        if rest := _rest(function, STANDARD_FUNCTION):
            own["function"] = rest
        extras = extras_for(self._provider, own)
        return ToolCall(self._names.get(name, name), arguments, known_id(item.get("id")), extras)

    def _response(self, reason: StopReason) -> Response:
        parts: list[MessagePart] = []
        if self._thinking:
            parts.append(Reasoning(joined(self._thinking), {self._provider: {"field": "thinking"}}))
        if self._text:
            parts.append(Text(joined(self._text)))
        return Response(
            Message("assistant", [*parts, *self._images, *self._calls]),
            reason,
            Usage(as_count(self._last.get("prompt_eval_count")), as_count(self._last.get("eval_count"))),
            self._model,
            as_str(self._last.get("done_reason")),
            tuple(self._logprobs),
        )


def _message_in(event: dict[str, Any]) -> dict[str, Any] | None:
    """The message of a line; `POST /api/generate` has its text at the top level."""
    message = event.get("message")
    if not isinstance(message, dict) and isinstance(event.get("response"), str):
        return {"content": event["response"], "thinking": event.get("thinking")}
    return message if isinstance(message, dict) else None


def _rest(fields: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in known and value is not None}


def _as_json(value: Any) -> str:
    try:
        return compact(value)
    except RecursionError:
        raise ModelError("a call's arguments are nested too deeply", retryable=True) from None


def _logprob(item: dict[str, Any]) -> TokenLogprob | None:
    value = as_float(item.get("logprob"))
    if value is None:
        return None
    others = (
        (as_str(other.get("token")), as_float(other.get("logprob")))
        for other in dicts(item.get("top_logprobs"))
    )
    return TokenLogprob(
        as_str(item.get("token")),
        value,
        tuple((token, likely) for token, likely in others if likely is not None),
    )


def _error_in(fields: dict[str, Any]) -> Any:
    """The error text of a line; some versions used the start of that text as its key."""
    for name, value in fields.items():
        if value and (name == "error" or name.startswith("error ")):
            return value if name == "error" else f"{name}: {value}"
    return None


def read_error(body: Any, status: int | None = None, retry_after: float | None = None) -> ModelError:
    """The error that a body describes; an error in the middle of a stream counts as retryable."""
    fields = as_dict(body)
    said = _error_in(fields) or body
    if status is None:
        status = as_index(fields.get("status_code"))
    words = as_str(said) or as_str(as_dict(said).get("message")) or unread_error(body)
    error = ModelError(words, status is None or is_retryable(status, ""), status, retry_after)
    return with_unread_call(error, body)
