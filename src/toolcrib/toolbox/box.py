"""The toolbox: the registry, and one path from a ToolCall to a ToolResult."""

from __future__ import annotations

import itertools
import json
import os
import random
import time
import warnings
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from toolcrib.call import CallKey, CallState, ToolCall
from toolcrib.context import Context
from toolcrib.errors import ErrorCode, traceback_text
from toolcrib.events import CallFinished, Event, Notice, StatusChanged
from toolcrib.facts import MaxOutput
from toolcrib.prepared import Pending, Prepared, Ready, Refused, ResolvedTool
from toolcrib.question import Answer, Question, Verdict
from toolcrib.result import ToolResult
from toolcrib.sink import CallbackSubscription, EventLog, EventSink, Subscription
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.approvals import Approvals, ApprovalStorage
from toolcrib.toolbox.ask import answered, ask, bind, previewed, restored, stale
from toolcrib.toolbox.context_host import ContextHost
from toolcrib.toolbox.policy import Approver, Policy, PolicyRequest, accesses_of, as_limiter, as_policy
from toolcrib.toolbox.prepare import decode, judged
from toolcrib.toolbox.provenance import ProvenanceTracker
from toolcrib.toolbox.registry import Registry, close_tool
from toolcrib.toolbox.resolve import resolve
from toolcrib.toolbox.runaway import RunawayCalls
from toolcrib.toolbox.stats import ToolStats, hint
from toolcrib.toolbox.tool_list import ToolList, make_tool_list
from toolcrib.toolset import ToolLike, Toolset, is_toolset

if TYPE_CHECKING:
    import asyncio

    from toolcrib.audit import AuditLog
    from toolcrib.rules import Limit, Rule
    from toolcrib.secrets import SecretStore
    from toolcrib.secrets.masking import Masking
    from toolcrib.toolbox.call_stream import CallStream
    from toolcrib.toolbox.execute import Execution
    from toolcrib.toolbox.threads import Portal, Workers

T = TypeVar("T")

WAIT = CallState.WAIT
MAX_ASKED = 3  # times that one call is asked about while what it rests on changes
TIMEOUT = 600.0  # seconds: long enough for a test suite, short enough to be noticed

Record = Callable[[CallKey, ToolResult], None]


class Limiter(Protocol):
    """Says when a tool may not run any more; `toolcrib.rules.RateLimits` is one."""

    def take(self, run: str, tool: str) -> str: ...
    def give_back(self, run: str, tool: str) -> None: ...
    def forget(self, run: str) -> None: ...


