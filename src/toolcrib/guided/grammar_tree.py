"""A grammar as a tree of nodes: what regular expressions and all syntaxes of grammars are read into, and written from.

A text matches a node as a whole, character by character; there is no lexer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from toolcrib.dataclass import dataclass

__all__ = [
    "ANY",
    "EMPTY",
    "Chars",
    "Either",
    "Exact",
    "InOrder",
    "Node",
    "Repeat",
    "RuleName",
    "Rules",
    "check_size",
    "either",
    "in_order",
    "left_recursive",
    "parts_of",
    "without",
]

LAST: Final = 0x10FFFF
MOST_REPEATS: Final = 10_000  # a larger bound counts as none
MOST_SYMBOLS: Final = 1_000_000
SURROGATES: Final = (0xD800, 0xDFFF)  # code points that no text has


@dataclass(frozen=True, slots=True)
class Exact:
    """This text."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One character within the ranges of code points, which are sorted and do not touch."""

    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> Chars:
        """The ranges in order, with those joined that touch."""
        joined: list[tuple[int, int]] = []
        for first, last in sorted(ranges):
            if joined and first <= joined[-1][1] + 1:
                joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
            else:
                joined.append((first, last))
        return cls(tuple(joined))

    def inverted(self) -> Chars:
        """All other characters."""
        found, at = [], 0
        for first, last in self.ranges:
            if first > at:
                found.append((at, first - 1))
            at = last + 1
        if at <= LAST:
            found.append((at, LAST))
        return Chars(tuple(found))

    def has(self, char: str) -> bool:
        code = ord(char)
        return any(first <= code <= last for first, last in self.ranges)


@dataclass(frozen=True, slots=True)
class InOrder:
    """One part after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of the options."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The part, repeated `least` to `most` times; `most` None for no bound."""

    part: Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class RuleName:
    """The rule of that name."""

    name: str


Node = Exact | Chars | InOrder | Either | Repeat | RuleName
Rules = Mapping[str, Node]

EMPTY: Final = Exact("")
ANY: Final = Chars(((0, LAST),))


def in_order(parts: Iterable[Node]) -> Node:
    """The parts one after the other, texts that follow each other joined."""
    out: list[Node] = []
    for part in parts:
        for inner in part.parts if isinstance(part, InOrder) else (part,):
            if isinstance(inner, Exact) and out and isinstance(last := out[-1], Exact):
                out[-1] = Exact(last.text + inner.text)
            elif inner != EMPTY:
                out.append(inner)
    return out[0] if len(out) == 1 else InOrder(tuple(out)) if out else EMPTY


def either(options: Iterable[Node]) -> Node:
    """One of the options; the only one where there is but one."""
    given = tuple(dict.fromkeys(options))
    return given[0] if len(given) == 1 else Either(given)


def without(one: Chars, other: Chars) -> Chars:
    """The characters of `one` that are not in `other`."""
    return Chars.of([*one.inverted().ranges, *other.ranges]).inverted()


def check_size(rules: Iterable[Node], owner: str) -> None:
    """Raises ValueError for repeats within repeats that nobody could check a text against."""
    if sum(map(_written_out, rules)) > MOST_SYMBOLS:
        raise ValueError(
            f"{owner}: its repeats within repeats count to more than {MOST_SYMBOLS:,} characters"
        )


def _written_out(node: Node) -> int:
    """How many characters and rules a node has with its repeats written out; those of one character are counted."""
    if isinstance(node, Repeat):
        part = node.part
        single = isinstance(part, Chars) or (isinstance(part, Exact) and len(part.text) == 1)
        times = 1 if single else max(node.least, node.most or 1)
        return _written_out(node.part) * min(times, MOST_REPEATS)
    if isinstance(node, Exact):
        return len(node.text)
    return sum(map(_written_out, parts_of(node))) or 1


def parts_of(node: Node) -> tuple[Node, ...]:
    """The nodes within a node."""
    if isinstance(node, InOrder):
        return node.parts
    if isinstance(node, Either):
        return node.options
    return (node.part,) if isinstance(node, Repeat) else ()


def left_recursive(rules: Rules) -> str:
    """A rule that may begin with itself, which some engines cannot read; "" if there is none."""
    empty = nullable_rules(rules)
    begins = {name: {*_first_names(node, empty)} for name, node in rules.items()}
    for name in rules:
        seen, waiting = set[str](), [*begins[name]]
        while waiting:
            at = waiting.pop()
            if at == name:
                return name
            if at not in seen:
                seen.add(at)
                waiting += begins.get(at, ())
    return ""


def nullable_rules(rules: Rules) -> set[str]:
    """The rules that the empty text matches."""
    found: set[str] = set()
    while more := {name for name, node in rules.items() if name not in found and is_nullable(node, found)}:
        found |= more
    return found


def is_nullable(node: Node, rules: set[str]) -> bool:
    """Whether the empty text matches a node, if it matches these rules."""
    if isinstance(node, Exact):
        return not node.text
    if isinstance(node, RuleName):
        return node.name in rules
    if isinstance(node, Repeat):
        return node.least == 0 or is_nullable(node.part, rules)
    if isinstance(node, InOrder):
        return all(is_nullable(part, rules) for part in node.parts)
    return isinstance(node, Either) and any(is_nullable(option, rules) for option in node.options)


def _first_names(node: Node, empty: set[str]) -> Iterator[str]:
    """The rules with which a node may begin."""
    if isinstance(node, RuleName):
        yield node.name
    elif isinstance(node, InOrder):
        for part in node.parts:
            yield from _first_names(part, empty)
            if not is_nullable(part, empty):
                return
    else:
        for part in parts_of(node):
            yield from _first_names(part, empty)
