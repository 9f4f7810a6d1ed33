"""A model that follows a script: for demos and for tests of your own agents."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

from toolcrib.call import ToolCall
from toolcrib.codecs.codec import ModelError
from toolcrib.content import Text
from toolcrib.dataclass import dataclass, field
from toolcrib.messages import (
    Chunk,
    Message,
    MessagePart,
    Reasoning,
    Request,
    Response,
    ResultPart,
    StopReason,
    Usage,
)
from toolcrib.models.model import chunks_of, last_of
from toolcrib.visible import counted

USAGE_KEYS = frozenset(f.name for f in fields(Usage))
CALL_KEYS = frozenset({"name", "arguments", "id"})
STOP_REASONS = frozenset(get_args(StopReason))


@dataclass(slots=True)
class Turn:
    """One answer of the model.

    `delay` is the number of seconds before each streamed piece; `chunk_size` is how many characters of text
    and arguments a piece holds (0: all); `error` makes the turn fail as a ModelError with this message.
    A turn with `when` is left out unless the results since the last answer contain that text.
    """

    text: str = ""
    calls: Sequence[ToolCall] = ()
    reasoning: str = ""
    usage: Usage = field(default_factory=Usage)
    stop_reason: StopReason | None = None
    delay: float = 0.0
    chunk_size: int = 0
    error: str = ""
    when: str = ""


TURN_KEYS = frozenset(f.name for f in fields(Turn))
AnyTurn = Turn | str | Mapping[str, Any]
Script = Callable[[Request], AnyTurn | Awaitable[AnyTurn]]


class Scripted:
    """A model of given turns, or of a function `(request) -> turn` (sync or async).

    A turn is a `Turn`, a text, or a mapping with the fields of `Turn`, in which a call is a mapping of
    `name`, `arguments` (a mapping, or a text that is sent as it stands, malformed or not) and `id`.
    Raises ModelError when the turns have run out, ValueError for a turn that cannot be read.

    >>> model = Scripted([
    ...     {"text": "Let me look.", "calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]},
    ...     "It says hello.",
    ... ])
    """

    def __init__(
        self,
        turns: Iterable[AnyTurn] | Script,
        name: str = "scripted",
        *,
        delay: float = 0.0,
        chunk_size: int = 0,
    ) -> None:
        if isinstance(turns, str | Mapping):
            raise TypeError(f"turns are a list, such as ['Hi.'], or a function; got {turns!r}")
        self.name = name
        self._delay = delay
        self._chunk_size = chunk_size
        self._script = turns if callable(turns) else None
        listed = () if callable(turns) else turns
        self._turns = [turn_from(turn, f"turn {number}") for number, turn in enumerate(listed, 1)]
        self._next = 0
        self._answers = 0

    @classmethod
    def from_yaml(cls, path: str | Path) -> Scripted:
        """The turns of a YAML file; ValueError naming file, turn and line of what cannot be read.

        ```yaml
        name: fixes the sum        # optional, as are the next two: defaults for every turn
        delay: 0.02                # seconds before each piece
        chunk_size: 8              # characters a piece
        turns:                     # or the file is the list alone
          - reasoning: First the tests.
            text: I run the tests.
            calls:
              - name: shell
                arguments: {command: pytest -q}
              - name: read_file
                arguments: '{"path": "sum.py"'    # a text is sent as it stands
                id: call_7                        # made up where it is missing
            usage: {input_tokens: 900, output_tokens: 40}
          - when: 1 failed         # only if the last results contain this, else left out
            text: One test fails.
          - text: Done.
            stop_reason: end       # else: tool_calls where there are calls, end where not
          - error: overloaded      # the request fails
        ```
        """
        from toolcrib.models.script_file import read_script

        settings, turns = read_script(Path(path))
        known = [turn_from(turn, where) for turn, where in turns]
        settings.setdefault("name", f"scripted:{Path(path).name}")
        return cls(known, **settings)

    def __repr__(self) -> str:
        return f"Scripted({self.name!r})"

    async def stream(self, request: Request) -> AsyncGenerator[Chunk | Response, None]:
        """The next turn in pieces, then as a Response. Raises ModelError."""
        turn = await self._turn(request)
        if turn.error:
            raise ModelError(turn.error, retryable=True)
        self._answers += 1
        response = self._response(turn)
        delay = turn.delay or self._delay
        for chunk in chunks_of(response, turn.chunk_size or self._chunk_size):
            if delay > 0:
                import asyncio

                await asyncio.sleep(delay)
            yield chunk
        yield response

    async def respond(self, request: Request) -> Response:
        """The next turn. Raises ModelError."""
        return await last_of(self.stream(request))

    async def _turn(self, request: Request) -> Turn:
        if self._script is not None:
            said = self._script(request)
            turn = await said if inspect.isawaitable(said) else said
            return turn_from(turn, f"turn {self._answers + 1}, from the function")
        results: str | None = None
        while self._next < len(self._turns):
            turn = self._turns[self._next]
            self._next += 1
            if not turn.when:
                return turn
            results = _last_results(request) if results is None else results
            if turn.when in results:
                return turn
        held = len(self._turns)
        raise ModelError(f"the script of {self.name} has run out: it holds {counted(held, 'turn')}")

    def _response(self, turn: Turn) -> Response:
        parts: list[MessagePart] = [Reasoning(turn.reasoning)] if turn.reasoning else []
        if turn.text:
            parts.append(Text(turn.text))
        for index, call in enumerate(turn.calls):
            id = call.id or f"call_{self._answers}_{index}"
            parts.append(ToolCall(call.name, call.arguments, id, call.extras))
        reason = turn.stop_reason or ("tool_calls" if turn.calls else "end")
        return Response(Message("assistant", parts), reason, turn.usage, self.name, reason)


def turn_from(value: Any, where: str) -> Turn:
    """A turn in any of its forms; ValueError saying `where` and what is wrong."""
    if isinstance(value, Turn):
        return value
    if isinstance(value, str):
        return Turn(value)
    given = _mapping(value, where, "a turn", TURN_KEYS)
    for name in ("text", "reasoning", "error", "when"):
        if name in given and not isinstance(given[name], str):
            raise ValueError(f"{where}: {name} must be a text, got {given[name]!r}")
    for name in ("delay", "chunk_size"):
        number = given.get(name, 0)
        if isinstance(number, bool) or not isinstance(number, int | float) or number < 0:
            raise ValueError(f"{where}: {name} must be a number that is not negative, got {number!r}")
    if given.get("stop_reason") not in (None, *STOP_REASONS):
        raise ValueError(
            f"{where}: stop_reason must be one of {sorted(STOP_REASONS)}, got {given['stop_reason']!r}"
        )
    calls = given.get("calls") or ()
    if isinstance(calls, str | Mapping) or not isinstance(calls, Iterable):
        raise ValueError(f"{where}: calls must be a list, got {calls!r}")
    given["calls"] = tuple(_call(call, f"{where}, call {number}") for number, call in enumerate(calls, 1))
    usage = given.get("usage") or Usage()
    if not isinstance(usage, Usage):
        usage = Usage(**_mapping(usage, where, "usage", USAGE_KEYS))
    given |= {"usage": usage, "chunk_size": int(given.get("chunk_size", 0))}
    return Turn(**given)


def _call(value: Any, where: str) -> ToolCall:
    if isinstance(value, ToolCall):
        return value
    given = _mapping(value, where, "a call", CALL_KEYS)
    name, arguments = given.get("name"), given.get("arguments")
    if not isinstance(name, str):
        raise ValueError(f"{where}: name must be a text, got {name!r}")
    if arguments is not None and not isinstance(arguments, str | Mapping):
        raise ValueError(f"{where}: arguments must be a mapping or a text, got {arguments!r}")
    return ToolCall(
        name,
        dict(arguments) if isinstance(arguments, Mapping) else arguments or "",
        str(given.get("id") or ""),
    )


def _mapping(value: Any, where: str, what: str, known: frozenset[str]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{where}: {what} must be a mapping, got {value!r}")
    if unknown := sorted(str(key) for key in value if key not in known):
        raise ValueError(f"{where}: unknown key {', '.join(unknown)}; {what} has {', '.join(sorted(known))}")
    return dict(value)


def _last_results(request: Request) -> str:
    """The results since the last answer."""
    texts: list[str] = []
    for message in reversed(request.messages):
        if message.role == "assistant":
            break
        texts.extend(part.as_text() for part in message.parts if isinstance(part, ResultPart))
    return "\n".join(texts)
