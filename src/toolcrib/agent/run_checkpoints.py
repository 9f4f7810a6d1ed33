"""The checkpoints of a run: one before each turn that may change something, and one after it.

So an undo can tell what the run changed from what a person changed between two turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from typing import TYPE_CHECKING

from toolcrib.call import ToolCall
from toolcrib.effect import Effect
from toolcrib.events import CheckpointTaken, Event, Notice
from toolcrib.visible import counted

if TYPE_CHECKING:
    from toolcrib.agent.transcript import TranscriptFile
    from toolcrib.checkpoints import Checkpoint, Checkpoints
    from toolcrib.toolbox import ToolList
    from toolcrib.toolbox.policy import Covers

__all__ = ["RunCheckpoints"]

MAX_NAMES = 3  # of tools in the label of a checkpoint
NOTHING: AbstractAsyncContextManager[None] = nullcontext()


class RunCheckpoints:
    """Takes the checkpoints of one run; without any, does nothing.

    `tell` emits an event; `at_work` says whether background processes of the run go on after a turn; `covered_by` tells
    the policy what is covered while a turn lasts. A run within a call of another run takes none while a turn of that
    run has one. A checkpoint that cannot be taken does not end the run: a Notice says so, `Checkpoints.covers` says it
    of every path, and nothing counts as covered.
    """

    def __init__(
        self,
        checkpoints: Checkpoints | None,
        run: str,
        *,
        nested: bool,
        transcript: TranscriptFile | None,
        tell: Callable[[Event], None],
        at_work: Callable[[], bool],
        covered_by: Callable[[Covers | None], AbstractContextManager[None]],
    ) -> None:
        self._checkpoints = checkpoints
        self._run = run
        self._nested = nested
        self._transcript = transcript
        self._file = "" if transcript is None else str(transcript.path.absolute())
        self._tell = tell
        self._at_work = at_work
        self._covered_by = covered_by
        self._open = False

    def around(
        self, turn: int, calls: Sequence[ToolCall], tool_list: ToolList | None, messages: int
    ) -> AbstractAsyncContextManager[None]:
        """Around the calls of a turn, before the policy decides on them; `messages` came before the turn."""
        if self._checkpoints is None or not _may_change(calls, tool_list):
            return NOTHING
        return self._around(self._checkpoints, turn, calls, messages)

    @asynccontextmanager
    async def _around(
        self, checkpoints: Checkpoints, turn: int, calls: Sequence[ToolCall], messages: int
    ) -> AsyncGenerator[None]:
        try:
            taken = await self._before(checkpoints, turn, calls, messages)
            with self._covered_by(checkpoints.covers if taken else None):
                yield
        finally:
            if not self._at_work():
                await self.close()

    async def close(self) -> None:
        """Take the checkpoint after a turn, and at the end of the run. What changes from now on is a person's."""
        if self._checkpoints is None or not self._open:
            return
        self._open = False
        await self._in_thread(self._checkpoints.end_turn, "later changes of a person count as this turn's")

    async def _before(
        self, checkpoints: Checkpoints, turn: int, calls: Sequence[ToolCall], messages: int
    ) -> bool:
        """Take the checkpoint before a turn; returns whether this run has one of its own now."""
        from toolcrib.checkpoints import Conversation

        conversation = Conversation(self._run, messages, self._file)
        label = f"turn {turn}: {_names(calls)}"
        nested, goes_on, self._open = self._nested, self._open, True

        def begin() -> Checkpoint | None:
            if goes_on:  # background processes have been at work since the last turn
                return checkpoints.take(label, conversation=conversation, at_work=True)
            return checkpoints.begin_turn(label, conversation, nested=nested)

        taken = await self._in_thread(begin, "this turn cannot be undone")
        if taken is None:
            return False
        if lacking := checkpoints.without_room:
            words = f"the checkpoint lacks {counted(lacking, 'file')}, whose changes cannot be undone"
            self._tell(Notice(f"the disk is full: {words}"))
        if self._transcript is not None:
            with suppress(Exception):  # the file says what it lacks
                self._transcript.checkpoint(taken.id)
        self._tell(CheckpointTaken(turn, taken.id, label))
        return True

    async def _in_thread(self, take: Callable[[], Checkpoint | None], without: str) -> Checkpoint | None:
        """Run a step on a thread, to its end also where the run is cancelled meanwhile."""
        from toolcrib.checkpoints import CheckpointError

        def guarded() -> Checkpoint | None:
            try:
                return take()
            except CheckpointError as problem:
                failed.append(str(problem))
                return None

        failed: list[str] = []
        work = asyncio.get_running_loop().run_in_executor(None, guarded)
        try:
            taken = await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])
            raise
        if failed:
            self._tell(Notice(f"no checkpoint could be taken, so that {without}: {failed[0]}"))
        return taken


def _may_change(calls: Sequence[ToolCall], tool_list: ToolList | None) -> bool:
    """Whether one of the calls may change something, by what its tool declares."""
    if tool_list is None:
        return bool(calls)
    return any(_effect(call, tool_list) is not Effect.READ for call in calls)


def _effect(call: ToolCall, tool_list: ToolList) -> Effect:
    entry = tool_list.entries.get(call.name)
    facts = None if entry is None else getattr(entry.supplied, "facts", None)
    return Effect.DESTRUCTIVE if facts is None else facts.effect


def _names(calls: Sequence[ToolCall]) -> str:
    names = list(dict.fromkeys(call.name for call in calls))
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more
