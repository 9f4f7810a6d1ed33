"""The second phase: run a prepared call within its deadline, deliver, cap, record and report."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolcrib.call import Bound, CallState, Ready
from toolcrib.context import Context
from toolcrib.errors import Cancelled, ToolError
from toolcrib.events import CallFinished, CallRetried, StatusChanged
from toolcrib.result import ToolResult
from toolcrib.toolbox import words
from toolcrib.toolbox.deadline import DeadlinePassed, Driven, WillNotStop
from toolcrib.toolbox.deliver import cap, deliver, gathered
from toolcrib.toolbox.registry import close_tool
from toolcrib.toolbox.telemetry import CallSpan, active_tracer
from toolcrib.toolbox.threads import BRIEF_WAIT

if TYPE_CHECKING:
    from toolcrib.definition import Definition
    from toolcrib.toolbox.box import Toolbox

DOING, SUCCESS, ERROR = CallState.DOING, CallState.SUCCESS, CallState.ERROR
THREAD_GRACE = 1.0  # seconds that a worker thread has to see ctx.cancelled

Record = Callable[[Any, ToolResult], None]
Interruption = BaseException | None


async def execute_ready(
    box: Toolbox, ready: Ready, bound: Bound, deps: Any, seconds: float, record: Record | None
) -> ToolResult:
    """Run a call to exactly one recorded result; only its caller's own cancellation is raised after it."""
    definition, name = bound.definition, ready.call.name
    started = box.timer()
    ctx: Context[Any] | None = None
    if definition.wants_context:
        ctx = Context(deps, key=ready.key, tool=name, host=box.host)
    if box.sink.listeners:
        box.emit(ready.key.run, StatusChanged(ready.key, name, DOING, None, None, ready.arguments))
    tracer = active_tracer(box.tracer)
    span = None if tracer is None else CallSpan(tracer, name, definition.facts, ready, box.record_content)
    problem, driven = "", None
    interruption: Interruption = None
    try:
        coro = _coroutine(box, ready, bound, ctx, span)
        try:
            waiting = coro.send(None)
        except StopIteration as stop:  # it never waited: no deadline was needed
            value = stop.value
        else:
            driven = Driven(coro, waiting, seconds, ctx, box.grace)
            value = await driven
        result, problem = deliver(value, definition)
    except BaseException as error:
        result, problem, interruption = _failure(box, ready, error, seconds)
    if bound.entry.owned and type(interruption) is not WillNotStop:
        await close_tool(bound.tool)
    result = _finish(box, ready, bound, result, problem, started, record, span)
    if ctx is not None and ctx._inner:
        box.sink.forget(str(ready.key))  # the run of the calls that the tool made
    if isinstance(interruption, WillNotStop):
        interruption = None
    if driven is not None and driven.interrupted and interruption is None:
        interruption = asyncio.CancelledError()
    if interruption is not None:
        raise interruption
    return result


def _failure(
    box: Toolbox, ready: Ready, error: BaseException, seconds: float
) -> tuple[ToolResult, str, Interruption]:
    """What an exception of a tool comes to: the model's words, the operator's, and what must still be raised."""
    name = ready.call.name
    match error:
        case ToolError():
            return words.tool_error(error.message), "", None
        case DeadlinePassed():
            return words.timed_out(name, seconds), "", None
        case WillNotStop():
            box.hold(ready, error.straggler)
            return words.outcome_unknown(name), "", error
        case Cancelled() | asyncio.CancelledError():  # whether the caller was cancelled too, `Driven` knows
            return words.cancelled(name), "", None
        case Exception():
            return words.failed(name), in_full(error), None
        case _:  # the program is ending: record, then let it
            return words.failed(name), in_full(error), error


def _finish(
    box: Toolbox,
    ready: Ready,
    bound: Bound,
    result: ToolResult,
    problem: str,
    started: float,
    record: Record | None,
    span: CallSpan | None,
) -> ToolResult:
    """Cap, count, record and report; the terminal state comes after the result is recorded."""
    name = ready.call.name
    result = cap(result, bound.definition.facts.max_output or box.max_output, name, box.overflow, ready.key)
    if ready.edits:
        result.edits = ready.edits
    ready.done = result
    duration = box.timer() - started
    box.stats_of(name).count(result, duration, len(ready.edits))
    if span is not None:
        span.finished(result)
    if problem:
        box.complain(name, problem, result)
    if record is not None:
        record(ready.key, result)
    if box.sink.listeners:
        state = ERROR if result.is_error else SUCCESS
        code = result.code.value if result.code is not None else ""
        box.emit(
            ready.key.run,
            CallFinished(
                ready.key, name, state, None, None, None, result, code, duration, problem, len(ready.edits)
            ),
        )
    return result


