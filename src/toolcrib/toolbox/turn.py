"""The calls of one turn: side by side where that is safe, in the model's order where it is not.

READ calls run together but never overtake an earlier call that changes something; a call that names the
resources it touches waits only for earlier ones that touch the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toolcrib.call import CallKey, ToolCall
from toolcrib.effect import Effect
from toolcrib.prepared import Prepared, Ready, Refused
from toolcrib.result import ToolResult
from toolcrib.toolbox import model_messages
from toolcrib.toolbox.resources import Resources, in_conflict, resources_of

if TYPE_CHECKING:
    from toolcrib.toolbox.box import Toolbox
    from toolcrib.toolbox.early_start import EarlyStart


async def run_turn(
    box: Toolbox, calls: Sequence[ToolCall], run: str, turn: int, **named: Any
) -> list[ToolResult]:
    """Results in the order of the calls, exactly one each; see `Toolbox.call_turn`."""
    streams, tool_list = named.pop("streams", None) or {}, named.pop("tool_list", None)
    early: EarlyStart | None = named.pop("early", None)
    originals = _first_of_duplicates(calls)
    prepared: list[Prepared | None] = []
    results: list[ToolResult | None] = [None] * len(calls)
    try:
        for index, call in enumerate(calls):
            key = CallKey(run, turn, index)
            if index in originals:
                prepared.append(None)
            elif early is not None and (begun := early.prepared(index, call)) is not None:
                prepared.append(begun)
            else:
                prepared.append(
                    await box.prepare(call, key=key, tool_list=tool_list, stream=streams.get(index))
                )
        if early is not None:
            await early.discard(but={item.key.index for item in prepared if item is not None})
            early.release(named.get("record"))
        if len(calls) == 1 and prepared[0] is not None and early is None:
            return [await box.settle(prepared[0], **named)]
        await _run_ordered(box, prepared, results, named, early)
    except BaseException:
        if early is not None:
            await early.stop(named.get("record"))
        await _answer_the_rest(box, calls, prepared, CallKey(run, turn, 0), named)
        for stream in streams.values():
            await stream.discard()
        raise
    for index, original in originals.items():
        same = results[original]
        assert same is not None
        results[index] = box.settle_refused(
            Refused(calls[index], CallKey(run, turn, index), same), named.get("record")
        )
    return [result for result in results if result is not None]


async def _run_ordered(
    box: Toolbox,
    prepared: Sequence[Prepared | None],
    results: list[ToolResult | None],
    named: dict[str, Any],
    early: EarlyStart | None,
) -> None:
    ended: list[tuple[Effect, Resources, asyncio.Task[None]]] = []
    tasks: list[asyncio.Task[None]] = []
    asking = asyncio.Lock()

    async def one(index: int, item: Prepared, before: list[asyncio.Task[None]]) -> None:
        if before:
            await asyncio.wait(before)
        begun = early.task(item) if early is not None else None
        results[index] = await (begun or box.settle(item, asking=asking, **named))

    for index, item in enumerate(prepared):
        if item is None:
            continue
        if isinstance(item, Refused):
            results[index] = await box.settle(item, **named)
            continue
        touched = resources_of(item)
        before = [task for effect, other, task in ended if in_conflict(item.effect, touched, effect, other)]
        task = asyncio.create_task(one(index, item, before), name=f"toolcrib {item.key}")
        ended.append((item.effect, touched, task))
        tasks.append(task)
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _first_of_duplicates(calls: Sequence[ToolCall]) -> dict[int, int]:
    """Calls that repeat an earlier one in everything, provider's id included: index to index of the first."""
    seen: dict[tuple[str, str, str], int] = {}
    repeated: dict[int, int] = {}
    if len({call.id for call in calls}) == len(calls):
        return repeated
    for index, call in enumerate(calls):
        if not call.id:
            continue
        first = seen.setdefault((call.id, call.name, str(call.arguments)), index)
        if first != index:
            repeated[index] = first
    return repeated


async def _answer_the_rest(
    box: Toolbox,
    calls: Sequence[ToolCall],
    prepared: Sequence[Prepared | None],
    first: CallKey,
    named: dict[str, Any],
) -> None:
    """The turn was cut short: calls that have no recorded result yet are recorded as cancelled."""
    for index, call in enumerate(calls):
        item = prepared[index] if index < len(prepared) else None
        unrun = model_messages.cancelled(call.name, started=False)
        if isinstance(item, Ready) and item.done is None:
            await box.refuse(item, unrun, named.get("record"))
        elif item is None or item.done is None:
            result = item.result if isinstance(item, Refused) else unrun
            box.settle_refused(Refused(call, first._replace(index=index), result), named.get("record"))
