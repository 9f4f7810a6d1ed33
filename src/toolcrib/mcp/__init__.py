"""The Model Context Protocol: the tools of servers as ours, and our tools served to others.

Importing this package does not import the protocol's SDK, which is the extra `mcp`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.mcp.client.pins import Pins
    from toolcrib.mcp.client.requests import ServerRequests
    from toolcrib.mcp.client.sampling import Sampling
    from toolcrib.mcp.client.server import ServerHandle
    from toolcrib.mcp.client.status import ServerState, ServerStatus
    from toolcrib.mcp.client.toolset import McpToolset
    from toolcrib.mcp.config import McpServer
    from toolcrib.mcp.config_files import McpConfigError, read_mcp_servers
    from toolcrib.mcp.elicitation import answer_to, elicitation, elicited
    from toolcrib.mcp.expansion import Expansion, MissingValue
    from toolcrib.mcp.server.face import McpFace
    from toolcrib.mcp.server.http import asgi_app, serve_http
    from toolcrib.mcp.server.stdio import serve_stdio

__all__ = [
    "Expansion",
    "McpConfigError",
    "McpFace",
    "McpServer",
    "McpToolset",
    "MissingValue",
    "Pins",
    "Sampling",
    "ServerHandle",
    "ServerRequests",
    "ServerState",
    "ServerStatus",
    "answer_to",
    "asgi_app",
    "elicitation",
    "elicited",
    "read_mcp_servers",
    "serve_http",
    "serve_stdio",
]

__getattr__ = lazy_names(
    __name__,
    {
        "client.pins": ("Pins",),
        "client.requests": ("ServerRequests",),
        "client.sampling": ("Sampling",),
        "client.server": ("ServerHandle",),
        "client.status": ("ServerState", "ServerStatus"),
        "client.toolset": ("McpToolset",),
        "config": ("McpServer",),
        "config_files": ("McpConfigError", "read_mcp_servers"),
        "elicitation": ("answer_to", "elicitation", "elicited"),
        "expansion": ("Expansion", "MissingValue"),
        "server.face": ("McpFace",),
        "server.http": ("asgi_app", "serve_http"),
        "server.stdio": ("serve_stdio",),
    },
)
