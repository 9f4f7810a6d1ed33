"""Turns arguments that stream as pairs of a JSON path and a piece of a value into JSON text, piece by piece.

Vertex streams `partialArgs` in document order. While that order holds, each pair gives the next piece of the
JSON text; after a pair out of order, values are collected and assembled at the end. Source:
cloud.google.com/vertex-ai/generative-ai/docs/reference/rest, PartialArg; paths are those of RFC 9535.
"""

from __future__ import annotations

import json
import re
from typing import Any

from toolcrib.codecs.wire_json import as_str, compact, joined

Path = tuple[str | int, ...]
MISSING: Any = object()
DEEPEST = 64  # levels of nesting; what is deeper was not written by a model
UNREADABLE = "its arguments came in pieces that cannot be put together"

SEGMENT = re.compile(
    r"""\.(?P<name>[^.\[]+) | \[(?P<index>\d{1,9})\] | \[(?P<quoted>'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*")\]""",
    re.VERBOSE | re.DOTALL,
)
QUOTE_OR_ESCAPE = re.compile(r'\\.|"', re.DOTALL)


class PartialArguments:
    """Takes pairs of path and value of one call; gives pieces of the arguments' JSON text. Linear in the number
    of pairs.

    >>> arguments = PartialArguments()
    >>> arguments.take({"jsonPath": "$.city", "stringValue": "Par", "willContinue": True})
    '{"city":"Par'
    >>> arguments.take({"jsonPath": "$.city", "stringValue": "is"}) + arguments.close()
    'is"}'
    """

    def __init__(self) -> None:
        self.problem = ""
        self._text: list[str] = []
        self._leaves: dict[Path, Any] = {}  # a string as the list of its pieces
        self._begun: set[Path] = set()
        self._path: Path = ()
        self._in_string = False
        self._in_order = True

    def take(self, entry: dict[str, Any]) -> str:
        """The text that one pair adds; "" once pairs came out of order."""
        path, value = read_path(as_str(entry.get("jsonPath"))), _value_of(entry)
        goes_on = entry.get("willContinue") is True
        continued = bool(path) and path == self._path and self._in_string
        if not path or not (continued or value is not MISSING):
            self.problem = UNREADABLE
            return ""
        if value is MISSING:
            value = ""
        known = self._leaves.get(path, MISSING)
        if known is not MISSING and not (isinstance(known, list) and isinstance(value, str)):
            self.problem = UNREADABLE
            return ""
        if known is MISSING:
            self._leaves[path] = [value] if isinstance(value, str) else value
            way = self._way_to(path) if self._in_order else None
        else:
            known.append(value)
            way = "" if continued else None
        self._in_order = self._in_order and way is not None
        if way is None or not self._in_order:
            return ""
        self._path, self._in_string = path, goes_on and isinstance(value, str)
        written = _written(value, opens=known is MISSING, closes=not self._in_string)
        self._text.append(way + written)
        return way + written

    def close(self) -> str:
        """The text that completes the arguments."""
        if not self._in_order:
            return ""
        closing = self._closing(0) if self._path else "{}"
        self._path, self._in_string = (), False
        self._text.append(closing)
        return closing

    @property
    def is_said(self) -> bool:
        """Whether the text handed out so far is complete."""
        return self._in_order and not self.problem

    def whole(self) -> tuple[str | dict[str, Any], str]:
        """The arguments (the text that was handed out, or the values assembled after pairs out of order) and
        what is wrong with them, if anything.
        """
        if self._in_order:
            return joined(self._text), self.problem
        try:
            return _assembled(self._leaves), self.problem
        except ValueError:
            return {}, UNREADABLE

    def _closing(self, depth: int) -> str:
        """The text that closes the last value and the containers below the first `depth` ones."""
        ends = ("}" if isinstance(segment, str) else "]" for segment in reversed(self._path[depth:]))
        return ('"' if self._in_string else "") + "".join(ends)

    def _way_to(self, path: Path) -> str | None:
        """The text between the last value and this one; None where this value belongs before the last one."""
        before = self._path
        shared = next((i for i, (a, b) in enumerate(zip(before, path, strict=False)) if a != b), None)
        pieces: list[str] = []
        if not before:
            shared = -1
        else:
            if shared is None or not _follows(before[shared], path[shared]):
                return None
            if path[: shared + 1] in self._begun:
                return None
            pieces.append(self._closing(shared + 1) + ",")
        for depth in range(max(shared, 0), len(path)):
            segment = path[depth]
            if depth > shared:
                if segment != 0 and not isinstance(segment, str):
                    return None
                pieces.append("{" if isinstance(segment, str) else "[")
            if isinstance(segment, str):
                pieces.append(compact(segment) + ":")
            self._begun.add(path[: depth + 1])
        return "".join(pieces)


