"""The steps of a conversation as codecs write them: each call beside its result, with an id that the provider accepts.

`toolcrib.mending` has made the conversation valid before; what is left are ids, which may be missing, repeated, or
those of another provider.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from toolcrib.call import ToolCall
from toolcrib.mending import mend
from toolcrib.messages import Message, MessagePart, ResultPart
from toolcrib.result import ToolResult

EMPTY_TURN = "Continue."  # the text of a user turn that a provider requires and nobody wrote
# Extras of a request whose server keeps what came before: it holds only what is new.
CONTINUES = ("previous_response_id", "conversation")
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
    result: ToolResult

    @property
    def text(self) -> str:
        return self.result.text

    @property
    def is_error(self) -> bool:
        return self.result.is_error


@dataclass(slots=True)
class ConversationStep:
    """One message without results; `answers` holds an assistant's calls with their results."""

    message: Message
    parts: list[MessagePart]
    answers: list[Answered] = field(default_factory=list)


def arrange(messages: Iterable[Message], rule: IdRule) -> list[ConversationStep]:
    """The steps of a conversation, after it was mended.

    Each `ToolCall` among a step's parts has its `Answered` in the step's answers, in the same order.
    """
    steps: list[ConversationStep] = []
    ids = _Ids(rule)
    mended, _ = mend(list(messages))
    for message in mended:
        if message.role != "tool":
            steps.append(ConversationStep(message, message.parts))
            continue
        results = (part.result for part in message.parts if isinstance(part, ResultPart))
        steps[-1].answers = [
            Answered(call, ids.make(call.id), result)
            for call, result in zip(steps[-1].message.calls, results, strict=True)
        ]
    return steps


def system_and_steps(
    messages: Iterable[Message], rule: IdRule
) -> tuple[list[Message], list[ConversationStep]]:
    """The system messages that a conversation begins with, after it was mended, and the steps behind them."""
    steps = arrange(messages, rule)
    head = [step.message for step in takewhile(lambda step: step.message.role == "system", steps)]
    return head, steps[len(head) :]


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
