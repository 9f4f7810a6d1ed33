"""Grammars as text: GBNF, EBNF and Lark read into rules, and rules written as GBNF or Lark."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

from toolcrib.guided.grammar_tree import (
    ANY,
    LAST,
    Chars,
    Either,
    Exact,
    InOrder,
    Node,
    Repeat,
    RuleName,
    Rules,
    either,
    in_order,
    parts_of,
)
from toolcrib.guided.regex_tree import regex_text, regex_tree, times

__all__ = ["read_grammar", "write_gbnf", "write_lark"]

DEEPEST: Final = 100  # levels of groups within each other
TOKEN: Final = {
    "gbnf": re.compile(
        r"(?P<skip>\s+|\#[^\n]*)|(?P<is>::=)|(?P<name>[A-Za-z_][\w.-]*)|(?P<text>\"(?:\\.|[^\"\\\n])*\")"
        r"|(?P<set>\[(?:\\.|[^\]\\])*\])|(?P<times>\{\s*\d*\s*(?:,\s*\d*\s*)?\})|(?P<mark>[|()*+?.])"
    ),
    "lark": re.compile(
        r"(?P<skip>[ \t\r\n]+|//[^\n]*|->\s*\w+)|(?P<is>:)"
        r"|(?P<name>[?!]?_?[A-Za-z]\w*(?:\.-?\d+)?(?=\s*:)|_?[A-Za-z]\w*)"
        r"|(?P<text>\"(?:\\.|[^\"\\\n])*\"i?)|(?P<regex>/(?:\\.|[^/\\\n])+/[a-z]*)"
        r"|(?P<times>~\s*\d+(?:\s*\.\.\s*\d+)?|\{\s*\d*\s*(?:,\s*\d*\s*)?\})|(?P<range>\.\.)|(?P<mark>[|()*+?\[\]])"
    ),
}
ESCAPE: Final = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
NAMED: Final = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}


@lru_cache(maxsize=64)
def read_grammar(text: str, syntax: str, start: str) -> Rules:
    """The rules of a grammar, of which `start` is one; ValueError for what cannot be read, with the place."""
    return _Reader(text, "lark" if syntax == "lark" else "gbnf").rules(start)


class _Reader:
    def __init__(self, text: str, syntax: str) -> None:
        self._text = text
        self._lark = syntax == "lark"
        self._tokens = [*self._split(syntax)]
        self._at = 0

    def rules(self, start: str) -> Rules:
        found: dict[str, Node] = {}
        while self._at < len(self._tokens):
            name = self._rule_name()
            if name in found:
                raise self._wrong(f"the rule {name!r} stands twice")
            self._at += 2
            found[name] = self._alternatives(0)
        if start not in found:
            raise ValueError(f"grammar: there is no rule {start!r}; there are {', '.join(found) or 'none'}")
        unknown = sorted({name for node in found.values() for name in _names_in(node)} - found.keys())
        if unknown:
            raise ValueError(f"grammar: the rule {unknown[0]!r} is used but not defined")
        return found

    def _rule_name(self) -> str:
        kind, value, _ = self._tokens[self._at]
        if kind != "name" or not self._starts_rule():
            raise self._wrong("expected a rule")
        if not self._lark:
            return value
        name, _, priority = value.lstrip("?!").partition(".")
        if priority:
            raise self._wrong("a priority is not taken")
        return name

    def _split(self, syntax: str) -> Iterator[tuple[str, str, int]]:
        at = 0
        while at < len(self._text):
            match = TOKEN[syntax].match(self._text, at)
            if match is None:
                directive = self._lark and self._text[at] == "%"
                raise self._wrong_at(at, "a directive is not taken" if directive else "cannot be read")
            if match.lastgroup != "skip":
                yield str(match.lastgroup), match[0], at
            at = match.end()

    def _starts_rule(self) -> bool:
        following = self._tokens[self._at + 1][0] if self._at + 1 < len(self._tokens) else ""
        return self._tokens[self._at][0] == "name" and following == "is"

    def _mark(self) -> str:
        """The mark at this place; "" where there is another token, or none."""
        if self._at == len(self._tokens):
            return ""
        kind, value, _ = self._tokens[self._at]
        return value if kind == "mark" else ""

    def _alternatives(self, depth: int) -> Node:
        if depth > DEEPEST:
            raise self._wrong("groups are nested too deeply")
        options = [self._sequence(depth)]
        while self._mark() == "|":
            self._at += 1
            options.append(self._sequence(depth))
        return either(options)

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while (
            self._at < len(self._tokens) and self._mark() not in ("|", ")", "]") and not self._starts_rule()
        ):
            parts.append(self._repeated(self._part(depth)))
        return in_order(parts)

    def _part(self, depth: int) -> Node:
        kind, value, _ = self._tokens[self._at]
        closing = {"(": ")", "[": "]"}.get(value) if kind == "mark" else None
        if closing:
            self._at += 1
            inner = self._alternatives(depth + 1)
            if self._mark() != closing:
                raise self._wrong(f"expected {closing!r}")
            self._at += 1
            return inner if closing == ")" else Repeat(inner, 0, 1)
        read: dict[str, Callable[[str], Node]] = {
            "name": RuleName,
            "text": self._literal,
            "set": self._set,
            "regex": self._regex,
            "mark": self._any,
        }
        if kind not in read:
            raise self._wrong("cannot stand here")
        node = read[kind](value)
        self._at += 1
        return node

    def _any(self, mark: str) -> Node:
        if mark != ".":
            raise self._wrong("nothing stands before it")
        return ANY

    def _repeated(self, part: Node) -> Node:
        while self._at < len(self._tokens):
            kind, value, _ = self._tokens[self._at]
            marks = {"*": (0, None), "+": (1, None), "?": (0, 1)}
            if kind == "mark" and value in marks:
                part = Repeat(part, *marks[value])
            elif kind == "times":
                part = self._times(part, value)
            else:
                break
            self._at += 1
        return part

    def _times(self, part: Node, text: str) -> Node:
        numbers = re.findall(r"\d+|,|\.\.", text)
        least = int(numbers[0]) if numbers and numbers[0].isdigit() else 0
        most: int | None = least if len(numbers) == 1 else None
        if numbers and len(numbers) > 1 and numbers[-1].isdigit():
            most = int(numbers[-1])
        if not numbers or (most is not None and most < least):
            raise self._wrong("no number of repeats")
        return Repeat(part, least, most)

    def _literal(self, written: str) -> Node:
        ignores_case = written.endswith("i")
        text = "".join(_unescaped(written.removesuffix("i")[1:-1]))
        following = self._tokens[self._at + 1 : self._at + 3]
        if [token[0] for token in following] == ["range", "text"]:
            last = "".join(_unescaped(following[1][1][1:-1]))
            if len(text) != 1 or len(last) != 1 or last < text:
                raise self._wrong("a range goes from one character to a later one")
            self._at += 2
            return Chars(((ord(text), ord(last)),))
        if not ignores_case:
            return Exact(text)
        both = ({char.lower(), char.upper()} for char in text)
        return in_order(Chars.of((ord(one), ord(one)) for one in case if len(one) == 1) for case in both)

    def _set(self, written: str) -> Node:
        body = written[1:-1]
        inverted = body.startswith("^")
        chars = [*_unescaped(body[inverted:], mark="-")]
        ranges: list[tuple[int, int]] = []
        at = 0
        while at < len(chars):
            first = last = _code(chars[at])
            if at + 2 < len(chars) and chars[at + 1] == "range":
                last, at = _code(chars[at + 2]), at + 2
            if last < first:
                raise self._wrong("a range goes from one character to a later one")
            ranges.append((first, last))
            at += 1
        found = Chars.of(ranges)
        found = found.inverted() if inverted else found
        if not found.ranges:
            raise self._wrong("a set without characters matches nothing")
        return found

    def _regex(self, written: str) -> Node:
        pattern, _, flags = written[1:].rpartition("/")
        if flags:
            raise self._wrong("flags of a regular expression are not taken")
        return regex_tree(pattern.replace("\\/", "/"))

    def _wrong(self, words: str) -> ValueError:
        return self._wrong_at(self._tokens[min(self._at, len(self._tokens) - 1)][2], words)

    def _wrong_at(self, at: int, words: str) -> ValueError:
        line = self._text.count("\n", 0, at) + 1
        shown = self._text[at : at + 20].partition("\n")[0]
        return ValueError(f"grammar, line {line}, at {shown!r}: {words}")


def _unescaped(body: str, mark: str = "") -> Iterator[str]:
    """The characters of a literal; an unescaped `mark` between two characters is given as "range"."""
    at = 0
    while at < len(body):
        escape = ESCAPE.match(body, at) if body[at] == "\\" else None
        if escape is None:
            yield "range" if body[at] == mark and 0 < at < len(body) - 1 else body[at]
            at += 1
            continue
        digits = escape[1] or escape[2] or escape[3]
        yield chr(int(digits, 16)) if digits else NAMED.get(escape[4], escape[4])
        at = escape.end()


def _code(char: str) -> int:
    return ord("-" if char == "range" else char)


def _names_in(node: Node) -> Iterator[str]:
    if isinstance(node, RuleName):
        yield node.name
    for part in parts_of(node):
        yield from _names_in(part)


# -- writing ----------------------------------------------------------------------------------------------


def write_gbnf(rules: Rules, start: str) -> str:
    """The rules as GBNF, as llama.cpp reads it, and so does xgrammar. The rule of the whole text becomes `root`."""
    names = _new_names(rules, start, "root", "-")
    return "".join(f"{names[name]} ::= {_gbnf(node, names)}\n" for name, node in _from_start(rules, start))


def write_lark(rules: Rules, start: str) -> str:
    """The rules as Lark, as llguidance and OpenAI read it. The rule of the whole text becomes `start`.

    Their lexer takes the longest terminal that matches, while our grammars have no lexer. So each character becomes a
    terminal of its own, except in texts whose first character begins no other terminal.
    """
    names = _new_names(rules, start, "start", "_")
    whole = _distinct_texts(rules)
    return "".join(
        f"{names[name]}: {_lark(node, names, whole)}\n" for name, node in _from_start(rules, start)
    )


def _distinct_texts(rules: Rules) -> set[str]:
    """The texts whose first character begins no other terminal, when all other texts are split into characters."""
    terminals = {node for rule in rules.values() for node in _terminals(rule)}
    sets = [node for node in terminals if isinstance(node, Chars)]
    texts = {node.text for node in terminals if isinstance(node, Exact) and node.text}
    split = {text for text in texts if len(text) == 1}
    whole = texts - split
    while True:
        single = {char for text in split for char in text}
        firsts = [text[0] for text in whole]
        unclear = {
            text
            for text in whole
            if firsts.count(text[0]) > 1 or text[0] in single or any(chars.has(text[0]) for chars in sets)
        }
        if not unclear:
            return whole
        whole, split = whole - unclear, split | unclear


def _terminals(node: Node) -> Iterator[Node]:
    if isinstance(node, Exact | Chars):
        yield node
    for part in parts_of(node):
        yield from _terminals(part)


def _from_start(rules: Rules, start: str) -> list[tuple[str, Node]]:
    return [(start, rules[start]), *((name, node) for name, node in rules.items() if name != start)]


def _new_names(rules: Rules, start: str, root: str, joint: str) -> dict[str, str]:
    """Names that a syntax takes: small letters and digits, with one character between them."""
    names = {start: root}
    for name in rules:
        if name == start:
            continue
        plain = re.sub(r"[^a-z0-9]+", joint, name.lower()).strip(joint)
        plain = plain if plain[:1].isalpha() else f"r{joint}{plain}"
        new, number = plain, 2
        while new in names.values() or new in (root, "root", "start"):
            new, number = f"{plain}{joint}{number}", number + 1
        names[name] = new
    return names


def _gbnf(node: Node, names: dict[str, str]) -> str:
    if isinstance(node, Exact):
        return f'"{"".join(map(_in_text, node.text))}"'
    if isinstance(node, Chars):
        return _gbnf_set(node)
    if isinstance(node, RuleName):
        return names[node.name]
    if isinstance(node, InOrder):
        return " ".join(_grouped(part, _gbnf(part, names)) for part in node.parts)
    if isinstance(node, Either):
        return " | ".join(_gbnf(option, names) for option in node.options)
    return _grouped(node.part, _gbnf(node.part, names), all_but_single=True) + times(node.least, node.most)


def _grouped(node: Node, text: str, *, all_but_single: bool = False) -> str:
    loose = isinstance(node, Either) or (all_but_single and isinstance(node, InOrder | Repeat))
    return f"({text})" if loose else text


def _gbnf_set(chars: Chars) -> str:
    inverted = chars.ranges[-1][1] == LAST
    ranges = chars.inverted().ranges if inverted else chars.ranges
    if not ranges:  # no escape of a set means any character to every reader
        return "([\\x00-\\x7F] | [^\\x00-\\x7F])"
    body = "".join(
        _in_set(first) if first == last else f"{_in_set(first)}-{_in_set(last)}" for first, last in ranges
    )
    return f"[{'^' if inverted else ''}{body}]"


def _in_set(code: int) -> str:
    char = chr(code)
    if char.isascii():
        return char if char.isalnum() else f"\\x{code:02X}"
    return char if char.isprintable() else _numbered(code)


def _in_text(char: str) -> str:
    known = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char)
    return known or (char if char.isprintable() else _numbered(ord(char)))


def _numbered(code: int) -> str:
    return f"\\x{code:02X}" if code < 0x80 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _lark(node: Node, names: dict[str, str], whole: set[str]) -> str:
    if isinstance(node, Exact):
        pieces = [node.text] if node.text in whole or not node.text else [*node.text]
        return " ".join(json.dumps(piece, ensure_ascii=False) for piece in pieces)
    if isinstance(node, Chars):
        return f"/{regex_text(node).replace('/', chr(92) + '/')}/"
    if isinstance(node, RuleName):
        return names[node.name]
    if isinstance(node, InOrder):
        return " ".join(_grouped(part, _lark(part, names, whole)) for part in node.parts)
    if isinstance(node, Either):
        return " | ".join(_lark(option, names, whole) for option in node.options)
    return f"({_lark(node.part, names, whole)}){times(node.least, node.most)}"
