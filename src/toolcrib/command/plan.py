"""The plan of a command line, as data: it can be stored, shown to a person, and run without a shell.

Plan      steps joined by ; && ||           `a && b; c`
Pipeline  stages whose output feeds the next `a | b`, its status perhaps turned round by !, perhaps timed
Command   words, environment, redirections   `LC_ALL=C sort < names 2>/dev/null`
Subshell     a plan in a process of its own     `(cd sub && make)`: its cd ends with it
Compound  `if`, `while`, `until`, `{ …; }`, `for` over names, and `x=$(…)`
Word      text, pattern signs, and substitutions: `"$(ls | wc -l) files"`, `src/*.py`
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args

from toolcrib.dataclass import dataclass
from toolcrib.visible import BIDIRECTIONAL, CONTROLS, LINE_SEPARATORS, ZERO_WIDTH

__all__ = [
    "Command", "Compound", "CompoundKind", "Glob", "LoopName", "Pipeline", "Plan",
    "Redirect", "Step", "Subshell", "Substitution", "Word",
    "commands", "is_last_status", "last_status", "quoted"
]  # fmt: skip

VERSION = 1

Join = Literal[";", "&&", "||"]


@dataclass(frozen=True, slots=True)
class Glob:
    """One sign of a file name pattern: `*`, `?` or `[abc]`."""

    sign: str


@dataclass(frozen=True, slots=True)
class LoopName(Glob):
    """`"$f"` in `for f in *.txt`: one of the names that the pattern matches. `sign` is the whole pattern."""

    variable: str = ""
    quoted: bool = True


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$( … )`: what the plan prints; outside quotes it is split at white space and never expanded again.

    `piped`: `<( … )`, the name of a pipe from which the program reads what the plan prints meanwhile. `variable`: the
    plan has run already, and what it printed, or one name of it, is in that variable: `"$x"` after `x=$(…)`.
    """

    plan: Plan
    quoted: bool
    piped: bool = False
    variable: str = ""


RedirectKind = Literal["null", "dup", "read", "write", "append", "text"]
REDIRECT_KINDS = ("null", "dup", "read", "write", "append", "text")
WordPart = str | Glob | Substitution


@dataclass(frozen=True, slots=True)
class Word:
    """One argument. Neighbouring texts are one part, so that a plain word has exactly one."""

    parts: tuple[WordPart, ...]

    @property
    def literal(self) -> str | None:
        """The text, if it is known before the command runs."""
        if not self.parts:
            return ""
        return first if len(self.parts) == 1 and isinstance(first := self.parts[0], str) else None

    @property
    def prefix(self) -> str:
        """The text that the word is sure to begin with."""
        return self.parts[0] if self.parts and isinstance(self.parts[0], str) else ""

    @property
    def is_glob(self) -> bool:
        return any(isinstance(part, Glob) for part in self.parts)

    @property
    def spelled(self) -> str:
        """The known text with the signs of patterns, without what substitutions print."""
        return "".join(
            part if isinstance(part, str) else part.sign
            for part in self.parts
            if not isinstance(part, Substitution)
        )

    @property
    def as_pattern(self) -> Word:
        """The same word, with the pattern of the loop in the place of each loop variable: `$f` becomes `*.txt`."""
        parts = (Glob(part.sign) if isinstance(part, LoopName) else part for part in self.parts)
        return Word(tuple(parts)) if self.names_of_loops else self

    @property
    def names_of_loops(self) -> bool:
        return any(isinstance(part, LoopName) for part in self.parts)

    @property
    def substitutions(self) -> tuple[Substitution, ...]:
        return tuple(part for part in self.parts if isinstance(part, Substitution))

    @property
    def piped(self) -> Plan | None:
        """The plan of `<( … )`, which is always a whole word."""
        first = self.parts[0] if self.parts else None
        return first.plan if isinstance(first, Substitution) and first.piped else None

    @property
    def splits(self) -> bool:
        """Whether the word may become several arguments, or none."""
        return any(not part.quoted for part in self.substitutions)


