"""The steps of a conversation as codecs write them: each call beside its result, with an id that the provider accepts.

`toolcrib.mending` has made the conversation valid before; what is left are ids, which may be missing, repeated, or
those of another provider.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any, Generic, Protocol, TypeVar

from toolcrib.call import ToolCall
from toolcrib.codecs.codec import Codec
from toolcrib.codecs.wire_json import Encoded, encodable
from toolcrib.conversation_cache import cache_of
from toolcrib.dataclass import dataclass, field
from toolcrib.mending import mend
from toolcrib.messages import Message, MessagePart, Request, ResultPart
from toolcrib.result import ToolResult

# Texts that a provider requires and nobody wrote: of a user's turn, of an answer, of a failed result.
EMPTY_TURN = "Continue."
EMPTY_ANSWER = "(No answer.)"
EMPTY_FAILURE = "The tool failed without a message."
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
    """One message without results; `answers` holds an assistant's calls with their results, `results` the message
    of these.
    """

    message: Message
    parts: Sequence[MessagePart]
    answers: list[Answered] = field(default_factory=list)
    results: Message | None = None


class StepWriter(Protocol):
    """Writes the steps of a conversation, one after the other."""

    wire: list[Any]

    def add(self, step: ConversationStep) -> None:
        """Write a step at the end of `wire`. Of the entries there, it changes the last one at most."""
        ...


Writer = TypeVar("Writer", bound=StepWriter)


@dataclass(slots=True)
class Written(Generic[Writer]):
    """A conversation as a codec has written it: the system messages at its head, the steps behind them, and their
    writer. `head_wire` is what was written of the head, where it is not in the writer's own `wire`.
    """

    head: list[Message]
    steps: list[ConversationStep]
    writer: Writer
    head_wire: list[Any] = field(default_factory=list)
    encoded: bool = False

    def wire(self, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Entries of this conversation as the body of a request has them."""
        return Encoded(entries) if self.encoded else entries


@dataclass(slots=True)
class _Kept(Generic[Writer]):
    """What a codec has written of the conversation of a run."""

    settings: object
    writer: Writer
    ids: _Ids
    steps: list[ConversationStep] = field(default_factory=list)
    count: int = 0  # messages after the head that are written


def write(
    request: Request,
    codec: Codec,
    rule: IdRule,
    make: Callable[[], Writer],
    *,
    settings: object = (),
    head: Callable[[list[Message]], list[Message]] | None = None,
) -> Written[Writer]:
    """The conversation of a request, after it was mended, written by a writer that `make` makes.

    With a cache, the writer of the last request goes on with what is new, if it has the same `settings`: all that its
    text depends on beside the messages. `head` says which of the system messages at the head are written like others;
    without it they are left to the codec.
    """
    cache = cache_of(request)
    if cache is None:
        first, steps = _split(arrange(request.messages, rule))
        writer = make()
        for step in (*_steps_of(first, head), *steps):
            writer.add(step)
        return Written(first, steps, writer)
    key = (codec.name, codec.provider)
    kept: _Kept[Writer] | None = cache.written.pop(key, None)
    if kept is None or kept.settings != settings:
        kept = _Kept(settings, make(), _Ids(rule))
    if new := _steps(cache.tail[kept.count :], kept.ids):
        wire = kept.writer.wire
        last = max(len(wire) - 1, 0)
        wire[last:] = map(_copied, wire[last:])  # the last request's body refers to it
        for step in new:
            kept.writer.add(step)
        wire[last:] = map(encodable, wire[last:])
        kept.steps += new
    kept.count = len(cache.tail)
    cache.written[key] = kept  # only now: a conversation that failed half-way is not continued
    writer = make()
    for step in _steps_of(cache.head, head):
        writer.add(step)
    return Written(cache.head, kept.steps, kept.writer, encodable(writer.wire), encoded=True)


def arrange(messages: Iterable[Message], rule: IdRule) -> list[ConversationStep]:
    """The steps of a conversation, after it was mended.

    Each `ToolCall` among a step's parts has its `Answered` in the step's answers, in the same order.
    """
    return _steps(mend(list(messages))[0], _Ids(rule))


def _steps(messages: Iterable[Message], ids: _Ids) -> list[ConversationStep]:
    """The steps of messages that need no mending."""
    steps: list[ConversationStep] = []
    for message in messages:
        if message.role != "tool":
            steps.append(ConversationStep(message, message.parts))
            continue
        results = (part.result for part in message.parts if isinstance(part, ResultPart))
        steps[-1].results = message
        steps[-1].answers = [
            Answered(call, ids.make(call.id), result)
            for call, result in zip(steps[-1].message.calls, results, strict=True)
        ]
    return steps


def _split(steps: list[ConversationStep]) -> tuple[list[Message], list[ConversationStep]]:
    """The system messages that a conversation begins with, and the steps behind them."""
    head = [step.message for step in takewhile(lambda step: step.message.role == "system", steps)]
    return head, steps[len(head) :]


def _steps_of(
    messages: list[Message], head: Callable[[list[Message]], list[Message]] | None
) -> list[ConversationStep]:
    """The steps of those system messages at the head that are written like others."""
    return [] if head is None else [ConversationStep(message, message.parts) for message in head(messages)]


def _copied(entry: Any) -> Any:
    """A copy of an entry that can be added to. Messages never change, so they are returned as they are."""
    if not isinstance(entry, dict):
        return entry
    return {name: list(value) if isinstance(value, list) else value for name, value in entry.items()}


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
