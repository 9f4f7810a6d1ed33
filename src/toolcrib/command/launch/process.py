"""Running a child process to its end, with all that it started: bounded in time and in memory.

A child runs in a session of its own, without input, its output and errors in one pipe in the order that
they came.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from toolcrib.command.launch.process_tree import GRACE, MARK, Family, end, end_rest, shielded, start

DRAIN = 0.25  # seconds for output that is still in the pipe after the child's end
CHUNK = 65_536

ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
CONTROL = dict.fromkeys([*range(9), 11, 12, *range(13, 32), *range(127, 160)])


class HeadTail:
    """The first and the last bytes of a stream; what is between them is counted.

    >>> kept = HeadTail(10)
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
        """All of it as plain text; where bytes are missing, cut between lines, with a note."""
        if not self.omitted:
            return plain(self.head + self.tail)
        head, tail = self.head, self.tail
        whole_head = head[: head.rfind(b"\n") + 1] or head
        whole_tail = tail[tail.find(b"\n") + 1 :] or tail
        left_out = self.total - len(whole_head) - len(whole_tail)
        return f"{plain(whole_head).rstrip()}\n\n[... {left_out:,} bytes left out ...]\n\n{plain(whole_tail)}"

    def ending(self, limit: int) -> str:
        """The last part as plain text, for a live view."""
        data = self._tail or self._head
        return plain(bytes(data[-limit:]))


def plain(data: bytes) -> str:
    """Text as a terminal would leave it: no escape sequences, no overwritten lines, no control characters."""
    text = ESCAPES.sub("", data.decode("utf-8", "replace")).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(map(_last_written, text.split("\n")))
    return text.translate(CONTROL)


def _last_written(line: str) -> str:
    """What stays of a line that was written over, as progress bars do."""
    return line if "\r" not in line else line.rstrip("\r").rpartition("\r")[2]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a child ended. `code` is None after a timeout, negative for a signal; `left`: ended after it."""

    code: int | None
    output: HeadTail
    seconds: float
    left: int = 0


async def run(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    timeout: float,
    keep: int,
    grace: float = GRACE,
    on_output: Callable[[HeadTail], None] | None = None,
    pass_fds: Sequence[int] = (),
    on_start: Callable[[], None] | None = None,
) -> Outcome:
    """Run to the end, or end it after `timeout` seconds or when the calling task is cancelled.

    `on_output` is called as output comes, `on_start` once the child runs and has its `pass_fds`. Raises
    OSError if the program cannot be started.
    """
    import asyncio
    import secrets

    started = time.monotonic()
    mark = secrets.token_hex(16)
    read_end, write_end = os.pipe()
    try:
        child, cancelled = await start(
            argv,
            cwd=cwd,
            env={**env, MARK: mark},
            streams=(asyncio.subprocess.DEVNULL, write_end, write_end),
            pass_fds=pass_fds,
        )
        if on_start is not None:
            on_start()
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    output = HeadTail(keep)
    family = Family(child.pid, f"{MARK}={mark}".encode(), os.fstat(read_end).st_ino)
    pipe = Pipe(read_end, output, on_output)
    code: int | None = None
    left = 0
    try:
        if cancelled is not None:
            raise cancelled
        try:
            async with asyncio.timeout(timeout):
                code = await child.wait()
            await pipe.drained(DRAIN)
            if pipe.open or family.group_alive():
                left = len(family.attached())
        except TimeoutError:
            pass
    finally:
        if code is None:
            await shielded(end(child, family, grace), family)
        elif left or family.group_alive():
            await shielded(end_rest(family, grace), family)
        await pipe.drained(DRAIN)
        pipe.close()
    return Outcome(code, output, time.monotonic() - started, left)


class Pipe:
    """The reading end, taken as it fills."""

    __slots__ = ("_closed", "_fd", "_kept", "_loop", "_on_output")

    def __init__(self, fd: int, kept: HeadTail, on_output: Callable[[HeadTail], None] | None) -> None:
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

    async def drained(self, seconds: float) -> None:
        """Wait for the end of the output, but not for somebody who keeps the pipe open."""
        import asyncio

        try:
            async with asyncio.timeout(seconds):
                await self._closed.wait()
        except TimeoutError:
            pass

    def close(self) -> None:
        if not self._closed.is_set():
            self._closed.set()
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
