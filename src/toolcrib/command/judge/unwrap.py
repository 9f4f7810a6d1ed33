"""Replaces `bash -c 'git status'` in a plan by the plan of its script, and `env A=b cmd` by a command with a variable.

So no shell runs, and what it would have run is judged as if it stood there alone.
"""

from __future__ import annotations

from dataclasses import replace

from toolcrib.command.judge.parse import parse
from toolcrib.command.not_proved import NotProved
from toolcrib.command.plan import Command, Compound, Plan, Stage, Step, Subshell
from toolcrib.command.programs.table import SYSTEM
from toolcrib.command.programs.traits import script_of
from toolcrib.command.programs.wrappers import ASSIGNMENT, inner_at

MAX_DEPTH = 4


def unwrapped(plan: Plan, depth: int = 0, *, braces: bool = True) -> Plan:
    """The plan without these wrappers. Raises NotProved if the script of a shell has no plan.

    `braces` is that of `parse`.
    """
    return Plan(
        tuple(
            Step(
                step.join,
                replace(
                    step.pipeline,
                    stages=tuple(_stage(stage, depth, braces) for stage in step.pipeline.stages),
                ),
            )
            for step in plan.steps
        )
    )


def _stage(stage: Stage, depth: int, braces: bool) -> Stage:
    if isinstance(stage, Subshell):
        return Subshell(unwrapped(stage.plan, depth, braces=braces), stage.redirects)
    if isinstance(stage, Compound):
        return replace(stage, plans=tuple(unwrapped(plan, depth, braces=braces) for plan in stage.plans))
    texts = [word.literal for word in stage.words]
    argv = [text for text in texts if text is not None]
    if len(argv) != len(texts) or not _of_the_system(argv[0]):
        return stage
    if (script := script_of(argv)) is not None:
        if stage.env:
            raise NotProved("variables for a shell")
        if depth >= MAX_DEPTH:
            raise NotProved("nested too deep")
        plan = parse(script, braces=braces)
        return Subshell(unwrapped(plan, depth + 1, braces=braces), stage.redirects)
    if argv[0] == "command" and len(argv) > 1 and not argv[1].startswith("-"):
        return _stage(Command(stage.words[1:], stage.env, stage.redirects), depth, braces)
    if argv[0].rpartition("/")[2] == "env" and (at := inner_at(argv)) is not None:
        given = [ASSIGNMENT.fullmatch(text) for text in argv[1:at]]
        if all(given) and "=" not in argv[at]:
            env = tuple((match[1], match[2]) for match in given if match)
            return _stage(Command(stage.words[at:], (*stage.env, *env), stage.redirects), depth, braces)
    return stage


def _of_the_system(program: str) -> bool:
    return "/" not in program or program.rpartition("/")[0] + "/" in SYSTEM
