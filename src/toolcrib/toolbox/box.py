"""The toolbox: a façade over the registry and the path that calls take, and the one place that composes their parts.

`path.py` has the order of the steps of a call; each step has a module of its name.
"""

from __future__ import annotations

import copy
import itertools
import os
import random
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from toolcrib.call import CallKey, ToolCall, new_key
from toolcrib.effect import Effect
from toolcrib.errors import check_seconds
from toolcrib.events import Event
from toolcrib.facts import MaxOutput
from toolcrib.middleware import ExecuteStep, PrepareStep, as_steps
from toolcrib.prepared import Pending, Prepared
from toolcrib.question import Answer, Question
from toolcrib.result import ToolResult
from toolcrib.sink import EventSink
from toolcrib.toolbox.approvals import Approvals, ApprovalStorage
from toolcrib.toolbox.approver import Approving
from toolcrib.toolbox.ask import Questions
from toolcrib.toolbox.clocks import with_fallback
from toolcrib.toolbox.context_host import ContextHost
from toolcrib.toolbox.decide import Decider
from toolcrib.toolbox.dry_run import DryRuns
from toolcrib.toolbox.entered_toolsets import EnteredToolsets
from toolcrib.toolbox.given import check_call, check_prepared, listed_calls
from toolcrib.toolbox.listing import ToolLists
from toolcrib.toolbox.masking import masking_of, nested_masking
from toolcrib.toolbox.operator_log import Mask, OperatorLog, mask_of
from toolcrib.toolbox.options import AutonomyName, CallOptions, Deps, check_options
from toolcrib.toolbox.path import CallPath
from toolcrib.toolbox.policy import Approver, Policy, as_policy
from toolcrib.toolbox.prepare import Preparation
from toolcrib.toolbox.preview import Previews
from toolcrib.toolbox.registry import Registry
from toolcrib.toolbox.report import Record, Report
from toolcrib.toolbox.resolve import Resolver
from toolcrib.toolbox.reviewer import Reviewer
from toolcrib.toolbox.runaway import RunawayCalls
from toolcrib.toolbox.runs import Limiter, Runs, limiter_of
from toolcrib.toolbox.stats import Statistics
from toolcrib.toolbox.suspensions import Suspensions
from toolcrib.toolbox.telemetry import Telemetry
from toolcrib.toolbox.threads import Portal, Workers, end_idle_threads
from toolcrib.toolbox.tool_list import ToolList
from toolcrib.toolbox.watching import Watched
from toolcrib.toolbox.with_runs import WithRuns
from toolcrib.toolset import ToolLike, Toolset, is_toolset

if TYPE_CHECKING:
    from pathlib import Path

    from toolcrib.audit import AuditLog
    from toolcrib.rules.limits import Limit
    from toolcrib.rules.rule import Rule
    from toolcrib.secrets import SecretStore
    from toolcrib.toolbox.call_stream import CallStream
    from toolcrib.toolbox.early_start import EarlyStart
    from toolcrib.toolbox.execute import Executor
    from toolcrib.toolbox.restore import QuestionsOnce

__all__ = ["Toolbox"]

T = TypeVar("T")

TIMEOUT = 600.0  # seconds: long enough for a test suite, short enough to be noticed


