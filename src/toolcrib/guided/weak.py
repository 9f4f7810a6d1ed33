"""Where a schema uses keywords that a server is sent but does not promise to hold to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcrib.json_text.values import escape
from toolcrib.schema.keywords import KINDS, NAMED, NODE, NODES

__all__ = ["weak_places"]


def weak_places(schema: Mapping[str, Any], weak: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Each place of such a keyword: JSON pointer, keyword, and why it is not promised."""
    waiting: list[tuple[str, Any]] = [("", schema)] if weak else []
    while waiting:
        path, node = waiting.pop(0)
        if not isinstance(node, Mapping):
            continue
        for word, value in node.items():
            if word in weak and _matters(word, value):
                yield path, word, weak[word]
            kind = NAMED if word == "$defs" else KINDS.get(word)
            if kind == NODE:
                waiting.append((f"{path}/{word}", value))
            elif kind == NODES:
                waiting += [(f"{path}/{word}/{number}", item) for number, item in enumerate(value)]
            elif kind == NAMED:
                waiting += [(f"{path}/{word}/{escape(name)}", item) for name, item in value.items()]


def _matters(word: str, value: Any) -> bool:
    """Whether the keyword can go wrong here: texts without letters have no capitals, an anchored pattern is whole."""
    if word == "enum":
        return any(isinstance(item, str) and item.lower() != item.upper() for item in value)
    if word == "pattern":
        return not (isinstance(value, str) and value.startswith("^") and value.endswith("$"))
    return True
