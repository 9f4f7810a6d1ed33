"""Regular expressions read into a tree, and written in the words that every engine reads alike."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any, Final

from toolcrib.guided.grammar_tree import (
    LAST,
    SURROGATES,
    Chars,
    Either,
    Exact,
    InOrder,
    Node,
    Repeat,
    RuleName,
    either,
    in_order,
)

__all__ = ["regex_text", "regex_tree"]

DIGIT: Final = ((0x30, 0x39),)
WORD: Final = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACE: Final = ((0x09, 0x0D), (0x20, 0x20))
CATEGORIES: Final = {
    "CATEGORY_DIGIT": Chars(DIGIT),
    "CATEGORY_WORD": Chars(WORD),
    "CATEGORY_SPACE": Chars(SPACE),
    "CATEGORY_NOT_DIGIT": Chars(DIGIT).inverted(),
    "CATEGORY_NOT_WORD": Chars(WORD).inverted(),
    "CATEGORY_NOT_SPACE": Chars(SPACE).inverted(),
}
NEWLINE: Final = Chars(((0x0A, 0x0A),))
BEGINS: Final = ("AT_BEGINNING", "AT_BEGINNING_STRING")
ENDS: Final = ("AT_END", "AT_END_STRING")
NOT_TAKEN: Final = {
    "ASSERT": "looks ahead or back",
    "ASSERT_NOT": "looks ahead or back",
    "GROUPREF": "refers back to a group",
    "GROUPREF_EXISTS": "refers back to a group",
    "ATOMIC_GROUP": "has an atomic group",
    "POSSESSIVE_REPEAT": "has a possessive repeat",
    "AT": "has an anchor within, or a word boundary",
}
SPECIAL: Final = frozenset("\\.^$|?*+()[]{}")
SPECIAL_IN_SET: Final = frozenset("\\^[]-")
NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def regex_tree(pattern: str) -> Node:
    """The tree of a regular expression; ValueError for what engines do not read, or read differently."""
    given: Any = pattern
    if not isinstance(given, str):
        raise ValueError(f"Regex: expected a pattern as text, got {given!r}")
    try:
        parsed: Any = import_module("re._parser").parse(pattern, re.ASCII)
    except (re.error, RecursionError, OverflowError) as problem:
        raise ValueError(f"Regex: {pattern!r} is no regular expression: {problem}") from None
    if parsed.state.flags & ~re.ASCII:
        raise ValueError(f"Regex: {pattern!r} sets flags, which engines read differently: write them out")
    try:
        return _sequence([*parsed], pattern, whole=True)
    except RecursionError:
        raise ValueError("Regex: the pattern is nested too deeply") from None


def _sequence(items: list[tuple[Any, Any]], pattern: str, *, whole: bool = False) -> Node:
    """The tree of items that follow each other; anchors at the ends of the whole pattern say nothing."""
    if whole:
        while items and str(items[0][0]) == "AT" and str(items[0][1]) in BEGINS:
            items = items[1:]
        while items and str(items[-1][0]) == "AT" and str(items[-1][1]) in ENDS:
            items = items[:-1]
        if len(items) == 1 and str(items[0][0]) == "BRANCH":
            return either(_sequence([*option], pattern, whole=True) for option in items[0][1][1])
    return in_order(_item(str(kind), value, pattern) for kind, value in items)


def _item(kind: str, value: Any, pattern: str) -> Node:
    if kind == "LITERAL":
        return Exact(_char(value))
    if kind == "NOT_LITERAL":
        return Chars(((value, value),)).inverted()
    if kind == "ANY":
        return NEWLINE.inverted()
    if kind == "IN":
        return _set(value)
    if kind == "BRANCH":
        return either(_sequence([*option], pattern) for option in value[1])
    if kind in ("MAX_REPEAT", "MIN_REPEAT"):
        least, most, inner = value
        part = _sequence([*inner], pattern)
        bound = None if str(most) == "MAXREPEAT" else int(most)
        return part if (least, bound) == (1, 1) else Repeat(part, least, bound)
    if kind == "SUBPATTERN":
        _, added, taken, inner = value
        if added or taken:
            raise ValueError(f"Regex: {pattern!r} sets flags, which engines read differently: write them out")
        return _sequence([*inner], pattern)
    raise ValueError(
        f"Regex: {pattern!r} {NOT_TAKEN.get(kind, 'says something')}, which engines cannot follow"
    )


def _set(items: list[tuple[Any, Any]]) -> Node:
    inverted = str(items[0][0]) == "NEGATE"
    ranges: list[tuple[int, int]] = []
    for kind, value in items:
        if str(kind) == "LITERAL":
            ranges.append((value, value))
        elif str(kind) == "RANGE":
            ranges.append(value)
        elif str(kind) == "CATEGORY":
            ranges += CATEGORIES[str(value)].ranges
    chars = Chars.of(ranges)
    chars = chars.inverted() if inverted else chars
    if not chars.ranges:
        raise ValueError("Regex: a set without characters matches nothing")
    return chars


def _char(code: int) -> str:
    if SURROGATES[0] <= code <= SURROGATES[1]:
        raise ValueError("Regex: half of a surrogate pair is no character")
    return chr(code)


def regex_text(node: Node) -> str:
    """A tree without rules as a regular expression; sets of characters are written out."""
    if isinstance(node, Exact):
        return "".join(map(_escaped, node.text))
    if isinstance(node, Chars):
        return _set_text(node)
    if isinstance(node, InOrder):
        return "".join(f"({regex_text(p)})" if isinstance(p, Either) else regex_text(p) for p in node.parts)
    if isinstance(node, Either):
        return "|".join(map(regex_text, node.options))
    if isinstance(node, RuleName):
        raise ValueError(f"the rule {node.name!r} cannot be written as a regular expression")
    single = isinstance(node.part, Chars) or (isinstance(node.part, Exact) and len(node.part.text) == 1)
    inner = regex_text(node.part) if single else f"({regex_text(node.part)})"
    return inner + times(node.least, node.most)


def times(least: int, most: int | None) -> str:
    """The mark of a repeat, as regular expressions and GBNF write it."""
    known: dict[tuple[int, int | None], str] = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    if (least, most) in known:
        return known[least, most]
    return f"{{{least}}}" if most == least else f"{{{least},{'' if most is None else most}}}"


def _set_text(chars: Chars) -> str:
    inverted = chars.ranges[-1][1] == LAST
    ranges = chars.inverted().ranges if inverted else chars.ranges
    if not ranges:
        return "[\\s\\S]"
    ends = ([_escaped(chr(code), SPECIAL_IN_SET) for code in span] for span in ranges)
    body = "".join(first if first == last else f"{first}-{last}" for first, last in ends)
    return f"[{'^' if inverted else ''}{body}]"


def _escaped(char: str, special: frozenset[str] = SPECIAL) -> str:
    if char in NAMED:
        return NAMED[char]
    if ord(char) < 0x20 or ord(char) == 0x7F:
        return f"\\x{ord(char):02x}"
    return f"\\{char}" if char in special else char
