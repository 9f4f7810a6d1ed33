"""`batch`: several calls of other tools in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from toolcrib.content import Text
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.facts import MaxOutput
from toolcrib.result import ToolResult
from toolcrib.tool import Tool

if TYPE_CHECKING:
    from toolcrib.content import Part
    from toolcrib.context import Context

BATCH = "batch"
MAX_CALLS = 25
MAX_OUTPUT = MaxOutput(bytes=200_000, lines=8_000)  # of all results together


class BatchedCall(BaseModel):
    tool: str = Field(min_length=1, description="The tool's name.")
    arguments: dict[str, Any] = Field(default_factory=dict, description="Its arguments.")


class BatchParams(BaseModel):
    calls: list[BatchedCall] = Field(
        min_length=1,
        max_length=MAX_CALLS,
        description="The calls, in the order in which they should take effect.",
    )


class Batch(
    Tool[BatchParams, ToolResult],
    name=BATCH,
    effect=Effect.DESTRUCTIVE,
    secrets=(),
    title="Several calls",
    category="batch",
    delegates=True,
    max_output=MAX_OUTPUT,
):
    """Make several calls of other tools at once. Each has a result of its own, and one that fails stops no other.

    Use it for calls that do not need each other's results: reading several files, several searches. Calls that only
    read run at the same time; others run in the given order.
    """

    async def execute(self, params: BatchParams, ctx: Context[Any]) -> ToolResult:
        if any(call.tool in (BATCH, ctx.tool) for call in params.calls):
            raise ToolError("Nothing was run: a batch holds no other batch. Put its calls into this one.")
        calls = [(call.tool, call.arguments) for call in params.calls]
        return combined_result([name for name, _ in calls], await ctx.call_all(calls, from_model=True))


def combined_result(names: list[str], results: list[ToolResult]) -> ToolResult:
    """The results in their order, each under the number and the name of its call. ToolError where all failed."""
    calls = list(zip(range(1, len(names) + 1), names, results, strict=True))
    failed = [f"{number} ({name})" for number, name, result in calls if result.is_error]
    head = f"{len(calls) - len(failed)} of {len(calls)} calls are done."
    if failed:
        head += f" Not done: {', '.join(failed)}."
    parts: list[Part] = [Text(head)]
    for number, name, result in calls:
        parts += [Text(f"\n[{number}] {name}{' failed' if result.is_error else ''}:"), *result.parts]
    combined = ToolResult(tuple(parts))
    if len(failed) == len(calls):
        raise ToolError(combined.text)
    return combined
