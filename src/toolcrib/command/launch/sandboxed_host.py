"""Runs a plan in a sandbox: every program of it is launched confined, and no shell takes part.

Folders and redirections are opened step by step below the folder that the command runs in, without following links.
"""

from __future__ import annotations

import errno
import os
import posixpath
import secrets
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.access import Permits
from toolcrib.command.judge import Plan
from toolcrib.command.launch.output import BoundedOutput, OutputPipe
from toolcrib.command.launch.plan_runner import run_plan
from toolcrib.command.launch.process import ProcessOutcome
from toolcrib.command.launch.process_tree import (
    MARK,
    Leader,
    ProcessTree,
    end_all,
    end_leftovers,
    shielded,
    start_process,
)
from toolcrib.command.sandbox import Launch, Level, Sandbox, SandboxError
from toolcrib.command.sandbox.files.paths import within_any
from toolcrib.folder_handles import READ_FOLDER

if TYPE_CHECKING:
    import asyncio

    from toolcrib.command.launch.plan_streams import Streams


async def run_as_plan(
    plan: Plan,
    host: SandboxedHost,
    *,
    env: Mapping[str, str],
    timeout: float | None,
    output: BoundedOutput,
    on_output: Callable[[BoundedOutput], None],
    workspace: str | None = None,
    permits: Permits | None = None,
) -> ProcessOutcome:
    """Runs a plan with output and errors in one pipe. Ends what is left after it, or after `timeout` seconds."""
    started = time.monotonic()
    read_end, write_end = os.pipe()
    ours = {read_end, write_end}
    try:
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        ours.add(nothing)
        own_errors = _non_blocking(write_end)
        ours.add(own_errors)
        host.output_inode, host.for_programs = os.fstat(read_end).st_ino, {own_errors: write_end}
        pipe = OutputPipe(read_end, output, on_output)
        ours.remove(read_end)
    except BaseException:
        for fd in ours:
            os.close(fd)
        raise
    code: int | None = None
    try:
        code = await run_plan(
            plan,
            host,
            env=env,
            timeout=timeout,
            stdin=nothing,
            stdout=write_end,
            stderr=own_errors,
            workspace=workspace,
            permits=permits,
        )
    except TimeoutError:
        pass
    finally:
        for fd in ours:
            os.close(fd)
        try:
            await host.end_all()
            await pipe.drained()
        finally:
            pipe.close()
    return ProcessOutcome(code, output, time.monotonic() - started, host.left)


async def prepare_launch(prepare: Callable[[], Launch]) -> Launch:
    """Prepares a launch in a thread, because that reads many folders.

    If the task is cancelled meanwhile, the launch is closed as soon as it is prepared, even if the event loop has ended
    by then.
    """
    import asyncio

    prepared: list[Launch] = []
    abandoned, changing = False, threading.Lock()

    def work() -> None:
        launch = prepare()
        with changing:
            if not abandoned:
                prepared.append(launch)
                return
        launch.close()

    try:
        await asyncio.to_thread(work)
    except BaseException:
        with changing:
            abandoned = True
        for launch in prepared:
            launch.close()
        raise
    return prepared[0]


