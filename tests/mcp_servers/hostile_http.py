"""MCP servers over HTTP that misbehave, on bare sockets of this machine: each behaviour has a path of its own.

All answer the handshake and the list of tools as a server of revision 2025-11-25 should, and deviate in what the name of
the behaviour says, most of them when the tool `bad` is called.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any

from tests.local_server import listening
from tests.mcp_servers.hostile import BAD, FLOOD, FOREVER, OK, Message, failure, note, reply, text

Writer = asyncio.StreamWriter
Answer = Callable[["HttpServer", Message, Writer], Awaitable[None]]

JSON = "application/json"
EVENTS = "text/event-stream"
ANSWERS: dict[str, Answer] = {}
"""How each behaviour answers a call of `bad`."""


class HttpServer:
    """Listens on a port of its own. `seen` has the method, path and headers of every request."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.port = 0
        self.other = 0  # the port of another server
        self.elsewhere: list[tuple[str, str, dict[str, str]]] = []  # what that one has seen
        self._open: set[asyncio.Task[Any]] = set()

    def url(self, behaviour: str) -> str:
        return f"http://127.0.0.1:{self.port}/{behaviour}"

    async def serve(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        """One connection, request after request."""
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._one(reader, writer):
                pass
        self._open.discard(task)
        writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: Writer) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.seen.append((method, path, headers))
        if method != "POST":
            await (asyncio.sleep(FOREVER) if path == "/slow_delete" else send(writer, b"", status="405 No"))
            return True
        message = json.loads(body)
        name, called = path[1:], message.get("method")
        session = "" if name == "plain" else "Mcp-Session-Id: s\r\n"
        if "id" not in message:
            await send(writer, b"", status="202 Accepted")
        elif called == "initialize":
            if name == "asks_for_login":
                await send(writer, b"", status="401 Unauthorized")
                return True
            info = {"name": "hostile", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            await send(writer, reply(message, result), more=session)
        elif called == "tools/list":
            await send(writer, reply(message, {"tools": [OK, BAD]}))
        elif called == "tools/call" and message["params"]["name"] == "bad":
            await ANSWERS[name](self, message, writer)
            return False
        elif called == "tools/call":
            await send(writer, reply(message, text("all is well")))
        elif called == "ping":
            await send(writer, reply(message, {}))
        else:
            await send(writer, failure(message, -32601, "Method not found"))
        return True

    async def end(self) -> None:
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open, timeout=5)


