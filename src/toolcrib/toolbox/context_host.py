"""What a running tool reaches of the toolbox through its Context: reports, questions, other tools."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from toolcrib.call import CallKey, CallState, ToolCall
from toolcrib.context import Context
from toolcrib.dataclass import dataclass, replace
from toolcrib.effect import Effect
from toolcrib.errors import Cancelled, ToolError
from toolcrib.events import Event, Notice, StatusChanged
from toolcrib.fingerprint import fingerprint
from toolcrib.question import Answer, InputRequest, Lasting, Question, Scope, Verdict
from toolcrib.result import ToolResult
from toolcrib.sink import EventSink
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.approver import Approving
from toolcrib.toolbox.decide import Decider
from toolcrib.toolbox.forgotten_await import drop_later_asks
from toolcrib.toolbox.nested import NestedRun
from toolcrib.toolbox.operator_log import Mask
from toolcrib.toolbox.person_input import PersonInput
from toolcrib.toolbox.policy import PolicyRequest, Verb
from toolcrib.toolbox.resources import base_folder
from toolcrib.toolbox.threads import Workers

if TYPE_CHECKING:
    from toolcrib.access import Access
    from toolcrib.audit import AuditLog
    from toolcrib.toolbox.listing import ToolLists
    from toolcrib.toolbox.report import Record
    from toolcrib.toolbox.suspensions import Suspensions
    from toolcrib.toolbox.tool_list import ToolList

__all__ = ["ContextHost", "InnerCall"]

T = TypeVar("T")

InnerCall = Callable[[ToolCall, CallKey, Any, "Record | None"], Awaitable[ToolResult]]
"""Walks a call that a tool makes along the path of the toolbox: the call, its key, dependencies, a recorder."""

NOBODY = "This needs approval and nobody could be asked: {}. No person has refused it."
NO_REPLY = (
    "Nobody answered. Go on with what you know: choose what is easiest to take back, and say at the end what "
    "you assumed."
)
MAX_DEPTH = 16  # calls within calls within calls
MAX_NESTED = 5  # runs within calls of runs; an agent may be its own tool


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of a call for which its tool asks permission, as `Context.ask` describes it; its texts are masked."""

    action: str
    patterns: tuple[str, ...]
    accesses: tuple[Access, ...] | None
    details: str
    person_only: bool
    remembered_only: bool


