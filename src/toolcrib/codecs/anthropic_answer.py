"""Anthropic Messages: reads answers, whole or streamed."""

from __future__ import annotations

from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.codec import ModelError, is_retryable, unread_error
from toolcrib.codecs.concatenated_calls import StreamedArguments, split_concatenated
from toolcrib.codecs.other_names import OtherNames
from toolcrib.codecs.pairing import known_id
from toolcrib.codecs.renamed_keys import StreamedKeys
from toolcrib.codecs.sse import DONE
from toolcrib.codecs.wire_json import (
    arguments_as_written,
    as_count,
    as_dict,
    as_index,
    as_list,
    as_str,
    dicts,
    extras_for,
    joined,
    json_object,
)
from toolcrib.content import Text
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
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "end",  # becomes "tool_calls" where there are calls
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
    "compaction": "pause",  # a summary took the place of what came before; it goes on when asked
}
# Which piece of a block each delta carries, and the field of the block that it belongs to.
TEXT_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
}
IMPLIED_BLOCKS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "thinking"}
# What is said of a whole answer: its container, what the server cut from the context, why it refused.
KEPT_FIELDS = ("container", "context_management", "stop_details")
JSON_BLOCKS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


def read_response(body: dict[str, Any], provider: str, names: OtherNames) -> Response:
    """Reads a whole answer."""
    if body.get("type") == "error" or body.get("error"):
        raise read_error(body)
    if not isinstance(body.get("content"), list):
        raise ModelError("the answer holds no content: it is not a message", retryable=True)
    parts = [
        part
        for block in dicts(body["content"])
        for part in _parts(block, block.get("input"), provider, names)
    ]
    return _response(parts, body, as_dict(body.get("usage")), provider)


