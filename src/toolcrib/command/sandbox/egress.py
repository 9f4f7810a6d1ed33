"""A proxy through which commands reach a list of hosts and nothing else.

The command's network namespace has no way out. The launcher opens one listener in it and sends that over an inherited
socket (SCM_RIGHTS). The proxy serves it outside: `CONNECT` for TLS, absolute URLs for plain HTTP. Names are resolved by
the network guard or a given resolver, and the proxy connects to the address that was checked.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING

from toolcrib.command.sandbox.process.launcher import PORT
from toolcrib.errors import as_tuple
from toolcrib.event_loops import loop_on_thread
from toolcrib.net.urls import NetworkRefused

if TYPE_CHECKING:
    import threading

    from toolcrib.net import NetGuard

__all__ = ["Allowlist", "Egress", "Resolver", "allowlist_guard", "guarded_resolver", "target_of"]

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Gives the numeric addresses that a host may be reached at, already checked; raises OSError to refuse it."""

MAX_HEAD = 16_384
HEAD_TIME = 10.0  # seconds for a request to say where it wants to go
CONNECT_TIME = 20.0
IDLE = 300.0
MAX_CONNECTIONS = 128
MAX_REFUSED = 100  # hosts that are noted; a command may ask for any number
CHUNK = 65_536
MAX_NAME = 255  # characters of one
DEFAULT_PORTS = (80, 443)
HOST = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,62})\.)*[a-z0-9_](?:[a-z0-9_-]{0,62})|\[[0-9a-f:.]+\]")
REQUEST = re.compile(rb"([A-Z]{1,16}) (\S{1,8000}) (HTTP/1\.[01])\r\n")
# A line that a server may read otherwise than this proxy (a bare line feed, a folded line) could hide a second `Host`.
HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[^\r\n\0]*")
CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})(?:;[^\r\n]*)?\r\n")
PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy")
LOOPBACK = ("127.0.0.1", "localhost")
HOP_BY_HOP = (b"proxy-authorization:", b"proxy-connection:", b"connection:", b"keep-alive:")


class Allowlist:
    """Hosts and ports; "example.org" is its ports 80 and 443, "*.example.org" any name below it.

    >>> allowed = Allowlist(["example.org", "*.pypi.org:443"])
    >>> allowed.allows("Example.org.", 80), allowed.allows("files.pypi.org", 443), allowed.allows("pypi.org", 80)
    (True, True, False)
    """

    def __init__(self, hosts: Sequence[str]) -> None:
        self._exact: set[tuple[str, int]] = set()
        self._below: set[tuple[str, int]] = set()
        for entry in as_tuple("hosts", hosts):
            name, ports = _entry(entry)
            where = self._below if name.startswith("*.") else self._exact
            where.update((name.removeprefix("*"), port) for port in ports)

    def allows(self, host: str, port: int) -> bool:
        name = host.lower().rstrip(".")
        if (name, port) in self._exact:
            return True
        dots = [at for at, char in enumerate(name) if char == "."]
        return any((name[at:], port) in self._below for at in dots)

    def names(self, host: str) -> bool:
        """Whether a host is on the list, with any port."""
        return any(name == host for name, _ in self._exact)


def _entry(entry: str) -> tuple[str, tuple[int, ...]]:
    name, colon, port = (
        entry.lower().rpartition(":") if re.search(r":\d+\Z", entry) else (entry.lower(), "", "")
    )
    name = name.rstrip(".")
    if not HOST.fullmatch(name.removeprefix("*.")) or (colon and not 0 < int(port) < 65_536):
        raise ValueError(f"hosts: expected a name such as example.org or example.org:443, got {entry}")
    return name, ((int(port),) if colon else DEFAULT_PORTS)


def guarded_resolver(
    hosts: Sequence[str],
    *,
    allow_private: Sequence[str] = (),
    resolver: Callable[[str, int], Sequence[str] | Awaitable[Sequence[str]]] | None = None,
) -> Resolver:
    """The resolver of `allowlist_guard`, with the same arguments."""
    return allowlist_guard(hosts, allow_private=allow_private, resolver=resolver).resolve


def allowlist_guard(
    hosts: Sequence[str],
    *,
    allow_private: Sequence[str] = (),
    resolver: Callable[[str, int], Sequence[str] | Awaitable[Sequence[str]]] | None = None,
) -> NetGuard:
    """The network guard for a list of hosts. It refuses a name that leads to a private address.

    An address in `hosts` itself (or "localhost") is allowed, except metadata and link-local ones. `allow_private` names
    hosts that may lead into one's own network. `resolver` gives addresses.
    """
    from toolcrib.net import NetGuard, parse_address, system_resolver

    names = [_entry(host)[0].strip("[]") for host in as_tuple("hosts", hosts)]
    meant = [name for name in names if name == "localhost" or _is_address(name, parse_address)]
    return NetGuard(
        allow_hosts=list(hosts),
        allow_private=[*meant, *as_tuple("allow_private", allow_private)],
        resolver=resolver or system_resolver,
    )


