"""The deadline of a running tool. It costs nothing until the tool waits.

The coroutine of the tool is driven by hand, inside the task of the caller, with `send` and `throw`. A coroutine that
never waits needs no deadline. A coroutine that waits is cancelled when its deadline passes, or when its caller is
cancelled. If it has not stopped when its grace is over, it is let go: it runs on in a task of its own, and the call's
result says that the outcome is unknown. A timeout in the tool's own code does not change the deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from toolcrib.errors import Cancelled
from toolcrib.toolbox.own_cancellations import (
    CancellingScope,
    cancelled_by_group_at_its_end,
    let_go,
    own_cancellations,
)
from toolcrib.toolbox.timers import Waiter, timer_of

__all__ = ["Deadline", "DeadlinePassed", "NotStarted", "WillNotStop"]


class DeadlinePassed(Exception):
    """The tool was stopped at its deadline."""


class NotStarted(asyncio.CancelledError):
    """The tool was cancelled while it waited for a worker thread: it was not started, and never will be."""


class WillNotStop(Exception):
    """The tool was told to stop and did not; `has_stopped()` says whether it has by now."""

    def __init__(self, has_stopped: Callable[[], bool]) -> None:
        super().__init__()
        self.has_stopped = has_stopped


class Deadline(Waiter, CancellingScope):
    """Drives a coroutine that has already suspended once, and cancels it when its deadline passes.

    `arm` starts the clock. `throw` hands an exception on to the coroutine. `disarm` stops the clock and tells our own
    cancellations from the caller's: `interrupted` then says whether the caller itself was cancelled.
    """

    __slots__ = (
        "cancel_args", "cancelling", "coro", "ctx", "expired", "interrupted", "left", "over", "task", "told", "waits",
    )  # fmt: skip

    coro: Any
    ctx: Any
    task: asyncio.Task[Any] | None
    left: float | None
    waits: int
    cancel_args: tuple[Any, ...]  # of the last CancelledError: anyio knows its own by them

    def arm(self, coro: Any, seconds: float | None) -> None:
        self.coro = coro
        self.task = task = asyncio.current_task()
        assert task is not None
        self.cancelling, self.cancel_args = task.cancelling(), ()
        self.expired = self.told = self.over = False
        if self.waits:
            self.left = seconds
        elif seconds is not None:
            loop = task.get_loop()
            timer_of(loop, seconds).add(self, loop)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop the clock while a person is asked: that time is not the tool's. The clock may not have started yet."""
        loop = asyncio.get_running_loop()
        if self.task is not None and self.task.get_loop() is not loop:  # its timer is not ours to stop
            yield
            return
        if not self.waits:
            self.left = None if self.timer is None else max(self.due - loop.time(), 0.0)
            if self.timer is not None:
                self.timer.remove(self)
        self.waits += 1
        try:
            yield
        finally:
            self.waits -= 1
            if not self.waits and self.left is not None:  # else the call was stopped meanwhile
                timer_of(loop, self.left).add(self, loop)

    def throw(self, error: BaseException, grace: float) -> Any:
        """Hand an exception to the coroutine; returns what it waits for next.

        Raises WillNotStop where the coroutine was cancelled before, and the seconds of its grace are over.
        """
        task = self.task
        assert task is not None
        if isinstance(error, asyncio.CancelledError):
            self.cancel_args = error.args or self.cancel_args
            if self.over:
                raise WillNotStop(let_go(self.coro, task, error).done)
            if not self.told and self._told_to_stop(task):
                self.told = True
                self.left = None
                if self.ctx is not None:
                    self.ctx._cancelled = True
                if self.timer is not None:
                    self.timer.remove(self)
                loop = task.get_loop()
                timer_of(loop, grace).add(self, loop)
        return self.coro.throw(error)

    def _told_to_stop(self, task: asyncio.Task[Any]) -> bool:
        """Whether the deadline or the caller asked for a cancellation, and not the code itself."""
        if self.expired:
            return True
        if cancelled_by_group_at_its_end(self.coro, task):
            task.uncancel()
            return False
        return task.cancelling() - self.cancelling > own_cancellations(self.coro, task)

    def disarm(self) -> None:
        self.left = None
        if self.timer is not None:
            self.timer.remove(self)
        task = self.task
        assert task is not None
        for _ in range(self.asked()):
            task.uncancel()
        self.coro = None
        self.interrupted = task.cancelling() > self.cancelling

    def asked(self) -> int:
        return 0 if self.coro is None else self.expired + self.over

    def judged(self, error: BaseException) -> BaseException:
        """The exception of the coroutine; DeadlinePassed instead, if our own cancellation stopped it."""
        if isinstance(error, NotStarted):
            return error
        stopped = isinstance(error, asyncio.CancelledError | Cancelled)
        return DeadlinePassed() if stopped and self.expired and not self.interrupted else error

    def ring(self) -> None:
        if self.told:
            self.over = True
        else:
            self.expired = True
        assert self.task is not None
        self.task.cancel()