class MessagesDecoder:
    """Events of a Messages stream in, neutral chunks out."""

    def __init__(self, provider: str = "anthropic", names: OtherNames | None = None) -> None:
        self._provider = provider
        self._names = names or OtherNames()
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: list[_Block] = []
        self._open: dict[int | None, _Block] = {}
        self._calls = 0
        self.complete = False

    def feed(self, event: dict[str, Any]) -> list[Chunk]:
        """Reads one event and returns its chunks; raises ModelError for an error event."""
        kind = as_str(event.get("type"))
        if kind == "error" or event.get("error"):
            raise self._broken(read_error(event))
        if kind == "message_stop" or event.get(DONE):
            self.complete = True
            return self._close_all()
        handle = _EVENTS.get(kind)
        return handle(self, event) if handle is not None else []  # pings, and kinds yet to be invented

    @property
    def ended(self) -> bool:
        """Whether the answer has its stop reason."""
        return self.complete or bool(self._message.get("stop_reason"))

    def finish(self) -> Response:
        """The whole answer."""
        if not self.ended:
            raise self._broken(ModelError("the stream ended before the answer was complete", retryable=True))
        if not self._message:
            raise ModelError("the stream held no message", retryable=True)
        return self._response()

    def _message_start(self, event: dict[str, Any]) -> list[Chunk]:
        message = as_dict(event.get("message"))
        if self._message:
            if message.get("id") == self._message.get("id"):
                return []
            raise self._broken(ModelError("the stream holds the beginnings of two answers", retryable=True))
        self._message = {"id": "", **message}
        self._usage = dict(as_dict(message.get("usage")))
        chunks: list[Chunk] = []
        for block in dicts(message.get("content")):  # calls made by code come whole, before any event
            opened, chunk = self._open_block(block)
            chunks.extend(chunk)
            chunks.extend(self._close(opened))
        return chunks

    def _block_start(self, event: dict[str, Any]) -> list[Chunk]:
        opened, chunks = self._open_block(as_dict(event.get("content_block")))
        self._open[as_index(event.get("index"))] = opened
        return chunks

    def _open_block(self, content: dict[str, Any]) -> tuple[_Block, list[Chunk]]:
        block = _Block(dict(content))
        self._blocks.append(block)
        if block.kind == "tool_use":
            block.number = self._calls
            self._calls += 1
            name, id = as_str(content.get("name")), known_id(content.get("id"))
            name = self._names.tool(name)
            block.keys = StreamedKeys(self._names.parameters.get(name, {}))
            return block, [CallChunk(block.number, name, id)]
        text = as_str(content.get("text")) if block.kind == "text" else ""
        thought = as_str(content.get("thinking")) if block.kind == "thinking" else ""
        pieces: list[Chunk] = [TextChunk(text)] if text else [ReasoningChunk(thought)] if thought else []
        return block, pieces

    def _block_delta(self, event: dict[str, Any]) -> list[Chunk]:
        index, delta = as_index(event.get("index")), as_dict(event.get("delta"))
        kind = as_str(delta.get("type"))
        block = self._open.get(index)
        if index is None and block is None and self._blocks and not self._blocks[-1].closed:
            block = self._blocks[-1]
        chunks: list[Chunk] = []
        if block is None:
            if kind not in IMPLIED_BLOCKS:
                return []
            block, chunks = self._open_block({"type": IMPLIED_BLOCKS[kind]})
            self._open[index] = block
        if kind not in TEXT_DELTAS:
            block.take(delta)
            return chunks
        name, field = TEXT_DELTAS[kind]
        piece = as_str(delta.get(name))
        if not piece:
            return chunks
        if field == "input" and block.kind == "tool_use":
            shown = block.keys.add(block.arguments.add(piece))
            return [*chunks, CallChunk(block.number, arguments=shown)] if shown else chunks
        block.grow(field, piece)
        if field == "text" and block.kind == "text":
            chunks.append(TextChunk(piece))
        elif field == "thinking" and block.kind == "thinking":
            chunks.append(ReasoningChunk(piece))
        return chunks

    def _block_stop(self, event: dict[str, Any]) -> list[Chunk]:
        block = self._open.get(as_index(event.get("index")))
        return self._close(block) if block is not None else []

    def _message_delta(self, event: dict[str, Any]) -> list[Chunk]:
        delta = {**as_dict(event.get("delta")), "context_management": event.get("context_management")}
        self._message |= {name: value for name, value in delta.items() if value is not None}
        usage = as_dict(event.get("usage"))
        self._usage |= {name: value for name, value in usage.items() if value is not None}
        return []

    def _close_all(self) -> list[Chunk]:
        return [chunk for block in list(self._blocks) for chunk in self._close(block)]

    def _close(self, block: _Block) -> list[Chunk]:
        """Ends a block. A call whose arguments hold several objects becomes several calls."""
        if block.closed:
            return []
        block.closed = True
        if block.kind != "tool_use":
            return []
        rest, others = block.arguments.settle(final=True)
        rest = block.keys.add(rest, final=True)
        chunks: list[Chunk] = [CallChunk(block.number, arguments=rest)] if rest else []
        chunks.append(CallChunk(block.number, done=True))
        for arguments in others:
            other, opened = self._open_block({"type": "tool_use", "name": block.content.get("name")})
            shown = other.keys.add(other.arguments.add(arguments))
            opened.append(CallChunk(other.number, arguments=shown))
            chunks += [*opened, *self._close(other)]
        return chunks

    def _broken(self, error: ModelError) -> ModelError:
        error.partial = self._response()
        error.partial.stop_reason = "other"
        return error

    def _response(self) -> Response:
        parts: list[MessagePart] = []
        for block in self._blocks:
            content, arguments = block.whole()
            parts.extend(_parts(content, arguments, self._provider, self._names))
        return _response(parts, self._message, self._usage, self._provider)


_EVENTS = {
    "message_start": MessagesDecoder._message_start,
    "content_block_start": MessagesDecoder._block_start,
    "content_block_delta": MessagesDecoder._block_delta,
    "content_block_stop": MessagesDecoder._block_stop,
    "message_delta": MessagesDecoder._message_delta,
}


