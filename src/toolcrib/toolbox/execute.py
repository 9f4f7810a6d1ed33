"""Running a prepared call: within its deadline, as its tool is written (async, on a thread, inline, a generator)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolcrib.call import CallState
from toolcrib.content import Text
from toolcrib.context import Context, Host
from toolcrib.errors import Cancelled, ToolError, traceback_text
from toolcrib.events import CallRetried, StatusChanged
from toolcrib.facts import MaxOutput
from toolcrib.prepared import Ready, ResolvedTool
from toolcrib.result import ToolResult
from toolcrib.sink import EventSink
from toolcrib.toolbox import model_messages, telemetry
from toolcrib.toolbox.deadline import Deadline, DeadlinePassed, WillNotStop
from toolcrib.toolbox.decide import Decider
from toolcrib.toolbox.output import cap, deliver, gathered
from toolcrib.toolbox.registry import Entry
from toolcrib.toolbox.runaway import RunawayCalls
from toolcrib.toolbox.stats import Statistics
from toolcrib.toolbox.threads import Workers

if TYPE_CHECKING:
    from toolcrib.secrets.masking import Masking

__all__ = ["Execution", "Executor"]

DOING = CallState.DOING
THREAD_GRACE = 1.0  # seconds that a worker thread has to see ctx.cancelled


class Executor:
    """What every execution of a toolbox needs."""

    __slots__ = (
        "decider", "grace", "host", "masking", "max_output", "overflow", "random", "runaway", "sink", "stats",
        "workers",
    )  # fmt: skip

    def __init__(
        self,
        host: Host,
        decider: Decider,
        sink: EventSink,
        masking: Masking | None,
        stats: Statistics,
        workers: Workers,
        runaway: RunawayCalls,
        max_output: MaxOutput,
        overflow: Path | None,
        grace: float,
        random: Callable[[], float],
    ) -> None:
        self.host = host
        self.decider = decider
        self.sink = sink
        self.masking = masking
        self.stats = stats
        self.workers = workers
        self.runaway = runaway
        self.max_output = max_output
        self.overflow = overflow
        self.grace = grace
        self.random = random

    def start(self, ready: Ready, deps: Any, seconds: float) -> Execution:
        """A run of a call, which begins when it is awaited."""
        return Execution(self, ready, deps, seconds)

    def shown_to_model(self, ready: Ready, result: ToolResult) -> ToolResult:
        """A result as a model may see it: without secrets, and no longer than what is allowed."""
        if self.masking is not None:
            result = self.masking.mask_result(result)
        limit = ready.tool.definition.facts.max_output or self.max_output
        text = result.parts[0].text if len(result.parts) == 1 and type(result.parts[0]) is Text else None
        # What is short and plain fits: no character takes more than 4 bytes, or is more than one line.
        if text is None or not text.isascii() or len(text) * 4 > limit.bytes or len(text) >= limit.lines:
            result = cap(result, limit, ready.call.name, self.overflow, ready.key)
        return result


class Execution(Deadline):
    """One run of a ready call. Awaiting it gives its result, whatever happens.

    Nothing is raised: the caller's own cancellation, and what ends the program, is in `to_raise`. An execution is its
    own deadline and its own generator, as ten thousand of them may wait at once.
    """

    __slots__ = ("params", "parts", "problem", "ready", "seconds", "to_raise")

    def __init__(self, parts: Executor, ready: Ready, deps: Any, seconds: float) -> None:
        self.parts = parts
        self.ready = ready
        self.seconds = seconds
        self.problem = ""
        self.to_raise: BaseException | None = None
        self.task = self.timer = self.left = None  # until it waits
        self.waits = 0
        self.interrupted = False
        self.ctx: Context[Any] | None = None
        definition = ready.tool.definition
        if definition.wants_context:
            self.ctx = ctx = Context(deps, key=ready.key, tool=ready.call.name, host=parts.host)
            ctx._definition = definition
            ctx._deadline = self
            ctx.approved = ready.approved
            if ready.accesses_known:
                from toolcrib.rules.permissions import call_permissions

                decider = parts.decider
                permissions = call_permissions(decider.policy, decider.request_for(ready))
                ctx._permits, ctx.denied_paths = permissions

    @property
    def inner_calls(self) -> int:
        """How many calls the tool made by itself."""
        return 0 if self.ctx is None else self.ctx._inner

    def __await__(self) -> Generator[Any, Any, ToolResult]:
        closing = False
        try:
            coro = self._begin()
            try:
                waiting = coro.send(None)
                self.arm(coro, self.ctx, self.seconds, self.parts.grace)
                while True:
                    try:
                        sent = yield waiting
                    except GeneratorExit:
                        closing = True
                        coro.close()
                        raise
                    except BaseException as error:
                        waiting = self.throw(error)
                    else:
                        waiting = coro.send(sent)
            except StopIteration as stop:
                value = stop.value
            finally:
                if self.task is not None:
                    self.disarm()
            result, self.problem = deliver(value, self.ready.tool.definition)
        except BaseException as error:
            if closing:
                raise
            result = self._failure(error if self.task is None else self.judged(error))
        if self.interrupted and self.to_raise is None:
            self.to_raise = asyncio.CancelledError()
        return self.parts.shown_to_model(self.ready, result)

    def _begin(self) -> Any:
        """Reveal the secrets, say that the call begins, and start it: the coroutine that does the work."""
        parts, ready, tool = self.parts, self.ready, self.ready.tool
        definition = tool.definition
        self.params = (
            ready.params if parts.masking is None else parts.masking.reveal_params(ready, definition)
        )
        if parts.sink.listeners:
            event = StatusChanged(ready.key, ready.call.name, DOING, None, None, ready.arguments)
            parts.sink.emit(ready.key.run, event)
        if definition.mode != "async" or definition.facts.retry is not None:
            return self._work()
        try:
            coro = definition.start(tool.instance, self.params, self.ctx)
        except StopIteration as odd:
            raise RuntimeError("the tool raised StopIteration") from odd
        # An awaitable object cannot be stepped by hand, and a wrapper may have hidden a plain function.
        return coro if type(coro) is _Coroutine else _settled(coro)

    def _failure(self, error: BaseException) -> ToolResult:
        """What an exception of a tool comes to: a message for the model, a problem for the operator."""
        name = self.ready.call.name
        match error:
            case ToolError():
                return model_messages.tool_error(error.message)
            case DeadlinePassed():
                return model_messages.timed_out(name, self.seconds)
            case WillNotStop():
                self.parts.runaway.add(self.ready, error.has_stopped)
                return model_messages.outcome_unknown(name)
            case Cancelled() | asyncio.CancelledError():  # whether the caller was, too, `interrupted` says
                return model_messages.cancelled(name)
            case _:
                pass
        self.problem = traceback_text(error)
        if isinstance(error, KeyboardInterrupt):  # the person ends the program; a tool cannot, by SystemExit
            self.to_raise = error
        return model_messages.failed(name)

    def _work(self) -> Any:
        """The coroutine that does the work: one attempt, or as many as the tool's retry allows."""
        if self.ready.tool.definition.facts.retry is not None:
            return self._with_retries()
        return self._attempt()

    def _attempt(self) -> Any:
        mode = MODES[self.ready.tool.definition.mode]
        return mode(self.parts.workers, self.parts.grace, self.ready.tool, self.params, self.ctx)

    async def _with_retries(self) -> Any:
        """Run again after transient failures, as the tool declared; the deadline is the same for all attempts."""
        parts, name = self.parts, self.ready.call.name
        retry = self.ready.tool.definition.facts.retry
        attempt = 1
        while True:
            try:
                return await self._attempt()
            except Exception as error:
                if attempt >= retry.attempts or not retry.is_transient(error):
                    raise
                delay = retry.delay_after(attempt, error, parts.random())
                parts.stats[name].retries += 1
                telemetry.retried(attempt, delay)
                if parts.sink.listeners:
                    key = self.ready.key
                    tip = f"attempt {attempt} failed, trying again in {delay:.1f} s"
                    parts.sink.emit(key.run, CallRetried(key, name, attempt, delay, traceback_text(error)))
                    parts.sink.emit(key.run, StatusChanged(key, name, DOING, tip))
            await asyncio.sleep(delay)
            attempt += 1


