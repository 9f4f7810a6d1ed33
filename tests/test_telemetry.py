"""Spans and metrics of runs, requests and calls, as OpenTelemetry's own SDK reads them back."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.test_model_waits import Failing, busy
from tests.virtual_time import run_virtually
from toolcrib import Agent, Context, Effect, Retry, Toolbox, tool
from toolcrib.call import ToolCall
from toolcrib.content import Text
from toolcrib.messages import CallChunk, Message, ReasoningChunk, Request, Response, TextChunk, Usage
from toolcrib.models import Fallback, ModelError, OpenAIChat, Scripted
from toolcrib.secrets import Environment
from toolcrib.toolbox import telemetry_names


class Watch:
    """A tracer and a meter that keep in memory what they were told."""

    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.options: dict[str, Any] = {
            "tracer": provider.get_tracer("test"),
            "meter": MeterProvider([self.reader]).get_meter("test"),
        }

    @property
    def spans(self) -> list[Any]:
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time)

    def tree(self) -> list[str]:
        """The spans in the order of their beginning, indented below their parents."""
        depths: dict[int, int] = {}
        lines = []
        for span in self.spans:
            depth = depths[span.parent.span_id] + 1 if span.parent is not None else 0
            depths[span.context.span_id] = depth
            lines.append("  " * depth + span.name)
        return lines

    def points(self) -> dict[tuple[str, ...], Any]:
        """Each metric with its operation, kind of token and error: how often, and the sum."""
        data: Any = self.reader.get_metrics_data()
        found = {}
        for metric in data.resource_metrics[0].scope_metrics[0].metrics if data is not None else ():
            for point in metric.data.data_points:
                told = dict(point.attributes)
                labels = (
                    told.get(name, "")
                    for name in ("gen_ai.operation.name", "gen_ai.token.type", "error.type")
                )
                found[metric.name, *filter(None, labels)] = (point.count, point.sum)
        return found


@tool(effect=Effect.READ, secrets=())
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    await asyncio.sleep(2)
    return a + b


SUM = {"calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]}


class Thinking:
    """A model that thinks for three seconds and writes for one, and is billed."""

    name = "thinking"

    async def stream(self, request: Request) -> AsyncGenerator[Any, None]:
        await asyncio.sleep(3)
        yield ReasoningChunk("Hm.")
        await asyncio.sleep(1)
        yield TextChunk("Secret words.")
        usage = Usage(1000, 50, cache_read_tokens=900, cache_write_tokens=20, reasoning_tokens=40, cost=0.01)
        yield Response(Message("assistant", [Text("Secret words.")]), "end", usage, "thinking-2", "stop")

    async def respond(self, request: Request) -> Response:
        raise NotImplementedError


def test_a_run_is_a_tree_of_spans() -> None:
    watch = Watch()
    model = Scripted([{**SUM, "usage": {"input_tokens": 70, "output_tokens": 7}}, "Three."], name="m")
    outcome = run_virtually(Agent(model, [add], **watch.options).run("Secret task"))
    assert outcome.text == "Three."
    assert watch.tree() == ["invoke_agent", "  chat m", "  execute_tool add", "  chat m"]
    run, first, call, last = watch.spans
    assert run.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "m",
        "gen_ai.request.model": "m",
        "gen_ai.usage.input_tokens": 70,
        "gen_ai.usage.output_tokens": 7,
        "toolcrib.run": outcome.run,
        "toolcrib.run.reason": "answered",
        "toolcrib.run.turns": 2,
    }
    assert first.attributes["gen_ai.response.finish_reasons"] == ("tool_calls",)
    assert call.attributes["gen_ai.tool.name"] == "add"
    assert [span.kind.name for span in watch.spans] == ["INTERNAL", "CLIENT", "INTERNAL", "CLIENT"]
    assert {span.status.status_code.name for span in watch.spans} == {"UNSET"}
    assert last.attributes["gen_ai.operation.name"] == "chat"
    points = watch.points()
    assert points["gen_ai.client.operation.duration", "execute_tool"] == (1, 2.0)
    assert points["gen_ai.client.operation.duration", "invoke_agent"] == (1, 2.0)
    assert points["gen_ai.client.operation.duration", "chat"][0] == 2
    assert points["gen_ai.client.token.usage", "chat", "input"] == (1, 70)
    assert points["gen_ai.client.token.usage", "chat", "output"] == (1, 7)


def test_a_model_of_a_users_own_may_have_a_codec_and_nothing_else() -> None:
    class Own(Scripted):
        codec = OpenAIChat("m", api_key="k").codec

    watch = Watch()
    outcome = Agent(Own(["Done."]), [], **watch.options).run_sync("Go")
    assert outcome.text == "Done."
    assert "openai" in str(dict(watch.spans[0].attributes))


def test_a_request_says_its_tokens_and_times_and_no_words() -> None:
    watch = Watch()
    run_virtually(Agent(Thinking(), max_tokens=500, temperature=0.5, **watch.options).run("Secret task"))
    span = watch.spans[1]
    assert span.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "thinking",
        "gen_ai.request.model": "thinking",
        "gen_ai.request.max_tokens": 500,
        "gen_ai.request.stream": True,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.response.model": "thinking-2",
        "gen_ai.response.time_to_first_chunk": 3.0,
        "gen_ai.usage.cache_creation.input_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 900,
        "gen_ai.usage.input_tokens": 1000,
        "gen_ai.usage.output_tokens": 50,
        "gen_ai.usage.reasoning.output_tokens": 40,
        "toolcrib.usage.cost": 0.01,
    }
    points = watch.points()
    assert points["gen_ai.client.operation.duration", "chat"] == (1, 4.0)
    assert points["gen_ai.client.operation.time_to_first_chunk", "chat"] == (1, 3.0)
    assert "Secret" not in "".join(span.to_json() for span in watch.spans)


def test_retries_are_on_the_span_and_do_not_count_as_the_models_time() -> None:
    watch = Watch()
    agent = Agent(Failing(busy(2.0), busy(30.0)), **watch.options)
    assert run_virtually(agent.run("Hi")).text == "Hello."
    span = watch.spans[1]
    assert span.attributes["gen_ai.provider.name"] == "openai"
    assert span.attributes["gen_ai.request.model"] == "m"
    assert span.attributes["toolcrib.request.retries"] == 2
    assert [dict(event.attributes) for event in span.events] == [
        {"attempt": 1, "delay": 2.0},
        {"attempt": 2, "delay": 30.0},
    ]
    assert span.attributes["gen_ai.response.time_to_first_chunk"] == 0.0
    assert watch.points()["gen_ai.client.operation.duration", "chat"] == (1, 32.0)


@pytest.mark.parametrize(
    ("model", "error"),
    [
        (Failing(ModelError("no such model of Secret", status=404)), "404"),
        (Scripted([{"error": "Secret"}]), "model_error"),
    ],
)
def test_a_request_that_fails_says_how_and_no_words(model: Any, error: str) -> None:
    watch = Watch()
    run_virtually(Agent(model, **watch.options).run("Hi"))
    run, request = watch.spans
    assert request.attributes["error.type"] == error
    assert run.attributes["error.type"] == run.attributes["toolcrib.run.reason"] == "model_error"
    assert request.status.status_code.name == run.status.status_code.name == "ERROR"
    assert "Secret" not in request.to_json() + run.to_json()
    points = watch.points()
    assert points["gen_ai.client.operation.duration", "chat", error][0] == 1


def test_the_next_model_of_a_list_has_a_span_of_its_own() -> None:
    watch = Watch()
    model = Fallback([Failing(busy(), max_retries=0), Fallback([Scripted(["Hello."], name="second")])])
    run_virtually(Agent(model, **watch.options).run("Hi"))
    assert watch.tree() == ["invoke_agent", "  chat m", "  chat second"]
    _, first, second = watch.spans
    assert first.attributes["error.type"] == "no_answer"
    assert second.status.status_code.name == "UNSET"


def test_a_cancelled_run_ends_its_spans() -> None:
    watch = Watch()

    async def cancelled() -> None:
        run = Agent(Thinking(), **watch.options).start("Hi")
        asyncio.get_running_loop().call_later(1, run.cancel)
        await run

    run_virtually(cancelled())
    assert [span.attributes["error.type"] for span in watch.spans] == ["cancelled", "cancelled"]


def test_an_agent_within_a_call_and_calls_within_calls_are_children() -> None:
    watch = Watch()
    inner = Agent(Scripted([SUM, "Three."], name="inner"), [add], autonomy="full").as_tool(
        "sums", "Adds numbers."
    )

    @tool(effect=Effect.READ, secrets=())
    async def twice(ctx: Context[Any]) -> str:
        """Call another tool."""
        return (await ctx.call("add", a=1, b=1)).text

    calls = [{"name": "sums", "arguments": {"task": "1 + 2"}}]
    model = Scripted(
        [{"calls": calls}, {"calls": [{"name": "twice", "arguments": {}}]}, "Done."], name="outer"
    )
    agent = Agent(model, [inner, twice, add], name="clerk", autonomy="full", **watch.options)
    assert run_virtually(agent.run("Add.")).text == "Done."
    assert watch.spans[0].attributes["gen_ai.agent.name"] == "clerk"
    assert watch.tree() == [
        "invoke_agent clerk",
        *("  chat outer", "  execute_tool sums"),
        *("    invoke_agent sums", "      chat inner", "      execute_tool add", "      chat inner"),
        *("  chat outer", "  execute_tool twice", "    execute_tool add", "  chat outer"),
    ]


def test_what_a_model_traces_itself_is_below_its_request_alone() -> None:
    watch = Watch()

    class Instrumented(Thinking):
        async def stream(self, request: Request) -> AsyncGenerator[Any, None]:
            with watch.options["tracer"].start_as_current_span("POST"):
                await asyncio.sleep(1)
            yield CallChunk(0, "add", "c", '{"a": 1, "b": 2}', done=True)
            with watch.options["tracer"].start_as_current_span("read"):
                await asyncio.sleep(1)
            yield Response(Message("assistant", [ToolCall("add", '{"a": 1, "b": 2}', "c")]), "tool_calls")

    run_virtually(Agent(Instrumented(), [add], max_turns=1, early_start=True, **watch.options).run("Hi"))
    assert {"    POST", "    read", "  execute_tool add"} <= set(watch.tree())


def test_a_call_that_starts_early_is_no_child_of_the_request() -> None:
    watch = Watch()
    model = Scripted([SUM, "Three."], name="m", chunk_size=4, delay=1)
    run_virtually(Agent(model, [add], early_start=True, **watch.options).run("Add."))
    assert watch.tree()[:3] == ["invoke_agent", "  chat m", "  execute_tool add"]


def test_content_is_recorded_only_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "abcdefghijklmnopqrstuvwxyz")
    watch = Watch()
    model = Scripted([SUM, "It is abcdefghijklmnopqrstuvwxyz."], name="m")
    options = {**watch.options, "record_content": True, "secrets": Environment(["TOKEN"])}
    run_virtually(Agent(model, [add], instructions="Be brief.", **options).run("What is 1 + 2?"))
    last = watch.spans[-1].attributes
    assert json.loads(last["gen_ai.input.messages"])[:4] == [
        {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
        {"role": "user", "parts": [{"type": "text", "content": "What is 1 + 2?"}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "call_1_0", "name": "add", "arguments": {"a": 1, "b": 2}}],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1_0", "response": "3"}]},
    ]
    assert "It is" in last["gen_ai.output.messages"]
    assert "abcdefghijklm" not in "".join(span.to_json() for span in watch.spans)


async def test_the_declaration_of_retries_is_on_the_span() -> None:
    watch = Watch()
    retry = Retry(attempts=4, delay=0.1, on=(ConnectionError,))
    flaky = tool(lambda: "", name="flaky", effect=Effect.READ, secrets=(), idempotent=True, retry=retry)
    await Toolbox([flaky], **watch.options).call("flaky", {})
    told = watch.spans[0].attributes
    assert told["toolcrib.tool.retry.attempts"] == 4
    assert told["toolcrib.tool.retry.delay"] == 0.1
    assert told["toolcrib.tool.retry.max_delay"] == 30.0
    assert told["toolcrib.tool.retry.on"] == ("ConnectionError",)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("https://api.groq.com/openai/v1", {"groq", "api.groq.com", 443}),
        ("https://mine.openai.azure.com/openai/v1", {"azure.ai.openai", "mine.openai.azure.com", 443}),
        ("https://api.mistral.ai/v1", {"mistral_ai", "api.mistral.ai", 443}),
        ("http://localhost:8000/v1", {"localhost:8000", "localhost", 8000}),
        ("https://api.anthropic.com/v1", {"anthropic", "api.anthropic.com", 443}),
    ],
)
def test_who_was_asked(address: str, told: set[Any]) -> None:
    from toolcrib.agent.telemetry import _identity

    found = _identity(OpenAIChat("a:b", base_url=address))
    assert found.pop("gen_ai.request.model") == "a:b"
    assert set(found.values()) == told


def test_the_names_are_those_of_the_conventions() -> None:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
    from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
    from opentelemetry.semconv.attributes import error_attributes, server_attributes

    modules = (gen_ai_attributes, gen_ai_metrics, error_attributes, server_attributes)
    known = {value for module in modules for value in vars(module).values() if isinstance(value, str)}
    values = [value for value in vars(telemetry_names).values() if isinstance(value, str)]
    ours = {value for value in values if value.startswith(("gen_ai.", "error.", "server."))}
    assert len(ours) > 25
    assert ours <= known
    operations = {item.value for item in gen_ai_attributes.GenAiOperationNameValues}
    assert {telemetry_names.INVOKE_AGENT, telemetry_names.CHAT, telemetry_names.EXECUTE_TOOL} <= operations
    providers = {item.value for item in gen_ai_attributes.GenAiProviderNameValues}
    assert set(telemetry_names.PROVIDERS.values()) <= providers


def test_the_names_stand_in_one_module() -> None:
    source = Path(telemetry_names.__file__).parents[1]
    elsewhere = [path.name for path in source.rglob("*.py") if '"gen_ai.' in path.read_text()]
    assert elsewhere == [Path(telemetry_names.__file__).name]


def test_nothing_is_loaded_where_nobody_traces() -> None:
    code = (
        "import sys\nfrom toolcrib import Agent\nfrom toolcrib.models import Scripted\n"
        "assert Agent(Scripted(['Hi.'])).run_sync('Hi').text == 'Hi.'\n"
        "print([m for m in sys.modules if m.startswith('opentelemetry') or m == 'toolcrib.agent.telemetry'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_tracer_alone_or_a_meter_alone_is_enough(caplog: pytest.LogCaptureFixture) -> None:
    for one in ("tracer", "meter"):
        watch = Watch()
        run_virtually(Agent(Scripted(["Hi."]), **{one: watch.options[one]}).run("Hi"))
        assert (bool(watch.spans), bool(watch.points())) == (one == "tracer", one == "meter")
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_spans_go_to_the_provider_that_the_application_has_by_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @tool(effect=Effect.READ, secrets=(), inline=True)
    def look() -> str:
        return "seen"

    box = Toolbox([look])
    await box.call("look", {})
    for _ in range(2):
        exporter, provider = InMemorySpanExporter(), TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", provider)
        await box.call("look", {})
        assert [span.name for span in exporter.get_finished_spans()] == ["execute_tool look"]
