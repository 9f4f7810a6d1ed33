"""A typed answer while it streams: events as the model writes, and what they make of the answer so far."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from toolcrib.agent.completion import COMPLETION
from toolcrib.agent.output_items import OutputItem
from toolcrib.dataclass import dataclass, field
from toolcrib.events import Event, OutputDelta
from toolcrib.jsonstream import JsonStream, JsonStreamError
from toolcrib.messages import CallChunk, Chunk, Request, Response, RestartChunk, TextChunk

if TYPE_CHECKING:
    from toolcrib.agent.outcome import Outcome
    from toolcrib.agent.output_ladder import LadderStep
    from toolcrib.agent.output_shape import OutputShape
    from toolcrib.models.model import Model
    from toolcrib.sink import Subscription

__all__ = ["PartialOutput", "WatchedModel", "items_of", "partials_of"]

Path = tuple[str | int, ...]


class WatchedModel:
    """A model that emits each piece of its typed answer as an OutputDelta, as soon as it comes."""

    def __init__(
        self,
        model: Model,
        shape: OutputShape,
        step: LadderStep,
        attempt: int,
        tell: Callable[[Event], None],
    ) -> None:
        self.name = model.name
        self._model = model
        self._shape = shape
        self._step = step
        self.attempt = attempt
        self._tell = tell
        self._parser: _Parser | None = None
        self._index = -1  # of the call that is the answer

    @property
    def answers_begun(self) -> int:
        """How many answers were begun so far, with those of earlier requests."""
        return self.attempt - (self._parser is None or not self._parser.has_told)

    async def stream(self, request: Request) -> AsyncGenerator[Chunk | Response, None]:
        """The model's stream."""
        stream: Any = self._model.stream(request)
        try:
            async for item in stream:
                self._see(item)
                yield item
        finally:
            closing = getattr(stream, "aclose", None)
            if closing is not None:
                await closing()

    async def respond(self, request: Request) -> Response:
        """The whole answer, without events for its pieces."""
        return await self._model.respond(request)

    def _see(self, item: Chunk | Response) -> None:
        if isinstance(item, RestartChunk):
            self.attempt = self.answers_begun + 1
            self._parser, self._index = None, -1
        elif isinstance(item, TextChunk):
            if self._index < 0:  # text may be an answer too, where a call was asked for
                self._feed(item.text)
        elif isinstance(item, CallChunk) and self._step.by_call:
            if item.name == COMPLETION and self._index < 0:
                self._index, self._parser = item.index, None
            if item.index == self._index:
                self._feed(item.arguments)

    def _feed(self, text: str) -> None:
        if not text:
            return
        if self._parser is None:
            words_first = not self._step.by_call
            self._parser = _Parser(
                self._shape, self.attempt, self._tell, plain=self._step.is_plain, words_first=words_first
            )
        self._parser.feed(text)


class _Parser:
    """Reads one answer as it streams. What is no JSON ends the partial view: the whole answer is judged later."""

    def __init__(
        self,
        shape: OutputShape,
        attempt: int,
        tell: Callable[[Event], None],
        *,
        plain: bool,
        words_first: bool,
    ) -> None:
        self._prefix = shape.prefix
        self._tell = tell
        self._attempt = attempt
        self._plain = plain
        self._json: JsonStream | None = JsonStream()
        self._begun = False
        self.has_told = False  # whether anything of it was told
        self._words_first = words_first

    def feed(self, text: str) -> None:
        if self._plain:
            self._say((), text)
            return
        if self._json is None:
            return
        if not self._begun:  # a model without a schema may write words or a fence before it
            start = text.find("{")
            if start < 0 or (start > 0 and not self._words_first and text[:start].strip()):
                if not self._words_first and text.strip():
                    self._json = None
                return
            text, self._begun = text[start:], True
        try:
            events = self._json.feed(text)
        except JsonStreamError:
            self._json = None
            return
        size = len(self._prefix)
        for kind, path, value in events:
            if kind == "open" or path[:size] != self._prefix:
                continue
            if kind == "delta":
                self._say(path[size:], value)
                continue
            # A finished container or text: its parts were emitted before, so this event has only an empty value.
            rest: Any = (
                "" if isinstance(value, str) else type(value)() if isinstance(value, dict | list) else value
            )
            self._say(path[size:], rest, finished=True)

    def _say(self, path: Path, delta: Any, *, finished: bool = False) -> None:
        self.has_told = True
        self._tell(OutputDelta(self._attempt, path, delta, finished))


