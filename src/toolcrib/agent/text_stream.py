"""The text of a run for its user, in pieces as the model writes it."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

from toolcrib.agent.completion import COMPLETION
from toolcrib.agent.outcome import Reason
from toolcrib.events import AnswerRestarted, ArgumentsDelta, Event, RunFinished, TextDelta, TurnStarted

__all__ = ["text_of"]


async def text_of(events: AsyncIterable[Event], run: str) -> AsyncIterator[str]:
    """The text that the model of a run writes for the user: each piece once, answers apart by an empty line.

    The result that it hands to attempt_completion is such a text too.
    """
    block = ""  # of the answer, or of the call, that is being written
    earlier = False  # whether another block was given before
    writer = ""
    async for event in events:
        if event.run != run:
            continue
        piece = ""
        if isinstance(event, TextDelta):
            source, piece = "text", event.text
        elif isinstance(event, ArgumentsDelta) and _is_result(event):
            source, piece = str(event.key), str(event.delta)
        elif isinstance(event, RunFinished):
            source, piece = writer, _rest(event, block)
            if piece == event.text:
                source = "end"
        elif isinstance(event, TurnStarted | AnswerRestarted):
            source = ""
        else:
            continue
        if source != writer:
            earlier, block, writer = earlier or bool(block), "", source
        if piece:
            yield f"\n\n{piece}" if earlier and not block else piece
            block += piece


def _is_result(event: ArgumentsDelta) -> bool:
    return event.tool == COMPLETION and event.path == ("result",) and isinstance(event.delta, str)


def _rest(event: RunFinished, block: str) -> str:
    """What the final text has beyond the pieces: all of it for a model that gives no pieces."""
    if event.text.startswith(block):
        return event.text[len(block) :]
    return event.text if event.reason == Reason.COMPLETED else ""
