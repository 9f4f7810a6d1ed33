"""Reads server-sent events from a byte stream that may be cut anywhere.

The grammar is that of the HTML standard, section 9.2.6, with two exceptions that servers need: a last event
without its empty line counts, and `data: [DONE]` ends a stream.
"""

from __future__ import annotations

import re
from typing import Any

from toolcrib.codecs.codec import LONGEST_EVENT, ModelError
from toolcrib.codecs.wire_json import wire_value
from toolcrib.dataclass import dataclass

LINE_END = re.compile(rb"\r\n|\n|\r")
BOM = b"\xef\xbb\xbf"
DONE = "[DONE]"
END: dict[str, Any] = {DONE: True}


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: its data lines joined by line breaks, its name and its id."""

    data: str
    event: str = ""
    id: str = ""


class SSEReader:
    """Takes bytes and gives events, in time linear in the bytes.

    >>> reader = SSEReader()
    >>> reader.feed(b"data: he"), reader.feed(b"llo\\n\\n")
    ([], [ServerEvent(data='hello', event='', id='')])
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._held = 0  # bytes of the line that is not complete
        self._size = 0  # characters of the data of the event that is not complete
        self._after_cr = False
        self._first = True
        self._data: list[str] = []
        self._event = ""
        self._id = ""

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The events that these bytes complete."""
        if not data:
            return []
        if self._after_cr and data[:1] == b"\n":
            data = data[1:]
        self._after_cr = data[-1:] == b"\r"
        *lines, rest = LINE_END.split(data)
        events: list[ServerEvent] = []
        for line in lines:
            if self._line:
                self._line.append(line)
                line = b"".join(self._line)
                self._line, self._held = [], 0
            if (event := self._take(line)) is not None:
                events.append(event)
        if rest:
            self._line.append(rest)
            self._held += len(rest)
        if self._held + self._size > LONGEST_EVENT:
            raise ModelError(f"the stream holds an event of more than {LONGEST_EVENT // 1024**2} MiB")
        return events

    def finish(self) -> list[ServerEvent]:
        """The event that the end of the stream completes."""
        line, self._line = b"".join(self._line), []
        first = self._take(line) if line else None
        last = self._dispatch()
        return [event for event in (first, last) if event is not None]

    def _take(self, line: bytes) -> ServerEvent | None:
        if self._first:
            self._first = False
            line = line.removeprefix(BOM)
        if not line:
            return self._dispatch()
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(value)
        elif name == "event":
            self._event = value
        elif name == "id":
            self._id = value
        return None

    def _dispatch(self) -> ServerEvent | None:
        event = ServerEvent("\n".join(self._data), self._event, self._id) if self._data else None
        self._data, self._event, self._size = [], "", 0
        return event


class JSONEvents:
    """Takes the bytes of a stream and gives the JSON objects of its events, which a codec's decoder is fed with.

    The end mark is given as `END`. An event that is not a JSON object raises ModelError.
    """

    def __init__(self) -> None:
        self._reader = SSEReader()
        self._broken: ModelError | None = None

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The objects that these bytes complete. The objects before a broken event are returned first; its
        error is raised by the next call.
        """
        return self._objects(self._reader.feed(data))

    def finish(self) -> list[dict[str, Any]]:
        """The object that the end of the stream completes, if any."""
        found = self._objects(self._reader.finish())
        if self._broken is not None:
            raise self._broken
        return found

    def _objects(self, events: list[ServerEvent]) -> list[dict[str, Any]]:
        if self._broken is not None:
            raise self._broken
        found: list[dict[str, Any]] = []
        for event in events:
            try:
                value = parse_event(event.data, event.event)
            except ModelError as error:
                if not found:
                    raise
                self._broken = error
                break
            if value is not None:
                found.append(value)
        return found


def parse_event(data: str, name: str = "") -> dict[str, Any] | None:
    """The JSON object of one event's data; None for an empty event. ModelError for anything else."""
    text = data.strip()
    if not text:
        return None
    if text.startswith(DONE):
        return END
    try:
        value = wire_value(text)
    except (ValueError, RecursionError):
        value = None
    if name == "error" and not (isinstance(value, dict) and value.get("error")):
        return {"type": "error", "error": value if value is not None else text}
    if not isinstance(value, dict):
        raise ModelError(f"the stream holds an event that is not a JSON object: {text[:200]}", retryable=True)
    return value if "type" in value or not name else {**value, "type": name}
