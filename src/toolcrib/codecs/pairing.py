"""Makes a conversation valid for any provider: every call gets a unique legal id and exactly one result.

Providers refuse a request with an unanswered call, a repeated id, or a result that does not follow its call
directly. A transcript may contain all three: recorded with another provider, cut, or broken off. A result whose
call is missing or already answered gets a call of its own before it, so that it stays a tool's output: as part
of a user message it would carry the user's authority.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from toolcrib.call import ToolCall
from toolcrib.messages import Message, MessagePart, ResultPart
from toolcrib.result import ToolResult

NO_RESULT = "No result was recorded for this call: it was interrupted, and whether it ran is not known."
EMPTY_TURN = "Continue."  # the text of a user turn that a provider requires and nobody wrote
MISSING_IDS = frozenset({"", "null", "None"})  # Mistral's default id is the word "null"


def known_id(value: Any) -> str:
    """A call's id in an answer, which some servers send as a number; "" where the server sent none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value not in MISSING_IDS else ""


@dataclass(frozen=True, slots=True)
class IdRule:
    """The call ids that a provider accepts, and how ours are made: a prefix and hexadecimal digits."""

    legal: re.Pattern[str]
    prefix: str = "call_"
    digits: int = 24


@dataclass(slots=True)
class Answered:
    """One call as it is sent, with its id on the wire and its result."""

    call: ToolCall
    id: str
    result: ToolResult | None = None

    @property
    def text(self) -> str:
        return NO_RESULT if self.result is None else self.result.text

    @property
    def is_error(self) -> bool:
        return self.result is None or self.result.is_error


@dataclass(slots=True)
class ConversationStep:
    """One message without results; `answers` holds an assistant's calls with their results."""

    message: Message
    parts: list[MessagePart]
    answers: list[Answered] = field(default_factory=list)


def arrange(messages: Iterable[Message], rule: IdRule) -> list[ConversationStep]:
    """The steps of a conversation. The results of an assistant's calls are in its step, wherever they stood in
    the transcript.

    Each `ToolCall` among a step's parts has its `Answered` in the step's answers, in the same order.
    """
    steps: list[ConversationStep] = []
    ids = _Ids(rule)
    waiting = _Open()
    for message in messages:
        parts: list[MessagePart] = []
        orphans: list[Answered] = []
        for part in message.parts:
            if not isinstance(part, ResultPart):
                parts.append(part)
            elif (answer := waiting.take(part.call)) is not None:
                answer.result = part.result
            else:
                orphans.append(Answered(part.call, ids.make(part.call.id), part.result))
        if orphans:
            calls: list[MessagePart] = [answer.call for answer in orphans]
            steps.append(ConversationStep(Message("assistant", calls), calls, orphans))
        if message.role == "assistant":
            answers = [Answered(call, ids.make(call.id)) for call in parts if isinstance(call, ToolCall)]
            waiting = _Open(answers) if answers else waiting
            steps.append(ConversationStep(message, parts, answers))
        elif parts:
            steps.append(ConversationStep(message, parts))
    return steps


class _Ids:
    """Makes legal, unique ids; the same conversation always gets the same ids."""

    def __init__(self, rule: IdRule) -> None:
        self._rule = rule
        self._used: set[str] = set()
        self._seen: dict[str, int] = {}

    def make(self, id: str) -> str:
        known = "" if id in MISSING_IDS else id
        if known and known not in self._used and self._rule.legal.fullmatch(known):
            self._used.add(known)
            return known
        while True:
            count = self._seen[known] = self._seen.get(known, 0) + 1
            seed = f"{known}\0{count}".encode("utf-8", "surrogatepass")
            made = self._rule.prefix + hashlib.sha256(seed).hexdigest()[: self._rule.digits]
            if made not in self._used:
                self._used.add(made)
                return made


class _Open:
    """The calls that wait for their result; a result finds its call by identity, else by id, else by name and
    order.
    """

    def __init__(self, answers: Iterable[Answered] = ()) -> None:
        self._by_identity: dict[int, Answered] = {}
        self._by_id: dict[str, deque[Answered]] = {}
        self._by_name: dict[str, deque[Answered]] = {}
        for answer in answers:
            self._by_identity[id(answer.call)] = answer
            self._by_id.setdefault(answer.call.id, deque()).append(answer)
            self._by_name.setdefault(answer.call.name, deque()).append(answer)

    def take(self, call: ToolCall) -> Answered | None:
        same = self._by_identity.pop(id(call), None)
        if same is not None and same.result is None:
            return same
        if call.id and (found := _first_free(self._by_id.get(call.id))):
            return found
        named = _first_free(self._by_name.get(call.name))
        return named if named is not None and not (call.id and named.call.id) else None


def _first_free(answers: deque[Answered] | None) -> Answered | None:
    while answers and answers[0].result is not None:
        answers.popleft()
    return answers[0] if answers else None
