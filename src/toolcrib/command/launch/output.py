"""The output of a process: read as it comes, bounded in memory, and turned into plain text."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from toolcrib.visible import counted

CHUNK = 65_536  # bytes of one read
DRAIN = 0.25  # seconds for output that is still in the pipe when the process has ended

ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
BREAK, BLANK = re.compile(rb"[\r\n]+"), re.compile(rb"\s+")
CONTROL = dict.fromkeys([*range(9), 11, 12, *range(13, 32), *range(127, 160)])


class BoundedOutput:
    """The first and the last bytes of a stream; those between them are only counted.

    >>> kept = BoundedOutput(10)
    >>> for piece in (b"0123456789", b"ab"):
    ...     kept.feed(piece)
    >>> kept.head, kept.tail, kept.omitted
    (b'01234', b'789ab', 2)
    """

    __slots__ = ("_head", "_head_room", "_tail", "_tail_room", "total")

    def __init__(self, limit: int) -> None:
        self._head_room = limit // 2
        self._tail_room = limit - self._head_room
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        if room := self._head_room - len(self._head):
            self._head += data[:room]
            data = data[room:]
        self._tail += data[-self._tail_room :] if self._tail_room else b""
        # Trimmed only when it has doubled, so that many small pieces cost no more than few large ones.
        if len(self._tail) > 2 * self._tail_room:
            del self._tail[: -self._tail_room]

    @property
    def head(self) -> bytes:
        return bytes(self._head)

    @property
    def tail(self) -> bytes:
        return bytes(self._tail[-self._tail_room :]) if self._tail_room else b""

    @property
    def omitted(self) -> int:
        return self.total - len(self._head) - min(len(self._tail), self._tail_room)

    def text(self) -> str:
        """The output as plain text. Where bytes are left out, it is cut between lines and a note says how many."""
        if not self.omitted:
            return plain(self.head + self.tail)
        head, tail = self.head, self.tail
        whole_head = head[: head.rfind(b"\n") + 1] or head
        whole_tail = tail[tail.find(b"\n") + 1 :] or tail
        left_out = self.total - len(whole_head) - len(whole_tail)
        return f"{plain(whole_head).rstrip()}\n\n[... {counted(left_out, 'byte')} left out ...]\n\n{plain(whole_tail)}"

    def ending(self, limit: int) -> str:
        """The last `limit` bytes as plain text, for a live view. Where more was printed, it begins with a line."""
        last = bytes(self._tail[-limit:])
        if len(last) < limit and not self.omitted:
            last = bytes(self._head[len(last) - limit :]) + last
        if len(last) < self.total:
            end = len(last.rstrip())  # a secret is masked where it stands as a whole
            cut = BREAK.search(last, 0, end) or BLANK.search(last, 0, end)
            last = last[cut.end() :] if cut else last
        return plain(last)


def plain(data: bytes) -> str:
    """Text as a terminal would show it: without escape sequences, overwritten lines and control characters."""
    text = ESCAPES.sub("", data.decode("utf-8", "replace")).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(map(_last_written, text.split("\n")))
    return text.translate(CONTROL)


def _last_written(line: str) -> str:
    """The last text of a line that was overwritten several times, as progress bars do."""
    return line if "\r" not in line else line.rstrip("\r").rpartition("\r")[2]


class OutputPipe:
    """The reading end of a pipe; what arrives goes to a `BoundedOutput`."""

    __slots__ = ("_closed", "_fd", "_kept", "_loop", "_on_output")

    def __init__(
        self, fd: int, kept: BoundedOutput, on_output: Callable[[BoundedOutput], None] | None
    ) -> None:
        import asyncio

        self._fd = fd
        self._kept = kept
        self._on_output = on_output
        self._closed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._ready)

    def _ready(self) -> None:
        try:
            data = os.read(self._fd, CHUNK)
        except BlockingIOError:
            return
        if not data:
            self.close()
            return
        self._kept.feed(data)
        if self._on_output is not None:
            self._on_output(self._kept)

    @property
    def open(self) -> bool:
        return not self._closed.is_set()

    async def drained(self) -> None:
        """Waits for the end of the output, but not longer than `DRAIN` for a process that keeps the pipe open."""
        import asyncio

        try:
            async with asyncio.timeout(DRAIN):
                await self._closed.wait()
        except TimeoutError:
            pass

    def close(self) -> None:
        if not self._closed.is_set():
            self._closed.set()
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
