"""`toolcrib mcp test`: MCP servers are started, listed anew and ended."""

from __future__ import annotations

import asyncio
import time
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer

from toolcrib.cli.console import DONE, NOT_DONE, out, quiet_logging, say, stdout_reserved
from toolcrib.cli.mcp_servers import configured_servers, make_toolset
from toolcrib.cli.mcp_states import NO_SERVERS
from toolcrib.cli.options import AsJson, McpFiles, WorkspaceFolder
from toolcrib.dataclass import replace
from toolcrib.mcp.config import McpServer
from toolcrib.visible import counted, on_one_line

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help="The servers; all if none is named.")]


def command(
    names: Names = None, workspace: WorkspaceFolder = Path(), mcp: McpFiles = None, json: AsJson = False
) -> int:
    """The lists of tools are kept, so that later lists start nothing. The exit code is 1 if a server failed."""
    quiet_logging()
    found = configured_servers(workspace, mcp or ())
    for note in found.notes:
        say(f"note: {on_one_line(note)}")
    servers = [found.server(name) for name in dict.fromkeys(names or ())]
    servers = servers or found.enabled()
    with stdout_reserved():
        rows = asyncio.run(_tested(servers, found.enabled(*servers), workspace))
    if json:
        out(dumps(rows, ensure_ascii=False, indent=2))
    else:
        for row in rows:
            for line in _lines(row):
                out(on_one_line(line))
        if not rows:
            out(NO_SERVERS)
    return NOT_DONE if any(row["problem"] for row in rows) else DONE


async def _tested(servers: list[McpServer], known: list[McpServer], workspace: Path) -> list[dict[str, Any]]:
    """Starts the servers, all at once; returns a row for each. `known` has the others, too, which are not started."""
    on = [replace(server, enabled=True) for server in known]
    toolset = make_toolset(on, workspace)
    try:
        rows = await asyncio.gather(*(_test(toolset, server) for server in servers))
    finally:
        await toolset.aclose()
    by_name = {row["name"]: row for row in rows}
    for tool in toolset.tools().values():
        row, doubt = by_name.get(tool.server.config.name), tool.judged.doubt
        if row is not None and doubt is not None:
            row["doubts"][tool.remote.name] = doubt.reason
    return list(rows)


async def _test(toolset: Any, server: McpServer) -> dict[str, Any]:
    handle = toolset.server(server.name)
    began = time.monotonic()
    problem = ""
    try:
        await handle.refresh()
    except Exception as failed:  # whatever a server does is a line about that server
        problem = str(failed) or type(failed).__name__
    status = handle.status()
    return {
        "name": server.name,
        "address": server.address(),
        "problem": problem,
        "seconds": round(time.monotonic() - began, 3),
        "title": status.title,
        "protocol": status.protocol,
        "tools": [tool.name for tool in handle.tools()],
        "warnings": list(status.warnings),
        "doubts": {},
    }


def _lines(row: dict[str, Any]) -> list[str]:
    if row["problem"]:
        lines = [f"{row['name']}: FAILED after {row['seconds']:.1f} s: {row['problem']}"]
    else:
        title = f"{row['title']}, " if row["title"] else ""
        tools = counted(len(row["tools"]), "tool")
        lines = [f"{row['name']}: {title}protocol {row['protocol']}, {tools} in {row['seconds']:.1f} s"]
    lines += [f"  warning: {warning}" for warning in row["warnings"]]
    lines += [f"  ! {tool}: {doubt}" for tool, doubt in row["doubts"].items()]
    if row["doubts"]:
        lines.append(f"  to read and approve: toolcrib mcp approve {row['name']}")
    return lines