class Toolbox(Watched, WithRuns, DryRuns, Generic[Deps]):
    """A registry of tools and the path that their calls take; safe to share between threads and loops.

    Args:
        tools: Tool classes, Tool instances, `@tool` functions, ToolFactories, or Toolsets.
        autonomy: "read_only", "supervised" (what changes something asks the `approver`), "sandboxed" (what is
            confined and can be undone runs) or "full".
        policy: Decides on calls, in place of `autonomy`: a `rules.RulePolicy`, or a Policy of your own.
        approver: A function from a Question to an Answer, sync or async. Without one, what has to be asked is refused.
        reviewer: Says yes to calls that would ask the approver, or passes them on; never where a person must decide.
        answer_timeout: Seconds that the approver has for an answer; then the call is refused.
        approvals: Where approvals are kept that outlast a run.
        audit: The log in which every decision and call is noted.
        secrets: What `<secret_ref:NAME>` stands for in parameters that a tool declared for secrets; the values are
            masked in all that tools give.
        limits: How often tools may run, as `rules.Limit`.
        project: The folder for which approvals of scope "project" hold.
        deps: What tools are handed as `ctx.deps`.
        timeout: Seconds that a call may take if its tool declares no timeout.
        max_output: How much of a text result a model is shown if the tool does not declare it.
        overflow: A folder below which outputs that are too long are kept whole.
        on_event: Called with every event, on a thread of its own; the end of `async with box` waits up to 5 s for it.
        around_prepare: Middleware around the preparation of calls.
        around_execute: Middleware around the execution of calls.
        override: A tool may replace another of the same name.
        builtin: Tools that those in `tools` may replace by their names.
        tracer: An OpenTelemetry tracer, in place of the global one.
        meter: An OpenTelemetry meter, in place of the global one.
        record_content: Spans contain arguments and results, too.
        grace: Seconds that a call has to stop after its deadline, before it counts as running on.
        clock: Gives the time of events and approvals, in seconds since the epoch.
        timer: Measures durations.
        random: Spreads the delays of retries.

    >>> import asyncio
    >>> from toolcrib import Effect, Toolbox, tool
    >>> @tool(effect=Effect.READ, secrets=())
    ... def add(a: int, b: int) -> int:
    ...     "Add two numbers."
    ...     return a + b
    >>> box = Toolbox([add])
    >>> box.call_sync("add", {"a": 1, "b": "2"}).text
    '3'
    """

    def __init__(
        self,
        tools: Iterable[ToolLike | Toolset] = (),
        *,
        autonomy: AutonomyName = "supervised",
        policy: Policy | None = None,
        approver: Approver | None = None,
        reviewer: Reviewer | None = None,
        answer_timeout: float | None = None,
        approvals: ApprovalStorage | None = None,
        audit: AuditLog | None = None,
        secrets: SecretStore | None = None,
        limits: Limiter | Iterable[Limit] | None = None,
        project: Path | None = None,
        deps: Deps | None = None,
        timeout: float = TIMEOUT,
        max_output: MaxOutput = MaxOutput(),  # noqa: B008 - frozen
        overflow: Path | None = None,
        on_event: Callable[[Event], Any] | None = None,
        around_prepare: Iterable[PrepareStep] = (),
        around_execute: Iterable[ExecuteStep] = (),
        override: bool = False,
        builtin: Iterable[ToolLike] = (),
        tracer: Any = None,
        meter: Any = None,
        record_content: bool = False,
        grace: float = 5.0,
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.perf_counter,
        random: Callable[[], float] = random.random,
    ) -> None:
        check_options(
            tools=tools, approver=approver, max_output=max_output, approvals=approvals, audit=audit,
            overflow=overflow, secrets=secrets,
        )  # fmt: skip
        check_seconds("", timeout=timeout, answer_timeout=answer_timeout, grace=grace or None)
        self.deps = deps
        self.run = os.urandom(16).hex()
        self._count = itertools.count()
        clock, timer = with_fallback(clock, time.time), with_fallback(timer, time.perf_counter)
        self.sink = EventSink(clock)
        self.masking = masking_of(secrets, self.sink) if secrets is not None else None
        self._mask: Mask = mask_of(self.masking)
        self.registry = Registry(override=override, grace=grace, mask=self._mask)
        self._limiter = limiter_of(limits)
        self._audit = audit
        self._runs = Runs(self.sink, self._mask)
        self._approvals = Approvals(
            self._runs, storage=approvals, project=str(project or ""), clock=clock, mask=self._mask
        )
        self._operator = OperatorLog(self.sink, self._mask)
        self._workers, self._large_results = Workers(), Workers(1)
        end_idle_threads(self, self._workers, self._large_results)
        self._approving = Approving(
            approver, answer_timeout, self.sink, self._operator, self._workers, grace, self._runs.clocks
        )
        self._approving.use_reviewer(reviewer, self._runs, self._mask)
        self._stats = Statistics()
        self._report = Report(self.sink, self._stats, self._operator, self._mask, self.masking, audit)
        self._runaway = RunawayCalls()
        self._steps = as_steps(around_prepare, around_execute)
        self.telemetry = Telemetry(tracer, meter, record_content)
        self._timeout = timeout
        self._max_output, self._overflow, self._grace = max_output, overflow, grace
        self._timer, self._random = timer, random
        self._toolsets = EnteredToolsets(self.registry)
        self._compose_path(as_policy(policy if policy is not None else autonomy))
        for item in tools:
            self.add(item)
        for supplied in builtin:
            self.registry.add(supplied, builtin=True)
        if on_event is not None:
            self.subscribe(on_event)

    def _compose_path(self, policy: Policy) -> None:
        """Make the parts that depend on the policy, and hand each what it needs. A restricted box has its own."""
        self._portal = Portal()
        sink, masking, operator, mask = self.sink, self.masking, self._operator, self._mask
        decider = self._decider = Decider(policy, self._approvals, self._runs, masking)
        host = self._host = ContextHost(sink, decider, self._approving, self._workers, self._audit, mask)
        resolver = Resolver(self.registry, host, operator)
        preparation = Preparation(
            resolver, decider, sink, masking, self._steps.around_prepare, self._max_output, self._overflow
        )
        previews = self._previews = Previews(self._workers, operator, mask)
        questions = Questions(self._approving, preparation, decider, self.registry, previews, operator, mask)

        admits = self._limiter is not None or self._audit is not None

        def make_executor() -> Executor:
            # They need asyncio: loaded for the first call.
            from toolcrib.toolbox.execute import Execution, Executor

            execution: Callable[[], Execution] = Execution
            if admits:
                from toolcrib.toolbox.admission import Admission

                execution = Admission(self._limiter, self._audit, self._runs, mask).execution
            return Executor(
                host, decider, sink, masking, self._stats, self._workers, self._large_results,
                self._runaway, self._max_output, self._overflow, self._grace, self._random, execution,
            )  # fmt: skip

        path = self._path = CallPath(
            preparation, questions, decider, self._report, self._runs, self._runaway, operator, make_executor,
            steps=self._steps.around_execute, telemetry=self.telemetry, timeout=self._timeout, grace=self._grace,
            timer=self._timer, at_once=not admits and not self._steps.around_execute,
        )  # fmt: skip
        host.nested_box = lambda box, run, most: box._within(self, run, most)
        self.suspensions = host.suspensions = Suspensions(path, self._limiter)
        host.inner_call = lambda call, key, deps, record: path.call((call, key, None), deps, None, record)
        self._tool_lists = host.tool_lists = ToolLists(self.registry, decider, host, operator, self._runs)

    # -- what is in the box

    def add(self, tool: ToolLike | Toolset, *, override: bool = False) -> None:
        """Add a tool or a toolset; ValueError when the name is taken, unless `override`."""
        if is_toolset(tool):
            self.registry.add_toolset(tool)
        else:
            self.registry.add(tool, override=override)

    def remove(self, name: str) -> None:
        """Remove a tool; calls that were offered it are refused by name. KeyError when there is none."""
        self.registry.remove(name)

    async def names(self) -> list[str]:
        """The names of all tools, sorted."""
        return await self.registry.names()

    async def tool_list(self, *, run: str = "", deps: Deps | None = None) -> ToolList:
        """The tools that a model is shown this turn: those that the policy shows, with their descriptions as of now.

        Tools that cannot be compiled are set aside with a warning; the rest go on. Without dynamic tools, the
        same list is given again until something changes.
        """
        return await self._tool_lists.current(run, self._deps(deps))

    @property
    def policy(self) -> Policy:
        """The policy that decides on calls. A new one holds from the next decision on, also in restricted boxes."""
        return self._decider.policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        self._decider.use(as_policy(policy))

    @property
    def approver(self) -> Approver | None:
        """The approver that is asked. Setting another approver counts from the next question on."""
        return self._approving.approver

    @approver.setter
    def approver(self, approver: Approver | None) -> None:
        self._approving.approver = approver

    @property
    def timeout(self) -> float:
        """The timeout in seconds of calls whose tool declares none."""
        return self._timeout

    def restricted(
        self,
        tools: Collection[str] | None = None,
        *,
        rules: Iterable[Rule] = (),
        autonomy: AutonomyName | None = None,
    ) -> Toolbox[Deps]:
        """A toolbox for a helper agent that may do no more: fewer tools, more deny and ask rules, less autonomy.

        All else is shared: approver, approvals, limits, audit, secrets, events, provenance of what came from outside.
        """
        from toolcrib.toolbox.restrict import Restriction

        restriction = Restriction(tools, rules, autonomy)
        made = copy.copy(self)
        made._compose_path(restriction.of(policy := self.policy))
        self._decider.followers.add(made._decider, restriction.of_any, policy)
        return made

    def _within(self, outer: Toolbox[Any], run: str, most: Effect) -> Toolbox[Deps]:
        """These tools for a run within a call of another box, which may do at most what both boxes may do.

        Approver, approvals, audit log and events are the other box's; limits and middleware are those of both.
        """
        from toolcrib.toolbox.nested import BothPolicies, both_limiters

        made = copy.copy(self)
        made.masking, made.sink = nested_masking(self.masking, outer.masking, outer.sink)
        made._mask = mask_of(made.masking)
        made._limiter = both_limiters(self._limiter, outer._limiter, run)
        made._audit = outer._audit if outer._audit is not None else self._audit
        made._runs, made._approving = outer._runs, outer._approving
        made._approvals = outer._approvals.masked(made._mask)
        made._operator = OperatorLog(made.sink, made._mask)
        made._report = Report(made.sink, self._stats, made._operator, made._mask, made.masking, made._audit)
        made._steps = self._steps.without(outer._steps).within(outer._steps)
        made.telemetry = outer.telemetry if outer.telemetry.given else self.telemetry
        both = partial(BothPolicies, outer=outer._decider, most=most)
        made._compose_path(both(policy := self.policy))
        self._decider.followers.add(made._decider, both, policy)
        return made

    # -- the path

    async def prepare(
        self,
        call: ToolCall,
        *,
        key: CallKey | None = None,
        tool_list: ToolList | None = None,
        stream: CallStream | None = None,
        deps: Deps | None = None,
    ) -> Prepared:
        """Resolve, decode, validate, decide and precheck a call, without effects: Ready, Pending or Refused."""
        check_call(call)
        key = CallKey(self.run, 0, next(self._count)) if key is None else key
        prepared = await self._path.preparation.prepare(call, key, tool_list, stream, self._deps(deps))
        if type(prepared) is Pending:
            self._once.remember(prepared)
        return prepared

    @cached_property
    def _once(self) -> QuestionsOnce:
        from toolcrib.toolbox.restore import QuestionsOnce

        return QuestionsOnce()

    async def execute(
        self,
        prepared: Prepared,
        answer: Answer | None = None,
        *,
        deps: Deps | None = None,
        timeout: float | None = None,
        record: Record | None = None,
    ) -> ToolResult:
        """Run a prepared call; a Pending one needs an `answer` that allows it, and is rechecked.

        Gives exactly one result, which `record` is called with before it is reported; executing the same
        prepared call again gives the same result and runs nothing. Only cancellation of the caller is raised.
        """
        check_prepared(prepared, answer)
        check_seconds("", timeout=timeout)
        return await self._path.execute(prepared, answer, self._deps(deps), timeout, record)

    def call(
        self,
        call: ToolCall | str,
        arguments: dict[str, Any] | str | None = None,
        *,
        key: CallKey | None = None,
        tool_list: ToolList | None = None,
        deps: Deps | None = None,
        timeout: float | None = None,
        record: Record | None = None,
    ) -> Coroutine[Any, Any, ToolResult]:
        """Prepare, ask if need be, and execute a call, given as a ToolCall or as name and arguments; to be awaited."""
        if isinstance(call, str):
            call = ToolCall(call, arguments if arguments is not None else "")
        elif arguments is not None or not isinstance(call, ToolCall):
            check_call(call, arguments)
        if timeout is not None:
            check_seconds("", timeout=timeout)
        key = new_key((self.run, 0, next(self._count))) if key is None else key
        return self._path.call((call, key, tool_list), self.deps if deps is None else deps, timeout, record)

    def call_sync(
        self,
        call: ToolCall | str,
        arguments: dict[str, Any] | str | None = None,
        **options: Unpack[CallOptions[Deps]],
    ) -> ToolResult:
        """`call`, for code without an event loop; RuntimeError where one is running."""
        return self.run_sync(self.call(call, arguments, **options))

    async def call_turn(
        self,
        calls: Iterable[ToolCall],
        *,
        run: str = "",
        turn: int = 0,
        tool_list: ToolList | None = None,
        streams: Mapping[int, CallStream] | None = None,
        early: EarlyStart | None = None,
        done: Mapping[int, ToolResult] = MappingProxyType({}),
        deps: Deps | None = None,
        timeout: float | None = None,
        record: Record | None = None,
    ) -> list[ToolResult]:
        """Run the calls of one turn: results in their order, exactly one each.

        Calls that only read run side by side and never overtake an earlier one that changes something.
        `streams` are their streams by index (`open_call`), `early` those that started early (`early_start`).
        `done` are the results that calls of a turn that goes on have already.
        """
        from toolcrib.toolbox.turn import TurnCalls

        calls = listed_calls(calls)
        check_seconds("", timeout=timeout)
        first, given = CallKey(run, turn, 0), self._deps(deps)
        return await TurnCalls(
            self._path, calls, first, tool_list=tool_list, streams=streams or {}, early=early, deps=given,
            timeout=timeout, record=record, done=done, suspensions=self.suspensions,
        ).run()  # fmt: skip

    async def settle(
        self,
        prepared: Prepared,
        *,
        deps: Deps | None = None,
        timeout: float | None = None,
        record: Record | None = None,
    ) -> ToolResult:
        """Execute a prepared call, asking the approver first if it is Pending."""
        check_prepared(prepared)
        check_seconds("", timeout=timeout)
        return await self._path.finish(prepared, self._deps(deps), timeout, record, kept=True)

    async def preview(self, pending: Pending) -> Pending:
        """The same call, with a preview in its question: a diff, the parts of a command. Nothing is changed.

        Preview a question before you store it or put it elsewhere: what it shows is checked again after the answer.
        """
        check_prepared(pending)
        return await self._previews.with_preview(pending)

    async def ask(self, question: Question) -> Answer | None:
        """Put a question to the approver; None when there is none, it fails, or it gives no answer."""
        return await self._approving.ask(question)

    async def restore(self, data: dict[str, Any]) -> Prepared:
        """Make a prepared call of what `prepared_to_json` wrote, here or in another process.

        The call is prepared anew. If the tool or the arguments are not what was saved, it is Refused. A question that
        is restored twice here, or was asked here, runs once.
        ValueError for a format that this version cannot read.
        """
        from toolcrib.toolbox.restore import restored_call

        restored = await restored_call(data, self._path.preparation, self._decider, self.deps)
        return self._once.once(restored)

    async def open_call(self, name: str, key: CallKey) -> CallStream:
        """Begin a call whose arguments are still streaming in."""
        from toolcrib.toolbox.call_stream import open_call_stream

        return await open_call_stream(self.registry, self.sink, self._host, name, key)

    def early_start(
        self, run: str, turn: int, tool_list: ToolList | None, deps: Deps | None = None
    ) -> EarlyStart:
        """Start the reading calls of a turn while the model still writes; `call_turn(early=...)` takes them over."""
        from toolcrib.toolbox.early_start import EarlyStart

        return EarlyStart(self._path, self.registry, run, turn, tool_list, self._deps(deps))

    # -- its life

    async def __aenter__(self) -> Toolbox[Deps]:
        """Enter the toolsets; a box that is entered several times leaves them with the last."""
        await self._toolsets.enter()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._toolsets.leave(partial(self._runs.owned.close, self.run))
        await self.sink.delivered()

    def run_sync(self, work: Coroutine[Any, Any, T]) -> T:
        """Run async work on the box's portal thread; RuntimeError where a loop is already running."""
        return self._portal.run(work)

    async def aclose(self) -> None:
        """End the thread of `call_sync` and `run_sync`, and close what was opened there. The box can be used again."""
        try:
            await self._runs.owned.close(self.run)
        finally:
            await self._portal.aclose()
        await self.sink.delivered()

    def _deps(self, deps: Deps | None) -> Deps | None:
        return deps if deps is not None else self.deps