def _is_address(name: str, parse: Callable[[str], object]) -> bool:
    try:
        return parse(name) is not None
    except ValueError:
        return False


class Egress:
    """The proxy of one launch. It runs in a thread with a loop of its own, from `begin` until `close`.

    It adds hosts that are not on the list to `refused`, and to `refused_addresses` why the guard refused a listed one.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        resolve: Resolver,
        *,
        refused: list[str],
        refused_addresses: list[str] | None = None,
    ) -> None:
        self.allowed = Allowlist(hosts)
        self.resolve = resolve
        self.refused = refused
        self.refused_addresses = [] if refused_addresses is None else refused_addresses
        self._serving: tuple[asyncio.AbstractEventLoop, threading.Thread] | None = None
        self._stop = asyncio.Event()
        self._open = 0

    def begin(self) -> tuple[socket.socket, dict[str, str]]:
        """Starts; returns the socket for the launcher and the variables that lead programs to the proxy.

        Raises OSError where the system has no descriptor or no thread left.
        """
        ours, theirs = socket.socketpair()
        try:
            self._serving = loop_on_thread(partial(self._run, ours), "toolcrib-egress")
        except (OSError, RuntimeError) as problem:
            ours.close()
            theirs.close()
            if isinstance(problem, RuntimeError):
                raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from problem
            raise
        address = f"http://127.0.0.1:{PORT}"
        # Programs reach servers of the command itself without the proxy, unless such a name is on the list.
        without_proxy = ",".join(name for name in LOOPBACK if not self.allowed.names(name))
        return theirs, {
            **dict.fromkeys(PROXIES, address),
            "no_proxy": without_proxy,
            "NO_PROXY": without_proxy,
        }

    def close(self) -> None:
        if self._serving is None:
            return
        loop, thread = self._serving
        with suppress(RuntimeError):  # it has ended, and its loop is closed
            loop.call_soon_threadsafe(self._stop.set)
        thread.join(5.0)

    def _run(self, ours: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        with closing(ours), closing(loop), suppress(OSError, asyncio.CancelledError):
            loop.run_until_complete(self._serve(ours))

    async def _serve(self, ours: socket.socket) -> None:
        ours.setblocking(False)
        ready = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(ours, ready.set)
        await _first(ready.wait(), self._stop.wait())
        loop.remove_reader(ours)
        if self._stop.is_set():
            return
        _, fds, _, _ = socket.recv_fds(ours, 1, 1)
        if not fds:
            return  # the launcher is gone
        listener = socket.socket(fileno=fds[0])
        server = await asyncio.start_server(self._served, sock=listener, limit=MAX_HEAD)
        ours.send(b"s")
        await self._stop.wait()
        server.close()  # `async with` would wait for the connections that are still open
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=1.0)

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open > MAX_CONNECTIONS:
                await _answer(writer, "503 Too many connections")
            else:
                await self._request(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        except asyncio.CancelledError:  # the command ended; before Python 3.13, asyncio logs it as an error
            pass
        finally:
            self._open -= 1
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_TIME):
            head = await reader.readuntil(b"\r\n\r\n")
        target = target_of(head)
        if target is None:
            await _answer(writer, "400 Bad request")
            return
        host, port, opening = target
        if not self.allowed.allows(host, port):
            _note(self.refused, f"{host}:{port}")
            await _answer(
                writer, "403 Refused by the sandbox", f"{host}:{port} is not on the list of allowed hosts.\n"
            )
            return
        try:
            async with asyncio.timeout(CONNECT_TIME):
                up = await self._connected(host.strip("[]"), port)
        except NetworkRefused as problem:
            _note(self.refused_addresses, str(problem))
            await _answer(writer, "403 Refused by the sandbox", f"{problem}.\n")
            return
        except (OSError, TimeoutError) as problem:
            await _answer(writer, "502 Bad gateway", f"{host}:{port} could not be reached: {problem}\n")
            return
        if opening:
            up[1].write(opening)
            await _relayed(_request_alone(reader, opening), writer, *up)
        else:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await _relayed(_all(reader), writer, *up)

    async def _connected(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        problem: OSError = OSError("no address")
        for address in await self.resolve(host, port):
            try:
                return await asyncio.open_connection(address, port)
            except OSError as failed:
                problem = failed
        raise problem


def target_of(head: bytes) -> tuple[str, int, bytes] | None:
    """Host, port and the first bytes for the server (none for a tunnel) of a request; None if it is not valid.

    A request in plain HTTP is passed on alone, with `Connection: close` and the `Host` that was checked: what follows
    its body could be a request to another host.
    """
    found = REQUEST.match(head)
    if found is None or b"\r\n\r\n" not in head:
        return None
    method, target, version = found.groups()
    try:
        text = target.decode("ascii").lower() if method == b"CONNECT" else target.decode("ascii")
    except UnicodeDecodeError:
        return None
    if method == b"CONNECT":
        name, _, number = text.rpartition(":")
        path = ""
    elif text[:7].lower() == "http://":
        authority, slash, rest = text[7:].partition("/")
        path = slash + rest or "/"
        if "?" in authority or "#" in authority:
            return None
        authority = authority.lower()
        name, _, number = (
            authority.rpartition(":") if re.search(r":\d+\Z", authority) else (authority, "", "80")
        )
    else:
        return None
    if (
        not HOST.fullmatch(name.rstrip("."))
        or len(name) > MAX_NAME
        or not re.fullmatch(r"[0-9]{1,5}", number)
        or not 0 < int(number) < 65_536
    ):
        return None
    if method == b"CONNECT":
        return name, int(number), b""
    lines = head[found.end() : -4].split(b"\r\n") if len(head) > found.end() + 2 else []
    if not all(map(HEADER.fullmatch, lines)) or _length_of(lines) is None:
        return None
    kept = [line for line in lines if not line.lower().startswith((*HOP_BY_HOP, b"host:"))]
    opening = [
        method + b" " + path.encode() + b" " + version,
        b"Host: " + name.encode() + (b":" + number.encode() if number != "80" else b""),
    ]
    return name, int(number), b"\r\n".join([*opening, *kept, b"Connection: close", b"", b""])


def _length_of(lines: Sequence[bytes]) -> int | None:
    """The length of a request's body, -1 if it comes in chunks; None if the headers do not agree on it."""
    values: dict[bytes, set[bytes]] = {b"content-length": set(), b"transfer-encoding": set()}
    for line in lines:
        name, _, value = line.partition(b":")
        if name.lower() in values:
            values[name.lower()].add(value.strip(b" \t").lower())
    lengths, encodings = values.values()
    if encodings:
        return -1 if encodings == {b"chunked"} and not lengths else None
    if not lengths:
        return 0
    length = lengths.pop()
    return int(length) if not lengths and re.fullmatch(rb"[0-9]{1,18}", length) else None


