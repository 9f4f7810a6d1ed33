"""`toolcrib tools check`: which tools and plugins are broken."""

from __future__ import annotations

from toolcrib.cli.console import DONE, NOT_DONE, out
from toolcrib.cli.dependencies import load_factory
from toolcrib.cli.loaded_tools import load_assembly, load_tools
from toolcrib.cli.mcp_servers import ServersWanted
from toolcrib.cli.options import ToolsToUse
from toolcrib.visible import counted, escape_invisible

OPTION_FOR_ARGUMENT = "--from"


def command(tools: ToolsToUse) -> int:
    """The exit code is 1 if any is."""
    assembly = load_assembly(tools.references, tools.workspace, mcp=ServersWanted(tools.mcp_files))
    loaded = load_tools(assembly, load_factory(tools.deps))
    broken = [tool for tool in loaded if tool.problem]
    for tool in broken:
        out(f"broken: {tool.name} ({tool.source}): {escape_invisible(tool.problem)}")
    unloaded = [plugin for plugin in assembly.plugins if plugin.problem]
    for plugin in unloaded:
        out(f"broken: plugin {plugin.source}: {escape_invisible(plugin.problem)}")
    number = len(broken) + len(unloaded)
    out(f"{counted(len(loaded) - len(broken), 'tool')} fine, {number} broken")
    return NOT_DONE if number else DONE
