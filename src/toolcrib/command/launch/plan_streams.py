"""What the programs of a plan read and write: redirections, here-documents, whole inputs, and messages."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from toolcrib.command.plan import Redirect, Word

if TYPE_CHECKING:
    import asyncio

MAX_PIPED = 1 << 20  # bytes that are read from one pipe
BLOCK = 1 << 12  # bytes that are read at once, to look for the end of a line
MAX_MESSAGE = 512  # bytes, which a pipe takes in one write if it takes any
READ = os.O_RDONLY
WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND
Streams = tuple[int | None, int | None, int | None]
OpenFile = Callable[[str, int], int]  # opens a path with flags; may raise OSError


class PipeReader:
    """Reads a pipe to its end while its writers run, or until too much came through it. It owns the descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    async def __aenter__(self) -> PipeReader:
        import asyncio

        os.set_blocking(self._fd, False)
        stream = asyncio.StreamReader()
        self._transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(self._fd, "rb", 0)
        )
        self._collecting = asyncio.ensure_future(self._collected(stream))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._collecting.cancel()
        self._transport.close()

    async def _collected(self, stream: asyncio.StreamReader) -> bytes | None:
        found = bytearray()
        while block := await stream.read(MAX_PIPED):
            found += block
            if len(found) > MAX_PIPED:
                self._transport.close()  # so that the writers end, as without a reader
                return None
        return bytes(found)

    async def all(self) -> bytes:
        """All that came. Raises ValueError if that is too much: a part of it could mean something else."""
        if (found := await self._collecting) is None:
            raise ValueError(f"more than {MAX_PIPED:,} bytes were printed for it to read as words")
        return found


async def piped_text(fd: int | None, *, nul: bool = False) -> str:
    """The text that a pipe gives until its end. Raises ValueError for no pipe and for over `MAX_PIPED` bytes.

    A NUL raises ValueError, too, unless `nul` allows it.
    """
    if fd is None or not stat.S_ISFIFO(os.fstat(fd).st_mode):
        raise ValueError("its input is no pipe")
    async with PipeReader(os.dup(fd)) as reading:
        data = await reading.all()
    if b"\0" in data and not nul:
        raise ValueError("its input has a NUL in it")
    return data.decode("utf-8", "surrogateescape")


async def lines_of_input(fd: int | None, opened: list[int]) -> int | None:
    """A file that gives what is left of an input, for a loop that reads its lines and for the programs in that loop.

    A pipe is read to its end first. None for what gives nothing. Raises ValueError as `piped_text` does.
    """
    mode = 0 if fd is None else os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    if not stat.S_ISFIFO(mode):
        return None
    lines = _document(await piped_text(fd))
    opened.append(lines)
    return lines


def next_line(fd: int) -> str | None:
    """The next whole line of a file, without its end; None at the end. Raises ValueError for a NUL in it."""
    start = os.lseek(fd, 0, os.SEEK_CUR)
    found = bytearray()
    while block := os.read(fd, BLOCK):
        before, newline, _ = block.partition(b"\n")
        found += before
        if b"\0" in before or len(found) > MAX_PIPED:
            raise ValueError("its input has a NUL in it, or too long a line")
        if newline:
            os.lseek(fd, start + len(found) + 1, os.SEEK_SET)
            return found.decode("utf-8", "surrogateescape")
    return None


async def redirected(
    redirects: Sequence[Redirect], streams: Streams, opened: list[int], open_file: OpenFile
) -> Streams | None:
    """The descriptors after all redirections, in order. What is opened is added to `opened`.

    None if one of them fails; the message is written to where errors go at that point.
    """
    now = list(streams)
    for redirect in redirects:
        try:
            now[redirect.fd] = _target(redirect, now, opened, open_file)
        except OSError as failed:
            await complain(now[2], f"{failed.filename or ''}: {failed.strerror}")
            return None
    return (now[0], now[1], now[2])


def _target(redirect: Redirect, now: list[int | None], opened: list[int], open_file: OpenFile) -> int | None:
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
        fd = open_file(text, {"read": READ, "write": WRITE, "append": APPEND}[redirect.kind])
    opened.append(fd)
    return fd


def _document(text: str) -> int:
    """A here-document as a file without a name, because a pipe holds only a limited number of bytes."""
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(text.encode("utf-8", "surrogateescape"))
        file.seek(0)
        return os.dup(file.fileno())


async def complain(errors: int | None, words: str) -> None:
    """Writes a message when there is room: a pipe that nobody reads may be full, and a write must not block."""
    import asyncio
    import select

    if errors is None:
        return
    line = f"{words}\n".encode("utf-8", "surrogateescape")[:MAX_MESSAGE]
    room = select.poll()
    room.register(errors, select.POLLOUT)
    while not room.poll(0):  # noqa: ASYNC110 - no event tells of room in a pipe that is shared
        await asyncio.sleep(0.01)
    try:
        os.write(errors, line)
    except OSError:
        pass
