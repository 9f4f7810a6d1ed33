"""What a person works with by default: the built-in tools on a workspace, and what is added to them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.plugins import Plugin, PluginError, entry_points, load_named
from toolcrib.toolset import ToolLike, Toolset, filtered, is_toolset, name_of

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.command.sandbox import Level, Sandbox
    from toolcrib.toolbox import Toolbox
    from toolcrib.tools import Workspace

BUILT_IN = "built-in"


def default_tools(
    workspace: Workspace | str | os.PathLike[str],
    *,
    sandbox: Sandbox | None = None,
    level: Level | None = None,
) -> list[ToolLike]:
    """The built-in tools, confined to a workspace: a folder that exists, or a Workspace.

    `sandbox` and `level` are `workspace_tools`'s: what commands run in, or the level of the best that works here.

    >>> from toolcrib import Toolbox
    >>> box = Toolbox(builtin=default_tools("."))
    """
    from toolcrib.tools import Workspace, workspace_tools

    made = workspace if isinstance(workspace, Workspace) else Workspace(workspace)
    return list(workspace_tools(made, sandbox=sandbox, level=level))


@dataclass(slots=True)
class Assembly:
    """Tools by who supplies them. Tools that were named may shadow built-in ones; installed plugins may not.

    `sources` says where the tools come from, by name; `notes` are what a person should know of it.
    """

    named: list[ToolLike | Toolset] = field(default_factory=list)
    builtin: list[ToolLike] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    plugins: list[Plugin] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def toolbox(self, **options: Any) -> Toolbox:
        """A toolbox of these tools; `options` are `Toolbox`'s."""
        from toolcrib.toolbox import Toolbox

        return Toolbox(self.named, builtin=self.builtin, **options)


def assemble(
    workspace: Workspace | str | os.PathLike[str],
    *,
    named: Iterable[str] = (),
    plugins: bool = True,
    sandbox: Sandbox | None = None,
    level: Level | None = None,
) -> Assembly:
    """All tools that a person has: `named` references ("module:attribute"), installed plugins, built-in ones.

    `sandbox` and `level` are `default_tools`'s; plugins and named tools are not confined by us.
    Raises PluginError for a named reference that cannot be loaded; a broken installed plugin becomes a note.
    """
    found = Assembly(builtin=default_tools(workspace, sandbox=sandbox, level=level))
    found.sources = {name_of(tool): BUILT_IN for tool in found.builtin}
    claimed: dict[str, ToolLike] = {}
    for reference in named:
        for tool in load_named(reference).tools:
            if is_toolset(tool):
                found.named.append(tool)
                continue
            name = name_of(tool)
            if name in claimed and claimed[name] is not tool:
                other = found.sources[name]
                both = f"{reference} and {other} both supply a tool"
                raise PluginError(
                    f"{both if other != reference else f'{reference} supplies two tools'} named {name}; "
                    "name only one of them, as module:attribute"
                )
            if name in claimed:
                continue
            found.named.append(tool)
            claimed[name], found.sources[name] = tool, reference
    if plugins:
        found.plugins = entry_points()
        for plugin in found.plugins:
            _add_installed(found, plugin)
    return found


def _add_installed(found: Assembly, plugin: Plugin) -> None:
    if plugin.problem:
        found.notes.append(f"plugin {plugin.source} was left out: {plugin.problem}")
    for tool in plugin.tools:
        if is_toolset(tool):
            found.named.append(filtered(tool, lambda name: name not in found.sources))
            continue
        name = name_of(tool)
        if name in found.sources:
            found.notes.append(
                f"plugin {plugin.source} was left out where it supplies {name}: "
                f"{found.sources[name]} has that name. To use it instead, name it with --from"
            )
        else:
            found.builtin.append(tool)
            found.sources[name] = plugin.source