class _Block:
    """A content block that is still streaming; its texts grow as lists of pieces."""

    __slots__ = ("arguments", "citations", "closed", "content", "keys", "kind", "number", "pieces")

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content
        self.kind = as_str(content.get("type"))
        self.number = -1
        self.closed = False
        self.arguments = StreamedArguments()
        self.keys = StreamedKeys({})
        self.pieces: dict[str, list[str]] = {}
        self.citations: list[Any] = []

    def grow(self, field: str, piece: str) -> None:
        self.pieces.setdefault(field, [as_str(self.content.get(field))]).append(piece)

    def take(self, delta: dict[str, Any]) -> None:
        """Takes a delta of a kind that only the provider knows: a citation joins its list, a text grows, any
        other value replaces the earlier one.
        """
        for name, value in delta.items():
            if name == "type":
                continue
            if name == "citation":
                self.citations.append(value)
            elif isinstance(value, str):
                self.grow(name, value)
            elif value is not None:
                self.content[name] = value

    def whole(self) -> tuple[dict[str, Any], Any]:
        """The block as a whole answer would hold it, and a call's arguments."""
        texts = {name: joined(pieces) for name, pieces in self.pieces.items()}
        raw = texts.pop("input", "") or self.arguments.text
        content = {**self.content, **texts}
        if self.citations:
            content["citations"] = [*as_list(content.get("citations")), *self.citations]
        if self.kind in JSON_BLOCKS:
            given = as_dict(self.content.get("input"))
            content["input"] = (json_object(raw) or given) if raw else given
        return content, raw or self.content.get("input")


def _parts(block: dict[str, Any], arguments: Any, provider: str, names: OtherNames) -> list[MessagePart]:
    """One content block as neutral parts: a single part, or several calls when their arguments were concatenated."""
    part = _part(block, arguments, provider, names)
    return [*split_concatenated(part)] if isinstance(part, ToolCall) else [part]


def _part(block: dict[str, Any], arguments: Any, provider: str, names: OtherNames) -> MessagePart:
    """One content block as a neutral part; the block's other fields go into the extras."""
    kind = block.get("type")
    if kind == "text":
        extras = {name: value for name, value in block.items() if name not in ("type", "text") and value}
        return Text(as_str(block.get("text")), extras_for(provider, extras))
    if kind == "thinking":
        own = {name: value for name, value in block.items() if name != "thinking"}
        return Reasoning(as_str(block.get("thinking")), {provider: own})
    if kind == "redacted_thinking":
        return Reasoning("", {provider: dict(block)})
    if kind == "tool_use":
        name = names.tool(as_str(block.get("name")))
        own = {
            key: value for key, value in block.items() if key not in ("type", "id", "name", "input") and value
        }
        return ToolCall(
            name,
            names.written_arguments(name, arguments_as_written(arguments)),
            known_id(block.get("id")),
            extras_for(provider, own),
        )
    return Opaque(provider, block)


def _response(
    parts: list[MessagePart], message: dict[str, Any], usage: dict[str, Any], provider: str
) -> Response:
    stop = as_str(message.get("stop_reason"))
    reason = STOP_REASONS.get(stop, "other") if stop else "end"
    if reason == "end" and any(isinstance(part, ToolCall) for part in parts):
        reason = "tool_calls"
    own = {name: message[name] for name in KEPT_FIELDS if message.get(name)}
    answer = Message("assistant", parts, extras_for(provider, own))
    return Response(answer, reason, read_usage(usage), as_str(message.get("model")), stop)


def read_usage(usage: dict[str, Any]) -> Usage:
    """Usage as neutral counts; this API counts cached tokens beside the input."""
    read = as_count(usage.get("cache_read_input_tokens"))
    written = as_count(usage.get("cache_creation_input_tokens"))
    details = as_dict(usage.get("output_tokens_details"))
    return Usage(
        as_count(usage.get("input_tokens")) + read + written,
        as_count(usage.get("output_tokens")),
        read,
        written,
        as_count(details.get("thinking_tokens")),
    )


def read_error(body: Any, status: int | None = None, retry_after: float | None = None) -> ModelError:
    """The error that a body describes."""
    error = body.get("error", body) if isinstance(body, dict) else body
    fields = as_dict(error)
    message = as_str(fields.get("message")) or as_str(error) or unread_error(body)
    return ModelError(message, is_retryable(status, as_str(fields.get("type"))), status, retry_after)
