"""Driving a tool's coroutine: a deadline that costs nothing until the tool waits, and one that is really kept.

The coroutine is stepped by hand inside the caller's own task. One that never waits needs none of this. One
that waits is cancelled at the deadline (or when its caller is cancelled), and one that will not stop even then is
let go: it runs on in a task of its own, and the call is answered as of unknown outcome.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

from toolcrib.errors import Cancelled

GRACE = 5.0  # seconds that a cancelled coroutine has for its clean-up


class DeadlinePassed(Exception):
    """The tool was stopped at its deadline."""


class WillNotStop(Exception):
    """The tool was told to stop and did not; `straggler` is the task that ends when it does."""

    def __init__(self, straggler: Any) -> None:
        super().__init__()
        self.straggler = straggler


class Driven:
    """Awaits a coroutine that has been stepped once and is `waiting`, within `seconds` from now.

    `ctx`, if there is one, learns that it was cancelled.

    `interrupted` says afterwards that the caller itself was cancelled, whatever the tool made of it.
    """

    __slots__ = (
        "_cancelling",
        "_coro",
        "_ctx",
        "_expired",
        "_grace",
        "_over",
        "_seconds",
        "_task",
        "_timer",
        "_waiting",
        "interrupted",
    )

    def __init__(
        self, coro: Any, waiting: Any, seconds: float | None, ctx: Any, grace: float = GRACE
    ) -> None:
        self._coro = coro
        self._waiting = waiting
        self._seconds = seconds
        self._ctx = ctx
        self._grace = grace
        self._expired = False
        self._over = False
        self.interrupted = False

    def __await__(self) -> Generator[Any, Any, Any]:
        coro, waiting = self._coro, self._waiting
        task = asyncio.current_task()
        assert task is not None
        loop = task.get_loop()
        self._task, self._cancelling = task, task.cancelling()
        self._timer = loop.call_later(self._seconds, self._expire) if self._seconds is not None else None
        stopping = False
        try:
            while True:
                try:
                    sent = yield waiting
                except GeneratorExit:
                    coro.close()
                    raise
                except asyncio.CancelledError as error:
                    if self._over:
                        self._let_go(error)
                    if not stopping:
                        stopping = True
                        if self._ctx is not None:
                            self._ctx._cancelled = True
                        if self._timer is not None:
                            self._timer.cancel()
                        self._timer = loop.call_later(self._grace, self._give_up)
                    waiting = coro.throw(error)
                except BaseException as error:
                    waiting = coro.throw(error)
                else:
                    waiting = coro.send(sent)
        except StopIteration as stop:
            self._uncancel()
            return stop.value
        except WillNotStop:
            self._uncancel()
            raise
        except BaseException as error:
            mine = self._uncancel() and self._expired
            if mine and isinstance(error, asyncio.CancelledError | Cancelled):
                raise DeadlinePassed from None
            raise
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def _expire(self) -> None:
        self._expired = True
        self._task.cancel()

    def _give_up(self) -> None:
        self._over = True
        self._task.cancel()

    def _uncancel(self) -> bool:
        """Take back our own cancellations; True when nobody else's is left."""
        for mine in (self._expired, self._over):
            if mine:
                self._task.uncancel()
        self.interrupted = self._task.cancelling() > self._cancelling
        return not self.interrupted

    def _let_go(self, error: BaseException) -> None:
        raise WillNotStop(asyncio.get_running_loop().create_task(_finish(self._coro, error)))


class _Resumed:
    """A coroutine that has begun elsewhere, driven on from where it waits."""

    def __init__(self, coro: Any, error: BaseException) -> None:
        self._coro = coro
        self._error = error

    def __await__(self) -> Generator[Any, Any, Any]:
        try:
            waiting = self._coro.throw(self._error)
            while True:
                try:
                    sent = yield waiting
                except BaseException as error:
                    waiting = self._coro.throw(error)
                else:
                    waiting = self._coro.send(sent)
        except StopIteration as stop:
            return stop.value


async def _finish(coro: Any, error: BaseException) -> None:
    try:
        await _Resumed(coro, error)
    except BaseException:  # its call has its answer already: what it raises now is nobody's
        return
