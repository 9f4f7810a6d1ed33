"""The tools of a person: the built-in ones on a workspace, those of installed plugins, and those that a user names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from toolcrib.dataclass import dataclass, field
from toolcrib.errors import ToolDefinitionError
from toolcrib.plugins import Plugin, PluginError, load_named
from toolcrib.settings.catalogue import CATALOGUE
from toolcrib.toolset import AnyTool, ToolLike, Toolset, check_constructor, filtered, is_toolset, name_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from toolcrib.agent.delegation import Delegate
    from toolcrib.command.sandbox import Level, Sandbox
    from toolcrib.settings.model import ToolSettings
    from toolcrib.toolbox import Toolbox
    from toolcrib.toolbox.options import Deps, ToolboxOptions
    from toolcrib.toolbox.policy import Policy
    from toolcrib.tools.backends import Backend
    from toolcrib.tools.memory.opening import Stores
    from toolcrib.tools.skills import SkillFiles

__all__ = ["Assembly", "all_tools", "assemble", "default_tools"]

BUILT_IN = "built-in"
PATCHES = {"always": True, "never": False, "by_model": None}


def default_tools(
    files: Backend | str | os.PathLike[str],
    policy: Policy | str | None = None,
    *,
    sandbox: Sandbox | None = None,
    level: Level | None = None,
) -> list[ToolLike]:
    """The built-in tools that need nothing but files: a folder that exists, or a backend, which confines them.

    Commands run in `sandbox`, or else in the best sandbox of this `level` that works here. With a `CommandBackend`
    they run where its files are, without these two. Where commands cannot run, only the tools for files are made.
    With a `policy`, which may be an autonomy's name, tools that it can never allow are left out, and the others hold
    to it also when they are called without a toolbox.

    >>> from toolcrib import Toolbox
    >>> box = Toolbox(builtin=default_tools("."))
    """
    return all_tools(None, files, policy, sandbox=sandbox, level=level)


def all_tools(
    settings: ToolSettings | Mapping[str, Any] | None,
    files: Backend | str | os.PathLike[str],
    policy: Policy | str | None = None,
    *,
    sandbox: Sandbox | None = None,
    level: Level | None = None,
    model: str = "",
    memory: Stores | None = None,
    skills: Iterable[str | os.PathLike[str] | SkillFiles] = (),
    asks: bool = False,
    agents: Mapping[str, Delegate] | None = None,
) -> list[ToolLike]:
    """The built-in tools that the settings (those of `toolcrib.toml`, or None for the defaults) switch on.

    Tools for memory come with a `memory`, `skill` with folders of `skills`, `ask_user` where somebody can be asked
    (`asks`), and the tools that hand out tasks with `agents`. `model` is the model's name, by which
    `edits.patches = "by_model"` decides. The rest is as for `default_tools`. Raises pydantic.ValidationError for an
    invalid mapping.
    """
    from toolcrib.settings.model import ToolSettings
    from toolcrib.tools import Workspace
    from toolcrib.tools.builtin import workspace_tools

    chosen = settings if isinstance(settings, ToolSettings) else ToolSettings.model_validate(settings or {})
    made = Workspace(files) if isinstance(files, str | os.PathLike) else files

    def on(group: str) -> bool:
        return any(chosen.switch(row.name) for row in CATALOGUE if row.group == group)

    tools: list[AnyTool] = list(
        workspace_tools(
            made,
            sandbox=sandbox,
            level=level,
            shell_kind=chosen.shell.kind,
            passthrough=chosen.shell.passthrough,
            model=model,
            patches=PATCHES[chosen.edits.patches],
            refuse_broken_syntax=chosen.edits.broken_syntax == "refuse",
            wanted=chosen.switch,
        )
    )
    if memory is not None and on("memory"):
        from toolcrib.tools.memory import Forget, MemoryFiles, Recall, Remember
        from toolcrib.tools.memory.opening import opened_once

        store = opened_once(memory)
        tools += [Remember(store), Recall(store), Forget(store), MemoryFiles(store)]
    if chosen.switch("todo_write"):
        from toolcrib.tools.todo_write import TodoWrite

        tools.append(TodoWrite())
    if asks:
        from toolcrib.tools.ask_user import AskUser

        tools.append(AskUser())
    if (folders := tuple(skills)) and on("skills"):
        from toolcrib.tools.skills import SkillTool

        tools.append(SkillTool(folders))
    if agents is not None and on("delegation"):
        from toolcrib.agent.delegation import delegation_tools

        tools += delegation_tools(agents, rows=True, max_depth=chosen.delegation.max_depth)
    if chosen.switch("batch"):
        from toolcrib.tools.batch import Batch

        tools.append(Batch())
    return list(_bind_all(policy, [tool for tool in tools if chosen.switch(tool.facts.name)]))


def _bind_all(policy: Policy | str | None, tools: list[AnyTool]) -> list[AnyTool]:
    """The tools that a policy can allow at all, each bound to it."""
    if policy is None:
        return tools
    from toolcrib.bound_tools import bind
    from toolcrib.tool import Tool
    from toolcrib.toolbox.policy import as_policy

    held_to = as_policy(policy)
    shown = [tool for tool in tools if held_to.shows(tool.facts)]
    for tool in shown:
        if isinstance(tool, Tool):  # delegation tools are functions: they need a toolbox anyway
            bind(tool, held_to)
    return shown


@dataclass(slots=True)
class Assembly:
    """The tools of a project, grouped by who supplies them.

    A tool that was `named` replaces a built-in tool of its name. `builtin` are the built-in tools and those of
    plugins, which replace none. `sources` says where each tool comes from; `notes` tell a person which tools are
    missing, and why. `broken` says it of the tools that no object can be made of.
    """

    named: list[ToolLike | Toolset] = field(default_factory=list)
    builtin: list[ToolLike] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    plugins: list[Plugin] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)

    def toolbox(self, **options: Unpack[ToolboxOptions[Deps]]) -> Toolbox[Deps]:
        """A toolbox of these tools; `options` are those of `Toolbox`."""
        from toolcrib.toolbox import Toolbox

        options["builtin"] = self.builtin
        return Toolbox(self.named, **options)

    def add(self, tool: ToolLike, place: list[Any], source: str) -> None:
        """Add a tool to one of the lists. Where no object can be made of it, there is no tool of that name."""
        name = name_of(tool)
        self.sources[name] = source
        try:
            check_constructor(tool)
        except ToolDefinitionError as problem:
            self.broken[name] = str(problem)
            self.builtin = [other for other in self.builtin if name_of(other) != name]
            self.notes.append(f"{source}: {problem}")
        else:
            place.append(tool)


def assemble(
    builtin: Iterable[ToolLike], *, named: Iterable[str] = (), plugins: Iterable[Plugin] = ()
) -> Assembly:
    """Built-in tools, those of plugins, and those that references ("module:attribute") name.

    Raises PluginError for a reference that cannot be loaded; a plugin that is broken becomes a note.
    """
    found = Assembly(builtin=list(builtin), plugins=list(plugins))
    found.sources = {name_of(tool): BUILT_IN for tool in found.builtin}
    by_name: dict[str, ToolLike] = {}
    for reference in named:
        _add_named(found, reference, by_name)
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
            by_name[name] = tool
            found.add(tool, found.named, reference)
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
            found.add(tool, found.builtin, plugin.source)
