"""Running a prepared call: within its deadline, as its tool is written (async, on a thread, inline, a generator)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from toolcrib.context import Context, Host
from toolcrib.dataclass import dataclass, field
from toolcrib.errors import Cancelled, Suspended, ToolError, traceback_text
from toolcrib.facts import MaxOutput
from toolcrib.prepared import Ready
from toolcrib.result import ToolResult
from toolcrib.sink import EventSink
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.call_events import call_begins, call_comes_and_begins
from toolcrib.toolbox.cap import cap
from toolcrib.toolbox.deadline import Deadline, DeadlinePassed, NotStarted, WillNotStop
from toolcrib.toolbox.decide import Decider
from toolcrib.toolbox.forgotten_await import forgotten_await
from toolcrib.toolbox.large_results import LARGE, on_thread, size_of
from toolcrib.toolbox.modes import MODES, settled
from toolcrib.toolbox.output import deliver
from toolcrib.toolbox.runaway import RunawayCalls
from toolcrib.toolbox.stats import Statistics
from toolcrib.toolbox.threads import Workers

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.secrets.masking import Masking

__all__ = ["Execution", "Executor"]


@dataclass(slots=True)
class Executor:
    """What every execution of a toolbox needs."""

    host: Host
    decider: Decider
    sink: EventSink
    masking: Masking | None
    stats: Statistics
    workers: Workers
    large_results: Workers
    runaway: RunawayCalls
    max_output: MaxOutput
    overflow: Path | None
    grace: float
    random: Callable[[], float]
    execution: Callable[[], Execution]
    fits: int = field(init=False)  # so many characters of ASCII need no masking, no cutting and no thread

    def __post_init__(self) -> None:
        fits = min(self.max_output.bytes, self.max_output.lines - 1, LARGE)
        self.fits = fits if self.masking is None else -1

    def start(self, ready: Ready, deps: Any, seconds: float) -> Execution:
        """A run of a call, which begins when it is awaited."""
        run = self.execution()  # its fields are set here: an `__init__` would take longer than all of this
        run.executor, run.ready, run.seconds = self, ready, seconds
        run.task = run.timer = run.left = run.to_raise = run.ctx = None  # until it waits
        run.problem, run.waits, run.inner_calls, run.interrupted, run.untold = "", 0, 0, False, False
        definition = ready.tool.definition
        if definition.wants_context:
            run.ctx = ctx = Context(deps, key=ready.key, tool=ready.call.name, host=self.host)
            ctx._definition = definition
            ctx._deadline = run
            ctx.approved, ctx.must_be_confined = ready.approved, ready.confined and not ready.approved
            if ready.accesses_known:
                from toolcrib.rules.permissions import call_permissions

                permissions = call_permissions(self.decider.policy, self.decider.request_for(ready))
                ctx._permits, ctx.denied_paths, ctx._why_denied = permissions
        return run

    def shown_to_model(self, ready: Ready, result: ToolResult, *, masked: bool = False) -> ToolResult:
        """A result as a model may see it: without secrets, and no longer than what is allowed."""
        if self.masking is not None and not masked:
            return self.masking.mask_result(result, partial(self.shown_to_model, ready, masked=True))
        limit = ready.tool.definition.facts.max_output or self.max_output
        return cap(result, limit, ready.call.name, self.overflow, ready.key)


class Execution(Deadline):
    """One run of a ready call. Awaiting it gives its result, whatever happens.

    Nothing is raised: the caller's own cancellation, and what ends the program, is in `to_raise`. An execution is its
    own deadline and its own generator, as ten thousand of them may wait at once.
    """

    __slots__ = ("executor", "inner_calls", "problem", "ready", "seconds", "to_raise", "untold")

    executor: Executor
    ready: Ready
    seconds: float
    to_raise: BaseException | None
    inner_calls: int  # how many calls the tool made by itself
    untold: bool  # whether listeners were not told that the call came: they are told when it begins
    outside = False  # no other call than `ready` ran
    others = ()

    def __await__(self) -> Generator[Any, Any, ToolResult]:
        result: Any = None
        try:
            coro = self._begin()
            try:
                item = coro.send(None)  # in turn: what it awaits, what it is sent, and at last its value
                self.arm(coro, self.seconds)
                while True:
                    try:
                        item = yield item
                    except GeneratorExit:
                        result = GeneratorExit  # nobody waits for the call any more
                        coro.close()
                        raise
                    except BaseException as error:
                        item = self.throw(error, self.executor.grace)
                    else:
                        item = coro.send(item)
            except StopIteration as error:
                item = error.value
            finally:
                if self.task is not None:
                    self.disarm()
            if len(item) > LARGE if type(item) is str else self.ready.tool.entry.large:
                result, self.problem = yield from self._on_thread(deliver, item, self.ready.tool.definition)
            else:
                result, self.problem = deliver(item, self.ready.tool.definition)
        except BaseException as error:
            if result is not None:
                raise
            result = self._failure(error if self.task is None else self.judged(error))
        if self.interrupted and self.to_raise is None:
            self.to_raise = asyncio.CancelledError(*self.cancel_args)
        if self.ctx is not None:  # code that outlives its call can report and call nothing any more
            self.ctx._host = None
            self.inner_calls = self.ctx._inner
            if self.ctx._asked and not result.is_error and (forgotten := forgotten_await(self.ctx)):
                result = self._failure(forgotten)
        result = self._shown(result)
        return result if isinstance(result, ToolResult) else (yield from result)

    def _shown(self, result: ToolResult) -> ToolResult | Generator[Any, Any, ToolResult]:
        """The result as the model is shown it. What is large is made so on a thread."""
        tool, text = self.ready.tool, result._text
        fits = self.executor.fits if tool.definition.facts.max_output is None else -1
        if text is None:
            size = size_of(result)
        elif (size := len(text)) <= fits and text.isascii():
            tool.entry.large = False
            return result
        tool.entry.large, shown = size > LARGE, self.executor.shown_to_model
        return self._on_thread(shown, self.ready, result) if size > LARGE else shown(self.ready, result)

    def _on_thread(self, fn: Callable[..., Any], *args: Any) -> Generator[Any, Any, Any]:
        return on_thread(self.executor.large_results, self, fn, *args)

    def _begin(self) -> Any:
        """Say that the call begins, reveal the secrets, and start it: the coroutine that does the work."""
        executor, ready, tool = self.executor, self.ready, self.ready.tool
        definition = tool.definition
        if executor.sink.listeners:
            told = (ready.key, ready.call.name, definition.facts.title, ready)
            executor.sink.emit_new(ready.key.run, call_comes_and_begins if self.untold else call_begins, told)
        params = (
            ready.params if executor.masking is None else executor.masking.reveal_params(ready, definition)
        )
        if definition.mode != "async" or definition.facts.retry is not None:
            return self._work(params)
        try:
            coro = definition.start(tool.instance, params, self.ctx)
        except StopIteration as odd:
            raise RuntimeError("the tool raised StopIteration") from odd
        # An awaitable object cannot be stepped by hand, and a wrapper may have hidden a plain function.
        return coro if type(coro) is CoroutineType else settled(coro, definition.output)

    def _failure(self, error: BaseException) -> ToolResult:
        """The result for an exception of a tool; the traceback of a crash is kept for the operator."""
        name = self.ready.call.name
        match error:
            case ToolError():
                return model_messages.tool_error(error.message)
            case DeadlinePassed():
                return model_messages.timed_out(name, self.seconds)
            case WillNotStop():
                self.executor.runaway.add(self.ready, error.has_stopped)
                return model_messages.outcome_unknown(name)
            case NotStarted() if self.expired and not self.interrupted:
                return model_messages.no_worker(name, self.seconds)
            case NotStarted():
                return model_messages.cancelled(name, started=False)
            case Suspended():  # the path looks whether a question is open
                return model_messages.waiting(name)
            case Cancelled() | asyncio.CancelledError():  # whether the caller was, too, `interrupted` says
                return model_messages.cancelled(name)
            case _:
                pass
        self.problem = traceback_text(error)
        if isinstance(error, KeyboardInterrupt):  # the person ends the program; a tool cannot, by SystemExit
            self.to_raise = error
        return model_messages.failed(name)

    def _work(self, params: Any) -> Any:
        """The coroutine that does the work: one attempt, or as many as the tool's retry allows."""
        executor, tool = self.executor, self.ready.tool
        run_as = MODES[tool.definition.mode]
        attempt = partial(run_as, executor.workers, executor.grace, tool, params, self.ctx)
        if tool.definition.facts.retry is None:
            return attempt()
        from toolcrib.toolbox.retrying import with_retries

        return with_retries(attempt, self.ready, executor, self.ctx)