def _coroutine(
    box: Toolbox, ready: Ready, bound: Bound, ctx: Context[Any] | None, span: CallSpan | None
) -> Any:
    """The coroutine that does the work: one attempt, or as many as the tool's retry allows."""
    definition = bound.definition
    if definition.facts.retry is not None:
        return _retried(box, ready, bound, ctx, span)
    if definition.mode == "async":
        coro = definition.start(bound.tool, bound.params, ctx)
        # An awaitable object cannot be stepped by hand, and a wrapper may have hidden a plain function.
        return coro if type(coro) is _Coroutine else _settled(coro)
    return MODES[definition.mode](box, bound, ctx)


async def _retried(
    box: Toolbox, ready: Ready, bound: Bound, ctx: Context[Any] | None, span: CallSpan | None
) -> Any:
    """Run again after transient failures, as the tool declared; the deadline is the same for all attempts."""
    definition, name = bound.definition, ready.call.name
    retry = definition.facts.retry
    attempt = 1
    while True:
        try:
            if definition.mode == "async":
                return await definition.start(bound.tool, bound.params, ctx)
            return await MODES[definition.mode](box, bound, ctx)
        except Exception as error:
            if attempt >= retry.attempts or not retry.is_transient(error):
                raise
            delay = retry.delay_after(attempt, error, box.random())
            box.stats_of(name).retries += 1
            if span is not None:
                span.retried(attempt, delay)
            if box.sink.listeners:
                tip = f"attempt {attempt} failed, trying again in {delay:.1f} s"
                box.emit(ready.key.run, CallRetried(ready.key, name, attempt, delay, in_full(error)))
                box.emit(ready.key.run, StatusChanged(ready.key, name, DOING, tip))
        await asyncio.sleep(delay)
        attempt += 1


async def _inline(box: Toolbox, bound: Bound, ctx: Any) -> Any:
    return await _settled(bound.definition.start(bound.tool, bound.params, ctx))


async def _thread(box: Toolbox, bound: Bound, ctx: Any) -> Any:
    value = await _on_worker(
        box, bound.definition, bound.definition.start, (bound.tool, bound.params, ctx), ctx
    )
    return await value if inspect.isawaitable(value) else value


async def _async_generator(box: Toolbox, bound: Bound, ctx: Any) -> Any:
    items: list[Any] = []
    async for item in bound.definition.start(bound.tool, bound.params, ctx):
        items.append(item)
        ctx.report(result=item)
    return gathered(items)


async def _generator(box: Toolbox, bound: Bound, ctx: Any) -> Any:
    def consume() -> Any:
        items: list[Any] = []
        steps = bound.definition.start(bound.tool, bound.params, ctx)
        while True:
            try:
                items.append(next(steps))
            except StopIteration as stop:
                return stop.value if stop.value is not None else gathered(items)
            ctx.report(result=items[-1])
            ctx.check_cancelled()

    return await _on_worker(box, bound.definition, consume, (), ctx)


MODES: dict[str, Any] = {
    "inline": _inline,
    "thread": _thread,
    "async_generator": _async_generator,
    "generator": _generator,
}


async def _on_worker(
    box: Toolbox,
    definition: Definition,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    ctx: Context[Any] | None,
) -> Any:
    """Run on a worker thread. One that does not stop when told is let go: its outcome is unknown."""
    if ctx is not None:
        ctx._loop = asyncio.get_running_loop()
    job = box.workers.submit(fn, args)
    try:
        await job.wait(brief=definition.quick)
        definition.quick = job.duration < BRIEF_WAIT
    except asyncio.CancelledError:
        if ctx is not None:
            ctx._cancelled = True
        if not await job.wait(min(THREAD_GRACE, box.grace / 2)):
            raise WillNotStop(asyncio.ensure_future(_ended(job))) from None
        try:
            return job.result()
        except Cancelled:
            raise asyncio.CancelledError from None
    return job.result()


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


_idle = _settled(None)
_Coroutine = type(_idle)
_idle.close()


async def _ended(job: Any) -> None:
    while not await job.wait(60.0):
        continue


def in_full(error: BaseException) -> str:
    """An error with its traceback, for the operator."""
    return "".join(traceback.format_exception(error))
