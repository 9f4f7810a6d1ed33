"""OpenTelemetry spans of a run and of its requests. Loaded only where the toolbox traces or measures.

`invoke_agent` lasts as long as the run and is current in it, so that the requests (`chat`) and the calls
(`execute_tool`) are its children, and the run of a nested agent a child of its call.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from toolcrib.agent.outcome import Outcome, Reason
from toolcrib.agent.settings import AgentSettings
from toolcrib.call import ToolCall
from toolcrib.messages import (
    CallChunk,
    Chunk,
    FallbackChunk,
    Message,
    ReasoningChunk,
    Request,
    Response,
    ResultPart,
    RetryChunk,
    TextChunk,
    Usage,
)
from toolcrib.models.model import Model, ModelError
from toolcrib.models.providers import AZURE_HOSTS
from toolcrib.toolbox import telemetry_names as names
from toolcrib.toolbox.operator_log import Mask, mask_of
from toolcrib.toolbox.telemetry import Span, Telemetry

if TYPE_CHECKING:
    from toolcrib.toolbox import Toolbox

__all__ = ["run_span", "traced_model"]

FAILED = (Reason.MODEL_ERROR, Reason.FAILED, Reason.CANCELLED)


@contextmanager
def run_span(
    telemetry: Telemetry, run: str, settings: AgentSettings, ended: Callable[[], Outcome | None]
) -> Generator[None]:
    """The span `invoke_agent` around a whole run, whose outcome `ended` gives."""
    clock = asyncio.get_running_loop().time
    measured = {names.OPERATION: names.INVOKE_AGENT, **_identity(settings.model)}
    if settings.name:
        measured[names.AGENT_NAME] = settings.name
    started = clock()
    name = f"{names.INVOKE_AGENT} {settings.name}".strip()
    span = Span(telemetry, name, {**measured, names.RUN: run}, "INTERNAL")
    span.attach()
    try:
        yield
    finally:
        reason = Reason.FAILED
        if (outcome := ended()) is not None:
            reason = outcome.reason
            span.set({names.RUN_TURNS: outcome.turns, **_used(outcome.usage)})
        span.set({names.RUN_REASON: reason.value})
        if reason in FAILED:
            span.fail(reason.value)
            measured[names.ERROR] = reason.value
        telemetry.duration(clock() - started, measured)
        span.end()


def traced_model(model: Model, box: Toolbox[Any]) -> Model:
    """The model, with a span for each request."""
    return TracedModel(model, box.telemetry, mask_of(box.masking))


class TracedModel:
    """A model whose every request is a span `chat MODEL`. The next model of a list has a span of its own."""

    def __init__(self, model: Model, telemetry: Telemetry, mask: Mask) -> None:
        self.name = model.name
        self._model = model
        self._telemetry = telemetry
        self._mask = mask

    async def stream(self, request: Request) -> AsyncGenerator[Chunk | Response, None]:
        """The model's stream. The span is current while the model works, and not while its chunks are read."""
        span = _RequestSpan(self._model, request, self._telemetry, self._mask)
        answer = aiter(self._model.stream(request))
        try:
            while True:
                span.span.attach()
                try:
                    item = await anext(answer, None)
                finally:
                    span.span.detach()
                if item is None:
                    return
                span.saw(item)
                if isinstance(item, FallbackChunk):
                    span.end("no_answer")
                    following = _named(self._model, item.model)
                    span = _RequestSpan(following or self._model, request, self._telemetry, self._mask)
                yield item
        except ModelError as error:
            span.end(str(error.status) if error.status else "model_error")
            raise
        except (asyncio.CancelledError, GeneratorExit):
            span.end("cancelled")
            raise
        except BaseException as error:
            span.end(type(error).__name__)
            raise
        finally:
            span.end()
            closing = getattr(answer, "aclose", None)
            if closing is not None:
                await closing()

    async def respond(self, request: Request) -> Response:
        """The whole answer, without a span: runs always stream."""
        return await self._model.respond(request)


