"""`toolcrib policy explain | test | check` and `toolcrib approvals list | revoke`."""

from __future__ import annotations

import asyncio
import glob
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolcrib.access import Reach
from toolcrib.call import CallKey, Ready, Refused, ToolCall
from toolcrib.cli.audit import state_folder
from toolcrib.cli.main import Problem
from toolcrib.cli.shown import on_one_line
from toolcrib.cli.tools import assembled, out, say
from toolcrib.errors import ErrorCode, ToolcribError
from toolcrib.rules import PathPattern, Rule, RuleError, RuleFile, RulePolicy, load_rules
from toolcrib.rules.approvals import ApprovalStore
from toolcrib.rules.file import call_from
from toolcrib.sandbox.own import own_places, runs_us
from toolcrib.toolbox.grants import Approval
from toolcrib.toolbox.policy import AutonomyPolicy, Case, Decision, Verb

if TYPE_CHECKING:
    from toolcrib.toolbox import Toolbox

READERS = ("read_file", "grep", "glob", "list_dir")
WRITERS = ("write_file", "edit_file", "delete*")
NO_LETTERS = re.compile(r"[\\{}~]")  # what means something else in a pattern
EVERYTHING = "full"  # the autonomy under which a call is only prepared, so that the rules alone decide


def config_folder() -> Path:
    """Where a user's own settings lie."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "toolcrib"


def approval_store() -> ApprovalStore:
    """The user's approvals that outlast a run."""
    return ApprovalStore(state_folder() / "approvals.json")


def policy_file(named: Path | None) -> RuleFile | None:
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


def policy_of(named: Path | None, autonomy: str, box: Toolbox) -> RulePolicy:
    """The policy of a command: the rules with their examples tried on the box's tools, over an autonomy."""
    file = policy_file(named)
    if file is None:
        return RulePolicy(autonomy)
    try:
        file.check(lambda call: asyncio.run(case_of(box, call)))
    except RuleError as problem:
        raise Problem(str(problem)) from problem
    return file.policy(autonomy)


def held_to(
    policy: AutonomyPolicy | RulePolicy, workspace: Path, kept: Sequence[Path] = ()
) -> AutonomyPolicy | RulePolicy:
    """A policy for a workspace: rules for paths in full mean files there too, and what is our own there is left alone.

    `kept` are files that a person named for us to go by, such as rules and transcripts.
    """
    root = os.path.realpath(workspace)
    changes = frozenset({Reach.WRITE, Reach.DELETE})
    own = own_places()
    rules = [
        _withheld(root, own, "rules and approvals are a person's to change", changes),
        _withheld(root, own, "rules, approvals and secrets are a person's", frozenset({Reach.READ}), READERS),
        _withheld(root, [os.path.realpath(path) for path in kept], "this run goes by it", changes, WRITERS),
        _withheld(root, runs_us(root), "it is the program that runs this", changes, WRITERS),
    ]
    inside = [rule for rule in rules if rule is not None]
    if isinstance(policy, RulePolicy):
        policy = policy.within(workspace)
    elif inside:
        policy = RulePolicy(policy.autonomy)
    return policy.narrowed(inside) if inside and isinstance(policy, RulePolicy) else policy


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


def policy_in(
    named: Path | None, autonomy: str, workspace: Path, box: Toolbox, kept: Sequence[Path] = ()
) -> AutonomyPolicy | RulePolicy:
    """What decides in a workspace: the rules that were named, or the user's own, narrowed by a trusted project's."""
    kept = [*kept, *([] if named is None else [named])]
    from toolcrib.cli.trust import with_project

    if policy_file(named) is None:
        return held_to(with_project(AutonomyPolicy(autonomy), workspace, box), workspace, kept)
    return held_to(with_project(policy_of(named, autonomy, box), workspace, box), workspace, kept)


class NeverRuns(ToolcribError):
    """A call that its tool refuses, whoever allows it."""


async def case_of(box: Toolbox, call: ToolCall, *, tainted: bool = False, said: Sequence[str] = ()) -> Case:
    """What a policy would decide on. Raises ToolcribError for a call that cannot be made.

    `tainted` is a run that took in something from outside before, `said` what its user said.
    """
    prepared = await box.prepare(call, key=CallKey("policy", 0, 0))
    if isinstance(prepared, Refused):
        refusal = NeverRuns if prepared.result.code is ErrorCode.PRECHECK else ToolcribError
        raise refusal(prepared.result.text)
    assert isinstance(prepared, Ready)
    bound = prepared.bound
    assert bound is not None
    taint = frozenset({"something from outside"} if tainted else ())
    return Case(bound.definition.facts, prepared.effect, prepared, taint=taint, said=tuple(said))


def _rules(named: Path | None, autonomy: str, box: Toolbox, workspace: Path) -> RulePolicy:
    policy = policy_in(named, autonomy, workspace, box)
    return policy if isinstance(policy, RulePolicy) else RulePolicy(autonomy)


