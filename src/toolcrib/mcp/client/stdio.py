"""A server as a child process: messages are lines on its standard input and output, as the protocol says.

The SDK has such a transport, too, and it is used on Windows. This one also bounds the length of a line and what is kept
of stderr, takes a stray line for what it is, costs the same per byte however long a line is, and ends what the server
has started itself.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from toolcrib.mcp.client.errors import LOST
from toolcrib.mcp.client.reading import read_message
from toolcrib.mcp.concealment import Conceal, unchanged
from toolcrib.visible import on_one_line

__all__ = ["StdioLink"]

CHUNK = 65_536  # bytes of one read
MAX_MESSAGE = 64 * 1024 * 1024  # bytes of one line
KEPT_STDERR = 16_384  # bytes of stderr, of its beginning and its end
SHOWN_STDERR = 2_000  # bytes of its end in an error
DRAIN = 0.25  # seconds for output that is still in the pipe when the process has ended
LOOK = 0.5  # seconds between two looks whether a process runs, where the system does not tell
POLL = 0.01  # seconds between two looks whether it has ended
EXIT = 1.0  # seconds that a server has to end by itself when its input is closed
TERMINATE = 1.0  # seconds between SIGTERM and SIGKILL
SHOWN_LINE = 120  # characters of a stray line in a warning
ID = re.compile(rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{1,100}")')  # in the beginning or at the end of a message
AROUND = 512  # bytes in which the id of a message is looked for that is too long to be read
# What a server gets of our environment, apart from what its configuration says.
PASSED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "TZ")


class StdioLink:
    """How a local server is reached: its command line, environment and folder.

    `warn` is told, once for each process, that there was something else than messages on its standard output.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | None = None,
        warn: Callable[[str], None],
        conceal: Conceal = unchanged,
    ) -> None:
        from toolcrib.command.launch.output import BoundedOutput

        self.argv = list(argv)
        self.env = dict(env)
        self.cwd = cwd
        self.pid = 0
        self._warn = warn
        self.conceal = conceal
        self._stray = 0
        self._stderr = BoundedOutput(KEPT_STDERR)
        self._status: int | None = None

    def explanation(self) -> str:
        """How the process ended, and the end of its stderr; "" if there is nothing to say."""
        said = self.conceal(self._stderr.ending(SHOWN_STDERR).strip())
        if self._status is None:
            ended = ""
        elif self._status < 0:
            ended = f"the process was ended by signal {-self._status}"
        else:
            ended = f"the process ended with exit code {self._status}"
        return "; ".join(filter(None, (ended, f"its stderr ends with:\n{said}" if said else "")))

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[tuple[Any, Any]]:
        """Start the process, and give the streams of messages from it and to it. It has ended when this is left.

        Raises OSError if the process cannot be started.
        """
        if sys.platform == "win32":
            async with self._streams_of_the_sdk() as streams:
                yield streams
            return
        import anyio

        async with self._process() as process:
            incoming, read = anyio.create_memory_object_stream[Any](0)
            write, outgoing = anyio.create_memory_object_stream[Any](0)
            reader = asyncio.ensure_future(self._read(process, incoming))
            writer = asyncio.ensure_future(_write(process, outgoing, read))
            watcher = asyncio.ensure_future(_watch(process, reader))
            try:
                yield read, write
            finally:
                for stream in (read, write, incoming, outgoing):
                    stream.close()
                for task in (reader, writer, watcher):
                    task.cancel()
                await asyncio.wait([reader, writer, watcher])

    @asynccontextmanager
    async def _process(self) -> AsyncGenerator[Any]:
        """The running process. Everything that it started has ended when this is left."""
        import secrets

        from toolcrib.command.launch.output import OutputPipe
        from toolcrib.command.launch.process_tree import MARK, ProcessTree, shielded

        env = {name: os.environ[name] for name in PASSED if name in os.environ} | self.env
        argv = [_program(self.argv[0], env, self.cwd), *self.argv[1:]]
        mark = secrets.token_hex(16)
        read_end, write_end = os.pipe()
        stderr: OutputPipe | None = None
        try:
            stderr = OutputPipe(read_end, self._stderr, None)
            inode = os.fstat(read_end).st_ino
            process, cancelled = await _started(argv, {**env, MARK: mark}, self.cwd, write_end)
        except BaseException:
            if stderr is None:
                os.close(read_end)
            else:
                stderr.close()
            raise
        finally:
            os.close(write_end)
        self.pid = process.pid
        tree = ProcessTree(process.pid, f"{MARK}={mark}".encode(), inode)
        try:
            if cancelled is not None:
                raise cancelled
            yield process
        finally:
            try:
                await shielded(_end(process, tree), tree)
            finally:
                self._status = process.returncode
                stderr.close()
                process._transport.close()  # a process that cannot be killed would keep the pipes open

    async def _read(self, process: Any, incoming: Any) -> None:
        """Hand on what the server writes, a message a line."""
        import anyio

        pieces: list[bytes] = []
        size = 0
        with incoming, suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
            while chunk := await process.stdout.read(CHUNK):
                *lines, rest = chunk.split(b"\n")
                for line in lines:
                    if size > MAX_MESSAGE:
                        message = self._too_long(pieces[0], line)
                    else:
                        message = self._message(b"".join((*pieces, line)))
                    pieces, size = [], 0
                    if message is not None:
                        await incoming.send(message)
                if rest:
                    size += len(rest)
                    pieces.append(rest)
                if size > MAX_MESSAGE:
                    del pieces[1:]  # its beginning is enough to know which request it answers

    def _message(self, line: bytes) -> Any:
        """The message on a line; None if the line holds no message."""
        from mcp.shared.message import SessionMessage

        line = line.strip()
        if not line:
            return None
        read = read_message(line)
        if read is not None:
            return SessionMessage(read[0])
        self._stray += 1
        if self._stray == 1:
            beginning = line[: SHOWN_LINE * 40].decode("utf-8", "replace")
            shown = on_one_line(self.conceal(beginning), SHOWN_LINE)
            self._warn(f"it writes to its standard output what is no message, first {shown!r}; ignored")
        return _unreadable(line, "the server's answer is no message of the protocol")

    def _too_long(self, beginning: bytes, end: bytes) -> Any:
        """The error in place of a message that is too long to be read."""
        limit = f"{MAX_MESSAGE // (1024 * 1024)} MiB"
        self._warn(f"it sent a message of more than {limit}, which was not read")
        return _unreadable(beginning[:AROUND] + end[-AROUND:], f"the server's answer is longer than {limit}")

    @asynccontextmanager
    async def _streams_of_the_sdk(self) -> AsyncGenerator[tuple[Any, Any]]:
        import tempfile

        from mcp.client.stdio import StdioServerParameters, stdio_client

        parameters = StdioServerParameters(
            command=self.argv[0],
            args=self.argv[1:],
            env=self.env,
            cwd=self.cwd,
            encoding_error_handler="replace",
        )
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
            errlog: Any = errors
            try:
                async with stdio_client(parameters, errlog=errlog) as streams:
                    yield streams
            finally:
                errors.seek(max(0, errors.seek(0, os.SEEK_END) - KEPT_STDERR))
                self._stderr.feed(errors.read().encode())


