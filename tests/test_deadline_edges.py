"""Cancellation that nobody asked for stays inside the call that it happened in."""

import asyncio
import threading

from toolcrib import Effect, Retry, Toolbox, ToolCall
from toolcrib.errors import ErrorCode
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


async def test_a_call_of_which_an_attempt_ran_is_not_said_to_have_run_nothing() -> None:
    """Its next attempt waits for a free thread until its deadline passes."""
    free = threading.Event()

    @tool(effect=Effect.READ, secrets=(), idempotent=True, retry=Retry(3, delay=0.05), timeout=0.3)
    def ask_server() -> str:
        "Ask."
        raise ConnectionError("lost")

    @tool(effect=Effect.READ, secrets=())
    def hold() -> str:
        "Hold the thread."
        free.wait(10)
        return "free"

    box = Toolbox([ask_server, hold])
    box._workers._limit = 1
    call, holding = asyncio.create_task(box.call("ask_server")), asyncio.create_task(box.call("hold"))
    result = await call
    free.set()
    await holding
    assert result.code is ErrorCode.TIMED_OUT and "was not run" not in result.text, result.text
