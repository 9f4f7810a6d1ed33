"""Answers that are none, runs and calls that must be kept apart, toolsets that change under a call."""

import asyncio
from typing import Any

import pytest

from toolcrib import Answer, Context, Effect, Toolbox, ToolCall, Verdict
from toolcrib.call import CallKey
from toolcrib.function import tool

READ, WRITE = Effect.READ, Effect.WRITE


def shop(ran: list[Any]) -> Toolbox:
    def act(what: str = "") -> str:
        ran.append(what)
        return f"did {what}"

    return Toolbox([tool(act, name="write", effect=WRITE, secrets=(), inline=True)])


# An answer comes out of JSON, a form or a terminal as often as out of Python: "no" is not a yes.
@pytest.mark.parametrize("verdict", ["no", "NO", "maybe", "", None, False])
async def test_a_verdict_that_is_none_allows_nothing(verdict: Any) -> None:
    ran: list[Any] = []
    box = shop(ran)
    result = await box.execute(await box.prepare(ToolCall("write")), Answer(verdict))
    assert result.is_error
    assert ran == []


@pytest.mark.parametrize("verdict", ["yes", "always"])
async def test_a_verdict_may_be_written_as_its_word(verdict: Any) -> None:
    ran: list[Any] = []
    box = shop(ran)
    for index in range(2):
        prepared = await box.prepare(ToolCall("write"), key=CallKey("r", 1, index))
        assert not (await box.execute(prepared, Answer(verdict))).is_error
    again = await box.prepare(ToolCall("write"), key=CallKey("r", 1, 2))
    assert again.kind == ("ready" if verdict == "always" else "pending")


async def test_inner_calls_have_keys_of_their_own() -> None:
    keys: list[CallKey] = []

    @tool(effect=READ, secrets=())
    async def inner(ctx: Context) -> str:
        keys.append(ctx.key)
        return ""

    @tool(effect=READ, secrets=())
    async def outer(ctx: Context) -> str:
        keys.append(ctx.key)
        await asyncio.gather(*(ctx.call("inner") for _ in range(3)))
        return ""

    box = Toolbox([inner, outer])
    await box.call_turn([ToolCall("outer"), ToolCall("outer"), ToolCall("inner")], run="r", turn=1)
    assert len(keys) == len(set(keys)) == 9


async def test_always_holds_for_the_whole_run_inner_calls_included() -> None:
    asked: list[Any] = []

    async def approver(question: Any) -> Answer:
        asked.append(question)
        return Answer(Verdict.ALWAYS)

    @tool(effect=READ, secrets=())
    async def outer(ctx: Context) -> str:
        return (await ctx.call("write", what="a")).text

    box = shop([])
    box.approver = approver
    box.add(outer)
    for index in range(2):
        assert (await box.call("outer", key=CallKey("r", 1, index))).text == "did a"
    assert (await box.call("write", {"what": "a"}, key=CallKey("r", 2, 0))).text == "did a"
    assert len(asked) == 1
    box.forget("r")
    await box.call("outer", key=CallKey("r", 1, 0))
    assert len(asked) == 2


async def test_two_calls_never_share_an_idempotency_key() -> None:
    keys: list[str] = []

    @tool(effect=READ, secrets=())
    async def pay(ctx: Context) -> str:
        keys.append(ctx.idempotency_key)
        return ""

    @tool(effect=READ, secrets=())
    async def outer(ctx: Context) -> str:
        await ctx.call("pay")
        return ""

    await Toolbox([pay, outer]).call_turn(
        [ToolCall("outer"), ToolCall("pay"), ToolCall("pay")], run="r", turn=1
    )
    assert len(keys) == len(set(keys)) == 3


async def test_a_toolset_has_a_lifespan_and_may_change() -> None:
    class Living:
        def __init__(self) -> None:
            self.log: list[str] = []
            self.tools: dict[str, Any] = {}
            self.version = 0

        async def names(self) -> list[str]:
            return list(self.tools)

        async def get(self, name: str) -> Any:
            return self.tools.get(name)

        async def __aenter__(self) -> "Living":
            self.log.append("in")
            return self

        async def __aexit__(self, *exc: object) -> None:
            self.log.append("out")

    living = Living()
    async with Toolbox([living]) as box:
        assert (await box.tool_list()).specs == []
        living.tools["t"] = tool(lambda: "1", name="t", effect=READ, secrets=())
        living.version += 1
        tool_list = await box.tool_list()
        assert [spec.name for spec in tool_list.specs] == ["t"]
        assert (await box.call("t", tool_list=tool_list)).text == "1"
        living.tools["t"] = tool(lambda: "2", name="t", effect=READ, secrets=())
        living.version += 1
        assert (await box.call("t", tool_list=tool_list)).code == "tool_changed"
        assert (await box.call("t")).text == "2"
        del living.tools["t"]
        living.version += 1
        assert (await box.call("t", tool_list=tool_list)).code == "tool_changed"
    assert living.log == ["in", "out"]


async def test_a_run_whose_name_has_a_slash_is_a_run_of_its_own() -> None:
    """Runs are named by callers: "tenant/a" must not answer for "tenant/b"."""
    asked: list[Any] = []

    async def approver(question: Any) -> Answer:
        asked.append(question)
        return Answer(Verdict.ALWAYS)

    box = shop([])
    box.approver = approver
    for run in ("tenant/a", "tenant/b", "tenant"):
        await box.call("write", {"what": "a"}, key=CallKey(run, 1, 0))
    assert len(asked) == 3
    box.forget("tenant/a")
    await box.call("write", {"what": "a"}, key=CallKey("tenant/a", 1, 0))
    assert len(asked) == 4
