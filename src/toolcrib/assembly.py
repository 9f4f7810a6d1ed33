"""The tools of a person: the built-in ones on a workspace, those of installed plugins, and those that are named."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.plugins import Plugin, PluginError, installed_plugins, load_named
from toolcrib.toolset import ToolLike, Toolset, filtered, is_toolset, name_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from toolcrib.command.sandbox import Level, Sandbox
    from toolcrib.toolbox import Toolbox
    from toolcrib.toolbox.options import Deps, ToolboxOptions
    from toolcrib.tools import Workspace

__all__ = ["Assembly", "assemble", "default_tools"]

BUILT_IN = "built-in"


def default_tools(
    workspace: Workspace | str | os.PathLike[str],
    *,
    sandbox: Sandbox | None = None,
    level: Level | None = None,
) -> list[ToolLike]:
    """The built-in tools, confined to a workspace: a folder that exists, or a Workspace.

    Commands run in `sandbox`, or else in the best sandbox of this `level` that works here.

    >>> from toolcrib import Toolbox
    >>> box = Toolbox(builtin=default_tools("."))
    """
    from toolcrib.tools import Workspace, workspace_tools

    made = workspace if isinstance(workspace, Workspace) else Workspace(workspace)
    return list(workspace_tools(made, sandbox=sandbox, level=level))


@dataclass(slots=True)
class Assembly:
    """The tools of a project, grouped by who supplies them.

    A tool that was `named` replaces a built-in tool of its name. `builtin` are the built-in tools and those of
    plugins, which replace none. `sources` says where each tool comes from; `notes` tell a person which tools of
    plugins are missing, and why.
    """

    named: list[ToolLike | Toolset] = field(default_factory=list)
    builtin: list[ToolLike] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    plugins: list[Plugin] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def toolbox(self, **options: Unpack[ToolboxOptions[Deps]]) -> Toolbox[Deps]:
        """A toolbox of these tools; `options` are those of `Toolbox`."""
        from toolcrib.toolbox import Toolbox

        options["builtin"] = self.builtin
        return Toolbox(self.named, **options)


def assemble(
    workspace: Workspace | str | os.PathLike[str],
    *,
    named: Iterable[str] = (),
    plugins: bool = True,
    sandbox: Sandbox | None = None,
    level: Level | None = None,
) -> Assembly:
    """The built-in tools, those of installed plugins, and those that references ("module:attribute") name.

    `sandbox` and `level` hold for the built-in tools only, as for `default_tools`. Raises PluginError for a
    reference that cannot be loaded; an installed plugin that is broken becomes a note.
    """
    found = Assembly(builtin=default_tools(workspace, sandbox=sandbox, level=level))
    found.sources = {name_of(tool): BUILT_IN for tool in found.builtin}
    by_name: dict[str, ToolLike] = {}
    for reference in named:
        _add_named(found, reference, by_name)
    if plugins:
        found.plugins = installed_plugins()
        for plugin in found.plugins:
            _add_plugin(found, plugin)
    return found


def _add_named(found: Assembly, reference: str, by_name: dict[str, ToolLike]) -> None:
    """Add the tools behind a reference; `by_name` are the tools of all references so far."""
    for tool in load_named(reference).tools:
        if is_toolset(tool):
            found.named.append(tool)
            continue
        name = name_of(tool)
        if name not in by_name:
            found.named.append(tool)
            by_name[name], found.sources[name] = tool, reference
        elif by_name[name] is not tool:
            other = found.sources[name]
            both = f"{reference} and {other} both supply a tool"
            raise PluginError(
                f"{both if other != reference else f'{reference} supplies two tools'} named {name}; "
                "name only one of them, as module:attribute"
            )


def _add_plugin(found: Assembly, plugin: Plugin) -> None:
    """Add the tools of an installed plugin whose names are free; a note tells of the others."""
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
