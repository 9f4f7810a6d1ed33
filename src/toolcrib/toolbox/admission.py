"""The last step before a call runs, where there are limits or an audit log: what is not admitted is not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.toolbox import model_messages
from toolcrib.toolbox.operator_log import Mask
from toolcrib.toolbox.runs import Limiter, Runs

if TYPE_CHECKING:
    from toolcrib.audit import AuditLog
    from toolcrib.middleware import ExecuteStep, NextExecute
    from toolcrib.prepared import Ready
    from toolcrib.result import ToolResult

__all__ = ["admission_step"]


def admission_step(limiter: Limiter | None, audit: AuditLog | None, runs: Runs, mask: Mask) -> ExecuteStep:
    """Counts a call and notes it in the log before it runs. A call that cannot be noted does not run, and not count."""

    async def step(prepared: Ready, next: NextExecute) -> ToolResult:
        name, run = prepared.call.name, runs.outermost(prepared.key.run)
        if limiter is not None and (why := limiter.take(run, name)):
            return model_messages.rate_limited(name, why)
        if audit is not None:
            problem = None
            try:
                problem = await audit.decided(prepared, prepared.tool.definition, mask)
            finally:
                if problem != "" and limiter is not None:
                    limiter.give_back(run, name)
            if problem:
                return model_messages.tool_error(f"Nothing was run: {problem}.")
        return await next(prepared)

    return step
