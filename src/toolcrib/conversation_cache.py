"""What a run keeps of its conversation from one request to the next, so that each message is converted only once.

Messages and their parts never change, so what a codec has written for them stays valid as long as they stand in the
same place. Three things may change, and are checked before each request: the list of messages, the fields of a result
(it notes its changes), and the dicts and lists inside (arguments, extras, data; they are compared). If one of them
changed, codecs begin again, and write the same as for a request without a cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from operator import is_
from typing import Any

from toolcrib.call import ToolCall
from toolcrib.content import Json
from toolcrib.frozen import EMPTY
from toolcrib.mending import is_valid
from toolcrib.messages import Message, MessagePart, Opaque, Request, ResultPart
from toolcrib.result import ResultChanges, changes_of

__all__ = ["ConversationCache", "cache_of"]


class ConversationCache:
    """The conversation of one run as it was sent, with what codecs have written of it.

    A run calls `follow` before each request. `head` are the system messages at the beginning, which may change with
    each request; `tail` is what follows them. `names` are the names of all tools that were called, `opaque` the items
    that only one provider understands, `written` what codecs keep here, each under a key of its own.
    """

    def __init__(self) -> None:
        self.head: list[Message] = []
        self.tail: list[Message] = []
        self.names: set[str] = set()
        self.opaque: list[Opaque] = []
        self.written: dict[Any, Any] = {}
        self._sent: list[Message] | None = None
        self._known: bool | None = None  # whether what is sent can be used; None where nobody asked yet
        self._own_changes = ResultChanges()
        self._changes: dict[ResultChanges, object] = {}  # of results, with the `last` that was seen
        self._empty: list[Any] = []  # dicts and lists without items
        self._data: list[Any] = []  # those with items, and copies of them
        self._copies: list[Any] = []

    def follow(self, messages: Sequence[Message]) -> list[Message]:
        """The conversation as a list for the next request. It is looked at when a codec asks for it."""
        self._sent, self._known = list(messages), None
        return self._sent

    def knows(self, messages: list[Message]) -> bool:
        """Whether this is the list that `follow` gave last, and a conversation that needs no mending."""
        if self._sent is not messages:
            return False
        if self._known is None:
            self._known = self._look(messages)
            if not self._known:
                self._begin_again()
        return self._known

    def _look(self, messages: list[Message]) -> bool:
        """Look for new and changed messages. Returns whether codecs may use this cache."""
        start = next(
            (index for index, message in enumerate(messages) if message.role != "system"), len(messages)
        )
        head, tail = messages[:start], messages[start:]
        if not self._goes_on(tail):
            self._begin_again()
        try:
            known = is_valid(head) and not _has_items(head) and self._take(tail[len(self.tail) :])
        except Exception:  # raised by data that cannot be copied
            return False
        self.head, self.tail = head, tail
        return known

    def _goes_on(self, tail: list[Message]) -> bool:
        """Whether the conversation begins with the one that is known, unchanged."""
        if len(tail) < len(self.tail) or not all(map(is_, tail, self.tail)) or any(self._empty):
            return False
        try:
            same_data = bool(self._data == self._copies)
        except Exception:  # raised by a value that cannot be compared
            return False
        return same_data and all(changes.last is last for changes, last in self._changes.items())

    def _begin_again(self) -> None:
        self.head, self.tail = [], []
        self.names, self.opaque, self.written = set(), [], {}
        self._changes = {}
        self._empty, self._data, self._copies = [], [], []

    def _take(self, messages: list[Message]) -> bool:
        """Note the changeable parts of new messages. Returns whether these messages need no mending."""
        if not is_valid(messages):
            return False
        for message in messages:
            self._watch(message.extras)
            for part in message.parts:
                self._take_part(part)
        return True

    def _take_part(self, part: MessagePart) -> None:
        if isinstance(part, ResultPart):
            self.names.add(part.call.name)
            changes = changes_of(part.result, self._own_changes)
            self._changes.setdefault(changes, changes.last)
            if part.result.extras is not None:
                self._watch(part.result.extras)
            for item in part.result.parts:
                self._watch_content(item)
        elif isinstance(part, Opaque):
            self.opaque.append(part)
            self._watch(part.data)
        elif isinstance(part, ToolCall):
            self.names.add(part.name)
            self._watch(part.extras)
            self._watch(part.arguments)
        else:
            self._watch_content(part)

    def _watch_content(self, part: Any) -> None:
        self._watch(part.extras)
        if isinstance(part, Json):
            self._watch(part.value)

    def _watch(self, value: Any) -> None:
        if value is EMPTY or isinstance(value, str | int | float | None):
            return
        if not value:
            self._empty.append(value)
        else:
            self._copies.append(deepcopy(value))
            self._data.append(value)


def cache_of(request: Request) -> ConversationCache | None:
    """The cache of a request's conversation; None where the request has none, or other messages."""
    cache = request.cache
    return cache if isinstance(cache, ConversationCache) and cache.knows(request.messages) else None


def _has_items(messages: list[Message]) -> bool:
    """Whether messages hold items that only one provider understands."""
    return any(isinstance(part, Opaque) for message in messages for part in message.parts)
