"""The last step before a call runs, where there are limits or an audit log: what is not admitted is not run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from toolcrib.toolbox import model_messages
from toolcrib.toolbox.operator_log import Mask
from toolcrib.toolbox.runs import Limiter, Runs

if TYPE_CHECKING:
    from toolcrib.audit import AuditLog
    from toolcrib.middleware import ExecuteStep, NextExecute
    from toolcrib.prepared import Ready
    from toolcrib.result import ToolResult
    from toolcrib.rules.limits import Limit

__all__ = ["admission_step", "limiter_of"]


def admission_step(limiter: Limiter | None, audit: AuditLog | None, runs: Runs, mask: Mask) -> ExecuteStep:
    """Counts a call and notes it in the log before it runs. A call that cannot be noted does not run, and not count."""

    async def step(prepared: Ready, next: NextExecute) -> ToolResult:
        name, run = prepared.call.name, runs.outermost(prepared.key.run)
        suspension = runs.suspension(prepared.key.run)
        counts = suspension is None or not suspension.goes_on(prepared.key)  # once, when it begins
        if counts and limiter is not None and (why := limiter.take(run, name)):
            return model_messages.rate_limited(name, why)
        if audit is not None:
            from toolcrib.toolbox.foreign import ForeignCall  # it needs asyncio

            problem = None
            try:
                grace = prepared.tool.entry.grace
                problem = await ForeignCall(
                    audit.decided(prepared, prepared.tool.definition, mask), None, grace
                )
            finally:
                if problem != "" and counts and limiter is not None:
                    limiter.give_back(run, name)
            if problem:
                return model_messages.tool_error(f"Nothing was run: {problem}.")
        if counts and suspension is not None:
            suspension.count(name, getattr(limiter, "nested_runs", ()))
        return await next(prepared)

    return step


def limiter_of(limits: Limiter | Iterable[Limit] | None) -> Limiter | None:
    """A limiter as it is, or a `RateLimits` of the limits that are listed. TypeError for anything else."""
    if limits is None or hasattr(limits, "take"):
        return cast("Limiter | None", limits)
    from toolcrib.rules.limits import RateLimits

    listed: Any = limits  # RateLimits says itself what it cannot take
    return RateLimits(listed)
