"""Old results of a long conversation are sent as one line each: which ones, when, and what stands in their place.

Only the request is changed; the run's messages keep everything. Which results a request left out is noted on the
answer to it, among the extras of our own name, which no codec sends. So a conversation that is continued, also by
another process, begins with the same bytes as before, and the provider's cache still holds them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from toolcrib.agent.read_result import READ_RESULT, ReadResult, handle_of, read_result_in
from toolcrib.call import ToolCall
from toolcrib.content import Media, Text
from toolcrib.dataclass import dataclass, replace
from toolcrib.errors import ErrorCode
from toolcrib.messages import Message, Request, Response, ResultPart
from toolcrib.models.model import ModelError
from toolcrib.result import ToolResult
from toolcrib.visible import counted

if TYPE_CHECKING:
    from toolcrib.toolbox import Toolbox

__all__ = ["ClearOldResults", "ClearedRequests", "add_read_result"]

NOTE = "toolcrib"  # our own key among the extras of a message
NOTED = ("whole_results", "asked", "tokens")
CACHE_SECONDS = 300.0  # Anthropic and Bedrock keep a prompt so long, others at least as long
CHARACTERS_PER_TOKEN = 4
MEDIA_TOKENS = 1_500
SHORT = 400  # characters of a result that stays: a line in its place would be hardly shorter
LEAST = 1_000  # tokens that removing results must save where it costs nothing else
FIRST_LINE = 200  # characters of an error that stay
# These errors stay whole: a person's decision or an unknown outcome cannot be looked up again.
STAYING = frozenset({ErrorCode.DENIED, ErrorCode.REJECTED, ErrorCode.OUTCOME_UNKNOWN, ErrorCode.CANCELLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearOldResults:
    """Sends old results as one line each, which the tool `read_result` opens again: `Agent(context=...)`.

    The newest `keep` results stay whole, and always those that the model has not seen yet. Older ones are removed in
    batches, because each removal makes the provider read again what follows it: when the last request is longer ago
    than the provider's cache lasts, or when a request has more than `tokens` tokens and enough of them are old
    results. The results of the tools in `exclude` always stay whole. `cache_seconds` is how long the provider keeps
    a prompt in its cache (None: as the model says, else five minutes).

    A provider that answers that the conversation is too long is asked once more, with all results removed but the
    newest turn's. `Outcome.messages` has every result whole. Raises ValueError or TypeError for invalid values.
    """

    keep: int = 10
    tokens: int = 15_000
    exclude: tuple[str, ...] = ()
    cache_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.keep < 1 or self.tokens < 1:
            raise ValueError(f"keep and tokens are at least 1, got {self.keep} and {self.tokens}")
        if self.cache_seconds is not None and not 0 <= self.cache_seconds < math.inf:
            raise ValueError(f"cache_seconds is a number of seconds from 0 on, got {self.cache_seconds}")
        names: Any = self.exclude
        if isinstance(names, str):
            raise TypeError(f"exclude is a tuple of tool names, as in ({names!r},), got {names!r}")


def add_read_result(box: Toolbox[Any]) -> None:
    """Add the tool read_result to a toolbox where it is missing. TypeError if the name is taken."""
    if read_result_in(box) is not None:
        return
    if box.registry.has(READ_RESULT):
        raise TypeError(
            f"context= adds a tool named {READ_RESULT!r}, and there is one of that name: rename it"
        )
    box.registry.add(ReadResult(), builtin=True)


class ClearedRequests:
    """The requests of one run, with old results removed."""

    def __init__(
        self, settings: ClearOldResults, cache_seconds: float, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._cache_seconds = cache_seconds
        self._clock = clock
        self._limit = settings.tokens
        self._lines: dict[int, tuple[ToolResult, ToolResult]] = {}  # by result: what stands in its place
        self._messages: dict[int, tuple[Message, Message]] = {}  # by message: what is sent of it

    async def ask(
        self,
        request: Request,
        read: Callable[[Request], Awaitable[Response]],
        tell: Callable[[str], None],
    ) -> Response:
        """Send the request without its old results. If it is too long, send it once more, with fewer results."""
        messages, asked = request.messages, self._clock()
        before, start = self._starts(messages, asked)
        if start > before:
            tell(self._saving(messages, before, start))
        try:
            response = await read(replace(request, messages=self._without_results(messages, start)))
        except ModelError as error:
            harder = _start(messages, 1)
            if not error.too_long or self._freed(messages, start, harder) <= 0:
                raise
            self._limit = min(self._limit, _tokens(self._without_results(messages, start)) * 3 // 4)
            tell(f"too long for the model; {self._saving(messages, start, harder)}")
            start = harder
            response = await read(replace(request, messages=self._without_results(messages, start)))
        whole = sum(len(message.results) for message in islice(messages, start, None))
        noted = dict(zip(NOTED, (whole, asked, response.usage.total_tokens), strict=True))
        message = response.message
        response.message = replace(message, extras={**message.extras, NOTE: noted})
        return response

    def _starts(self, messages: Sequence[Message], now: float) -> tuple[int, int]:
        """The first message whose results were whole in the last request, and the first one in this request."""
        last, note = _last_note(messages)
        before = _start(messages[:last], note["whole_results"]) if note else 0
        start = _start(messages, self._settings.keep)
        freed = self._freed(messages, before, start)
        if freed < LEAST:
            return before, before
        if not note or now - note["asked"] > self._cache_seconds:
            return before, start
        size = (
            note["tokens"] + _tokens(messages[last + 1 :])
            if note["tokens"]
            else _tokens(self._without_results(messages, before))
        )
        # The provider reads again all that follows the first removed result: at most twice what is saved may follow.
        read_again = _tokens(self._without_results(messages, start)[before:])
        return before, start if size > self._limit and 2 * freed >= read_again else before

    def _without_results(self, messages: Sequence[Message], start: int) -> list[Message]:
        shown = list(messages)
        for index in range(start):
            if (message := shown[index]).role == "tool":
                shown[index] = self._shown(message)
        return shown

    def _shown(self, message: Message) -> Message:
        """A message of results as it is sent: always the same object, so that it is not converted anew."""
        known, shown = self._messages.get(id(message), (None, message))
        if known is not message:
            shown = message
            if any(self._removable(part) for part in message.parts):
                parts = [
                    ResultPart(part.call, self._line(part))
                    if isinstance(part, ResultPart) and self._removable(part)
                    else part
                    for part in message.parts
                ]
                shown = Message(message.role, parts, message.extras)
            self._messages[id(message)] = message, shown
        return shown

    def _removable(self, part: Any) -> bool:
        if not isinstance(part, ResultPart) or part.call.name in self._settings.exclude:
            return False
        result = part.result
        if result.code in STAYING:
            return False
        return len(result.text) > SHORT or any(isinstance(item, Media) for item in result.parts)

    def _line(self, part: ResultPart) -> ToolResult:
        """What stands in place of a result."""
        result, line = self._lines.get(id(part.result), (None, None))
        if result is not part.result or line is None:
            line = _line(part)
            self._lines[id(part.result)] = part.result, line
        return line

    def _freed(self, messages: Sequence[Message], start: int, end: int) -> int:
        """The tokens that are saved when the results of these messages are removed too."""
        return sum(
            _tokens_of(part) - _tokens_of(ResultPart(part.call, self._line(part)))
            for message in islice(messages, start, max(start, end))
            for part in message.parts
            if isinstance(part, ResultPart) and self._removable(part)
        )

    def _saving(self, messages: Sequence[Message], start: int, end: int) -> str:
        count = sum(self._removable(part) for message in messages[start:end] for part in message.parts)
        tokens = self._freed(messages, start, end)
        are = "is sent as one line" if count == 1 else "are sent as one line each"
        return (
            f"{counted(count, 'old result')} {are} from now on, which saves about {counted(tokens, 'token')}"
        )


def _last_note(messages: Sequence[Message]) -> tuple[int, dict[str, Any]]:
    """The last answer to a request of ours, and what is noted on it; an empty note where there is none."""
    for index in range(len(messages) - 1, -1, -1):
        note = messages[index].extras.get(NOTE)
        if isinstance(note, dict) and all(type(note.get(name)) in (int, float) for name in NOTED):
            return index, note
    return len(messages), {}


def _start(messages: Sequence[Message], keep: int) -> int:
    """The index of the message from which on at least `keep` results follow, if there are so many; turns stay whole.

    The newest turn is always whole: the model has not seen it.
    """
    count, newest = 0, True
    for index in range(len(messages) - 1, -1, -1):
        count += len(messages[index].results)
        newest = newest and not messages[index].calls
        if count >= keep and not newest and messages[index].calls:
            return index
    return 0


def _line(part: ResultPart) -> ToolResult:
    """What stands in place of a result."""
    result = part.result
    text = result.text
    media = [item.kind for item in result.parts if isinstance(item, Media)]
    size = f"{counted(len(text), 'character')}{f' with {len(media)} {media[0]}' if media else ''}"
    opened = f"{READ_RESULT}(handle={handle_of(part)!r}) shows it again"
    line = f"[This result was removed to save room: {size}. {opened}.]"
    if result.is_error and text.strip():
        line = f"{text.strip().splitlines()[0][:FIRST_LINE]}\n{line}"
    return ToolResult(
        (Text(line),),
        is_error=result.is_error,
        code=result.code,
        extras=result.extras,
        outside=result.outside,
    )


def _tokens(messages: Sequence[Message]) -> int:
    """An estimate of the tokens of messages."""
    return sum(_tokens_of(part) for message in messages for part in message.parts)


def _tokens_of(part: Any) -> int:
    if isinstance(part, ResultPart):
        return sum(map(_tokens_of, part.result.parts))
    if isinstance(part, ToolCall):
        return len(str(part.arguments)) // CHARACTERS_PER_TOKEN + 10
    if isinstance(part, Media):
        return MEDIA_TOKENS
    return len(part.as_text()) // CHARACTERS_PER_TOKEN + 4
