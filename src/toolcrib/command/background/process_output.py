"""What a background process prints, kept by byte offsets: the beginning in a file, the end in memory."""

from __future__ import annotations

import os
import re
import tempfile
from typing import IO

from toolcrib.command.launch.output import BoundedOutput

MAX_FILE = 64 << 20  # bytes from the beginning of the output that are kept in a file
MAX_MEMORY = 2 << 20  # bytes of a `BoundedOutput`, of which half are the end of the output
INCOMPLETE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|[ -/]*)\Z")  # an escape sequence whose end has not come yet
MAX_ESCAPE = 32


class ProcessOutput(BoundedOutput):
    """The output of a process. Any part of it can be read while it is kept: the first 64 MiB, and the last 1 MiB.

    >>> output = ProcessOutput()
    >>> output.feed(b"one two")
    >>> output.read(4, 100)
    (4, b'two')
    """

    __slots__ = ("_file", "_in_file")

    def __init__(self) -> None:
        super().__init__(MAX_MEMORY)
        self._file: IO[bytes] | None = None
        self._in_file = 0

    def feed(self, data: bytes) -> None:
        if self.total == self._in_file and self.total < MAX_FILE:
            self._to_file(data[: MAX_FILE - self.total])
        super().feed(data)

    def _to_file(self, data: bytes) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="toolcrib-output-")  # noqa: SIM115 - it has no name
            view = memoryview(data)
            while view:
                wrote = os.pwrite(self._file.fileno(), view, self._in_file)
                self._in_file += wrote
                view = view[wrote:]
        except OSError:  # a full disk: what follows is kept in memory alone
            return

    def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """At most `limit` bytes from `offset` on, and where they begin: later, where bytes are no longer kept."""
        if self._file is not None and offset < self._in_file:
            data = os.pread(self._file.fileno(), min(limit, self._in_file - offset), offset)
            start, rest = self._from_memory(self._in_file, limit - len(data))
            return offset, data + rest if start == self._in_file else data
        if offset < len(self._head):
            return offset, bytes(self._head[offset : offset + limit])
        return self._from_memory(offset, limit)

    def _from_memory(self, offset: int, limit: int) -> tuple[int, bytes]:
        if not limit:
            return offset, b""
        tail = self.tail
        begins = self.total - len(tail)
        start = min(max(offset, begins), self.total)
        return start, tail[start - begins : start - begins + limit]

    def close(self) -> None:
        """Drops the file. What is in memory can still be read."""
        if self._file is not None:
            self._file.close()
            self._file, self._in_file = None, 0


def whole_characters(data: bytes) -> bytes:
    """The bytes without an incomplete character or escape sequence at their end."""
    if (found := INCOMPLETE.search(data[-MAX_ESCAPE:])) is not None:
        return data[: len(data) - (len(found[0]))]
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:  # begins a character of several bytes
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if needed > back else data
        if byte < 0x80:
            return data
    return data
