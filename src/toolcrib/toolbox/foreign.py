"""Code of users that is awaited (approvers, factories, hooks, closing): within a deadline, and by one rule for what it
raises.

| what the code does                                        | what its caller sees             |
| --------------------------------------------------------- | -------------------------------- |
| gives a value, or raises an Exception                     | the same                         |
| raises CancelledError, SystemExit or another BaseException | ForeignError, an Exception       |
| raises KeyboardInterrupt                                  | the same: a person ends the program |
| still runs at its deadline                                | DeadlinePassed; it was cancelled |
| anything, while the caller itself was cancelled           | CancelledError                   |

So a cancellation always belongs to whoever asked for it: no code can swallow its caller's, and none can end a run with
one of its own. Code that does not stop when it is cancelled is let go after a grace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

from toolcrib.toolbox.deadline import Deadline, DeadlinePassed, WillNotStop

__all__ = ["ForeignCall", "ForeignError"]

T = TypeVar("T")


class ForeignError(Exception):
    """Code of a user raised what is no error: a cancellation that nobody asked for, or the end of the program."""


class ForeignCall(Deadline, Generic[T]):
    """Awaits code of a user once. `seconds` is its deadline, None for none; `grace` how long it may take to stop.

    It runs in the task of its caller, so that what was opened in that task can be closed in it. With `keeps_value`, a
    value is returned even if the caller was cancelled meanwhile; the caller then has to raise the cancellation itself.
    """

    __slots__ = ("grace", "keeps_value", "seconds", "work")

    def __init__(
        self, work: Awaitable[T], seconds: float | None, grace: float, *, keeps_value: bool = False
    ) -> None:
        self.keeps_value = keeps_value
        self.work = work
        self.seconds = seconds
        self.grace = grace
        self.task = self.timer = self.left = self.ctx = None
        self.waits = 0
        self.interrupted = False

    def __await__(self) -> Generator[Any, Any, T]:
        coro = self.work if asyncio.iscoroutine(self.work) else _awaited(self.work)
        closing = False
        try:
            try:
                waiting = coro.send(None)
                self.arm(coro, self.seconds)
                while True:
                    try:
                        sent = yield waiting
                    except GeneratorExit:
                        closing = True
                        coro.close()
                        raise
                    except BaseException as error:
                        waiting = self.throw(error, self.grace)
                    else:
                        waiting = coro.send(sent)
            finally:
                if self.task is not None:
                    self.disarm()
        except StopIteration as stop:
            if self.interrupted and not self.keeps_value:
                raise asyncio.CancelledError(*self.cancel_args) from None
            value: T = stop.value
            return value
        except BaseException as error:
            if closing or isinstance(error, KeyboardInterrupt):
                raise
            if self.interrupted:
                raise asyncio.CancelledError(*self.cancel_args) from None
            seen = error if self.task is None else self.judged(error)
            if isinstance(seen, DeadlinePassed | WillNotStop):
                raise DeadlinePassed from None
            if isinstance(seen, Exception):
                raise
            raise ForeignError(f"{type(error).__name__} was raised, which nobody asked for") from error


async def _awaited(work: Awaitable[T]) -> T:
    return await work
