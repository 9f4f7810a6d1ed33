"""OpenTelemetry: the tracer and the metrics of a toolbox, and the span of each call.

Nothing is imported until the application itself has set OpenTelemetry up, or hands a tracer or a meter in.
Arguments and results are recorded only when the toolbox was told to (`record_content=True`).
What a tracer or a meter raises is logged once, and changes nothing else.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from toolcrib.effect import Effect
from toolcrib.errors import ErrorCode
from toolcrib.toolbox import telemetry_names as names
from toolcrib.toolbox.operator_log import Mask

if TYPE_CHECKING:
    from toolcrib.compiling.definition import Definition
    from toolcrib.prepared import Ready
    from toolcrib.result import ToolResult

__all__ = ["SDK", "CallSpan", "Span", "Telemetry", "retried"]

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
        self._of_tools: WeakKeyDictionary[Definition, _OfTool] = WeakKeyDictionary()
        self._complained = False

    @property
    def on(self) -> bool:
        """Whether spans and metrics are wanted."""
        return self.given or SDK in sys.modules

    @property
    def tracer(self) -> Any:
        """What makes spans."""
        if self._tracer is not None:
            return self._tracer
        provider = _api().get_tracer_provider()
        known = self._own
        if known is None or known[0] is not provider:  # an application may set another one at any time
            known = self._own = provider, provider.get_tracer(names.LIBRARY)
        return known[1]

    def duration(self, seconds: float, attributes: dict[str, Any]) -> None:
        """Measure how long an operation took."""
        self.unharmed(self._record, names.DURATION_METRIC, "s", names.DURATION_BUCKETS, seconds, attributes)

    def first_chunk(self, seconds: float, attributes: dict[str, Any]) -> None:
        """Measure how long the first piece of an answer took."""
        buckets = names.FIRST_CHUNK_BUCKETS
        self.unharmed(self._record, names.FIRST_CHUNK_METRIC, "s", buckets, seconds, attributes)

    def tokens(self, kind: str, count: int, attributes: dict[str, Any]) -> None:
        """Measure the tokens of a request, of one kind."""
        told = {**attributes, names.TOKEN_TYPE: kind}
        self.unharmed(self._record, names.TOKENS_METRIC, "{token}", names.TOKEN_BUCKETS, count, told)

    def unharmed(self, work: Callable[..., Any], *args: Any) -> Any:
        """What a tracer or a meter gives; None where it raises, which is logged the first time."""
        try:
            return work(*args)
        except KeyboardInterrupt:
            raise
        except BaseException:
            if not self._complained:
                import logging

                logging.getLogger("toolcrib").exception(
                    "a tracer or a meter raised; no call is changed by it"
                )
            self._complained = True
            return None

    def _record(
        self, name: str, unit: str, buckets: tuple[float, ...], value: float, attributes: dict[str, Any]
    ) -> None:
        self._histogram(name, unit, buckets).record(value, attributes)

    def _histogram(self, name: str, unit: str, buckets: tuple[float, ...]) -> Any:
        made = self._histograms.get(name)
        if made is None:
            from opentelemetry.metrics import get_meter

            meter = self._meter if self._meter is not None else get_meter(names.LIBRARY)
            made = meter.create_histogram(name, unit, explicit_bucket_boundaries_advisory=buckets)
            self._histograms[name] = made
        return made

    def begin(self, ready: Ready, mask: Mask) -> CallSpan:
        """Open a span `execute_tool NAME`, which is current until it ends."""
        definition = ready.tool.definition
        call, effect = ready.call, ready.effect
        of_tool = self._of_tools.get(definition)
        if of_tool is None or of_tool.name != call.name:
            of_tool = self._of_tools[definition] = _of_tool(definition, call.name)
        attributes = {
            **of_tool.attributes,
            names.TOOL_EFFECT: _LABELS[effect],
            names.CALL_KEY: str(ready.key),
            names.CALL_REPAIRS: len(ready.edits),
        }
        if call.id:
            attributes[names.TOOL_CALL_ID] = mask(call.id)
        if self.record_content:
            given = json.dumps(mask(ready.arguments), ensure_ascii=False, default=str)
            attributes[names.TOOL_ARGUMENTS] = given
        return CallSpan(self, of_tool, attributes)

    async def traced(self, ready: Ready, work: Awaitable[ToolResult], mask: Mask) -> ToolResult:
        """The result of a call that runs in a span."""
        span, result = self.begin(ready, mask), None
        try:
            result = await work
            return result
        finally:
            span.ended(result)


class Span:
    """A span, which is current while it is attached."""

    __slots__ = ("_telemetry", "_token", "span")

    def __init__(
        self, telemetry: Telemetry, name: str, attributes: dict[str, Any], kind: str, outer: Any = None
    ) -> None:
        self._telemetry = telemetry
        self._token: Any = None
        self.span = telemetry.unharmed(_start, telemetry, name, attributes, kind, outer)

    def attach(self, outer: Any = None) -> None:
        """Make the span current, until it ends or is detached. `outer` is the current context, where it is known."""
        if self.span is not None:
            api = _api()
            self._token = api.attach(api.set_span_in_context(self.span, outer))

    def detach(self) -> None:
        """Make the span current again that was before."""
        if self._token is not None:
            _api().detach(self._token)
            self._token = None

    def set(self, attributes: dict[str, Any]) -> None:
        """Add attributes."""
        if self.span is not None:
            self._telemetry.unharmed(self.span.set_attributes, attributes)

    def note(self, event: str, attributes: dict[str, Any]) -> None:
        """Add an event."""
        if self.span is not None:
            self._telemetry.unharmed(self.span.add_event, event, attributes)

    def fail(self, error: str) -> None:
        """Mark the span as failed, with a word of ours for the kind of failure."""
        if self.span is not None:
            from opentelemetry.trace import Status, StatusCode

            self.set({names.ERROR: error})
            self._telemetry.unharmed(self.span.set_status, Status(StatusCode.ERROR, error))

    def end(self) -> None:
        """End the span."""
        self.detach()
        if self.span is not None:
            self._telemetry.unharmed(self.span.end)


class CallSpan(Span):
    """The span of one call, and its duration."""

    __slots__ = ("_clock", "_of_tool", "_started")

    def __init__(self, telemetry: Telemetry, of_tool: _OfTool, attributes: dict[str, Any]) -> None:
        api = _api()
        outer = api.get_current()  # read once: a tracer reads it several times
        super().__init__(telemetry, of_tool.span, attributes, "INTERNAL", outer)
        self.attach(outer)
        self._of_tool = of_tool
        self._clock = api.get_running_loop().time
        self._started = self._clock()

    def ended(self, result: ToolResult | None) -> None:
        """End it with the result of the call; None if the call was cancelled."""
        telemetry = self._telemetry
        measured = self._of_tool.measured
        if result is None or result.is_error:
            code = result.code if result is not None else ErrorCode.CANCELLED
            error = code.value if code is not None else "tool_error"
            measured = {**measured, names.ERROR: error}
            self.fail(error)
        if result is not None and telemetry.record_content:
            self.set({names.TOOL_RESULT: result.text})
        self.end()
        telemetry.duration(self._clock() - self._started, measured)


def _start(telemetry: Telemetry, name: str, attributes: dict[str, Any], kind: str, outer: Any) -> Any:
    return telemetry.tracer.start_span(name, context=outer, kind=_api().kinds[kind], attributes=attributes)


@functools.cache
def _api() -> Any:
    """What a span needs of OpenTelemetry, imported once."""
    from asyncio import get_running_loop

    from opentelemetry.context import attach, detach, get_current
    from opentelemetry.trace import SpanKind, get_tracer_provider, set_span_in_context

    return SimpleNamespace(
        attach=attach,
        detach=detach,
        get_current=get_current,
        get_running_loop=get_running_loop,
        set_span_in_context=set_span_in_context,
        get_tracer_provider=get_tracer_provider,
        kinds={kind.name: kind for kind in SpanKind},
    )


_LABELS = [effect.label for effect in Effect]


class _OfTool(NamedTuple):
    """What all calls of a tool have: its name, that of their spans, attributes of spans and of measurements."""

    name: str
    span: str
    attributes: dict[str, Any]
    measured: dict[str, Any]


def _of_tool(definition: Definition, name: str) -> _OfTool:
    facts = definition.facts
    attributes: dict[str, Any] = {
        names.OPERATION: names.EXECUTE_TOOL,
        names.TOOL_NAME: name,
        names.TOOL_TYPE: "function",
        names.TOOL_IDEMPOTENT: facts.idempotent,
        names.TOOL_OPEN_WORLD: facts.open_world,
    }
    optional = {
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
    measured = {names.OPERATION: names.EXECUTE_TOOL, names.TOOL_NAME: name}
    return _OfTool(name, f"{names.EXECUTE_TOOL} {name}", attributes, measured)


def retried(attempt: int, delay: float) -> None:
    """Note an attempt that failed in the span of the call, if there is one."""
    if SDK not in sys.modules:
        return
    from opentelemetry.trace import get_current_span

    try:
        span = get_current_span()
        span.set_attribute(names.CALL_RETRIES, attempt)
        span.add_event(names.RETRY_EVENT, {names.RETRY_ATTEMPT: attempt, names.RETRY_DELAY: delay})
    except BaseException as problem:  # a span of somebody's own, which costs no attempt
        if isinstance(problem, KeyboardInterrupt):
            raise
