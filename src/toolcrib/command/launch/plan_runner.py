"""Running a plan: processes, pipes and redirections made by us, with no shell that could read it otherwise.

What starts processes and opens files is handed in as a `Host`, so that a sandbox can stand under it; `Local`
is the plain one. Statuses are those of bash: a pipeline's is that of its last stage, a program that is not
found gives 127, one that cannot be run 126, one that a signal ended 128 and the signal's number.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from toolcrib.command.launch.expand import expand
from toolcrib.command.launch.expanded_names import unwelcome
from toolcrib.command.launch.git_options import guarded
from toolcrib.shell.plan import Command, Group, Pipeline, Plan, Redirect, Stage, Word

NOT_FOUND = 127
NOT_RUN = 126
SHORT = 512  # bytes that a pipe takes at once if it takes any
LARGEST_SUBSTITUTION = 1 << 20  # bytes that `$( … )` may become
READ = os.O_RDONLY
WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND
Streams = tuple[int | None, int | None, int | None]


class _Refused(Exception):
    """Why a command is not run after all: it would be handed a name that nobody would have let through."""


class Child(Protocol):
    """A process that was started."""

    async def wait(self) -> int:
        """Its status; negative for a signal."""
        ...

    def kill(self) -> None:
        """End it and all that it started; nothing happens where it has ended."""
        ...


class Host(Protocol):
    """Where a plan runs. Folders are given as the host named them; each of these may raise OSError."""

    root: str

    async def spawn(
        self, argv: Sequence[str], *, folder: str, env: Mapping[str, str], streams: Streams
    ) -> Child:
        """Start a program with these file descriptors as 0, 1 and 2; None is a closed one."""
        ...

    def open(self, path: str, *, folder: str, flags: int) -> int:
        """Open a file that a redirection names."""
        ...

    def enter(self, path: str, *, folder: str) -> str:
        """The folder that `cd path` leads to."""
        ...

    def names(self, path: str, *, folder: str) -> list[str]:
        """The names in a folder, for patterns."""
        ...


@dataclass(slots=True)
class _Shell:
    """What one run knows; a group and a pipeline's stages get their own copy."""

    host: Host
    folder: str
    env: Mapping[str, str]
    harden_git: bool
    children: list[Child]


async def run_plan(
    plan: Plan,
    host: Host,
    *,
    env: Mapping[str, str],
    stdin: int,
    stdout: int,
    stderr: int,
    timeout: float | None = None,
    harden_git: bool = True,
) -> int:
    """Run a plan to its end and give its status, as `bash -c` would.

    `env` is all that its programs get, besides what the plan sets. `harden_git` switches off whatever of a
    repository's configuration would run programs. Raises TimeoutError after `timeout` seconds, when all that
    was started has been ended; the same is done when the calling task is cancelled.
    """
    import asyncio

    shell = _Shell(host, host.root, env, harden_git, [])
    try:
        async with asyncio.timeout(timeout):
            return await _plan(plan, shell, (stdin, stdout, stderr))
    finally:
        for child in shell.children:
            child.kill()


async def _plan(plan: Plan, shell: _Shell, streams: Streams) -> int:
    status = 0
    for step in plan.steps:
        if (step.join == "&&" and status) or (step.join == "||" and not status):
            continue
        status = await _pipeline(step.pipeline, shell, streams)
    return status


async def _pipeline(pipeline: Pipeline, shell: _Shell, streams: Streams) -> int:
    if len(pipeline.stages) == 1:
        status = await _stage(pipeline.stages[0], shell, streams)
    else:
        status = await _connected(pipeline.stages, shell, streams)
    return int(not status) if pipeline.negated else status


async def _connected(stages: Sequence[Stage], shell: _Shell, streams: Streams) -> int:
    """Stages side by side, each in a state of its own; every end of a pipe is closed by the stage it is for."""
    import asyncio

    source, sink, errors = streams
    ends: list[tuple[int | None, int | None]] = []
    owned: list[int] = []
    for index in range(len(stages)):
        reading = source
        if index + 1 < len(stages):
            source, writing = os.pipe()
            owned += [source, writing]
            ends.append((reading, writing))
        else:
            ends.append((reading, sink))
    open_ends = set(owned)

    async def one(stage: Stage, reading: int | None, writing: int | None) -> int:
        try:
            own = _Shell(shell.host, shell.folder, shell.env, shell.harden_git, shell.children)
            return await _stage(stage, own, (reading, writing, errors))
        finally:
            for end in (reading, writing):
                if end in open_ends:
                    open_ends.discard(end)
                    os.close(end)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(one(stage, reading, writing))
                for stage, (reading, writing) in zip(stages, ends, strict=True)
            ]
    finally:
        for end in open_ends:  # of tasks that were cancelled before they began
            os.close(end)
    return tasks[-1].result()


async def _stage(stage: Stage, shell: _Shell, streams: Streams) -> int:
    opened: list[int] = []
    try:
        try:
            argv = await _argv(stage, shell, streams) if isinstance(stage, Command) else []
        except _Refused as refused:
            await _complain(streams[2], str(refused))
            return 1
        redirected = await _redirected(stage.redirects, shell, streams, opened)
        if redirected is None:
            return 1
        streams = redirected
        if isinstance(stage, Group):
            own = _Shell(shell.host, shell.folder, shell.env, shell.harden_git, shell.children)
            return await _plan(stage.plan, own, streams)
        return await _command(stage, argv, shell, streams, opened)
    finally:
        for fd in opened:
            os.close(fd)


