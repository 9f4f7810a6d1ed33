"""Running a child process to its end, with all that it started: bounded in time and in memory.

A child runs in a session of its own, without input, its output and errors in one pipe in the order that
they came. Its descendants are known by their session, by a mark in their environment, and by holding the
pipe, so that one that made itself a daemon is found as well (on Linux; elsewhere only the process group).
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

GRACE = 2.0  # seconds between asking to end and ending
DRAIN = 0.25  # seconds for output that is still in the pipe after the child's end
STUCK = 5.0  # seconds after which a killed process that does not go is left to the system
POLL = 0.02
CHUNK = 65_536
MARK = "TOOLCRIB_PROCESS"
PROC = Path("/proc")
STARTED = 19  # where in a line of the process table, counted from the state

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
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=write_end,
                stderr=write_end,
                cwd=cwd,
                env={**env, MARK: mark},
                start_new_session=True,
                pass_fds=pass_fds,
            )
        )
        # A child that is half started can be neither ended nor waited for: first it starts, then it is ended.
        cancelled: BaseException | None = None
        while not starting.done():
            try:
                await asyncio.wait([starting])
            except asyncio.CancelledError as stop:
                cancelled = stop
        if cancelled is not None and starting.exception() is not None:
            raise cancelled
        child = starting.result()
        if on_start is not None:
            on_start()
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    output = HeadTail(keep)
    family = Family(child.pid, f"{MARK}={mark}".encode(), os.fstat(read_end).st_ino)
    pipe = _Pipe(read_end, output, on_output)
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
            await _shielded(_end(child, family, grace), family)
        elif left or family.group_alive():
            await _shielded(_end_rest(family, grace), family)
        await pipe.drained(DRAIN)
        pipe.close()
    return Outcome(code, output, time.monotonic() - started, left)


class Family:
    """A child and what it started, found in the process table when needed."""

    __slots__ = ("below", "leader", "mark", "pipe")

    def __init__(self, leader: int, mark: bytes, pipe_inode: int) -> None:
        self.leader = leader
        self.mark = mark
        self.pipe = f"pipe:[{pipe_inode}]"
        self.below: set[tuple[int, bytes]] = set()

    def seize(self) -> None:
        """Stop the leader for a moment and note what it has started, which its end would hide from us.

        A sandbox's program that is ended while it still sets up would leave the command behind, and no mark,
        session or pipe may lead to that.
        """
        if not _table():
            return
        try:
            os.kill(self.leader, signal.SIGSTOP)
        except (ProcessLookupError, PermissionError):
            return
        self.below |= _descendants(self.leader)

    def let_go(self) -> None:
        try:
            os.kill(self.leader, signal.SIGCONT)
        except (ProcessLookupError, PermissionError):
            pass

    def group_alive(self) -> bool:
        try:
            os.killpg(self.leader, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def attached(self) -> list[int]:
        """Those that did not detach: in the child's session, or holding its output."""
        return [pid for pid in _table() if self._attached(pid)]

    def all(self) -> list[int]:
        return [pid for pid in _table() if self._attached(pid) or self._marked(pid) or self._noted(pid)]

    def signal(self, number: int, pids: list[int]) -> None:
        if not _table() and self.group_alive():
            os.killpg(self.leader, number)
        for pid in pids:
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                continue

    def _attached(self, pid: int) -> bool:
        fields = _stat(pid)
        if fields is None:
            return False
        group, session = fields[2:4]
        return int(session) == self.leader or int(group) == self.leader or self._holds_output(pid)

    def _noted(self, pid: int) -> bool:
        return (
            bool(self.below) and (fields := _stat(pid)) is not None and (pid, fields[STARTED]) in self.below
        )

    def _holds_output(self, pid: int) -> bool:
        for fd in ("1", "2"):
            try:
                if str((PROC / str(pid) / "fd" / fd).readlink()) == self.pipe:
                    return True
            except OSError:
                continue
        return False

    def _marked(self, pid: int) -> bool:
        try:
            return self.mark in (PROC / str(pid) / "environ").read_bytes().split(b"\0")
        except OSError:
            return False


def _stat(pid: int) -> list[bytes] | None:
    """What the process table says of a process, from its state on; None for one that is gone."""
    try:
        fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else fields


def _descendants(root: int) -> set[tuple[int, bytes]]:
    """All below a process, each with the time at which it started: an id alone may be given to another."""
    below: dict[int, list[tuple[int, bytes]]] = {}
    for pid in _table():
        if (fields := _stat(pid)) is not None:
            below.setdefault(int(fields[1]), []).append((pid, fields[STARTED]))
    found: set[tuple[int, bytes]] = set()
    todo = [root]
    while todo:
        inner = below.get(todo.pop(), [])
        found.update(inner)
        todo += [pid for pid, _ in inner]
    return found


def _table() -> list[int]:
    """All processes but this one; empty where there is no /proc."""
    try:
        pids = [int(path.name) for path in PROC.iterdir() if path.name.isdigit()]
    except OSError:
        return []
    return [pid for pid in pids if pid != os.getpid()]


async def _end(child: asyncio.subprocess.Process, family: Family, grace: float) -> None:
    """Ask the whole family to end, then make it."""
    import asyncio

    family.seize()
    asked = family.all()
    family.signal(signal.SIGTERM, asked)
    family.let_go()

    def ended() -> bool:
        # What was only being started is asked as soon as it is there.
        left = family.all()
        if late := [pid for pid in left if pid not in asked]:
            family.signal(signal.SIGTERM, late)
            asked.extend(late)
        return child.returncode is not None and not left

    await _until(ended, grace)
    await _kill(family.all, family)
    try:
        async with asyncio.timeout(STUCK):
            await child.wait()
    except TimeoutError:
        pass


async def _end_rest(family: Family, grace: float) -> None:
    family.signal(signal.SIGTERM, family.attached())
    await _until(lambda: not family.attached(), grace)
    await _kill(family.attached, family)


async def _kill(members: Callable[[], list[int]], family: Family) -> None:
    """Again and again until none is left: one may start another while it is killed."""
    deadline = time.monotonic() + STUCK
    while (pids := members()) or (not _table() and family.group_alive()):
        family.signal(signal.SIGKILL, pids)
        if time.monotonic() > deadline:
            return
        await _pause()


async def _until(done: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        await _pause()


async def _pause() -> None:
    import asyncio

    await asyncio.sleep(POLL)


async def _shielded(work: Any, family: Family) -> None:
    """Finish ending the family even if the task is cancelled again; a second cancel only hurries it."""
    import asyncio

    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        family.signal(signal.SIGKILL, family.all())
        await task
        raise


class _Pipe:
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
