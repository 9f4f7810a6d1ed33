"""The second phase: run a prepared call within its deadline, deliver, cap, record and report."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from toolcrib.call import CallState
from toolcrib.content import Text
from toolcrib.context import Context
from toolcrib.errors import Cancelled, ToolError, traceback_text
from toolcrib.events import CallFinished, CallRetried, StatusChanged
from toolcrib.prepared import Ready, ResolvedTool
from toolcrib.result import ToolResult
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.deadline import Deadline, DeadlinePassed, WillNotStop
from toolcrib.toolbox.output import cap, deliver, gathered
from toolcrib.toolbox.registry import close_tool
from toolcrib.toolbox.telemetry import SDK, CallSpan

if TYPE_CHECKING:
    from toolcrib.audit import AuditLog
    from toolcrib.compiling.definition import Definition
    from toolcrib.toolbox.box import Toolbox

DOING, SUCCESS, ERROR = CallState.DOING, CallState.SUCCESS, CallState.ERROR
THREAD_GRACE = 1.0  # seconds that a worker thread has to see ctx.cancelled

Record = Callable[[Any, ToolResult], None]


class NotRun(Exception):
    """A call that is not run after all, and what the model is told."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.text)
        self.result = result


class Execution(Deadline):
    """One run of a ready call. Awaiting it gives its one recorded result.

    Only the caller's own cancellation, and what ends the program, is raised after the result is recorded.
    It is its own deadline and its own generator, as ten thousand of them may wait at once.
    """

    __slots__ = (
        "bound",
        "box",
        "params",
        "problem",
        "ready",
        "record",
        "seconds",
        "span",
        "started",
        "to_raise",
    )

    def __init__(
        self,
        box: Toolbox,
        ready: Ready,
        bound: ResolvedTool,
        deps: Any,
        seconds: float,
        record: Record | None,
    ) -> None:
        self.box = box
        self.ready = ready
        self.bound = bound
        self.seconds = seconds
        self.record = record
        self.problem = ""
        self.to_raise: BaseException | None = None
        self.task = self.timer = self.left = None  # until it waits
        self.waits = 0
        self.interrupted = False
        self.ctx: Context[Any] | None = None
        if bound.definition.wants_context:
            self.ctx = Context(deps, key=ready.key, tool=ready.call.name, host=box.host)
            self.ctx._definition = bound.definition
            self.ctx._deadline = self
            self.ctx.approved = ready.approved
            if ready.accesses is not ...:
                from toolcrib.rules.permissions import call_permissions

                self.ctx._permits, self.ctx.denied_paths = call_permissions(box.policy, box.case_of(ready))

    def __await__(self) -> Generator[Any, Any, ToolResult]:
        closing = False
        try:
            coro = self._begin()
            try:
                waiting = coro.send(None)
                self.arm(coro, self.ctx, self.seconds, self.box.grace)
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
            result, self.problem = deliver(value, self.bound.definition)
        except BaseException as error:
            if closing:
                raise
            result = self._failure(error if self.task is None else self.judged(error))
        if self.bound.entry.owned and self.ready not in self.box.runaway_calls:
            yield from close_tool(self.bound.tool).__await__()
        return self._end(result)

    def _begin(self) -> Any:
        """Start the clock, reveal secrets, count; the coroutine that does the rest."""
        box, ready, definition = self.box, self.ready, self.bound.definition
        self.started = box.timer()
        self.span: CallSpan | None = None
        self.params = ready.params if box.masking is None else box.masking.revealed(ready, definition)
        run, name = box.sink.outermost(ready.key.run), ready.call.name
        if box.limits is not None and (why := box.limits.take(run, name)):
            raise NotRun(model_messages.rate_limited(name, why))
        return self._work() if box.audit is None else self._noted(box.audit, run)

    async def _noted(self, audit: AuditLog, run: str) -> Any:
        """Run what stands in the log; what does not stand there is not run, and counts for no limit."""
        box, problem = self.box, None
        try:
            problem = await audit.decided(self.ready, self.bound.definition, box.shown)
        finally:
            if problem != "" and box.limits is not None:
                box.limits.give_back(run, self.ready.call.name)
        if problem:
            raise ToolError(f"Nothing was run: {problem}.")
        return await self._work()

    def _work(self) -> Any:
        """Say that the call begins; the coroutine that does the work."""
        box, ready, definition = self.box, self.ready, self.bound.definition
        name = ready.call.name
        if box.sink.listeners:
            box.emit(ready.key.run, StatusChanged(ready.key, name, DOING, None, None, ready.arguments))
        if box.tracer is not None or SDK in sys.modules:
            self.span = CallSpan(box.tracer, definition, ready, box.record_content, box.shown)
        if definition.mode != "async" or definition.facts.retry is not None:
            return _coroutine(box, ready, self.bound, self.params, self.ctx, self.span)
        try:
            coro = definition.start(self.bound.tool, self.params, self.ctx)
        except StopIteration as odd:
            raise RuntimeError("the tool raised StopIteration") from odd
        # An awaitable object cannot be stepped by hand, and a wrapper may have hidden a plain function.
        return coro if type(coro) is _Coroutine else _settled(coro)

    def _failure(self, error: BaseException) -> ToolResult:
        """What an exception of a tool comes to: the model's words, the operator's, what must still be raised."""
        name = self.ready.call.name
        match error:
            case NotRun():
                return error.result
            case ToolError():
                return model_messages.tool_error(error.message)
            case DeadlinePassed():
                return model_messages.timed_out(name, self.seconds)
            case WillNotStop():
                self.box.runaway_calls.add(self.ready, error.has_stopped)
                return model_messages.outcome_unknown(name)
            case Cancelled() | asyncio.CancelledError():  # whether the caller was, too, `interrupted` says
                return model_messages.cancelled(name)
            case _:
                pass
        self.problem = traceback_text(error)
        if isinstance(error, KeyboardInterrupt):  # the person ends the program; a tool cannot, by SystemExit
            self.to_raise = error
        return model_messages.failed(name)

    def _end(self, result: ToolResult) -> ToolResult:
        """Cap, count, record and report; the terminal state comes after the result is recorded."""
        box, ready, facts = self.box, self.ready, self.bound.definition.facts
        key, name = ready.key, ready.call.name
        outside = box.tracks_taint and box.provenance.record_call(ready)
        if box.masking is not None:
            result = box.masking.of_result(result)
        limit = facts.max_output or box.max_output
        text = result.parts[0].text if len(result.parts) == 1 and type(result.parts[0]) is Text else None
        # What is short and plain fits: no character takes more than 4 bytes, or is more than one line.
        if text is None or not text.isascii() or len(text) * 4 > limit.bytes or len(text) >= limit.lines:
            result = cap(result, limit, name, box.overflow, key)
        if ready.edits:
            result.edits = ready.edits if box.masking is None else box.masking.edits(ready.edits)
        if ready.changed:
            result.parts = (*result.parts, Text(model_messages.other_arguments(ready.arguments, box.shown)))
        if outside:
            result.outside = True
        ready.done = result
        duration = box.timer() - self.started
        box.stats_of(name).count(result, duration, len(ready.edits))
        if self.span is not None:
            self.span.finished(result)
        if self.problem:
            what = "failed" if result.is_error else "gave a result that does not match its schema"
            box.complain(f"tool {name} {what}", self.problem)
        if box.audit is not None:
            box.audit.ended(ready, result, duration)
        if self.record is not None:
            box.recorded(self.record, key, result)
        if box.sink.listeners:
            state = ERROR if result.is_error else SUCCESS
            code = result.code.value if result.code is not None else ""
            edits = len(ready.edits)
            box.emit(
                key.run,
                CallFinished(key, name, state, None, None, None, result, code, duration, self.problem, edits),
            )
        if self.ctx is not None and self.ctx._inner:
            box.sink.forget(str(key))  # the run of the calls that the tool made
        if self.interrupted and self.to_raise is None:
            self.to_raise = asyncio.CancelledError()
        if self.to_raise is not None:
            raise self.to_raise
        return result


