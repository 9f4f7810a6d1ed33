"""Calls on their way through middleware. Nothing here is entered where a toolbox has no steps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from dataclasses import replace
from typing import Any, Protocol

from toolcrib.call import CallKey, ToolCall
from toolcrib.context import Context
from toolcrib.errors import traceback_text
from toolcrib.middleware import ExecuteStep, NextPrepare, PrepareStep
from toolcrib.prepared import Pending, Prepared, Ready, Refused, ResolvedTool
from toolcrib.result import ToolResult
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.registry import close_tool

__all__ = ["ExecutionThroughSteps", "prepare_through"]


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

    async def rest(at: int, call: ToolCall) -> Prepared:
        if not isinstance(call, ToolCall):
            raise TypeError(f"a step around preparation hands a ToolCall to next, got {call!r}")
        if at == len(steps):
            prepared = await innermost(call)
            if not isinstance(prepared, Refused):
                issued.append(prepared)
            return prepared
        answer: object = await steps[at](call, lambda changed: rest(at + 1, changed))
        if isinstance(answer, ToolResult):
            return Refused(call, key, answer)
        if isinstance(answer, Refused):
            return replace(answer, key=key)
        if isinstance(answer, Ready | Pending) and any(answer is given for given in issued):
            return answer
        raise TypeError(f"a step around preparation gives what next gave it, or a ToolResult; got {answer!r}")

    answer: Prepared | None = None
    try:
        answer = await rest(0, call)
    except Exception as problem:
        answer = Refused(call, key, model_messages.failed(call.name), traceback_text(problem))
    finally:
        used = answer.tool if isinstance(answer, Ready | Pending) else None
        for tool in {id(tool): tool for tool in (*made, *(item.tool for item in issued))}.values():
            if tool is not used and tool.entry.owned:
                await close_tool(tool.instance)
    return answer


class OneRun(Protocol):
    """The run of a call; `toolcrib.toolbox.execute.Execution` is one."""

    problem: str
    to_raise: BaseException | None
    ctx: Context[Any] | None

    def __await__(self) -> Generator[Any, Any, ToolResult]: ...


class ExecutionThroughSteps:
    """One execution through the steps around it. Awaiting it gives its result, whatever the steps do.

    `execution_of` starts the run of a call. `prepare_anew` decides on a call that a step changed, and asks if need be.
    `ready` is the call that ran last; the tools of the others are closed at the end.
    """

    def __init__(
        self,
        ready: Ready,
        box_steps: tuple[ExecuteStep, ...],
        own_steps: tuple[ExecuteStep, ...],
        execution_of: Callable[[Ready], OneRun],
        prepare_anew: Callable[[ToolCall, CallKey], Awaitable[Ready | ToolResult]],
        shown_to_model: Callable[[Ready, ToolResult], ToolResult],
    ) -> None:
        self.ready = ready
        self.problem = ""
        self.to_raise: BaseException | None = None
        self.inner_calls = 0
        self._first = ready
        self._box_steps = box_steps
        self._own_steps = own_steps
        self._execution_of = execution_of
        self._prepare_anew = prepare_anew
        self._shown_to_model = shown_to_model
        self._last: ToolResult | None = None  # what the tool itself gave last
        self._ended = False
        self._tools = [ready.tool]

    def __await__(self) -> Generator[Any, Any, ToolResult]:
        return self._result().__await__()

    async def _result(self) -> ToolResult:
        task = asyncio.current_task()
        cancelling = task.cancelling() if task is not None else 0
        name = self.ready.call.name
        self.ready.execution.claim()  # a step that executes the call by itself waits for this one
        try:
            result = await self._through_box_steps(0, self.ready)
        except Exception as problem:
            self.problem = traceback_text(problem)
            result = model_messages.failed(name)
        except asyncio.CancelledError:
            result = self._last or model_messages.cancelled(name, started=False)
        except (KeyboardInterrupt, SystemExit) as ending:
            self.problem = traceback_text(ending)
            result = self._last or model_messages.failed(name)
            self.to_raise = ending if isinstance(ending, KeyboardInterrupt) else None
        finally:
            self._ended = True
        if task is not None and task.cancelling() > cancelling and self.to_raise is None:
            self.to_raise = asyncio.CancelledError()
        for tool in {id(tool): tool for tool in self._tools}.values():
            if tool is not self.ready.tool and tool.entry.owned:
                await close_tool(tool.instance)
        # The result of a step may be an object that it keeps and gives again: what is recorded is a copy.
        return result if result is self._last else self._shown_to_model(self.ready, result.copy())

    async def _through_box_steps(self, at: int, ready: Ready) -> ToolResult:
        if at < len(self._box_steps):
            return await self._step(
                self._box_steps[at], ready, lambda value: self._through_box_steps(at + 1, value)
            )
        return await self._through_tool_steps(self._tool_steps(ready.tool), ready)

    def _tool_steps(self, tool: ResolvedTool) -> tuple[ExecuteStep, ...]:
        """The steps of the toolsets that the tool comes from, and our own inside of them."""
        steps = tool.entry.steps
        return self._own_steps if steps is None else (*steps.around_execute, *self._own_steps)

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
        async def next(value: Ready | ToolCall) -> ToolResult:
            if self._ended:
                raise RuntimeError(f"the call {ready.key} has its result already: next came too late")
            if value is ready:
                return await rest(ready)
            if not isinstance(value, Ready | ToolCall):
                raise TypeError(f"a step hands on the call that it was handed, or a ToolCall; got {value!r}")
            call = value if isinstance(value, ToolCall) else value.call
            anew = await self._prepare_anew(call, ready.key)
            if isinstance(anew, ToolResult):
                return anew
            self._tools.append(anew.tool)
            return await rest(anew._replace(execution=self._first.execution))

        answer: object = await step(ready, next)
        if not isinstance(answer, ToolResult):
            raise TypeError(f"a step around execution gives a ToolResult; got {answer!r}")
        return answer

    async def _run(self, ready: Ready) -> ToolResult:
        self.ready = ready
        work = self._execution_of(ready)
        if work.ctx is not None:
            work.ctx._inner = self.inner_calls  # no key of an inner call is used twice
        self._last = result = await work
        self.problem = work.problem
        if work.ctx is not None:
            self.inner_calls = work.ctx._inner
        if work.to_raise is not None:
            raise work.to_raise
        return result
