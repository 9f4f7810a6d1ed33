"""What must not grow: a call with the number of tools, a turn with the length of its history."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.growth import cpu_seconds, growth
from toolcrib import Agent, Effect, Message, Toolbox, ToolCall
from toolcrib.content import Text
from toolcrib.function import tool
from toolcrib.messages import Request, Response

pytestmark = pytest.mark.slow

GENEROUS = 8  # times; linear growth would be hundreds


def act(n: int = 0) -> str:
    return str(n)


def box_of(count: int) -> Toolbox:
    return Toolbox(
        [tool(act, name=f"tool_{n}", effect=Effect.READ, secrets=(), inline=True) for n in range(count)]
    )


def test_a_call_costs_the_same_among_ten_thousand_tools() -> None:
    def calling(count: int) -> Callable[[], object]:
        box = box_of(count)

        async def calls() -> None:
            for _ in range(100):
                await box.call("tool_3", {"n": 1})

        return lambda: asyncio.run(calls())

    assert growth(calling, 10, 10_000, GENEROUS) < GENEROUS


def test_adding_a_tool_costs_the_same_among_ten_thousand() -> None:
    names = iter(range(10**9))

    def adding(count: int) -> Callable[[], object]:
        box = box_of(count)

        def add() -> None:
            for _ in range(50):
                box.add(tool(act, name=f"new_{next(names)}", effect=Effect.READ, secrets=()))

        return add

    assert growth(adding, 10, 10_000, GENEROUS) < GENEROUS


@pytest.mark.parametrize("effect", [Effect.READ, Effect.WRITE])
def test_a_turn_of_many_calls_is_linear_in_them(effect: Effect) -> None:
    box = Toolbox([tool(act, effect=effect, secrets=(), inline=True)], autonomy="full")

    def turn(count: int) -> Callable[[], object]:
        calls = [ToolCall("act", {"n": number}, str(number)) for number in range(count)]
        return lambda: asyncio.run(box.call_turn(calls))

    assert growth(turn, 100, 2_000, 40) < 40  # linear is 20, comparing pairs 400


def test_a_turn_costs_the_same_at_the_end_of_a_long_run() -> None:
    class Endless:
        name = "endless"

        def __init__(self) -> None:
            self.stamps: list[float] = []

        async def stream(self, request: Request) -> AsyncIterator[Any]:
            self.stamps.append(cpu_seconds())
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
    from toolcrib.toolbox.cap import cut_middle

    def cutting(lines: int) -> Callable[[], object]:
        text = "line of text\n" * lines
        return lambda: cut_middle(text, 50_000, 2_000)

    assert growth(cutting, 20_000, 200_000, 10 * GENEROUS) < 10 * GENEROUS
