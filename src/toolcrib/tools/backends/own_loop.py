"""An event loop on a thread of its own, for sync code that has to await something wherever it is called."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from toolcrib.event_loops import loop_on_thread

T = TypeVar("T")


class OwnLoop:
    """An event loop on a thread. It starts with the first coroutine, and stops when this object is gone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop, waits for it, and returns its value."""
        return asyncio.run_coroutine_threadsafe(work, self._running_loop()).result()

    async def awaited(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop, awaited by another loop. If the caller is cancelled, so is the coroutine."""
        loop = self._running_loop()
        done: Future[None] = Future()

        async def begin() -> asyncio.Task[T]:
            task = asyncio.ensure_future(work)
            task.add_done_callback(lambda _: done.set_result(None))
            return task

        task = asyncio.run_coroutine_threadsafe(begin(), loop).result()
        ended = asyncio.wrap_future(done)
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            loop.call_soon_threadsafe(task.cancel)
            await ended
            raise
        return task.result()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._process != os.getpid():  # a thread does not come along into a fork
                loop, _ = loop_on_thread(_forever, "toolcrib-files")
                self._loop, self._process = loop, os.getpid()
                weakref.finalize(self, loop.call_soon_threadsafe, loop.stop)
            return self._loop


def _forever(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
