"""The clients that are connected, each with the run of the toolbox that its calls belong to.

A run is what approvals "in this run", rate limits, taint and background processes belong to. A client's run is

| client                                     | run                                           |
| ------------------------------------------ | --------------------------------------------- |
| with a connection of its own (2025-11-25)  | of that connection; it ends with it           |
| authenticated, without a connection        | of whoever the token names                    |
| neither                                    | of the server: one for all who may reach it   |
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.request_state import authenticated_principal
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from toolcrib.toolbox import Toolbox

__all__ = ["Clients", "RequestContext", "is_modern"]

RequestContext = ServerRequestContext[Any, Any]
LOG_LEVEL = "toolcrib log level"  # keys of a connection's state
WATCHED = "toolcrib watched resources"
MAX_PRINCIPALS = 1_000  # the run of whoever called longest ago ends first


def is_modern(ctx: RequestContext) -> bool:
    """Whether the request speaks revision 2026-07-28 or later, which knows no connections."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


class Clients:
    """Knows the run of each client, and ends the runs of those who left."""

    def __init__(self, box: Toolbox[Any]) -> None:
        self._box = box
        self._server_run = os.urandom(16).hex()
        self._of_connection: dict[int, tuple[Connection, str]] = {}
        self._of_principal: OrderedDict[str, str] = OrderedDict()

    async def run_of(self, ctx: RequestContext) -> str:
        """The run that calls of this request belong to."""
        connection = _connection_of(ctx)
        if connection is not None and not is_modern(ctx):
            return self._connected(connection)
        principal = authenticated_principal(ctx)
        if principal is None:
            return self._server_run
        known = self._of_principal.get(principal)
        if known is None:
            if len(self._of_principal) >= MAX_PRINCIPALS:
                await self._box.end(self._of_principal.popitem(last=False)[1])
            digest = hashlib.sha256(principal.encode("utf-8", "surrogatepass")).hexdigest()
            known = self._of_principal[principal] = f"{self._server_run}-{digest[:32]}"
        self._of_principal.move_to_end(principal)
        return known

    def add_connection(self, ctx: RequestContext) -> None:
        """Add the connection of a request to those that are told of changes."""
        connection = _connection_of(ctx)
        if connection is not None and not is_modern(ctx):
            self._connected(connection)

    def set_log_level(self, ctx: RequestContext, level: types.LoggingLevel) -> None:
        """The client of a connection wants log messages of this level and above."""
        connection = _connection_of(ctx)
        if connection is not None:
            connection.state[LOG_LEVEL] = level

    def log_level(self, ctx: RequestContext) -> types.LoggingLevel:
        """The least level that the client wants. Since 2026-07-28, each request says so itself, to the SDK."""
        connection = _connection_of(ctx)
        usual: types.LoggingLevel = "debug" if is_modern(ctx) else "info"
        return usual if connection is None else connection.state.get(LOG_LEVEL, usual)

    def watch(self, ctx: RequestContext, uri: str, most: int) -> bool:
        """Let a connection be told of changes to a resource; False if it watches too many already."""
        connection = _connection_of(ctx)
        if connection is None:
            return True
        self._connected(connection)
        watched: set[str] = connection.state.setdefault(WATCHED, set())
        if len(watched) >= most:
            return uri in watched
        watched.add(uri)
        return True

    def unwatch(self, ctx: RequestContext, uri: str) -> None:
        connection = _connection_of(ctx)
        if connection is not None:
            connection.state.get(WATCHED, set()).discard(uri)

    def watching(self, uri: str) -> list[Connection]:
        """The connections that watch a resource."""
        return [one for one in self.connections() if uri in one.state.get(WATCHED, ())]

    def connections(self) -> list[Connection]:
        """The connections that are open."""
        return [connection for connection, _ in self._of_connection.values()]

    async def close(self) -> None:
        """End the runs of all clients."""
        runs = [*(run for _, run in self._of_connection.values()), *self._of_principal.values()]
        self._of_connection.clear()
        self._of_principal.clear()
        for run in (*runs, self._server_run):
            await self._box.end(run)

    def _connected(self, connection: Connection) -> str:
        known = self._of_connection.get(id(connection))
        if known is not None:
            return known[1]
        run = os.urandom(16).hex()
        self._of_connection[id(connection)] = (connection, run)

        async def left() -> None:
            if self._of_connection.pop(id(connection), None) is not None:
                await self._box.end(run)

        connection.exit_stack.push_async_callback(left)
        return run


def _connection_of(ctx: RequestContext) -> Connection | None:
    # The SDK hands a handler the session alone; its connection has no public name yet.
    connection = getattr(ctx.session, "_connection", None)
    return connection if isinstance(connection, Connection) else None
