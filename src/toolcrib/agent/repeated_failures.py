"""Failures of one tool in a row, after which a run pauses."""

from __future__ import annotations

from collections.abc import Sequence

from toolcrib.call import ToolCall
from toolcrib.errors import ErrorCode
from toolcrib.result import ToolResult
from toolcrib.visible import counted

COUNTED = frozenset(
    {
        ErrorCode.INVALID_ARGUMENTS,
        ErrorCode.TIMED_OUT,
        ErrorCode.FAILED,
        ErrorCode.TOOL_ERROR,
        ErrorCode.OUTCOME_UNKNOWN,
        ErrorCode.OUTPUT_TOO_LARGE,
    }
)


def failed_too_often(
    calls: Sequence[ToolCall], results: Sequence[ToolResult], failures: dict[str, int], most: int
) -> str:
    """Count the failures in a row of each tool; returns why the run has to pause, or ""."""
    for call, result in zip(calls, results, strict=True):
        if not result.is_error:
            failures.pop(call.name, None)
        elif result.code in COUNTED or result.code is None or not call.name:
            count = failures[call.name] = failures.get(call.name, 0) + 1
            if count >= most:
                which = f"tool {call.name}" if call.name else "a call without a readable name"
                return f"{which} failed {counted(count, 'time')} in a row; the last time: {result.text[:300]}"
    return ""
