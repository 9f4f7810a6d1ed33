"""Arguments of several calls that a model wrote in one text, `{…}{…}`: they are split, so that no call is dropped."""

from __future__ import annotations

import json
import re

from toolcrib.call import ToolCall
from toolcrib.codecs.wire_json import joined
from toolcrib.dataclass import replace

SEAM = re.compile(r"\}\s*\{")
SPACE = re.compile(r"\s*")
STRUCTURE = re.compile(r'["\\{}\[\]]')
_read = json.JSONDecoder().raw_decode


def concatenated_objects(text: str) -> list[str]:
    """The JSON objects of a text that consists of two or more objects, with or without white space between
    them; else an empty list.

    >>> concatenated_objects('{"a": 1} {"b": "}{"}')
    ['{"a": 1}', '{"b": "}{"}']
    >>> concatenated_objects('{"a": 1}{"b": ')
    []
    """
    if not SEAM.search(text):
        return []
    objects: list[str] = []
    position = _after_space(text, 0)
    while position < len(text):
        if text[position] != "{":
            return []
        try:
            end = _read(text, position)[1]
        except (ValueError, RecursionError):
            return []
        objects.append(text[position:end])
        position = _after_space(text, end)
    return objects if len(objects) > 1 else []


def split_concatenated(call: ToolCall) -> list[ToolCall]:
    """Splits a call whose arguments hold several objects into one call an object; any other call is returned alone.

    The id and the provider's extras stay with the first.
    """
    objects = concatenated_objects(call.arguments) if isinstance(call.arguments, str) else []
    if not objects:
        return [call]
    first = replace(call, arguments=objects[0])
    return [first, *(ToolCall(call.name, arguments) for arguments in objects[1:])]


class StreamedArguments:
    """One call's arguments as they stream.

    Text after the first complete object is held back until `settle` knows whether it is another call's
    arguments, which it is once it is a complete object. With `plain` nothing is held back: the text is not
    JSON.
    """

    __slots__ = ("_depth", "_escaped", "_held", "_in_string", "closed", "length", "pieces", "plain")

    def __init__(self, *pieces: str) -> None:
        self.pieces = list(pieces)
        self.length = sum(map(len, pieces))
        self.closed = bool(pieces)
        self.plain = False
        self._held: list[str] = []
        self._depth = 0
        self._in_string = False
        self._escaped = False

    @property
    def text(self) -> str:
        """All text so far, including the part that is held back."""
        return joined([*self.pieces, *self._held])

    @property
    def holding(self) -> bool:
        return bool(self._held)

    def add(self, piece: str) -> str:
        """Takes a piece and returns the part of it that may be handed out now."""
        self.length += len(piece)
        end = len(piece) if self.plain else 0 if self.closed else self._end_in(piece)
        if end:
            self.pieces.append(piece[:end])
        if end < len(piece):
            self._held.append(piece[end:])
        return piece[:end]

    def settle(self, *, final: bool) -> tuple[str, list[str]]:
        """The held-back text that belongs to this call after all, and the arguments of the calls that follow it.

        Both are empty while that is undecided; with `final` it is always decided.
        """
        if not self._held:
            return "", []
        held = joined(self._held)
        objects = concatenated_objects(joined(self.pieces) + held)
        if not objects and not final:
            return "", []
        self._held.clear()
        if objects:
            return "", objects[1:]
        self.pieces.append(held)
        return held, []

    def _end_in(self, piece: str) -> int:
        """The position in a piece at which the outermost bracket closes; the piece's length where it does not
        close.
        """
        position = 0
        if self._escaped and piece:
            self._escaped, position = False, 1
        while (match := STRUCTURE.search(piece, position)) is not None:
            mark, position = match.group(), match.end()
            if mark == '"':
                self._in_string = not self._in_string
            elif mark == "\\":
                self._escaped = self._in_string and position == len(piece)
                position += 1 if self._in_string else 0
            elif not self._in_string:
                self._depth += 1 if mark in "{[" else -1
                if self._depth <= 0:
                    self.closed = True
                    return position
        return len(piece)


def _after_space(text: str, position: int) -> int:
    found = SPACE.match(text, position)
    return found.end() if found is not None else position
