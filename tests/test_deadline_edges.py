"""Cancellation that nobody asked for stays inside the call that it happened in."""

import asyncio

from toolcrib import Effect, Toolbox, ToolCall
from toolcrib.function import tool


def box_of(*fns: object) -> Toolbox:
    return Toolbox([tool(fn, effect=Effect.READ, secrets=()) for fn in fns])  # type: ignore[arg-type]


async def test_a_cancelled_error_of_the_tools_own_making_does_not_cancel_the_caller() -> None:
    async def odd() -> str:
        raise asyncio.CancelledError

    async def inner() -> str:
        task = asyncio.ensure_future(asyncio.sleep(30))
        task.cancel()
        await task
        return "never"

    for fn in (odd, inner):
        result = await box_of(fn).call(fn.__name__, {})
        assert result.is_error
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]


async def test_such_a_tool_does_not_end_the_turn_of_its_neighbours() -> None:
    async def odd() -> str:
        raise asyncio.CancelledError

    async def fine() -> str:
        await asyncio.sleep(0.01)
        return "fine"

    results = await box_of(odd, fine).call_turn([ToolCall("odd"), ToolCall("fine")])
    assert [result.is_error for result in results] == [True, False]
