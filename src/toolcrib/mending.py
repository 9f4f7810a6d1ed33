"""Mends a conversation, so that every provider accepts it: each call is followed at once by exactly one result.

Providers refuse a request with an unanswered call, or with a result that does not follow its call directly. A
conversation may contain both: written by hand, recorded with another system, cut, or broken off. The rules:

1. The results of a message's calls stand in one message of role "tool" directly after it, in the order of the calls,
   wherever they stood before. A result finds its call by identity, else by id, else by name and order.
2. A call without a result gets one that says that none was recorded.
3. A result whose call is missing or already answered gets a call of its own before it, so that it stays a tool's
   output: as part of a user message it would carry the user's authority. A result that only repeats what was said of
   its call is left out.
4. Calls and thinking in a message that is not the assistant's become an assistant message before it; text in a
   message of role "tool" becomes a result.

The same conversation is always mended in the same way, and a mended one is valid, so that its beginning stays the
same from turn to turn, as the cache of a provider needs it. Unique legal ids are each wire format's own
(`codecs/pairing.py`), as is what a provider asks of the order of roles.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from toolcrib.call import ToolCall
from toolcrib.content import Audio, File, Image, Json, Part, Text
from toolcrib.dataclass import dataclass, field, replace
from toolcrib.errors import ErrorCode
from toolcrib.frozen import EMPTY
from toolcrib.messages import (
    CONTENT,
    PARTS,
    Message,
    MessagePart,
    Opaque,
    Reasoning,
    ResultPart,
    Role,
    check_part,
)
from toolcrib.result import ToolResult

__all__ = ["MendNote", "is_valid", "mend", "notes_on_one_line"]

# What the messages of a role consist of.
PARTS_OF_ROLE: dict[Role, tuple[type[Any], ...]] = {
    "system": (*CONTENT, Opaque),
    "user": (*CONTENT, Opaque),
    "assistant": (*CONTENT, Reasoning, Opaque, ToolCall),
    "tool": (ResultPart,),
}
MOST_TOLD = 5  # notes in one line of a log
NAMELESS = "unknown_tool"  # stands for the tool whose result came without its call
NO_RESULT = "No result was recorded for this call: it was interrupted, and whether it ran is not known."


class MendNote(NamedTuple):
    """What was wrong with a message, and what became of it; `message` is its index in the conversation."""

    message: int
    text: str

    def __str__(self) -> str:
        return f"message {self.message + 1}: {self.text}"


def mend(messages: Sequence[Message]) -> tuple[list[Message], list[MendNote]]:
    """The conversation as every provider accepts it, and what had to be mended.

    The given messages are not changed; a valid conversation comes back as it is. TypeError for a part that is none.

    >>> messages, [note] = mend([Message.assistant(ToolCall("search", "{}", "call_1")), Message.user("And?")])
    >>> [message.role for message in messages]
    ['assistant', 'tool', 'user']
    >>> print(note)
    message 1: the call of search (call_1) has no result; it is answered as interrupted
    """
    given = messages if isinstance(messages, list) else list(messages)
    return (given, []) if is_valid(given) else _Mender().mended(given)


def notes_on_one_line(notes: Sequence[object]) -> str:
    """Notes in one line, the first of them where there are many."""
    rest = f"; and {len(notes) - MOST_TOLD} more" if len(notes) > MOST_TOLD else ""
    return "; ".join(map(str, notes[:MOST_TOLD])) + rest


def is_valid(messages: Sequence[Message]) -> bool:
    """Whether a conversation needs no mending."""
    calls: list[ToolCall] = []
    for message in messages:
        if calls or message.role == "tool":
            if message.role != "tool" or not calls or not _answer(message.parts, calls):
                return False
            calls = []
            continue
        allowed = PARTS_OF_ROLE[message.role]
        for part in message.parts:
            if not isinstance(part, allowed):
                return False
            if isinstance(part, ToolCall):
                calls.append(part)
    return not calls


def _answer(parts: Sequence[MessagePart], calls: list[ToolCall]) -> bool:
    """Whether the parts are the results of the calls, in their order."""
    if len(parts) != len(calls):
        return False
    results = [part.call for part in parts if isinstance(part, ResultPart)]
    if len(results) == len(calls) and all(map(operator.is_, results, calls)):
        return True
    known = {id(call) for call in calls}  # a call that is in this list cannot be a copy of another one in it
    return len(results) == len(calls) and all(
        mine is call or (id(mine) not in known and mine.id == call.id and mine.name == call.name)
        for mine, call in zip(results, calls, strict=True)
    )


@dataclass(slots=True)
class _Slot:
    """A call and the place of its result."""

    call: ToolCall
    message: int
    result: ToolResult | None = None


@dataclass(slots=True)
class _Answers:
    """The slots of a message's calls, which become the message of role "tool" after it."""

    slots: list[_Slot]
    extras: dict[str, Any] = field(default_factory=dict)


