"""Says whether a text is of a grammar, by Earley's algorithm: any context-free grammar, at most cubic in the text."""

from __future__ import annotations

from functools import lru_cache

from toolcrib.dataclass import dataclass, field
from toolcrib.guided.grammar_tree import (
    MOST_REPEATS,
    Chars,
    Either,
    Exact,
    InOrder,
    Node,
    Repeat,
    RuleName,
    Rules,
)

__all__ = ["first_wrong"]


@dataclass(frozen=True, slots=True)
class _Run:
    """`least` to `most` characters of a set. They are counted in the item, so that a long run costs its length."""

    chars: Chars
    least: int = 1
    most: int | None = 1


Symbol = str | _Run  # a rule by its name, or characters
Symbols = tuple[Symbol, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Production:
    """Symbols in order. It is told apart by identity, so that to look one up costs nothing for each of its symbols."""

    symbols: Symbols


@dataclass(slots=True)
class _Flat:
    """A grammar as plain productions: repeats and groups are rules of their own."""

    rules: dict[str, list[_Production]] = field(default_factory=lambda: dict[str, list[_Production]]())
    empty: set[str] = field(default_factory=lambda: set[str]())

    def symbols(self, node: Node) -> Symbols:
        if isinstance(node, Exact):
            return tuple(_Run(Chars(((ord(char), ord(char)),))) for char in node.text)
        if isinstance(node, Chars):
            return (_Run(node),)
        if isinstance(node, RuleName):
            return (f"={node.name}",)
        if isinstance(node, InOrder):
            return tuple(symbol for part in node.parts for symbol in self.symbols(part))
        if isinstance(node, Either):
            return (self.new([self.symbols(option) for option in node.options]),)
        return self._repeat(node)

    def new(self, productions: list[Symbols]) -> str:
        name = f"#{len(self.rules)}"
        self.rules[name] = [*map(_Production, productions)]
        return name

    def _repeat(self, node: Repeat) -> Symbols:
        while (
            isinstance(inner := node.part, Repeat) and inner.least <= 1
        ):  # any number between can be reached
            if 0 in (node.most, inner.most):
                return ()
            most = None if node.most is None or inner.most is None else node.most * inner.most
            node = Repeat(inner.part, node.least * inner.least, most)
        part = self.symbols(node.part)
        if len(part) == 1 and isinstance(run := part[0], _Run) and (run.least, run.most) == (1, 1):
            return (_Run(run.chars, node.least, node.most),)
        needed = part * min(node.least, MOST_REPEATS)
        if node.most is None or node.most > MOST_REPEATS:
            more = self.new([()])
            self.rules[more].append(_Production((more, *part)))  # left recursion costs Earley least
            return (*needed, more)
        rest: Symbols = ()
        for _ in range(node.most - node.least):
            rest = (self.new([(), (*part, *rest)]),)
        return (*needed, *rest)


class _Key:
    """A grammar as a key of the cache, by identity: `read_grammar` gives the same rules for the same text."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def __hash__(self) -> int:
        return id(self.rules)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.rules is self.rules


@lru_cache(maxsize=64)
def _flat(rules: _Key) -> _Flat:
    flat = _Flat()
    for name, node in rules.rules.items():
        flat.rules[f"={name}"] = []
        flat.rules[f"={name}"].append(_Production(flat.symbols(node)))
    changed = True
    while changed:
        changed = False
        for name, productions in flat.rules.items():
            if name not in flat.empty and any(
                all(_is_empty(symbol, flat.empty) for symbol in production.symbols)
                for production in productions
            ):
                flat.empty.add(name)
                changed = True
    return flat


def _is_empty(symbol: Symbol, empty: set[str]) -> bool:
    return symbol in empty if isinstance(symbol, str) else symbol.least == 0


_Item = tuple[
    str, _Production, int, int, int
]  # rule, production, place in it, where it began, characters of a run


def first_wrong(rules: Rules, start: str, text: str) -> int | None:
    """The place of the first character that no text of the grammar has there; None if the text is of the grammar.

    The length of the text where it ends too early.
    """
    flat = _flat(_Key(rules))
    columns: list[dict[_Item, None]] = [{}]
    waiting: list[dict[str, list[_Item]]] = []
    for production in flat.rules[f"={start}"]:
        columns[0][(f"={start}", production, 0, 0, 0)] = None
    for at in range(len(text) + 1):
        column, following = columns[at], dict[_Item, None]()
        wants: dict[str, list[_Item]] = {}
        waiting.append(wants)
        queue = [*column]
        while queue:
            item = queue.pop()
            name, production, place, begun, count = item
            if place == len(production.symbols):
                found = [(w[0], w[1], w[2] + 1, w[3], 0) for w in waiting[begun].get(name, ())]
            elif isinstance(symbol := production.symbols[place], _Run):
                more = symbol.most is None or count < symbol.most
                if more and at < len(text) and symbol.chars.has(text[at]):
                    # A run without an upper bound need not be counted beyond its least.
                    counted = min(count + 1, symbol.least) if symbol.most is None else count + 1
                    following[(name, production, place, begun, counted)] = None
                found = [(name, production, place + 1, begun, 0)] if count >= symbol.least else []
            else:
                first_time = symbol not in wants
                wants.setdefault(symbol, []).append(item)
                found = [(symbol, option, 0, at, 0) for option in flat.rules[symbol]] if first_time else []
                if symbol in flat.empty:
                    found.append((name, production, place + 1, begun, 0))
            for new in found:
                if new not in column:
                    column[new] = None
                    queue.append(new)
        if at < len(text) and not following:
            return at
        columns.append(following)
    ended = any(
        name == f"={start}" and place == len(production.symbols) and begun == 0
        for name, production, place, begun, _ in columns[len(text)]
    )
    return None if ended else len(text)
