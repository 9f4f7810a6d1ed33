"""The plain host of a plan: programs of this machine, files and folders below one root."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from toolcrib.command.launch.plan_host import PlanProcess
from toolcrib.command.launch.plan_streams import Streams

if TYPE_CHECKING:
    import asyncio


class Local:
    """Programs of this machine, each in a session of its own; folders and files below `root` only.

    No link is followed by a redirection, a pattern or a cd. What a program itself opens is not confined:
    that is the sandbox's work.
    """

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        folder: str,
        env: Mapping[str, str],
        streams: Streams,
        inherited: Sequence[int],
    ) -> PlanProcess:
        import asyncio
        import shutil

        # Found here and not by the child: its error would not say whether the program or the folder is missing.
        program = argv[0] if "/" in argv[0] else shutil.which(argv[0], path=env.get("PATH", os.defpath))
        if program is None:
            raise FileNotFoundError(2, "No such file or directory", argv[0])
        closed = [fd for fd, stream in enumerate(streams) if stream is None]
        if closed:
            argv, program = _closing(argv, program, closed)
        process = await asyncio.create_subprocess_exec(
            *argv,
            executable=program,
            cwd=folder,
            env=dict(env),
            start_new_session=True,
            pass_fds=inherited,
            stdin=asyncio.subprocess.DEVNULL if streams[0] is None else streams[0],
            stdout=asyncio.subprocess.DEVNULL if streams[1] is None else streams[1],
            stderr=asyncio.subprocess.DEVNULL if streams[2] is None else streams[2],
        )
        return _LocalChild(process)

    def open(self, path: str, *, folder: str, flags: int) -> int:
        parent, name = os.path.split(self._below(path, folder))
        at = self._walk(parent)
        if not name:
            return at  # the root itself: a shell opens a folder too
        try:
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o666, dir_fd=at)
        finally:
            os.close(at)

    def enter(self, path: str, *, folder: str) -> str:
        place = self._below(path, folder)
        os.close(self._walk(place))
        return os.path.join(self.root, place) if place else self.root  # noqa: PTH118 - text, not a lookup

    def names(self, path: str, *, folder: str) -> list[str]:
        at = self._walk(self._below(path, folder))
        try:
            return os.listdir(at)  # noqa: PTH208 - by descriptor
        finally:
            os.close(at)

    def _below(self, path: str, folder: str) -> str:
        """The path from the root, its `..` resolved by text as `cd` does."""
        whole = os.path.normpath(os.path.join(folder, path))  # noqa: PTH118
        if whole != self.root and not whole.startswith(self.root.rstrip("/") + "/"):
            raise PermissionError(1, "outside the workspace", path)
        return whole[len(self.root) :].strip("/")

    def _walk(self, path: str) -> int:
        at = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for name in filter(None, path.split("/")):
            try:
                below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            finally:
                os.close(at)
            at = below
        return at


def _closing(argv: Sequence[str], program: str, closed: list[int]) -> tuple[list[str], str]:
    """asyncio cannot start a child with a closed descriptor: a fixed script of /bin/sh closes it first."""
    closing = " ".join(f"{fd}{'<' if fd == 0 else '>'}&-" for fd in closed)
    return ["/bin/sh", "-c", f'exec "$0" "$@" {closing}', program, *argv[1:]], "/bin/sh"


class _LocalChild:
    __slots__ = ("process",)

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def wait(self) -> int:
        return await self.process.wait()

    def kill(self) -> None:
        import signal

        if self.process.returncode is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass


class Recorder(Local):
    """Starts no program. `started` has the words of each that would have been started.

    `answered` may play a program: it prints what the program would, and returns its status. Others are noted, with the
    status 0.
    """

    def __init__(self, root: str, answered: Callable[[Sequence[str], Streams], int | None]) -> None:
        super().__init__(root)
        self.started: list[list[str]] = []
        self._answered = answered

    async def spawn(
        self,
        argv: Sequence[str],
        *,
        folder: str,
        env: Mapping[str, str],
        streams: Streams,
        inherited: Sequence[int],
    ) -> PlanProcess:
        status = self._answered(argv, streams)
        if status is None:
            self.started.append(list(argv))
        return _Ended(status or 0)


class _Ended:
    def __init__(self, status: int) -> None:
        self.status = status

    async def wait(self) -> int:
        return self.status

    def kill(self) -> None:
        pass
