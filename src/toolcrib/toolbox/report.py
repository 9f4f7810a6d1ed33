"""The end of the path: each call gets exactly one result, which is recorded first and then told to whoever listens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from toolcrib.call import CallKey
from toolcrib.content import Text
from toolcrib.dataclass import dataclass
from toolcrib.errors import ErrorCode, traceback_text
from toolcrib.prepared import Ready, Refused
from toolcrib.result import ToolResult
from toolcrib.sink import EventSink
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.call_events import call_ended
from toolcrib.toolbox.operator_log import Mask, OperatorLog
from toolcrib.toolbox.stats import Statistics

if TYPE_CHECKING:
    from toolcrib.audit import AuditLog
    from toolcrib.secrets.masking import Masking

__all__ = ["Record", "Report"]

Record = Callable[[CallKey, ToolResult], None]
"""Is handed each result before anybody else is told of it: a transcript, say."""


class EndedExecution(Protocol):
    """A run of a call that has ended; `problem` is for the operator alone."""

    ready: Ready
    problem: str


@dataclass(slots=True)
class Report:
    """Records and reports results. Masking, the audit log and listeners cost nothing where there are none."""

    sink: EventSink
    stats: Statistics
    operator: OperatorLog
    mask: Mask
    masking: Masking | None
    audit: AuditLog | None

    def ended(self, run: EndedExecution, result: ToolResult, duration: float, record: Record | None) -> None:
        """Record and report the result of a call that ran."""
        ready, problem = run.ready, run.problem
        name, edits = ready.call.name, ready.edits
        if edits:
            result.edits = edits if self.masking is None else self.masking.mask_edits(edits)
            self.stats[name].repairs += len(edits)
        if ready.changed:
            note = model_messages.other_arguments(ready.arguments, self.mask)
            result.parts = (*result.parts, Text(note))
        ready.execution.recorded = result
        self.stats[name].count(result, duration)
        if problem:
            what = "failed" if result.is_error else "gave a result that does not match its schema"
            self.operator.problem(f"tool {name} {what}", problem)
        if self.audit is not None:
            self._audited(lambda audit: audit.ended(ready, result, duration))
        if record is not None:
            self.recorded(record, ready.key, result)
        if self.sink.listeners:
            told = (ready.key, name, result, duration, problem, len(edits))
            self.sink.emit_new(ready.key.run, call_ended, told)

    def refused(self, refused: Refused, record: Record | None) -> ToolResult:
        """Record and report the result of a call that does not run."""
        name, result = refused.call.name, refused.result
        if self.masking is not None:
            result = self.masking.mask_result(result)
        refused.execution.recorded = result
        if result.code is not None and result.code is not ErrorCode.UNKNOWN_TOOL:
            self.stats[name].count(result, 0.0)
        if refused.problem:
            self.operator.problem(f"tool {name} failed", refused.problem)
        self.note_refused(refused)
        if record is not None:
            self.recorded(record, refused.key, result)
        if self.sink.listeners:
            told = (refused.key, name, result, 0.0, refused.problem, 0)
            self.sink.emit_new(refused.key.run, call_ended, told)
        return result

    def note_refused(self, refused: Refused) -> None:
        """Note in the audit log that a call was not run."""
        if self.audit is not None:
            self._audited(lambda audit: audit.refused(refused, self.mask))

    def _audited(self, note: Callable[[AuditLog], None]) -> None:
        """Note something in the audit log; a log that fails is the operator's to know, and costs no result."""
        assert self.audit is not None
        try:
            note(self.audit)
        except KeyboardInterrupt:
            raise
        except BaseException as problem:
            self.operator.problem("the audit log failed", traceback_text(problem))

    def recorded(self, record: Record, key: CallKey, result: ToolResult) -> None:
        """Hand a result to the recorder. If the recorder fails, the operator is told."""
        try:
            record(key, result)
        except KeyboardInterrupt:
            raise
        except BaseException as problem:
            self.operator.problem(f"the result of call {key} could not be recorded", traceback_text(problem))
