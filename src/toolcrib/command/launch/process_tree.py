"""The processes of one child: known by their session, by a mark in their environment, or by holding its output.

So one that made itself a daemon is found as well (on Linux; elsewhere only the process group is known).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

GRACE = 2.0  # seconds between asking to end and ending
STUCK = 5.0  # seconds after which a killed process that does not go is left to the system
POLL = 0.02
MARK = "TOOLCRIB_PROCESS"
PROC = Path("/proc")
STARTED = 19  # where in a line of the process table, counted from the state


async def start(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    streams: tuple[int, int, int],
    pass_fds: Sequence[int] = (),
) -> tuple[asyncio.subprocess.Process, BaseException | None]:
    """Start a child in a session of its own, and say with it whether the calling task was cancelled meanwhile.

    A child that is half started can be neither ended nor waited for: first it starts, then it is ended. Raises
    OSError if it cannot be started.
    """
    import asyncio

    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            cwd=cwd,
            env=env,
            start_new_session=True,
            pass_fds=pass_fds,
        )
    )
    cancelled: BaseException | None = None
    while not starting.done():
        try:
            await asyncio.wait([starting])
        except asyncio.CancelledError as stop:
            cancelled = stop
    if cancelled is not None and starting.exception() is not None:
        raise cancelled
    return starting.result(), cancelled


class Family:
    """A child and what it started, found in the process table when needed.

    `shared` output is that of other children as well: who holds it is of this one only if marked so.
    """

    __slots__ = ("below", "leader", "mark", "pipe", "shared")

    def __init__(self, leader: int, mark: bytes, pipe_inode: int, *, shared: bool = False) -> None:
        self.shared = shared
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
        if int(session) == self.leader or int(group) == self.leader:
            return True
        return self._holds_output(pid) and (not self.shared or self._marked(pid))

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


async def end(child: asyncio.subprocess.Process, family: Family, grace: float) -> None:
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


async def end_rest(family: Family, grace: float) -> None:
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


async def shielded(work: Any, family: Family) -> None:
    """Finish ending the family even if the task is cancelled again; a second cancel only hurries it."""
    import asyncio

    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        family.signal(signal.SIGKILL, family.all())
        await task
        raise
