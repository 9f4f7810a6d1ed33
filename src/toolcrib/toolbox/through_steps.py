"""Calls on their way through middleware. Nothing here is entered where a toolbox has no steps."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Generator, Iterable
from typing import Any, Protocol

from toolcrib.call import CallKey, ToolCall
from toolcrib.content import Json, Part
from toolcrib.context import Context
from toolcrib.dataclass import replace
from toolcrib.errors import belongs_to_caller, traceback_text
from toolcrib.middleware import ExecuteStep, NextPrepare, PrepareStep
from toolcrib.prepared import Lookups, Pending, Prepared, Ready, Refused, ResolvedTool
from toolcrib.result import ToolResult
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.closing import close_tool
from toolcrib.toolbox.foreign import ForeignCall
from toolcrib.toolbox.sendable import result_of

__all__ = ["ExecutionThroughSteps", "prepare_through"]

GRACE = 5.0  # seconds that a step around preparation may go on after it was cancelled


async def prepare_through(
    steps: tuple[PrepareStep, ...],
    call: ToolCall,
    key: CallKey,
    innermost: NextPrepare,
    *made: ResolvedTool,
) -> Prepared:
    """A preparation through the steps around it. A Refused where a step raises or gives nonsense.

    A step cannot get round the preparation: only what `next` gave counts as Ready or Pending. Tools that were `made`
    for the call and are not used after all are closed.
    """
    issued: list[Ready | Pending] = []
    over = asyncio.Event()

    async def rest(at: int, changed: ToolCall) -> Prepared:
        if not isinstance(changed, ToolCall):
            raise TypeError(f"a step around preparation hands a ToolCall to next, got {changed!r}")
        if over.is_set():
            raise RuntimeError(f"the call {key} is prepared already: next came too late")
        call = _own_copy(changed)  # a step may keep the object, and change it later
        if at == len(steps):
            prepared = await innermost(call)
            if not isinstance(prepared, Refused):
                if over.is_set():
                    await _close_tools([prepared.tool], None)
                    raise RuntimeError(f"the call {key} is prepared already: next came too late")
                issued.append(prepared)
            return prepared
        answer: object = await ForeignCall(
            steps[at](call, lambda changed: rest(at + 1, changed)), None, GRACE
        )
        if isinstance(answer, ToolResult):
            return Refused(call, key, result_of(answer))
        if isinstance(answer, Refused):  # one that the step keeps, perhaps, and gives again
            return Refused(answer.call, key, result_of(answer.result), answer.problem)
        if isinstance(answer, Ready | Pending) and any(answer is given for given in issued):
            return answer
        raise TypeError(f"a step around preparation gives what next gave it, or a ToolResult; got {answer!r}")

    answer: Prepared | None = None
    try:
        answer = await rest(0, call)
    except BaseException as problem:
        if belongs_to_caller(problem):
            raise
        answer = Refused(call, key, model_messages.failed(call.name), traceback_text(problem))
    finally:
        over.set()
        used = answer.tool if isinstance(answer, Ready | Pending) else None
        await _close_tools((*made, *(item.tool for item in issued)), used)
    assert answer is not None
    return answer


async def _close_tools(tools: Iterable[ResolvedTool], used: ResolvedTool | None) -> None:
    """Close the tools that were made for a call, except the one that runs."""
    for tool in {id(tool): tool for tool in tools}.values():
        if tool is not used and tool.entry.owned:
            await close_tool(tool.entry, tool.instance)


def _own_copy(call: ToolCall) -> ToolCall:
    """The same call as an object that nobody else can change."""
    given = call.arguments
    return call if isinstance(given, str) else replace(call, arguments=copy.deepcopy(given))


def _shown_to_step(ready: Ready) -> Ready:
    """A copy of a call for a step. Changes that the step makes in it do not reach the call that runs."""
    lookups = Lookups()
    if ready.accesses_known:
        lookups.accesses = ready.accesses
    try:
        params, given = copy.deepcopy(ready.params), copy.deepcopy(ready.given)
    except Exception:  # a user's type that cannot be copied
        params, given = ready.params, ready.given
    return ready._replace(call=_own_copy(ready.call), params=params, given=given, lookups=lookups)


def _shown_result(result: ToolResult) -> ToolResult:
    """A copy of a result for a step. If the step changes it, it is checked like a result that the step made."""
    shown = result.copy()
    shown.parts = tuple(map(_own_part, result.parts))
    return shown


def _own_part(part: Part) -> Part:
    """A part whose data nobody else can change; what has only texts cannot be changed at all."""
    return copy.deepcopy(part) if part.extras or type(part) is Json else part


def _same(one: ToolResult, other: ToolResult) -> bool:
    return (
        one.parts == other.parts
        and (one._structured is other._structured and one._json is other._json)
        and (one.is_error, one.code, one.full_output) == (other.is_error, other.code, other.full_output)
    )


class OneRun(Protocol):
    """The run of a call; `toolcrib.toolbox.execute.Execution` is one."""

    problem: str
    to_raise: BaseException | None
    ctx: Context[Any] | None

    def __await__(self) -> Generator[Any, Any, ToolResult]: ...


class ExecutionThroughSteps:
    """One execution through the steps around it. Awaiting it gives its result, whatever the steps do.

    `start` makes the run of a call. `prepare_anew` decides on a call that a step changed, and asks if need be.
    `traced` awaits a run in its span.
    `took_in` notes what a call that ran brought in from outside. `ready` is the call that ran last, `others` are those
    besides it; their tools are closed by whoever awaits this. Nothing runs any more when the result is there.
    """

    def __init__(
        self,
        ready: Ready,
        box_steps: tuple[ExecuteStep, ...],
        traced: Callable[[Ready, Awaitable[ToolResult]], Awaitable[ToolResult]] | None,
        start: Callable[[Ready], OneRun],
        prepare_anew: Callable[[ToolCall, CallKey], Awaitable[Ready | ToolResult]],
        shown_to_model: Callable[[Ready, ToolResult], Awaitable[ToolResult]],
        took_in: Callable[[Ready, ToolResult], bool],
    ) -> None:
        self.ready = ready
        self.problem = ""
        self.to_raise: BaseException | None = None
        self.inner_calls = 0
        self._first = ready
        self._box_steps = box_steps
        self._traced = traced
        self._start = start
        self._prepare_anew = prepare_anew
        self._shown_to_model = shown_to_model
        self._took_in = took_in
        self.outside = False
        self._last: ToolResult | None = None  # the last result of the tool itself
        self._ended = False
        self._known = [ready]
        self._running: dict[asyncio.Task[Any], asyncio.Event] = {}

    @property
    def others(self) -> list[Ready]:
        """The calls besides the one that ran last."""
        return [ready for ready in self._known if ready.tool is not self.ready.tool]

    def __await__(self) -> Generator[Any, Any, ToolResult]:
        return self._result().__await__()

    async def _result(self) -> ToolResult:
        task = asyncio.current_task()
        cancelling = task.cancelling() if task is not None else 0
        name, cancel_args = self.ready.call.name, tuple[Any, ...]()
        self.ready.execution.claim()  # a step that executes the call by itself waits for this one
        try:
            given = await self._through_box_steps(0, self.ready)
            last = self._last
            if last is not None and (given is last or _same(given, last)):
                result = last
            else:  # a step's own, which it may keep and give again
                result = await self._shown_to_model(self.ready, result_of(given))
        except asyncio.CancelledError as cancelled:
            cancel_args = cancelled.args
            result = self._last or model_messages.cancelled(name, started=False)
        except Exception as problem:
            self.problem = traceback_text(problem)
            result = model_messages.failed(name)
        except BaseException as ending:  # a step cannot end the program, but by KeyboardInterrupt
            self.problem = traceback_text(ending)
            result = self._last or model_messages.failed(name)
            self.to_raise = ending if isinstance(ending, KeyboardInterrupt) else None
        finally:
            self._ended = True
        if self._running:
            await self._stop_running()
        if task is not None and task.cancelling() > cancelling and self.to_raise is None:
            self.to_raise = asyncio.CancelledError(*cancel_args)
        return result

    async def _stop_running(self) -> None:
        """Stop the executions that a step left running in tasks of its own."""
        loop = asyncio.get_running_loop()
        left = [(task, end) for task, end in self._running.items() if task.get_loop() is loop]
        for task, _ in left:
            task.cancel()
        try:
            for _, end in left:
                await end.wait()
        except BaseException as ending:  # the result is recorded all the same
            self.to_raise = self.to_raise or ending

    async def _through_box_steps(self, at: int, ready: Ready) -> ToolResult:
        if at < len(self._box_steps):
            return await self._step(
                self._box_steps[at], ready, lambda value: self._through_box_steps(at + 1, value)
            )
        return await self._through_tool_steps(self._tool_steps(ready.tool), ready)

    def _tool_steps(self, tool: ResolvedTool) -> tuple[ExecuteStep, ...]:
        """The steps of the toolsets that the tool comes from."""
        steps = tool.entry.steps
        return () if steps is None else steps.around_execute

    async def _through_tool_steps(self, steps: tuple[ExecuteStep, ...], ready: Ready) -> ToolResult:
        if not steps:
            return await self._run(ready)

        async def rest(value: Ready) -> ToolResult:
            same = value.tool.entry is ready.tool.entry
            return await self._through_tool_steps(steps[1:] if same else self._tool_steps(value.tool), value)

        return await self._step(steps[0], ready, rest)

    async def _step(
        self, step: ExecuteStep, ready: Ready, rest: Callable[[Ready], Awaitable[ToolResult]]
    ) -> ToolResult:
        shown = _shown_to_step(ready)

        async def next(value: Ready | ToolCall) -> ToolResult:
            result = await run(value)
            return _shown_result(result) if result is self._last else result

        async def run(value: Ready | ToolCall) -> ToolResult:
            self._check_open()
            if value is shown:
                return await rest(ready)
            if not isinstance(value, Ready | ToolCall):
                raise TypeError(f"a step hands on the call that it was handed, or a ToolCall; got {value!r}")
            call = value if isinstance(value, ToolCall) else value.call
            anew = await self._prepare_anew(call, ready.key)
            if isinstance(anew, ToolResult):
                return anew
            if self._ended:
                await _close_tools([anew.tool], None)
            self._check_open()
            anew = anew._replace(execution=self._first.execution)
            self._known.append(anew)
            return await rest(anew)

        # What runs inside has its own grace; the step may take longer, but not for ever.
        grace = 3 * ready.tool.entry.grace
        answer: object = await ForeignCall(step(shown, next), None, grace, keeps_value=True)
        if not isinstance(answer, ToolResult):
            raise TypeError(f"a step around execution gives a ToolResult; got {answer!r}")
        return answer

    def _check_open(self) -> None:
        if self._ended:
            raise RuntimeError(f"the call {self._first.key} has its result already: next came too late")

    async def _run(self, ready: Ready) -> ToolResult:
        self._check_open()
        task = asyncio.current_task()
        assert task is not None
        self._running[task] = end = asyncio.Event()
        try:
            return await self._run_now(ready)
        finally:
            del self._running[task]
            end.set()

    async def _run_now(self, ready: Ready) -> ToolResult:
        self.ready = ready
        work = self._start(ready)
        if work.ctx is not None:
            work.ctx._inner = self.inner_calls  # no key of an inner call is used twice
        self._last = result = await (work if self._traced is None else self._traced(ready, work))
        self.problem = work.problem
        if self._took_in(ready, result):
            self.outside = result.outside = True
        if work.ctx is not None:
            self.inner_calls = max(self.inner_calls, work.ctx._inner)
        if work.to_raise is not None:
            raise work.to_raise
        return result