class _Mender:
    def __init__(self) -> None:
        self._mended: list[Message | _Answers] = []
        self._notes: list[MendNote] = []
        self._by_identity: dict[int, _Slot] = {}
        self._latest: list[_Slot] = []
        self._by_id: dict[str, deque[_Slot]] = {}  # slots of the latest calls
        self._by_name: dict[str, deque[_Slot]] = {}
        self._by_order: deque[_Slot] = deque()
        self._last_of_id: dict[str, _Slot] = {}
        self._earlier: dict[str, deque[_Slot]] = {}  # slots of the calls before them, by id
        self._follows = False  # whether nothing but results has come since the latest calls

    def mended(self, messages: list[Message]) -> tuple[list[Message], list[MendNote]]:
        for number, message in enumerate(messages):
            self._take(number, message)
        whole = [item if isinstance(item, Message) else self._answered(item) for item in self._mended]
        return whole, sorted(self._notes, key=lambda note: note.message)

    def _answered(self, answers: _Answers) -> Message:
        parts: list[MessagePart] = []
        for slot in answers.slots:
            if slot.result is None:
                self._note(
                    slot.message,
                    f"the call of {_shown(slot.call)} has no result; it is answered as interrupted",
                )
            missing = ToolResult.of(NO_RESULT, code=ErrorCode.OUTCOME_UNKNOWN)
            parts.append(ResultPart(slot.call, slot.result or missing))
        return Message("tool", parts, answers.extras or EMPTY)

    def _note(self, number: int, text: str) -> None:
        self._notes.append(MendNote(number, text))

    def _take(self, number: int, message: Message) -> None:
        """Take one message in: its results go to their calls, what cannot stand in it becomes a message of its own."""
        own: list[MessagePart] = []
        results: list[ResultPart] = []
        moved: list[MessagePart] = []  # calls and thinking that are not in a message of the assistant
        loose: list[Part] = []  # content of a message of role "tool"
        role = message.role
        for given in message.parts:
            part = Text(given) if isinstance(given, str) else given
            if isinstance(part, ResultPart):
                results.append(part)
            elif isinstance(part, ToolCall | Reasoning) and role != "assistant":
                moved.append(part)
            elif role == "tool" and isinstance(part, Text | Json | Image | Audio | File):
                loose.append(part)
            else:
                check_part(part, PARTS, f"messages[{number}]")
                own.append(part)
        if moved:
            self._note(number, f"calls and thinking in a message of role {role!r} became the assistant's")
            self._say(number, Message("assistant", moved))
        if loose:
            self._note(number, "text in a message of role 'tool' became the result of a call")
            results.append(ResultPart(ToolCall(""), ToolResult(tuple(loose))))
        if role == "tool":
            self._results(number, results, message.extras)
            if own:
                self._note(number, "a part that cannot be in a result became the user's")
                self._say(number, Message("user", own))
            return
        same = len(own) == len(message.parts) and all(map(operator.is_, own, message.parts))
        said = message if same else replace(message, parts=own)
        if role != "assistant":
            self._results(number, results, EMPTY)
        if own or not message.parts:
            self._say(number, said)
        if role == "assistant":
            self._results(number, results, EMPTY)

    def _say(self, number: int, message: Message) -> None:
        self._mended.append(message)
        self._follows = False
        slots = [_Slot(call, number) for call in message.calls] if message.role == "assistant" else []
        if not slots:
            return
        for slot in self._latest:
            if slot.result is None and slot.call.id:
                self._earlier.setdefault(slot.call.id, deque()).append(slot)
        self._mended.append(_Answers(slots))
        self._latest, self._by_id, self._by_name, self._follows = slots, {}, {}, True
        self._by_order = deque(slots)
        for slot in slots:
            self._by_identity[id(slot.call)] = slot
            self._last_of_id[slot.call.id] = slot
            self._by_id.setdefault(slot.call.id, deque()).append(slot)
            self._by_name.setdefault(slot.call.name, deque()).append(slot)

    def _results(self, number: int, results: list[ResultPart], extras: Mapping[str, Any]) -> None:
        lost: list[_Slot] = []
        for part in results:
            slot = self._slot_of(part.call)
            if slot is not None:
                slot.result = part.result
                if not self._follows or slot.message != self._latest[0].message:
                    self._note(
                        number,
                        f"the result of {_shown(slot.call)} stood apart from its call; it was moved to it",
                    )
            elif self._is_repeated(part):
                self._note(number, f"the result of {_shown(part.call)} stood there twice; one is left out")
            else:
                self._note(
                    number,
                    f"the result of {_shown(part.call)} answers no open call; it got a call of its own",
                )
                call = part.call if part.call.name else replace(part.call, name=NAMELESS)
                lost.append(_Slot(call, number, part.result))
        if self._follows and extras:
            answers = self._mended[-1]
            assert isinstance(answers, _Answers)
            answers.extras |= extras
        if lost:
            self._mended += [Message("assistant", [slot.call for slot in lost]), _Answers(lost)]
            self._follows = False

    def _slot_of(self, call: ToolCall) -> _Slot | None:
        """The open call that a result answers."""
        same = self._by_identity.get(id(call))
        if same is not None and same.call is call and same.result is None:
            return same
        if call.id and (found := _first_open(self._by_id.get(call.id))):
            return found
        named = _first_open(self._by_name.get(call.name))
        if named is not None and not (call.id and named.call.id):
            return named
        if not call.id and not call.name:
            return _first_open(self._by_order)
        return _first_open(self._earlier.get(call.id)) if call.id else None

    def _is_repeated(self, part: ResultPart) -> bool:
        same = self._by_identity.get(id(part.call))
        slot = same if same is not None and same.call is part.call else self._last_of_id.get(part.call.id)
        return slot is not None and bool(part.call.id or same) and slot.result == part.result


def _first_open(slots: deque[_Slot] | None) -> _Slot | None:
    while slots and slots[0].result is not None:
        slots.popleft()
    return slots[0] if slots else None


def _shown(call: ToolCall) -> str:
    name = call.name or "a tool without a name"
    return f"{name} ({call.id})" if call.id else name
