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
    """Runs a function that waits for a person, such as `input`, on a thread of its own, and returns its result.

    If the caller is cancelled, the function goes on. The program does not wait at its end for this thread, as it
    would for a thread of `asyncio.to_thread`.
    """
    import asyncio
    from concurrent.futures import Future

    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # from now on it cannot be cancelled: only the thread ends it

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(future)


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Does work that must not stay half done, such as closing, and returns its result.

    If the caller is cancelled meanwhile, CancelledError is raised when the work is done. A second cancellation raises
    it at once, and the work goes on. A cancel scope of anyio takes effect when the work is done.
    """
    import asyncio

    task = asyncio.ensure_future(work)
    _kept.add(task)
    task.add_done_callback(_kept.discard)
    with _shielded_from_anyio():
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            raise


_kept: set[Any] = set()  # the loop itself keeps no task alive


async def cancelled_with_caller(task: asyncio.Task[T]) -> T:
    """The result of a task. Each cancellation of the caller cancels the task; a cancel scope of anyio does so once."""
    import asyncio

    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError as cancelled:
        if not task.done():
            task.cancel(*cancelled.args)
            with _shielded_from_anyio():
                await task
        raise


def _shielded_from_anyio() -> Any:
    """A context manager that shields the task from cancel scopes of anyio, which cancel it again and again."""
    anyio: Any = sys.modules.get("anyio")
    return nullcontext() if anyio is None else anyio.CancelScope(shield=True)