class Toolbox:
    """A registry of tools and the path that their calls take; safe to share between threads and loops.

    `tools` are Tool classes, Tool instances, `@tool` functions, ToolFactories, or Toolsets. `autonomy` is
    "read_only", "supervised" (the default: what changes something asks `approver`) or "full"; a `policy`
    replaces it. An approver that is silent for `answer_timeout` seconds counts as nobody. What is approved for
    longer than a run is kept in `approvals`, for the folder `project` or for the user; `audit` notes every
    decision and call. `secrets` are what `<secret_ref:NAME>` stands for in parameters that a tool declared for
    them; their values are masked in all that tools give. `limits` (`rules.Limit`) say how often tools may run.
    `timeout` (seconds) and `max_output` hold for tools that say nothing themselves. Long outputs are kept whole below
    `overflow`, if a folder is given. `on_event` is called with every event, on a thread of its own.

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
        autonomy: str = "supervised",
        policy: Policy | None = None,
        approver: Approver | None = None,
        answer_timeout: float | None = None,
        approvals: ApprovalStorage | None = None,
        audit: AuditLog | None = None,
        secrets: SecretStore | None = None,
        limits: Limiter | Iterable[Limit] | None = None,
        project: Path | None = None,
        deps: Any = None,
        timeout: float = TIMEOUT,
        max_output: MaxOutput = MaxOutput(),  # noqa: B008 - frozen
        overflow: Path | None = None,
        on_event: Callable[[Event], Any] | None = None,
        override: bool = False,
        builtin: Iterable[ToolLike] = (),
        tracer: Any = None,
        record_content: bool = False,
        grace: float = 5.0,
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.perf_counter,
        random: Callable[[], float] = random.random,
    ) -> None:
        self.registry = Registry(override=override)
        self.policy = as_policy(policy if policy is not None else autonomy)
        self.approver = approver
        self.answer_timeout = answer_timeout
        self.audit = audit
        self.limits: Limiter | None = as_limiter(limits)
        self.deps = deps
        self.timeout = timeout
        self.max_output = max_output
        self.overflow = overflow
        self.tracer = tracer
        self.record_content = record_content
        self.grace = grace
        self.timer = timer
        self.random = random
        self.run = os.urandom(16).hex()
        self._count = itertools.count()
        self.sink = EventSink(clock)
        self.masking = _masking(secrets, self.sink) if secrets is not None else None
        self.emit = self.sink.emit
        self.approvals = Approvals(
            self.sink.outermost, store=approvals, project=str(project) if project else "", clock=clock
        )
        self.host = ContextHost(self)
        self.provenance = ProvenanceTracker(self.sink.outermost)
        self._stats: dict[str, ToolStats] = {}
        self._tool_list: tuple[Any, Policy, ToolList] | None = None
        self._warned: set[str] = set()
        self.runaway_calls = RunawayCalls()
        self._workers: Workers | None = None
        self._portal: Portal | None = None
        self._stack: AsyncExitStack | None = None
        self._entered = 0
        if approver is not None and not callable(approver):
            raise TypeError(f"approver must be an async function of a Question, got {approver!r}")
        if not isinstance(tools, Iterable):
            raise TypeError(f"tools must be a list of tools; got the single {tools!r}: write [{tools!r}]")
        for item in tools:
            self.add(item)
        for supplied in builtin:
            self.registry.add(supplied, builtin=True)
        if on_event is not None:
            self.subscribe(on_event)

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

    async def tool_list(self, *, run: str = "", deps: Any = None) -> ToolList:
        """What a model is shown this turn: tools that the policy shows, described as the world is now.

        Tools that cannot be compiled are set aside with a warning; the rest go on. Without dynamic tools, the
        same list is given again until something changes.
        """
        version, kept = self.registry.version, self._tool_list
        if kept is not None and kept[0] == version and kept[1] is self.policy:
            return kept[2]
        ctx: Context[Any] = Context(self._deps(deps), key=CallKey(run, 0, 0), host=self.host)
        tool_list = await make_tool_list(self.registry, self.policy.shows, ctx)
        for name, reason in tool_list.broken.items():
            self.set_aside(run, name, reason)
        self._tool_list = None if tool_list.dynamic else (version, self.policy, tool_list)
        return tool_list

    def restricted(
        self,
        tools: Collection[str] | None = None,
        *,
        rules: Iterable[Rule] = (),
        autonomy: str | None = None,
    ) -> Toolbox:
        """A box for a helper, which may do no more: some of these tools, further deny and ask rules, less autonomy.

        All else is shared: approver, approvals, limits, audit, secrets, events, provenance of what came from outside.
        """
        from toolcrib.toolbox.restrict import restricted

        return restricted(self, tools, rules, autonomy)

    # -- the path

    async def prepare(
        self,
        call: ToolCall,
        *,
        key: CallKey | None = None,
        tool_list: ToolList | None = None,
        stream: CallStream | None = None,
        deps: Any = None,
    ) -> Prepared:
        """Resolve, decode, validate, decide and precheck a call, without effects: Ready, Pending or Refused."""
        if key is None:
            key = CallKey(self.run, 0, next(self._count))
        if self.sink.listeners and stream is None:
            self.emit(key.run, StatusChanged(key, call.name, WAIT))
        entry = self.registry.known(call.name)
        if entry is not None and entry.bound is not None and tool_list is None and stream is None:
            resolved: ResolvedTool | Refused = entry.bound
        else:
            resolved = await resolve(self, call, key, tool_list, stream, deps)
        if isinstance(resolved, Refused):
            if call.problem and not call.name:  # it never came to a name
                resolved.result = model_messages.unreadable_call("", call.problem)
            return resolved
        try:
            if call.problem:
                decoded: Any = model_messages.unreadable_call(call.name, call.problem)
            else:
                decoded = decode(call.name, call.arguments, resolved.definition, tool_list)
            if isinstance(decoded, tuple) and (self.masking is not None or resolved.definition.facts.secrets):
                decoded = self._with_secrets(call, resolved, decoded)
            if isinstance(decoded, tuple):
                mark = self.provenance.of(key.run)
                prepared = judged(call, key, resolved, decoded, self.policy, self.approvals, mark)
                if self.masking is not None and isinstance(prepared, Pending):
                    self.masking.hide(prepared.question)
            else:
                prepared = Refused(call, key, decoded)
        except BaseException as problem:  # a precheck or a policy of the user's that raised
            if isinstance(problem, KeyboardInterrupt):
                raise
            prepared = Refused(call, key, model_messages.failed(call.name), traceback_text(problem))
        if resolved.entry.owned and type(prepared) is Refused:
            await close_tool(resolved.tool)
        return prepared

    def _with_secrets(self, call: ToolCall, bound: ResolvedTool, decoded: Any) -> Any:
        """Decoded arguments as they are, or the refusal of a reference that cannot be used."""
        arguments = decoded[1]
        if isinstance(arguments, str | bytes):
            arguments = json.loads(arguments or "{}")
        from toolcrib.secrets.masking import problem_of

        problem = problem_of(self.masking, arguments, bound.definition)
        return model_messages.wrong_secret(call.name, problem) if problem else decoded

    async def execute(
        self,
        prepared: Prepared,
        answer: Answer | None = None,
        *,
        deps: Any = None,
        timeout: float | None = None,
        record: Record | None = None,
    ) -> ToolResult:
        """Run a prepared call; a Pending one needs an `answer` that allows it, and is rechecked.

        Gives exactly one result, which `record` is called with before it is reported; executing the same
        prepared call again gives the same result and runs nothing. Only cancellation of the caller is raised.
        """
        if prepared.done is not None:
            return prepared.done
        if isinstance(prepared, Refused):
            return self.settle_refused(prepared, record)
        if not prepared.claim():  # an answer that was sent twice: one runs, the other has the same result
            return await prepared.other_result()
        try:
            if isinstance(prepared, Pending):
                refusal = await answered(self, prepared, answer)
            elif isinstance(answer, Answer) and not answer.allows:  # a no that nobody asked for holds too
                refusal = model_messages.rejected(prepared.call.name, answer.message)
            else:
                refusal = await bind(self, prepared)
        except Exception as problem:  # a toolset or a policy that failed
            self.complain(f"tool {prepared.call.name} could not be checked again", traceback_text(problem))
            refusal = model_messages.failed(prepared.call.name)
        except BaseException:  # cancelled: whoever waits for the result is told
            await self.refuse(prepared, model_messages.cancelled(prepared.call.name, started=False), record)
            raise
        if refusal is None and self.runaway_calls and not await self.runaway_calls.gone(prepared, self.grace):
            refusal = model_messages.still_busy(prepared.call.name)
        bound = prepared.bound
        if refusal is not None or bound is None:
            return await self.refuse(
                prepared, refusal or model_messages.tool_changed(prepared.call.name), record
            )
        seconds = timeout or bound.definition.facts.timeout or self.timeout
        return await self._execution(self, prepared, bound, self._deps(deps), seconds, record)

    async def call(
        self,
        call: ToolCall | str,
        arguments: dict[str, Any] | str | None = None,
        *,
        key: CallKey | None = None,
        tool_list: ToolList | None = None,
        deps: Any = None,
        timeout: float | None = None,
        record: Record | None = None,
    ) -> ToolResult:
        """Prepare, ask if need be, and execute a call, given as a ToolCall or as name and arguments."""
        if isinstance(call, str):
            call = ToolCall(call, arguments if arguments is not None else "")
        elif arguments is not None:
            raise TypeError("give a ToolCall, or a name and arguments, not both")
        try:
            prepared = await self.prepare(call, key=key, tool_list=tool_list, deps=deps)
        except BaseException:  # cancelled while a factory made the tool
            lost = CallKey(self.run, 0, next(self._count)) if key is None else key
            self.settle_refused(
                Refused(call, lost, model_messages.cancelled(call.name, started=False)), record
            )
            raise
        if type(prepared) is Ready and not self.runaway_calls and (bound := prepared.bound) is not None:
            return await self._execution(
                self,
                prepared,
                bound,
                self._deps(deps),
                timeout or bound.definition.facts.timeout or self.timeout,
                record,
            )
        return await self.settle(prepared, deps=deps, timeout=timeout, record=record)

    def call_sync(
        self, call: ToolCall | str, arguments: dict[str, Any] | str | None = None, **named: Any
    ) -> ToolResult:
        """`call`, for code without an event loop; RuntimeError where one is running."""
        return self.run_sync(self.call(call, arguments, **named))

    async def call_turn(
        self, calls: Sequence[ToolCall], *, run: str = "", turn: int = 0, **named: Any
    ) -> list[ToolResult]:
        """Run the calls of one turn: results in their order, exactly one each.

        Calls that only read run side by side and never overtake an earlier one that changes something.
        Takes `tool_list`, `streams` (by index), `deps`, `timeout` and `record`, as `prepare` and `execute` do.
        """
        from toolcrib.toolbox.turn import run_turn

        return await run_turn(self, calls, run, turn, **named)

    async def settle(
        self, prepared: Prepared, *, asking: asyncio.Lock | None = None, **named: Any
    ) -> ToolResult:
        """Execute a prepared call, asking the approver first if it is Pending."""
        if not isinstance(prepared, Pending):
            return await self.execute(prepared, **named)
        answer: Answer | None = None
        try:
            for _ in range(MAX_ASKED):
                await previewed(self, prepared)
                if asking is None:
                    answer = await self.ask(prepared.question)
                else:
                    async with asking:
                        answer = await self._asked_once(prepared)
                if answer is None or not answer.allows or not await stale(self, prepared, answer):
                    break
            return await self.execute(prepared, answer, **named)
        except BaseException:
            if prepared.done is None:
                await self.refuse(
                    prepared, model_messages.cancelled(prepared.call.name, started=False), named.get("record")
                )
            raise

    async def preview(self, pending: Pending) -> Question:
        """The question of a call, with what it would do: a diff, the parts of a command. Nothing is changed.

        A question that is put elsewhere is previewed before it is stored: what it shows is looked at again after
        the answer.
        """
        return await previewed(self, pending)

    async def ask(self, question: Question) -> Answer | None:
        """Put a question to the approver; None when there is none, it fails, or it gives no answer."""
        return await ask(self, question)

    async def open_call(self, name: str, key: CallKey) -> CallStream:
        """Begin a call whose arguments are still streaming in."""
        from toolcrib.toolbox.call_stream import CallStream

        return await CallStream.open(self, name, key)

    async def restore(self, data: dict[str, Any]) -> Prepared:
        """A prepared call from what `prepared_to_json` wrote, perhaps in another process.

        The call is prepared anew. If the tool or the arguments are not what was saved, it is Refused.
        ValueError for a format that this version cannot read.
        """
        return await restored(self, data)

    # -- watching

    @overload
    def subscribe(self, listener: EventLog) -> EventLog: ...
    @overload
    def subscribe(self, listener: Callable[[Event], Any]) -> CallbackSubscription: ...
    def subscribe(self, listener: Callable[[Event], Any] | EventLog) -> CallbackSubscription | EventLog:
        """Call a plain function with every event, on a thread of its own, or keep events in an EventLog.

        What it gives back is what `unsubscribe` takes.
        """
        subscription = listener if isinstance(listener, EventLog) else CallbackSubscription(listener)
        self.sink.add(subscription)
        return subscription

    def events(self) -> Subscription:
        """A queue of all events from now on, to be read with `async for`; `unsubscribe` ends it."""
        subscription = Subscription()
        self.sink.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Any) -> None:
        self.sink.remove(subscription)

    def stats(self) -> dict[str, ToolStats]:
        """Counts and durations of each tool that was called."""
        return dict(self._stats)

    def stats_hint(self) -> str:
        """A section for the prompt that names tools that fail often or are slow; empty when there are none."""
        return hint(self._stats)

    # -- its life

    async def __aenter__(self) -> Toolbox:
        """Enter the toolsets; a box that is entered several times leaves them with the last."""
        self._entered += 1
        if self._entered == 1 and self.registry.toolsets:
            async with AsyncExitStack() as stack:
                for toolset in self.registry.toolsets:
                    await stack.enter_async_context(toolset)
                self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._entered -= 1
        if self._entered == 0 and self._stack is not None:
            stack, self._stack = self._stack, None
            await stack.aclose()

    def run_sync(self, work: Coroutine[Any, Any, T]) -> T:
        """Run async work on the box's portal thread; RuntimeError where a loop is already running."""
        if self._portal is None:
            from toolcrib.toolbox.threads import Portal

            self._portal = Portal()
        return self._portal.run(work)

    def forget(self, run: str) -> None:
        """A run is over: drop what was remembered for it (always-answers, event numbers)."""
        self.approvals.forget(run)
        self.provenance.forget(run)
        if self.limits is not None:
            self.limits.forget(run)
        self.sink.forget(run)

    # -- used by the parts of the path

    @cached_property
    def _execution(self) -> type[Execution]:
        """The second phase, loaded when the first call is run: it needs asyncio."""
        from toolcrib.toolbox.execute import Execution

        return Execution

    @property
    def workers(self) -> Workers:
        if self._workers is None:
            from toolcrib.toolbox.threads import Workers

            self._workers = Workers()
        return self._workers

    def case_of(self, ready: Ready) -> PolicyRequest:
        """What the policy decides on, for a call that was prepared."""
        assert ready.bound is not None
        taint, said = self.provenance.of(ready.key.run)
        return PolicyRequest(ready.bound.definition.facts, ready.effect, ready, taint=taint, user_texts=said)

    @property
    def tracks_taint(self) -> bool:
        """Whether the policy looks at what came from outside."""
        return getattr(self.policy, "tracks_taint", False)

    def stats_of(self, name: str) -> ToolStats:
        stats = self._stats.get(name)
        if stats is None:
            stats = self._stats[name] = ToolStats()
        return stats

    def complain(self, what: str, problem: str) -> None:
        """Tell the operator what the model is not told."""
        import logging

        logging.getLogger("toolcrib").error("%s", self.shown(f"{what}:\n{problem}"))

    def shown(self, value: Any) -> Any:
        """Text or data without secrets."""
        return value if self.masking is None else self.masking.masked(value)

    def recorded(self, record: Record, key: CallKey, result: ToolResult) -> None:
        """Hand a result over to be recorded; a recorder that fails is the operator's to know."""
        try:
            record(key, result)
        except Exception as problem:
            self.complain(f"the result of call {key} could not be recorded", traceback_text(problem))

    def settle_refused(self, refused: Refused, record: Record | None) -> ToolResult:
        """Record and report a call that will not run."""
        name, result = refused.call.name, refused.result
        if self.masking is not None:
            result = self.masking.of_result(result)
        refused.done = result
        if result.code is not None:
            stats = self.stats_of(name) if result.code is not ErrorCode.UNKNOWN_TOOL else ToolStats()
            stats.count(result, 0.0)
        if refused.problem:
            self.complain(f"tool {name} failed", refused.problem)
        if self.audit is not None:
            self.audit.refused(refused, self.shown)
        if record is not None:
            self.recorded(record, refused.key, result)
        if self.sink.listeners:
            state = CallState.ERROR if result.is_error else CallState.SUCCESS
            code = result.code.value if result.code is not None else ""
            self.emit(
                refused.key.run,
                CallFinished(refused.key, name, state, None, None, None, result, code, 0.0, refused.problem),
            )
        return result

    async def refuse(self, prepared: Ready, result: ToolResult, record: Record | None) -> ToolResult:
        """Record a prepared call as not run, and close what was made for it."""
        bound = prepared.bound
        prepared.done = refused = self.settle_refused(Refused(prepared.call, prepared.key, result), record)
        if bound is not None and bound.entry.owned:
            await close_tool(bound.tool)
        return refused

    def _deps(self, deps: Any) -> Any:
        return deps if deps is not None else self.deps

    def set_aside(self, run: str, name: str, reason: str) -> None:
        """Say once that a tool or toolset cannot be used."""
        if name not in self._warned:
            self._warned.add(name)
            what = name if name.startswith("toolset ") else f"tool {name!r}"
            reason = reason.removeprefix(f"{what}: ")
            message = self.shown(f"{what} was set aside: {reason}")
            warnings.warn(message, stacklevel=3)
            if self.sink:
                self.emit(run, Notice(message, tool=name))

    async def _asked_once(self, pending: Pending) -> Answer | None:
        """Ask, unless an "always" that came while waiting for the turn to ask covers it already."""
        bound, mark = pending.bound, pending.fingerprint
        if bound is not None and not pending.question.strict:
            identity = bound.definition.identity
            if self.approvals.covers(
                pending.key.run, bound.entry, mark, identity, lambda: accesses_of(pending)
            ):
                return Answer(Verdict.YES, by="always")
        return await self.ask(pending.question)


def _masking(store: SecretStore, sink: EventSink) -> Masking:
    """Loaded where there are secrets; whoever listens gets none either."""
    from toolcrib.secrets.events import MaskedEvents
    from toolcrib.secrets.masking import Masking

    masking = Masking(store)
    sink.mask = MaskedEvents(masking)
    return masking
