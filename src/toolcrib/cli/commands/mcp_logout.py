"""`toolcrib mcp logout`: the tokens of a remote MCP server are revoked and forgotten."""

from __future__ import annotations

import asyncio
from pathlib import Path

from toolcrib.cli.console import DONE, NOT_DONE, Problem, out
from toolcrib.cli.mcp_servers import login_store, server_to_log_in_to
from toolcrib.cli.options import McpFiles, ServerName, WorkspaceFolder
from toolcrib.visible import on_one_line


def command(name: ServerName, workspace: WorkspaceFolder = Path(), mcp: McpFiles = None) -> int:
    """The login is forgotten here in any case. Where its issuer can revoke tokens, it is asked to."""
    from toolcrib.mcp.client.oauth import OAuthError, logout

    server, settings = server_to_log_in_to(name, workspace, mcp or ())
    try:
        revoked = asyncio.run(logout(server, login_store(), settings))
    except OAuthError as problem:
        raise Problem(f"{name}: {on_one_line(str(problem))}", code=NOT_DONE) from problem
    if revoked is None:
        out(on_one_line(f"{name}: nobody was logged in"))
        return NOT_DONE
    out(on_one_line(f"{name}: logged out" + ("" if revoked else "; its issuer did not revoke the tokens")))
    return DONE
