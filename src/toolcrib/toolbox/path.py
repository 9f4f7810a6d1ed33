"""The one road of a call: prepare, ask, recheck, run through the middleware, record the one result.

`Toolbox.call`, a turn's calls, calls that start early, calls that a tool makes, and resumed calls all walk it.

The policy decides once, when a call is prepared. It decides again only where there is a reason:

| reason                                                   | where                                |
| -------------------------------------------------------- | ------------------------------------ |
| the call was kept by the caller: `prepare`, then `execute` | `execute`, `settle`                  |
| a person was asked, which takes time                     | `Questions.answered`                 |
| an earlier call of the turn had to end first             | `turn.py`, which says `kept=True`    |
| the call was saved and restored                          | `restore`, which prepares it anew    |
| a person or a middleware changed the call                | it is prepared anew, like any call   |

A call that runs in the same breath in which it was prepared is not decided again.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from toolcrib.call import CallKey, ToolCall
from toolcrib.errors import traceback_text
from toolcrib.prepared import (
    Pending,
    Prepared,
    Ready,
    Refused,
    ResolvedTool,
    prepared_from_json,
    prepared_to_json,
)
from toolcrib.question import Answer
from toolcrib.result import ToolResult
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.ask import AskAgain, Questions
from toolcrib.toolbox.decide import Decider
from toolcrib.toolbox.operator_log import OperatorLog
from toolcrib.toolbox.policy import Decision, Verb
from toolcrib.toolbox.prepare import Preparation
from toolcrib.toolbox.provenance import record_call
from toolcrib.toolbox.registry import close_tool
from toolcrib.toolbox.report import Record, Report
from toolcrib.toolbox.runaway import RunawayCalls
from toolcrib.toolbox.runs import Runs
from toolcrib.toolbox.telemetry import SDK

if TYPE_CHECKING:
    import asyncio

    from toolcrib.middleware import ExecuteStep
    from toolcrib.toolbox.execute import Execution, Executor
    from toolcrib.toolbox.through_steps import ExecutionThroughSteps
    from toolcrib.toolbox.tool_list import ToolList

__all__ = ["CallPath"]


class CallPath:
    """Walks calls from a ToolCall to their one recorded result."""

    __slots__ = (
        "_decider",
        "_executor",
        "_grace",
        "_make_executor",
        "_operator",
        "_own_steps",
        "_plain",
        "_runaway",
        "_runs",
        "_steps",
        "_telemetry",
        "_timeout",
        "_timer",
        "_traced_always",
        "preparation",
        "questions",
        "report",
    )  # fmt: skip

    def __init__(
        self,
        preparation: Preparation,
        questions: Questions,
        decider: Decider,
        report: Report,
        runs: Runs,
        runaway: RunawayCalls,
        operator: OperatorLog,
        make_executor: Callable[[], Executor],
        steps: tuple[ExecuteStep, ...],
        own_steps: tuple[ExecuteStep, ...],
        telemetry: ExecuteStep,
        traced_always: bool,
        timeout: float,
        grace: float,
        timer: Callable[[], float],
    ) -> None:
        self.preparation = preparation
        self.questions = questions
        self.report = report
        self._decider = decider
        self._runs = runs
        self._runaway = runaway
        self._operator = operator
        self._make_executor = make_executor  # the second phase needs asyncio: it is loaded for the first call
        self._executor: Executor | None = None
        self._steps = steps
        self._own_steps = own_steps
        self._telemetry = telemetry
        self._traced_always = traced_always
        self._plain = not steps and not own_steps and not traced_always
        self._timeout = timeout
        self._grace = grace
        self._timer = timer

    async def call(
        self,
        call: ToolCall,
        key: CallKey,
        tool_list: ToolList | None,
        deps: Any,
        timeout: float | None,
        record: Record | None,
    ) -> ToolResult:
        """Prepare a call, ask if need be, and run it."""
        prepared = self.preparation.at_once(call, key, tool_list)
        if prepared is None:
            try:
                prepared = await self.preparation.prepare(call, key, tool_list, None, deps)
            except BaseException:  # cancelled while a factory made the tool
                unstarted = model_messages.cancelled(call.name, started=False)
                self.report.refused(Refused(call, key, unstarted), record)
                raise
        if type(prepared) is Ready and not self._runaway:
            return await self._run(prepared, deps, timeout, record)
        return await self.finish(prepared, deps, timeout, record)

    async def execute(
        self,
        prepared: Prepared,
        answer: Answer | None,
        deps: Any,
        timeout: float | None,
        record: Record | None,
    ) -> ToolResult:
        """Run a prepared call that the caller kept, with the answer to its question; nobody is asked here."""

        async def granted() -> Ready | ToolResult:
            if isinstance(prepared, Pending):
                reply = await self.questions.answered(prepared, answer, deps)
                return reply.refusal if isinstance(reply, AskAgain) else reply
            assert isinstance(prepared, Ready)
            if isinstance(answer, Answer) and not answer.allows:  # a no that nobody asked for holds too
                return model_messages.rejected(prepared.call.name, answer.message)
            checked = await self.questions.recheck(prepared)
            return (
                model_messages.nobody_to_ask(prepared.call.name) if isinstance(checked, Pending) else checked
            )

        return await self._once(prepared, granted, deps, timeout, record)

    async def settle(
        self, prepared: Prepared, deps: Any, timeout: float | None, record: Record | None
    ) -> ToolResult:
        """Run a prepared call that the caller kept, asking the approver if need be."""
        return await self.finish(prepared, deps, timeout, record, kept=True)

    async def finish(
        self,
        prepared: Prepared,
        deps: Any,
        timeout: float | None,
        record: Record | None,
        *,
        kept: bool = False,
        asking: asyncio.Lock | None = None,
    ) -> ToolResult:
        """Run a prepared call, asking the approver if need be. A call that was `kept` is decided on once more."""

        async def granted() -> Ready | ToolResult:
            checked: Prepared | ToolResult = prepared
            if kept and isinstance(prepared, Ready):
                checked = await self.questions.recheck(prepared)
            if isinstance(checked, Pending):
                return await self.questions.settle(checked, deps, asking)
            assert isinstance(checked, Ready | ToolResult)
            return checked

        return await self._once(prepared, granted, deps, timeout, record)

    async def _once(
        self,
        prepared: Prepared,
        granted: Callable[[], Awaitable[Ready | ToolResult]],
        deps: Any,
        timeout: float | None,
        record: Record | None,
    ) -> ToolResult:
        """Run a prepared call the first time that it is executed; its result, each further time."""
        execution, name = prepared.execution, prepared.call.name
        if execution.result is not None:
            return execution.result
        if isinstance(prepared, Refused):
            return self.report.refused(prepared, record)
        if not execution.claim():  # an answer that was sent twice: one runs, the other has the same result
            return await execution.wait()
        held: Ready | Pending = prepared  # whose tool is closed where the call does not run
        try:
            outcome = await granted()
            if isinstance(outcome, Ready):
                held = outcome
                if self._runaway and not await self._runaway.gone(outcome, self._grace):
                    outcome = model_messages.still_busy(name)
        except Exception as problem:  # a toolset or a policy that failed
            self._operator.problem(f"tool {name} could not be checked again", traceback_text(problem))
            outcome = model_messages.failed(name)
        except BaseException:  # cancelled: whoever waits for the result is told
            await self.refuse(held, model_messages.cancelled(name, started=False), record)
            raise
        if isinstance(outcome, ToolResult):
            return await self.refuse(held, outcome, record)
        return await self._run(outcome, deps, timeout, record)

    async def refuse(
        self, prepared: Ready | Pending, result: ToolResult, record: Record | None
    ) -> ToolResult:
        """Record a prepared call as not run, and close what was made for it."""
        refused = Refused(prepared.call, prepared.key, result, execution=prepared.execution)
        result = self.report.refused(refused, record)
        if prepared.tool.entry.owned:
            await close_tool(prepared.tool.instance)
        return result

    async def _run(self, ready: Ready, deps: Any, timeout: float | None, record: Record | None) -> ToolResult:
        """Run a call that may run, and record its one result. Only the caller's own cancellation is raised."""
        started = self._timer()
        executor = self._executor
        if executor is None:
            executor = self._executor = self._make_executor()
        tool = ready.tool
        work: Execution | ExecutionThroughSteps
        if self._plain and tool.entry.steps is None and SDK not in sys.modules:
            work = executor.start(ready, deps, timeout or tool.definition.facts.timeout or self._timeout)
        else:
            work = self._through_steps(executor, ready, deps, timeout)
        result = await work
        to_raise, ready = work.to_raise, work.ready
        if ready.tool.entry.owned and ready not in self._runaway:
            try:
                await close_tool(ready.tool.instance)
            except BaseException as cancelled:  # the result is recorded all the same
                to_raise = to_raise or cancelled
        if self._decider.tracks_taint and record_call(self._runs, ready):
            result.outside = True
        self.report.ended(ready, result, self._timer() - started, work.problem, record)
        if ready.tool.definition.wants_context and work.inner_calls:
            self._runs.close_inner(ready.key)
        if to_raise is not None:
            raise to_raise
        return result

    def _through_steps(
        self, executor: Executor, ready: Ready, deps: Any, timeout: float | None
    ) -> ExecutionThroughSteps:
        """The steps of the box, then those of the tool's toolsets, then our own: telemetry, limits, audit log."""
        from toolcrib.toolbox.through_steps import ExecutionThroughSteps

        traced = self._traced_always or SDK in sys.modules
        own = (self._telemetry, *self._own_steps) if traced else self._own_steps

        def tool_steps(tool: ResolvedTool) -> tuple[ExecuteStep, ...]:
            return own if tool.entry.steps is None else (*tool.entry.steps.around_execute, *own)

        def execution_of(ready: Ready) -> Execution:
            seconds = timeout or ready.tool.definition.facts.timeout or self._timeout
            return executor.start(ready, deps, seconds)

        async def prepare_anew(call: ToolCall, key: CallKey) -> Ready | ToolResult:
            prepared = await self.preparation.prepare(call, key, deps=deps)
            if isinstance(prepared, Pending):
                settled = await self.questions.settle(prepared, deps)
                if isinstance(settled, ToolResult) and prepared.tool.entry.owned:
                    await close_tool(prepared.tool.instance)
                return settled
            if isinstance(prepared, Refused) and prepared.problem:
                self._operator.problem(f"tool {call.name} failed", prepared.problem)
            return prepared.result if isinstance(prepared, Refused) else prepared

        return ExecutionThroughSteps(
            ready, self._steps, tool_steps, execution_of, prepare_anew, executor.shown_to_model
        )

    def has_steps_around(self, ready: Ready) -> bool:
        """Whether a user's middleware stands around the execution of a call."""
        steps = ready.tool.entry.steps
        return bool(self._steps or (steps is not None and steps.around_execute))

    async def restore(self, data: Any, deps: Any) -> Prepared:
        """A saved call, prepared anew; Refused if it is not what was saved."""
        call, key, saved, result = prepared_from_json(data)
        if result is not None:
            return Refused(call, key, result)
        prepared = await self.preparation.prepare(call, key, deps=deps)
        if isinstance(prepared, Refused):
            return prepared
        if prepared_to_json(prepared)["fingerprint"] != saved:
            return Refused(call, key, model_messages.tool_changed(call.name))
        if data["kind"] == Pending.kind and isinstance(prepared, Ready) and not prepared.approved:
            # Why it was asked about (what the run took in, say) may not be known here: it stays a question.
            reason = str(data.get("reason") or "it was asked about before")
            prepared = self._decider.asked(prepared, Decision(Verb.ASK, reason), reason)
        if isinstance(prepared, Pending):  # what the person was shown rests on what was there then
            question = replace(prepared.question, digest=str(data.get("digest") or ""))
            prepared = replace(prepared, question=question)
        return prepared
