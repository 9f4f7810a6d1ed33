"""The calls of one Chat Completions stream, put together from whatever a server makes of the format.

Told apart are: several calls interleaved by index; no index, or 0 for every call; no id, or the same for
every call; id and name in the first piece or in each; the whole arguments once more at the end.
"""

from __future__ import annotations

import re
from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.loose import as_dict, as_index, as_str, compact, joined, json_object
from toolcrib.codecs.pairing import MISSING_IDS
from toolcrib.messages import CallChunk

STRUCTURE = re.compile(r'["\\{}\[\]]')
STANDARD_FIELDS = frozenset({"index", "id", "function"})


class _Slot:
    """One call in the making."""

    __slots__ = (
        "_depth",
        "_escaped",
        "_in_string",
        "_scanned",
        "closed",
        "event",
        "extras",
        "id",
        "length",
        "name",
        "number",
        "pieces",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []
        self.length = 0
        self.extras: dict[str, Any] = {}
        self.event = -1
        self.closed = False
        self._scanned = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False

    @property
    def text(self) -> str:
        return joined(self.pieces)

    def is_closed(self) -> bool:
        """Whether the arguments' outermost bracket was closed; each character is looked at once."""
        while not self.closed and self._scanned < len(self.pieces):
            self._scan(self.pieces[self._scanned])
            self._scanned += 1
        return self.closed

    def _scan(self, piece: str) -> None:
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
                    return

    def repeats(self, piece: str) -> bool:
        """Whether a piece says once more what the whole arguments are already."""
        if 2 * len(piece) < self.length:
            return False
        text = self.text
        if piece.strip() == text.strip():
            return True
        value = json_object(piece)
        return value is not None and value == json_object(text)


class CallSlots:
    """Deltas of `tool_calls` in, chunks and at last the calls out; linear in the text."""

    def __init__(self, provider: str, names: dict[str, str]) -> None:
        self._provider = provider
        self._names = names
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}
        self._by_id: dict[str, _Slot] = {}
        self._event = 0
        self._done = 0

    def __bool__(self) -> bool:
        return bool(self._slots)

    def feed(self, deltas: list[dict[str, Any]]) -> list[CallChunk]:
        """The chunks that one event's list of deltas brings."""
        self._event += 1
        return [chunk for delta in deltas if (chunk := self._take(delta)) is not None]

    def done(self) -> list[CallChunk]:
        """One last chunk for every call that has none yet."""
        ended, self._done = self._slots[self._done :], len(self._slots)
        return [CallChunk(slot.number, done=True) for slot in ended]

    def calls(self) -> list[ToolCall]:
        return [
            ToolCall(
                self._names.get(slot.name, slot.name),
                slot.text,
                slot.id,
                {self._provider: slot.extras} if slot.extras else {},
            )
            for slot in self._slots
        ]

    def _take(self, delta: dict[str, Any]) -> CallChunk | None:
        function = called_function(delta)
        index, id = as_index(delta.get("index")), known_id(delta.get("id"))
        name, piece = as_str(function.get("name")), arguments_text(function)
        slot = self._find(index, id, name, piece)
        opened = slot is None
        if slot is None:
            slot = _Slot(len(self._slots))
            self._slots.append(slot)
        elif slot.event != self._event and piece.strip() and slot.is_closed() and slot.repeats(piece):
            piece = ""
        self._register(slot, index, id)
        slot.extras.update(call_extras(delta))
        news = CallChunk(
            slot.number,
            "" if slot.name else self._names.get(name, name),
            "" if slot.id else id,
            piece,
        )
        slot.name = slot.name or name
        slot.id = slot.id or id
        if piece:
            slot.pieces.append(piece)
            slot.length += len(piece)
        return news if opened or news.name or news.id or piece else None

    def _find(self, index: int | None, id: str, name: str, piece: str) -> _Slot | None:
        """The slot that a delta continues; None where it opens a new one."""
        if index is not None:
            slot = self._by_index.get(index)
        elif id:
            slot = self._by_id.get(id)
        else:
            slot = self._slots[-1] if self._slots else None
        if slot is None:
            return None
        if id and slot.id and id != slot.id:  # one index for several calls: their ids tell them apart
            return self._by_id.get(id)
        if name and slot.name and name != slot.name:
            return None
        begins = piece.lstrip().startswith("{") and (name or index is None)
        if begins and slot.is_closed() and (slot.event == self._event or not slot.repeats(piece)):
            return None
        return slot

    def _register(self, slot: _Slot, index: int | None, id: str) -> None:
        slot.event = self._event
        if index is not None:
            self._by_index[index] = slot
        if id:
            self._by_id[id] = slot


def called_function(call: dict[str, Any]) -> dict[str, Any]:
    """What a call calls: a function, or a custom tool whose input is plain text."""
    return as_dict(call.get("function")) or as_dict(call.get("custom"))


def arguments_text(function: dict[str, Any]) -> str:
    value = function.get("arguments", function.get("input"))
    return value if isinstance(value, str) else "" if value is None else compact(value)


def call_extras(call: dict[str, Any]) -> dict[str, Any]:
    """Fields of a call that are no part of the format and go back with it, such as a thought signature."""
    return {
        name: value
        for name, value in call.items()
        if name not in STANDARD_FIELDS
        and value is not None
        and not (name == "type" and value in ("function", ""))
        and name != "custom"
    }


def known_id(value: Any) -> str:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else as_str(value)
    return "" if text in MISSING_IDS else text