async def send(
    writer: Writer, content: Any, *, kind: str = JSON, status: str = "200 OK", more: str = ""
) -> None:
    """A whole answer."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    writer.write(head.encode("latin-1") + body)
    await writer.drain()


async def begin(writer: Writer, kind: str) -> None:
    """The beginning of an answer that goes on until the connection closes."""
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n".encode())
    await writer.drain()


@cache
def bomb() -> bytes:
    """100 kB that are 100 MB when they are decompressed."""
    return gzip.compress(b"data: " + b" " * 100_000_000, 1)


@asynccontextmanager
async def running() -> AsyncIterator[HttpServer]:
    """A server while it is needed; a second one, at its port `other`, only notes what reaches it."""
    bomb()
    first, second = HttpServer(), HttpServer()
    async with listening(first.serve) as first.port, listening(second.serve) as second.port:
        first.other = second.port
        second.seen = first.elsewhere
        try:
            yield first
        finally:
            await first.end()
            await second.end()


def behaviour(answer: Answer) -> Answer:
    ANSWERS[answer.__name__] = answer
    return answer


@behaviour
async def plain(server: HttpServer, message: Message, writer: Writer) -> None:
    await send(writer, reply(message, text("done")))


@behaviour
async def no_answer(server: HttpServer, message: Message, writer: Writer) -> None:
    await asyncio.sleep(FOREVER)


@behaviour
async def one_byte_at_a_time(server: HttpServer, message: Message, writer: Writer) -> None:
    await begin(writer, JSON)
    for _ in range(100_000):
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.05)


@behaviour
async def endless_body(server: HttpServer, message: Message, writer: Writer) -> None:
    await begin(writer, JSON)
    for _ in range(20_000):
        writer.write(b"x" * 65_536)
        await writer.drain()


@behaviour
async def endless_event(server: HttpServer, message: Message, writer: Writer) -> None:
    await begin(writer, EVENTS)
    writer.write(b"data: ")
    for _ in range(20_000):
        writer.write(b"x" * 65_536)
        await writer.drain()


@behaviour
async def endless_comments(server: HttpServer, message: Message, writer: Writer) -> None:
    await begin(writer, EVENTS)
    while True:
        writer.write(b": still here\n\n" * 20)
        await writer.drain()
        await asyncio.sleep(0.01)


@behaviour
async def flood_of_events(server: HttpServer, message: Message, writer: Writer) -> None:
    await begin(writer, EVENTS)
    token = message["params"].get("_meta", {}).get("progressToken")
    for number in range(FLOOD):
        for event in (
            note("notifications/progress", progressToken=token, progress=number, message="x"),
            note("notifications/message", level=7, data="x"),
        ):
            writer.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        writer.write(b"event: nobody\ndata: {\n\n")
        await writer.drain()
    writer.write(b"data: " + json.dumps(reply(message, text("done"))).encode() + b"\n\n")
    await writer.drain()


@behaviour
async def events_without_an_answer(server: HttpServer, message: Message, writer: Writer) -> None:
    await begin(writer, EVENTS)
    writer.write(b"data: " + json.dumps(note("notifications/nobody")).encode() + b"\n\n")


@behaviour
async def broken_json(server: HttpServer, message: Message, writer: Writer) -> None:
    await send(writer, b'{"jsonrpc": "2.0", "id": ')


@behaviour
async def half_a_character(server: HttpServer, message: Message, writer: Writer) -> None:
    await send(writer, json.dumps(reply(message, text("a@b"))).replace("@", "\\ud83d").encode())


@behaviour
async def another_id(server: HttpServer, message: Message, writer: Writer) -> None:
    await send(writer, reply({"id": 10**6}, text("done")))


@behaviour
async def nothing(server: HttpServer, message: Message, writer: Writer) -> None:
    await send(writer, b"")


@behaviour
async def accepted(server: HttpServer, message: Message, writer: Writer) -> None:
    await send(writer, b"", status="202 Accepted")


@behaviour
async def a_page(server: HttpServer, message: Message, writer: Writer) -> None:
    await send(writer, b"<html>Please log in</html>", kind="text/html")


@behaviour
async def cut_off(server: HttpServer, message: Message, writer: Writer) -> None:
    body = json.dumps(reply(message, text("done"))).encode()
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\nContent-Length: {len(body)}\r\n\r\n".encode())
    writer.write(body[:20])


@behaviour
async def no_http(server: HttpServer, message: Message, writer: Writer) -> None:
    writer.write(b"\x00\xff\r\n\r\n")


@behaviour
async def huge_headers(server: HttpServer, message: Message, writer: Writer) -> None:
    await send(writer, reply(message, text("done")), more="X-A: " + "x" * 5_000_000 + "\r\n")


@behaviour
async def refuses(server: HttpServer, message: Message, writer: Writer) -> None:
    await send(writer, b"\x1b[2Jno " * 100_000, kind="text/plain", status="500 \x1b[2JOops")


@behaviour
async def sends_elsewhere(server: HttpServer, message: Message, writer: Writer) -> None:
    there = f"Location: http://127.0.0.1:{server.other}/plain\r\n"
    await send(writer, b"", status="307 Temporary Redirect", more=there)


@behaviour
async def compressed_bomb(server: HttpServer, message: Message, writer: Writer) -> None:
    body = bomb()
    await send(writer, body, more="Content-Encoding: gzip\r\n")


@behaviour
async def compressed_events(server: HttpServer, message: Message, writer: Writer) -> None:
    body = bomb()
    await send(writer, body, kind=EVENTS, more="Content-Encoding: gzip\r\n")


@behaviour
async def slow_delete(server: HttpServer, message: Message, writer: Writer) -> None:
    await send(writer, reply(message, text("done")))
