"""Reads tokens as lists, pipelines, commands and redirections. This is the grammar of plain commands:

list      = { assignment ("&&" | ";" | newline) } pipeline { ("&&" | "||" | ";" | newline) pipeline }
pipeline  = ["!"] ["time"] stage { ("|" | "|&") stage }
stage     = ( "(" list ")" | "{" list "}" | for | if | while | until ) { redirection }
          | { assignment | redirection } { word | redirection }
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from toolcrib.command.judge.tokens import Token
from toolcrib.command.not_proved import NotProved
from toolcrib.command.plan import (
    ANY_LINE,
    Command,
    Compound,
    Join,
    Pipeline,
    Plan,
    Redirect,
    Stage,
    Step,
    Subshell,
    Substitution,
    Word,
    WordPart,
)
from toolcrib.dataclass import replace

MAX_COMMANDS = 50  # in one plan
NAME = re.compile(r"[A-Za-z0-9_./+:-]+|/?(?:[a-z]+/)*\[")
RESERVED = {
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "select",
    "function", "in", "time", "coproc", "[[", "]]", "{", "}", "!",
}  # fmt: skip
ENDS_ASSIGNMENT = {("op", "&&"), ("op", "||"), ("op", ";")}
DEVICES = {"/dev/stdout": "1", "/dev/stderr": "2"}


def read_plan(tokens: Sequence[Token]) -> Plan:
    """The plan that tokens make. Raises NotProved if they do not follow the grammar."""
    reader = _Grammar(tokens)
    plan = reader.steps(closing=False)
    if reader.peek() is not None:
        raise NotProved("a parenthesis too many")
    return plan


class _Grammar:
    __slots__ = ("at", "count", "tokens")

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.count = 0

    def peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def op(self, *texts: str) -> str | None:
        """Takes the next token if it is one of these operators, and returns it."""
        token = self.peek()
        if token is not None and token.kind == "op" and token.text in texts:
            self.at += 1
            return token.text
        return None

    def newlines(self) -> bool:
        before = self.at
        while (token := self.peek()) is not None and token.kind == "newline":
            self.at += 1
        return self.at > before

    def steps(self, *, closing: bool) -> Plan:
        steps: list[Step] = []
        join: Join = ";"
        sure = True  # whether what comes next runs, whatever those before it do
        self.newlines()
        while (token := self.peek()) is not None and not (token.kind == "op" and token.text == ")"):
            if token.kind == "set":
                steps.append(Step(join, self.assignment(token, sure and not closing)))
                sure = sure and token.word is not None and token.word.literal is not None
            else:
                steps.append(Step(join, self.pipeline()))
                sure = False
            if glue := self.op("&&", "||"):
                sure = sure and glue == "&&"
                join = "&&" if glue == "&&" else "||"
                self.newlines()
                if self._ended():
                    raise NotProved("an operator without a command")
                continue
            separated = bool(self.op(";"))
            separated = self.newlines() or separated
            if not separated and not self._ended():
                raise NotProved("commands that are not separated")
            join, sure = ";", True
        if not steps:
            raise NotProved("no command")
        if closing and not self.op(")"):
            raise NotProved("a parenthesis that is not closed")
        return Plan(tuple(steps))

    def assignment(self, token: Token, sure: bool) -> Pipeline:
        """An assignment that stands alone. What it sets must be set for all that follows, so it must be sure to run."""
        self.at += 1
        after = self.peek()
        ends = after is None or after.kind == "newline" or (after.kind, after.text) in ENDS_ASSIGNMENT
        if not sure or not ends or token.group is None:
            raise NotProved("an assignment that is not sure to be made")
        return Pipeline((token.group,))

    def _ended(self) -> bool:
        token = self.peek()
        return token is None or (token.kind == "op" and token.text == ")")

    def pipeline(self) -> Pipeline:
        negated = bool(self.op("!"))
        timed = self._timed()
        stages = [self.stage()]
        while glue := self.op("|", "|&"):
            if glue == "|&":  # the same as 2>&1 after all other redirections
                stages[-1] = replace(stages[-1], redirects=(*stages[-1].redirects, Redirect(2, "dup", "1")))
            self.newlines()
            after = self.stage()
            if isinstance(after, Compound) and after.kind == "read" and not _has_own_input(after):
                after = _with_input(after, Plan((Step(";", Pipeline(tuple(stages))),)))
            stages.append(after)
        return Pipeline(tuple(stages), negated, timed)

    def _timed(self) -> bool:
        """Takes the keyword `time`. Quoted, or before an option, it is a program; other forms of it are not known."""
        token = self.peek()
        after = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else None
        if (
            token is None
            or token.word is None
            or token.word.literal != "time"
            or token.end - token.start != 4
            or token.text
        ):
            return False
        begins = after is not None and (
            (after.word is not None and after.kind == "word" and not after.word.prefix.startswith("-"))
            or after.kind == "group"
            or (after.kind == "op" and after.text == "(")
        )
        self.at += begins
        return begins

    def stage(self) -> Stage:
        self.count += 1
        if self.count > MAX_COMMANDS:
            raise NotProved(f"more than {MAX_COMMANDS} commands")
        token = self.peek()
        if token is not None and token.kind == "group" and token.group is not None:
            self.at += 1
            return replace(token.group, redirects=self._redirects())
        if self.op("("):
            plan = self.steps(closing=True)
            return Subshell(plan, self._redirects())
        return self.command()

    def _redirects(self) -> tuple[Redirect, ...]:
        redirects: list[Redirect] = []
        while (token := self.peek()) is not None and token.kind in ("redirect", "fd"):
            redirects += self.redirect()
        return tuple(redirects)

    def command(self) -> Command:
        words: list[Word] = []
        env: list[tuple[str, str]] = []
        redirects: list[Redirect] = []
        while (token := self.peek()) is not None:
            if token.kind in ("redirect", "fd"):
                redirects += self.redirect()
                continue
            if token.kind == "word" and token.word is not None:
                if token.more and not words:
                    raise NotProved("a brace expansion that names the program")
                words += token.word, *token.more
            elif token.kind == "assign" and token.word is not None and not words:
                env.append((token.text, token.word.literal or ""))
            else:
                break
            self.at += 1
        self._check_name(words, bool(env))
        return Command(tuple(words), tuple(env), tuple(redirects))

    def _check_name(self, words: list[Word], assigned: bool) -> None:
        if not words:
            raise NotProved(
                "an assignment without a command" if assigned else "no command where one should be"
            )
        name = words[0].literal
        if name is None:
            raise NotProved("the program is only known when it runs")
        if name in RESERVED:
            raise NotProved(f"the keyword {name}")
        if not NAME.fullmatch(name):
            raise NotProved(f"an odd program name {name[:40]!r}")

    def redirect(self) -> list[Redirect]:
        fd = self._descriptor()
        token = self.peek()
        if token is None or token.kind != "redirect":
            raise NotProved("an odd redirection")
        self.at += 1
        op = token.text
        number = fd if fd is not None else 0 if op.startswith("<") else 1
        if op in ("<&-", ">&-"):
            return [Redirect(number, "dup", "-")]
        target = self.peek()
        if target is None or target.kind != "word" or target.word is None:
            raise NotProved("a redirection without a target")
        if target.more:
            raise NotProved("a redirection to a brace expansion")
        self.at += 1
        return _redirects(op, number, target.word, explicit=fd is not None)

    def _descriptor(self) -> int | None:
        token = self.peek()
        if token is None or token.kind != "fd":
            return None
        self.at += 1
        after = self.peek()
        if after is None or after.start != token.end or token.text not in ("0", "1", "2"):
            raise NotProved(f"the file descriptor {token.text[:20]}")
        return int(token.text)


def _with_input(loop: Compound, printed: Plan) -> Compound:
    """A `while read` loop whose lines are what a plan prints."""

    def in_plan(plan: Plan) -> Plan:
        return Plan(
            tuple(
                Step(step.join, replace(step.pipeline, stages=tuple(map(in_stage, step.pipeline.stages))))
                for step in plan.steps
            )
        )

    def in_stage(stage: Stage) -> Stage:
        if isinstance(stage, Command):
            return replace(stage, words=tuple(map(in_word, stage.words)))
        if isinstance(stage, Subshell):
            return replace(stage, plan=in_plan(stage.plan))
        over = None if stage.over is None else in_word(stage.over)
        return replace(stage, plans=tuple(map(in_plan, stage.plans)), over=over)

    def in_word(word: Word) -> Word:
        return Word(tuple(map(in_part, word.parts))) if word.substitutions else word

    def in_part(part: WordPart) -> WordPart:
        if not isinstance(part, Substitution):
            return part
        if part.variable == loop.variable and part.plan == ANY_LINE:
            return replace(part, plan=printed)
        return replace(part, plan=in_plan(part.plan))

    return replace(loop, plans=tuple(map(in_plan, loop.plans)))


def _has_own_input(stage: Compound) -> bool:
    return any(redirect.fd == 0 for redirect in stage.redirects)


def _redirects(op: str, fd: int, word: Word, *, explicit: bool) -> list[Redirect]:
    if op in ("<<", "<<-"):
        return [Redirect(fd, "text", word)]
    text = word.literal
    if text is None:
        if op == "<" and word.names_of_loops and not word.substitutions:
            return [Redirect(fd, "read", word)]
        raise NotProved("a redirection whose target is only known when it runs")
    if op == "<<<":
        return [Redirect(fd, "text", Word((text + "\n",)))]
    if op == "<":
        return [Redirect(fd, "null" if text == "/dev/null" else "read", "" if text == "/dev/null" else word)]
    if op in (">&", "<&") and text in ("0", "1", "2", "-"):
        return [Redirect(fd, "dup", text)]
    if op == "<&" or (op == ">&" and explicit) or re.fullmatch(r"[0-9]+-?", text):
        raise NotProved("a file descriptor that is not 0, 1 or 2")
    both = op in ("&>", "&>>", ">&")
    if both and explicit:
        raise NotProved("an odd redirection")
    if text == "/dev/null":
        return [Redirect(1, "null"), Redirect(2, "dup", "1")] if both else [Redirect(fd, "null")]
    if text in DEVICES and not both:
        return [Redirect(fd, "dup", DEVICES[text])]
    kind: Literal["write", "append"] = "append" if op.endswith(">>") else "write"
    return [Redirect(fd, kind, word), *([Redirect(2, "dup", "1")] if both else [])]
