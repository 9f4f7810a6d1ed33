"""The built-in tool with which a model ends its run and gives its final answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolcrib.dataclass import replace
from toolcrib.effect import Effect
from toolcrib.function import tool

if TYPE_CHECKING:
    from toolcrib.call import ToolCall
    from toolcrib.result import ToolResult
    from toolcrib.toolbox import ToolList

__all__ = ["COMPLETION", "attempt_completion", "completion_text", "without_completion"]

COMPLETION = "attempt_completion"


@tool(effect=Effect.READ, secrets=(), open_world=False, idempotent=True, inline=True)
def attempt_completion(result: str) -> str:
    """Finish the task. Call it once, alone, when everything is done or nothing more can be done.

    Args:
        result: The final answer for the user: what was done, what was found, and what is left open.
    """
    return result


def without_completion(tool_list: ToolList, supplied: Any = attempt_completion) -> ToolList:
    """A tool list without the built-in tool; a tool of the same name that the caller gave stays."""
    entry = tool_list.entries.get(COMPLETION)
    if entry is None or entry.supplied is not supplied:
        return tool_list
    specs = [spec for spec in tool_list.specs if spec.name != COMPLETION]
    entries = {name: known for name, known in tool_list.entries.items() if name != COMPLETION}
    return replace(tool_list, specs=specs, entries=entries)


def completion_text(calls: list[ToolCall], results: list[ToolResult]) -> str | None:
    """The text of a successful attempt_completion, which may be the user's own tool; None if there was none."""
    for call, result in zip(calls, results, strict=True):
        if call.name == COMPLETION and not result.is_error:
            return result.text
    return None
