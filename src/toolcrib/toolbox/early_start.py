"""Calls that start while the model still writes: calls that only read, up to the first other call of the turn.

No call that changes something runs before the answer is complete. If an answer is discarded, so are the calls
that were started for it.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from toolcrib.call import CallKey, ToolCall
from toolcrib.effect import Effect
from toolcrib.json_text.values import same_json
from toolcrib.prepared import Prepared, Ready, Refused
from toolcrib.result import ToolResult
from toolcrib.toolbox.closing import close_tool
from toolcrib.toolbox.path import CallPath
from toolcrib.toolbox.registry import Registry
from toolcrib.toolbox.report import Record

if TYPE_CHECKING:
    from toolcrib.toolbox.call_stream import CallStream
    from toolcrib.toolbox.tool_list import ToolList

__all__ = ["EarlyStart"]

Started = tuple[ToolCall, Prepared, "asyncio.Task[ToolResult] | None"]


class EarlyStart:
    """The calls of one turn as they become complete; `TurnCalls` takes over what was started.

    A call is started when it is READ and not open-world, allowed without a question, needed no repair, and all
    calls before it in its turn were such calls too. The first call that is not ends it for the turn. Nothing starts
    early through middleware around execution, which may make any other call of it.
    """

    def __init__(
        self,
        path: CallPath,
        registry: Registry,
        run: str,
        turn: int,
        tool_list: ToolList | None,
        deps: Any,
    ) -> None:
        self._path = path
        self._registry = registry
        self._run = run
        self._turn = turn
        self._tool_list = tool_list
        self._deps = deps
        self._texts: dict[int, list[str]] = {}
        self._heads: dict[int, tuple[str, str]] = {}
        self._started: dict[int, Started] = {}
        self._unrecorded: list[tuple[CallKey, ToolResult]] = []
        self._record: Record | None = None
        self._open = True

    def feed(self, index: int, name: str, id: str, arguments: str) -> None:
        """A piece of a call, as it streams."""
        if self._open:
            known = self._heads.get(index, ("", ""))
            self._heads[index] = (known[0] or name, known[1] or id)
            self._texts.setdefault(index, []).append(arguments)

    async def completed(self, index: int, stream: CallStream | None) -> bool:
        """The arguments of a call are complete: start the call if it may start. Returns whether it was taken over."""
        if not self._open or index != len(self._started):  # a later one of several that interleave
            return False
        name, id = self._heads.get(index, ("", ""))
        entry = self._registry.known(name)
        definition = entry.definition() if entry is not None else None
        facts = definition.facts if definition is not None else None
        if facts is None or facts.effect is not Effect.READ or facts.open_world:
            self._open = False
            return False
        call = ToolCall(name, "".join(self._texts.pop(index, ())), id)
        key = CallKey(self._run, self._turn, index)
        prepared = await self._path.preparation.prepare(call, key, self._tool_list, stream, self._deps)
        task = None
        if isinstance(prepared, Ready) and self._may_start(prepared):
            running = self._path.finish(prepared, self._deps, None, self._keep)
            task = asyncio.create_task(running, name=f"toolcrib {key}")
        else:
            self._open = False
        self._started[index] = (call, prepared, task)
        return True

    def _may_start(self, ready: Ready) -> bool:
        """Whether a prepared call is one that only reads, as the model wrote it; a middleware may have changed it."""
        facts = ready.tool.definition.facts
        reads = facts.effect is Effect.READ and not facts.open_world
        of_toolsets = ready.tool.entry.steps
        steps = self._path.steps or (of_toolsets is not None and of_toolsets.around_execute)
        return reads and not ready.edits and not steps

    def prepared(self, index: int, call: ToolCall) -> Prepared | None:
        """The prepared call for a call of the whole answer; None if that call was not prepared early."""
        started = self._started.get(index)
        return started[1] if started is not None and _same(started[0], call) else None

    def started(self, prepared: Prepared) -> bool:
        """Whether a prepared call is one that was prepared here."""
        return self._started.get(prepared.key.index, (None, None, None))[1] is prepared

    def task(self, prepared: Prepared) -> asyncio.Task[ToolResult] | None:
        """The run of a prepared call that was started."""
        _, here, task = self._started.get(prepared.key.index, (None, None, None))
        return task if here is prepared else None

    def release(self, record: Record | None) -> None:
        """The answer is complete: record the calls that ended, and the others when they end."""
        self._record = record
        unrecorded, self._unrecorded = self._unrecorded, []
        for key, result in unrecorded:
            self._keep(key, result)

    async def stop(self, record: Record | None) -> None:
        """The turn is cut short: stop what runs; each call that was started has its one result recorded."""
        tasks = [task for _, _, task in self._started.values() if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.release(record)

    async def discard(self, *, but: frozenset[int] | set[int] = frozenset()) -> set[int]:
        """Discard the calls that were started, except some: cancel those that run, close their tools.

        Returns which of them had come to a result, so that listeners were told of their end.
        """
        self._open = False
        discarded = {index: self._started.pop(index) for index in list(self._started) if index not in but}
        self._unrecorded = [item for item in self._unrecorded if item[0].index not in discarded]
        running = [task for _, _, task in discarded.values() if task is not None]
        for begun in running:  # all of them, before the first wait: the caller may be cancelled in it
            begun.cancel()
        try:
            await asyncio.gather(*running, return_exceptions=True)
        finally:
            for _, prepared, task in discarded.values():
                if task is None and not isinstance(prepared, Refused) and prepared.tool.entry.owned:
                    await close_tool(prepared.tool.entry, prepared.tool.instance)
        return {
            index for index, (_, prepared, _) in discarded.items() if prepared.execution.result is not None
        }

    def _keep(self, key: CallKey, result: ToolResult) -> None:
        if key.index not in self._started:
            return
        if self._record is not None:
            self._path.report.recorded(self._record, key, result)
        else:
            self._unrecorded.append((key, result))


def _same(streamed: ToolCall, whole: ToolCall) -> bool:
    """Whether a call of the whole answer is the call that was started; an object may have streamed as text."""
    if streamed.name != whole.name or whole.problem:
        return False
    if streamed.arguments == whole.arguments:
        return True
    try:
        read = [
            json.loads(call.arguments or "{}") if isinstance(call.arguments, str) else call.arguments
            for call in (streamed, whole)
        ]
    except ValueError:
        return False
    return same_json(read[0], read[1])
