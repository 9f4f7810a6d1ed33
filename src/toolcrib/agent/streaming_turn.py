"""The calls of an answer that still streams: their partial arguments, and calls that start early."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from toolcrib.call import CallKey, ToolCall
from toolcrib.messages import CallChunk, Response

if TYPE_CHECKING:
    from toolcrib.toolbox.call_stream import CallStream
    from toolcrib.toolbox.early_start import EarlyStart

__all__ = ["StreamingTurn"]


class StreamingTurn:
    """The calls of an answer while it streams: their partial arguments, and calls that were started early.

    `open_call` opens the stream of a call. `restarted` is told why an answer begins again, and whether calls of
    it were seen, and gives the number of the turn that goes on. `early_start`, if it is given, makes what
    starts calls early.
    """

    def __init__(
        self,
        run: str,
        turn: int,
        open_call: Callable[[str, CallKey], Awaitable[CallStream]],
        restarted: Callable[[str, bool], int],
        early_start: Callable[[int], EarlyStart] | None,
    ) -> None:
        self.streams: dict[int, CallStream] = {}
        self.response: Response | None = None  # the whole answer, as soon as it has come
        self._run = run
        self.turn = turn
        self._open_call = open_call
        self._restarted = restarted
        self._early_start = early_start
        self.early = early_start(turn) if early_start is not None else None

    async def feed(self, chunk: CallChunk) -> None:
        """Take the next piece of a call in."""
        stream = self.streams.get(chunk.index)
        if stream is None:
            key = CallKey(self._run, self.turn, chunk.index)
            stream = self.streams[chunk.index] = await self._open_call(chunk.name, key)
        stream.feed(chunk.arguments)
        if self.early is not None:
            self.early.feed(chunk.index, chunk.name, chunk.id, chunk.arguments)
            if chunk.done:
                await self.early.completed(chunk.index, stream)

    async def restart(self, why: str) -> None:
        """Drops the calls of an answer that starts again."""
        seen = bool(self.streams)
        await self.discard()
        self.turn = self._restarted(why, seen)
        if self._early_start is not None:
            self.early = self._early_start(self.turn)

    async def drop_unknown(self, calls: list[ToolCall]) -> None:
        """Forget streams of calls that are not in the whole answer, and what was started of them."""
        ended = set() if self.early is None else await self.early.discard(but=set(range(len(calls))))
        for index, stream in list(self.streams.items()):
            if index >= len(calls) or calls[index].name != stream.name:
                replaced = index < len(calls)  # a call of another name has the same key
                await self.streams.pop(index).discard(told=replaced or index in ended)

    async def discard(self, *, told: bool = False) -> None:
        """Discard all calls: the answer will not come. `told` says that each gets a result all the same."""
        streams, self.streams = self.streams, {}
        ended = set[int]()
        try:
            if self.early is not None:
                ended = await self.early.discard()
        finally:
            for index, stream in streams.items():
                await stream.discard(told=told or index in ended)
