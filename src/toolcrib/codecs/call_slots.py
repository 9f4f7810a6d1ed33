"""Assembles the calls of one Chat Completions stream, also from servers that deviate from the format.

It handles: several calls interleaved by index; no index, or index 0 for every call; no id, or the same id for
every call; id and name in the first piece or in each piece; the whole arguments repeated at the end; the
arguments of several calls concatenated in one.
"""

from __future__ import annotations

from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.concatenated_calls import StreamedArguments
from toolcrib.codecs.pairing import known_id
from toolcrib.codecs.wire_json import as_dict, as_index, as_str, compact, extras_for, json_object
from toolcrib.messages import CallChunk

STANDARD_FIELDS = frozenset({"index", "id", "function"})
PIECE = frozenset({"index", "function"})  # the fields of a delta that continues a call
ARGUMENTS = frozenset({"arguments"})


class _Slot:
    """One call that is still streaming."""

    __slots__ = ("arguments", "event", "extras", "id", "name", "number")

    def __init__(self, number: int, name: str = "", *arguments: str) -> None:
        self.number = number
        self.id = ""
        self.name = name
        self.arguments = StreamedArguments(*arguments)
        self.extras: dict[str, Any] = {}
        self.event = -1

    def repeats(self, piece: str) -> bool:
        """Whether a piece repeats the whole arguments."""
        if 2 * len(piece) < self.arguments.length:
            return False
        text = self.arguments.text
        if piece.strip() == text.strip():
            return True
        value = json_object(piece)
        return value is not None and value == json_object(text)


class CallSlots:
    """Takes deltas of `tool_calls`; gives chunks, and at the end the calls. Linear in the text."""

    def __init__(self, provider: str, names: dict[str, str]) -> None:
        self._provider = provider
        self._names = names
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}
        self._by_id: dict[str, _Slot] = {}
        self._holding: dict[int, _Slot] = {}
        self._untried: list[_Slot] = []
        self._event = 0
        self._done = 0

    def __bool__(self) -> bool:
        return bool(self._slots)

    def feed(self, deltas: list[dict[str, Any]]) -> list[CallChunk]:
        """Reads one event's list of deltas and returns its chunks."""
        self._event += 1
        return [chunk for delta in deltas for chunk in self._take(delta)]

    def done(self) -> list[CallChunk]:
        """The chunks that were held back, and a final chunk for every call that has none yet."""
        chunks = self._settle(final=True)
        ended, self._done = self._slots[self._done :], len(self._slots)
        return [*chunks, *(CallChunk(slot.number, done=True) for slot in ended)]

    def calls(self) -> list[ToolCall]:
        self._settle(final=True)
        return [
            ToolCall(
                self._names.get(slot.name, slot.name),
                slot.arguments.text,
                slot.id,
                extras_for(self._provider, slot.extras),
            )
            for slot in self._slots
        ]

    def _take(self, delta: dict[str, Any]) -> list[CallChunk]:
        if (slot := self._continued(delta)) is not None:
            slot.event = self._event
            shown = self._add(slot, delta["function"]["arguments"])
            return [CallChunk(slot.number, arguments=shown)] if shown else []
        function = called_function(delta)
        index, id = as_index(delta.get("index")), known_id(delta.get("id"))
        name, piece = as_str(function.get("name")), arguments_text(function)
        slot = self._find(index, id, name, piece)
        chunks: list[CallChunk] = []
        opened = slot is None
        if slot is None:
            chunks = self._settle(final=False)
            slot = self._open()
        elif (name or id) and self._event > slot.event and slot.arguments.closed and slot.repeats(piece):
            piece = ""  # without name and id it is glued to what came before, and a call of its own
        self._register(slot, index, id)
        slot.extras.update(call_extras(delta))
        slot.arguments.plain = slot.extras.get("type") == "custom"
        shown = self._add(slot, piece)
        news = CallChunk(
            slot.number,
            "" if slot.name else self._names.get(name, name),
            "" if slot.id else id,
            shown,
        )
        slot.name = slot.name or name
        slot.id = slot.id or id
        return [*chunks, news] if opened or news.name or news.id or shown else chunks

    def _continued(self, delta: dict[str, Any]) -> _Slot | None:
        """The slot of a delta that has its index and a piece of its arguments alone, as nearly all have."""
        function, index = delta.get("function"), delta.get("index")
        if delta.keys() != PIECE or type(function) is not dict or function.keys() != ARGUMENTS:
            return None
        slot = self._by_index.get(index) if type(index) is int else None
        return slot if slot is not None and slot.name and type(function["arguments"]) is str else None

    def _add(self, slot: _Slot, piece: str) -> str:
        """Add a piece to a call's arguments. Returns what of it can be shown now."""
        shown = slot.arguments.add(piece)
        if slot.arguments.holding and slot.number not in self._holding:
            self._holding[slot.number] = slot
            self._untried.append(slot)
        return shown

    def _open(self, name: str = "", *arguments: str) -> _Slot:
        slot = _Slot(len(self._slots), name, *arguments)
        self._slots.append(slot)
        return slot

    def _settle(self, *, final: bool) -> list[CallChunk]:
        """Splits concatenated arguments: when the next call begins, and at the end."""
        chunks: list[CallChunk] = []
        slots, self._untried = list(self._holding.values()) if final else self._untried, []
        for slot in slots:
            rest, others = slot.arguments.settle(final=final)
            if rest:
                chunks.append(CallChunk(slot.number, arguments=rest))
            for arguments in others:
                other = self._open(slot.name, arguments)
                chunks.append(CallChunk(other.number, self._names.get(slot.name, slot.name)))
                chunks.append(CallChunk(other.number, arguments=arguments))
            if not slot.arguments.holding:
                self._holding.pop(slot.number, None)
        return chunks

    def _find(self, index: int | None, id: str, name: str, piece: str) -> _Slot | None:
        """The slot that a delta continues; None when the delta opens a new call."""
        if index is not None:
            slot = self._by_index.get(index)
            last = self._slots[-1] if self._slots else None
            if slot is None and last is not None and not (id or name) and last not in self._by_index.values():
                slot = last  # which began without its index
        elif id:
            slot = self._by_id.get(id)
        else:
            slot = self._slots[-1] if self._slots else None
        if slot is None:
            return None
        if id and slot.id and id != slot.id and (name or piece):  # their ids tell calls apart
            return self._by_id.get(id)
        if name and slot.name and name != slot.name:
            return None
        begins = piece.lstrip().startswith("{") and (name or index is None)
        if begins and slot.arguments.closed and (slot.event == self._event or not slot.repeats(piece)):
            return None
        return slot

    def _register(self, slot: _Slot, index: int | None, id: str) -> None:
        slot.event = self._event
        if index is not None:
            self._by_index[index] = slot
        if id:
            self._by_id[id] = slot


def called_function(call: dict[str, Any]) -> dict[str, Any]:
    """The object that names the called tool: a function, or a custom tool whose input is plain text."""
    return as_dict(call.get("function")) or as_dict(call.get("custom"))


def arguments_text(function: dict[str, Any]) -> str:
    value = function.get("arguments", function.get("input"))
    return value if isinstance(value, str) else "" if value is None else compact(value)


def call_extras(call: dict[str, Any]) -> dict[str, Any]:
    """Fields of a call beyond the format, such as a thought signature; they are sent back with the call."""
    return {
        name: value
        for name, value in call.items()
        if name not in STANDARD_FIELDS
        and value is not None
        and not (name == "type" and value in ("function", ""))
        and name != "custom"
    }
