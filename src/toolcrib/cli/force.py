"""What is in force in a workspace: rules, autonomy, limits and kept approvals, and the line that says so."""

from __future__ import annotations

import asyncio
import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.access import Reach
from toolcrib.call import CallKey, ToolCall
from toolcrib.cli.audit import state_folder
from toolcrib.cli.console import Problem, say
from toolcrib.cli.shown import on_one_line
from toolcrib.command.sandbox.files.own_files import own_files, own_program_in
from toolcrib.errors import ToolcribError
from toolcrib.prepared import Ready, Refused, ResolvedTool
from toolcrib.rules import Limit, NotThere, PathPattern, Rule, RuleError, RuleFile, RulePolicy, load_rules
from toolcrib.rules.approvals import ApprovalStore
from toolcrib.rules.file import lowest
from toolcrib.rules.unmatched import unmatched_rules
from toolcrib.toolbox.policy import Autonomy, AutonomyPolicy, PolicyRequest, Verb
from toolcrib.toolbox.prepare import Arguments, call_effect, decode
from toolcrib.toolbox.resolve import resolve
from toolcrib.tools.builtin import CLASSES
from toolcrib.tools.fetch import Fetch

if TYPE_CHECKING:
    from toolcrib.command.sandbox import Sandbox
    from toolcrib.rules.trust import ProjectRules
    from toolcrib.toolbox import Toolbox

FLAG = "--autonomy"
BY_DEFAULT = "the default"
READERS = ("read_file", "grep", "glob", "list_dir")
WRITERS = ("write_file", "edit_file", "delete*")
NO_LETTERS = re.compile(r"[\\{}~]")  # what means something else in a pattern


@dataclass(frozen=True, slots=True)
class Force:
    """What decides in a workspace. `why` says where the autonomy comes from, `files` which rules count."""

    policy: AutonomyPolicy | RulePolicy
    autonomy: Autonomy
    why: str
    files: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = ()

    def line(self, sandbox: Sandbox | None, workspace: Path) -> str:
        """All of it, for whoever starts a run."""
        parts = [f"autonomy {self.autonomy} ({self.why})", f"rules: {', '.join(self.files) or 'none'}"]
        if sandbox is not None:
            parts.append(f"sandbox: {sandbox_in_words(sandbox)}")
        parts.append(approvals_in_words(workspace))
        return on_one_line("; ".join(parts))


def config_folder() -> Path:
    """Where a user's own settings lie."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "toolcrib"


def approval_store() -> ApprovalStore:
    """The user's approvals that outlast a run."""
    return ApprovalStore(state_folder() / "approvals.json")


def rules_file(named: Path | None) -> RuleFile | None:
    """The rules that count: a file that was named, or the user's own. Raises Problem for one that is wrong."""
    path = named or config_folder() / "policy.toml"
    if named is None and not path.is_file():
        return None
    try:
        return load_rules(path)
    except RuleError as problem:
        raise Problem(str(problem)) from problem
    except OSError as problem:
        raise Problem(f"{path} cannot be read: {problem.strerror or problem}") from problem


def in_force(
    named: Path | None, autonomy: str | None, workspace: Path, box: Toolbox, kept: Sequence[Path] = ()
) -> Force:
    """The rules that were named, or the user's own, narrowed by a trusted project's; the lowest autonomy of all.

    `box` has the tools; `kept` are files that a person named for us to go by. Raises Problem.
    """
    from toolcrib.cli.trust import project_in

    file, project = rules_file(named), project_in(workspace)
    said = {FLAG: Autonomy(autonomy) if autonomy is not None else None}
    files: list[str] = []
    limits: tuple[Limit, ...] = ()
    policy: AutonomyPolicy | RulePolicy = AutonomyPolicy(autonomy or Autonomy.SUPERVISED)
    if file is not None:
        note_untried(file, box)
        policy = file.policy(autonomy)
        said[Path(file.path).name] = file.autonomy
        files.append(f"{_from_home(file.path)} ({counts(file)})")
        limits += file.limits
    if project is not None:
        note_untried(project.rules, box)
        policy = project.restricted(policy if isinstance(policy, RulePolicy) else RulePolicy(policy.autonomy))
        said["the project"] = project.rules.autonomy
        files.append(f"{project.rules.path} of the project ({_narrowing(project)})")
        limits += project.rules.limits
    kept = [*kept, *([] if named is None else [named])]
    word, why = _autonomy(said)
    return Force(held_to(policy, workspace, kept), word, why, tuple(files), limits)


def _autonomy(said: dict[str, Autonomy | None]) -> tuple[Autonomy, str]:
    """The lowest autonomy that was said, and by whom; with those who said another."""
    words = {by: word for by, word in said.items() if word is not None}
    if not words:
        return Autonomy.SUPERVISED, BY_DEFAULT
    least = lowest(*words.values())
    by = next(by for by, word in words.items() if word is least)
    others = [f"{other} says {word}" for other, word in words.items() if word is not least]
    return least, f"{by}, while {' and '.join(others)}" if others else by


def note_untried(file: RuleFile, box: Toolbox) -> None:
    """Try the examples of rules; say which could not be tried, and which rules hold for nothing. Raises Problem."""
    untried = tried(file, box)
    if untried:
        names = ", ".join(dict.fromkeys(on_one_line(text.split()[0], 40) for _, text in untried))
        number = len(untried)
        say(
            f"note: {file.path}: {number} example{'s' * (number != 1)} of tools that are not there now "
            f"({names}) {'was' if number == 1 else 'were'} not tried"
        )
    for line in stray(file, box):
        say(f"note: {line}")


