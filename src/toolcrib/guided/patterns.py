"""Patterns of a JSON Schema for engines that match a whole text, and know few escapes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from toolcrib.guided.grammar_tree import Chars, Exact, Node, parts_of
from toolcrib.guided.regex_tree import regex_text, regex_tree
from toolcrib.json_text.values import escape
from toolcrib.schema.canonical import Loss
from toolcrib.schema.keywords import KINDS, NAMED, NODE, NODES

__all__ = ["is_plain", "portable_patterns"]

ESCAPED_IN_JSON: Final = Chars(((0x00, 0x1F), (0x22, 0x22), (0x5C, 0x5C)))


def is_plain(pattern: str) -> bool:
    """Whether a pattern is anchored at both ends, and matches no text with a character that JSON must escape."""
    tree = _whole(pattern)
    return tree is not None and not _needs_escapes(tree)


def portable_patterns(schema: Mapping[str, Any], *, drop: bool) -> tuple[dict[str, Any], list[Loss]]:
    """The schema with its patterns in the syntax that every engine reads. With `drop`, those that are not plain go."""
    losses: list[Loss] = []
    return _rewritten(schema, "", drop, losses), losses


def _rewritten(node: Any, path: str, drop: bool, losses: list[Loss]) -> Any:
    if not isinstance(node, Mapping):
        return node
    out = dict(node)
    pattern = node.get("pattern")
    if isinstance(pattern, str):
        tree = _whole(pattern)
        if tree is not None:
            out["pattern"] = f"^({regex_text(tree)})$"
        if drop and not is_plain(pattern):
            del out["pattern"]
            losses.append(Loss(path, "pattern", pattern))
    for word, value in node.items():
        kind = NAMED if word == "$defs" else KINDS.get(word)
        if kind == NODE:
            out[word] = _rewritten(value, f"{path}/{word}", drop, losses)
        elif kind == NODES:
            out[word] = [
                _rewritten(item, f"{path}/{word}/{number}", drop, losses) for number, item in enumerate(value)
            ]
        elif kind == NAMED:
            out[word] = {
                name: _rewritten(item, f"{path}/{word}/{escape(name)}", drop, losses)
                for name, item in value.items()
            }
    return out


def _whole(pattern: str) -> Node | None:
    """The tree of a pattern with an anchor at both ends; None for any other, and for what no engine reads."""
    try:
        items = [*import_module("re._parser").parse(pattern)]
        anchored = len(items) > 1 and [str(item[0]) for item in (items[0], items[-1])] == ["AT", "AT"]
        return regex_tree(pattern) if anchored else None
    except (ValueError, OverflowError, RecursionError, re.error):
        return None


def _needs_escapes(node: Node) -> bool:
    if isinstance(node, Exact):
        return any(ESCAPED_IN_JSON.has(char) for char in node.text)
    if isinstance(node, Chars):
        return any(
            first <= held_last and held_first <= last
            for first, last in node.ranges
            for held_first, held_last in ESCAPED_IN_JSON.ranges
        )
    return any(map(_needs_escapes, parts_of(node)))
