"""Rules of other systems in our terms.

Theirs are read in an order (the last, the first or the highest that means a call decides); ours have none. Each
rule therefore gets as exceptions those that count before it and are laxer; what is stricter wins with us by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolcrib import Effect, Toolbox, ToolCall, tool
from toolcrib.access import Access, Reach
from toolcrib.command.sandbox import NoSandbox
from toolcrib.rules import CommandPattern, Rule
from toolcrib.toolbox.policy import Verb
from toolcrib.tools import Shell, Workspace

STRICTNESS = ["allow", "ask", "deny"]
SAID = {"ready": "allow", "pending": "ask", "refused": "deny"}
ORDER = {Verb.ALLOW: 0, Verb.ASK: 1, Verb.DENY: 2}


def ordered(strongest_first: Sequence[Rule]) -> tuple[Rule, ...]:
    """Rules of which the first that means a call decides, as rules of ours."""
    made: list[Rule] = []
    for at, rule in enumerate(strongest_first):
        laxer = [one for one in strongest_first[:at] if ORDER[one.verb] < ORDER[rule.verb]]
        unless = tuple(replace(one, verb=Verb.ALLOW, unless=()) for one in laxer)
        made.append(replace(rule, unless=unless))
    return tuple(made)


def command(words: Iterable[str], *, more: bool = True) -> CommandPattern:
    """A pattern of words that mean themselves."""
    return CommandPattern(" ".join(literal(word) for word in words) + (" *" if more else ""))


def literal(word: str) -> str:
    """A word of a pattern in which nothing is special."""
    escaped = "".join(f"[{mark}]" if mark in "*?[" else mark for mark in word)
    return "'" + escaped.replace("'", "'\\''") + "'"


def reaching(*accesses: Access) -> Any:
    return lambda given: accesses


def any_tool(
    name: str, effect: Effect = Effect.WRITE, *, server: str = "", path: str = "", reach: Reach = Reach.WRITE
) -> Any:
    """A tool that takes anything, and says which path it reaches if it reaches one."""

    def act(**arguments: Any) -> str:
        return "done"

    named: dict[str, Any] = {"accesses": reaching(Access(reach, path))} if path else {}
    return tool(act, name=name, effect=effect, secrets=(), server=server, inline=True, **named)


def shell_in(folder: Path, *, confined: bool = True) -> Shell:
    """The shell tool, as where a sandbox holds or where none works. Nothing is ever run here."""
    return Shell(Workspace(folder), sandbox=NoSandbox(wanted=confined))


async def verdict(box: Toolbox, name: str, arguments: dict[str, Any]) -> str:
    return SAID[(await box.prepare(ToolCall(name, arguments))).kind]


def at_least(ours: str, theirs: str) -> bool:
    return STRICTNESS.index(ours) >= STRICTNESS.index(theirs)
