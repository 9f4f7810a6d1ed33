"""Worker threads for sync tools, and the portal thread for people without a loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

MAX_WORKERS = 64
BRIEF_WAIT = 50e-6  # seconds in which a quick function's result is taken without a round through the loop


class Workers:
    """Threads that run sync tools; started as needed, kept for the next call, and never waited for at exit."""

    def __init__(self, limit: int = MAX_WORKERS) -> None:
        self._limit = limit
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._unfinished = 0

    def submit(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> _Job:
        """Run a function on a worker, in a copy of the caller's context variables."""
        job = _Job(fn, args, contextvars.copy_context(), asyncio.get_running_loop())
        with self._lock:
            self._unfinished += 1
            if self._unfinished > self._threads and self._threads < self._limit:
                self._threads += 1
                threading.Thread(target=self._work, name="toolcrib-worker", daemon=True).start()
        self._jobs.put(job)
        return job

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.run()
            with self._lock:
                self._unfinished -= 1
            job = None  # what the job held is not kept alive by an idle thread

    def close(self) -> None:
        """Let the idle workers end; running ones end with their work."""
        for _ in range(self._threads):
            self._jobs.put(None)
        self._threads = 0


class _Job:
    """One function on its way through a worker. Awaiting it gives its result, or raises what it raised."""

    __slots__ = ("_args", "_context", "_done", "_error", "_fn", "_future", "_lock", "_loop", "_value")

    def __init__(
        self, fn: Callable[..., Any], args: tuple[Any, ...], context: contextvars.Context, loop: Any
    ) -> None:
        self._fn = fn
        self._args = args
        self._context = context
        self._loop = loop
        self._future: asyncio.Future[None] | None = None
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._lock.acquire()

    def run(self) -> None:
        try:
            self._value = self._context.run(self._fn, *self._args)
        except BaseException as error:
            self._error = error
        self._done = True
        self._lock.release()
        if self._future is not None:
            try:
                self._loop.call_soon_threadsafe(self._wake)
            except RuntimeError:  # the loop that asked is closed: nobody waits any more
                pass

    def _wake(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    @property
    def done(self) -> bool:
        return self._done

    async def wait(self, timeout: float | None = None) -> bool:
        """Wait until the function has ended; False when `timeout` seconds passed first."""
        if self._done:
            return True
        future = self._future
        if future is None:
            # The brief wait costs a blocked loop at most BRIEF_WAIT, and saves the wake-up of a selector,
            # which costs more CPU than most quick functions themselves.
            if timeout is None and self._lock.acquire(timeout=BRIEF_WAIT):
                return True
            future = self._future = self._loop.create_future()
            if self.done:
                return True
        if timeout is None:
            await asyncio.shield(future)
            return True
        await asyncio.wait((future,), timeout=timeout)
        return self.done

    def result(self) -> Any:
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # no circle of exception and frame
        return self._value


class Portal:
    """One thread with a loop, for calling async code from code that has none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the portal's loop and wait for it; RuntimeError when called from a running loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            work.close()
            raise RuntimeError("an event loop is already running here: use the async method and await it")
        future = asyncio.run_coroutine_threadsafe(work, self._started())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="toolcrib-portal", daemon=True
                )
                self._thread.start()
            return self._loop

    def close(self) -> None:
        with self._lock:
            if self._loop is not None and self._thread is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join(timeout=5)
                self._loop.close()
                self._loop = self._thread = None
