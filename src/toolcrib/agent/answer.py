"""Reading a model's answer while it streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from toolcrib.agent.streaming_turn import StreamingTurn
from toolcrib.agent.waiting import Waiting
from toolcrib.codecs.codec import LONGEST_WORDS, shortened
from toolcrib.errors import belongs_to_caller
from toolcrib.events import Event, Notice, ReasoningDelta, TextDelta, TurnFinished
from toolcrib.messages import (
    CallChunk,
    Chunk,
    NoticeChunk,
    ReasoningChunk,
    Request,
    Response,
    RestartChunk,
    TextChunk,
    Usage,
)
from toolcrib.models.model import Model, ModelError
from toolcrib.toolbox.operator_log import Mask, log_failure

__all__ = ["read_answer", "turn_finished", "was_cut_off"]

BROKEN_OFF = ("length", "filter", "refusal")  # reasons to stop that may strike in the middle of a call


async def read_answer(
    model: Model,
    request: Request,
    streaming: StreamingTurn,
    partial_calls: bool,
    tell: Callable[[Event], None] | None,
    lost: Callable[[Usage], None],
    mask: Mask,
) -> Response:
    """The complete answer. Raises ModelError if the stream fails, or ends without a complete answer.

    `tell` is told of text and thinking as they come, and of waits. Partial calls go to `streaming` where
    `partial_calls` or `tell` want them; `lost` counts what attempts used that failed. Whatever else the model's
    client library raises is logged without secrets, and becomes a ModelError; the caller's own cancellation is raised
    as it is.
    """
    waiting = Waiting(model.name, streaming.turn, tell)
    stream = model.stream(request)
    chunks: AsyncIterator[Chunk | Response] | None = None
    try:
        while True:
            try:
                chunks = chunks or aiter(stream)
                chunk = await anext(chunks)
            except StopAsyncIteration:
                break
            except ModelError as error:
                lost(error.usage)
                error.reworded(shortened(error.message, 2 * LONGEST_WORDS))
                raise
            except BaseException as error:
                if belongs_to_caller(error):
                    raise
                raise _failure(model, error, mask) from error
            waiting.heard()
            if isinstance(chunk, CallChunk):
                if partial_calls or tell is not None:
                    await streaming.feed(chunk)
            elif isinstance(chunk, Response):
                streaming.response = chunk
            elif isinstance(chunk, TextChunk):
                if tell is not None:
                    tell(TextDelta(chunk.text))
            elif isinstance(chunk, ReasoningChunk):
                if tell is not None:
                    tell(ReasoningDelta(chunk.text))
            elif isinstance(chunk, RestartChunk):
                await streaming.restart(chunk.reason)
            elif isinstance(chunk, NoticeChunk):
                if tell is not None:
                    tell(Notice(chunk.message))
            else:
                lost(chunk.usage)
                waiting.noted(chunk)
    finally:
        waiting.end()
        closing = getattr(stream, "aclose", None)
        if closing is not None:
            await closing()
    response = streaming.response
    if response is None:
        raise ModelError(f"the model {model.name} ended its answer without completing it")
    if streaming.streams:
        await streaming.drop_unknown(response.message.calls)
    return response


def _failure(model: Model, error: BaseException, mask: Mask) -> ModelError:
    log_failure(f"the model {model.name} failed", mask)
    whole = mask(str(error)) or type(error).__name__  # masking would not recognise a secret that is cut
    return ModelError(f"the model {model.name} failed: {shortened(whole)}")


def was_cut_off(response: Response) -> bool:
    """Whether the last call may be incomplete: the answer was broken off in the middle of it."""
    if response.stop_reason in BROKEN_OFF:
        return True
    return response.stop_reason not in ("end", "tool_calls") and not response.message.calls[-1].arguments


def turn_finished(turn: int, response: Response) -> TurnFinished:
    """The event of a complete answer."""
    usage = response.usage
    tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return TurnFinished(turn, len(response.message.calls), response.stop_reason, tokens)
