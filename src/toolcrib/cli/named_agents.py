"""The agents that a run may hand tasks to: those that `toolcrib.toml` names, and the helper."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from pathlib import Path

from toolcrib.agent import Agent, Budget
from toolcrib.agent.delegation import Delegate
from toolcrib.assembly import Assembly
from toolcrib.cli.console import Problem, say
from toolcrib.cli.named_model import ModelLacks, usable_model
from toolcrib.cli.tool_settings import read_user_text, why_not_trusted
from toolcrib.dataclass import dataclass, replace
from toolcrib.errors import ToolcribError
from toolcrib.models import Model
from toolcrib.rules.name_patterns import WILDCARD, any_name_matches, selected
from toolcrib.rules.project_files import FOLDER, read_project_file
from toolcrib.settings.catalogue import DELEGATION
from toolcrib.settings.joined import JoinedSettings, NamedAgent
from toolcrib.toolbox import Toolbox
from toolcrib.toolbox.options import AutonomyName
from toolcrib.toolset import filtered, is_toolset, name_of
from toolcrib.visible import on_one_line

HELPER = "Does a part of the work with the same tools. It has not seen this conversation: say all that it must know."


@dataclass(frozen=True, slots=True)
class OuterRun:
    """The run that hands out tasks: its workspace, its tools, its model, and the instructions of all its agents.

    An agent with instructions of its own has these after `workspace_instructions`, in place of `instructions`.
    """

    workspace: Path
    assembly: Assembly
    model: Model
    model_name: str
    instructions: str
    workspace_instructions: str


def agents_of_run(run: OuterRun, joined: JoinedSettings) -> dict[str, Delegate]:
    """The agents by name. One that cannot be used is left out, and a line on stderr says why."""
    agents: dict[str, Delegate] = {}
    if joined.settings.delegation.helper:
        agent = Agent(run.model, toolbox=_toolbox(run.assembly, ()), instructions=run.instructions)
        agents["helper"] = Delegate(agent, HELPER)
    for named in joined.agents:
        try:
            agents[named.name] = _delegate(run, joined, named)
        except (Problem, ToolcribError) as problem:
            agents.pop(named.name, None)  # a helper that the user replaced
            place = named.file.place(named.key)
            say(on_one_line(f"note: the agent {named.name} is left out ({place}): {problem}"))
    return agents


def agents_left_out(joined: JoinedSettings, workspace: Path) -> Iterator[tuple[str, bool]]:
    """Why agents would be left out of a run; and whether the settings are wrong, or only their model lacks a key."""
    for named in joined.agents:
        try:
            _text_of(named.settings.instructions_file, named, workspace)
            if named.settings.model:
                usable_model(named.settings.model)
        except (Problem, ToolcribError) as problem:
            yield (
                f"{named.file.place(named.key)}: {named.key}: {problem}",
                not isinstance(problem, ModelLacks),
            )


def _delegate(run: OuterRun, joined: JoinedSettings, named: NamedAgent) -> Delegate:
    settings = named.settings
    own = settings.instructions or _text_of(settings.instructions_file, named, run.workspace)
    for note in _unknown_tools(run.assembly, settings.tools):
        say(f"note: {named.key}.tools ({named.file.place(f'{named.key}.tools')}): {note}")
    agent = Agent(
        _model(run, named, joined.settings.delegation.models),
        toolbox=_toolbox(run.assembly, settings.tools, settings.autonomy),
        instructions=f"{run.workspace_instructions}\n\n{own}" if own else run.instructions,
        max_turns=settings.max_turns,
        budget=Budget(tokens=settings.budget_tokens, cost=settings.budget_cost),
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
    )
    return Delegate(agent, settings.description)


def _model(run: OuterRun, named: NamedAgent, allowed: Collection[str]) -> Model:
    """The model of an agent. A project names only models that the user allowed: they cost money, and read the files."""
    wanted = named.settings.model
    if not wanted or wanted == run.model_name:
        return run.model
    if named.file.of_project and not all(any_name_matches(allowed, one.strip()) for one in wanted.split(",")):
        say(
            f"note: the agent {named.name} of the project works with the model of the run, since your own settings do "
            f"not allow projects the model {on_one_line(wanted)}; to allow it, add it to models in [delegation]"
        )
        return run.model
    return usable_model(wanted)


def _text_of(file: str, named: NamedAgent, workspace: Path) -> str:
    """The instructions in a file below the folder of the settings; "" for no file. Raises Problem or TrustError."""
    if not file:
        return ""
    if not named.file.of_project:
        text = read_user_text(Path(named.file.path).parent / file)
    else:
        found = read_project_file(workspace, f"{FOLDER}/{file}")
        if found is not None and (why := why_not_trusted(found)):
            raise Problem(f"{found.path}: {why}; to read it: toolcrib trust")
        text = None if found is None else found.text
    if text is None:
        raise Problem(f"instructions_file: there is no file {file}")
    return text


def _toolbox(assembly: Assembly, patterns: tuple[str, ...], autonomy: AutonomyName = "full") -> Toolbox:
    """The tools of the run that patterns select. The policy of the run holds for their calls, too."""

    def kept(name: str) -> bool:
        return selected(patterns, name) and (name not in DELEGATION or any_name_matches(patterns, name))

    builtin = [tool for tool in assembly.builtin if kept(name_of(tool))]
    named = [
        (filtered(tool, kept) if patterns else tool) if is_toolset(tool) else tool
        for tool in assembly.named
        if is_toolset(tool) or kept(name_of(tool))
    ]
    return replace(assembly, builtin=builtin, named=named).toolbox(autonomy=autonomy)


def _unknown_tools(assembly: Assembly, patterns: Collection[str]) -> Iterator[str]:
    """Notes for a person about names of tools that the run does not have, except those of toolsets."""
    if any(is_toolset(tool) for tool in assembly.named):
        return
    for pattern in patterns:
        name = pattern.removeprefix("!")
        if not WILDCARD.search(name) and name not in assembly.sources:
            near = get_close_matches(name, sorted(assembly.sources), n=3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            yield f"the run has no tool {name!r}{hint}"
