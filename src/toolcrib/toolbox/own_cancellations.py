"""Which cancellations of a task were asked for by the code inside of it: by its `asyncio.timeout`, its task groups,
the deadlines of its own calls.

Such a scope cancels the task that it stands in and takes that back at its end. Until then the task counts as cancelled,
and asyncio does not say by whom. The scopes that a waiting coroutine has entered are found through its frames: a `with`
statement keeps the method that ends it.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Generator
from contextlib import AsyncExitStack, ExitStack
from types import AsyncGeneratorType, CoroutineType, GeneratorType, MethodType
from typing import Any

__all__ = ["CancellingScope", "cancelled_by_group_at_its_end", "let_go", "own_cancellations"]

# The attribute with the task that a scope cancels. anyio is not imported for its own.
HOSTS = {asyncio.Timeout: "_task", asyncio.TaskGroup: "_parent_task"}
HOST_IN_ANYIO = "_host_task"
AT_ITS_END = asyncio.TaskGroup.__aexit__.__code__
# Whether a task group takes back what it asked for while it waited for its tasks at its end.
TAKEN_BACK_AT_THE_END = sys.version_info >= (3, 13)
WAITING = (CoroutineType, GeneratorType, AsyncGeneratorType)
AWAITABLES = {"coroutine_wrapper", "async_generator_asend", "async_generator_athrow", "anext_awaitable"}
MOST = 10_000  # coroutines that are looked through


class CancellingScope:
    """A scope of ours: `task` is the task that it cancels."""

    __slots__ = ()

    task: asyncio.Task[Any] | None

    def asked(self) -> int:
        """How many cancellations it has asked for and not taken back."""
        raise NotImplementedError


def own_cancellations(work: Any, task: asyncio.Task[Any]) -> int:
    """How many cancellations of a task were asked for, and not taken back, by scopes of a waiting coroutine."""
    return sum(_asked(scope) for scope in _scopes(work, task))


def let_go(work: Any, task: asyncio.Task[Any], error: BaseException) -> asyncio.Task[None]:
    """Let a waiting coroutine of a task go on in another task, beginning with an exception that is thrown into it.

    Its scopes cancel that task from now on, and no longer the first.
    """
    other = task.get_loop().create_task(_finish(work, error))
    for scope in [*_scopes(work, task)]:
        for _ in range(_asked(scope)):
            task.uncancel()
        if (host := _host(scope)) != HOST_IN_ANYIO:  # a scope of anyio cannot end in another task
            setattr(scope, host, other)
    return other


def cancelled_by_group_at_its_end(work: Any, task: asyncio.Task[Any]) -> bool:
    """Whether a task group asked for the cancellation while it waited for its tasks at its end.

    Before Python 3.13 it does not take that back.
    """
    return not TAKEN_BACK_AT_THE_END and any(
        frame is not None
        and frame.f_code is AT_ITS_END
        and frame.f_locals["et"] is None  # else it asked before its end, or never
        and frame.f_locals["self"]._parent_cancel_requested
        for frame in (getattr(waiting, "cr_frame", None) for waiting in _waiting(work))
    )


def _host(scope: Any) -> str:
    """The attribute in which a scope, if it is one, has the task that it cancels."""
    return "task" if isinstance(scope, CancellingScope) else HOSTS.get(type(scope), HOST_IN_ANYIO)


def _asked(scope: Any) -> int:
    """How many cancellations a scope has asked for and not taken back."""
    if isinstance(scope, CancellingScope):
        return scope.asked()
    if isinstance(scope, asyncio.Timeout):
        return int(scope._state.value == "expiring")  # type: ignore[attr-defined]
    if isinstance(scope, asyncio.TaskGroup):
        open_still = TAKEN_BACK_AT_THE_END or not scope._exiting  # type: ignore[attr-defined]
        return int(scope._parent_cancel_requested and open_still)  # type: ignore[attr-defined]
    return getattr(scope, "_pending_uncancellations", 0) or 0


def _scopes(work: Any, task: asyncio.Task[Any]) -> Generator[Any]:
    """The scopes that a waiting coroutine has entered and that cancel this task."""
    found = {id(thing): thing for waiting in _waiting(work) for thing in _held(waiting)}
    for thing in found.values():
        if getattr(thing, _host(thing), None) is task:
            yield thing


def _waiting(work: Any) -> Generator[Any]:
    """A waiting coroutine, and the coroutines and generators that it waits for or has entered."""
    left, seen = [work], {id(work)}
    while left and len(seen) < MOST:
        yield (waiting := left.pop())
        for thing in _held(waiting):
            thing = getattr(thing, "gen", None) if hasattr(thing, "_recreate_cm") else thing
            known = isinstance(thing, WAITING) or type(thing).__name__ in AWAITABLES
            if known and id(thing) not in seen:
                seen.add(id(thing))
                left.append(thing)


def _held(waiting: Any) -> Generator[Any]:
    """The objects in the variables of a waiting coroutine's frame, and those that its `with` statements entered."""
    for thing in gc.get_referents(waiting):
        ends = isinstance(thing, MethodType) and thing.__name__ in ("__exit__", "__aexit__")
        owner = thing.__self__ if ends else thing
        yield owner
        if isinstance(owner, AsyncExitStack | ExitStack):
            for _, end in owner._exit_callbacks:  # type: ignore[union-attr]
                yield getattr(end, "__self__", None)


class _Resumed:
    """Awaits a coroutine that has begun elsewhere, beginning with an exception that is thrown into it."""

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
