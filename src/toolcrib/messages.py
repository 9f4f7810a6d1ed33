"""Messages that no provider owns: a conversation, a request to a model, its answer, and the pieces of a stream."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from toolcrib.call import FORMAT, ToolCall
from toolcrib.content import Json, Media, Part, Text, part_from_dict, part_to_dict
from toolcrib.dataclass import dataclass, field
from toolcrib.frozen import EMPTY
from toolcrib.result import ToolResult

if TYPE_CHECKING:
    from toolcrib.spec import ToolSpec

__all__ = [
    "CallChunk",
    "Chunk",
    "FallbackChunk",
    "Message",
    "MessagePart",
    "NoticeChunk",
    "Opaque",
    "Reasoning",
    "ReasoningChunk",
    "Request",
    "Response",
    "RestartChunk",
    "ResultPart",
    "RetryChunk",
    "Role",
    "StopReason",
    "TextChunk",
    "TokenLogprob",
    "ToolChoice",
    "Usage",
    "messages_from_json",
    "messages_to_json",
]

Role = Literal["system", "user", "assistant", "tool"]
"""Whose message it is; the results of calls are messages of "tool"."""
ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")
StopReason = Literal["end", "tool_calls", "length", "refusal", "filter", "pause", "other"]
"""Why an answer ended."""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A model's thinking, kept so that it can be sent back unchanged.

    `extras` (by provider name) hold what only that provider understands: signatures, encrypted blocks, ids.
    """

    text: str = ""
    extras: Mapping[str, Any] = EMPTY
    kind: ClassVar[str] = "reasoning"

    def as_text(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Opaque:
    """An item that only one provider understands, such as a call of its own server-side tool; kept as it is."""

    provider: str
    data: Any
    kind: ClassVar[str] = "opaque"

    def as_text(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class ResultPart:
    """The result of one call, in a message of role "tool"."""

    call: ToolCall
    result: ToolResult
    kind: ClassVar[str] = "result"

    def __post_init__(self) -> None:
        given: Any = self.result
        if isinstance(given, str):
            object.__setattr__(self, "result", ToolResult.of(given))
        elif not isinstance(given, ToolResult):
            raise TypeError(
                f"expected a ToolResult, such as ToolResult.of('text'), or a text, got {shown(given)}"
            )
        call: Any = self.call
        if not isinstance(call, ToolCall):
            raise TypeError(
                "expected the ToolCall that the result answers, such as one of message.calls, "
                f"got {shown(call)}"
            )
        for part in self.result.parts:
            check_part(part, CONTENT, "a result")

    def record(self, result: ToolResult) -> None:
        """Put the recorded result in place of the one that stood for it while the call ran. Only the run does this."""
        object.__setattr__(self, "result", result)

    def as_text(self) -> str:
        return self.result.text


MessagePart = Part | Reasoning | Opaque | ToolCall | ResultPart
"""A piece of a message."""

OWN = "toolcrib"  # among the extras of a message: what toolcrib itself notes of it
CONTENT = (Text, Json, Media)
PARTS = (*CONTENT, Reasoning, Opaque, ToolCall, ResultPart)


def shown(value: Any) -> str:
    """A wrong value in an error message: its type, and its beginning."""
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else f'{text[:80]}…'}"


def check_part(part: Any, kinds: tuple[type[Any], ...], what: str) -> None:
    """Raises TypeError for what is no part of these kinds."""
    if isinstance(part, kinds):
        text = part.text if isinstance(part, Text | Reasoning) else ""
        if not isinstance(text, str):
            raise TypeError(f"{what}: the text of a {type(part).__name__} must be a str, got {shown(text)}")
        return
    advice = "messages_from_json reads saved messages"
    if isinstance(part, ToolResult):
        advice = "ResultPart(call, result) says which call it answers"
    names = ("Image, Audio, File" if kind is Media else kind.__name__ for kind in kinds)
    raise TypeError(f"{what}: expected a text or a part ({', '.join(names)}), got {shown(part)}; {advice}")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation, of the role "system", "user", "assistant" or "tool".

    The parts of an "assistant" message are texts, reasoning and calls; those of a "tool" message are one ResultPart for
    each call. A str stands for a Text, alone or among the parts. Raises TypeError for what is no part, and ValueError
    for an unknown role. A message with parts that its role does not have is mended before it is sent (see
    `toolcrib.mending`). In `usage` an agent keeps what an answer and the runs within its calls used, and in a task what
    was used before its first answer: budgets of conversations add it up.

    >>> Message("assistant", ["I look it up.", ToolCall("search", {"for": "saw"}, "call_1")]).text
    'I look it up.'
    """

    role: Role
    parts: Sequence[MessagePart] = ()
    extras: Mapping[str, Any] = EMPTY
    usage: Usage | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ValueError(
                f"role: expected one of {', '.join(map(repr, ROLES))}, got {shown(self.role)}; "
                "instructions of a developer have the role 'system'"
            )
        parts: Any = self.parts
        if isinstance(parts, str):
            parts = [parts]
        elif not isinstance(parts, list | tuple):
            raise TypeError(f"parts: expected a list of parts, or a text, got {shown(parts)}")
        if [part for part in parts if isinstance(part, str)]:
            parts = [Text(part) if isinstance(part, str) else part for part in parts]
        object.__setattr__(self, "parts", tuple(parts))
        for part in parts:
            if type(part) is not ToolCall and type(part) is not ResultPart:  # these check themselves
                check_part(part, PARTS, f"a message of role {str(self.role)!r}")

    @classmethod
    def system(cls, text: str) -> Message:
        """A message with instructions."""
        return cls("system", [Text(text)])

    @classmethod
    def user(cls, *content: str | Part | Opaque) -> Message:
        """A message of texts and content parts. Raises TypeError for anything else."""
        return cls("user", [Text(part) if isinstance(part, str) else part for part in content])

    @classmethod
    def assistant(cls, *content: str | Part | Reasoning | Opaque | ToolCall) -> Message:
        """A message of the model: texts, content parts, thinking and calls. Raises TypeError for anything else."""
        return cls("assistant", [Text(part) if isinstance(part, str) else part for part in content])

    @classmethod
    def of_toolcrib(cls, words: str, about: str) -> Message:
        """What toolcrib tells a model in the place of the user. It is marked, because the user did not say it."""
        return cls("user", [Text(words)], {OWN: {"about": about}})

    @property
    def is_the_users(self) -> bool:
        """Whether the user wrote it."""
        return self.role == "user" and OWN not in self.extras

    def note_usage(self, usage: Usage | None) -> None:
        """Note what was used by now. Only the run does this."""
        object.__setattr__(self, "usage", usage)

    @property
    def text(self) -> str:
        """The text parts, joined; without reasoning and calls."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> list[ToolCall]:
        """The calls that the model asks for."""
        return [part for part in self.parts if isinstance(part, ToolCall)]

    @property
    def results(self) -> list[ToolResult]:
        """The results of calls."""
        return [part.result for part in self.parts if isinstance(part, ResultPart)]


@dataclass(slots=True)
class Usage:
    """The tokens of one request, or the sum of many; `cost` is in US dollars, None if a price is unknown.

    For every provider, tokens that are read from or written to a cache are part of `input_tokens`, and tokens
    of thinking are part of `output_tokens`. `calls` is how many calls of tools an agent was asked for.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None
    calls: int = 0

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        costs: list[float | None] = []
        if self.cost is not None or other.cost is not None:
            costs = [usage.cost for usage in (self, other) if usage.cost is not None or usage.total_tokens]
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            None if not costs or None in costs else sum(cost for cost in costs if cost is not None),
            self.calls + other.calls,
        )


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A written token with its log-probability; `top` has the likeliest tokens as (token, log-probability)."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(slots=True)
class Response:
    """A model's whole answer: the assistant message, why it stopped, and its tokens.

    `logprobs` are those of the answer's text, if they were asked for and the provider sends them.
    """

    message: Message
    stop_reason: StopReason = "end"
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    raw_stop_reason: str = ""
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A piece of the answer's text as it streams."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningChunk:
    """A piece of the model's thinking as it streams."""

    text: str


@dataclass(frozen=True, slots=True)
class CallChunk:
    """A piece of a call as it streams; `index` counts the calls of this answer from 0.

    The first chunk of a call has its name, its id if the provider sends one, and perhaps no arguments yet.
    `done` says that the arguments are complete.
    """

    index: int
    name: str = ""
    id: str = ""
    arguments: str = ""
    done: bool = False


@dataclass(frozen=True, slots=True)
class RestartChunk:
    """The answer begins again, from this model or another: the chunks before this one do not count."""

    reason: str


@dataclass(frozen=True, slots=True)
class NoticeChunk:
    """Something about the request that an operator should know; no part of the answer."""

    message: str


@dataclass(frozen=True, slots=True)
class RetryChunk:
    """The request failed, and is sent again after `delay` seconds: attempt number `attempt` of `attempts`.

    `usage` is what the failed attempt used, as far as the provider has said.
    """

    problem: str
    delay: float
    attempt: int
    attempts: int
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class FallbackChunk:
    """A model of a list did not answer, and the next one, named `model`, is asked.

    `usage` is what the last attempt of the first used, as far as the provider has said.
    """

    problem: str
    model: str
    usage: Usage = field(default_factory=Usage)


Chunk = TextChunk | ReasoningChunk | CallChunk | RestartChunk | NoticeChunk | RetryChunk | FallbackChunk
"""A piece of an answer that streams."""


MODES = ("auto", "none", "required")


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Whether the model may, must or must not call tools; `names` limits the choice to these tools.

    Raises ValueError for an unknown mode, and TypeError for names that are a single string.
    """

    mode: Literal["auto", "none", "required"] = "auto"
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(
                f"tool_choice: expected one of {', '.join(map(repr, MODES))}, got {self.mode!r}; "
                "some tools are named by ToolChoice('required', ('NAME',))"
            )
        names: Any = self.names
        if isinstance(names, str):
            raise TypeError(f"tool_choice: names are a tuple, as in ({names!r},), got {names!r}")


@dataclass(slots=True)
class Request:
    """What is asked of a model. `extras` (by provider name) are added to that provider's request as they are.

    `logit_bias` (token id to -100..100), `logprobs` and `top_logprobs` are sent to providers that take them;
    `Codec.features` says which do. `cache` is the `ConversationCache` of a run, which wrote these messages before.
    `lost` is told what an answer had used that is not read to its end: its reader was cancelled, or a deadline passed.
    """

    messages: list[Message]
    tools: Sequence[ToolSpec] = ()
    tool_choice: ToolChoice = ToolChoice()
    parallel_calls: bool | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    logit_bias: Mapping[str, float] | None = None
    logprobs: bool = False
    top_logprobs: int | None = None
    extras: dict[str, Any] = field(default_factory=dict)
    cache: Any = field(default=None, compare=False, repr=False)
    lost: Callable[[Usage], None] | None = field(default=None, compare=False, repr=False)


def messages_to_json(messages: Iterable[Message]) -> dict[str, Any]:
    """A conversation as plain JSON data with a format version."""
    return {"format": FORMAT, "messages": [_message_to_dict(message) for message in messages]}


def messages_from_json(data: dict[str, Any]) -> list[Message]:
    """The conversation that `messages_to_json` wrote. Raises ValueError for anything else, and says where."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = repr(data.get("format")) if isinstance(data, dict) else shown(data)
        raise ValueError(f"expected a transcript of format {FORMAT}, got {found}")
    messages = data.get("messages")
    if not isinstance(messages, list):
        raise ValueError(f"messages: expected a list, got {shown(messages)}")
    return [_message_from_dict(item, f"messages[{number}]") for number, item in enumerate(messages)]


def _message_from_dict(item: Any, where: str) -> Message:
    role, parts = (_field(item, name, kind, where) for name, kind in (("role", str), ("parts", list)))
    extras = _field(item, "extras", dict, where, EMPTY)
    read = [_part_from_dict(part, f"{where}.parts[{number}]") for number, part in enumerate(parts)]
    try:
        return Message(role, read, extras, usage_from_dict(item.get("usage")))
    except (TypeError, ValueError) as problem:
        raise ValueError(f"{where}: {problem}") from None


def usage_from_dict(data: Any) -> Usage | None:
    """The saved usage; None for None. Raises TypeError or ValueError for anything else."""
    if data is None:
        return None
    if not isinstance(data, dict) or not all(
        (name == "cost" and value is None) or (isinstance(value, int | float) and 0 <= value < math.inf)
        for name, value in data.items()
    ):
        raise ValueError(f"usage: expected an object of numbers, got {shown(data)}")
    return Usage(**data)


def _field(
    data: Any, name: str, kind: type[Any] | tuple[type[Any], ...], where: str, default: Any = None
) -> Any:
    """A field of saved data; ValueError where it is of another type, or missing and without a default."""
    if not isinstance(data, dict):
        raise ValueError(f"{where}: expected an object, got {shown(data)}")
    if name not in data and default is not None:
        return default
    value = data.get(name)
    if not isinstance(value, kind):
        names = " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))
        found = shown(value) if name in data else f"none among {', '.join(map(repr, data)) or 'no fields'}"
        raise ValueError(f"{where}.{name}: expected {names}, got {found}")
    return value


def _message_to_dict(message: Message) -> dict[str, Any]:
    data: dict[str, Any] = {"role": message.role, "parts": [_part_to_dict(part) for part in message.parts]}
    if message.extras:
        data["extras"] = message.extras
    if message.usage is not None:
        data["usage"] = {name: value for name, value in asdict(message.usage).items() if value}
    return data


def _part_to_dict(part: MessagePart) -> dict[str, Any]:
    if isinstance(part, ToolCall):
        return {"kind": "call", **_call_to_dict(part)}
    if isinstance(part, ResultPart):
        return {"kind": "result", "call": _call_to_dict(part.call), "result": part.result.to_dict()}
    if isinstance(part, Reasoning):
        return {"kind": "reasoning", "text": part.text, "extras": dict(part.extras)}
    if isinstance(part, Opaque):
        return {"kind": "opaque", "provider": part.provider, "data": part.data}
    return part_to_dict(part)


def _part_from_dict(data: Any, where: str) -> MessagePart:
    kind = _field(data, "kind", str, where)
    if kind == "call":
        return _call_from_dict(data, where)
    if kind == "result":
        call = _call_from_dict(_field(data, "call", dict, where), f"{where}.call")
        return ResultPart(call, result_from_dict(_field(data, "result", dict, where), f"{where}.result"))
    if kind == "reasoning":
        text = _field(data, "text", str, where, "")
        return Reasoning(text, _field(data, "extras", dict, where, EMPTY))
    if kind == "opaque":
        return Opaque(_field(data, "provider", str, where), data.get("data"))
    try:
        part: MessagePart = part_from_dict(data)
        check_part(part, CONTENT, "content")
    except (TypeError, ValueError) as problem:
        raise ValueError(f"{where}: {problem}") from None
    return part


def result_from_dict(data: dict[str, Any], where: str = "result") -> ToolResult:
    """The result that `ToolResult.to_dict` wrote. Raises ValueError for anything else, and says where."""
    try:
        result = ToolResult.from_dict(data)
        for part in result.parts:
            check_part(part, CONTENT, "a result")
    except (TypeError, ValueError, AttributeError) as problem:
        raise ValueError(f"{where}: {problem}") from None
    return result


def _call_to_dict(call: ToolCall) -> dict[str, Any]:
    data: dict[str, Any] = {"name": call.name, "arguments": call.arguments, "id": call.id}
    if call.extras:
        data["extras"] = call.extras
    return {**data, "problem": call.problem} if call.problem else data


def _call_from_dict(data: Any, where: str) -> ToolCall:
    return ToolCall(
        _field(data, "name", str, where),
        _field(data, "arguments", (str, dict), where, ""),
        _field(data, "id", str, where, ""),
        _field(data, "extras", dict, where, EMPTY),
        _field(data, "problem", str, where, ""),
    )
