"""Serving on standard input and output, as clients start servers of their own."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, redirect_stdout
from typing import Any

from toolcrib.mcp.server.face import McpFace, require_face

__all__ = ["serve_stdio"]

MAX_LINE = 64 * 1024 * 1024  # bytes of a message; a longer one ends the connection

LAST_WORDS = 0.2  # seconds in which what was asked just before the end is still answered


async def serve_stdio(face: McpFace, *, stop: asyncio.Event | None = None) -> None:
    """Serve one client on standard input and output, until it closes its end, or `stop` is set.

    Standard output belongs to the protocol: what tools and the programs that they start print there goes to standard
    error, and they find standard input empty.
    """
    from mcp.server.stdio import stdio_server

    require_face(face)

    async def serve() -> None:
        async with _standard_input() as lines, stdio_server(stdin=lines) as (read, write):
            _flush()  # what was printed before; the descriptor leads to standard error by now
            with redirect_stdout(sys.stderr):
                try:
                    await face.server.run(read, write, face.server.create_initialization_options())
                finally:  # what was written past that goes there too, and not to the client at the end
                    _flush()

    serving = asyncio.create_task(serve())
    stopping = asyncio.create_task(asyncio.Event().wait() if stop is None else stop.wait())
    try:
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        if not serving.done():
            serving.cancel()
            await asyncio.wait([serving])
    if not serving.cancelled():
        serving.result()


def _flush() -> None:
    for stream in (sys.stdout, sys.__stdout__):
        if stream is not None:
            stream.flush()


@asynccontextmanager
async def _standard_input() -> AsyncGenerator[Any]:
    """The lines of a pipe on standard input, read in the loop: the SDK's thread could not be stopped while it waits.

    None for anything but a pipe or socket, which the SDK then reads itself.
    """
    kind = os.fstat(0).st_mode if sys.stdin is sys.__stdin__ else 0
    if sys.platform == "win32" or not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        yield None
        return
    ours, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # tools and their programs must not read what is the protocol's
    os.close(nothing)
    reader = asyncio.StreamReader(limit=MAX_LINE)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(ours), "rb", buffering=0)
    )
    try:
        yield _Lines(reader)
    finally:
        transport.close()
        os.set_blocking(ours, True)
        os.dup2(ours, 0)
        os.close(ours)


class _Lines:
    """Lines of text, as the SDK reads them."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def __aiter__(self) -> AsyncIterator[str]:
        while True:
            try:
                line = await self._reader.readline()
            except ValueError:  # longer than MAX_LINE
                return
            if not line:
                await asyncio.sleep(LAST_WORDS)
                return
            yield line.decode("utf-8", "replace")