# -- one function for each way in which a tool is written


async def _async(workers: Workers, grace: float, tool: ResolvedTool, params: Any, ctx: Any) -> Any:
    return await tool.definition.start(tool.instance, params, ctx)


async def _inline(workers: Workers, grace: float, tool: ResolvedTool, params: Any, ctx: Any) -> Any:
    return await _settled(tool.definition.start(tool.instance, params, ctx))


async def _thread(workers: Workers, grace: float, tool: ResolvedTool, params: Any, ctx: Any) -> Any:
    start, args = tool.definition.start, (tool.instance, params, ctx)
    value = await _on_worker(workers, grace, tool.entry, start, args, ctx)
    return await value if inspect.isawaitable(value) else value


async def _async_generator(workers: Workers, grace: float, tool: ResolvedTool, params: Any, ctx: Any) -> Any:
    items: list[Any] = []
    async for item in tool.definition.start(tool.instance, params, ctx):
        items.append(item)
        ctx.report(result=item)
    return gathered(items)


async def _generator(workers: Workers, grace: float, tool: ResolvedTool, params: Any, ctx: Any) -> Any:
    def consume() -> Any:
        items: list[Any] = []
        steps = tool.definition.start(tool.instance, params, ctx)
        while True:
            try:
                items.append(next(steps))
            except StopIteration as stop:
                return stop.value if stop.value is not None else gathered(items)
            ctx.report(result=items[-1])
            ctx.check_cancelled()

    return await _on_worker(workers, grace, tool.entry, consume, (), ctx)


MODES: dict[str, Any] = {
    "async": _async,
    "inline": _inline,
    "thread": _thread,
    "async_generator": _async_generator,
    "generator": _generator,
}


async def _on_worker(
    workers: Workers,
    grace: float,
    entry: Entry,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    ctx: Context[Any] | None,
) -> Any:
    """Run on a worker thread. A thread that does not stop when it is told is let go: its outcome is unknown."""
    if ctx is not None:
        ctx._loop = asyncio.get_running_loop()
    job = workers.submit(fn, args)
    try:
        await job.wait(brief=workers.expects_brief(entry))
        workers.ran(entry, job.duration)
    except asyncio.CancelledError:
        if ctx is not None:
            ctx._cancelled = True
            await _stopped(tuple(ctx._waiting), grace)  # what the thread waits for through ctx.run
        if not await job.wait(min(THREAD_GRACE, grace / 2)):
            raise WillNotStop(lambda: job.done) from None
        try:
            return job.result()
        except Cancelled:
            raise asyncio.CancelledError from None
    return job.result()


async def _stopped(tasks: tuple[asyncio.Task[Any], ...], grace: float) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=grace / 2)


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


_idle = _settled(None)
_Coroutine = type(_idle)
_idle.close()
