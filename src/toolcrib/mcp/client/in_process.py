"""A server in this process: an object of the SDK, reached through streams in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from toolcrib.mcp.concealment import unchanged

__all__ = ["InProcessLink"]

END = 2.0  # seconds that a server has to end when its input is closed


class InProcessLink:
    """How a server object of the SDK is reached, an `MCPServer` or a `lowlevel.Server`.

    Messages go through the same framing as those of a child process, in both eras of the protocol.
    """

    pid = 0

    def __init__(self, server: Any) -> None:
        self.conceal = unchanged
        self._server = getattr(server, "_lowlevel_server", server)  # of an MCPServer

    def explanation(self) -> str:
        return ""

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[tuple[Any, Any]]:
        """Run the server, and give the streams of messages from it and to it."""
        import asyncio

        from mcp.shared.memory import create_client_server_memory_streams

        server = self._server
        async with create_client_server_memory_streams() as (ours, theirs):
            running = asyncio.ensure_future(server.run(*theirs, server.create_initialization_options()))
            running.add_done_callback(lambda _: theirs[1].close())
            try:
                yield ours
            finally:
                await ours[1].aclose()
                await theirs[1].aclose()
                await asyncio.wait([running], timeout=END)
                if not running.done():
                    running.cancel()
                    await asyncio.wait([running], timeout=END)
                elif not running.cancelled():
                    running.exception()