def _note(noted: list[str], words: str) -> None:
    """Adds words to a list, which keeps the latest ones, each once."""
    if words in noted:
        noted.remove(words)
    noted.append(words)
    del noted[:-MAX_REFUSED]


async def _all(source: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while data := await asyncio.wait_for(source.read(CHUNK), IDLE):
        yield data


async def _request_alone(source: asyncio.StreamReader, opening: bytes) -> AsyncIterator[bytes]:
    """The body of the request that begins with these bytes. What follows it, until the client ends, is dropped."""
    async for data in _body(source, opening):
        yield data
    async for _ in _all(source):
        pass


async def _body(source: asyncio.StreamReader, opening: bytes) -> AsyncIterator[bytes]:
    length = _length_of(opening.split(b"\r\n")[1:]) or 0
    if length >= 0:
        async for data in _exactly(source, length):
            yield data
        return
    while True:
        line = await asyncio.wait_for(source.readuntil(b"\r\n"), IDLE)
        size = CHUNK_SIZE.fullmatch(line)
        if size is None:
            raise OSError("a chunk without its size")
        yield size[1] + b"\r\n"
        left = int(size[1], 16)
        async for data in _exactly(source, left):
            yield data
        if await source.readexactly(2) != b"\r\n":
            raise OSError("a chunk without its end")  # or trailers, which are not passed on
        yield b"\r\n"
        if not left:
            return


async def _exactly(source: asyncio.StreamReader, length: int) -> AsyncIterator[bytes]:
    while length > 0:
        data = await asyncio.wait_for(source.read(min(CHUNK, length)), IDLE)
        if not data:
            raise OSError("a body that is cut off")
        length -= len(data)
        yield data


async def _relayed(
    given: AsyncIterator[bytes],
    writer: asyncio.StreamWriter,
    up_reader: asyncio.StreamReader,
    up_writer: asyncio.StreamWriter,
) -> None:
    async def pump(data: AsyncIterator[bytes], sink: asyncio.StreamWriter) -> None:
        async for piece in data:
            sink.write(piece)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()

    try:
        await asyncio.gather(pump(given, up_writer), pump(_all(up_reader), writer))
    finally:
        up_writer.close()


async def _answer(writer: asyncio.StreamWriter, status: str, text: str = "") -> None:
    body = text.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nContent-Type: text/plain\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
    await writer.drain()


async def _first(*waits: Awaitable[object]) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
