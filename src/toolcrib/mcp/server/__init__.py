"""A toolbox as an MCP server: for Claude, Cursor, VS Code, another agent. Needs the `mcp` extra.

| module | what |
| --- | --- |
| `face` | `McpFace`: a toolbox and how it is shown; makes the SDK's server |
| `listing` | what `tools/list` says |
| `search_face` | two tools in the place of many: one that finds tools, one that calls them |
| `served_call` | one call on its way, and what it asks the client meanwhile |
| `asking` | how a question reaches the client, in both revisions of the protocol |
| `peer` | what a running tool may ask of the client that called it |
| `clients` | the clients that are connected, each with the run that its calls belong to |
| `questions` | approvals and questions, put to the person at the client |
| `tasks` | the tasks extension: a long call becomes a task |
| `offers`, `offered` | resources, prompts and completions: your objects, and the requests for them |
| `passed_on` | resources and prompts of the servers behind a gateway |
| `stdio`, `http`, `http_server`, `auth` | the transports; who may call over HTTP |
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.mcp.server.auth import IntrospectionVerifier, JwtVerifier, OAuthResource, SharedToken
    from toolcrib.mcp.server.face import McpFace
    from toolcrib.mcp.server.http import asgi_app, serve_http
    from toolcrib.mcp.server.offers import Complete, Prompts, Resources
    from toolcrib.mcp.server.passed_on import PassedOnPrompts, PassedOnResources
    from toolcrib.mcp.server.peer import McpPeer, peer_of_call
    from toolcrib.mcp.server.stdio import serve_stdio

__all__ = [
    "Complete",
    "IntrospectionVerifier",
    "JwtVerifier",
    "McpFace",
    "McpPeer",
    "OAuthResource",
    "PassedOnPrompts",
    "PassedOnResources",
    "Prompts",
    "Resources",
    "SharedToken",
    "asgi_app",
    "peer_of_call",
    "serve_http",
    "serve_stdio",
]

if find_spec("mcp") is None:
    raise ImportError('serving tools over MCP needs the mcp package: pip install "toolcrib[mcp]"')

__getattr__ = lazy_names(
    __name__,
    {
        "auth": ("IntrospectionVerifier", "JwtVerifier", "OAuthResource", "SharedToken"),
        "face": ("McpFace",),
        "http": ("asgi_app", "serve_http"),
        "offers": ("Complete", "Prompts", "Resources"),
        "passed_on": ("PassedOnPrompts", "PassedOnResources"),
        "peer": ("McpPeer", "peer_of_call"),
        "stdio": ("serve_stdio",),
    },
)
