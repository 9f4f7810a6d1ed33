"""The tools that a command has, loaded and compiled: yours, those of plugins, and the built-in ones."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolcrib.assembly import Assembly, assemble
from toolcrib.cli.collector import spare_loaded
from toolcrib.cli.console import Problem, quiet_logging, say, stdout_reserved
from toolcrib.cli.dependencies import Factory, dependencies
from toolcrib.cli.folder_tools import folder_plugins, skill_folders
from toolcrib.cli.mcp_servers import ServersWanted, toolset_of_servers
from toolcrib.cli.tool_settings import ToolsWanted, built_in_tools, settings_in_workspace
from toolcrib.dataclass import dataclass, replace
from toolcrib.plugins import PluginError, installed_plugins
from toolcrib.settings.catalogue import CATALOGUE
from toolcrib.toolset import ToolFactory, is_toolset, name_of
from toolcrib.visible import on_one_line

if TYPE_CHECKING:
    from toolcrib.command.sandbox import Sandbox
    from toolcrib.facts import Facts
    from toolcrib.settings.joined import JoinedSettings
    from toolcrib.spec import ToolSpec
    from toolcrib.tools import Workspace


@dataclass(slots=True)
class LoadedTool:
    """A tool as a person looks at it: where it comes from, and what it declares, or why it is broken."""

    name: str
    source: str
    facts: Facts | None = None
    spec: ToolSpec | None = None
    problem: str = ""

    @property
    def effect(self) -> str:
        """The tool's effect in a word."""
        return self.facts.effect.label if self.facts is not None else "?"


def load_assembly(
    references: Sequence[str],
    workspace: Path | Workspace,
    sandbox: Sandbox | None = None,
    wanted: ToolsWanted = ToolsWanted(),  # noqa: B008 - a frozen value
    mcp: ServersWanted = ServersWanted(),  # noqa: B008 - a frozen value
    joined: JoinedSettings | None = None,
    notes: bool = True,
) -> Assembly:
    """The tools of a command; with `notes`, stderr says what is left out. Raises Problem for what cannot be loaded.

    `joined` are the settings that count in the workspace, where the caller has read them.
    """
    quiet_logging()
    if isinstance(workspace, Path) and not workspace.is_dir():
        raise Problem(f"workspace: expected a folder that exists, got {workspace}")
    folder = workspace if isinstance(workspace, Path) else workspace.root.path
    joined = joined or settings_in_workspace(folder)
    builtin = built_in_tools(joined, workspace, sandbox, wanted, skill_folders(folder))
    spare_loaded()
    off = set(joined.settings.plugins.off)
    try:
        with stdout_reserved():
            plugins = installed_plugins() if joined.settings.plugins.installed else []
            plugins += folder_plugins(joined.settings, folder)
            assembly = assemble(
                builtin, named=references, plugins=[plugin.without(off) for plugin in plugins]
            )
    except PluginError as problem:
        raise Problem(str(problem)) from problem
    for note in assembly.notes if notes else ():
        say(f"note: {note}")
    servers = toolset_of_servers(folder, mcp, notes=notes)
    if servers is not None:
        assembly.named.append(servers)
    return assembly


def load_tools(assembly: Assembly, factory: Factory | None = None) -> list[LoadedTool]:
    """All tools, sorted by name, each compiled. What `factory` makes is handed to those that describe themselves."""

    async def load() -> list[LoadedTool]:
        async with dependencies(factory) as deps:
            return await _load(assembly, deps)

    with stdout_reserved():
        return asyncio.run(load())


def _problems_of_servers(assembly: Assembly) -> list[str]:
    """Why MCP servers of which a tool is wanted did not start."""
    from toolcrib.mcp.client.toolset import McpToolset

    toolsets = [one for one in assembly.named if isinstance(one, McpToolset)]
    return [on_one_line(status.problem) for one in toolsets for status in one.servers() if status.problem]


def load_tool(assembly: Assembly, name: str, factory: Factory | None = None) -> tuple[LoadedTool, ToolSpec]:
    """`load_tool_with` what a factory makes, in an event loop of its own."""

    async def load() -> tuple[LoadedTool, ToolSpec]:
        async with dependencies(factory) as deps:
            return await load_tool_with(deps, assembly, name)

    with stdout_reserved():
        return asyncio.run(load())


async def load_tool_with(deps: Any, assembly: Assembly, name: str) -> tuple[LoadedTool, ToolSpec]:
    """The tool of that name and its spec, described with these dependencies; of others, only toolsets are compiled.

    Raises Problem for a tool that is broken or does not exist.
    """
    tools = await _load(_alone(assembly, name), deps)
    for tool in tools:
        if tool.name == name:
            if tool.spec is None or tool.problem:
                raise Problem(f"{name} ({tool.source}) is broken: {tool.problem}", code=1)
            return tool, tool.spec
    if problems := _problems_of_servers(assembly):
        raise Problem(f"{name} cannot be called: {'; '.join(problems)}", code=1)
    if reason := why_not_there(name):
        raise Problem(f"there is no tool {name!r} here: {reason}")
    known = {tool.name for tool in tools} | assembly.sources.keys()
    near = get_close_matches(name, sorted(known), n=3, cutoff=0.5)
    if near:
        raise Problem(f"there is no tool {name!r}. Did you mean {' or '.join(near)}?")
    raise Problem(
        f"there is no tool {name!r}. `toolcrib tools list` shows all. Your own are loaded with --from MODULE:ATTRIBUTE"
    )


def why_not_there(name: str) -> str:
    """What a missing built-in tool needs; "" for any other name."""
    if name == "fetch":
        return "it needs the network: --allow-host HOST, or --network on"
    if name in ("apply_patch", "edit_file", "multi_edit"):
        return "models get apply_patch, or edit_file and multi_edit; patches in [edits] of toolcrib.toml says which"
    switch = f"{name} = true in [tools] of toolcrib.toml switches it on (see toolcrib config show)"
    return switch if any(row.name == name for row in CATALOGUE) else ""


def _alone(assembly: Assembly, name: str) -> Assembly:
    def may_be(tool: Any) -> bool:
        return is_toolset(tool) or name_of(tool) == name

    named, builtin = filter(may_be, assembly.named), filter(may_be, assembly.builtin)
    return replace(assembly, named=list(named), builtin=list(builtin))


async def _load(assembly: Assembly, deps: Any) -> list[LoadedTool]:
    tools: list[LoadedTool] = []
    async with assembly.toolbox(autonomy="full", deps=deps) as box:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a tool that is set aside is listed, with the reason
            tool_list = await box.tool_list()
        specs = {spec.name: spec for spec in tool_list.specs}
        for name in await box.names():
            tool = LoadedTool(
                name, assembly.sources.get(name, "toolset"), problem=tool_list.broken.get(name, "")
            )
            tools.append(tool)
            entry = await box.registry.entry(name)
            supplied: Any = entry.supplied if entry is not None else None
            tool.facts = getattr(supplied, "facts", None)
            if tool.facts is not None and tool.facts.server and tool.source == "toolset":
                tool.source = f"MCP server {tool.facts.server}"
            tool.spec = specs.get(name)
            if tool.spec is None and not tool.problem and not isinstance(supplied, ToolFactory):
                tool.spec = supplied.definition().spec  # a deferred tool is not listed for the model
    tools += (LoadedTool(name, assembly.sources[name], problem=why) for name, why in assembly.broken.items())
    return sorted(tools, key=lambda tool: tool.name)
