"""The second phase: run a prepared call within its deadline, deliver, cap, report and record."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolcrib.call import CallState, Ready
from toolcrib.context import Context
from toolcrib.errors import Cancelled, ToolError
from toolcrib.events import CallFinished, CallRetried, Notice, StatusChanged
from toolcrib.result import ToolResult
from toolcrib.toolbox import words
from toolcrib.toolbox.deadline import DeadlinePassed, Driven, WillNotStop
from toolcrib.toolbox.deliver import cap, deliver, gathered
from toolcrib.toolbox.registry import close_tool
from toolcrib.toolbox.telemetry import CallSpan, active_tracer

if TYPE_CHECKING:
    from toolcrib.definition import Definition
    from toolcrib.toolbox.box import Toolbox

THREAD_GRACE = 1.0  # seconds that a worker thread has to see ctx.cancelled

Record = Callable[[Any, ToolResult], None]


@dataclass(slots=True)
class Execution:
    """One call while it runs; made by the box, gone when its result is recorded."""

    box: Toolbox
    ready: Ready
    deps: Any
    timeout: float
    record: Record | None
    driven: Driven | None = None

    async def run(self) -> ToolResult:
        """Run to exactly one recorded result; only the caller's own cancellation is raised after it."""
        ready, box = self.ready, self.box
        bound = ready.bound
        assert bound is not None
        definition: Definition = bound.definition
        started = box.timer()
        ctx: Context[Any] | None = None
        if definition.wants_context or definition.mode not in ("async", "inline"):
            ctx = Context(self.deps, key=ready.key, tool=ready.call.name, host=box.host)
        if box.sink:
            self._status(CallState.DOING, params=ready.arguments)
        problem, straggler = "", None
        cancellation: BaseException | None = None
        tracer = active_tracer(box.tracer)
        span = None
        if tracer is not None:
            span = CallSpan(tracer, ready.call.name, definition.facts, ready, box.record_content).__enter__()
        try:
            value = await self._attempts(definition, bound, ctx, span)
            result, problem = deliver(value, definition)
        except ToolError as error:
            result = words.tool_error(error.message)
        except DeadlinePassed:
            result = words.timed_out(ready.call.name, self.timeout)
        except WillNotStop as error:
            result, straggler = words.outcome_unknown(ready.call.name), error.straggler
        except Cancelled:
            result = words.cancelled(ready.call.name)
        except asyncio.CancelledError as error:
            result, cancellation = words.cancelled(ready.call.name), error
        except Exception as error:
            result, problem = words.failed(ready.call.name), _in_full(error)
        except BaseException as error:  # the program is ending: record, then let it
            result, problem, cancellation = words.failed(ready.call.name), _in_full(error), error
        if bound.entry.owned and straggler is None:
            await close_tool(bound.tool)
        if straggler is not None:
            box.hold(ready, straggler)
        self._finish(result, problem, started, span)
        if cancellation is None and self.driven is not None and self.driven.interrupted:
            cancellation = asyncio.CancelledError()
        if cancellation is not None:
            raise cancellation
        return ready.done  # type: ignore[return-value]

    def _finish(self, result: ToolResult, problem: str, started: float, span: CallSpan | None) -> None:
        """Cap, count, record and report; the terminal status comes after the result is recorded."""
        ready, box = self.ready, self.box
        bound = ready.bound
        assert bound is not None
        name = ready.call.name
        limit = bound.definition.facts.max_output or box.max_output
        result = cap(result, limit, name, box.overflow, _stem(ready))
        if ready.edits:
            result.edits = ready.edits
        ready.done = result
        duration = box.timer() - started
        stats = box.stats_of(name)
        stats.calls += 1
        stats.total_duration += duration
        stats.repairs += len(ready.edits)
        if result.is_error:
            stats.failures += 1
            stats.last_error = result.text[:200]
        else:
            stats.successes += 1
        if span is not None:
            span.finished(result)
            span.__exit__(None, None, None)
        if problem:
            box.complain(name, problem, result)
        if self.record is not None:
            self.record(ready.key, result)
        if box.sink:
            box.emit(
                ready.key.run,
                CallFinished(ready.key, name, result, duration, problem=problem, repairs=len(ready.edits)),
            )
            code = result.code.value if result.code is not None else ""
            self._status(
                CallState.ERROR if result.is_error else CallState.SUCCESS, result=result.text, code=code
            )

    async def _attempts(
        self, definition: Definition, bound: Any, ctx: Context[Any] | None, span: CallSpan | None
    ) -> Any:
        """Run, and where the tool declared a retry, run again after transient failures; one deadline for all."""
        retry = definition.facts.retry
        if retry is None:
            return await self._within(self._once(definition, bound, ctx), definition, bound, ctx)
        return await self._within(
            self._retried(definition, bound, ctx, span), definition, bound, ctx, plain=False
        )

    async def _retried(
        self, definition: Definition, bound: Any, ctx: Context[Any] | None, span: CallSpan | None
    ) -> Any:
        retry, ready, box = definition.facts.retry, self.ready, self.box
        assert retry is not None
        attempt = 1
        while True:
            try:
                return await self._once(definition, bound, ctx)
            except Exception as error:
                if attempt >= retry.attempts or not retry.is_transient(error):
                    raise
                delay = retry.delay_after(attempt, error, box.random())
                box.stats_of(ready.call.name).retries += 1
                if span is not None:
                    span.retried(attempt, delay)
                if box.sink:
                    event = CallRetried(ready.key, ready.call.name, attempt, delay, _in_full(error))
                    box.emit(ready.key.run, event)
                    self._status(
                        CallState.DOING, tip=f"attempt {attempt} failed, trying again in {delay:.1f} s"
                    )
            await asyncio.sleep(delay)
            attempt += 1

    def _once(self, definition: Definition, bound: Any, ctx: Context[Any] | None) -> Any:
        """The coroutine of one attempt."""
        mode = definition.mode
        if mode == "async":
            return definition.start(bound.tool, bound.params, ctx)
        return _MODES[mode](self, definition, bound, ctx)

    def _within(
        self, coro: Any, definition: Definition, bound: Any, ctx: Context[Any] | None, plain: bool = True
    ) -> Any:
        if plain and not inspect.iscoroutine(coro):  # an awaitable object that cannot be stepped by hand
            coro = _awaiting(coro)
        self.driven = Driven(coro, self.timeout, ctx, self.box.grace)
        return self.driven

    async def _inline(self, definition: Definition, bound: Any, ctx: Any) -> Any:
        value = definition.start(bound.tool, bound.params, ctx)
        return await value if inspect.isawaitable(value) else value

    async def _thread(self, definition: Definition, bound: Any, ctx: Any) -> Any:
        value = await self._on_worker(definition.start, (bound.tool, bound.params, ctx), ctx)
        return await value if inspect.isawaitable(value) else value

    async def _async_generator(self, definition: Definition, bound: Any, ctx: Any) -> Any:
        items: list[Any] = []
        async for item in definition.start(bound.tool, bound.params, ctx):
            items.append(item)
            ctx.report(result=item)
        return gathered(items)

    async def _generator(self, definition: Definition, bound: Any, ctx: Any) -> Any:
        def consume() -> Any:
            items: list[Any] = []
            steps = definition.start(bound.tool, bound.params, ctx)
            while True:
                try:
                    items.append(next(steps))
                except StopIteration as stop:
                    return stop.value if stop.value is not None else gathered(items)
                ctx.report(result=items[-1])
                ctx.check_cancelled()

        return await self._on_worker(consume, (), ctx)

    async def _on_worker(self, fn: Callable[..., Any], args: tuple[Any, ...], ctx: Context[Any]) -> Any:
        """Run on a worker thread. One that does not stop when told is let go: its outcome is unknown."""
        ctx._loop = asyncio.get_running_loop()
        job = self.box.workers.submit(fn, args)
        try:
            await job.wait()
        except asyncio.CancelledError:
            ctx._cancelled = True
            if not await job.wait(min(THREAD_GRACE, self.box.grace / 2)):
                raise WillNotStop(asyncio.ensure_future(_ended(job))) from None
            try:
                return job.result()
            except Cancelled:
                raise asyncio.CancelledError from None
        return job.result()

    def _status(self, state: CallState, **changed: Any) -> None:
        self.box.emit(
            self.ready.key.run, StatusChanged(self.ready.key, self.ready.call.name, state, **changed)
        )


_MODES: dict[str, Any] = {
    "inline": Execution._inline,
    "thread": Execution._thread,
    "async_generator": Execution._async_generator,
    "generator": Execution._generator,
}


async def _awaiting(value: Any) -> Any:
    return await value


async def _ended(job: Any) -> None:
    while not await job.wait(60.0):
        continue


def _in_full(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def _stem(ready: Ready) -> str:
    safe = "".join(c if c.isalnum() or c in "-_" else "_" for c in f"{ready.key.run}-{ready.call.name}")
    return f"{safe[:80]}-{ready.key.turn}-{ready.key.index}"


def misfit_notice(name: str, problem: str) -> Notice:
    return Notice(message=f"the result of {name} does not match its declared schema: {problem}", tool=name)
