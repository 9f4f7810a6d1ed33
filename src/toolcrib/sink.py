"""Where events go: a sink that numbers them, and the listeners that it hands them to.

Each listener has its own queue or thread, so that a slow or broken one neither delays nor breaks a call.
"""

from __future__ import annotations

import copy
import threading
import weakref
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from itertools import count, repeat
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Protocol

from toolcrib.events import ArgumentsDelta, Event, OutputDelta, ReasoningDelta, TextDelta

if TYPE_CHECKING:
    import asyncio
    from queue import SimpleQueue


__all__ = ["CallbackSubscription", "EventLog", "EventSink", "Subscription"]

ASYNC_LISTENER = (
    "a listener is a plain function, called on a thread: no event loop would await an async one; "
    "in an event loop, write `async for event in box.events()`"
)

MakeEvents = Callable[[str, Iterator[int], str, float, Any], tuple[Event, ...]]
"""Makes events of their run, of numbers to take from, of their parent and time, and of facts."""

FLUSH_SECONDS = 5.0
DELTAS = frozenset({ArgumentsDelta, OutputDelta, TextDelta, ReasoningDelta})  # of which several may be joined


class Subscription:
    """A listener that is read as an async iterator, in the loop that iterates it.

    While more than `limit` events wait, a delta is joined with the one before it if both are of the same text.
    No event is dropped. With a `run`, it is handed the events of that run and of the runs within it alone.
    """

    def __init__(self, limit: int = 1_000, run: str = "") -> None:
        self.run = run
        self._events: deque[Event] = deque()
        self._ready: deque[Event] = deque()  # events that the reader takes out one by one
        self._joined: list[Event] = []  # deltas to be joined with the last event
        self._limit = limit
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._waiter: asyncio.Future[None] | None = None
        self._waiting = False
        self._closed = False

    def put(self, event: Event) -> None:
        """Add an event. The sink calls it from any thread, but never from two at once."""
        if (type(event) in DELTAS and len(self._events) >= self._limit) or self._joined:
            self._join(event)
        else:
            # The reader may take the deque away meanwhile: it looks at it once more before it waits.
            self._events.append(event)
        if self._waiting:
            with self._lock:
                if self._waiting:
                    self._wake()

    def _join(self, event: Event) -> None:
        """Join a delta with the last event that waits, or add an event after one that was joined."""
        with self._lock:
            if self._events and _continues(self._events[-1], event):
                self._joined.append(event)
                return
            self._settle()
            self._events.append(event)

    def _settle(self) -> None:
        """Replace the last event by one with all joined deltas; once, so that the cost is linear."""
        if self._joined:
            whole = copy.copy(self._events[-1])  # the events themselves belong to all listeners
            name = "delta" if isinstance(whole, ArgumentsDelta | OutputDelta) else "text"
            pieces = [getattr(event, name) for event in (whole, *self._joined)]
            setattr(whole, name, "".join(pieces))
            self._events[-1] = whole
            self._joined.clear()

    def close(self) -> None:
        """End the iteration after the events that wait now."""
        with self._lock:
            self._closed = True
            if self._waiting:
                self._wake()

    def _wake(self) -> None:
        """Wake the waiting reader. From its own thread that takes no message to its loop."""
        self._waiting = False
        assert self._waiter is not None and self._loop is not None
        if threading.get_ident() == self._thread:
            _end(self._waiter)
            return
        try:
            self._loop.call_soon_threadsafe(_end, self._waiter)
        except RuntimeError:  # the reader's loop is gone, and the reader with it
            pass

    async def __aiter__(self) -> AsyncIterator[Event]:
        while events := await self.more():
            while events:
                yield events.popleft()

    async def more(self) -> deque[Event]:
        """The events that wait, to be taken out from the left; waits for the first. Empty at the end."""
        while not self._ready:
            with self._lock:
                self._settle()
                self._ready, self._events = self._events, self._ready
                if self._ready or self._closed:
                    break
                waiter = self._new_waiter()
                self._waiting = True
                if self._ready or self._events:  # `put` was in the middle of it
                    self._waiting = False
                    continue
            await waiter
        return self._ready

    def _new_waiter(self) -> asyncio.Future[None]:
        import asyncio

        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        waiter = self._waiter = self._loop.create_future()
        return waiter


