"""A plan that was proved plain, run in the sandbox: each of its programs is launched for itself.

No shell stands between; folders and redirections are opened step by step below the folder that the command
runs in, and no link is followed.
"""

from __future__ import annotations

import errno
import os
import posixpath
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.command.launch.plan_runner import run_plan
from toolcrib.command.launch.process import DRAIN, HeadTail, Outcome, Pipe
from toolcrib.command.launch.process_tree import MARK, Family, end, end_rest, shielded, start
from toolcrib.command.sandbox import Launch, Level, Sandbox, SandboxError
from toolcrib.shell import Plan

if TYPE_CHECKING:
    import asyncio

    from toolcrib.command.launch.plan_runner import Streams

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


async def run_as_plan(
    plan: Plan,
    host: PlanHost,
    *,
    env: Mapping[str, str],
    timeout: float,
    keep: int,
    on_output: Callable[[HeadTail], None],
) -> Outcome:
    """Run it to its end with output and errors in one pipe; what is left after that, or after `timeout`, is ended."""
    started = time.monotonic()
    output = HeadTail(keep)
    read_end, write_end = os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    complaints = _not_waiting(write_end)
    host.output, host.stands_for = os.fstat(read_end).st_ino, {complaints: write_end}
    pipe = Pipe(read_end, output, on_output)
    code: int | None = None
    try:
        code = await run_plan(
            plan, host, env=env, timeout=timeout, stdin=nothing, stdout=write_end, stderr=complaints
        )
    except TimeoutError:
        pass
    finally:
        for fd in {nothing, write_end, complaints}:
            os.close(fd)
        try:
            await host.ended()
            await pipe.drained(DRAIN)
        finally:
            pipe.close()
    return Outcome(code, output, time.monotonic() - started, host.left)


async def launched(prepare: Callable[[], Launch]) -> Launch:
    """Prepare a launch in a thread, for it looks through folders; if nobody waits for it any more, close it."""
    import asyncio

    preparing = asyncio.ensure_future(asyncio.to_thread(prepare))
    try:
        return await asyncio.shield(preparing)
    except asyncio.CancelledError:
        preparing.add_done_callback(
            lambda done: None if done.cancelled() or done.exception() else done.result().close()
        )
        raise


