"""Traps of the loop: runs that are cut short, models and toolsets that fail, transcripts that are cut off."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import BaseModel

from tests.test_agent import READ, WRITE, Script, agent_of, check_valid, tools
from toolcrib import Agent, Context, Message, Tool, ToolCall, ToolError, ToolFactory
from toolcrib.content import Text
from toolcrib.function import tool
from toolcrib.messages import CallChunk, Request, Response
from toolcrib.sink import EventLog
from toolcrib.toolset import StaticToolset


class Params(BaseModel):
    text: str = ""


def partial_tool(log: list[str], error: Exception | None = None) -> type[Tool[Params, str]]:
    class Partial(Tool[Params, str], name="partial", effect=READ, secrets=()):
        def __init__(self) -> None:
            log.append("made")

        def on_partial(self, partial: Any, ctx: Context) -> None:
            if error is not None:
                raise error

        async def execute(self, params: Params, ctx: Context) -> str:
            return "ran"

        async def aclose(self) -> None:
            log.append("closed")

    return Partial


@pytest.mark.parametrize("error", [ToolError("no"), ValueError("no")])
async def test_an_on_partial_that_raises_does_not_end_the_run(error: Exception) -> None:
    log: list[str] = []
    outcome = await agent_of([("partial", {"text": "abc"})], "done", tools=[partial_tool(log, error)]).run(
        "x"
    )
    assert outcome.text == "done"
    assert log == ["made", "closed"]


class Chunks(Script):
    """Streams chunks as given, then a response."""

    def __init__(self, chunks: list[CallChunk], *calls: ToolCall) -> None:
        super().__init__()
        self.chunks, self.calls = chunks, calls
        self.asked = 0

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        self.asked += 1
        check_valid(request.messages)
        if self.asked > 1:
            yield self.response("done")
            return
        for chunk in self.chunks:
            yield chunk
        yield Response(Message("assistant", [Text(""), *self.calls]), "tool_calls")


@pytest.mark.parametrize(
    ("chunks", "calls"),
    [
        ([CallChunk(0, name="partial", arguments="{}")], []),
        ([CallChunk(0, name="partial", arguments="{}")], [ToolCall("add", {"a": 1, "b": 2})]),
        ([CallChunk(0, name="partial"), CallChunk(1, name="partial")], [ToolCall("partial", "{}")]),
        ([CallChunk(1, name="partial"), CallChunk(0, name="partial")], [ToolCall("partial", "{}")] * 2),
        ([CallChunk(7, name="partial", arguments="{")], [ToolCall("partial", "{}")]),
        ([CallChunk(0, arguments="{"), CallChunk(0, name="partial", arguments="}")], [ToolCall("partial", "{}")]),
        ([CallChunk(0, name="part"), CallChunk(0, name="ial", arguments="{}")], [ToolCall("partial", "{}")]),
        ([CallChunk(0, name="partial", arguments='{"text": "a')], [ToolCall("partial", '{"text": "b"}')]),
    ],
)  # fmt: skip
async def test_chunks_that_do_not_match_the_answer_leave_nothing_open(chunks: Any, calls: Any) -> None:
    log: list[str] = []
    agent = Agent(Chunks(chunks, *calls), [*tools(), partial_tool(log)])
    agent.toolbox.sink.add(EventLog())
    outcome = await agent.run("x")
    check_valid(outcome.messages)
    assert outcome.text == ("done" if calls else "")
    assert log.count("made") == log.count("closed")


async def test_a_toolset_that_cannot_be_listed_does_not_end_the_run_silently() -> None:
    class Down(StaticToolset):
        async def names(self) -> list[str]:
            raise ConnectionError("the server is down")

    agent = agent_of("hello", tools=[Down([])])
    log = EventLog()
    agent.toolbox.sink.add(log)
    try:
        await agent.run("x")
    except ConnectionError:
        pass
    assert log.events[-1].kind == "run_finished"


# A cancellation that nobody asked for: a closed dialog, a dropped connection.


async def lost() -> Any:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


async def test_an_approver_that_is_cancelled_from_within_is_nobody() -> None:
    async def approver(question: Any) -> Any:
        await lost()

    outcome = await agent_of([("write", {"text": "x"})], "done", approver=approver).run("x")
    assert outcome.text == "done"
    assert outcome.messages[-2].parts[0].result.code == "nobody_to_ask"  # type: ignore[union-attr]


async def test_a_factory_that_is_cancelled_from_within_is_a_result() -> None:
    async def build(ctx: Context) -> Any:
        if ctx.key.turn:
            await lost()
        return tool(lambda: "", name="made", effect=WRITE, secrets=())

    outcome = await agent_of([("made", {})], "done", tools=[ToolFactory("made", build)]).run("x")
    assert outcome.text == "done"


@pytest.mark.parametrize("error", [ValueError("no prompt"), TimeoutError("slow prompt")])
async def test_instructions_that_raise_end_the_run_with_a_reason_before_they_are_raised(
    error: Exception,
) -> None:
    def instructions() -> str:
        raise error

    agent = agent_of("hello", instructions=instructions)
    log = EventLog()
    agent.toolbox.subscribe(log)
    with pytest.raises(type(error)):
        await agent.run("x")
    assert log.events[-1].kind == "run_finished"
