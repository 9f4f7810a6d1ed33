"""The interface of a model, as the agent loop uses it: it answers a request, streamed or at once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from typing import Protocol

from toolcrib.call import ToolCall
from toolcrib.codecs.codec import ModelError
from toolcrib.codecs.wire_json import compact
from toolcrib.content import Text
from toolcrib.messages import CallChunk, Chunk, Reasoning, ReasoningChunk, Request, Response, TextChunk, Usage

__all__ = ["Model", "ModelError", "chunks_of", "counted_if_left", "last_of"]


class Model(Protocol):
    """Answers requests. `name` identifies the model in logs and spans.

    Both methods raise ModelError, and nothing else, when there is no answer.
    """

    @property
    def name(self) -> str: ...

    def stream(self, request: Request) -> AsyncIterator[Chunk | Response]:
        """The answer's chunks as they come, then exactly one Response.

        Closing the iterator (`aclose()`) early closes the connection behind it.
        """
        ...

    async def respond(self, request: Request) -> Response:
        """The whole answer."""
        ...


@contextmanager
def counted_if_left(request: Request, usage: Usage) -> Generator[None]:
    """While chunks are handed out, after which their reader learns what an answer used: if it leaves, it is told."""
    try:
        yield
    except GeneratorExit:
        if request.lost is not None:
            request.lost(usage)
        raise


async def last_of(stream: AsyncGenerator[Chunk | Response, None]) -> Response:
    """The Response that ends a stream."""
    async for item in stream:
        if isinstance(item, Response):
            return item
    raise ModelError("the model ended without an answer", retryable=True)


def chunks_of(response: Response, size: int = 0) -> Iterator[Chunk]:
    """The chunks of a complete answer, `size` characters each (0: in one piece)."""
    number = 0
    for part in response.message.parts:
        if isinstance(part, Reasoning):
            yield from (ReasoningChunk(piece) for piece in _pieces(part.text, size))
        elif isinstance(part, Text):
            yield from (TextChunk(piece) for piece in _pieces(part.text, size))
        elif isinstance(part, ToolCall):
            yield CallChunk(number, part.name, part.id)
            text = part.arguments if isinstance(part.arguments, str) else compact(part.arguments)
            yield from (CallChunk(number, arguments=piece) for piece in _pieces(text, size))
            yield CallChunk(number, done=True)
            number += 1


def _pieces(text: str, size: int) -> Iterator[str]:
    step = size if size > 0 else max(len(text), 1)
    return (text[start : start + step] for start in range(0, len(text), step))
