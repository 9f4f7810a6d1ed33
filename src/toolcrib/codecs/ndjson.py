"""Reads JSON objects, one a line, from a byte stream that may be cut anywhere."""

from __future__ import annotations

from typing import Any

from toolcrib.codecs.codec import LONGEST_EVENT, ModelError
from toolcrib.codecs.wire_json import wire_value

BOM = b"\xef\xbb\xbf"


class JSONLines:
    """Takes the bytes of a stream and gives the JSON object of each line, in time linear in the bytes.

    Blank lines are skipped, and the last line needs no line break. A line that is not a JSON object raises
    ModelError.

    >>> lines = JSONLines()
    >>> lines.feed(b'{"a": 1}\\n{"a"'), lines.feed(b": 2}"), lines.finish()
    ([{'a': 1}], [], [{'a': 2}])
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._size = 0  # of the line that is not complete
        self._first = True
        self._broken: ModelError | None = None

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The objects that these bytes complete. The objects before a broken line are returned first; its error
        is raised by the next call.
        """
        if self._broken is not None:
            raise self._broken
        *lines, rest = data.split(b"\n")
        self._size = len(rest) if lines else self._size + len(rest)
        if self._size > LONGEST_EVENT:
            raise ModelError(f"the stream holds a line of more than {LONGEST_EVENT // 1024**2} MiB")
        objects: list[dict[str, Any]] = []
        for line in lines:
            if self._line:
                line = b"".join([*self._line, line])
                self._line = []
            try:
                objects.extend(self._read(line))
            except ModelError as error:
                if not objects:
                    raise
                self._broken = error
                return objects
        if rest:
            self._line.append(rest)
        return objects

    def finish(self) -> list[dict[str, Any]]:
        """The object that the end of the stream completes, if any."""
        if self._broken is not None:
            raise self._broken
        line, self._line = b"".join(self._line), []
        return self._read(line)

    def _read(self, line: bytes) -> list[dict[str, Any]]:
        if self._first and line:
            self._first = False
            line = line.removeprefix(BOM)
        text = line.decode("utf-8", "replace").strip()
        if not text:
            return []
        try:
            value = wire_value(text)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise ModelError(f"the stream holds a line that is not a JSON object: {text[:200]}", True)
        return [value]
