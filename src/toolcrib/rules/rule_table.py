"""Makes a rule of a `[[rule]]` table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from toolcrib.dataclass import replace
from toolcrib.rules import toml_values
from toolcrib.rules.breadth import check_breadth
from toolcrib.rules.keys import KEYS
from toolcrib.rules.rule import Rule
from toolcrib.toolbox.policy import Verb

__all__ = ["TOP_LEVEL", "problems_of", "rule_from"]

TOP_LEVEL = ("autonomy", "otherwise")  # keys of the whole file
CONDITIONS = frozenset(key.name for key in KEYS)
OTHER_VALUES: Mapping[str, Callable[[Mapping[str, Any], str], Any]] = {
    "name": toml_values.text,
    "reason": toml_values.text,
    "except": toml_values.tables,
    "match": toml_values.examples,
    "not_match": toml_values.examples,
}
ALL_KEYS = CONDITIONS | OTHER_VALUES.keys() | {verb.value for verb in Verb}


def rule_from(table: Any, number: int, source: str) -> Rule:
    """The rule that a table describes. Raises ValueError for a table that is none, or that allows too much."""
    if not isinstance(table, dict):
        raise ValueError("a rule is a table of keys and values")
    if misplaced := [key for key in TOP_LEVEL if key in table]:
        raise ValueError(f"{misplaced[0]} is said of the whole file: write it above the first [[rule]]")
    _check_keys(table, ALL_KEYS)
    verbs = [verb for verb in Verb if table.get(verb.value) is True]
    if len(verbs) != 1 or any(table.get(verb.value) not in (None, True) for verb in Verb):
        raise ValueError("a rule says one of: allow = true, ask = true, deny = true")
    rule = replace(
        _conditions(table, verbs[0]),
        name=toml_values.text(table, "name") or f"rule {number}",
        reason=toml_values.text(table, "reason"),
        unless=tuple(_exception(inner, verbs[0]) for inner in toml_values.tables(table, "except")),
        source=source,
    )
    check_breadth(rule)
    return rule


def _exception(table: Mapping[str, Any], verb: Verb) -> Rule:
    """An exception. A deny or ask rule leaves out what it matches for certain, an allow rule what it may match."""
    _check_keys(table, CONDITIONS, " in except")
    if not table:
        raise ValueError("an exception names what it is about")
    return _conditions(table, Verb.DENY if verb is Verb.ALLOW else Verb.ALLOW)


def problems_of(table: Any) -> Iterator[str]:
    """What is wrong with the keys of a table, each looked at alone: it is unknown, or its value cannot be read."""
    if not isinstance(table, dict):
        return
    yield from _unknown_keys(table, ALL_KEYS)
    yield from _wrong_values(table)
    for key, read in OTHER_VALUES.items():
        yield from _problem(read, table, key)
    if not any(_problem(toml_values.tables, table, "except")):
        for inner in toml_values.tables(table, "except"):
            yield from _unknown_keys(inner, CONDITIONS, " in except")
            yield from _wrong_values(inner)


def _check_keys(table: Mapping[str, Any], known: Collection[str], where: str = "") -> None:
    for problem in _unknown_keys(table, known, where):
        raise ValueError(problem)


def _unknown_keys(table: Mapping[str, Any], known: Collection[str], where: str = "") -> Iterator[str]:
    for key in table:
        if key not in known:
            near = get_close_matches(key, sorted(known), n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
            yield f"unknown key {key!r}{where}; {hint}"


def _wrong_values(table: Mapping[str, Any]) -> Iterator[str]:
    for key in KEYS:
        yield from _problem(key.read, table, key.name)


def _problem(
    read: Callable[[Mapping[str, Any], str], Any], table: Mapping[str, Any], key: str
) -> Iterator[str]:
    try:
        read(table, key)
    except ValueError as problem:
        yield str(problem)


def _conditions(table: Mapping[str, Any], verb: Verb) -> Rule:
    return Rule(verb=verb, **{key.field: key.read(table, key.name) for key in KEYS})
