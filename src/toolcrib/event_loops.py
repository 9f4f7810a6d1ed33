"""Event loops on threads of their own, and work in the loop that something belongs to."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

__all__ = ["cancelled_with_caller", "in_loop", "loop_on_thread", "on_own_thread", "to_its_end"]

T = TypeVar("T")


def loop_on_thread(
    serve: Callable[[asyncio.AbstractEventLoop], None], name: str
) -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
    """A new event loop, and the thread on which `serve` runs it. RuntimeError where the system has no thread left."""
    import asyncio

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=serve, args=(loop,), name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        loop.close()
        raise
    return loop, thread


async def in_loop(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Do work in a loop that may be another thread's; in this one, if that loop is closed."""
    import asyncio

    if loop is asyncio.get_running_loop() or loop.is_closed():
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


async def on_own_thread(work: Callable[[], T], name: str) -> T:
    """The result of a function that waits for a person, such as `input`.

    A caller that is cancelled leaves it behind. Its thread ends with it or with the program, which does not wait for it
    as it would for a thread of `asyncio.to_thread`.
    """
    import asyncio
    from concurrent.futures import Future

    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # from now on, nobody but the thread ends it

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(future)


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Do work that must not stay half done, such as closing.

    If the caller is cancelled meanwhile, that is raised when the work is done. A second cancellation is raised at
    once, and the work goes on. A scope of anyio counts once.
    """
    import asyncio

    task = asyncio.ensure_future(work)
    _kept.add(task)
    task.add_done_callback(_kept.discard)
    with _cancelled_by_no_scope():
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            raise


_kept: set[Any] = set()  # the loop itself keeps no task alive


async def cancelled_with_caller(task: asyncio.Task[T]) -> T:
    """The result of a task. It is cancelled each time that the caller is; by a scope of anyio, once."""
    import asyncio

    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError as cancelled:
        if not task.done():
            task.cancel(*cancelled.args)
            with _cancelled_by_no_scope():
                await task
        raise


def _cancelled_by_no_scope() -> Any:
    """A context manager: while it lasts, no scope of anyio cancels the task, as they do again and again."""
    anyio: Any = sys.modules.get("anyio")
    return nullcontext() if anyio is None else anyio.CancelScope(shield=True)