def tried(file: RuleFile, box: Toolbox) -> tuple[tuple[int, str], ...]:
    """Try each rule on its own examples; those that could not be tried, with their lines. Raises Problem."""
    try:
        return file.check(lambda call: asyncio.run(case_of(box, call)))
    except RuleError as problem:
        raise Problem(on_one_line(str(problem))) from problem


def stray(file: RuleFile, box: Toolbox) -> list[str]:
    """What the rules of a file are about and no tool or server is called."""
    tools, servers = asyncio.run(_names(box))
    return [on_one_line(line) for line in unmatched_rules(file.rules, file.limits, tools, servers)]


async def _names(box: Toolbox) -> tuple[set[str], set[str]]:
    """The tools and servers that there are, and the built-in tools that are not there now."""
    names = {tool.facts.name for tool in (*CLASSES, Fetch)}
    servers: set[str] = set()
    for name in await box.registry.all_names():
        names.add(name)
        entry = await box.registry.entry(name)
        facts = getattr(entry.supplied, "facts", None) if entry is not None else None
        servers.add(getattr(facts, "server", ""))
    return names, servers - {""}


async def read_call(box: Toolbox, call: ToolCall) -> tuple[ResolvedTool, Arguments]:
    """The tool of a call and its arguments. Raises NotThere, or ToolcribError for a call that cannot be made."""
    bound = await resolve(box, call, CallKey("policy", 0, 0), None, None, None)
    if isinstance(bound, Refused):
        known = await box.registry.entry(call.name) is not None
        raise (ToolcribError if known else NotThere)(bound.result.text)
    arguments = decode(call.name, call.arguments, bound.definition, None)
    if not isinstance(arguments, tuple):
        raise ToolcribError(arguments.text)
    return bound, arguments


async def case_of(
    box: Toolbox, call: ToolCall, *, tainted: bool = False, said: Sequence[str] = ()
) -> PolicyRequest:
    """What a policy would decide on. Raises as `read_call` does.

    `tainted` is a run that took in something from outside before, `said` what its user said.
    """
    bound, (params, json, edits) = await read_call(box, call)
    definition = bound.definition
    effect = definition.facts.effect if definition.effect_for is None else call_effect(bound, params)
    ready = Ready(call, CallKey("policy", 0, 0), json, effect, edits, "", bound, params)
    taint = frozenset({"something from outside"} if tainted else ())
    return PolicyRequest(definition.facts, effect, ready, taint=taint, user_texts=tuple(said))


def held_to(
    policy: AutonomyPolicy | RulePolicy, workspace: Path, kept: Sequence[Path] = ()
) -> AutonomyPolicy | RulePolicy:
    """A policy for a workspace: rules for paths in full mean files there too, and what is our own there is left alone.

    `kept` are files that a person named for us to go by, such as rules and transcripts.
    """
    root = os.path.realpath(workspace)
    changes = frozenset({Reach.WRITE, Reach.DELETE})
    own = own_files()
    rules = [
        _withheld(root, own, "rules and approvals are a person's to change", changes),
        _withheld(root, own, "rules, approvals and secrets are a person's", frozenset({Reach.READ}), READERS),
        _withheld(root, [os.path.realpath(path) for path in kept], "this run goes by it", changes, WRITERS),
        _withheld(root, own_program_in(root), "it is the program that runs this", changes, WRITERS),
    ]
    inside = [rule for rule in rules if rule is not None]
    if isinstance(policy, RulePolicy):
        policy = policy.within(workspace)
    elif inside:
        policy = RulePolicy(policy.autonomy)
    return policy.restricted(inside) if inside and isinstance(policy, RulePolicy) else policy


def _withheld(
    root: str, places: Sequence[str], reason: str, reach: frozenset[Reach], tools: tuple[str, ...] = ()
) -> Rule | None:
    """The rule about those of some places that lie in a workspace; without tools for all of them."""
    inside = [path for path in places if path != root and Path(path).is_relative_to(root)]
    if not inside:
        return None
    names = (glob.escape(os.path.relpath(path, root)) for path in inside)
    paths = tuple(PathPattern(f"./{NO_LETTERS.sub('?', name)}") for name in names)
    return Rule(verb=Verb.DENY, name="our own files", reason=reason, tools=tools, paths=paths, reach=reach)


def counts(file: RuleFile) -> str:
    """How many rules and limits a file has."""
    limits = f", {counted(len(file.limits), 'limit')}" if file.limits else ""
    return f"{counted(len(file.rules), 'rule')}{limits}"


def _narrowing(project: ProjectRules) -> str:
    limits = f", {counted(len(project.rules.limits), 'limit')}" if project.rules.limits else ""
    return f"{counted(len(project.narrowing), 'rule')}{limits}"


def counted(number: int, word: str) -> str:
    """A number of things: 1 rule, 2 rules."""
    return f"{number:,} {word}{'s' * (number != 1)}"


def sandbox_in_words(sandbox: Sandbox) -> str:
    """Which sandbox commands run in, and at what level."""
    report, level = sandbox.report(), sandbox.level
    if not report.confines:
        return f"{report.backend}, nothing limits commands"
    network = ", ".join(level.hosts) if level.hosts else f"network {level.network}"
    return f"{report.backend}, {level.files}, {network}"


def approvals_in_words(workspace: Path) -> str:
    """How many kept approvals count in a workspace."""
    try:
        kept = approval_store().all()
    except (OSError, ToolcribError) as problem:
        return f"kept approvals are not used: {problem}"
    project = str(workspace.resolve())
    number = sum(item.where in ("", project) for item in kept)
    return (
        f"{counted(number, 'kept approval')} {'counts' if number == 1 else 'count'}"
        if number
        else "no kept approvals"
    )


def _from_home(path: str) -> str:
    home = str(Path.home())
    return f"~{path.removeprefix(home)}" if path.startswith(f"{home}/") else path
