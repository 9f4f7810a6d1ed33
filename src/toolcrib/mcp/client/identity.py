"""For whom a call is made: headers of one call, from its context, on a connection that many users share.

A server of the stateless revisions gets the headers with each request, over one connection. A server of an older
revision ties its session to whoever opened it, so each identity has a connection of its own there, and of these at most
`limit` are open: the one that was not used longest is closed. Nothing of one identity is kept for another: no session,
no cookie, no question of the server, no log message.

The list of tools is the server's list for us, not for a user. It is fetched with the headers and the login of the
configuration.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from toolcrib.dataclass import dataclass, field
from toolcrib.errors import ToolError
from toolcrib.event_loops import in_loop
from toolcrib.mcp.client.connection import Connection, Link
from toolcrib.mcp.client.errors import ServerUnavailable, check_loop_runs
from toolcrib.mcp.client.requests import ServerRequests

if TYPE_CHECKING:
    from toolcrib.context import Context
    from toolcrib.mcp.client.server import ServerHandle

__all__ = ["Identify", "Identities", "ServerForCaller"]

Identify = Callable[["Context[Any]"], "Headers | Awaitable[Headers]"]
"""Gives the headers of a call from its context, or a bearer token. Nothing means that the call is not made."""
Headers = Mapping[str, str] | str | None

OpenLink = Callable[[Mapping[str, str]], Awaitable[Link]]
"""How the server is reached with these headers on every request."""

LIMIT = 32  # connections of identities that are open at once, for each server
ALONE = 60.0  # seconds for which the connection for all is not tried again after it failed
NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
RESERVED = re.compile(r"mcp-.*|host|content-.*|accept|connection|transfer-encoding|dpop", re.IGNORECASE)


class Identities:
    """The identities for which one server is called.

    Args:
        server: The server.
        identify: Gives the headers of a call.
        link: Makes the way to reach the server with given headers.
        requests: Makes what answers a server's requests; one for each identity.
        limit: How many connections of identities may be open at once.
    """

    def __init__(
        self,
        server: ServerHandle,
        identify: Identify,
        link: OpenLink,
        requests: Callable[[], Any],
        *,
        limit: int = LIMIT,
    ) -> None:
        self._server = server
        self._identify = identify
        self._link = link
        self._requests = requests
        self._limit = limit
        self._home: asyncio.AbstractEventLoop | None = None
        self._open: OrderedDict[str, _Entry] = OrderedDict()  # the one used last is at the end
        self._released: asyncio.Event | None = None
        self._alone_until = 0.0

    @asynccontextmanager
    async def caller_of(self, ctx: Context[Any]) -> AsyncGenerator[ServerForCaller]:
        """The server as the caller of a call reaches it. Raises ToolError where it is unknown who calls."""
        headers = await self._headers(ctx)
        shared = await self._shared()
        if shared is not None and shared.modern:
            requests = self._requests()
            if isinstance(requests, ServerRequests):
                requests.log_level = ""  # its log messages do not say whose call they are about
            yield ServerForCaller(self._server, requests, headers, self._server.connected)
            return
        # Connections belong to a loop. Calls of other loops use those of the first one.
        if self._home is None or self._home.is_closed():
            self._home, self._released = asyncio.get_running_loop(), asyncio.Event()
            self._open.clear()
        home, older = self._home, shared is not None
        try:
            check_loop_runs(home, self._server.config.name)
            entry = await in_loop(home, self._acquired(headers))
        except ServerUnavailable as problem:
            yield ServerForCaller(self._server, self._requests(), headers, _raising(problem))
            return

        async def connected() -> Connection:
            return await in_loop(home, self._connection_of(entry, headers, older=older))

        try:
            yield ServerForCaller(self._server, entry.requests, headers, connected)
        finally:
            if not home.is_closed():
                home.call_soon_threadsafe(self._release, entry)

    async def aclose(self) -> None:
        """Close the connections of all identities. Takes a bounded time."""
        if self._home is not None and self._home.is_running():
            await in_loop(self._home, self._close())

    async def _headers(self, ctx: Context[Any]) -> dict[str, str]:
        name = self._server.config.name
        given = self._identify(ctx)
        found = await given if inspect.isawaitable(given) else given
        headers = {"authorization": f"Bearer {found}"} if isinstance(found, str) and found else found
        if not headers:
            raise ToolError(f"The server {name!r} was not called, because it is not known for whom.")
        if not isinstance(headers, Mapping):
            raise TypeError(
                f"identity of {name!r}: expected headers or a token, got {type(headers).__name__}"
            )
        for key, value in headers.items():
            if not isinstance(key, str) or not isinstance(value, str) or not NAME.fullmatch(key):
                raise TypeError(f"identity of {name!r}: headers are names and texts")
            if RESERVED.fullmatch(key) or not value.isprintable() or not value.isascii():
                raise ValueError(
                    f"identity of {name!r}: the header {key} cannot be set, or not to this value"
                )
        return {key.lower(): value for key, value in headers.items()}

    async def _shared(self) -> Connection | None:
        """The connection for all; None if it cannot be had, as when the server refuses requests without an identity."""
        if time.monotonic() < self._alone_until:
            return None
        try:
            return await self._server.connected()
        except ServerUnavailable:
            self._alone_until = time.monotonic() + ALONE
            return None

    async def _acquired(self, headers: Mapping[str, str]) -> _Entry:
        """The place of an identity's connection, which is not closed until it is released. Raises ServerUnavailable."""
        key = sha256(json.dumps(sorted(headers.items())).encode()).hexdigest()
        while (entry := self._open.get(key)) is None and len(self._open) >= self._limit:
            await self._make_room()
        if entry is None:
            entry = self._open[key] = _Entry(self._requests())
        entry.users += 1
        self._open.move_to_end(key)
        return entry

    async def _connection_of(self, entry: _Entry, headers: Mapping[str, str], *, older: bool) -> Connection:
        """The connection of an identity; it is opened, or opened anew, if need be. Raises ServerUnavailable."""
        config = self._server.config
        async with entry.lock:
            if entry.connection is None or not entry.connection.alive:
                entry.connection = await Connection.open(
                    config.name,
                    await self._link(headers),
                    era="legacy" if older else "",
                    timeout=config.start_timeout,
                    options=entry.requests.client_options(),
                )
            return entry.connection

    async def _make_room(self) -> None:
        """Close the connection that was not used longest; wait for one to be released if all are in use."""
        idle = next((key for key, entry in self._open.items() if not entry.users), None)
        if idle is not None:
            entry = self._open.pop(idle)
            if entry.connection is not None:
                await entry.connection.close()
            return
        assert self._released is not None
        self._released.clear()
        config = self._server.config
        try:
            async with asyncio.timeout(config.start_timeout):
                await self._released.wait()
        except TimeoutError:
            raise ServerUnavailable(
                f"MCP server {config.name!r} is in use for {self._limit} others, which is the limit"
            ) from None

    def _release(self, entry: _Entry) -> None:
        entry.users -= 1
        if not entry.users and self._released is not None:
            self._released.set()

    async def _close(self) -> None:
        entries = list(self._open.values())
        self._open.clear()
        await asyncio.gather(*(one.connection.close() for one in entries if one.connection is not None))


@dataclass(slots=True, eq=False)
class _Entry:
    """The connection of one identity."""

    requests: Any
    connection: Connection | None = None
    users: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class ServerForCaller:
    """One server as one identity reaches it, for one call: a `RemoteServer`."""

    def __init__(
        self,
        server: ServerHandle,
        requests: Any,
        headers: Mapping[str, str],
        connected: Callable[[], Awaitable[Connection]],
    ) -> None:
        self.config = server.config
        self.requests = requests
        self.headers = headers
        self._connected = connected

    async def connected(self) -> Connection:
        """The connection of this identity, or the one for all. Raises ServerUnavailable."""
        return await self._connected()

    def __repr__(self) -> str:
        return f"<ServerForCaller {self.config.name}>"


def _raising(problem: Exception) -> Callable[[], Awaitable[Connection]]:
    async def connected() -> Connection:
        raise problem

    return connected
