"""The settings that count in a workspace: rules, autonomy, limits and kept approvals, and a line that names them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.cli.console import Problem, say
from toolcrib.cli.own_files import protect_own_files
from toolcrib.cli.policy_options import PolicyOptions
from toolcrib.cli.rule_checks import check_notes
from toolcrib.cli.sandbox_options import SandboxOptions
from toolcrib.cli.user_files import approval_store, checkpoints_of, rules_file, trust_store, users_rules
from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolcribError
from toolcrib.rules import Limit, RuleFile, RulePolicy
from toolcrib.rules.policy import lowest_autonomy
from toolcrib.rules.trust import KEEP_THE_RULES, PLACE, ProjectRules, project_rules
from toolcrib.toolbox.policy import Autonomy, AutonomyPolicy, Covers
from toolcrib.visible import counted, on_one_line

if TYPE_CHECKING:
    from toolcrib.command.sandbox import Sandbox
    from toolcrib.toolbox import Toolbox

FLAG = "--autonomy"
BY_DEFAULT = "the default"
DEFAULT_OF_RUNS = Autonomy.SANDBOXED
NO_CHECKPOINTS = "no checkpoint is taken, so nothing could be undone"


@dataclass(frozen=True, slots=True)
class SettingsInEffect:
    """The rules and settings that decide about calls in a workspace.

    `autonomy_from` says who set the autonomy, `rule_files` which files of rules count.
    """

    policy: AutonomyPolicy | RulePolicy
    autonomy: Autonomy
    autonomy_from: str
    rule_files: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = ()

    def line(self, sandbox: Sandbox, workspace: Path) -> str:
        """All settings on one line, for the person who starts a run."""
        parts = [
            f"autonomy {self.autonomy} ({self.autonomy_from})",
            f"rules: {', '.join(self.rule_files) or 'none'}",
            f"sandbox: {sandbox_summary(sandbox)}",
            approvals_summary(workspace),
        ]
        return on_one_line("; ".join(parts))


def settings_in_effect(
    options: PolicyOptions,
    workspace: Path,
    box: Toolbox,
    named: Sequence[Path] = (),
    *,
    default: Autonomy = Autonomy.SUPERVISED,
    why_not_sandboxed: Callable[[], str] = lambda: NO_CHECKPOINTS,
) -> SettingsInEffect:
    """Join the rules that were named, or the user's own, with those of a trusted project.

    A project can only narrow, and the lowest autonomy of all counts. `box` has the tools, to try the examples of
    rules with; `named` are files that the run itself goes by. `default` counts where neither the option nor the user's
    rules set an autonomy. Where `why_not_sandboxed` gives a reason, autonomy "sandboxed" counts as "supervised". What a
    person should know of the rules is said on stderr. Raises Problem for rules that cannot be used.
    """
    file, project = rules_file(options.policy), trusted_rules(workspace)
    chosen = options.autonomy or (file.autonomy if file is not None else None)
    autonomies = {FLAG: options.autonomy, BY_DEFAULT: None if chosen else default}
    rule_files: list[str] = []
    limits: tuple[Limit, ...] = ()
    policy: AutonomyPolicy | RulePolicy = AutonomyPolicy(options.autonomy or default)
    if file is not None:
        _say_notes(file, box)
        policy = file.policy(options.autonomy or (None if chosen else default))
        autonomies[Path(file.path).name] = file.autonomy
        rule_files.append(f"{_below_home(file.path)} ({rules_summary(file)})")
        limits += file.limits
    if project is not None:
        _say_notes(project.rules, box)
        policy = project.restricted(_rules_of(policy))
        autonomies["the project"] = project.rules.autonomy
        number = _counts(len(project.narrowing), len(project.rules.limits))
        rule_files.append(f"{project.rules.path} of the project ({number})")
        limits += project.rules.limits
    elif _is_trusted(workspace):
        policy = _rules_of(policy).restricted([KEEP_THE_RULES])
    if options.policy is not None:
        named = [*named, options.policy]
    autonomy, autonomy_from = _lowest_autonomy(autonomies)
    if autonomy is Autonomy.SANDBOXED and (why := why_not_sandboxed()):
        autonomy, autonomy_from = Autonomy.SUPERVISED, f"instead of sandboxed, since {why}; {autonomy_from}"
        policy = _rules_of(policy).restricted(autonomy=autonomy)
    policy = protect_own_files(policy, workspace, named)
    return SettingsInEffect(policy, autonomy, autonomy_from, tuple(rule_files), limits)


def has_rules(options: PolicyOptions, workspace: Path) -> bool:
    """Whether there are rules, trusted or not, with examples of calls to try."""
    return options.policy is not None or users_rules().is_file() or (workspace / PLACE).exists()


def settings_as_in_a_run(
    options: PolicyOptions, workspace: Path, box: Toolbox, sandbox: SandboxOptions
) -> SettingsInEffect:
    """The settings that a run would have here, with these options of the sandbox."""

    from toolcrib.command.sandbox import why_not_contained

    def why_not_sandboxed() -> str:
        uncontained = why_not_contained(sandbox.choose(workspace))
        return uncontained or ("" if covers_of(workspace) is not None else NO_CHECKPOINTS)

    return settings_in_effect(
        options, workspace, box, default=DEFAULT_OF_RUNS, why_not_sandboxed=why_not_sandboxed
    )


def covers_of(workspace: Path) -> Covers | None:
    """What a checkpoint that a run takes here would cover; None where none can be kept."""
    try:
        return checkpoints_of(workspace).covers
    except Problem:
        return None


def trusted_rules(workspace: Path) -> ProjectRules | None:
    """The rules of the project in the workspace if they are trusted; if they are not, a line on stderr says so."""
    try:
        found = project_rules(workspace)
        if found is None:
            return None
        trusted = trust_store().find(found.project)
    except ToolcribError as problem:
        say(f"{PLACE} of this folder is not used: {on_one_line(str(problem))}")
        return None
    if trusted is None or trusted.sha256 != found.sha256:
        why = "it changed since you trusted it" if trusted is not None else "nobody trusted it"
        folder = on_one_line(str(workspace))
        say(f"{PLACE} of this folder is not used: {why}; to read it: toolcrib trust {folder}")
        return None
    if found.widening:
        names = ", ".join(on_one_line(rule.name, 40) for rule in found.widening)
        say(f"{PLACE}: a project may not allow anything; these rules are not used: {names}")
    return found


def _rules_of(policy: AutonomyPolicy | RulePolicy) -> RulePolicy:
    return policy if isinstance(policy, RulePolicy) else RulePolicy(policy.autonomy)


def _is_trusted(workspace: Path) -> bool:
    """Whether a person trusted some file of the project, which a run must then not change."""
    project = os.path.realpath(workspace)
    try:
        return any(item.project == project for item in trust_store().all())
    except ToolcribError:
        return False


def rules_summary(file: RuleFile) -> str:
    """How many rules and limits a file has."""
    return _counts(len(file.rules), len(file.limits))


def sandbox_summary(sandbox: Sandbox) -> str:
    """Which sandbox commands run in, and at what level."""
    report, level = sandbox.report(), sandbox.level
    if not report.confines:
        return f"{report.backend}, nothing limits commands"
    network = ", ".join(level.hosts) if level.hosts else f"network {level.network}"
    return f"{report.backend}, {level.files}, {network}"


def approvals_summary(workspace: Path) -> str:
    """How many kept approvals count in a workspace."""
    try:
        kept = approval_store().all()
    except (OSError, ToolcribError) as problem:
        return f"kept approvals are not used: {problem}"
    project = str(workspace.resolve())
    number = sum(item.where in ("", project) for item in kept)
    if not number:
        return "no kept approvals"
    return f"{counted(number, 'kept approval')} {'counts' if number == 1 else 'count'}"


def _say_notes(file: RuleFile, box: Toolbox) -> None:
    for note in check_notes(file, box):
        say(f"note: {note}")


def _lowest_autonomy(autonomies: dict[str, Autonomy | None]) -> tuple[Autonomy, str]:
    """The lowest autonomy that was set, and by whom; with those who set another."""
    given = {who: autonomy for who, autonomy in autonomies.items() if autonomy is not None}
    least = lowest_autonomy(*given.values())
    by = next(who for who, autonomy in given.items() if autonomy is least)
    others = [f"{who} says {autonomy}" for who, autonomy in given.items() if autonomy is not least]
    return least, f"{by}, while {' and '.join(others)}" if others else by


def _counts(rules: int, limits: int) -> str:
    return counted(rules, "rule") + (f", {counted(limits, 'limit')}" if limits else "")


def _below_home(path: str) -> str:
    """A path with `~` for the home folder."""
    home = str(Path.home())
    return f"~{path.removeprefix(home)}" if path.startswith(f"{home}/") else path
