"""`toolcrib mcp list`: the MCP servers that are configured, without starting any."""

from __future__ import annotations

from json import dumps
from pathlib import Path

from toolcrib.cli.console import DONE, out, say
from toolcrib.cli.mcp_servers import configured_servers
from toolcrib.cli.mcp_states import NO_SERVERS, known_servers
from toolcrib.cli.options import AsJson, McpFiles, WorkspaceFolder
from toolcrib.visible import on_one_line


def command(workspace: WorkspaceFolder = Path(), mcp: McpFiles = None, json: AsJson = False) -> int:
    """Yours come first, then those of the project. Values of credentials are not shown."""
    found = configured_servers(workspace, mcp or ())
    rows = known_servers(found, workspace)
    for note in found.notes:
        say(f"note: {on_one_line(note)}")
    if json:
        out(dumps([row.to_dict() for row in rows], ensure_ascii=False, indent=2))
        return DONE
    for row in rows:
        out(on_one_line(f"{row.server.name}  {row.server.address()}"))
        out(on_one_line(f"  {row.words}"))
        out(on_one_line(f"  from {row.server.source}"))
    if not rows:
        out(NO_SERVERS)
    return DONE