@dataclass(slots=True)
class PartialOutput:
    """A typed answer so far, as JSON data. One object grows while the answer does; another begins with each attempt.

    What `value` shows is never contradicted later: texts and lists only grow at their end, and numbers, true, false
    and null show when they are finished. It is not validated yet. `path` is where the last piece belongs. The last
    one that `extract_stream` gives has the `outcome`.
    """

    attempt: int
    value: Any = None
    path: Path = ()
    outcome: Outcome[Any] | None = None
    _finished: set[Path] = field(default_factory=set, repr=False)

    def finished(self, *path: str | int) -> bool:
        """Whether the part at a path, such as `finished("lines", 0)`, is complete; without a path, the whole."""
        return any(path[:size] in self._finished for size in range(len(path) + 1))

    def apply(self, event: OutputDelta) -> None:
        """Take a piece in."""
        self.path = event.path
        if event.finished:
            self._finished.add(event.path)
        if not event.path:
            self.value = _grown(self.value, event)
            return
        if self.value is None:
            self.value = [] if isinstance(event.path[0], int) else {}
        holder = self.value
        for here, following in zip(event.path, event.path[1:], strict=False):
            holder = _inner(holder, here, [] if isinstance(following, int) else {})
        last = event.path[-1]
        if isinstance(last, int):
            if last == len(holder):
                holder.append(None)
            if last < len(holder):
                holder[last] = _grown(holder[last], event)
        else:
            holder[last] = _grown(holder.get(last), event)


def _inner(holder: Any, place: str | int, made: Any) -> Any:
    if isinstance(place, int):
        if place == len(holder):
            holder.append(made)
        return holder[place]
    return holder.setdefault(place, made)


def _grown(before: Any, event: OutputDelta) -> Any:
    if isinstance(event.delta, str):
        return event.delta if before is None else before + event.delta
    if isinstance(event.delta, dict | list):
        return event.delta if before is None else before
    return event.delta


async def partials_of(events: Subscription, run: str) -> AsyncIterator[PartialOutput]:
    """The answer so far, whenever more of it came; pieces that wait together are given as one."""
    partial: PartialOutput | None = None
    while batch := await events.more():
        changed = False
        while batch:
            event = batch.popleft()
            if not isinstance(event, OutputDelta) or event.run != run:
                continue
            if partial is None or event.attempt != partial.attempt:
                if partial is not None and changed:
                    yield partial
                partial = PartialOutput(event.attempt)
            partial.apply(event)
            changed = True
        if partial is not None and changed:
            yield partial


async def items_of(events: Subscription, run: str, shape: OutputShape) -> AsyncIterator[OutputItem[Any]]:
    """The items of a list, each as soon as it is finished. One that does not fit ends nothing."""
    item, itemwise = shape.item_shape(), shape.output.itemwise
    partial: PartialOutput | None = None
    places: list[int] | None = None  # of the items that were asked for again
    bad: list[int] = []
    while batch := await events.more():
        while batch:
            event = batch.popleft()
            if not isinstance(event, OutputDelta) or event.run != run:
                continue
            if partial is None or event.attempt != partial.attempt:
                if partial is not None and partial.finished() and itemwise:
                    places = sorted(bad)
                partial, bad = PartialOutput(event.attempt), []
            partial.apply(event)
            if event.finished and len(event.path) == 1 and isinstance(event.path[0], int):
                at = event.path[0]
                if places is not None and at >= len(places):
                    continue
                place = at if places is None else places[at]
                found = item.read_item(place, event.attempt, partial.value[at])
                if found.problem:
                    bad.append(place)
                yield found
