"""One timer of an event loop for all that waits equally long: who begins later is due later.

A timer of asyncio for each call would cost 250 bytes and most of the time that a deadline takes.
"""

from __future__ import annotations

import asyncio
from contextvars import Context
from weakref import ReferenceType, WeakKeyDictionary, ref

__all__ = ["Timer", "Waiter", "timer_of"]

IDLE = 64  # timers without a waiter that a loop keeps until they would ring


class Waiter:
    """Something that a timer rings; a link of the timer's chain."""

    __slots__ = ("due", "earlier", "later", "timer")

    due: float  # by the loop's clock
    earlier: Waiter | None
    later: Waiter | None
    timer: Timer | None  # while it waits

    def ring(self) -> None:
        """Its time has come. Runs in the loop, in a context without variables."""
        raise NotImplementedError


class Timers(dict[float, "Timer"]):
    """The timers of one loop, by their seconds."""

    __slots__ = ("__weakref__",)


class Timer:
    """The waiters of one loop that wait equally long, the one that is due next first."""

    __slots__ = ("first", "handle", "last", "others", "seconds")

    def __init__(self, seconds: float, others: Timers) -> None:
        self.seconds = seconds
        self.others = others
        self.first: Waiter | None = None
        self.last: Waiter | None = None
        self.handle: asyncio.TimerHandle | None = None  # while it runs

    def add(self, waiter: Waiter, loop: asyncio.AbstractEventLoop) -> None:
        waiter.due = loop.time() + self.seconds
        waiter.timer = self
        waiter.later = None
        waiter.earlier = last = self.last
        self.last = waiter
        if last is None:
            self.first = waiter
        else:
            last.later = waiter
        if self.handle is None:
            self._run(waiter.due, loop)

    def remove(self, waiter: Waiter) -> None:
        earlier, later = waiter.earlier, waiter.later
        if earlier is None:
            self.first = later
        else:
            earlier.later = later
        if later is None:
            self.last = earlier
        else:
            later.earlier = earlier
        waiter.timer = waiter.earlier = waiter.later = None
        if self.first is None and len(self.others) > IDLE:
            if self.handle is not None:
                self.handle.cancel()
            self._forget()

    def _run(self, due: float, loop: asyncio.AbstractEventLoop) -> None:
        self.handle = loop.call_at(due, self._rings, loop, context=Context())

    def _rings(self, loop: asyncio.AbstractEventLoop) -> None:
        self.handle = None
        now = loop.time()
        try:
            while (waiter := self.first) is not None and waiter.due <= now:
                self.remove(waiter)
                waiter.ring()
        finally:
            if self.first is None:
                self._forget()
            else:
                self._run(self.first.due, loop)

    def _forget(self) -> None:
        self.handle = None
        if self.others.get(self.seconds) is self:
            del self.others[self.seconds]


# Waiters and handles refer to their loop, so this refers to the timers weakly: an abandoned loop can be freed even if
# calls wait on it. A waiter refers to its timer, and a timer to the other timers of its loop.
_timers: WeakKeyDictionary[asyncio.AbstractEventLoop, ReferenceType[Timers]] = WeakKeyDictionary()


def timer_of(loop: asyncio.AbstractEventLoop, seconds: float) -> Timer:
    """The timer of a loop for what waits so many seconds."""
    known = _timers.get(loop)
    timers = None if known is None else known()
    if timers is None:
        timers = Timers()
        _timers[loop] = ref(timers)
    timer = timers.get(seconds)
    if timer is None:
        timer = timers[seconds] = Timer(seconds, timers)
    return timer
