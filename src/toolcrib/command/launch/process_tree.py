"""A process and everything that it started, so that all of it can be ended.

A descendant is recognised by its session, by a mark in its environment, or because it holds the output of the process.
So a daemon is found as well. This works on Linux; elsewhere only the process group is known.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from toolcrib.command.sandbox.process.warm_launcher import start_warm

T = TypeVar("T")
GRACE = 2.0  # seconds between SIGTERM and SIGKILL
STUCK = 5.0  # seconds after which a killed process that does not end is left to the system
POLL = 0.02
MARK = "TOOLCRIB_PROCESS"
PROC = Path("/proc")
STARTED = 19  # position of the start time in /proc/PID/stat, counted from the state


class Leader(Protocol):
    """A started process: one of asyncio's, or a `WarmProcess`."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    async def wait(self) -> int: ...


async def start_process(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    streams: tuple[int, int, int],
    pass_fds: Sequence[int] = (),
) -> tuple[Leader, BaseException | None]:
    """Starts a process in a session of its own; returns it, and the cancellation of the calling task if there was one.

    A process that is being started can be neither ended nor waited for, so a cancelled task still starts it, and the
    caller ends it. Raises OSError if it cannot be started.
    """
    return await start_uncancelled(_start(argv, cwd=cwd, env=env, streams=streams, pass_fds=pass_fds))


async def start_uncancelled(start: Coroutine[Any, Any, T]) -> tuple[T, BaseException | None]:
    """Awaits the start of a process to its end; returns the process, and the task's cancellation if there was one."""
    import asyncio

    starting = asyncio.ensure_future(start)
    cancelled: BaseException | None = None
    while not starting.done():
        try:
            await asyncio.wait([starting])
        except asyncio.CancelledError as stop:
            cancelled = stop
    if cancelled is not None and starting.exception() is not None:
        raise cancelled
    return starting.result(), cancelled


async def _start(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    streams: tuple[int, int, int],
    pass_fds: Sequence[int],
) -> Leader:
    warm = await start_warm(argv, cwd=cwd, env=env, streams=streams, pass_fds=pass_fds)
    if warm is not None:
        return warm
    import asyncio

    return await asyncio.create_subprocess_exec(
        *argv,
        stdin=streams[0],
        stdout=streams[1],
        stderr=streams[2],
        cwd=cwd,
        env=env,
        start_new_session=True,
        pass_fds=pass_fds,
    )


class ProcessTree:
    """A process (the leader) and what it started, looked up in the process table when needed.

    `shared` says that other trees write to the same output. A process that holds the output then belongs to this tree
    only if it has the mark.
    """

    __slots__ = ("leader", "mark", "noted", "pipe", "shared")

    def __init__(self, leader: int, mark: bytes, pipe_inode: int, *, shared: bool = False) -> None:
        self.shared = shared
        self.leader = leader
        self.mark = mark
        self.pipe = f"pipe:[{pipe_inode}]"
        self.noted: set[tuple[int, bytes]] = set()

    def stop_and_note(self) -> None:
        """Stops the leader and notes all its descendants, which could not be found any more once it has ended.

        A sandbox's program that is ended during its set-up would leave the command behind, and possibly no mark,
        session or pipe would lead to the command.
        """
        if not _all_processes():
            return
        try:
            os.kill(self.leader, signal.SIGSTOP)
        except (ProcessLookupError, PermissionError):
            return
        self.noted |= _descendants(self.leader)

    def resume(self) -> None:
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
        """The processes that did not detach: in the leader's session, or holding its output."""
        return [pid for pid in _all_processes() if self._attached(pid)]

    def all(self) -> list[int]:
        """The processes of `attached`, those with the mark, and those that were noted."""
        return [
            pid for pid in _all_processes() if self._attached(pid) or self._marked(pid) or self._noted(pid)
        ]

    def signal(self, number: int, pids: list[int]) -> None:
        if not _all_processes() and self.group_alive():
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
            bool(self.noted) and (fields := _stat(pid)) is not None and (pid, fields[STARTED]) in self.noted
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
    """The fields of /proc/PID/stat from the state on; None for a process that has ended."""
    try:
        fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else fields


def _descendants(root: int) -> set[tuple[int, bytes]]:
    """All descendants of a process, each with its start time, because the system reuses process ids."""
    below: dict[int, list[tuple[int, bytes]]] = {}
    for pid in _all_processes():
        if (fields := _stat(pid)) is not None:
            below.setdefault(int(fields[1]), []).append((pid, fields[STARTED]))
    found: set[tuple[int, bytes]] = set()
    todo = [root]
    while todo:
        inner = below.get(todo.pop(), [])
        found.update(inner)
        todo += [pid for pid, _ in inner]
    return found


def _all_processes() -> list[int]:
    """The ids of all processes but this one; empty where there is no /proc."""
    try:
        pids = [int(path.name) for path in PROC.iterdir() if path.name.isdigit()]
    except OSError:
        return []
    return [pid for pid in pids if pid != os.getpid()]


async def end_all(leader: Leader, tree: ProcessTree, grace: float) -> None:
    """Sends SIGTERM to the whole tree, and SIGKILL to what is left after `grace` seconds."""
    import asyncio

    tree.stop_and_note()
    asked = tree.all()
    tree.signal(signal.SIGTERM, asked)
    tree.resume()

    def ended() -> bool:
        # A process that was only being started gets its SIGTERM as soon as it is there.
        left = tree.all()
        if late := [pid for pid in left if pid not in asked]:
            tree.signal(signal.SIGTERM, late)
            asked.extend(late)
        return leader.returncode is not None and not left

    await _until(ended, grace)
    await _kill(tree.all, tree)
    try:
        async with asyncio.timeout(STUCK):
            await leader.wait()
    except TimeoutError:
        pass


async def end_leftovers(tree: ProcessTree, grace: float) -> None:
    """Ends what the leader left running when it ended, but not processes that detached."""
    tree.signal(signal.SIGTERM, tree.attached())
    await _until(lambda: not tree.attached(), grace)
    await _kill(tree.attached, tree)


async def _kill(members: Callable[[], list[int]], tree: ProcessTree) -> None:
    """Kills again and again until none is left, because a process may start another one while it is killed."""
    deadline = time.monotonic() + STUCK
    while (pids := members()) or (not _all_processes() and tree.group_alive()):
        tree.signal(signal.SIGKILL, pids)
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


async def shielded(work: Any, tree: ProcessTree) -> None:
    """Finishes ending the tree even if the task is cancelled again; a second cancellation sends SIGKILL at once."""
    import asyncio

    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        tree.signal(signal.SIGKILL, tree.all())
        await task
        raise
