"""Watching a toolbox: its events, and the statistics of its tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from toolcrib.events import Event
from toolcrib.hooks import is_async
from toolcrib.sink import ASYNC_LISTENER, CallbackSubscription, EventLog, EventSink, Subscription
from toolcrib.toolbox.stats import Statistics, ToolStats, hint

__all__ = ["Watched"]


class Watched:
    """The part of a toolbox with its events and the statistics of its tools."""

    sink: EventSink
    _stats: Statistics

    @overload
    def subscribe(self, listener: EventLog) -> EventLog: ...
    @overload
    def subscribe(self, listener: Callable[[Event], Any]) -> CallbackSubscription: ...
    def subscribe(self, listener: Callable[[Event], Any] | EventLog) -> CallbackSubscription | EventLog:
        """Call a plain function with every event, on a thread of its own, or keep events in an EventLog.

        What it gives back is what `unsubscribe` takes.
        """
        if not isinstance(listener, EventLog) and not callable(listener):
            raise TypeError(f"a listener must be a function of an event, or an EventLog; got {listener!r}")
        if is_async(listener):
            raise TypeError(ASYNC_LISTENER)
        subscription = listener if isinstance(listener, EventLog) else CallbackSubscription(listener)
        self.sink.add(subscription)
        return subscription

    def events(self, run: str = "") -> Subscription:
        """A queue of all events from now on, to be read with `async for`; `unsubscribe` ends it.

        With `run`, only the events of that run and of the runs within it.
        """
        subscription = Subscription(run=run)
        self.sink.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Any) -> None:
        """End a subscription."""
        self.sink.remove(subscription)

    def emit(self, run: str, event: Event) -> None:
        """Hand an event of a run to whoever listens."""
        self.sink.emit(run, event)

    def stats(self) -> dict[str, ToolStats]:
        """Counts and durations of each tool that was called."""
        return dict(self._stats)

    def stats_hint(self) -> str:
        """A section for the prompt that names tools that fail often or are slow; empty when there are none."""
        return hint(self._stats)
