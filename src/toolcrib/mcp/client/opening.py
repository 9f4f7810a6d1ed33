"""Opening a connection to a server of which it is not known yet what it speaks."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.util import find_spec

from toolcrib.dataclass import replace
from toolcrib.mcp.client.connection import Connection, Link, Notified
from toolcrib.mcp.client.errors import ServerUnavailable
from toolcrib.mcp.client.seams import RequestHandlers
from toolcrib.mcp.config import McpServer

__all__ = ["MakeLink", "open_connection"]

MakeLink = Callable[[McpServer, Callable[[str], None]], Awaitable[Link]]
"""Makes the way to reach a server, anew for each attempt. The function that it is handed takes warnings."""

REFUSED = (400, 404, 405)  # HTTP statuses of a server that speaks only the older protocol over events


async def open_connection(
    config: McpServer,
    make_link: MakeLink,
    *,
    requests: RequestHandlers | None,
    older: bool,
    notified: Notified,
    warn: Callable[[str], None],
) -> Connection:
    """A new connection, over whatever the server speaks. Raises ServerUnavailable.

    `older` says that the server is known to want the handshake of the revisions before 2026. `requests` is what the
    server may ask of us; the other arguments are those of `Connection.open`.
    """
    if find_spec("mcp") is None:
        raise ServerUnavailable(
            f'MCP server {config.name!r} needs the mcp package: pip install "toolcrib[mcp]"'
        )
    if not hasattr(sys.modules.get("mcp"), "__all__"):  # the module is not imported yet, or not to its end
        await asyncio.to_thread(import_module, "mcp")  # half a second, in which others go on
    options = {} if requests is None else requests.client_options()

    async def opened(config: McpServer) -> Connection:
        for era in ("legacy",) if older else ("", "legacy"):
            link = await make_link(config, warn)
            try:
                return await Connection.open(
                    config.name,
                    link,
                    era=era,
                    timeout=config.start_timeout,
                    options=options,
                    notified=notified,
                )
            except ServerUnavailable as problem:
                # Some servers end when the first request is not the older handshake.
                if era or not problem.broke_off:
                    raise
        raise AssertionError("unreachable")

    try:
        return await opened(config)
    except ServerUnavailable as problem:
        # So the protocol wants it: who refuses to be sent a request may speak the older one.
        if config.transport != "http" or problem.status not in REFUSED:
            raise
        try:
            return await opened(replace(config, transport="sse"))
        except ServerUnavailable:
            raise problem from None
