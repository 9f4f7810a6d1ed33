"""Checks of a file of rules against the tools that there are: its examples, and rules about tools that do not exist."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from toolcrib.cli.console import Problem
from toolcrib.cli.dry_run import policy_request
from toolcrib.rules import RuleError, RuleFile
from toolcrib.rules.unmatched import unmatched_rules
from toolcrib.settings.catalogue import CATALOGUE
from toolcrib.visible import counted, on_one_line

if TYPE_CHECKING:
    from toolcrib.toolbox import Toolbox


def untried_examples(file: RuleFile, box: Toolbox) -> tuple[tuple[int, str], ...]:
    """Try each rule on its own examples; returns, with their lines, the examples whose tools are not there.

    Raises Problem for examples that are decided otherwise than they say.
    """
    try:
        return file.check(lambda call: asyncio.run(policy_request(box, call)))
    except RuleError as problem:
        raise Problem("\n".join(map(on_one_line, str(problem).splitlines()))) from problem


def unmatched_lines(file: RuleFile, box: Toolbox) -> list[str]:
    """A line for each rule or limit that is about a tool or server which does not exist."""
    tools, servers = asyncio.run(_names(box))
    return [on_one_line(line) for line in unmatched_rules(file.rules, file.limits, tools, servers)]


def check_notes(file: RuleFile, box: Toolbox) -> list[str]:
    """What a person should know before a run goes by these rules. Raises Problem as `untried_examples` does."""
    notes: list[str] = []
    if untried := untried_examples(file, box):
        names = ", ".join(dict.fromkeys(on_one_line(text.split()[0], 40) for _, text in untried))
        examples = counted(len(untried), "example")
        verb = "was" if len(untried) == 1 else "were"
        notes.append(f"{file.path}: {examples} of tools that do not exist now ({names}) {verb} not tried")
    return notes + unmatched_lines(file, box)


async def _names(box: Toolbox) -> tuple[set[str], set[str]]:
    """The names of all tools, of built-in tools that this toolbox lacks, and of all servers."""
    names = {row.name for row in CATALOGUE}
    servers: set[str] = set()
    for name in await box.registry.all_names():
        names.add(name)
        entry = await box.registry.entry(name)
        facts = getattr(entry.supplied, "facts", None) if entry is not None else None
        servers.add(getattr(facts, "server", ""))
    return names, servers - {""}