class SandboxedHost:
    """Where a plan runs: its programs in `sandbox` at `level`, its folders and files below a folder that is open.

    `root` is the absolute path of that folder. Afterwards `launch` is the first launch that failed, or else the last
    one; `reverted` are sentences about what sandboxes reverted; `refused` says why a program could not be confined and
    was not started; `left` is the number of processes that were left running.
    """

    def __init__(
        self, root: str, folder: int, sandbox: Sandbox, *, level: Level | None = None, grace: float
    ) -> None:
        self.root = root
        self.folder = folder
        self.sandbox = sandbox
        self.level = level
        self.grace = grace
        self.output_inode = 0
        self.for_programs: dict[int, int] = {}  # {descriptor of the plan: the one that its programs get}
        self.left = 0
        self.launch: Launch | None = None
        self.failed = False
        self.reverted: list[str] = []
        self.refused = ""
        self.processes: set[SandboxedProcess] = set()

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        folder: str,
        env: Mapping[str, str],
        streams: Streams,
        inherited: Sequence[int],
    ) -> SandboxedProcess:
        if "/" not in argv[0] and shutil.which(argv[0], path=env.get("PATH", os.defpath)) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
        at = self._walk(self._below("", folder))
        try:
            prepare = partial(
                self.sandbox.launch, _closing(argv, streams), cwd=folder, env=env, level=self.level
            )
            try:
                launch = await prepare_launch(prepare)
            except SandboxError as refused:
                self.refused = str(refused)
                raise PermissionError(errno.EPERM, "it could not be confined", argv[0]) from None
            launch.pass_fds += tuple(inherited)
            return await self._started(launch, path_of(at, folder), streams)
        finally:
            os.close(at)

    async def _started(self, launch: Launch, cwd: str, streams: Streams) -> SandboxedProcess:
        mark = secrets.token_hex(16)
        null = subprocess.DEVNULL
        inherited = [null if stream is None else self.for_programs.get(stream, stream) for stream in streams]
        try:
            process, cancelled = await start_process(
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
        child = SandboxedProcess(self, process, launch, mark)
        self.processes.add(child)
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

    async def end_all(self) -> None:
        """Ends the programs that still run."""
        for child in list(self.processes):
            child.kill()
            await child.wait()

    def _below(self, path: str, folder: str) -> str:
        """The path relative to the root, with `..` resolved as text, as `cd` does."""
        whole = posixpath.normpath(posixpath.join(folder, path))
        if whole != self.root and not whole.startswith(self.root.rstrip("/") + "/"):
            raise PermissionError(errno.EPERM, "outside the workspace", path)
        return whole[len(self.root) :].strip("/")

    def _lies_in(self, below: str, places: Sequence[str]) -> bool:
        return within_any(posixpath.join(self.root, below), places)

    def _walk(self, path: str) -> int:
        at = os.dup(self.folder)
        for name in filter(None, path.split("/")):
            try:
                below = os.open(name, READ_FOLDER, dir_fd=at)
            finally:
                os.close(at)
            at = below
        return at


class SandboxedProcess:
    """One program of a plan, with everything that it started."""

    __slots__ = ("ending", "host", "launch", "process", "tree")

    def __init__(self, host: SandboxedHost, process: Leader, launch: Launch, mark: str) -> None:
        self.host = host
        self.process = process
        self.launch = launch
        self.tree = ProcessTree(process.pid, f"{MARK}={mark}".encode(), host.output_inode, shared=True)
        self.ending: asyncio.Future[None] | None = None

    async def wait(self) -> int:
        if self.ending is None:
            await self.process.wait()
        try:
            if self.ending is not None:
                await shielded(self.ending, self.tree)
            elif self.tree.group_alive():
                self.host.left += len(self.tree.attached())
                await shielded(end_leftovers(self.tree, self.host.grace), self.tree)
        finally:
            self._finish()
        return -9 if self.process.returncode is None else self.process.returncode

    def kill(self) -> None:
        import asyncio

        if self.ending is None and self.process.returncode is None:
            self.ending = asyncio.ensure_future(end_all(self.process, self.tree, self.host.grace))

    def _finish(self) -> None:
        host = self.host
        if self not in host.processes:
            return
        host.processes.remove(self)
        self.launch.close()
        host.reverted += (words for words in self.launch.reverted() if words not in host.reverted)
        if not host.failed:
            host.launch, host.failed = self.launch, bool(self.process.returncode)


def _non_blocking(pipe: int) -> int:
    """A second descriptor of a pipe's writing end, for messages of the plan itself.

    They must not wait for room, because this process is the reader. Programs get the first descriptor, because they
    would take a full pipe for a failure.
    """
    try:
        return os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return pipe


def path_of(folder: int, named: str) -> str:
    """A path of an open folder that stays valid whatever its name leads to by now, where the system has such paths."""
    path = f"/proc/self/fd/{folder}"
    return path if Path(path).exists() else named


def _closing(argv: Sequence[str], streams: Streams) -> list[str]:
    """The command behind a fixed script of /bin/sh that closes descriptors, which cannot be handed over closed."""
    closed = [f"{fd}{'<' if fd == 0 else '>'}&-" for fd, stream in enumerate(streams) if stream is None]
    return ["/bin/sh", "-c", f'exec "$0" "$@" {" ".join(closed)}', *argv] if closed else list(argv)
