"""Calls begun while the model still writes: those that only read, and have only such before them.

Nothing that changes anything runs before the answer is whole, and what was begun for an answer that is
void is thrown away with it.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from toolcrib.call import CallKey, ToolCall
from toolcrib.effect import Effect
from toolcrib.prepared import Ready
from toolcrib.result import ToolResult
from toolcrib.toolbox.registry import close_tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolcrib.prepared import Prepared
    from toolcrib.toolbox.box import Toolbox
    from toolcrib.toolbox.call_stream import CallStream
    from toolcrib.toolbox.tool_list import ToolList


class EarlyStart:
    """The calls of one turn as they become complete; `run_turn` takes over what was begun.

    A call is begun when it is READ and not open-world, allowed without a question, needed no repair, and all
    calls before it in its turn were such calls too. The first that is not ends it for the turn.
    """

    def __init__(
        self, box: Toolbox, run: str, turn: int, tool_list: ToolList | None, deps: Any = None
    ) -> None:
        self._box = box
        self._run = run
        self._turn = turn
        self._tool_list = tool_list
        self._deps = deps
        self._texts: dict[int, list[str]] = {}
        self._heads: dict[int, tuple[str, str]] = {}
        self._begun: dict[int, tuple[Prepared, asyncio.Task[ToolResult] | None]] = {}
        self._kept: list[tuple[CallKey, ToolResult]] = []
        self._record: Callable[[CallKey, ToolResult], None] | None = None
        self._open = True

    def feed(self, index: int, name: str, id: str, arguments: str) -> None:
        """A piece of a call, as it streams."""
        if self._open:
            known = self._heads.get(index, ("", ""))
            self._heads[index] = (known[0] or name, known[1] or id)
            self._texts.setdefault(index, []).append(arguments)

    async def completed(self, index: int, stream: CallStream | None) -> bool:
        """A call's arguments are whole: begin it, if it may be. Whether it, or its stream, was taken over."""
        if not self._open or index != len(self._begun):  # a later one of several that interleave
            return False
        name, id = self._heads.get(index, ("", ""))
        entry = self._box.registry.known(name)
        definition = entry.definition() if entry is not None else None
        facts = definition.facts if definition is not None else None
        if facts is None or facts.effect is not Effect.READ or facts.open_world:
            self._open = False
            return False
        call = ToolCall(name, "".join(self._texts.pop(index, ())), id)
        key = CallKey(self._run, self._turn, index)
        prepared = await self._box.prepare(
            call, key=key, tool_list=self._tool_list, stream=stream, deps=self._deps
        )
        task = None
        if type(prepared) is Ready and not prepared.edits:
            running = self._box.execute(prepared, deps=self._deps, record=self._keep)
            task = asyncio.create_task(running, name=f"toolcrib {key}")
        else:
            self._open = False
        self._begun[index] = (prepared, task)
        return True

    def prepared(self, index: int, call: ToolCall) -> Prepared | None:
        """What was prepared for a call of the whole answer; None when there is none, or it was another call."""
        item = self._begun.get(index)
        return item[0] if item is not None and _same(item[0].call, call) else None

    def task(self, prepared: Prepared) -> asyncio.Task[ToolResult] | None:
        """The run of a prepared call that was begun."""
        prepared_here, task = self._begun.get(prepared.key.index, (None, None))
        return task if prepared_here is prepared else None

    def release(self, record: Callable[[CallKey, ToolResult], None] | None) -> None:
        """The answer stands: its calls that ended are recorded, the others when they end."""
        self._record = record
        kept, self._kept = self._kept, []
        for key, result in kept:
            self._keep(key, result)

    async def stop(self, record: Callable[[CallKey, ToolResult], None] | None) -> None:
        """The turn is cut short: stop what runs; each call that was begun has its one result recorded."""
        tasks = [task for _, task in self._begun.values() if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.release(record)

    async def discard(self, *, but: frozenset[int] | set[int] = frozenset()) -> None:
        """Throw away what was begun, but for some: stop what runs, close what was made."""
        for index in [index for index in self._begun if index not in but]:
            prepared, task = self._begun.pop(index)
            self._kept = [item for item in self._kept if item[0].index != index]
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            elif isinstance(prepared, Ready) and prepared.bound is not None and prepared.bound.entry.owned:
                await close_tool(prepared.bound.tool)
        self._open = False

    def _keep(self, key: CallKey, result: ToolResult) -> None:
        if key.index not in self._begun:
            return
        if self._record is not None:
            self._box.recorded(self._record, key, result)
        else:
            self._kept.append((key, result))


def _same(begun: ToolCall, whole: ToolCall) -> bool:
    """Whether the call of the whole answer is the one that was begun; an object may have streamed as text."""
    if begun.name != whole.name or whole.problem:
        return False
    if begun.arguments == whole.arguments:
        return True
    try:
        read = [
            json.loads(call.arguments or "{}") if isinstance(call.arguments, str) else call.arguments
            for call in (begun, whole)
        ]
    except ValueError:
        return False
    return bool(read[0] == read[1])
