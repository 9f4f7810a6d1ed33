"""`toolcrib mcp call`: `toolcrib tools call` for a tool by its name at its server."""

from __future__ import annotations

from typing import Annotated

import typer

from toolcrib.cli.commands import tools_call
from toolcrib.cli.commands.tools_call import CONTEXT_SETTINGS, Arguments
from toolcrib.cli.mcp_servers import configured_servers
from toolcrib.cli.options import ServerOfTools, ToolsToUse
from toolcrib.cli.policy_options import PolicyOptions
from toolcrib.cli.sandbox_options import SandboxOptions
from toolcrib.mcp.names import shown_names

__all__ = ["CONTEXT_SETTINGS", "command"]

Tool = Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name at the server.")]


def command(
    server: ServerOfTools,
    tool: Tool,
    tools: ToolsToUse,
    policy: PolicyOptions,
    sandbox: SandboxOptions,
    arguments: Arguments = None,
) -> int:
    """Arguments, questions and exit codes are those of toolcrib tools call. The server is started for the call."""
    configured_servers(tools.workspace, tools.mcp_files).server(server)
    name = shown_names([(server, tool)])[server, tool]
    return tools_call.command(name, tools, policy, sandbox, arguments)