@dataclass(frozen=True, slots=True)
class Redirect:
    """One redirection of `fd`. `null`: /dev/null; `dup`: a copy of fd `target`, or closed if that is "-";
    `read`, `write`, `append`: a file; `text`: a here-document."""

    fd: int
    kind: RedirectKind
    target: Word | str = ""


@dataclass(frozen=True, slots=True)
class Command:
    words: tuple[Word, ...]
    env: tuple[tuple[str, str], ...] = ()
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Subshell:
    plan: Plan
    redirects: tuple[Redirect, ...] = ()

    @property
    def plans(self) -> tuple[Plan, ...]:
        return (self.plan,)


CompoundKind = Literal["if", "while", "until", "for", "read", "group", "set"]


@dataclass(frozen=True, slots=True)
class Compound:
    """A statement; `plans` holds its parts in the order in which they are written. Its variables and `cd` end with it.

    `if`: a condition and a body in turn, and last the body of `else`, if there is one. `while` and `until`: the
    condition and the body. `for`: the body, which runs once for each name that the pattern `over` matches, or that its
    substitution prints, with the name in `variable`. `read`: `while read -r line`, the body, once for each line of the
    input; `reads` is the command that reads it. `group`: `{ …; }`, or the rounds of a loop over known words. `set`: no
    part; the text of `over`, or what its substitution prints, is put into `variable`, for what follows in the list.
    """

    kind: CompoundKind
    plans: tuple[Plan, ...]
    redirects: tuple[Redirect, ...] = ()
    variable: str = ""
    over: Word | None = None
    reads: str = ""


Stage = Command | Subshell | Compound


@dataclass(frozen=True, slots=True)
class Pipeline:
    stages: tuple[Stage, ...]
    negated: bool = False
    timed: bool = False  # `time` stands before it


