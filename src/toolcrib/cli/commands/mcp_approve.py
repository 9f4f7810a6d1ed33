"""`toolcrib mcp approve`: a person reads definitions of MCP tools that changed or are suspicious, and decides."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli.console import DONE, NOT_DONE, Problem, out, person_can_be_asked, quiet_logging
from toolcrib.cli.mcp_servers import configured_servers, make_toolset
from toolcrib.cli.mcp_states import NOT_LISTED
from toolcrib.cli.options import McpFiles, ServerOfTools, WorkspaceFolder
from toolcrib.errors import ToolcribError
from toolcrib.mcp.client.pins import Pins
from toolcrib.visible import on_one_line

Tools = Annotated[list[str] | None, typer.Argument(metavar="TOOL", help="Its tools; all if none is named.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Approve without being asked: you have read it.")]
Forget = Annotated[
    bool, typer.Option("--forget", help="Forget what was approved of the server, and begin anew.")
]


def command(
    server: ServerOfTools,
    tools: Tools = None,
    yes: Yes = False,
    forget: Forget = False,
    workspace: WorkspaceFolder = Path(),
    mcp: McpFiles = None,
) -> int:
    """Until then a model is not shown the new words, and each call of such a tool asks. The list is the one of the last
    start: toolcrib mcp test makes a new one. The exit code is 1 if something is not approved.
    """
    quiet_logging()
    found = configured_servers(workspace, mcp or ())
    config = found.server(server)
    if not config.enabled:
        raise Problem(f"{server} is switched off in {config.source}")
    pins = Pins.of_user()
    try:
        if forget:
            out(f"{on_one_line(server)}: {pins.forget(config)} definitions forgotten")
            return DONE
        toolset = make_toolset(found.enabled(config), workspace)
        if toolset.server(server).manifest is None:
            raise Problem(f"{server}: {NOT_LISTED} {server}", code=NOT_DONE)
        known = {
            tool.remote.name: tool.judged for tool in toolset.tools().values() if tool.server.config is config
        }
        for name in tools or ():
            if name not in known:
                raise Problem(f"{server} has no tool {name!r}; `toolcrib mcp tools {server}` lists them")
        waiting = {name: one for name, one in known.items() if one.doubt and (not tools or name in tools)}
        for name, judged in waiting.items():
            out(on_one_line(f"{name}: {judged.doubt.reason if judged.doubt else ''}"))
            out("\n".join(f"    {line}" for line in judged.difference().splitlines()))
        if not waiting:
            out(f"{on_one_line(server)}: nothing waits for you")
            return DONE
        if not yes and not _person_agrees():
            out("Not approved.")
            return NOT_DONE
        for judged in waiting.values():
            pins.approve(config, judged.definition)
    except ToolcribError as problem:
        raise Problem(on_one_line(str(problem))) from problem
    out("Approved. A later change asks again.")
    return DONE


def _person_agrees() -> bool:
    if not person_can_be_asked():
        raise Problem("there is no terminal to ask on; if you have read this, add --yes")
    sys.stderr.write("May a model read this, and may such calls go on as your rules say? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