def read_path(text: str) -> Path:
    """The segments of a JSON path below the root object; empty for a path that cannot be read."""
    if not text.startswith("$"):
        return ()
    segments: list[str | int] = []
    position = 1
    while position < len(text) and len(segments) <= DEEPEST:
        match = SEGMENT.match(text, position)
        if match is None:
            return ()
        position = match.end()
        if match["index"] is not None:
            segments.append(int(match["index"]))
        elif match["name"] is not None:
            segments.append(match["name"])
        elif (key := _unquoted(match["quoted"])) is not None:
            segments.append(key)
        else:
            return ()
    rooted = bool(segments) and isinstance(segments[0], str) and len(segments) <= DEEPEST
    return tuple(segments) if rooted else ()


def _unquoted(quoted: str) -> str | None:
    inner = quoted[1:-1]
    if quoted[0] == "'":
        inner = QUOTE_OR_ESCAPE.sub(lambda m: {"\\'": "'", '"': '\\"'}.get(m[0], m[0]), inner)
    try:
        return as_str(json.loads(f'"{inner}"', strict=False))
    except ValueError:
        return None


def _value_of(entry: dict[str, Any]) -> Any:
    """The value of a pair: a string, a number, a boolean or None."""
    if isinstance(text := entry.get("stringValue"), str):
        return text
    if isinstance(number := entry.get("numberValue"), int | float) and not isinstance(number, bool):
        return number
    if isinstance(truth := entry.get("boolValue"), bool):
        return truth
    return None if "nullValue" in entry else MISSING


def _written(value: Any, *, opens: bool, closes: bool) -> str:
    if not isinstance(value, str):
        return compact(value)
    return ('"' if opens else "") + compact(value)[1:-1] + ('"' if closes else "")


def _follows(before: str | int, after: str | int) -> bool:
    if isinstance(before, int) and isinstance(after, int):
        return after == before + 1
    return isinstance(before, str) and isinstance(after, str)


class _Node(dict[str | int, Any]):
    """An object or array under construction; the type of its keys tells which."""


def _assembled(leaves: dict[Path, Any]) -> dict[str, Any]:
    """The object that holds these values; ValueError where they contradict each other."""
    root = _Node()
    for path, leaf in leaves.items():
        node = root
        for segment in path[:-1]:
            node = node.setdefault(segment, _Node())
            if not isinstance(node, _Node):
                raise ValueError(path)
        if path[-1] in node:
            raise ValueError(path)
        node[path[-1]] = joined(leaf) if isinstance(leaf, list) else leaf
    whole: dict[str, Any] = _plain(root)
    return whole


def _plain(node: Any) -> Any:
    if not isinstance(node, _Node):
        return node
    if all(isinstance(key, str) for key in node):
        return {key: _plain(value) for key, value in node.items()}
    if all(isinstance(key, int) for key in node) and set(node) == set(range(len(node))):
        return [_plain(node[index]) for index in range(len(node))]
    raise ValueError("an array with gaps, or with names")
