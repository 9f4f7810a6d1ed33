"""Finds rules and limits that match no tool: a misspelt name, or a tool or server that does not exist here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches

from toolcrib.rules.limits import Limit
from toolcrib.rules.name_patterns import any_name_matches
from toolcrib.rules.rule import Rule
from toolcrib.toolbox.policy import Verb

__all__ = ["unmatched_rules"]

NEAR = 0.6  # how alike two names are for one to be suggested, from 0 to 1


def unmatched_rules(
    rules: Iterable[Rule], limits: Iterable[Limit], tools: Collection[str], servers: Collection[str]
) -> list[str]:
    """A line for each name in deny and ask rules and in limits that no tool or server has, with the nearest known name.

    A pattern is left out if another pattern of the same rule matches something, unless there is a near name.

    >>> unmatched_rules([], [Limit(1, ("shel",))], ["shell"], [])
    ['at most 1 call of shel in a run: no tool is called shel; did you mean shell?']
    """
    found: list[str] = []
    for rule in rules:
        if rule.verb is not Verb.ALLOW:
            for kind, patterns, known in (("tool", rule.tools, tools), ("server", rule.servers, servers)):
                found += (f"{rule.verb} {rule.words}: {line}" for line in _lines(kind, patterns, known))
    for limit in limits:
        found += (f"{limit}: {line}" for line in _lines("tool", limit.tools, tools))
    return found


def _lines(kind: str, patterns: Sequence[str], known: Collection[str]) -> Iterator[str]:
    missing = [
        pattern for pattern in patterns if not any(any_name_matches((pattern,), name) for name in known)
    ]
    for pattern in missing:
        near = get_close_matches(pattern.lower(), known, n=1, cutoff=NEAR)
        if near:
            yield f"no {kind} is called {pattern}; did you mean {near[0]}?"
        elif len(missing) == len(patterns):
            yield f"no {kind} is called {pattern} here, so it holds for nothing now"
