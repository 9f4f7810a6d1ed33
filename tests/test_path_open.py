"""What stands against the path of a call today."""

from typing import Any

from toolcrib import Effect, Toolbox, ToolCall
from toolcrib.function import tool
from toolcrib.toolbox import AutonomyPolicy

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
    results = await box.call_turn([ToolCall("disable"), ToolCall("act")], offer=await box.offer())
    assert [result.code for result in results] == [None, "tool_changed"]
    assert ran == []
