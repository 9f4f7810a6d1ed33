"""OpenTelemetry: the tracer and the metrics of a toolbox, and the span of each call.

Nothing is imported until the application itself has set OpenTelemetry up, or hands a tracer or a meter in.
Arguments and results are recorded only when the toolbox was told to (`record_content=True`).
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from toolcrib.toolbox import telemetry_names as names
from toolcrib.toolbox.operator_log import Mask

if TYPE_CHECKING:
    from toolcrib.middleware import ExecuteStep, NextExecute
    from toolcrib.prepared import Ready
    from toolcrib.result import ToolResult

__all__ = ["SDK", "Telemetry", "retried"]

SDK = "opentelemetry.sdk"  # once the application has loaded it, somebody traces or measures


class Telemetry:
    """What a toolbox traces and measures with: what was handed in, else the application's own."""

    def __init__(self, tracer: Any = None, meter: Any = None, record_content: bool = False) -> None:
        self.record_content = record_content
        self.given = tracer is not None or meter is not None
        self._tracer = tracer
        self._meter = meter
        self._own: tuple[Any, Any] | None = None  # the application's provider, and its tracer for us
        self._histograms: dict[str, Any] = {}

    @property
    def on(self) -> bool:
        """Whether spans and metrics are wanted."""
        return self.given or SDK in sys.modules

    @property
    def tracer(self) -> Any:
        """What makes spans."""
        if self._tracer is not None:
            return self._tracer
        from opentelemetry.trace import get_tracer_provider

        provider = get_tracer_provider()
        known = self._own
        if known is None or known[0] is not provider:  # an application may set another one at any time
            known = self._own = provider, provider.get_tracer(names.LIBRARY)
        return known[1]

    def duration(self, seconds: float, attributes: dict[str, Any]) -> None:
        """Measure how long an operation took."""
        self._histogram(names.DURATION_METRIC, "s", names.DURATION_BUCKETS).record(seconds, attributes)

    def first_chunk(self, seconds: float, attributes: dict[str, Any]) -> None:
        """Measure how long the first piece of an answer took."""
        self._histogram(names.FIRST_CHUNK_METRIC, "s", names.FIRST_CHUNK_BUCKETS).record(seconds, attributes)

    def tokens(self, kind: str, count: int, attributes: dict[str, Any]) -> None:
        """Measure the tokens of a request, of one kind."""
        histogram = self._histogram(names.TOKENS_METRIC, "{token}", names.TOKEN_BUCKETS)
        histogram.record(count, {**attributes, names.TOKEN_TYPE: kind})

    def _histogram(self, name: str, unit: str, buckets: tuple[float, ...]) -> Any:
        made = self._histograms.get(name)
        if made is None:
            from opentelemetry.metrics import get_meter

            meter = self._meter if self._meter is not None else get_meter(names.LIBRARY)
            made = meter.create_histogram(name, unit, explicit_bucket_boundaries_advisory=buckets)
            self._histograms[name] = made
        return made

    def step(self, mask: Mask) -> ExecuteStep:
        """A step around execution that opens a span `execute_tool NAME`, which is current while the call runs."""

        async def step(prepared: Ready, next: NextExecute) -> ToolResult:
            import asyncio

            from opentelemetry.trace import SpanKind

            clock = asyncio.get_running_loop().time
            started, error = clock(), "cancelled"
            opened = self.tracer.start_as_current_span(
                f"{names.EXECUTE_TOOL} {prepared.call.name}",
                kind=SpanKind.INTERNAL,
                attributes=_attributes(prepared, self.record_content, mask),
                record_exception=False,
            )
            try:
                with opened as span:
                    result = await next(prepared)
                    error = ""
                    if result.is_error:
                        error = result.code.value if result.code is not None else "tool_error"
                        failed(span, error)
                    if self.record_content:
                        span.set_attribute(names.TOOL_RESULT, result.text)
                    return result
            finally:
                measured = {names.OPERATION: names.EXECUTE_TOOL, names.TOOL_NAME: prepared.call.name}
                self.duration(clock() - started, {**measured, **({names.ERROR: error} if error else {})})

        return step


def failed(span: Any, error: str) -> None:
    """Mark a span as failed, with a word of ours for the kind of failure."""
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute(names.ERROR, error)
    span.set_status(Status(StatusCode.ERROR, error))


def _attributes(ready: Ready, with_content: bool, mask: Mask) -> dict[str, Any]:
    definition = ready.tool.definition
    facts = definition.facts
    attributes: dict[str, Any] = {
        names.OPERATION: names.EXECUTE_TOOL,
        names.TOOL_NAME: ready.call.name,
        names.TOOL_TYPE: "function",
        names.TOOL_EFFECT: ready.effect.label,
        names.TOOL_IDEMPOTENT: facts.idempotent,
        names.TOOL_OPEN_WORLD: facts.open_world,
        names.CALL_KEY: str(ready.key),
        names.CALL_REPAIRS: len(ready.edits),
    }
    optional = {
        names.TOOL_CALL_ID: ready.call.id,
        names.TOOL_DESCRIPTION: definition.description,
        names.TOOL_VERSION: facts.version,
        names.TOOL_CATEGORY: facts.category,
        names.TOOL_TAGS: facts.tags,
    }
    attributes |= {key: value for key, value in optional.items() if value}
    if (retry := facts.retry) is not None:
        attributes |= {
            names.TOOL_RETRY_ATTEMPTS: retry.attempts,
            names.TOOL_RETRY_DELAY: retry.delay,
            names.TOOL_RETRY_MAX_DELAY: retry.max_delay,
            names.TOOL_RETRY_ON: [kind.__name__ for kind in retry.on],
        }
    if with_content:
        given = json.dumps(mask(ready.arguments), ensure_ascii=False, default=str)
        attributes[names.TOOL_ARGUMENTS] = given
    return attributes


def retried(attempt: int, delay: float) -> None:
    """Note an attempt that failed in the span of the call, if there is one."""
    if SDK not in sys.modules:
        return
    from opentelemetry.trace import get_current_span

    span = get_current_span()
    span.set_attribute(names.CALL_RETRIES, attempt)
    span.add_event(names.RETRY_EVENT, {names.RETRY_ATTEMPT: attempt, names.RETRY_DELAY: delay})