@dataclass(frozen=True, slots=True)
class Step:
    join: Join
    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order; `&&` and `||` bind equally and from the left, as in a shell."""

    steps: tuple[Step, ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON data, with the version of this format."""
        return {"version": VERSION, "steps": _steps_json(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plan:
        """The plan that `to_json` gave. Raises ValueError for another version or shape."""
        try:
            if data["version"] != VERSION:
                raise ValueError(f"a plan of version {data['version']!r}, not {VERSION}")
            return _plan_of(data["steps"])
        except (KeyError, TypeError, IndexError) as wrong:
            raise ValueError(f"not a plan: {wrong!r}") from None

    def __str__(self) -> str:
        return show(self)


def is_last_status(part: Substitution) -> bool:
    """Whether a substitution stands for `$?`, the status of the command before."""
    return part.plan == LAST_STATUS


def last_status(*, quoted: bool) -> Substitution:
    """`$?`, inside double quotes or outside."""
    return Substitution(LAST_STATUS, quoted)


def commands(plan: Plan) -> Iterator[Command]:
    """Every command of a plan in the order of the text, those of substitutions after the one they are in."""
    for step in plan.steps:
        for stage in step.pipeline.stages:
            if not isinstance(stage, Command):
                for inner in stage.plans:
                    yield from commands(inner)
                for part in stage.over.substitutions if isinstance(stage, Compound) and stage.over else ():
                    yield from commands(part.plan)
            else:
                yield stage
                for word in stage.words:
                    for part in word.substitutions:
                        if not part.variable:
                            yield from commands(part.plan)


READS = ("read", "read -r", "IFS= read", "IFS= read -r")
# Stands for a value of which it is only known that it is a line of some input.
ANY_LINE = Plan((Step(";", Pipeline((Command((Word(("cat",)),)),))),))

STATUS_VARIABLE = "?"
# `$(printenv ?)` stands for `$?`: the runner knows it without a program.
LAST_STATUS = Plan((Step(";", Pipeline((Command((Word(("printenv",)), Word((STATUS_VARIABLE,)))),))),))

# --- shown to a person ------------------------------------------------------------------------------------

_UNSEEN = re.compile(f"[{CONTROLS}{ZERO_WIDTH}{BIDIRECTIONAL}{LINE_SEPARATORS}]")


def show(plan: Plan) -> str:
    """The plan as one line of shell, without invisible characters."""
    shown = ""
    for index, step in enumerate(plan.steps):
        glue = "" if not index else "; " if step.join == ";" else f" {step.join} "
        shown += glue + _show_pipeline(step.pipeline)
    return shown


def _show_pipeline(pipeline: Pipeline) -> str:
    before = ("! " if pipeline.negated else "") + ("time " if pipeline.timed else "")
    return before + " | ".join(map(_show_stage, pipeline.stages))


def _show_stage(stage: Stage) -> str:
    if isinstance(stage, Subshell):
        pieces = [f"({show(stage.plan)})"]
    elif isinstance(stage, Compound):
        pieces = [_show_compound(stage)]
    else:
        pieces = [f"{name}={quoted(value)}" for name, value in stage.env]
        pieces += map(show_word, stage.words)
    return " ".join(pieces + list(map(_show_redirect, stage.redirects)))


def _show_compound(stage: Compound) -> str:
    if stage.kind == "set" and stage.over is not None:
        return f"{stage.variable}={show_word(stage.over)}"
    texts = [f"{show(plan)};" for plan in stage.plans]
    if stage.kind == "group":
        return f"{{ {texts[0]} }}"
    if stage.kind == "read":
        return f"while {stage.reads} {stage.variable}; do {texts[0]} done"
    if stage.over is not None:
        return f"for {stage.variable} in {show_word(stage.over)}; do {texts[0]} done"
    if stage.kind != "if":
        return f"{stage.kind} {texts[0]} do {texts[1]} done"
    pairs = [f"{texts[at]} then {texts[at + 1]}" for at in range(0, len(texts) - 1, 2)]
    otherwise = f" else {texts[-1]}" if len(texts) % 2 else ""
    return "if " + " elif ".join(pairs) + otherwise + " fi"


def show_word(word: Word) -> str:
    if (text := word.literal) is not None:
        return quoted(text)
    return "".join(_show_part(part) for part in word.parts)


def _show_part(part: WordPart) -> str:
    if isinstance(part, str):
        return quoted(part)
    if isinstance(part, LoopName):
        return f'"${{{part.variable}}}"' if part.quoted else f"${{{part.variable}}}"
    if isinstance(part, Glob):
        return part.sign
    if part.piped:
        return f"<({show(part.plan)})"
    if part.variable:
        return f'"${{{part.variable}}}"' if part.quoted else f"${{{part.variable}}}"
    inner = "$?" if is_last_status(part) else f"$({show(part.plan)})"
    return f'"{inner}"' if part.quoted else inner


def _show_redirect(redirect: Redirect) -> str:
    fd = "" if redirect.fd == (0 if redirect.kind in ("read", "text") else 1) else str(redirect.fd)
    target = show_word(redirect.target) if isinstance(redirect.target, Word) else redirect.target
    match redirect.kind:
        case "null":
            return f"{redirect.fd if redirect.fd != 1 else ''}{'<' if redirect.fd == 0 else '>'}/dev/null"
        case "dup":
            return f"{fd}>&{target}"
        case "read":
            return f"{fd}<{target}"
        case "text":
            return f"{fd}<<<{target}"
        case "write":
            return f"{fd}>{target}"
        case "append":
            return f"{fd}>>{target}"


def quoted(text: str) -> str:
    """A text as one word for a shell, with control and format characters as escapes."""
    if not _UNSEEN.search(text):
        return shlex.quote(text)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t")
    return "$'" + _UNSEEN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", escaped) + "'"


# --- as JSON ----------------------------------------------------------------------------------------------


def _steps_json(plan: Plan) -> list[Any]:
    return [
        {
            "join": step.join,
            "not": step.pipeline.negated,
            "time": step.pipeline.timed,
            "stages": [_stage_json(stage) for stage in step.pipeline.stages],
        }
        for step in plan.steps
    ]


def _stage_json(stage: Stage) -> dict[str, Any]:
    redirects = [
        {
            "fd": r.fd,
            "kind": r.kind,
            "target": _word_json(r.target) if isinstance(r.target, Word) else r.target,
        }
        for r in stage.redirects
    ]
    if isinstance(stage, Subshell):
        return {"group": _steps_json(stage.plan), "redirects": redirects}
    if isinstance(stage, Compound):
        named: dict[str, Any] = {"variable": stage.variable} if stage.variable else {}
        if stage.reads:
            named["reads"] = stage.reads
        if stage.over is not None:
            named["over"] = _word_json(stage.over)
        plans = list(map(_steps_json, stage.plans))
        return {"compound": stage.kind, "plans": plans, "redirects": redirects, **named}
    return {"argv": [_word_json(word) for word in stage.words], "env": list(map(list, stage.env)),
            "redirects": redirects}  # fmt: skip


def _word_json(word: Word) -> list[Any]:
    return [
        part
        if isinstance(part, str)
        else {"name": part.variable, "of": part.sign, "quoted": part.quoted}
        if isinstance(part, LoopName)
        else {"glob": part.sign}
        if isinstance(part, Glob)
        else {"pipe": _steps_json(part.plan)}
        if part.piped
        else {"run": _steps_json(part.plan), "quoted": part.quoted}
        | ({"variable": part.variable} if part.variable else {})
        for part in word.parts
    ]


def _plan_of(steps: Any) -> Plan:
    return Plan(
        tuple(
            Step(
                _one_of(step["join"], (";", "&&", "||")),
                Pipeline(
                    tuple(map(_stage_of, step["stages"])), bool(step["not"]), bool(step.get("time", False))
                ),
            )
            for step in steps
        )
    )


def _stage_of(data: Any) -> Stage:
    redirects = tuple(
        Redirect(int(r["fd"]), _one_of(r["kind"], REDIRECT_KINDS), _target_of(r["target"]))
        for r in data["redirects"]
    )
    if "group" in data:
        return Subshell(_plan_of(data["group"]), redirects)
    if "compound" in data:
        plans = tuple(map(_plan_of, data["plans"]))
        kind: CompoundKind = _one_of(data["compound"], get_args(CompoundKind))
        wanted = {"for": 1, "read": 1, "group": 1, "set": 0, "if": max(len(plans), 2)}.get(kind, 2)
        if len(plans) != wanted:
            raise ValueError(f"not a plan: {kind} of {len(plans)} parts")
        if kind in ("for", "set"):
            return Compound(kind, plans, redirects, str(data["variable"]), _word_of(data["over"]))
        if kind == "read":
            reads = _one_of(data["reads"], READS)
            return Compound(kind, plans, redirects, str(data["variable"]), reads=reads)
        return Compound(kind, plans, redirects)
    env = tuple((str(name), str(value)) for name, value in data["env"])
    return Command(tuple(map(_word_of, data["argv"])), env, redirects)


def _target_of(data: Any) -> Word | str:
    return data if isinstance(data, str) else _word_of(data)


def _word_of(data: Any) -> Word:
    return Word(
        tuple(
            part
            if isinstance(part, str)
            else LoopName(str(part["of"]), str(part["name"]), bool(part["quoted"]))
            if "name" in part
            else Glob(str(part["glob"]))
            if "glob" in part
            else Substitution(_plan_of(part["pipe"]), quoted=True, piped=True)
            if "pipe" in part
            else Substitution(
                _plan_of(part["run"]), bool(part["quoted"]), variable=str(part.get("variable", ""))
            )
            for part in data
        )
    )


def _one_of(value: Any, allowed: tuple[Any, ...]) -> Any:
    if value not in allowed:
        raise ValueError(f"not a plan: {value!r} is none of {allowed}")
    return value
