"""Finds the keywords of a schema that a server is sent but does not promise to hold to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from toolcrib.dataclass import dataclass
from toolcrib.guided.patterns import is_plain
from toolcrib.json_text.values import escape
from toolcrib.schema.keywords import KINDS, NAMED, NODE, NODES, types_of

__all__ = ["Weak", "weak_places"]

Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Weak:
    """A keyword that is sent and not promised: why, and for which nodes."""

    keyword: str
    why: str
    where: Callable[[Node], bool] = lambda node: True


def _has_capitals(node: Node) -> bool:
    return any(isinstance(value, str) and value.lower() != value.upper() for value in node["enum"])


def _is_no_plain_pattern(node: Node) -> bool:
    return not is_plain(node["pattern"])


def _is_no_integer(node: Node) -> bool:
    return types_of(node) != ["integer"]


CAPITALS: Final = (Weak("enum", "capital letters of a text may differ", _has_capitals),)
UNTYPED: Final = tuple(
    Weak(word, "not read where no type stands beside it", lambda node: not types_of(node))
    for word in (
        *("pattern", "format", "minLength", "maxLength"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    )
)
PATTERNS: Final = (
    *UNTYPED,
    Weak(
        "pattern",
        "engines match the whole text, and may write characters that JSON must escape",
        _is_no_plain_pattern,
    ),
)
INTEGERS: Final = (
    *UNTYPED,
    *(Weak(word, "held to for integers alone", _is_no_integer) for word in ("minimum", "maximum")),
)
# A grammar knows no calendar; of names and addresses of hosts engines know the form alone. Measured with llguidance 1.9
# and xgrammar 0.2.8; cloud providers document no more.
FORMATS: Final = (
    Weak(
        "format",
        "held to its form alone: a day such as 2023-02-29 may come",
        lambda node: node["format"] in ("date", "date-time"),
    ),
    Weak("format", "held to its form alone", lambda node: node["format"] in ("hostname", "ipv4")),
)
UNDOCUMENTED: Final = tuple(
    Weak(word, "sent, but the server does not say that it holds to it")
    for word in (
        *("pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("multipleOf", "minItems", "maxItems"),
    )
)


def weak_places(schema: Node, weak: tuple[Weak, ...]) -> Iterator[tuple[str, str, str]]:
    """Each place of such a keyword: JSON pointer, keyword, and why it is not promised."""
    waiting: list[tuple[str, Any]] = [("", schema)] if weak else []
    while waiting:
        path, node = waiting.pop(0)
        if not isinstance(node, Mapping):
            continue
        for row in weak:
            if row.keyword in node and row.where(node):
                yield path, row.keyword, row.why
        for word, value in node.items():
            kind = NAMED if word == "$defs" else KINDS.get(word)
            if kind == NODE:
                waiting.append((f"{path}/{word}", value))
            elif kind == NODES:
                waiting += [(f"{path}/{word}/{number}", item) for number, item in enumerate(value)]
            elif kind == NAMED:
                waiting += [(f"{path}/{word}/{escape(name)}", item) for name, item in value.items()]