def explain(
    text: str,
    named: Path | None,
    autonomy: str,
    tools: Sequence[str],
    workspace: Path,
    *,
    tainted: bool = False,
    said: Sequence[str] = (),
) -> int:
    """Which rule decides a call, and why."""
    box = assembled(tools, workspace).toolbox(autonomy=EVERYTHING)
    policy = _rules(named, autonomy, box, workspace)
    try:
        case = asyncio.run(case_of(box, call_from(text), tainted=tainted, said=said))
    except NeverRuns as problem:
        out(f"deny: {on_one_line(str(problem), 300)}")
        out("  decided by  the tool itself, whatever rules say")
        return 0
    except ToolcribError as problem:
        raise Problem(str(problem)) from problem
    explained = policy.explain(case)
    decision = explained.decision
    out(f"{decision.verb.value}{f': {on_one_line(decision.reason)}' if decision.reason else ''}")
    out(f"  decided by  {on_one_line(decision.rule) or f'autonomy {policy.autonomy.autonomy.value}'}")
    out(f"  effect      {case.effect.label}")
    for access in case.accesses if case.accesses is not None else ():
        out(f"  reaches     {on_one_line(str(access))}")
    if case.accesses is None:
        out("  reaches     (the tool does not say)")
    for step in explained.steps:
        out(f"  {on_one_line(step)}")
    if decision.strict:
        out("  no earlier approval counts")
    return 0


def test(
    path: Path, named: Path | None, against: Path | None, autonomy: str, tools: Sequence[str], workspace: Path
) -> int:
    """Decide recorded calls anew and say what would be another decision than `against`, or than was noted."""
    box = assembled(tools, workspace).toolbox(autonomy=EVERYTHING)
    policy = _rules(named, autonomy, box, workspace)
    other = _rules(against, autonomy, box, workspace) if against is not None else None
    counts = dict.fromkeys(Verb, 0)
    changed = unreadable = 0
    for number, call, noted, tainted, heard in _calls(path):
        case: Case | None = None
        decision = Decision(Verb.DENY, rule="the tool itself")
        try:
            case = asyncio.run(case_of(box, call, tainted=tainted, said=heard))
        except NeverRuns:
            pass
        except ToolcribError as problem:
            unreadable += 1
            say(f"{path}, line {number}: {on_one_line(str(problem), 160)}")
            continue
        else:
            decision = policy.decide(case)
        counts[decision.verb] += 1
        before = noted if other is None else (other.decide(case) if case is not None else decision).verb.value
        if before and before != decision.verb.value:
            changed += 1
            why = decision.rule or f"autonomy {policy.autonomy.autonomy.value}"
            shown = on_one_line(f"{call.name} {json.dumps(call.arguments, ensure_ascii=False)}", 100)
            out(f"line {number}: {before} -> {decision.verb.value}  {shown}  ({on_one_line(why)})")
    total = ", ".join(f"{count} {verb.value}" for verb, count in counts.items())
    said = f"; {changed} decided otherwise than before" if other is not None or changed else ""
    out(f"{total}{said}{f'; {unreadable} could not be prepared' if unreadable else ''}")
    return 1 if unreadable else 0


def _calls(path: Path) -> Iterator[tuple[int, ToolCall, str, bool, list[str]]]:
    """Calls of a JSON Lines file: `{"name", "arguments"}`, perhaps below "call".

    Perhaps with a "decision" that was made, "tainted", and "said": what the user had said, a text or a list.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise Problem(f"{path} cannot be read: {problem.strerror or problem}") from problem
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            data: Any = json.loads(line)
            call = data.get("call", data)
            arguments = call.get("arguments", {})
            name = call.get("name") or call["tool"]
            said = data.get("said") or []
            heard = [said] if isinstance(said, str) else [str(text) for text in said]
            decision = str(data.get("decision") or "")
            yield number, ToolCall(str(name), arguments), decision, bool(data.get("tainted")), heard
        except (ValueError, KeyError, AttributeError, TypeError):
            raise Problem(
                f'{path}, line {number}: expected {{"name": "TOOL", "arguments": {{...}}}}, got {on_one_line(line, 80)}'
            ) from None


def check(named: Path | None, tools: Sequence[str], workspace: Path) -> int:
    """Read the rules and try their examples."""
    file = policy_file(named)
    if file is None:
        out(f"no rules: {config_folder() / 'policy.toml'} does not exist")
        return 0
    policy_of(named, "supervised", assembled(tools, workspace).toolbox(autonomy=EVERYTHING))
    out(f"{file.path}: {len(file.rules)} rules, {len(file.examples)} examples, all as they say")
    return 0


def list_approvals(*, as_json: bool) -> int:
    """What is remembered beyond a run."""
    kept = _stored()
    if as_json:
        out(json.dumps([_as_json(item) for item in kept], ensure_ascii=False, indent=2))
        return 0
    for item in kept:
        where = {"project": f"in {item.where}", "user": "everywhere"}.get(item.lasting.value, "")
        until = f", until {_when(item.expires)}" if item.expires is not None else ""
        by = f" by {item.by}" if item.by else ""
        out(
            f"{item.id}  {item.tool}: {on_one_line(item.shown, 80)}  {where}{until}, approved {_when(item.at)}{by}"
        )
    if not kept:
        out("nothing is approved beyond a run")
    return 0


def revoke(ids: Sequence[str]) -> int:
    """Forget approvals by their ids; "all" forgets every one."""
    store, kept = approval_store(), _stored()
    wanted = [item.id for item in kept] if list(ids) == ["all"] else list(ids)
    missing = [id for id in wanted if not store.revoke(id)]
    for id in missing:
        say(f"no approval {on_one_line(id)}; toolcrib approvals list shows them")
    if len(wanted) > len(missing):
        out(f"revoked {len(wanted) - len(missing)}")
    return 1 if missing else 0


def _stored() -> list[Approval]:
    try:
        return approval_store().all()
    except (OSError, ToolcribError) as problem:
        raise Problem(str(problem)) from problem


def _as_json(item: Approval) -> dict[str, Any]:
    return {name: getattr(item, name) for name in ("id", "tool", "shown", "by", "at", "expires", "where")} | {
        "scope": item.scope.value,
        "lasting": item.lasting.value,
    }


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
