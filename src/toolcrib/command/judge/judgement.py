"""The judgement of a command line: plain, to be asked about, or denied.

A command is plain if everything about it is proved: every word is known, every program and option has a row in the
tables, every path lies in the workspace, and nothing writes, uses the network, or runs other code than the project's
own checks. What is not proved asks and says why. What would destroy the host is denied however it is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from toolcrib.command.judge import variables
from toolcrib.command.judge.destructive import destruction_in
from toolcrib.command.judge.find_commands import programs_in
from toolcrib.command.judge.judged_commands import JudgedCommand, PlanJudge
from toolcrib.command.judge.links import Links
from toolcrib.command.judge.parse import parse
from toolcrib.command.judge.paths import Operand
from toolcrib.command.judge.unwrap import unwrapped
from toolcrib.command.not_proved import NotProved
from toolcrib.command.plan import Plan
from toolcrib.command.programs.options import Effect, worst
from toolcrib.dataclass import dataclass, replace
from toolcrib.secrets.pattern_search import looks_like_a_token

Verdict = Literal["plain", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is known of a command line before it runs.

    `verdict`: `plain` may run unasked as its `plan`; `ask` may run after a yes, as its `plan` if there is one, else by
    a shell; `deny` must not run. `reason`: why it is not plain, in one line. `proved`: all of it was understood, so
    that `effect` and `operands` hold everything that its arguments name. `parts`: its commands, judged one by one.
    `destroys`: what it would destroy, if anything. `grantable`: it asks only because its programs ask, so a yes to
    their prefixes may be remembered. `leads`: where links among its operands lead for which it asks. `shows`: folders
    and patterns of names below which it shows what stands in files that it does not name. `read_as`: its commands as
    we read them, where a shell will run it and may read it otherwise; they only say why it asks. `by_bash`: it has no
    plan, and a shell that reads as bash does will run it.
    """

    verdict: Verdict
    reason: str
    plan: Plan | None = None
    operands: tuple[Operand, ...] = ()
    programs: tuple[str, ...] = ()
    effect: Effect = "exec"
    destroys: str | None = None
    proved: bool = False
    parts: tuple[JudgedCommand, ...] = ()
    grantable: bool = False
    leads: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()
    read_as: tuple[JudgedCommand, ...] = ()
    by_bash: bool = False

    @property
    def only_reads(self) -> bool:
        """Whether the command was proved to change nothing."""
        return self.verdict == "plain" and self.effect == "read"


def judge(
    command: str,
    *,
    cwd_is_workspace: bool = True,
    env: Mapping[str, str] | None = None,
    workspace: str | None = None,
    links: Links | None = None,
    run_by_us: bool = True,
) -> Judgement:
    """Judge a command line for bash. Never raises, whatever the text.

    `cwd_is_workspace`: False where it would run in another folder: then nothing of it is plain. `env`:
    variables that the caller of the tool wants set. `workspace`: the folder's absolute path, so that absolute
    paths into it count as inside. `links` looks up where operands lead; without it a name is only a name.
    `run_by_us`: False where a shell will run it wherever it is plain: then it is judged as shells read it.
    """
    try:
        return _judge(command, cwd_is_workspace, env or {}, workspace, links, run_by_us=run_by_us)
    except RecursionError:
        return Judgement("ask", "nested too deep")


def _judge(
    command: str,
    cwd_is_workspace: bool,
    env: Mapping[str, str],
    workspace: str | None,
    links: Links | None,
    *,
    run_by_us: bool,
) -> Judgement:
    try:
        plan = unwrapped(parse(command, run_by_us=run_by_us), run_by_us=run_by_us)
        found = _of_plan(command, plan, cwd_is_workspace, env, workspace, links, run_by_us=run_by_us)
        if found.verdict != "plain" and run_by_us:  # a shell will run it, if anything does
            by_shell = _judge(command, cwd_is_workspace, env, workspace, links, run_by_us=False)
            parts = found.parts
            asks_for_itself = by_shell.verdict == "ask" and by_shell.plan is None
            return replace(by_shell, reason=found.reason, read_as=parts) if asks_for_itself else by_shell
    except NotProved as stopped:
        found = Judgement(stopped.verdict, stopped.reason, by_bash=True)
    if found.verdict == "plain":  # every part was proved, so nothing of it is destructive
        return found
    destroys = destruction_in(command)
    if destroys is not None:
        return Judgement("deny", destroys, programs=programs_in(command), destroys=destroys)
    if found.verdict == "ask" and found.plan is None:
        return replace(found, programs=programs_in(command))
    return found


def _of_plan(
    command: str,
    plan: Plan,
    cwd_is_workspace: bool,
    env: Mapping[str, str],
    workspace: str | None,
    links: Links | None,
    *,
    run_by_us: bool,
) -> Judgement:
    judging = PlanJudge(workspace, links, run_by_us=run_by_us)
    judging.plan(plan, (".",))
    parts = tuple(judging.parts)
    reasons = [part.reason for part in parts if part.reason]
    around = [
        "it would run outside the workspace" if not cwd_is_workspace else None,
        "it holds what looks like a key or token, which every process could read"
        if looks_like_a_token(command)
        else None,
        variables.objection(env),
    ]
    reasons = [*filter(None, around), *reasons]
    return Judgement(
        "ask" if reasons else "plain",
        _one_line(reasons),
        plan,
        operands=tuple(dict.fromkeys(operand for part in parts for operand in part.operands)),
        programs=tuple(dict.fromkeys(part.program for part in parts)),
        effect=worst(part.effect for part in parts),
        proved=all(part.proved for part in parts),
        parts=parts,
        grantable=not any(around) and all(part.grantable for part in parts if part.reason),
        leads=tuple(dict.fromkeys(judging.leads)),
        shows=tuple(dict.fromkeys(judging.shows)),
    )


def _one_line(reasons: list[str]) -> str:
    different = list(dict.fromkeys(reasons))
    if not different:
        return ""
    more = f" (and {len(different) - 1} more)" if len(different) > 1 else ""
    return " ".join(different[0].split())[:300] + more
