"""OpenTelemetry spans of calls, by the semantic conventions for generative AI.

Nothing is imported until the application itself has set OpenTelemetry up, or hands a tracer in.
Arguments and results are recorded only when the toolbox was told to (`record_content=True`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.compiling.definition import Definition
    from toolcrib.prepared import Ready
    from toolcrib.result import ToolResult

SDK = "opentelemetry.sdk.trace"  # once the application has loaded it, somebody traces


class CallSpan:
    """The span `execute_tool NAME` of one call: open and current from its making until `finished`."""

    __slots__ = ("_manager", "_span", "_with_content")

    def __init__(
        self,
        tracer: Any,
        definition: Definition,
        ready: Ready,
        with_content: bool,
        shown: Callable[[Any], Any],
    ) -> None:
        from opentelemetry.trace import SpanKind, get_tracer

        facts, name = definition.facts, ready.call.name
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
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
            given = json.dumps(shown(ready.arguments), ensure_ascii=False, default=str)
            attributes["gen_ai.tool.call.arguments"] = given
        self._with_content = with_content
        self._manager = (tracer or get_tracer("toolcrib")).start_as_current_span(
            f"execute_tool {name}", kind=SpanKind.INTERNAL, attributes=attributes, record_exception=False
        )
        self._span = self._manager.__enter__()

    def retried(self, attempt: int, delay: float) -> None:
        self._span.set_attribute("toolcrib.call.retries", attempt)
        self._span.add_event("toolcrib.retry", {"attempt": attempt, "delay": delay})

    def finished(self, result: ToolResult) -> None:
        """End the span with what came of the call."""
        if result.is_error:
            from opentelemetry.trace import Status, StatusCode

            code = result.code.value if result.code is not None else "tool_error"
            self._span.set_attribute("error.type", code)
            self._span.set_status(Status(StatusCode.ERROR, code))
        if self._with_content:
            self._span.set_attribute("gen_ai.tool.call.result", result.text)
        self._manager.__exit__(None, None, None)
