"""Traps of deadlines and cancellation: threads that wait, tools that do not stop."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from toolcrib import Context, Effect, Toolbox
from toolcrib.function import tool

READ, WRITE = Effect.READ, Effect.WRITE


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize("way", ["work", "call", "ask"])
async def test_what_a_thread_waits_for_through_its_context_stops_with_it(way: str) -> None:
    """The thread itself cannot look at ctx.cancelled while it waits; what it waits for can be stopped."""
    stopped: list[str] = []

    async def slow() -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            stopped.append("stopped")
            raise
        return ""

    async def approver(question: Any) -> Any:
        await slow()

    def outer(ctx: Context) -> str:
        ctx.run({"work": slow, "call": lambda: ctx.call("slow"), "ask": lambda: ctx.ask("x")}[way]())  # type: ignore[operator]
        return "never"

    box = Toolbox(
        [
            tool(outer, effect=WRITE, secrets=(), effect_for=lambda params: READ),
            tool(slow, effect=READ, secrets=()),
        ],
        approver=approver,
        grace=0.3,
    )
    result = await box.call("outer", {}, timeout=0.03)
    assert result.code == "timed_out"
    assert stopped == ["stopped"]


def test_what_a_straggler_holds_is_locked_for_other_loops_too(release: threading.Event) -> None:
    def hold() -> str:
        release.wait(20)
        return ""

    box = Toolbox([tool(hold, effect=WRITE, secrets=())], autonomy="full", grace=0.05)
    assert box.call_sync("hold", {}, timeout=0.03).code == "outcome_unknown"

    async def again() -> Any:
        return await box.call("hold", {}, timeout=0.03)

    result = asyncio.run(again())
    assert "was not run" in result.text