def _coroutine(
    box: Toolbox,
    ready: Ready,
    bound: ResolvedTool,
    params: Any,
    ctx: Context[Any] | None,
    span: CallSpan | None,
) -> Any:
    """The coroutine that does the work: one attempt, or as many as the tool's retry allows."""
    if bound.definition.facts.retry is not None:
        return _retried(box, ready, bound, params, ctx, span)
    return MODES[bound.definition.mode](box, bound, params, ctx)


async def _retried(
    box: Toolbox,
    ready: Ready,
    bound: ResolvedTool,
    params: Any,
    ctx: Context[Any] | None,
    span: CallSpan | None,
) -> Any:
    """Run again after transient failures, as the tool declared; the deadline is the same for all attempts."""
    definition, name = bound.definition, ready.call.name
    retry = definition.facts.retry
    attempt = 1
    while True:
        try:
            if definition.mode == "async":
                return await definition.start(bound.tool, params, ctx)
            return await MODES[definition.mode](box, bound, params, ctx)
        except Exception as error:
            if attempt >= retry.attempts or not retry.is_transient(error):
                raise
            delay = retry.delay_after(attempt, error, box.random())
            box.stats_of(name).retries += 1
            if span is not None:
                span.retried(attempt, delay)
            if box.sink.listeners:
                tip = f"attempt {attempt} failed, trying again in {delay:.1f} s"
                box.emit(ready.key.run, CallRetried(ready.key, name, attempt, delay, traceback_text(error)))
                box.emit(ready.key.run, StatusChanged(ready.key, name, DOING, tip))
        await asyncio.sleep(delay)
        attempt += 1


async def _inline(box: Toolbox, bound: ResolvedTool, params: Any, ctx: Any) -> Any:
    return await _settled(bound.definition.start(bound.tool, params, ctx))


async def _thread(box: Toolbox, bound: ResolvedTool, params: Any, ctx: Any) -> Any:
    value = await _on_worker(box, bound.definition, bound.definition.start, (bound.tool, params, ctx), ctx)
    return await value if inspect.isawaitable(value) else value


async def _async_generator(box: Toolbox, bound: ResolvedTool, params: Any, ctx: Any) -> Any:
    items: list[Any] = []
    async for item in bound.definition.start(bound.tool, params, ctx):
        items.append(item)
        ctx.report(result=item)
    return gathered(items)


async def _generator(box: Toolbox, bound: ResolvedTool, params: Any, ctx: Any) -> Any:
    def consume() -> Any:
        items: list[Any] = []
        steps = bound.definition.start(bound.tool, params, ctx)
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
        await job.wait(brief=box.workers.expects_brief(definition))
        box.workers.ran(definition, job.duration)
    except asyncio.CancelledError:
        if ctx is not None:
            ctx._cancelled = True
            await _stopped(tuple(ctx._waiting), box.grace)  # what the thread waits for through ctx.run
        if not await job.wait(min(THREAD_GRACE, box.grace / 2)):
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
