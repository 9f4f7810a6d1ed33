"""Bedrock ConverseStream: assembles an answer from its events.

An event is an object whose only key is the event's name, which the framing carries in a header.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from toolcrib.codecs.bedrock_converse_answer import (
    ERROR_ENDINGS,
    SERVER_TOOL,
    finished,
    parts_of,
    read_error,
    response_of,
)
from toolcrib.codecs.codec import ModelError
from toolcrib.codecs.concatenated_calls import StreamedArguments
from toolcrib.codecs.other_names import OtherNames
from toolcrib.codecs.pairing import known_id
from toolcrib.codecs.renamed_keys import StreamedKeys
from toolcrib.codecs.wire_json import as_dict, as_index, as_list, as_str, compact, joined, json_object
from toolcrib.messages import CallChunk, Chunk, ReasoningChunk, Response, TextChunk

GLUED = -1  # stands for the place of a call that was glued to another's arguments


class ConverseDecoder:
    """Events of a ConverseStream answer in, neutral chunks out."""

    def __init__(self, provider: str = "bedrock", names: OtherNames | None = None) -> None:
        self._provider = provider
        self._names = names or OtherNames()
        self._fields: dict[str, Any] = {}
        self._blocks: list[_Block] = []
        self._open: dict[int | None, _Block] = {}
        self._calls = 0
        self.ended = False
        self.complete = False

    def feed(self, event: dict[str, Any]) -> list[Chunk]:
        """Reads one event and returns its chunks; raises ModelError for an error event."""
        chunks: list[Chunk] = []
        for name, data in event.items():
            if name.lower().endswith(ERROR_ENDINGS):
                error = read_error({"__type": name, "message": as_str(data), **as_dict(data)})
                raise self._broken(error)
            handle = _EVENTS.get(name)
            if handle is not None:  # padding, and kinds yet to be invented, say nothing
                chunks += handle(self, as_dict(data))
        return chunks

    def finish(self) -> Response:
        """The whole answer."""
        if not self.ended:
            raise self._broken(ModelError("the stream ended before the answer was complete", retryable=True))
        return finished(self._response())

    def _block_start(self, data: dict[str, Any]) -> list[Chunk]:
        start = as_dict(data.get("start"))
        kind = next(iter(start), "")
        if not kind:  # a text says so in its first delta
            return []
        index, about = as_index(data.get("contentBlockIndex")), as_dict(start[kind])
        block = self._open.get(index)
        if block is None or block.start or block.kind != kind:
            return self._begin(index, kind, about)
        block.start = dict(about)  # its first delta came before its start
        return [self._named(block)] if block.is_call else []

    def _begin(self, index: int | None, kind: str, start: dict[str, Any]) -> list[Chunk]:
        before = self._open.get(index)
        block = self._open[index] = _Block(kind, start)
        self._blocks.append(block)
        chunks = self._close(before) if before is not None else []
        if block.is_call:
            block.number = self._calls
            self._calls += 1
            chunks.append(self._named(block))
        return chunks

    def _named(self, block: _Block) -> CallChunk:
        name = self._names.tool(as_str(block.start.get("name")))
        if "input" not in block.texts:  # else a piece that came before the name was given out already
            block.keys = StreamedKeys(self._names.parameters.get(name, {}))
        return CallChunk(block.number, name, known_id(block.start.get("toolUseId")))

    def _block_delta(self, data: dict[str, Any]) -> list[Chunk]:
        index = self._index(data)
        return [
            chunk
            for name, value in as_dict(data.get("delta")).items()
            for kind, field, piece in _pieces(name, value)
            for chunk in self._take(index, kind, field, piece)
        ]

    def _index(self, data: dict[str, Any]) -> int | None:
        """The index of a block; without one the last block that is open is meant."""
        index = as_index(data.get("contentBlockIndex"))
        return next(reversed(self._open), None) if index is None and None not in self._open else index

    def _take(self, index: int | None, kind: str, field: str, piece: Any) -> list[Chunk]:
        if index not in self._open and None in self._open and self._open[None].kind == kind:
            self._open[index] = self._open.pop(None)  # it began without its index
        block = self._open.get(index)
        chunks: list[Chunk] = []
        if block is None and kind == "toolUse" and not piece:
            return chunks
        if block is None or block.kind != kind:
            chunks = self._begin(index, kind, {})
            block = self._open[index]
        block.take(field, piece)
        if not isinstance(piece, str) or not piece:
            return chunks
        if kind == "text":
            chunks.append(TextChunk(piece))
        elif kind == "reasoningContent" and field == "text":
            chunks.append(ReasoningChunk(piece))
        elif block.is_call and field == "input":
            shown = block.keys.add(block.arguments.add(piece))
            if shown:
                chunks.append(CallChunk(block.number, arguments=shown))
        return chunks

    def _block_stop(self, data: dict[str, Any]) -> list[Chunk]:
        block = self._open.pop(self._index(data), None)
        return self._close(block) if block is not None else []

    def _message_stop(self, data: dict[str, Any]) -> list[Chunk]:
        self.ended = True
        self._fields |= data
        still_open, self._open = self._open, {}
        return [chunk for block in still_open.values() for chunk in self._close(block)]

    def _metadata(self, data: dict[str, Any]) -> list[Chunk]:
        self._fields |= data
        self.complete = self.ended
        return []

    def _close(self, block: _Block) -> list[Chunk]:
        """Ends a block. A call whose arguments hold several objects becomes several calls."""
        if block.closed or not block.is_call:
            return []
        block.closed = True
        rest, others = block.arguments.settle(final=True)
        rest = block.keys.add(rest, final=True)
        chunks: list[Chunk] = [CallChunk(block.number, arguments=rest)] if rest else []
        chunks.append(CallChunk(block.number, done=True))
        if others:
            block.texts["input"] = list(block.arguments.pieces)
        for arguments in others:
            chunks += self._begin(GLUED, "toolUse", {"name": block.start.get("name")})
            chunks += self._take(GLUED, "toolUse", "input", arguments)
            chunks += self._close(self._open.pop(GLUED))
        return chunks

    def _broken(self, error: ModelError) -> ModelError:
        error.partial = self._response()
        error.partial.stop_reason = "other"
        return error

    def _response(self) -> Response:
        whole = (parts_of(*block.whole(), self._provider, self._names) for block in self._blocks)
        parts = [part for parts in whole for part in parts]
        return response_of(parts, self._fields, self._provider)


_EVENTS = {
    "contentBlockStart": ConverseDecoder._block_start,
    "contentBlockDelta": ConverseDecoder._block_delta,
    "contentBlockStop": ConverseDecoder._block_stop,
    "messageStop": ConverseDecoder._message_stop,
    "metadata": ConverseDecoder._metadata,
}


class _Block:
    """A content block that is still streaming: texts grow as lists of pieces, lists by their items."""

    __slots__ = ("arguments", "closed", "is_call", "keys", "kind", "lists", "number", "start", "texts")

    def __init__(self, kind: str, start: dict[str, Any]) -> None:
        self.kind = kind
        self.start = dict(start)
        self.is_call = kind == "toolUse" and start.get("type") != SERVER_TOOL
        self.number = -1
        self.closed = False
        self.arguments = StreamedArguments()
        self.keys = StreamedKeys({})
        self.texts: dict[str, list[str]] = {}
        self.lists: dict[str, list[Any]] = {}

    def take(self, field: str, piece: Any) -> None:
        if isinstance(piece, str):
            self.texts.setdefault(field, []).append(piece)
        elif isinstance(piece, list):
            self.lists.setdefault(field, []).extend(piece)
        elif piece is not None:
            self.start[field] = piece

    def whole(self) -> tuple[dict[str, Any], Any]:
        """The block as a whole answer would hold it, and a call's arguments as the model wrote them."""
        texts = {field: joined(pieces) for field, pieces in self.texts.items()}
        fields = {**self.start, **texts, **self.lists}
        match self.kind:
            case "text" if "citations" in fields:
                said = [{"text": texts.get("text", "")}]
                return {"citationsContent": {"citations": fields["citations"], "content": said}}, None
            case "text":
                return {"text": texts.get("text", "")}, None
            case "reasoningContent":
                return {"reasoningContent": {"reasoningText": fields}}, None
            case "redactedContent":
                return {"reasoningContent": {"redactedContent": _bytes(self.texts.get("data", []))}}, None
            case "image":
                return {
                    "image": {**self.start, "source": {"bytes": _bytes(self.texts.get("bytes", []))}}
                }, None
            case "toolUse":
                raw = texts.get("input", "")
                given = as_dict(self.start.get("input"))
                return {"toolUse": {**self.start, "input": json_object(raw) or given}}, raw or given or ""
            case kind:
                return {kind: fields}, None


def _pieces(name: str, value: Any) -> list[tuple[str, str, Any]]:
    """A delta as pieces of a block: the block's kind, the field that grows, and the added value."""
    if name == "text":
        return [("text", "text", value)] if isinstance(value, str) else []
    if name == "citation":
        return [("text", "citations", [value])]
    if name == "toolUse":
        piece = as_dict(value).get("input")
        return [("toolUse", "input", piece if isinstance(piece, str) or piece is None else compact(piece))]
    if name == "toolResult":
        return [("toolResult", "content", as_list(value))]
    if name == "image" and "source" in as_dict(value):
        return [("image", "bytes", as_str(as_dict(value["source"]).get("bytes")))]
    if name == "reasoningContent":
        return [
            ("redactedContent", "data", piece) if field == "redactedContent" else (name, field, piece)
            for field, piece in as_dict(value).items()
            if isinstance(piece, str)
        ]
    return [(name, field, piece) for field, piece in as_dict(value).items()]


def _bytes(pieces: list[str]) -> str:
    """Joins bytes that came in several pieces, each base64-encoded separately."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        return b64encode(b"".join(b64decode(piece) for piece in pieces)).decode()
    except ValueError:
        return "".join(pieces)
