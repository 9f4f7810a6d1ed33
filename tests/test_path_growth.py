"""What must not grow: a call with the number of tools, a turn with the length of its history."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from toolcrib import Agent, Effect, Message, Toolbox, ToolCall
from toolcrib.content import Text
from toolcrib.function import tool
from toolcrib.messages import Request, Response

GENEROUS = 8  # times; linear growth would be hundreds


def act(n: int = 0) -> str:
    return str(n)


def box_of(count: int) -> Toolbox:
    return Toolbox(
        [tool(act, name=f"tool_{n}", effect=Effect.READ, secrets=(), inline=True) for n in range(count)]
    )


def best_of(work: Any, times: int = 5) -> float:
    def once() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return min(once() for _ in range(times))


async def test_a_call_costs_the_same_among_ten_thousand_tools() -> None:
    async def cost(box: Toolbox) -> float:
        await box.call("tool_3", {"n": 1})
        best = 1e9
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(100):
                await box.call("tool_3", {"n": 1})
            best = min(best, time.perf_counter() - start)
        return best

    assert await cost(box_of(10_000)) < GENEROUS * await cost(box_of(10))


def test_adding_a_tool_costs_the_same_among_ten_thousand() -> None:
    small, large = box_of(10), box_of(10_000)
    names = iter(range(10**9))

    def add(box: Toolbox) -> None:
        for _ in range(50):
            box.add(tool(act, name=f"new_{next(names)}", effect=Effect.READ, secrets=()))

    assert best_of(lambda: add(large)) < GENEROUS * best_of(lambda: add(small))


def test_a_turn_costs_the_same_at_the_end_of_a_long_run() -> None:
    class Endless:
        name = "endless"

        def __init__(self) -> None:
            self.stamps: list[float] = []

        async def stream(self, request: Request) -> AsyncIterator[Any]:
            self.stamps.append(time.perf_counter())
            yield Response(
                Message("assistant", [Text("again"), ToolCall("tool_0", {"n": 1}, id="c")]), "tool_calls"
            )

        async def respond(self, request: Request) -> Response:
            raise NotImplementedError

    model = Endless()
    asyncio.run(Agent(model, toolbox=box_of(3), max_turns=400).run("x"))
    turns = sorted(b - a for a, b in zip(model.stamps[2:52], model.stamps[3:53], strict=True))
    late = sorted(b - a for a, b in zip(model.stamps[340:390], model.stamps[341:391], strict=True))
    assert late[25] < GENEROUS * turns[25]


def test_cutting_a_long_result_is_linear() -> None:
    from toolcrib.toolbox.deliver import cut_middle

    small, large = "line of text\n" * 20_000, "line of text\n" * 200_000
    ratio = best_of(lambda: cut_middle(large, 50_000, 2_000), 7) / best_of(
        lambda: cut_middle(small, 50_000, 2_000), 7
    )
    assert ratio < 10 * GENEROUS
