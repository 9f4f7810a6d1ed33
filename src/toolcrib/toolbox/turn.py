"""The calls of one turn: side by side where that is safe, in the model's order where it is not.

READ calls run together but never overtake an earlier call that changes something; a call that names the
resources it touches waits only for earlier ones that touch the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolcrib.call import CallKey, ToolCall, new_key
from toolcrib.effect import Effect
from toolcrib.prepared import Pending, Prepared, Ready, Refused
from toolcrib.result import ToolResult
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.call_order import CallOrder, Work
from toolcrib.toolbox.path import CallPath
from toolcrib.toolbox.report import Record
from toolcrib.toolbox.resources import Resources, only_own, resources_of
from toolcrib.toolbox.turn_questions import TurnQuestions

if TYPE_CHECKING:
    from toolcrib.toolbox.call_stream import CallStream
    from toolcrib.toolbox.early_start import EarlyStart
    from toolcrib.toolbox.suspensions import Suspensions
    from toolcrib.toolbox.tool_list import ToolList

__all__ = ["TurnCalls"]

READ = Effect.READ


class TurnCalls:
    """The calls of one turn on their way. `run` gives their results in their order, exactly one each."""

    def __init__(
        self,
        path: CallPath,
        calls: Sequence[ToolCall],
        first: CallKey,
        *,
        tool_list: ToolList | None,
        streams: Mapping[int, CallStream],
        early: EarlyStart | None,
        deps: Any,
        timeout: float | None,
        record: Record | None,
        done: Mapping[int, ToolResult],
        suspensions: Suspensions,
    ) -> None:
        self._path = path
        self._calls = calls
        self._keys = [new_key((first.run, first.turn, first.index + at)) for at in range(len(calls))]
        self._tool_list = tool_list
        self._streams = streams
        self._early = early
        self._deps = deps
        self._timeout = timeout
        self._record = record
        several = len(calls) > 1
        self._asking = TurnQuestions(path.questions.approving) if several else None
        self._basis = path.basis() if several else None
        self._prepared: list[Prepared | None] = []
        self._results: list[ToolResult | None] = [done.get(index) for index in range(len(calls))]
        self._suspensions = suspensions
        self._suspension = suspensions.of(first.run)

    async def run(self) -> list[ToolResult]:
        originals = _first_of_duplicates(self._calls)
        early = self._early
        try:
            for index, call in enumerate(self._calls):
                known = index in originals or self._results[index] is not None
                self._prepared.append(None if known else await self._prepare(index, call))
            if early is not None:
                taken = [item for item in self._prepared if item is not None and early.started(item)]
                await early.discard(but={item.key.index for item in taken})
                early.release(self._record)
            await self._run_ordered()
        except BaseException:
            if early is not None:
                await early.stop(self._record)
            await self._answer_the_rest()
            for stream in self._streams.values():
                await stream.discard(told=True)
            raise
        for index, original in originals.items():
            if self._results[index] is not None:
                continue
            unused = self._streams.get(index)
            if unused is not None:
                await unused.discard(told=True)
            same = self._results[original]
            assert same is not None
            if self._waits(self._keys[original]):  # so does this one, and has no result of its own
                self._results[index] = same
                if self._record is not None:
                    self._path.report.recorded(self._record, self._keys[index], same)
                continue
            repeated = Refused(self._calls[index], self._keys[index], same)
            self._results[index] = self._path.report.refused(repeated, self._record)
        return [result for result in self._results if result is not None]

    async def _prepare(self, index: int, call: ToolCall) -> Prepared:
        if self._early is not None and (started := self._early.prepared(index, call)) is not None:
            return started
        key, stream = self._keys[index], self._streams.get(index)
        if self._suspension is not None and key in self._suspension.saved:
            return await self._suspensions.restored(key, self._deps)
        if stream is None:
            prepared = self._path.preparation.without_awaiting((call, key, self._tool_list))
            if prepared is not None:
                return prepared
        return await self._path.preparation.prepare(call, key, self._tool_list, stream, self._deps)

    async def _run_ordered(self) -> None:
        """Run each call as soon as no earlier call that conflicts with it runs. Refused calls are answered at once."""
        alone = len(self._calls) == 1 and self._early is None
        orders, running = (CallOrder(), CallOrder()), list[Work]()  # the second for what belongs to the run
        try:
            for row in self._rows():
                item = row[0][1]
                if alone or isinstance(item, Refused):
                    await self._run_row(row, [])
                    continue
                touched = _touched(item)
                order = orders[only_own(touched)]
                before = order.before(item.effect, touched)
                if self._asking is not None and isinstance(item, Pending) and not before:
                    self._asking.expect(item.key)
                task = asyncio.create_task(self._run_row(row, before), name=f"toolcrib {item.key}")
                order.add(item.effect, touched, task)
                running.append(task)
            if running:  # not `gather`: it would cancel them, too, so twice for one cancellation
                ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
                for task in ended:
                    task.result()
        except BaseException:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            raise

    def _rows(self) -> list[list[tuple[int, Prepared]]]:
        """The calls to run, in rows. Successive calls that may change anything form one row and run one by one."""
        rows: list[list[tuple[int, Prepared]]] = []
        joins = False  # whether the last row may go on
        for index, item in enumerate(self._prepared):
            if item is None:
                continue
            one_by_one = not isinstance(item, Refused) and item.effect is not READ and _touched(item) is None
            if joins and one_by_one:
                rows[-1].append((index, item))
            else:
                rows.append([(index, item)])
            joins = one_by_one
        return rows

    async def _run_row(self, row: list[tuple[int, Prepared]], before: list[Work]) -> bool:
        """Run calls one after the other once earlier ones have ended.

        Returns whether the last one waits for an answer, so that later ones have to, too.
        """
        if before:
            await asyncio.wait(before)
        waits = self._suspension is not None and any(task.result() for task in before)
        after_others = bool(before)
        for index, item in row:
            waits = await self._run_one(index, item, waits, after_others=after_others)
            if len(row) > 1:
                await asyncio.sleep(0)  # lets other tasks run in between
            after_others = True
        return waits

    async def _run_one(self, index: int, item: Prepared, held_back: bool, *, after_others: bool) -> bool:
        """Run a call; returns whether it waits for an answer. Where an earlier one waits, it is held back.

        It is decided on again if it came after others, or if the policy changed.
        """
        started = self._early.task(item) if self._early is not None else None
        if started is not None:
            self._results[index] = await started
            return self._waits(item.key)
        if held_back:
            assert not isinstance(item, Refused)
            self._results[index] = await self._suspensions.hold_back(item, self._record)
            return True
        changed = self._basis is not None and not self._path.still_decided_on(self._basis)
        kept = after_others or self._early is not None or changed
        try:
            self._results[index] = await self._path.finish(
                item, self._deps, self._timeout, self._record, kept=kept, asking=self._asking
            )
        finally:
            if self._asking is not None:
                self._asking.no_longer_expect(item.key)
        return self._waits(item.key)

    def _waits(self, key: CallKey) -> bool:
        return self._suspension is not None and key in self._suspension.waiting

    async def _answer_the_rest(self) -> None:
        """The turn was cut short: calls that have no recorded result yet are recorded as cancelled."""
        for index, call in enumerate(self._calls):
            item = self._prepared[index] if index < len(self._prepared) else None
            if self._suspension is not None and self._suspension.drop(self._keys[index]):
                item = None  # it waited, and will not any more
            elif self._results[index] is not None or (item is not None and item.execution.result is not None):
                continue
            unrun = model_messages.cancelled(call.name, started=False)
            if item is None:
                self._path.report.refused(Refused(call, self._keys[index], unrun), self._record)
            elif isinstance(item, Refused):
                self._path.report.refused(item, self._record)
            else:
                await self._path.refuse(item, unrun, self._record)


def _touched(item: Ready | Pending) -> Resources:
    return resources_of(item.ready if isinstance(item, Pending) else item)


def _first_of_duplicates(calls: Sequence[ToolCall]) -> dict[int, int]:
    """Calls that are equal to an earlier call, provider's id included: from their index to the index of the first."""
    seen: dict[tuple[str, str, str], int] = {}
    repeated: dict[int, int] = {}
    if len(calls) == 1 or len({call.id for call in calls}) == len(calls):
        return repeated
    for index, call in enumerate(calls):
        if not call.id:
            continue
        first = seen.setdefault((call.id, call.name, str(call.arguments)), index)
        if first != index:
            repeated[index] = first
    return repeated