class PlanHost:
    """Where a plan runs: programs in `sandbox` at `level`, folders and files below one that is open already.

    `root` is that folder's absolute name. `launch` is the last one that failed, or else the last; `restored`
    what sandboxes put right, in sentences; `refused` says why something could not be confined and so was not started.
    """

    def __init__(
        self, root: str, folder: int, sandbox: Sandbox, *, level: Level | None = None, grace: float
    ) -> None:
        self.root = root
        self.folder = folder
        self.sandbox = sandbox
        self.level = level
        self.grace = grace
        self.output = 0
        self.stands_for: dict[int, int] = {}
        self.left = 0
        self.launch: Launch | None = None
        self.failed = False
        self.restored: list[str] = []
        self.refused = ""
        self.children: set[PlanChild] = set()

    async def spawn(
        self, argv: Sequence[str], *, folder: str, env: Mapping[str, str], streams: Streams
    ) -> PlanChild:
        if "/" not in argv[0] and shutil.which(argv[0], path=env.get("PATH", os.defpath)) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
        at = self._walk(self._below("", folder))
        try:
            prepare = partial(
                self.sandbox.launch, _closing(argv, streams), cwd=folder, env=env, level=self.level
            )
            try:
                launch = await launched(prepare)
            except SandboxError as refused:
                self.refused = str(refused)
                raise PermissionError(errno.EPERM, "it could not be confined", argv[0]) from None
            return await self._started(launch, pinned(at, folder), streams)
        finally:
            os.close(at)

    async def _started(self, launch: Launch, cwd: str, streams: Streams) -> PlanChild:
        mark = secrets.token_hex(16)
        null = subprocess.DEVNULL
        inherited = [null if stream is None else self.stands_for.get(stream, stream) for stream in streams]
        try:
            process, cancelled = await start(
                launch.argv,
                cwd=cwd,
                env={**launch.env, MARK: mark},
                streams=(inherited[0], inherited[1], inherited[2]),
                pass_fds=launch.pass_fds,
            )
        except BaseException:
            launch.close()
            raise
        launch.started()
        child = PlanChild(self, process, launch, mark)
        self.children.add(child)
        if cancelled is not None:
            child.kill()
            await child.wait()
            raise cancelled
        return child

    def open(self, path: str, *, folder: str, flags: int) -> int:
        below = self._below(path, folder)
        level = self.sandbox.level
        if self._lies_in(below, level.hidden) or (
            flags & (os.O_WRONLY | os.O_RDWR) and self._lies_in(below, level.read_only)
        ):
            raise PermissionError(errno.EPERM, "kept from commands by a rule", path)
        parent, name = posixpath.split(below)
        at = self._walk(parent)
        if not name:
            return at  # the root itself: a shell opens a folder too
        try:
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o666, dir_fd=at)
        finally:
            os.close(at)

    def enter(self, path: str, *, folder: str) -> str:
        below = self._below(path, folder)
        os.close(self._walk(below))
        return posixpath.join(self.root, below) if below else self.root

    def names(self, path: str, *, folder: str) -> list[str]:
        below = self._below(path, folder)
        if self._lies_in(below, self.sandbox.level.hidden):
            return []
        at = self._walk(below)
        try:
            return os.listdir(at)  # noqa: PTH208 - by descriptor
        finally:
            os.close(at)

    async def ended(self) -> None:
        """End what still runs of it."""
        for child in list(self.children):
            child.kill()
            await child.wait()

    def _below(self, path: str, folder: str) -> str:
        """The path from the root, its `..` resolved by text as `cd` does."""
        whole = posixpath.normpath(posixpath.join(folder, path))
        if whole != self.root and not whole.startswith(self.root.rstrip("/") + "/"):
            raise PermissionError(errno.EPERM, "outside the workspace", path)
        return whole[len(self.root) :].strip("/")

    def _lies_in(self, below: str, places: Sequence[str]) -> bool:
        """Whether a path from the root is one of some places, or lies below one."""
        whole = f"{posixpath.join(self.root, below)}/"
        return any(whole.startswith(f"{place}/") for place in places)

    def _walk(self, path: str) -> int:
        at = os.dup(self.folder)
        for name in filter(None, path.split("/")):
            try:
                below = os.open(name, FOLDER, dir_fd=at)
            finally:
                os.close(at)
            at = below
        return at


class PlanChild:
    """One program of a plan, with all that it started."""

    __slots__ = ("ending", "family", "host", "launch", "process")

    def __init__(
        self, host: PlanHost, process: asyncio.subprocess.Process, launch: Launch, mark: str
    ) -> None:
        self.host = host
        self.process = process
        self.launch = launch
        self.family = Family(process.pid, f"{MARK}={mark}".encode(), host.output, shared=True)
        self.ending: asyncio.Future[None] | None = None

    async def wait(self) -> int:
        if self.ending is None:
            await self.process.wait()
        try:
            if self.ending is not None:
                await shielded(self.ending, self.family)
            elif self.family.group_alive():
                self.host.left += len(self.family.attached())
                await shielded(end_rest(self.family, self.host.grace), self.family)
        finally:
            self._over()
        return -9 if self.process.returncode is None else self.process.returncode

    def kill(self) -> None:
        import asyncio

        if self.ending is None and self.process.returncode is None:
            self.ending = asyncio.ensure_future(end(self.process, self.family, self.host.grace))

    def _over(self) -> None:
        host = self.host
        if self not in host.children:
            return
        host.children.remove(self)
        self.launch.close()
        host.restored += (words for words in self.launch.reverted() if words not in host.restored)
        if not host.failed:
            host.launch, host.failed = self.launch, bool(self.process.returncode)


def _not_waiting(pipe: int) -> int:
    """The same end of a pipe for what the plan itself says: it must not wait for room, since we are the reader.

    Programs get the other one, for they would take a full pipe for a failure.
    """
    try:
        return os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return pipe


def pinned(folder: int, named: str) -> str:
    """The folder that was opened, whatever its name leads to by now, where the system can name it so."""
    path = f"/proc/self/fd/{folder}"
    return path if Path(path).exists() else named


def _closing(argv: Sequence[str], streams: Streams) -> list[str]:
    """A child cannot be started with a closed descriptor: a fixed script of /bin/sh closes it first."""
    closed = [f"{fd}{'<' if fd == 0 else '>'}&-" for fd, stream in enumerate(streams) if stream is None]
    return ["/bin/sh", "-c", f'exec "$0" "$@" {" ".join(closed)}', *argv] if closed else list(argv)
