"""The one path of a call: prepare, ask, recheck, run through the middleware, record the one result.

`Toolbox.call`, a turn's calls, calls that start early, calls that a tool makes, and resumed calls all walk it.

The policy decides once, when a call is prepared. It decides again only where there is a reason:

| reason                                                     | where                                |
| ---------------------------------------------------------- | ------------------------------------ |
| the call was kept by the caller: `prepare`, then `execute` | `execute`, `finish` with `kept`      |
| a person was asked, which takes time                       | `Questions.answered`                 |
| an earlier call of the turn had to end first               | `turn.py`: `finish` with `kept`      |
| the policy or the registry changed in the turn             | `turn.py`: `finish` with `kept`      |
| the call was saved and restored, also with its whole run   | `restore.py`, which prepares it anew |
| a person or a middleware changed the call                  | it is prepared anew, like any call   |

A call that runs as soon as it is prepared is not decided again.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from toolcrib.call import CallKey, ToolCall
from toolcrib.dataclass import dataclass
from toolcrib.errors import traceback_text
from toolcrib.prepared import Pending, Prepared, Ready, Refused
from toolcrib.question import Answer
from toolcrib.result import ToolResult
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.ask import AskAgain, Questions
from toolcrib.toolbox.closing import close_all, close_tool
from toolcrib.toolbox.decide import Decider
from toolcrib.toolbox.operator_log import OperatorLog
from toolcrib.toolbox.policy import Policy
from toolcrib.toolbox.prepare import Preparation, Unprepared
from toolcrib.toolbox.provenance import record_call
from toolcrib.toolbox.report import Record, Report
from toolcrib.toolbox.runaway import RunawayCalls
from toolcrib.toolbox.runs import Runs
from toolcrib.toolbox.telemetry import SDK, Telemetry

if TYPE_CHECKING:
    from toolcrib.middleware import ExecuteStep
    from toolcrib.toolbox.execute import Execution, Executor
    from toolcrib.toolbox.through_steps import ExecutionThroughSteps
    from toolcrib.toolbox.turn_questions import TurnQuestions

__all__ = ["CallPath"]


@dataclass(slots=True)
class CallPath:
    """Walks calls from a ToolCall to their one recorded result."""

    preparation: Preparation
    questions: Questions
    decider: Decider
    report: Report
    runs: Runs
    runaway: RunawayCalls
    operator: OperatorLog
    make_executor: Callable[[], Executor]  # the second phase needs asyncio: loaded for the first call
    steps: tuple[ExecuteStep, ...]
    telemetry: Telemetry
    timeout: float
    grace: float
    timer: Callable[[], float]
    at_once: bool  # whether no step, limit or audit log comes between a ready call and its begin
    executor: Executor | None = None

    async def call(
        self, ready: Ready | Unprepared, deps: Any, timeout: float | None, record: Record | None
    ) -> ToolResult:
        """Prepare a call unless it is ready, ask if need be, run it, and record its one result.

        Only the caller's own cancellation is raised. It is one coroutine with few variables, as ten thousand may wait.
        """
        untold = False  # whether listeners were not told that the call came
        if not isinstance(ready, Ready):
            untold = self.at_once and not self.runaway.calls
            prepared = self.preparation.without_awaiting(ready, at_once=untold)
            if prepared is None:
                untold, prepared = False, await self._prepared(ready, deps, record)
            if not isinstance(prepared, Ready) or (not untold and self.runaway.calls):
                return await self.finish(prepared, deps, timeout, record)
            ready = prepared
        started = self.timer()
        if self.executor is None:
            self.executor = self.make_executor()
        work: Execution | ExecutionThroughSteps
        if not self.steps and ready.tool.entry.steps is None:
            seconds = timeout or ready.tool.definition.facts.timeout or self.timeout
            work = self.executor.start(ready, deps, seconds)
            work.untold = untold
            if SDK in sys.modules or self.telemetry.given:
                result = await self.telemetry.traced(ready, work, self.report.mask)
            else:
                result = await work
        else:
            work = self._through_steps(self.executor, ready, deps, timeout)
            result = await work
        waits = self.runs.suspensions and self._waits_inside(work, result)
        if not waits:
            if work.outside or (self.decider.tracks_taint and self._took_in(work.ready, result)):
                result.outside = True
            self.report.ended(work, result, self.timer() - started, record)
        if work.inner_calls:
            self.runs.close_inner(work.ready.key)
        # The result is recorded by now: nothing that closing does can change it.
        if work.ready.tool.entry.owned or work.others:
            work.to_raise = await close_all(self.runaway.ended(work.ready, *work.others)) or work.to_raise
        if waits:
            result = await self.wait(work.ready, record)
        if work.to_raise is not None:
            raise work.to_raise
        return result

    async def _prepared(self, unprepared: Unprepared, deps: Any, record: Record | None) -> Prepared:
        """Prepare a call whose tool has to be awaited."""
        call, key, tool_list = unprepared
        try:
            return await self.preparation.prepare(call, key, tool_list, None, deps)
        except BaseException:  # cancelled while a factory made the tool
            unstarted = model_messages.cancelled(call.name, started=False)
            self.report.refused(Refused(call, key, unstarted), record)
            raise

    def _waits_inside(self, work: Execution | ExecutionThroughSteps, result: ToolResult) -> bool:
        """Whether a call that ran has no result yet, as calls inside of it wait for answers."""
        suspension, cancelled = self.runs.suspension(work.ready.key.run), work.to_raise is not None
        return suspension is not None and suspension.waits_inside(work.ready, result, cancelled=cancelled)

    async def execute(
        self,
        prepared: Prepared,
        answer: Answer | None,
        deps: Any,
        timeout: float | None,
        record: Record | None,
    ) -> ToolResult:
        """Run a prepared call that the caller kept, with the answer to its question; nobody is asked here."""
        name = prepared.call.name

        async def granted() -> Ready | ToolResult:
            if isinstance(prepared, Pending):
                reply = await self.questions.answered(prepared, answer, deps)
                return reply.refusal if isinstance(reply, AskAgain) else reply
            assert isinstance(prepared, Ready)
            if isinstance(answer, Answer) and not answer.allows:  # a no that nobody asked for holds too
                return model_messages.rejected(name, answer.message)
            checked = await self.questions.recheck(prepared)
            return model_messages.nobody_to_ask(name) if isinstance(checked, Pending) else checked

        return await self._execute_once(prepared, granted, deps, timeout, record)

    async def finish(
        self,
        prepared: Prepared,
        deps: Any,
        timeout: float | None,
        record: Record | None,
        *,
        kept: bool = False,
        asking: TurnQuestions | None = None,
    ) -> ToolResult:
        """Run a prepared call, asking the approver if need be. A call that was `kept` is decided on once more."""
        if not kept and type(prepared) is Ready and not self.runaway.calls:  # nobody else can execute it
            return await self.call(prepared, deps, timeout, record)

        async def granted() -> Ready | Pending | ToolResult:
            checked: Prepared | ToolResult = prepared
            if kept and isinstance(prepared, Ready):
                checked = await self.questions.recheck(prepared)
            if isinstance(checked, Pending):
                return await self.questions.settle(checked, deps, asking)
            assert isinstance(checked, Ready | ToolResult)
            return checked

        return await self._execute_once(prepared, granted, deps, timeout, record)

    async def _execute_once(
        self,
        prepared: Prepared,
        granted: Callable[[], Awaitable[Ready | Pending | ToolResult]],
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
        to_close: Ready | Pending = prepared  # its tool is closed if the call does not run
        try:
            outcome = await granted()
            if isinstance(outcome, Ready):
                to_close = outcome
                if self.runaway.calls and not await self.runaway.gone(outcome, self.grace):
                    outcome = model_messages.still_busy(name)
        except Exception as problem:  # a toolset or a policy that failed
            self.operator.problem(f"tool {name} could not be checked again", traceback_text(problem))
            outcome = model_messages.failed(name)
        except BaseException:  # cancelled: whoever waits for the result is told
            await self.refuse(to_close, model_messages.cancelled(name, started=False), record)
            raise
        if isinstance(outcome, ToolResult):
            return await self.refuse(to_close, outcome, record)
        if isinstance(outcome, Pending):
            return await self.wait(outcome, record)
        return await self.call(outcome, deps, timeout, record)

    async def wait(self, prepared: Ready | Pending, record: Record | None) -> ToolResult:
        """Leave a call waiting, in a run that ends at its questions; what a model would read meanwhile is recorded."""
        suspension = self.runs.suspension(prepared.key.run)
        if suspension is not None and prepared.key not in suspension.waiting:  # it has not run
            for question in suspension.waits(prepared):
                self.questions.approving.tell_asked(question)
            if prepared.tool.entry.owned:
                await close_tool(prepared.tool.entry, prepared.tool.instance)
        result = model_messages.waiting(prepared.call.name)
        prepared.execution.recorded = result
        if record is not None:
            self.report.recorded(record, prepared.key, result)
        return result

    def basis(self) -> tuple[Policy, tuple[int, ...]]:
        """What decisions made now depend on: the policy, and the version of the registry."""
        return self.decider.policy, self.questions.registry.version

    def still_decided_on(self, basis: tuple[Policy, tuple[int, ...]]) -> bool:
        """Whether neither the policy nor the registry is another by now."""
        policy, version = self.basis()
        return policy is basis[0] and version == basis[1]

    async def refuse(
        self, prepared: Ready | Pending, result: ToolResult, record: Record | None
    ) -> ToolResult:
        """Record a prepared call as not run, and close what was made for it."""
        refused = Refused(prepared.call, prepared.key, result, execution=prepared.execution)
        result = self.report.refused(refused, record)
        if prepared.tool.entry.owned:
            await close_tool(prepared.tool.entry, prepared.tool.instance)
        return result

    def _took_in(self, ready: Ready, result: ToolResult) -> bool:
        """Whether a call brought in content from outside; its run is tainted then."""
        return self.decider.tracks_taint and record_call(self.runs, ready, result)

    def _through_steps(
        self, executor: Executor, ready: Ready, deps: Any, timeout: float | None
    ) -> ExecutionThroughSteps:
        """The steps of the box, then those of the tool's toolsets, then the run in its span."""
        from toolcrib.toolbox.large_results import shown_result
        from toolcrib.toolbox.through_steps import ExecutionThroughSteps

        shown = partial(shown_result, executor.large_results, executor.shown_to_model)
        traced = partial(self.telemetry.traced, mask=self.report.mask) if self.telemetry.on else None

        def start(ready: Ready) -> Execution:
            seconds = timeout or ready.tool.definition.facts.timeout or self.timeout
            return executor.start(ready, deps, seconds)

        async def prepare_anew(call: ToolCall, key: CallKey) -> Ready | ToolResult:
            prepared = await self.preparation.prepare(call, key, deps=deps)
            settled = await self.questions.settle_anew(prepared, deps)
            if isinstance(settled, ToolResult):
                self.report.note_refused(Refused(prepared.call, key, settled))
            return settled

        return ExecutionThroughSteps(ready, self.steps, traced, start, prepare_anew, shown, self._took_in)
