"""For tests of remote calls: a toolbox over one server in this process, in either era of the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from toolcrib import Effect, Toolbox
from toolcrib.mcp import McpToolset
from toolcrib.mcp.client.connection import Connection
from toolcrib.mcp.client.requests import ServerRequests
from toolcrib.sink import EventLog

ERAS = ("2025", "2026")


def toolset_of(
    server: Any,
    era: str = "2026",
    *,
    effects: Mapping[str, Effect] | None = None,
    timeout: float = 5.0,
    max_timeout: float = 20.0,
    **rights: Any,
) -> McpToolset:
    """The tools of a server that is named "srv". With the era "2025" it is spoken to as an older server.

    `rights` are those of `ServerRequests`.
    """
    tools = McpToolset(
        in_process={"srv": server}, requests=lambda config: ServerRequests(config.name, **rights)
    )
    handle = tools.server("srv")
    handle.config = replace(
        handle.config, timeout=timeout, max_timeout=max_timeout, effects=dict(effects or {})
    )
    if era == "2025":

        async def opened() -> Connection:
            link = await handle._link(handle.config, handle.warn)
            options = handle.requests.client_options()
            return await Connection.open("srv", link, era="legacy", timeout=5, options=options)

        handle._opened = opened  # type: ignore[method-assign]
    return tools


@asynccontextmanager
async def calling(
    server: Any,
    era: str = "2026",
    *,
    approver: Callable[..., Any] | None = None,
    log: EventLog | None = None,
    box: Mapping[str, Any] | None = None,
    **named: Any,
) -> AsyncIterator[Toolbox]:
    """A toolbox over the server, which runs everything; the approver is asked what the server asks."""
    tools = toolset_of(server, era, **named)
    options = {"autonomy": "full", "approver": approver, **(box or {})}
    async with Toolbox([tools], **options) as made:
        if log is not None:
            made.subscribe(log)
        yield made
