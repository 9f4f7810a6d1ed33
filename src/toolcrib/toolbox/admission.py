"""The last check before a call runs: counts it against the limits, notes it in the audit log, or refuses it."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from toolcrib.dataclass import dataclass
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.execute import Execution
from toolcrib.toolbox.foreign import ForeignCall
from toolcrib.toolbox.operator_log import Mask
from toolcrib.toolbox.runs import Limiter, Runs

if TYPE_CHECKING:
    from toolcrib.audit import AuditLog
    from toolcrib.prepared import Ready
    from toolcrib.result import ToolResult

__all__ = ["Admission"]


@dataclass(slots=True)
class Admission:
    """Counts a call and notes it in the log before it runs. A call that cannot be noted is neither run nor counted."""

    limiter: Limiter | None
    audit: AuditLog | None
    runs: Runs
    mask: Mask
    own_log: bool = False  # the log is ours: it ends when it is cancelled, and raises no cancellation

    def __post_init__(self) -> None:
        if self.audit is not None:
            from toolcrib.audit import AuditLog

            self.own_log = getattr(self.audit.decided, "__func__", None) is AuditLog.decided

    def execution(self) -> Execution:
        """An execution that begins when its call is admitted."""
        run = AdmittedExecution()
        run.admission = self
        return run

    async def refusal(self, ready: Ready) -> ToolResult | None:
        """The refusal of a call; None for a call that may run, which is then counted and noted."""
        limiter, name, run = self.limiter, ready.call.name, self.runs.outermost(ready.key.run)
        suspension = self.runs.suspension(ready.key.run)
        counts = suspension is None or not suspension.goes_on(ready.key)  # once, when it begins
        if counts and limiter is not None and (why := limiter.take(run, name)):
            return model_messages.rate_limited(name, why)
        if self.audit is not None:
            problem = None
            try:
                noted = self.audit.decided(ready, ready.tool.definition, self.mask)
                problem = await (noted if self.own_log else ForeignCall(noted, None, ready.tool.entry.grace))
            finally:
                if problem != "" and counts and limiter is not None:
                    limiter.give_back(run, name)
            if problem:
                return model_messages.tool_error(f"Nothing was run: {problem}.")
        if counts and suspension is not None:
            suspension.count(name, getattr(limiter, "nested_runs", ()))
        return None


class AdmittedExecution(Execution):
    """One run of a ready call that begins when the call is admitted. Its deadline starts then."""

    __slots__ = ("admission",)

    admission: Admission

    def __await__(self) -> Generator[Any, Any, ToolResult]:
        try:
            refusal = yield from self.admission.refusal(self.ready).__await__()
        except GeneratorExit:  # nobody waits for the call any more
            raise
        except asyncio.CancelledError as cancelled:
            refusal = model_messages.cancelled(self.ready.call.name, started=False)
            self.to_raise = cancelled
        except BaseException as error:
            refusal = self._failure(error)
        if refusal is None:
            return (yield from super().__await__())
        shown = self._shown(refusal)
        return shown if not isinstance(shown, Generator) else (yield from shown)
