"""Rewrites wrappers in a plan, so that the commands behind them are judged as if they stood there alone.

`bash -c 'git status'` becomes the plan of its script, so that no shell runs. `env A=b cmd` becomes a command with a
variable. `find … | xargs …` becomes `find … -print0 | xargs -0 …`, so that a name with blanks stays one word. With
other names that a NUL ends, `xargs -0 …` becomes `xargs -d '\\0' …`, whose input is read by us.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolcrib.command.judge.parse import parse
from toolcrib.command.judge.recognise import OF_A_SHELL, is_xargs_of_find
from toolcrib.command.not_proved import NotProved
from toolcrib.command.plan import Command, Compound, Plan, Stage, Step, Subshell, Word
from toolcrib.command.programs.listing import end_names_with_nul
from toolcrib.command.programs.searching import FIND_RUNS, LISTS_ALONE, find_expression
from toolcrib.command.programs.table import SYSTEM
from toolcrib.command.programs.traits import script_of
from toolcrib.command.programs.wrappers import ASSIGNMENT, inner_at
from toolcrib.command.programs.xargs import NUL_ENDS, WITH_VALUE
from toolcrib.dataclass import replace

MAX_DEPTH = 4


def unwrapped(plan: Plan, depth: int = 0, *, run_by_us: bool = True) -> Plan:
    """The plan without these wrappers. Raises NotProved if the script of a shell has no plan.

    `run_by_us` is that of `parse`.
    """
    return Plan(
        tuple(
            Step(
                step.join,
                replace(step.pipeline, stages=_stages(step.pipeline.stages, depth, run_by_us)),
            )
            for step in plan.steps
        )
    )


def _stages(stages: Sequence[Stage], depth: int, run_by_us: bool) -> tuple[Stage, ...]:
    made = [_stage(stage, depth, run_by_us) for stage in stages]
    for at in range(1, len(made)) if run_by_us else ():
        before, after = made[at - 1], made[at]
        if isinstance(before, Command) and isinstance(after, Command):
            lister, xargs = _with_whole_names(before, after)
            if end_names_with_nul([*made[: at - 1], lister]):
                xargs = _with_delimiter(lister, xargs)
            made[at - 1 : at + 1] = lister, xargs
    return tuple(made)


def _with_whole_names(lister: Command, xargs: Command) -> tuple[Command, Command]:
    """`find … | xargs …` as `find … -print0 | xargs -0 …`: no name becomes several words, whatever is in it."""
    words, given = [word.literal for word in lister.words], [word.literal for word in xargs.words]
    if given[0] != "xargs" or len(given) < 2 or ((given[1] or "-").startswith("-") and given[1] != "-r"):
        return lister, xargs
    listed = words[:-1] if find_expression(words)[-1:] == ["-print"] else words
    if words[0] != "find" or LISTS_ALONE & {*listed[1:]} or FIND_RUNS & {*listed[1:]}:
        return lister, xargs
    finding = lister.words[: len(listed)]
    if {"-o", "-or", ","} & {*listed}:
        start = next(at for at, word in enumerate(finding) if at and word.prefix[:1] in ("-", "(", "!", ","))
        # At 1 it may be an option before the folders; a -print at the end belongs to the last alternative alone.
        if start == 1 or listed != words:
            return lister, xargs
        finding = (*finding[:start], Word(("(",)), *finding[start:], Word((")",)))
    whole = replace(lister, words=(*finding, Word(("-print0",))))
    return whole, replace(xargs, words=(xargs.words[0], Word(("-0",)), *xargs.words[1:]))


def _with_delimiter(before: Command, xargs: Command) -> Command:
    """`xargs -0 …` as `xargs -d '\\0' …`, whose input is read by us. Behind `find … -print0` xargs reads it itself."""
    words, at = list(xargs.words), 1
    if words[0].literal != "xargs" or is_xargs_of_find([word.literal for word in words], before):
        return xargs
    while at < len(words) and (option := words[at].literal or "").startswith("-"):
        if option in NUL_ENDS:
            words[at : at + 1] = [Word((text,)) for text in NUL_ENDS[option]]
            return replace(xargs, words=tuple(words))
        at += 2 if option in WITH_VALUE else 1
    return xargs


def _stage(stage: Stage, depth: int, run_by_us: bool) -> Stage:
    if isinstance(stage, Subshell):
        return Subshell(unwrapped(stage.plan, depth, run_by_us=run_by_us), stage.redirects)
    if isinstance(stage, Compound):
        return replace(
            stage, plans=tuple(unwrapped(plan, depth, run_by_us=run_by_us) for plan in stage.plans)
        )
    texts = [word.literal for word in stage.words]
    argv = [text for text in texts if text is not None]
    if len(argv) != len(texts) or not _of_the_system(argv[0]):
        return stage
    if (script := script_of(argv)) is not None:
        if stage.env:
            raise NotProved("variables for a shell")
        if depth >= MAX_DEPTH:
            raise NotProved("nested too deep")
        plan = parse(script, run_by_us=run_by_us)
        return Subshell(unwrapped(plan, depth + 1, run_by_us=run_by_us), stage.redirects)
    if argv[0] == "command" and len(argv) > 1 and not argv[1].startswith("-"):
        return _stage(Command(stage.words[1:], stage.env, stage.redirects), depth, run_by_us)
    if argv[0].rpartition("/")[2] == "env" and (at := inner_at(argv)) is not None:
        given = [ASSIGNMENT.fullmatch(text) for text in argv[1:at]]
        if all(given) and "=" not in argv[at] and argv[at] not in OF_A_SHELL:
            env = tuple((match[1], match[2]) for match in given if match)
            return _stage(Command(stage.words[at:], (*stage.env, *env), stage.redirects), depth, run_by_us)
    return stage


def _of_the_system(program: str) -> bool:
    return "/" not in program or program.rpartition("/")[0] + "/" in SYSTEM
