"""Counts and durations of each tool's calls, and the hint for a prompt that follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from toolcrib.dataclass import dataclass
from toolcrib.errors import ErrorCode
from toolcrib.visible import counted

if TYPE_CHECKING:
    from toolcrib.result import ToolResult

__all__ = ["Statistics", "ToolStats", "hint"]

LAST_ERROR = 200  # characters of the last error that are kept


@dataclass(slots=True)
class ToolStats:
    """Counts of one tool's finished calls; durations in seconds. Partial calls and retries are not calls.

    `last_error` is the start of the last failed result, which may be a stranger's text; `last_code` is its error code.
    """

    calls: int = 0
    successes: int = 0
    failures: int = 0
    repairs: int = 0
    retries: int = 0
    total_duration: float = 0.0
    last_error: str = ""
    last_code: str = ""

    def count(self, result: ToolResult, duration: float) -> None:
        """Count a finished call."""
        self.calls += 1
        self.total_duration += duration
        if result.is_error:
            self.failures += 1
            self.last_error = result.text[:LAST_ERROR]
            self.last_code = (result.code or ErrorCode.TOOL_ERROR).value
        else:
            self.successes += 1

    @property
    def mean_duration(self) -> float:
        return self.total_duration / self.calls if self.calls else 0.0


MIN_CALLS = 3  # fewer say nothing about a tool
FAILING = 0.5  # share of failures from which a tool is named
SLOW = 10.0  # mean seconds from which a tool is named


class Statistics(dict[str, ToolStats]):
    """The counts of each tool that was called, by its name."""

    def __missing__(self, name: str) -> ToolStats:
        self[name] = made = ToolStats()
        return made


def hint(stats: Mapping[str, ToolStats]) -> str:
    """A section for the prompt that names tools that fail often or are slow; empty when there are none.

    It holds names, counts and error codes alone: what a tool said may come from outside, so no prompt may contain it.
    """
    lines: list[str] = []
    for name, item in sorted(stats.items()):
        if item.calls < MIN_CALLS:
            continue
        if item.failures / item.calls >= FAILING:
            lines.append(
                f"- {name}: {item.failures} of {item.calls} calls failed (the last: {item.last_code})"
            )
        if item.mean_duration >= SLOW:
            lines.append(f"- {name}: slow, {counted(round(item.mean_duration), 'second')} a call")
    return "\n".join(["# Tool Reliability", *lines]) if lines else ""
