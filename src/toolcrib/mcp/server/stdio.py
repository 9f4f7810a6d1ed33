"""Serving on standard input and output, as clients start servers of their own."""

from __future__ import annotations

from toolcrib.mcp.server.face import McpFace

__all__ = ["serve_stdio"]


async def serve_stdio(face: McpFace) -> None:
    """Serve one client on standard input and output, until it closes its end.

    Standard output belongs to the protocol: what tools and the programs that they start print there goes to standard
    error, and they find standard input empty.
    """
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await face.server.run(read, write, face.server.create_initialization_options())
