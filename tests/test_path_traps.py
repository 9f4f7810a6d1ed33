"""Traps on the path of a call: keys that come twice, numbers that are no JSON, tools that change meanwhile."""

from typing import Any

import pytest
from pydantic import BaseModel

from toolcrib import Answer, Context, Effect, Tool, Toolbox, ToolCall, ToolFactory, Verdict
from toolcrib.function import tool
from toolcrib.toolbox import AutonomyPolicy
from toolcrib.toolset import prefixed, renamed

READ = Effect.READ


def box_giving(value: Any, returns: Any = Any, **named: Any) -> Toolbox:
    async def give() -> Any:
        return value

    give.__annotations__["return"] = returns
    facts = {name: named.pop(name) for name in ("max_output",) if name in named}
    return Toolbox([tool(give, effect=READ, secrets=(), **facts)], **named)


# `execute` rechecks what was decided on, of a call that needed no question too.


async def test_a_ready_call_whose_tool_was_replaced_is_refused_by_name() -> None:
    box = box_giving("old")
    prepared = await box.prepare(ToolCall("give"))
    box.add(tool(lambda: "new", name="give", effect=READ, secrets=()), override=True)
    assert (await box.execute(prepared)).code == "tool_changed"
    prepared = await box.prepare(ToolCall("give"))
    box.remove("give")
    assert (await box.execute(prepared)).code == "tool_changed"


async def test_a_ready_call_that_the_policy_denies_by_now_does_not_run() -> None:
    ran: list[int] = []
    box = Toolbox(
        [tool(lambda: ran.append(1), name="write", effect=Effect.WRITE, secrets=())], autonomy="full"
    )
    prepared = await box.prepare(ToolCall("write"))
    box.policy = AutonomyPolicy("read_only")
    assert (await box.execute(prepared)).code == "denied"
    assert ran == []


async def test_a_tool_that_an_earlier_call_of_the_turn_removed_does_not_run() -> None:
    ran: list[str] = []
    box = Toolbox(autonomy="full")

    @tool(effect=Effect.WRITE, secrets=())
    async def disable() -> str:
        box.remove("act")
        return "disabled"

    box.add(disable)
    box.add(tool(lambda: ran.append("act"), name="act", effect=READ, secrets=()))
    results = await box.call_turn([ToolCall("disable"), ToolCall("act")], tool_list=await box.tool_list())
    assert [result.code for result in results] == [None, "tool_changed"]
    assert ran == []


# What a call may not be guessed from.


@pytest.mark.parametrize(
    "raw",
    [
        '{"text": "a", "text": "b"}',
        '{"text": "a", "more": {"k": 1, "k": 2}}',
        '{"text": "a", "more": {"k": 1, "k": true}}',
        '{"text": "a", "text": "a",}',
    ],
)
async def test_a_key_that_came_twice_is_not_guessed_into_an_action(raw: str) -> None:
    ran: list[Any] = []

    def write(text: str, more: Any = None) -> None:
        ran.append((text, more))

    box = Toolbox([tool(write, effect=Effect.WRITE, secrets=())], autonomy="full")
    result = await box.call("write", raw)
    assert result.is_error or ran == [("a", None)]


@pytest.mark.parametrize(
    "arguments", ['{"x": NaN}', '{"x": [Infinity]}', {"x": float("nan")}, {"x": [float("inf")]}]
)
async def test_what_is_no_json_is_no_argument_of_any_type(arguments: Any) -> None:
    def take(x: Any) -> str:
        return repr(x)

    assert (await Toolbox([tool(take, effect=READ, secrets=())]).call("take", arguments)).is_error


# Tools of every origin have the same ways up.


class Nothing(BaseModel):
    pass


class Asking(Tool[Nothing, str], name="asking", effect=READ, secrets=()):
    async def execute(self, params: Nothing, ctx: Context) -> str:
        await ctx.ask("look around")
        return "looked"


@pytest.mark.parametrize(
    "supplied",
    [
        Asking,
        Asking(),
        ToolFactory("asking", lambda ctx: Asking()),
        prefixed([Asking], "x_"),
        prefixed([ToolFactory("asking", lambda ctx: Asking())], "x_"),
        renamed(prefixed([ToolFactory("asking", lambda ctx: Asking())], "x_"), {"x_asking": "y"}),
    ],
    ids=["class", "instance", "factory", "prefixed", "prefixed factory", "renamed prefixed factory"],
)
async def test_a_tool_may_ask_however_it_was_supplied(supplied: Any) -> None:
    async def approver(question: Any) -> Answer:
        return Answer(Verdict.YES)

    box = Toolbox([supplied], approver=approver)
    tool_list = await box.tool_list()
    (spec,) = tool_list.specs
    for _ in range(2):
        result = await box.call(spec.name, {}, tool_list=tool_list)
        assert result.text == "looked"


async def test_an_offer_follows_the_policy_that_is_there_now() -> None:
    box = Toolbox([tool(lambda: 1, name=e.label, effect=e, secrets=()) for e in Effect])
    for _ in range(20):  # an object of the same address is not the same policy
        box.policy = AutonomyPolicy("full")
        assert len((await box.tool_list()).specs) == 3
        box.policy = AutonomyPolicy("supervised")
        box.policy = AutonomyPolicy("read_only")
        assert len((await box.tool_list()).specs) == 1
