"""Reads AWS event streams from bytes that may be cut anywhere, and gives events for a decoder.

botocore reads checksums and headers; the buffering around it is ours, so that it stays linear.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from toolcrib.codecs.bedrock_converse_answer import read_error
from toolcrib.codecs.codec import ModelError
from toolcrib.codecs.wire_json import as_dict, as_str, wire_value

PRELUDE = 12  # bytes: length of the frame, length of its headers, checksum of both
SHORTEST = PRELUDE + 4
LONGEST = 24 * 1024 * 1024 + 128 * 1024


class ConverseFrames:
    """Takes bytes and gives objects whose only key is the event's name, which `ConverseDecoder` is fed with.

    A failure is given as the event "error" with its name as `__type`. Bytes that are not frames raise ModelError.
    """

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The events that these bytes complete."""
        self._data += data
        return [event for frame in self._frames() for event in self._events(*self._read(frame))]

    def finish(self) -> list[dict[str, Any]]:
        """Nothing: an incomplete frame is dropped, and the decoder reports the missing end."""
        return []

    def _frames(self) -> Iterator[bytes]:
        start = 0
        while len(self._data) - start >= PRELUDE:
            length = int.from_bytes(self._data[start : start + 4])
            if not SHORTEST <= length <= LONGEST:
                raise _broken(f"a frame of {length} bytes")
            if len(self._data) - start < length:
                break
            yield bytes(self._data[start : start + length])
            start += length
        del self._data[:start]

    def _read(self, frame: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
        """A frame's headers and its payload."""
        buffer = import_module("botocore.eventstream").EventStreamBuffer()
        buffer.add_data(frame)
        try:
            message = next(buffer)
        except Exception as problem:  # a wrong checksum, header or length: each has an exception of its own
            raise _broken(str(problem) or type(problem).__name__) from problem
        try:
            payload = wire_value(message.payload or b"{}")
        except (ValueError, RecursionError):
            payload = {"message": message.payload[:200].decode("utf-8", "replace")}
        return message.headers, as_dict(payload)

    def _events(self, headers: dict[str, Any], payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
        match headers.get(":message-type"):
            case "exception":
                yield {"error": {"__type": as_str(headers.get(":exception-type")), **payload}}
            case "error":
                said = {"message": as_str(headers.get(":error-message"))}
                yield {"error": {"__type": as_str(headers.get(":error-code")), **said, **payload}}
            case _:
                yield from self._event(as_str(headers.get(":event-type")), payload)

    def _event(self, name: str, payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield {name: payload}


class MessagesFrames(ConverseFrames):
    """The same for `invoke-with-response-stream`, whose frames contain the events of the model's own format."""

    def _event(self, name: str, payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
        try:
            inner = wire_value(b64decode(as_str(payload.get("bytes")) or b"e30="))
        except (ValueError, RecursionError) as problem:
            raise _broken("a chunk that is not JSON") from problem
        yield as_dict(inner)

    def _events(self, headers: dict[str, Any], payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for event in super()._events(headers, payload):
            if headers.get(":message-type") not in ("exception", "error"):
                yield event
                continue
            error = read_error(event)
            kind = "api_error" if error.retryable else "invalid_request_error"
            yield {"type": "error", "error": {"type": kind, "message": error.message}}


def _broken(what: str) -> ModelError:
    return ModelError(f"the stream holds what is not an AWS event stream: {what}", retryable=True)