class _RequestSpan:
    """The span of one request to one model, and its metrics."""

    def __init__(self, model: Any, request: Request, telemetry: Telemetry, mask: Mask) -> None:
        self._telemetry = telemetry
        self._mask = mask
        self._clock = asyncio.get_running_loop().time
        self._started = self._sent = self._clock()
        self._first: float | None = None
        self._retries = 0
        self._ended = False
        self._response: Response | None = None
        self._measured = {names.OPERATION: names.CHAT, **_identity(model)}
        asked = {names.REQUEST_MAX_TOKENS: request.max_tokens, names.REQUEST_TEMPERATURE: request.temperature}
        attributes = {**self._measured, names.REQUEST_STREAM: True}
        attributes |= {name: value for name, value in asked.items() if value is not None}
        if telemetry.record_content:
            attributes[names.INPUT_MESSAGES] = _content(request.messages, mask)
        self.span = Span(
            telemetry, f"{names.CHAT} {self._measured[names.REQUEST_MODEL]}", attributes, "CLIENT"
        )

    def saw(self, item: Chunk | Response) -> None:
        """Note what the model gave."""
        if isinstance(item, RetryChunk):
            self._retries += 1
            self._sent, self._first = self._clock() + item.delay, None
            noted = {names.RETRY_ATTEMPT: item.attempt - 1, names.RETRY_DELAY: item.delay}
            self.span.note(names.RETRY_EVENT, noted)
        elif isinstance(item, Response):
            self._response = item
        elif self._first is None and isinstance(item, TextChunk | ReasoningChunk | CallChunk):
            self._first = self._clock() - self._sent

    def end(self, error: str = "") -> None:
        """End the span, as failed if `error` names a kind of failure. Only the first call counts."""
        if self._ended:
            return
        self._ended = True
        measured, response, telemetry = self._measured, self._response, self._telemetry
        if self._retries:
            self.span.set({names.REQUEST_RETRIES: self._retries})
        if self._first is not None:
            self.span.set({names.FIRST_CHUNK: self._first})
        if response is not None:
            reason = response.raw_stop_reason or response.stop_reason
            self.span.set({names.FINISH_REASONS: [reason], **_used(response.usage)})
            if response.model:
                self.span.set({names.RESPONSE_MODEL: response.model})
                measured[names.RESPONSE_MODEL] = response.model
            if telemetry.record_content:
                self.span.set({names.OUTPUT_MESSAGES: _content([response.message], self._mask)})
        else:
            measured[names.ERROR] = error or "incomplete"
            self.span.fail(measured[names.ERROR])
        self.span.end()
        telemetry.duration(self._clock() - self._started, measured)
        if self._first is not None:
            telemetry.first_chunk(self._first, measured)
        if response is not None and response.usage.total_tokens:
            telemetry.tokens(names.INPUT, response.usage.input_tokens, measured)
            telemetry.tokens(names.OUTPUT, response.usage.output_tokens, measured)


def _identity(model: Any) -> dict[str, Any]:
    """Provider, model and server: of the first model of a list."""
    while models := getattr(model, "models", None):
        model = models[0]
    codec, address = getattr(model, "codec", None), getattr(model, "base_url", "") or ""
    provider, _, name = model.name.partition(":")
    if codec is not None:
        provider, name = codec.provider.removesuffix("-chat"), getattr(model, "model", name)
    server = urlsplit(address)
    if (server.hostname or "").endswith(AZURE_HOSTS):
        provider = "azure.ai.openai"
    found = {
        names.PROVIDER: names.PROVIDERS.get(provider, provider),
        names.REQUEST_MODEL: name or model.name,
    }
    if server.hostname:
        port = server.port or (443 if server.scheme == "https" else 80)
        found |= {names.SERVER_ADDRESS: server.hostname, names.SERVER_PORT: port}
    return found


def _named(model: Any, name: str) -> Any:
    """The model of that name in a list, which may hold lists."""
    for one in getattr(model, "models", ()):
        found = one if one.name == name else _named(one, name)
        if found is not None:
            return found
    return None


def _used(usage: Usage) -> dict[str, Any]:
    """Tokens and cost as attributes; what was not used, or is not known, is left out."""
    used = {
        names.INPUT_TOKENS: usage.input_tokens,
        names.OUTPUT_TOKENS: usage.output_tokens,
        names.CACHE_READ_TOKENS: usage.cache_read_tokens,
        names.CACHE_WRITE_TOKENS: usage.cache_write_tokens,
        names.REASONING_TOKENS: usage.reasoning_tokens,
        names.COST: usage.cost,
    }
    return {name: value for name, value in used.items() if value}


def _content(messages: Any, mask: Mask) -> str:
    """Messages in the JSON of the conventions, without secrets."""
    return json.dumps([mask(_message(message)) for message in messages], ensure_ascii=False, default=str)


def _message(message: Message) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            call = {"type": "tool_call", "id": part.id, "name": part.name, "arguments": part.arguments}
            parts.append(call)
        elif isinstance(part, ResultPart):
            said = part.result.text
            parts.append({"type": "tool_call_response", "id": part.call.id, "response": said})
        elif text := part.as_text():
            kind = "reasoning" if part.kind == "reasoning" else "text"
            parts.append({"type": kind, "content": text})
    return {"role": message.role, "parts": parts}
