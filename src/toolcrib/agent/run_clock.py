"""The time that a run within another run has. It stands still while a person is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

from toolcrib.agent.unreachable import Unreachable

__all__ = ["RunClock"]


class RunClock:
    """Calls `end` when its seconds are over; use it in a `with` block.

    It stands still while it is `paused`, also where several pauses overlap. `used` are seconds that passed before.
    """

    def __init__(self, seconds: float, end: Callable[[], None], used: float = 0.0) -> None:
        self.seconds = seconds
        self.over = False
        self._end = Unreachable(end)  # it leads to the run, and so to a model
        self._left = max(seconds - used, 0.0)
        self._pauses = 0
        self._timer: asyncio.TimerHandle | None = None
        self._running = False

    def __enter__(self) -> RunClock:
        self._running = True
        self._start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._running = False
        self._stop()

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stand still while this lasts."""
        self._pauses += 1
        self._stop()
        try:
            yield
        finally:
            self._pauses -= 1
            self._start()

    def _start(self) -> None:
        if self._running and not self._pauses and not self.over:
            self._timer = asyncio.get_running_loop().call_later(self._left, self._ring)

    def _stop(self) -> None:
        if self._timer is not None:
            self._left = max(self._timer.when() - asyncio.get_running_loop().time(), 0.0)
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer, self.over = None, True
        self._end.value()