async def _argv(command: Command, shell: _Shell, streams: Streams) -> list[str]:
    argv: list[str] = []
    found: list[str] = []  # names that nobody saw before
    for word in command.words:
        texts = [(await _printed(part.plan, shell, streams)) for part in word.substitutions]
        fields = expand(word, texts, lambda path: shell.host.names(path, folder=shell.folder))
        if (word.is_glob or word.lists_names) and not word.prefix.startswith("-"):
            found += fields
        argv += fields
    if found and (wrong := unwelcome(argv, found, shell.host.root)) is not None:
        raise _Refused(wrong)
    return argv


async def _printed(plan: Plan, shell: _Shell, streams: Streams) -> str:
    """What a plan prints, without the newlines at its end."""
    import asyncio

    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    own = _Shell(shell.host, shell.folder, shell.env, shell.harden_git, shell.children)
    stream = asyncio.StreamReader()
    try:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(reading, "rb", 0)
        )
    except BaseException:  # cancelled meanwhile
        os.close(writing)
        raise
    collecting = asyncio.ensure_future(stream.read(-1))
    try:
        try:
            await _plan(plan, own, (streams[0], writing, streams[2]))
        finally:
            os.close(writing)
        data = (await collecting)[:LARGEST_SUBSTITUTION]
    finally:
        collecting.cancel()
        transport.close()
    return data.replace(b"\0", b"").decode("utf-8", "surrogateescape").rstrip("\n")


async def _command(
    command: Command, argv: list[str], shell: _Shell, streams: Streams, opened: list[int]
) -> int:
    name = argv[0]
    if name == "cd":
        return await _cd(argv[1:], shell, streams[2])
    if name == ":":
        return 0
    if name == "command":  # proved to be `command -v NAME`
        argv = ["which", *argv[2:]]
    env = {**shell.env, **dict(command.env)}
    if shell.harden_git:
        argv = guarded(argv)
    try:
        child = await shell.host.spawn(argv, folder=shell.folder, env=env, streams=streams)
    except FileNotFoundError:
        await _complain(streams[2], f"{name}: command not found")
        return NOT_FOUND
    except OSError as failed:
        await _complain(streams[2], f"{name}: {failed.strerror}")
        return NOT_RUN
    shell.children.append(child)
    while opened:  # the child has them now; a reader must see their end when it ends
        os.close(opened.pop())
    try:
        status = await child.wait()
    except BaseException:
        child.kill()
        await child.wait()
        raise
    shell.children.remove(child)
    return 128 - status if status < 0 else status


async def _cd(args: list[str], shell: _Shell, errors: int | None) -> int:
    path = next((arg for arg in args if arg != "--"), "")
    try:
        shell.folder = shell.host.enter(path, folder=shell.folder)
    except OSError as failed:
        await _complain(errors, f"cd: {path}: {failed.strerror}")
        return 1
    return 0


async def _redirected(
    redirects: Sequence[Redirect], shell: _Shell, streams: Streams, opened: list[int]
) -> Streams | None:
    """The descriptors after all redirections, in their order, or None where one failed, which has been said
    where errors went by then; what is opened is added to `opened`."""
    now = list(streams)
    for redirect in redirects:
        try:
            now[redirect.fd] = _target(redirect, shell, now, opened)
        except OSError as failed:
            await _complain(now[2], f"{failed.filename or ''}: {failed.strerror}")
            return None
    return (now[0], now[1], now[2])


def _target(redirect: Redirect, shell: _Shell, now: list[int | None], opened: list[int]) -> int | None:
    if redirect.kind == "dup":
        if redirect.target == "-":
            return None
        copied = now[int(str(redirect.target))]
        if copied is None:
            raise OSError(9, "Bad file descriptor", str(redirect.target))
        return copied
    text = redirect.target.literal or "" if isinstance(redirect.target, Word) else redirect.target
    if redirect.kind == "null" or (redirect.kind == "text" and not text):
        fd = os.open(os.devnull, os.O_RDWR)
    elif redirect.kind == "text":
        fd = _document(text)
    else:
        flags = {"read": READ, "write": WRITE, "append": APPEND}[redirect.kind]
        fd = shell.host.open(text, folder=shell.folder, flags=flags)
    opened.append(fd)
    return fd


def _document(text: str) -> int:
    """A here-document as a file without a name: a pipe would hold only so much."""
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(text.encode("utf-8", "surrogateescape"))
        file.seek(0)
        return os.dup(file.fileno())


async def _complain(errors: int | None, words: str) -> None:
    """Say it where there is room: a pipe that nobody reads may be full, and we must not wait in a write."""
    import asyncio
    import select

    if errors is None:
        return
    line = f"{words}\n".encode("utf-8", "surrogateescape")[:SHORT]
    room = select.poll()
    room.register(errors, select.POLLOUT)
    while not room.poll(0):  # noqa: ASYNC110 - no event tells of room in a pipe that is shared
        await asyncio.sleep(0.01)
    try:
        os.write(errors, line)
    except OSError:
        pass
