"""Worker threads for sync tools, and the portal thread for code without an event loop."""

from __future__ import annotations

import contextvars
import inspect
import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar, cast

from toolcrib.event_loops import loop_on_thread

if TYPE_CHECKING:
    import asyncio

__all__ = ["BRIEF_WAIT", "Portal", "Workers", "end_idle_threads"]

T = TypeVar("T")

MAX_WORKERS = 64
IDLE = 10.0  # seconds after which a thread without work ends
CLOSING = 1.0  # seconds that the end of a portal is waited for: a thread that does not end may hold it up
BRIEF_WAIT = 100e-6  # seconds in which a quick function's result is taken without a round through the loop


class Workers:
    """Threads that run sync tools: started as needed, ended when idle, and never waited for at exit."""

    def __init__(self, limit: int = MAX_WORKERS) -> None:
        self._limit = limit
        self._begin()

    def _begin(self) -> None:
        """Begin without threads and jobs: neither comes along into a forked process."""
        self._process = os.getpid()
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()  # None ends one thread that has no work
        self._lock = threading.Lock()
        self._threads = 0
        self._unfinished = 0

    def submit(self, fn: Callable[..., Any], args: tuple[Any, ...], loop: asyncio.AbstractEventLoop) -> _Job:
        """Run a function on a worker, in a copy of the caller's context variables; `loop` is the running loop.

        RuntimeError where there is no worker and the system starts no further thread.
        """
        if os.getpid() != self._process:
            self._begin()
        job = _Job(fn, args, contextvars.copy_context(), loop)
        with self._lock:
            if self._unfinished >= self._threads and self._threads < self._limit:
                self._start()
            self._unfinished += 1
        self._jobs.put(job)
        return job

    @contextmanager
    def waiting(self) -> Generator[None]:
        """While a worker waits for a call that may need a worker itself, one more thread may run."""
        with self._lock:
            if self._unfinished > self._threads:
                self._start()
            self._limit += 1
        try:
            yield
        finally:
            with self._lock:
                self._limit -= 1

    def _start(self) -> None:
        """Start one more thread. Where the system has none, those that there are do the work."""
        try:
            threading.Thread(target=self._work, name="toolcrib-worker", daemon=True).start()
        except RuntimeError:
            if not self._threads:
                raise
        else:
            self._threads += 1

    def _finished(self) -> None:
        with self._lock:
            self._unfinished -= 1

    def end_idle(self) -> None:
        """End the threads that have no work. Takes no lock, as the garbage collector may call it at any moment."""
        for _ in range(self._threads):
            self._jobs.put(None)

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=IDLE)
            except Empty:
                job = None
            if job is not None:
                job.run(self._finished)
                job = None  # an idle thread must not keep alive what the job refers to
                continue
            with self._lock:
                if self._unfinished < self._threads:  # no job was handed in meanwhile
                    self._threads -= 1
                    return


def end_idle_threads(toolbox: object, *pools: Workers) -> None:
    """End the idle threads of pools as soon as their toolbox is freed: a server may make one for each request."""
    for workers in pools:
        weakref.finalize(toolbox, workers.end_idle).atexit = False


class _Job:
    """One function on its way through a worker. Awaiting it gives its result, or raises what it raised."""

    __slots__ = (
        "_abandoned",
        "_args",
        "_claim",
        "_context",
        "_done",
        "_error",
        "_fn",
        "_future",
        "_lock",
        "_loop",
        "_value",
        "duration",
    )

    def __init__(
        self, fn: Callable[..., Any], args: tuple[Any, ...], context: contextvars.Context, loop: Any
    ) -> None:
        self._fn = fn
        self._args = args
        self._context = context
        self._loop = loop
        self._claim = threading.Lock()  # held by the worker that runs it, or by who withdrew it
        self._future: asyncio.Future[None] | None = None
        self._done = self._abandoned = False
        self.duration = 0.0
        self._value: Any = None
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._lock.acquire()

    def run(self, finished: Callable[[], None]) -> None:
        """Run the function, unless it was withdrawn. `finished` is called before the waiting task is woken: this thread
        is free by then.
        """
        if not self._claim.acquire(blocking=False):
            finished()
            return
        started = perf_counter()
        try:
            self._value = self._context.run(self._fn, *self._args)
        except BaseException as error:
            self._error = error
        self.duration = perf_counter() - started
        finished()
        self._done = True
        if self._abandoned:
            self._discard()
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

    def abandon(self) -> None:
        """Nobody will take the result: a coroutine that the function returns is closed."""
        self._abandoned = True
        if self._done:
            self._discard()

    def _discard(self) -> None:
        close = getattr(self._value, "close", None)
        if inspect.iscoroutine(self._value) and close is not None:
            close()
        self._value = None

    def withdraw(self) -> bool:
        """Keep the function from running; False when a worker has begun with it already."""
        return self._claim.acquire(blocking=False)

    async def wait(self, timeout: float | None = None, *, brief: bool = False) -> bool:
        """Wait until the function has ended; False when `timeout` seconds passed first.

        `brief` says that it is expected to end at once: the loop then waits for it, at most BRIEF_WAIT.
        """
        if self._done:
            return True
        future = self._future
        if future is None:
            # Waking a selector costs more CPU than most quick functions themselves.
            if brief and self._lock.acquire(timeout=BRIEF_WAIT):
                return True
            future = self._future = self._loop.create_future()
            if self.done:
                return True
        import asyncio

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
    """One thread with a loop, for calling async code from code that has none. Both end with the portal."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        """Begin without a loop: its thread does not come along into a forked process."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: Callable[[], Any] = _nothing

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the portal's loop and wait for it; RuntimeError when called from a running loop."""
        import asyncio

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            work.close()
            raise RuntimeError("an event loop is already running here: use the async method and await it")
        if os.getpid() != self._process:
            self._begin()
        with (
            self._lock
        ):  # `close` stops the loop after what was handed to it, so that it is cancelled and not lost
            try:
                loop = self._started()
            except RuntimeError:
                work.close()
                raise
            future = asyncio.run_coroutine_threadsafe(_result_or_exit(work), loop)
        try:
            value, error = future.result()
        except BaseException:
            future.cancel()
            if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
                work.close()
            raise
        if error is not None:
            raise error
        return cast("T", value)

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            loop, thread = loop_on_thread(_serve, "toolcrib-portal")
            self._loop = loop
            self._end = weakref.finalize(self, _end, loop, thread, self._process)
        return self._loop

    async def aclose(self) -> None:
        """The same as `close`, for code in another loop."""
        if self._loop is not None:
            import asyncio

            await asyncio.to_thread(self.close)

    def close(self) -> None:
        """End the loop with all that was opened on it, and the thread. The next `run` starts another."""
        with self._lock:
            self._loop = None
            self._end()


def _nothing() -> None:
    """What ends a portal that has not begun."""


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped; then end its tasks, close its open generators, and close the loop."""
    import asyncio

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.get_loop().run_forever()


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread, process: int) -> None:
    """Stop a loop, and wait a moment for its thread: what its connections hold is closed by then."""
    if os.getpid() != process:  # a forked process has neither
        return
    try:
        loop.call_soon_threadsafe(loop.stop)
    except RuntimeError:  # it is closed already
        return
    if thread is not threading.current_thread():
        thread.join(CLOSING)


async def _result_or_exit(work: Coroutine[Any, Any, T]) -> tuple[T | None, BaseException | None]:
    """Await the work; KeyboardInterrupt and SystemExit are returned, so that they do not end the portal's loop."""
    try:
        return await work, None
    except (KeyboardInterrupt, SystemExit) as error:
        return None, error