async def _write(process: Any, outgoing: Any, read: Any) -> None:
    """Write messages to the server. When it takes no more, the other direction is closed: the connection is over."""
    try:
        async for message in outgoing:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(text.encode() + b"\n")
            await process.stdin.drain()
    except (OSError, RuntimeError):
        await read.aclose()


async def _watch(process: Any, reader: asyncio.Task[None]) -> None:
    """End the reading when the process has ended, also where a child of it keeps its output open."""
    await _exited(process)
    await asyncio.wait([reader], timeout=DRAIN)
    reader.cancel()


async def _exited(process: Any) -> None:
    """Wait until the process itself has ended. `process.wait()` would wait for the end of its output, too."""
    pidfd_open = getattr(os, "pidfd_open", None)
    try:
        if pidfd_open is None:
            raise OSError("this system has no such descriptors")
        fd: int = pidfd_open(process.pid)
    except OSError:  # also where it has ended already
        while process.returncode is None:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(LOOK)
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(fd, ended.set)
        await ended.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)


async def _started(
    argv: list[str], env: Mapping[str, str], cwd: str | None, stderr: int
) -> tuple[Any, BaseException | None]:
    """Start a process in a session of its own; give it, and the cancellation that came meanwhile."""
    from toolcrib.command.launch.process_tree import start_uncancelled

    return await start_uncancelled(
        asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
    )


async def _end(process: Any, tree: Any) -> None:
    """Close the server's input, wait a moment for it to end, and end what is left of it and of its children."""
    from toolcrib.command.launch.process_tree import end_all

    with suppress(OSError, RuntimeError):
        process.stdin.close()
    for _ in range(
        round(EXIT / POLL)
    ):  # `process.wait()` would wait for whoever has inherited its output, too
        if process.returncode is not None:
            break
        await asyncio.sleep(POLL)
    await end_all(process, tree, TERMINATE)


def _program(name: str, env: Mapping[str, str], cwd: str | None) -> str:
    """The path of a program. It is looked for here, because a child's error would not tell what is missing."""
    import shutil

    if os.sep in name:
        return str(Path(cwd or "").absolute() / name)
    found = shutil.which(name, path=env.get("PATH", os.defpath))
    if found is None:
        raise FileNotFoundError(2, "the program was not found on PATH", name)
    return found


def _unreadable(text: bytes, why: str) -> Any:
    """The error that answers a request in place of an answer that cannot be read; None if it is no answer."""
    from mcp.shared.message import SessionMessage
    from mcp_types import ErrorData, JSONRPCError

    beginning, end = text[:AROUND], text[-AROUND:]
    if not text.startswith(b"{") or b'"jsonrpc"' not in beginning + end or b'"method"' in beginning:
        return None
    found = ID.search(beginning) or ID.search(end)
    if found is None:
        return None
    given = found[1].decode("utf-8", "replace")
    request = given[1:-1] if given.startswith('"') else int(given)
    error = ErrorData(code=LOST, message=why)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=error))