class ContextHost:
    """Implements `toolcrib.context.Host`; the toolbox itself is out of a tool's reach."""

    __slots__ = (
        "_approving",
        "_audit",
        "_decider",
        "_mask",
        "_sink",
        "_workers",
        "inner_call",
        "input",
        "nested_box",
        "suspensions",
        "tool_lists",
    )

    # Set where the path is made, which itself needs a host.
    inner_call: InnerCall
    suspensions: Suspensions
    tool_lists: ToolLists
    nested_box: Callable[[Any, str, Effect], Any]

    def __init__(
        self,
        sink: EventSink,
        decider: Decider,
        approving: Approving,
        workers: Workers,
        audit: AuditLog | None,
        mask: Mask,
    ) -> None:
        self._sink = sink
        self._decider = decider
        self._approving = approving
        self._workers = workers
        self._audit = audit
        self._mask = mask
        self.input = PersonInput(approving, decider, mask)

    def report(self, ctx: Context[Any], named: dict[str, Any]) -> None:
        if self._sink:
            state = CallState.DOING if type(ctx) is Context else CallState.WAIT
            self._sink.emit(ctx.key.run, StatusChanged(ctx.key, ctx.tool, state, **_reportable(**named)))

    async def ask(
        self,
        ctx: Context[Any],
        action: str,
        patterns: tuple[str, ...],
        *,
        accesses: tuple[Access, ...] | None,
        details: str,
        person_only: bool,
        remembered_only: bool,
    ) -> None:
        mask = self._mask
        step = _Step(
            mask(action), tuple(map(mask, patterns)), accesses, mask(details), person_only, remembered_only
        )
        why, refusal = "", None
        try:
            why = await self._allowed(ctx, step)
        except ToolError as refused:
            refusal = refused
        if self._audit is not None and not (remembered_only and refusal):
            said = why or (refusal.message if refusal else "")
            problem = await self._audit.step(ctx.key, ctx.tool, step.action, said, allowed=refusal is None)
            if problem and refusal is None:
                raise ToolError(f"Not done: {problem}.")
        if refusal is not None:
            drop_later_asks(ctx)
            raise refusal
        if (suspension := self._decider.runs.suspension(ctx.key.run)) is not None:
            suspension.journal(ctx).acted = True

    async def _allowed(self, ctx: Context[Any], step: _Step) -> str:
        """The rule or person that allows the step. Raises ToolError, with the model's message, if nobody does."""
        decider, definition, ready = self._decider, ctx._definition, ctx._deadline.ready
        # A tool that asks is about to do more than read, whatever it declared for the rest of its work.
        effect = max(definition.facts.effect, Effect.WRITE)
        taint, folder = decider.runs.provenance(ctx.key.run).taint, base_folder(ready.tool)
        request = PolicyRequest(
            definition.facts, effect, None, step.action, step.patterns, taint, step.accesses, folder=folder
        )
        decision = decider.policy.decide(request)
        if decision.verb is Verb.DENY:
            raise ToolError(f"Not allowed: {step.action}: {decision.reason}.")
        if decision.verb is Verb.ALLOW and not step.person_only:
            return decision.rule or "its effect is allowed"
        if not decision.strict and not step.person_only and ctx.approved and request.free:
            return "it belongs to the call, which was approved"
        # Permissions that only a person gives are remembered under their own identity: no other "always" covers them.
        kind, subject = ("permission", definition.facts) if step.person_only else ("ask", definition)
        mark = fingerprint(definition.identity, [kind, step.action, list(step.patterns)])
        identity = fingerprint(definition.identity, kind) if step.person_only else definition.identity
        if not decision.strict and decider.approvals.covers_step(ready, subject, mark, identity):
            return "approved before"
        if step.remembered_only and self._approving.approver is not None:
            raise ToolError(f"Nobody has allowed this for good: {step.action}.")
        if step.remembered_only:
            raise ToolError(NOBODY.format(step.action))
        question = Question(
            key=ctx.key,
            tool=ctx.tool,
            action=step.action,
            reason="only a person may allow it"
            if step.person_only and not decision.strict
            else decision.reason,
            arguments={},
            effect=effect.label,
            fingerprint=mark,
            patterns=step.patterns,
            preview=step.details,
            digest=fingerprint("details", step.details) if step.details else "",  # a yes is to what was shown
            strict=decision.strict,
            lastings=decider.approvals.lastings(),
            title=definition.facts.title,
        )
        answer = await self._yes_to(ctx, question)
        if answer.verdict is Verdict.ALWAYS:
            exactly = replace(answer, scope=Scope.ARGUMENTS) if step.person_only else answer
            decider.approvals.add(question, exactly, subject, identity, ready)
        return f"approved by {answer.by or 'a person'}"

    async def _yes_to(self, ctx: Context[Any], question: Question) -> Answer:
        """The answer that allows a step. Raises ToolError if it is no, or if nobody can be asked."""
        suspension = self._decider.runs.suspension(ctx.key.run)
        if suspension is not None:
            answer: Answer | None = (await self.input.answered_later(ctx, [question], suspension))[0]
        else:
            with ctx._deadline.paused():
                answer = await self._approving.ask(question)
        if answer is None:
            raise ToolError(NOBODY.format(question.action))
        if not answer.allows:
            said = f" They say: {answer.message}" if answer.message else ""
            raise ToolError(f"The user rejected this step: {question.action}.{said}")
        return answer

    async def ask_user(self, ctx: Context[Any], text: str, options: Iterable[str], several: bool) -> Answer:
        reply = (await self.input.ask(ctx, [InputRequest(text, tuple(options), several)]))[0]
        if reply is None:
            raise ToolError(NO_REPLY)
        if not reply.allows:
            said = f" They say: {reply.message}" if reply.message else ""
            raise ToolError(f"The user does not want to answer this.{said} Do not ask it again.")
        return reply

    async def ask_inputs(self, ctx: Context[Any], requests: Sequence[InputRequest]) -> list[Answer | None]:
        return await self.input.ask(ctx, requests)

    def saved_state(self, ctx: Context[Any]) -> Any:
        suspension = self._decider.runs.suspension(ctx.key.run)
        return None if suspension is None else suspension.journal(ctx).state

    def save_state(self, ctx: Context[Any], state: Any) -> None:
        suspension = self._decider.runs.suspension(ctx.key.run)
        if suspension is not None:
            suspension.save_state(ctx, state)

    async def _resumed_call(
        self, call: ToolCall, key: CallKey, deps: Any, record: Record | None
    ) -> ToolResult:
        return await self.suspensions.go_on(key, deps, record)

    def remembered_approvals(self, ctx: Context[Any]) -> list[tuple[tuple[str, ...], float]]:
        definition = ctx._definition
        identity = fingerprint(definition.identity, "permission")
        known = self._decider.approvals.of_steps(ctx._deadline.ready, definition.facts, identity)
        kept = [item for item in known if item.patterns]
        return [(item.patterns, 0.0 if item.lasting is Lasting.RUN else item.at) for item in kept]

    def note(self, ctx: Context[Any], words: str) -> None:
        if self._sink:
            self._sink.emit(ctx.key.run, Notice(self._mask(words), tool=ctx.tool))

    async def call(self, ctx: Context[Any], name: str, arguments: dict[str, Any]) -> ToolResult:
        if self._sink.depth(ctx.key.run) >= MAX_DEPTH:
            return model_messages.too_deep(name, MAX_DEPTH)
        # The inner calls are a run of their own, whose parent is the run of the outer call. That call closes it.
        run = self._decider.runs.open_inner(ctx.key, ctx._deadline)
        ctx._inner += 1
        call, key, runs = ToolCall(name, arguments), CallKey(run, 0, ctx._inner), self._decider.runs
        suspension = runs.suspension(ctx.key.run)
        if suspension is None:
            try:
                return await self.inner_call(call, key, ctx.deps, None)
            finally:
                if ctx._host is None:  # the outer call could not wait for this one, and has closed its run
                    runs.close_inner(ctx.key)
        walk = self.inner_call if key not in suspension.saved else self._resumed_call
        result = await suspension.inner_call(ctx, call, key, walk)
        if result.outside:  # also where it was taken in before the run was suspended
            runs.add_taint(run, name)
        return result

    async def call_all(
        self, ctx: Context[Any], calls: list[tuple[str, dict[str, Any]]], from_model: bool
    ) -> list[ToolResult]:
        if self._sink.depth(ctx.key.run) >= MAX_DEPTH:
            return [model_messages.too_deep(name, MAX_DEPTH) for name, _ in calls]
        runs = self._decider.runs
        run = runs.open_inner(ctx.key, ctx._deadline)
        first, made = ctx._inner + 1, [ToolCall(name, arguments) for name, arguments in calls]
        ctx._inner += len(calls)
        keys = [CallKey(run, 0, first + index) for index in range(len(made))]
        shown = await self.tool_lists.current(ctx.key.run, ctx.deps) if from_model else None
        if from_model:
            self._count(ctx, keys)
        walk = partial(self._turn, ctx, made, keys, shown)
        suspension = runs.suspension(ctx.key.run)
        if suspension is None:
            try:
                return await walk({}, None)
            finally:
                if ctx._host is None:
                    runs.close_inner(ctx.key)
        results = await suspension.inner_turn(ctx, made, keys, walk)
        for (name, _), result in zip(calls, results, strict=True):
            if result.outside:
                runs.add_taint(run, name)
        return results

    def _count(self, ctx: Context[Any], keys: list[CallKey]) -> None:
        """Count calls that a model chose in the account of the run. ToolError if its budget does not cover them."""
        runs = self._decider.runs
        account, suspension = runs.account(ctx.key.run), runs.suspension(ctx.key.run)
        if suspension is not None:  # what was counted before the run waited is not counted again
            keys = [key for key in keys if not suspension.knows(ctx, key)]
        if account is None or not keys:
            return
        from toolcrib.messages import Usage

        account.add(Usage(calls=len(keys)))
        if spent := account.spent():
            raise ToolError(f"Nothing was run: {spent}.")

    async def _turn(
        self,
        ctx: Context[Any],
        calls: list[ToolCall],
        keys: list[CallKey],
        shown: ToolList | None,
        done: Mapping[int, ToolResult],
        record: Record | None,
    ) -> list[ToolResult]:
        """Run calls that a tool makes at one time, like those of a turn; `done` are results that some have already.

        `shown` is the list of tools from which the model chose, where a model chose these calls.
        """
        from toolcrib.toolbox.turn import TurnCalls

        if not calls:
            return []
        return await TurnCalls(
            self.suspensions.path, calls, keys[0], tool_list=shown, streams={}, early=None, deps=ctx.deps,
            timeout=None, record=record, done=done, suspensions=self.suspensions,
        ).run()  # fmt: skip

    def suspends(self, ctx: Context[Any]) -> bool:
        return self._decider.runs.suspension(ctx.key.run) is not None

    def account(self, ctx: Context[Any]) -> Any:
        return self._decider.runs.account(ctx.key.run)

    def nested_run(self, ctx: Context[Any], box: Any, *, outlives: bool = False) -> NestedRun:
        runs = self._decider.runs
        if self._sink.depth(ctx.key.run) >= 2 * MAX_NESTED:
            raise ToolError(f"Nothing was done: agents may call agents {MAX_NESTED} deep at most.")
        inner = runs.open_inner(ctx.key, ctx._deadline)
        ctx._inner += 1
        run = runs.open_nested(CallKey(inner, 0, ctx._inner), runs.owner(inner) if outlives else inner)
        made = self.nested_box(box, run, ctx._definition.facts.effect)
        made.suspensions.begin_within(run)
        if made.tracks_taint and not self._decider.tracks_taint:
            runs.add_taint(run, ctx.tool)  # nobody knows what the run read so far
        return NestedRun(run, made, runs.account(ctx.key.run))

    def of_run(self, ctx: Context[Any], make: Callable[[Callable[[Event], None]], T]) -> T:
        runs, sink = self._decider.runs, self._sink
        run = runs.owner(ctx.key.run)

        def emit(event: Event) -> None:
            if sink:
                sink.emit(run, event)

        return runs.owned.get(run, make, emit)

    def run(self, ctx: Context[Any], work: Coroutine[Any, Any, T]) -> T:
        import asyncio
        from concurrent.futures import CancelledError

        if ctx._loop is None:
            work.close()
            raise ToolError("ctx.run(...) is for sync tools on a worker thread; await the work instead.")

        async def tracked() -> T:
            task = asyncio.current_task()
            ctx._waiting.add(task)
            try:
                ctx.check_cancelled()
                return await work
            finally:
                ctx._waiting.discard(task)

        try:
            with self._workers.waiting():
                following = tracked()
                try:
                    future = asyncio.run_coroutine_threadsafe(following, ctx._loop)
                except RuntimeError:  # the loop of a call that was given up is closed by now
                    following.close()
                    raise Cancelled(f"the call of {ctx.tool} was cancelled") from None
                return future.result()
        except CancelledError:
            raise Cancelled(f"the call of {ctx.tool} was cancelled") from None
        finally:
            if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:  # cancelled before it began
                work.close()


def _reportable(tip: Any, progress: Any, params: Any, result: Any) -> dict[str, Any]:
    """The report of a tool in the types that listeners expect, so that a wrong report cannot break the call."""
    known = isinstance(progress, int | float) and math.isfinite(progress)
    return {
        "tip": tip if tip is None or isinstance(tip, str) else str(tip),
        "progress": progress if known else None,
        "params": {str(name): value for name, value in params.items()} if isinstance(params, dict) else None,
        "result": result,
    }
