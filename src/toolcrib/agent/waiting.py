"""What is told while a run waits for its model: in the log, and as events where somebody listens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from toolcrib.events import Event, ModelAsked, ModelFellBack, ModelRetried, ModelSilent
from toolcrib.messages import FallbackChunk, RetryChunk

__all__ = ["SILENCE", "Waiting"]

SILENCE = 20.0  # seconds without a word from the model that are told first; then twice as many, and so on

log = logging.getLogger("toolcrib")


class Waiting:
    """The wait for one answer, from the request to `end`. Time is the event loop's.

    What a model tells itself (a retry, a fallback) stands in the log already; here it becomes an event.
    """

    def __init__(self, model: str, turn: int, tell: Callable[[Event], None] | None) -> None:
        self._model = model
        self._turn = turn
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._heard = self._loop.time()
        # Most timers are never due, and cost more than the rest of a turn: an answer that is there needs none.
        self._timer: asyncio.Handle = self._loop.call_soon(self._begin)
        log.info("asking %s (turn %d)", model, turn)
        if tell is not None:
            tell(ModelAsked(turn, model))

    def heard(self) -> None:
        """Something came: the silence begins anew."""
        self._heard = self._loop.time()

    def noted(self, chunk: RetryChunk | FallbackChunk) -> None:
        """The model tells that the request failed and what it does about it; its own pause is no silence."""
        if isinstance(chunk, FallbackChunk):
            self._model = chunk.model
            event: Event = ModelFellBack(self._turn, chunk.model, chunk.problem)
        else:
            self._heard += chunk.delay
            event = ModelRetried(
                self._turn, self._model, chunk.attempt, chunk.attempts, chunk.delay, chunk.problem
            )
        if self._tell is not None:
            self._tell(event)

    def end(self) -> None:
        """The answer is whole, or will not come."""
        self._timer.cancel()

    def _begin(self) -> None:
        self._timer = self._loop.call_at(self._heard + SILENCE, self._check, SILENCE)

    def _check(self, limit: float) -> None:
        if self._loop.time() < self._heard + limit:
            limit = SILENCE  # something came since
        else:
            log.warning("no answer from %s for %g s", self._model, limit)
            if self._tell is not None:
                self._tell(ModelSilent(self._turn, self._model, limit))
            limit *= 2
        self._timer = self._loop.call_at(self._heard + limit, self._check, limit)
