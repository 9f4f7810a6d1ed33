"""`toolcrib mcp tools`: the tools of MCP servers, as they were listed last."""

from __future__ import annotations

from collections import Counter
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer

from toolcrib.cli.console import DONE, Problem, out, quiet_logging, say
from toolcrib.cli.mcp_servers import configured_servers, make_toolset
from toolcrib.cli.mcp_states import NO_SERVERS, NOT_LISTED
from toolcrib.cli.options import AsJson, McpFiles, WorkspaceFolder
from toolcrib.mcp.client.tool import effect_from
from toolcrib.mcp.client.toolset import McpToolset
from toolcrib.visible import counted, on_one_line

Name = Annotated[str | None, typer.Argument(metavar="NAME", help="A server; all if left out.")]


def command(
    name: Name = None, workspace: WorkspaceFolder = Path(), mcp: McpFiles = None, json: AsJson = False
) -> int:
    """Each with its name at the server, the name that a model is shown, and its effect."""
    quiet_logging()
    found = configured_servers(workspace, mcp or ())
    chosen = [found.server(name)] if name else found.enabled()
    toolset = make_toolset(found.enabled(*chosen), workspace)
    names = {server.name for server in chosen if server.enabled}
    unknown = {
        one.name: f"failed: {one.problem}" if one.problem else f"{NOT_LISTED} {one.name}"
        for one in toolset.servers()
        if one.tools is None and one.name in names
    }
    rows = [row for row in _rows(toolset) if row["server"] in names]
    if json:
        out(dumps(rows, ensure_ascii=False, indent=2))
    for row in () if json else rows:
        sentence = " ".join(row["description"].split()).partition(". ")[0]
        out(on_one_line(f"{row['name']}  {row['effect']}  {row['server']}: {row['tool']}  {sentence}", 200))
        if row["doubt"]:
            out(
                on_one_line(
                    f"  ! {row['doubt']}; to read and approve it: toolcrib mcp approve {row['server']}"
                )
            )
    for server, number in Counter(row["server"] for row in rows if not row["effect_from"]).items():
        words = (
            f"{server}: {counted(number, 'tool')} without a known effect, which counts as destructive; "
            f"to change that, set effects or trusted = true below [mcp.servers.{server}] of your toolcrib.toml"
        )
        say(on_one_line(words))
    if not chosen and not json:
        out(NO_SERVERS)
    if name and unknown:
        raise Problem(on_one_line(f"{name}: {unknown[name]}"), code=1)
    for server, why in unknown.items():
        say(on_one_line(f"{server}: {why}"))
    return DONE


def _rows(toolset: McpToolset) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "server": tool.server.config.name,
            "tool": tool.remote.name,
            "effect": tool.facts.effect.label,
            "effect_from": effect_from(tool.remote, tool.server.config),
            "state": tool.judged.state.value,
            "doubt": tool.judged.doubt.reason if tool.judged.doubt is not None else "",
            "title": tool.remote.title,
            "description": tool.remote.description,
            "input_schema": tool.remote.input_schema,
            "output_schema": tool.remote.output_schema,
            "annotations": dict(tool.remote.annotations),
        }
        for name, tool in sorted(toolset.tools().items())
    ]
