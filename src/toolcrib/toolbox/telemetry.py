"""OpenTelemetry spans of calls, by the semantic conventions for generative AI.

Nothing is imported until the application itself has set OpenTelemetry up, or hands a tracer in.
Arguments and results are recorded only when the toolbox was told to (`record_content=True`).
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from toolcrib.toolbox.operator_log import Mask

if TYPE_CHECKING:
    from toolcrib.middleware import ExecuteStep, NextExecute
    from toolcrib.prepared import Ready
    from toolcrib.result import ToolResult

__all__ = ["SDK", "retried", "telemetry_step"]

SDK = "opentelemetry.sdk.trace"  # once the application has loaded it, somebody traces


def telemetry_step(tracer: Any, with_content: bool, mask: Mask) -> ExecuteStep:
    """A step around execution that opens a span `execute_tool NAME`, which is current while the call runs."""

    async def step(prepared: Ready, next: NextExecute) -> ToolResult:
        from opentelemetry.trace import SpanKind, get_tracer

        opened = (tracer or get_tracer("toolcrib")).start_as_current_span(
            f"execute_tool {prepared.call.name}",
            kind=SpanKind.INTERNAL,
            attributes=_attributes(prepared, with_content, mask),
            record_exception=False,
        )
        with opened as span:
            result = await next(prepared)
            if result.is_error:
                from opentelemetry.trace import Status, StatusCode

                code = result.code.value if result.code is not None else "tool_error"
                span.set_attribute("error.type", code)
                span.set_status(Status(StatusCode.ERROR, code))
            if with_content:
                span.set_attribute("gen_ai.tool.call.result", result.text)
            return result

    return step


def _attributes(ready: Ready, with_content: bool, mask: Mask) -> dict[str, Any]:
    definition = ready.tool.definition
    facts = definition.facts
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": ready.call.name,
        "gen_ai.tool.type": "function",
        "toolcrib.tool.effect": ready.effect.label,
        "toolcrib.tool.idempotent": facts.idempotent,
        "toolcrib.tool.open_world": facts.open_world,
        "toolcrib.call.key": str(ready.key),
        "toolcrib.call.repairs": len(ready.edits),
    }
    optional = {
        "gen_ai.tool.call.id": ready.call.id,
        "gen_ai.tool.description": definition.description,
        "toolcrib.tool.version": facts.version,
        "toolcrib.tool.category": facts.category,
        "toolcrib.tool.tags": facts.tags,
    }
    attributes |= {key: value for key, value in optional.items() if value}
    if with_content:
        given = json.dumps(mask(ready.arguments), ensure_ascii=False, default=str)
        attributes["gen_ai.tool.call.arguments"] = given
    return attributes


def retried(attempt: int, delay: float) -> None:
    """Note an attempt that failed in the span of the call, if there is one."""
    if SDK not in sys.modules:
        return
    from opentelemetry.trace import get_current_span

    span = get_current_span()
    span.set_attribute("toolcrib.call.retries", attempt)
    span.add_event("toolcrib.retry", {"attempt": attempt, "delay": delay})
