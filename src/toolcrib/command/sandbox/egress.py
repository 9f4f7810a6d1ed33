"""A proxy through which commands reach a list of hosts and nothing else.

The command's network namespace has no way out. The launcher opens one listener in it and sends that over an inherited
socket (SCM_RIGHTS). The proxy serves it outside: `CONNECT` for TLS, absolute URLs for plain HTTP. Names are resolved by
the network guard or a given resolver, and the proxy connects to the address that was checked.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from toolcrib.command.sandbox.process.launcher import PORT
from toolcrib.errors import as_tuple
from toolcrib.net.urls import NetworkRefused

if TYPE_CHECKING:
    from toolcrib.net import NetGuard

__all__ = ["Allowlist", "Egress", "Resolver", "allowlist_guard", "guarded_resolver", "target_of"]

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Gives the numeric addresses that a host may be reached at, already checked; raises OSError to refuse it."""

MAX_HEAD = 16_384
HEAD_TIME = 10.0  # seconds for a request to say where it wants to go
CONNECT_TIME = 20.0
IDLE = 300.0
MAX_CONNECTIONS = 128
CHUNK = 65_536
DEFAULT_PORTS = (80, 443)
HOST = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,62})\.)*[a-z0-9_](?:[a-z0-9_-]{0,62})|\[[0-9a-f:.]+\]")
REQUEST = re.compile(rb"([A-Z]{1,16}) (\S{1,8000}) (HTTP/1\.[01])\r?\n")
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
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="toolcrib-egress", daemon=True)
        self._ours: socket.socket | None = None
        self._stop = asyncio.Event()
        self._open = 0

    def begin(self) -> tuple[socket.socket, dict[str, str]]:
        """Starts; returns the socket for the launcher and the variables that lead programs to the proxy."""
        self._ours, theirs = socket.socketpair()
        self._thread.start()
        address = f"http://127.0.0.1:{PORT}"
        # Programs reach servers of the command itself without the proxy, unless such a name is on the list.
        without_proxy = ",".join(name for name in LOOPBACK if not self.allowed.names(name))
        return theirs, {
            **dict.fromkeys(PROXIES, address),
            "no_proxy": without_proxy,
            "NO_PROXY": without_proxy,
        }

    def close(self) -> None:
        if self._thread.is_alive():
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(5.0)

    def _run(self) -> None:
        with suppress(OSError, asyncio.CancelledError):
            self._loop.run_until_complete(self._serve())
        self._loop.close()
        if self._ours is not None:
            self._ours.close()

    async def _serve(self) -> None:
        assert self._ours is not None
        ours = self._ours
        ours.setblocking(False)
        ready = asyncio.Event()
        self._loop.add_reader(ours, ready.set)
        await _first(ready.wait(), self._stop.wait())
        self._loop.remove_reader(ours)
        if self._stop.is_set():
            return
        _, fds, _, _ = socket.recv_fds(ours, 1, 1)
        if not fds:
            return  # the launcher is gone
        listener = socket.socket(fileno=fds[0])
        server = await asyncio.start_server(self._served, sock=listener, limit=MAX_HEAD)
        ours.send(b"s")
        async with server:
            await self._stop.wait()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open > MAX_CONNECTIONS:
                await _answer(writer, "503 Too many connections")
            else:
                await self._request(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
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
            self.refused.append(f"{host}:{port}")
            await _answer(
                writer, "403 Refused by the sandbox", f"{host}:{port} is not on the list of allowed hosts.\n"
            )
            return
        try:
            async with asyncio.timeout(CONNECT_TIME):
                up = await self._connected(host.strip("[]"), port)
        except NetworkRefused as problem:
            self.refused_addresses.append(str(problem))
            await _answer(writer, "403 Refused by the sandbox", f"{problem}.\n")
            return
        except (OSError, TimeoutError) as problem:
            await _answer(writer, "502 Bad gateway", f"{host}:{port} could not be reached: {problem}\n")
            return
        if opening:
            up[1].write(opening)
        else:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await _relayed(reader, writer, *up)

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

    A request in plain HTTP is passed on with `Connection: close`, so that no second request to another host follows.
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
        or not re.fullmatch(r"[0-9]{1,5}", number)
        or not 0 < int(number) < 65_536
    ):
        return None
    if method == b"CONNECT":
        return name, int(number), b""
    lines = head[found.end() :].split(b"\r\n")
    kept = [line for line in lines if line and not line.lower().startswith((*HOP_BY_HOP, b"host:"))]
    opening = [
        method + b" " + path.encode() + b" " + version,
        b"Host: " + name.encode() + (b":" + number.encode() if number != "80" else b""),
    ]
    return name, int(number), b"\r\n".join([*opening, *kept, b"Connection: close", b"", b""])


async def _relayed(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    up_reader: asyncio.StreamReader,
    up_writer: asyncio.StreamWriter,
) -> None:
    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await asyncio.wait_for(source.read(CHUNK), IDLE):
            sink.write(data)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()

    try:
        await asyncio.gather(pump(reader, up_writer), pump(up_reader, writer))
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
