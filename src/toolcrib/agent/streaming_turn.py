"""The calls of an answer that still streams: their partial arguments, and calls that start early."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.call import CallKey, ToolCall
from toolcrib.events import AnswerRestarted, TurnStarted
from toolcrib.messages import CallChunk

if TYPE_CHECKING:
    from toolcrib.agent.agent import Run
    from toolcrib.toolbox import ToolList
    from toolcrib.toolbox.call_stream import CallStream
    from toolcrib.toolbox.early_start import EarlyStart


class StreamingTurn:
    """The calls of an answer while it streams: their partial arguments, and calls that were started early."""

    def __init__(self, run: Run, tool_list: ToolList | None, *, early: bool) -> None:
        self.streams: dict[int, CallStream] = {}
        self._run = run
        self._tool_list = tool_list
        self.early = self._early() if early else None

    def _early(self) -> EarlyStart:
        from toolcrib.toolbox.early_start import EarlyStart

        run = self._run
        return EarlyStart(run.box, run.id, run.turns, self._tool_list, run.deps)

    async def feed(self, chunk: CallChunk) -> None:
        """Take the next piece of a call in."""
        stream = self.streams.get(chunk.index)
        if stream is None:
            key = CallKey(self._run.id, self._run.turns, chunk.index)
            stream = self.streams[chunk.index] = await self._run.box.open_call(chunk.name, key)
        stream.feed(chunk.arguments)
        if self.early is not None:
            self.early.feed(chunk.index, chunk.name, chunk.id, chunk.arguments)
            if chunk.done:
                await self.early.completed(chunk.index, stream)

    async def restart(self, why: str) -> None:
        """The answer begins again; a turn of its own, where calls were seen: no key is used twice."""
        run = self._run
        seen = bool(self.streams)
        await self.discard()
        if run.box.sink:
            run.box.emit(run.id, AnswerRestarted(run.turns, why))
        if seen:
            run.turns += 1
            run.restarted += 1
            if run.box.sink:
                run.box.emit(run.id, TurnStarted(turn=run.turns))
        self.early = self._early() if self.early is not None else None

    async def drop_strangers(self, calls: list[ToolCall]) -> None:
        """Forget streams that the whole answer does not know."""
        for index, stream in list(self.streams.items()):
            if index >= len(calls) or calls[index].name != stream.name:
                await self.streams.pop(index).discard()

    async def discard(self) -> None:
        """The answer will not come."""
        streams, self.streams = list(self.streams.values()), {}
        for stream in streams:
            await stream.discard()
        if self.early is not None:
            await self.early.discard()