def _end(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():  # whoever waited was cancelled
        waiter.set_result(None)


def _continues(last: Event, event: Event) -> bool:
    """Whether a delta grows the same text as the one before it."""
    if type(last) is not type(event) or last.run != event.run:
        return False
    if isinstance(last, ArgumentsDelta) and isinstance(event, ArgumentsDelta):
        same = (last.key, last.path) == (event.key, event.path) and not last.finished and not event.finished
        return same and isinstance(last.delta, str) and isinstance(event.delta, str)
    if isinstance(last, OutputDelta) and isinstance(event, OutputDelta):
        same = (
            (last.attempt, last.path) == (event.attempt, event.path)
            and not last.finished
            and not event.finished
        )
        return same and isinstance(last.delta, str) and isinstance(event.delta, str)
    return isinstance(last, TextDelta | ReasoningDelta)


class CallbackSubscription:
    """A listener that hands events to a plain function, on a thread of its own. Its first exception is logged."""

    def __init__(self, callback: Callable[[Event], Any]) -> None:
        from queue import SimpleQueue

        self._queue: SimpleQueue[Event | None] = SimpleQueue()
        self._marks: deque[threading.Event] = deque()  # one for each None in the queue but the last
        self.put = self._queue.put
        self._thread = threading.Thread(
            target=_drain, args=(self._queue, self._marks, callback), name="toolcrib-events", daemon=True
        )
        self._thread.start()
        weakref.finalize(self, self._queue.put, None)  # the thread ends with the box that it listened to

    def flush(self, timeout: float) -> bool:
        """Wait until all events so far were handed over. Returns False if that took longer than `timeout` seconds."""
        if not self._thread.is_alive():  # it was closed, or this is a process forked from the thread's
            return self._queue.empty()
        mark = threading.Event()
        self._marks.append(mark)
        self._queue.put(None)
        return mark.wait(timeout)

    def close(self) -> None:
        """End the thread after the events that wait now."""
        self._queue.put(None)


def _drain(
    queue: SimpleQueue[Event | None], marks: deque[threading.Event], callback: Callable[[Event], Any]
) -> None:
    """Hand over events. At each None, somebody who waits is told; nobody waits for the last one."""
    complained, get = False, queue.get
    while True:
        event = get()
        if event is None:
            if not marks:
                return
            marks.popleft().set()
            continue
        try:
            given = callback(event)
            if type(given) is CoroutineType:
                given.close()
                raise TypeError(ASYNC_LISTENER)
        except BaseException:  # also SystemExit, which would end this thread alone
            if not complained:
                import logging

                logging.getLogger("toolcrib").exception(
                    "an event subscriber raised; it is told further events"
                )
            complained = True


class EventLog:
    """A listener that keeps all events, so that a page that is opened later can catch up from any point."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.put = self.events.append

    def since(self, seq: int, run: str = "") -> list[Event]:
        """The events of `run` (if empty, of all runs) with the number `seq` and higher."""
        return [event for event in self.events if event.seq >= seq and run in ("", event.run)]

    def close(self) -> None:
        """Do nothing: the events stay readable."""


class RunListeners:
    """Hands events to those who listen to single runs. What an event costs does not depend on how many there are."""

    def __init__(self, parents: Mapping[str, str]) -> None:
        self._parents = parents
        self.by_run: dict[str, tuple[Any, ...]] = {}

    def put(self, event: Event) -> None:
        """Hand an event to the listeners of its run, and of the runs whose calls began that run."""
        run: str | None = event.run
        while run is not None:
            for listener in self.by_run.get(run, ()):
                listener.put(event)
            run = self._parents.get(run)


def _as_it_is(run: str, numbers: Iterator[int], parent: str, time: float, event: Event) -> tuple[Event, ...]:
    """Completes an event that exists already, and was masked if need be."""
    event.run, event.seq, event.parent, event.time = run, next(numbers), parent, time
    return (event,)


def _put_to_each(puts: tuple[Callable[[Event], Any], ...], event: Event) -> None:
    for put in puts:
        try:
            put(event)
        except KeyboardInterrupt:
            raise
        except BaseException:
            _log_raised()


def _log_raised() -> None:
    import logging

    logging.getLogger("toolcrib").exception("an event listener raised")


class EventMask(Protocol):
    """Takes secrets out of events."""

    def __call__(self, run: str, event: Event, /) -> list[Event]: ...
    def forget(self, run: str) -> None: ...


class EventSink:
    """Numbers events and hands them to the listeners. It is false without listeners, so that no event is built.

    A copy of a sink shares numbers and listeners, and may mask events in its own way.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.listeners: list[Any] = []
        # One function that hands an event to all listeners, shared with copies.
        self._put: list[Callable[[Event], Any]] = []
        self._listeners_changed()
        self._seq: defaultdict[str, count[int]] = defaultdict(count)  # the next number of a run
        self._lock = threading.RLock()  # a listener may end its subscription
        self.parents: dict[str, str] = {}
        self._of_runs = RunListeners(self.parents)
        # Replaces an event by events without secrets, which listeners get instead; None: they get the event itself.
        self.mask: EventMask | None = None

    def __bool__(self) -> bool:
        return bool(self.listeners)

    def add(self, listener: Any) -> None:
        """Hand further events to a listener too; those of one run alone if it is a Subscription to a run."""
        with self._lock:
            run, of_runs = getattr(listener, "run", ""), self._of_runs
            if run:
                of_runs.by_run[run] = (*of_runs.by_run.get(run, ()), listener)
                listener = of_runs
            if not run or of_runs not in self.listeners:
                self.listeners.append(listener)
                self._listeners_changed()

    async def delivered(self) -> None:
        """Wait until functions that listen were handed all events so far; for one that is slower, `FLUSH_SECONDS`."""
        slow = [listener for listener in self.listeners if isinstance(listener, CallbackSubscription)]
        if slow:
            import asyncio

            for listener in slow:
                await asyncio.to_thread(listener.flush, FLUSH_SECONDS)

    def remove(self, listener: Any) -> None:
        """Close a listener, and hand no more events to it."""
        with self._lock:
            run, by_run = getattr(listener, "run", ""), self._of_runs.by_run
            if run:
                left = tuple(other for other in by_run.pop(run, ()) if other is not listener)
                if left:
                    by_run[run] = left
            gone = listener if by_run or not run else self._of_runs
            self.listeners[:] = [other for other in self.listeners if other is not gone]
            self._listeners_changed()
        listener.close()

    def _listeners_changed(self) -> None:
        puts = tuple(listener.put for listener in self.listeners)
        self._put[:] = [puts[0] if len(puts) == 1 else partial(_put_to_each, puts)]

    def emit(self, run: str, event: Event) -> None:
        """Number an event of a run and hand it to all listeners. What a listener raises is logged."""
        with self._lock:
            for shown in (event,) if self.mask is None else self.mask(run, event):
                self.emit_new(run, _as_it_is, shown)

    def emit_new(self, run: str, make: MakeEvents, facts: Any) -> None:
        """Like `emit`, for the events that `make` makes of facts. Takes less time than to make the events first."""
        if self.mask is not None and make is not _as_it_is:
            for event in make(run, repeat(0), "", 0.0, facts):
                self.emit(run, event)
            return
        self._lock.acquire()  # `with` would take longer
        try:
            parent = self.parents.get(run, "") if self.parents else ""
            put = self._put[0]
            for event in make(run, self._seq[run], parent, self._clock(), facts):
                try:
                    put(event)
                except KeyboardInterrupt:
                    raise
                except BaseException:
                    _log_raised()
        finally:
            self._lock.release()

    def depth(self, run: str) -> int:
        """How many runs stand above this one."""
        depth = 0
        while run in self.parents:
            run, depth = self.parents[run], depth + 1
        return depth

    def outermost(self, run: str) -> str:
        """The run that has no parent above this one."""
        while run in self.parents:
            run = self.parents[run]
        return run

    def forget(self, run: str) -> None:
        """Drop the counter of a run that has ended, and what its mask kept."""
        if self.mask is not None:
            self.mask.forget(run)
        self._seq.pop(run, None)
        self.parents.pop(run, None)
