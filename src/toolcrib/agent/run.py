"""A run as its caller has it: to await for its outcome, to iterate over for its events, to cancel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Sequence
from typing import TYPE_CHECKING, Any, Generic

from toolcrib.agent.loop import RunLoop
from toolcrib.agent.outcome import Outcome
from toolcrib.agent.output_var import Out
from toolcrib.agent.saved_run import SavedRun
from toolcrib.agent.settings import AgentSettings
from toolcrib.agent.text_stream import text_of
from toolcrib.agent.transcript import TranscriptFile
from toolcrib.event_loops import cancelled_with_caller
from toolcrib.events import Event
from toolcrib.messages import Message, Usage

if TYPE_CHECKING:
    from toolcrib.agent.output_items import OutputItem
    from toolcrib.agent.output_stream import PartialOutput
    from toolcrib.context import Context
    from toolcrib.sink import Subscription

__all__ = ["Run"]


class Run(Generic[Out]):
    """One run of an agent: `await` it for its outcome, iterate over its events, `cancel` it."""

    def __init__(
        self,
        settings: AgentSettings,
        task: str | Message,
        messages: Sequence[Message] = (),
        deps: Any = None,
        transcript: TranscriptFile | None = None,
        within: Context[Any] | None = None,
        saved: SavedRun | None = None,
    ) -> None:
        if transcript is not None and not isinstance(transcript, TranscriptFile):
            raise TypeError(
                f"transcript must be a TranscriptFile, as in TranscriptFile({str(transcript)!r}); got {transcript!r}"
            )
        self._loop = RunLoop(settings, task, messages, deps, transcript, within, saved)
        self.id, self.box, self.account = self._loop.id, self._loop.box, self._loop.account
        self._task: asyncio.Task[Outcome[Out]] | None = None
        self._events: Subscription | None = None

    @property
    def outcome(self) -> Outcome[Out] | None:
        """How the run ended; None before."""
        return self._loop.outcome

    @property
    def messages(self) -> list[Message]:
        """The conversation so far: valid at every moment."""
        return self._loop.messages

    @property
    def turns(self) -> int:
        """How many requests were sent so far."""
        return self._loop.turns

    @property
    def usage(self) -> Usage:
        """What the run used so far, with the runs within its calls."""
        return self._loop.usage

    @property
    def seconds_before(self) -> float:
        """How long the run had been running when it ended at its questions, if it goes on from there."""
        return self._loop.seconds_before

    def __await__(self) -> Generator[Any, Any, Outcome[Out]]:
        return self._outcome_or_leave().__await__()

    def cancel(self) -> None:
        """Stop the run: its outcome says "cancelled", its transcript stays valid."""
        self._loop.stopped = True
        if self._task is not None and not self._task.done():
            self._task.cancel()

    def begin(self) -> None:
        """Begin the run now. Its events are kept for the first iteration over it."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self.box.forget(self.id)
            raise RuntimeError(
                "agent.start(...) begins the run at once and needs a running event loop: "
                "call it in async code, or use agent.run_sync(...)"
            ) from None
        self._ensure_task().add_done_callback(self._ended)
        self._events = self._listen()

    def _ended(self, _: asyncio.Task[Outcome[Out]]) -> None:
        if self.outcome is None:
            self._loop.cancelled_before_start()

    def _listen(self) -> Subscription:
        subscription = self.box.events(self.id)
        self._ensure_task().add_done_callback(lambda _: self.box.unsubscribe(subscription))
        return subscription

    def __aiter__(self) -> AsyncIterator[Event]:
        """The events of the run: all of them in the first iteration, those from then on in a further one."""
        return aiter(self.events())

    def events(self) -> Subscription:
        """The same as a queue of its own."""
        subscription, self._events = self._events or self._listen(), None
        return subscription

    def stream_text(self) -> AsyncIterator[str]:
        """The text that the model writes for the user, in pieces; `await` the run for its outcome.

        Each piece is given once. Texts of several answers are apart by an empty line, also where an answer broke off
        and began again.
        """
        return text_of(self, self.id)

    def stream_partial(self) -> AsyncIterator[PartialOutput]:
        """The typed answer so far, as JSON data that grows as the model writes; `await` the run for its outcome.

        What is shown of one attempt never changes (see `PartialOutput`).
        """
        from toolcrib.agent.output_stream import partials_of

        return partials_of(self.events(), self.id)

    def stream_items(self) -> AsyncIterator[OutputItem[Any]]:
        """The items of an output that is a list, each validated as soon as it is finished; `await` the run afterwards.

        An item that does not fit is given with its problem, and ends nothing. TypeError where the output is no list.
        """
        from toolcrib.agent.output_stream import items_of

        completion = self._loop.settings.completion
        if completion is None:
            raise TypeError("only a list has items, as in output=list[Invoice]; the output is text")
        completion.shape.item_shape()
        return items_of(self.events(), self.id, completion.shape)

    def _ensure_task(self) -> asyncio.Task[Outcome[Out]]:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(
                self._loop.run(), name=f"toolcrib run {self.id}"
            )
        return self._task

    async def _outcome_or_leave(self) -> Outcome[Out]:
        """The outcome. A tool whose run waits for answers is left, and runs again when they are there."""
        outcome = await self.ended()
        await self._loop.leave_if_waiting(outcome)
        return outcome

    async def ended(self) -> Outcome[Out]:
        """The outcome. Unlike awaiting the run, this lets a tool go on whose run within its call waits for answers."""
        if self._task is not None and self._task.done() and not self._task.cancelled():
            return self._task.result()  # or what the caller's own code raised
        if self.outcome is not None and (self._task is None or self._task.done()):
            return self.outcome
        if self._task is None and self._loop.stopped:
            return self._loop.cancelled_before_start()
        work = self._ensure_task()
        try:
            return await (asyncio.shield(work) if self._loop.stopped else cancelled_with_caller(work))
        except asyncio.CancelledError:
            if not work.cancelled():
                raise
            outcome = self.outcome or self._loop.cancelled_before_start()
            if self._loop.stopped:
                return outcome
            raise
