"""The parts of a toolbox, put together: what is shared with restricted toolboxes, and what goes by the policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from toolcrib.facts import MaxOutput
from toolcrib.middleware import ExecuteStep, Steps
from toolcrib.sink import EventSink
from toolcrib.toolbox.admission import admission_step
from toolcrib.toolbox.approvals import Approvals, ApprovalStorage
from toolcrib.toolbox.ask import Approving, Questions
from toolcrib.toolbox.context_host import ContextHost
from toolcrib.toolbox.decide import Decider
from toolcrib.toolbox.operator_log import Mask, OperatorLog
from toolcrib.toolbox.path import CallPath
from toolcrib.toolbox.policy import Approver, Policy
from toolcrib.toolbox.prepare import Preparation
from toolcrib.toolbox.registry import Registry
from toolcrib.toolbox.report import Report
from toolcrib.toolbox.resolve import Resolver
from toolcrib.toolbox.runaway import RunawayCalls
from toolcrib.toolbox.runs import Limiter, Runs
from toolcrib.toolbox.stats import Statistics
from toolcrib.toolbox.telemetry import telemetry_step
from toolcrib.toolbox.threads import Workers
from toolcrib.toolbox.tool_list import ToolLists

if TYPE_CHECKING:
    from toolcrib.audit import AuditLog
    from toolcrib.rules.limits import Limit
    from toolcrib.secrets import SecretStore
    from toolcrib.secrets.masking import Masking
    from toolcrib.toolbox.execute import Executor

__all__ = ["PolicyParts", "SharedParts", "limiter_of", "policy_parts", "shared_parts"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SharedParts:
    """What does not go by the policy; a restricted toolbox shares it with the toolbox that it was made of."""

    registry: Registry
    sink: EventSink
    masking: Masking | None
    mask: Mask
    audit: AuditLog | None
    limiter: Limiter | None
    runs: Runs
    approvals: Approvals
    operator: OperatorLog
    approving: Approving
    stats: Statistics
    report: Report
    workers: Workers
    runaway: RunawayCalls
    steps: Steps
    telemetry: ExecuteStep
    traced_always: bool
    timeout: float
    max_output: MaxOutput
    overflow: Path | None
    grace: float
    timer: Callable[[], float]
    random: Callable[[], float]


def shared_parts(
    *,
    override: bool,
    approver: Approver | None,
    answer_timeout: float | None,
    storage: ApprovalStorage | None,
    project: Path | None,
    audit: AuditLog | None,
    secrets: SecretStore | None,
    limiter: Limiter | None,
    steps: Steps,
    tracer: Any,
    record_content: bool,
    timeout: float,
    max_output: MaxOutput,
    overflow: Path | None,
    grace: float,
    clock: Callable[[], float],
    timer: Callable[[], float],
    random: Callable[[], float],
) -> SharedParts:
    """The shared parts, of the options of a Toolbox."""
    sink = EventSink(clock)
    masking = _masking(secrets, sink) if secrets is not None else None
    mask = masking.mask if masking is not None else _unmasked
    runs, operator, stats = Runs(sink, limiter), OperatorLog(sink, mask), Statistics()
    where = str(project) if project else ""
    return SharedParts(
        registry=Registry(override=override),
        sink=sink,
        masking=masking,
        mask=mask,
        audit=audit,
        limiter=limiter,
        runs=runs,
        approvals=Approvals(runs, storage=storage, project=where, clock=clock),
        operator=operator,
        approving=Approving(approver, answer_timeout, sink, operator),
        stats=stats,
        report=Report(sink, stats, operator, mask, masking, audit),
        workers=Workers(),
        runaway=RunawayCalls(),
        steps=steps,
        telemetry=telemetry_step(tracer, record_content, mask),
        traced_always=tracer is not None,
        timeout=timeout,
        max_output=max_output,
        overflow=overflow,
        grace=grace,
        timer=timer,
        random=random,
    )


@dataclass(frozen=True, slots=True)
class PolicyParts:
    """What goes by the policy of a toolbox."""

    decider: Decider
    host: ContextHost
    path: CallPath
    tool_lists: ToolLists


def policy_parts(shared: SharedParts, policy: Policy) -> PolicyParts:
    """The parts of the path of a call, each handed what it needs of the others."""
    decider = Decider(policy, shared.approvals, shared.runs, shared.masking)
    host = ContextHost(shared.sink, decider, shared.approving, shared.workers, shared.audit, shared.mask)
    resolver = Resolver(shared.registry, host, shared.operator)
    preparation = Preparation(resolver, decider, shared.sink, shared.masking, shared.steps.around_prepare)
    questions = Questions(
        shared.approving, preparation, decider, shared.registry, shared.workers, shared.operator, shared.mask
    )

    def make_executor() -> Executor:
        from toolcrib.toolbox.execute import Executor  # it needs asyncio: loaded for the first call

        return Executor(
            host=host,
            decider=decider,
            sink=shared.sink,
            masking=shared.masking,
            stats=shared.stats,
            workers=shared.workers,
            runaway=shared.runaway,
            max_output=shared.max_output,
            overflow=shared.overflow,
            grace=shared.grace,
            random=shared.random,
        )

    admission = admission_step(shared.limiter, shared.audit, shared.runs, shared.mask)
    path = CallPath(
        preparation=preparation,
        questions=questions,
        decider=decider,
        report=shared.report,
        runs=shared.runs,
        runaway=shared.runaway,
        operator=shared.operator,
        make_executor=make_executor,
        steps=shared.steps.around_execute,
        own_steps=(admission,) if shared.limiter is not None or shared.audit is not None else (),
        telemetry=shared.telemetry,
        traced_always=shared.traced_always,
        timeout=shared.timeout,
        grace=shared.grace,
        timer=shared.timer,
    )
    host.inner_call = lambda call, key, deps: path.call(call, key, None, deps, None, None)
    return PolicyParts(decider, host, path, ToolLists(shared.registry, decider, host, shared.operator))


def limiter_of(limits: Limiter | Iterable[Limit] | None) -> Limiter | None:
    """A limiter as it is, or a `RateLimits` of the limits that are listed. TypeError for anything else."""
    if limits is None or hasattr(limits, "take"):
        return cast("Limiter | None", limits)
    from toolcrib.rules.limits import RateLimits

    return RateLimits(limits)


def _masking(store: SecretStore, sink: EventSink) -> Masking:
    """Loaded where there are secrets; whoever listens gets none either."""
    from toolcrib.secrets.events import MaskedEvents
    from toolcrib.secrets.masking import Masking

    masking = Masking(store)
    sink.mask = MaskedEvents(masking)
    return masking


def _unmasked(value: T) -> T:
    return value
