"""Spans and metrics of a run, as OpenTelemetry's own SDK hands them to its exporters.

    python examples/telemetry.py

Without a key: the model is scripted. Needs the package opentelemetry-sdk. An application that has set the SDK up writes
nothing of this: once the SDK is there, agents and toolboxes use it.
"""

from __future__ import annotations

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from toolcrib import Agent, Effect, Retry, tool
from toolcrib.models import Scripted

SHOWN = {
    "gen_ai.usage.input_tokens": "in",
    "gen_ai.usage.cache_read.input_tokens": "cached",
    "gen_ai.usage.output_tokens": "out",
    "gen_ai.response.finish_reasons": "finished",
    "toolcrib.tool.retry.attempts": "attempts at most",
    "toolcrib.call.retries": "retries",
    "toolcrib.run.reason": "reason",
}
down = [ConnectionError("the store does not answer")]


@tool(effect=Effect.READ, secrets=(), retry=Retry.idempotent_transport(attempts=3, delay=0.0))
async def count(item: str) -> int:
    """Count an item in the store."""
    if down:
        raise down.pop()
    return {"saw": 3, "drill": 1}[item]


def set_up() -> tuple[InMemorySpanExporter, InMemoryMetricReader]:
    """What an application does once; with exporters that send to a collector instead of keeping in memory."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader]))
    return exporter, reader


def show_spans(spans: list[ReadableSpan], parent: int | None = None, indent: str = "") -> None:
    """The spans below a parent, in the order in which they began."""
    for span in sorted(spans, key=lambda span: span.start_time or 0):
        if (span.parent.span_id if span.parent else None) == parent:
            told = span.attributes or {}
            words = [f"{short} {told[name]!s}" for name, short in SHOWN.items() if name in told]
            print(f"{indent}{span.name}: {', '.join(words)}")
            show_spans(spans, span.context.span_id if span.context else None, f"{indent}  ")


def show_metrics(reader: InMemoryMetricReader) -> None:
    """How often each metric was recorded, by operation."""
    data = reader.get_metrics_data()
    for metric in data.resource_metrics[0].scope_metrics[0].metrics if data else ():
        for point in metric.data.data_points:
            told = dict(point.attributes or {})
            kind = told.get("gen_ai.token.type", "")
            print(f"{metric.name} {told['gen_ai.operation.name']} {kind}: {getattr(point, 'count', 0)}")


def main() -> None:
    exporter, reader = set_up()
    call = {"name": "count", "arguments": {"item": "saw"}}
    model = Scripted(
        [
            {"calls": [call], "usage": {"input_tokens": 900, "output_tokens": 20}},
            {"text": "Three.", "usage": {"input_tokens": 950, "output_tokens": 5, "cache_read_tokens": 900}},
        ]
    )
    print(Agent(model, [count]).run_sync("How many saws have we?").text)
    show_spans(list(exporter.get_finished_spans()))
    show_metrics(reader)


if __name__ == "__main__":
    main()
