"""The text of a run in pieces, runs that begin when they are started, and what a stream costs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from toolcrib import Agent, Effect, Message, Toolbox, tool
from toolcrib.agent import NotFinished, Reason
from toolcrib.content import Text
from toolcrib.events import CallEvent, CallFinished, Event, RunFinished, RunStarted, StatusChanged, TextDelta
from toolcrib.messages import Request, Response, RestartChunk, TextChunk
from toolcrib.models import Scripted
from toolcrib.sink import EventSink, Subscription


@tool(effect=Effect.READ, secrets=(), open_world=False)
def look(path: str) -> str:
    """Look."""
    return f"saw {path}"


LOOK = {"name": "look", "arguments": {"path": "a"}}


def completing(text: Any, said: str = "") -> dict[str, Any]:
    return {"text": said, "calls": [{"name": "attempt_completion", "arguments": {"result": text}}]}


def agent_of(*turns: Any, chunk_size: int = 3, **options: Any) -> Agent:
    return Agent(Scripted(turns, chunk_size=chunk_size), [look], **options)


# -- the text


@pytest.mark.parametrize("chunk_size", [0, 1, 5])
@pytest.mark.parametrize(
    ("turns", "text"),
    [
        (["It is three."], "It is three."),
        ([completing('Said "ja",\n\tübermorgen \U0001f600.')], 'Said "ja",\n\tübermorgen \U0001f600.'),
        ([{"text": "I look.", "calls": [LOOK]}, "It is three."], "I look.\n\nIt is three."),
        ([{"calls": [LOOK]}, completing("All done.")], "All done."),
        ([completing("All done.", said="I am done.")], "I am done.\n\nAll done."),
        ([{"calls": [LOOK]}, {"reasoning": "hm", "text": "It is three."}], "It is three."),
        ([completing(7), completing("All done.")], "All done."),  # a call that is answered with an error
    ],
)
async def test_the_text_comes_in_pieces_each_once(turns: list[Any], text: str, chunk_size: int) -> None:
    pieces = [piece async for piece in agent_of(*turns, chunk_size=chunk_size).stream_text("go")]
    assert "".join(pieces) == text
    assert "" not in pieces
    if chunk_size == 1:
        assert len(pieces) >= len(text) - 2


async def test_the_text_of_a_tool_of_ones_own_that_completes_is_what_it_says() -> None:
    @tool(effect=Effect.READ, secrets=(), name="attempt_completion")
    def finish(answer: str) -> str:
        """Finish."""
        return f"Result: {answer}"

    call = {"calls": [{"name": "attempt_completion", "arguments": {"answer": "three"}}]}
    agent = Agent(Scripted([call], chunk_size=2), [finish])
    assert [piece async for piece in agent.stream_text("go")] == ["Result: three"]


class Whole:
    """A model that gives its answer in one, and may begin it twice."""

    name = "whole"

    def __init__(self, *chunks: Any) -> None:
        self.chunks = chunks

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        for chunk in self.chunks:
            yield chunk
        yield Response(Message("assistant", [Text("It is three.")]))

    async def respond(self, request: Request) -> Response:
        raise NotImplementedError


async def test_a_model_without_pieces_gives_its_text_whole() -> None:
    assert [piece async for piece in Agent(Whole()).stream_text("go")] == ["It is three."]


async def test_an_answer_that_begins_again_is_a_text_of_its_own() -> None:
    model = Whole(
        TextChunk("It is tw"), RestartChunk("the line broke"), TextChunk("It is "), TextChunk("three.")
    )
    pieces = [piece async for piece in Agent(model).stream_text("go")]
    assert pieces == ["It is tw", "\n\nIt is ", "three."]


async def test_the_text_of_a_nested_run_is_not_the_users() -> None:
    helper = agent_of("Found by the helper.").as_tool("helper", "It helps.")
    call = {"calls": [{"name": "helper", "arguments": {"task": "x"}}]}
    agent = Agent(Scripted([call, "All done."]), [helper])
    assert "".join([piece async for piece in agent.stream_text("go")]) == "All done."


async def test_a_run_that_does_not_finish_is_not_silent() -> None:
    agent = agent_of({"text": "Half of it.", "calls": [LOOK]}, {"error": "overloaded"})
    pieces: list[str] = []
    with pytest.raises(NotFinished, match="the model failed") as caught:
        async for piece in agent.stream_text("go"):
            pieces += [piece]
    assert "".join(pieces) == "Half of it."
    assert caught.value.outcome.reason is Reason.MODEL_ERROR


async def test_leaving_the_text_cancels_the_run_and_a_run_gives_text_and_outcome() -> None:
    agent = agent_of("It is three.", "It is four.")
    stream = agent.stream_text("go")
    assert await anext(stream) == "It "
    await stream.aclose()  # type: ignore[attr-defined]
    run = agent.start("go")
    assert "".join([piece async for piece in run.stream_text()]) == "It is four."
    assert (await run).text == "It is four."


# -- without attempt_completion


async def test_the_completion_tool_can_be_left_out_also_of_a_shared_box() -> None:
    box = Toolbox([look])
    Agent(Scripted([]), toolbox=box)
    seen: list[list[str]] = []

    def script(request: Request) -> Any:
        seen.append([spec.name for spec in request.tools])
        return completing("x") if len(seen) == 1 else "It is three."

    outcome = await Agent(Scripted(script), toolbox=box, completion_tool=False).run("go")
    assert (outcome.reason, seen) == (Reason.ANSWERED, [["look"], ["look"]])
    assert outcome.messages[-2].results[0].code == "unknown_tool"
    with pytest.raises(TypeError, match="tool_choice='required' needs attempt_completion"):
        Agent(Scripted([]), [look], completion_tool=False, tool_choice="required")


# -- runs that are started


async def test_a_run_that_is_started_begins_at_once_and_loses_no_event() -> None:
    begun = asyncio.Event()

    @tool(effect=Effect.READ, secrets=())
    async def mark() -> str:
        """Mark."""
        begun.set()
        return ""

    run = Agent(Scripted([{"calls": [{"name": "mark", "arguments": {}}]}, "It is three."]), [mark]).start(
        "go"
    )
    await asyncio.wait_for(begun.wait(), 5)
    outcome = await run
    events = [event async for event in run]
    assert (type(events[0]), type(events[-1])) == (RunStarted, RunFinished)
    assert [event.seq for event in events] == list(range(len(events)))
    assert outcome.text == "It is three."
    assert [event async for event in run] == []  # they are kept once


async def test_a_run_that_is_cancelled_before_it_began_ends_its_stream() -> None:
    run = agent_of("It is three.").start("go")
    run.cancel()
    events = [event async for event in run]
    assert [type(event) for event in events] == [RunFinished]
    assert (await run).reason is Reason.CANCELLED


def test_a_run_cannot_be_started_without_a_loop() -> None:
    with pytest.raises(RuntimeError, match=r"needs a running event loop: .*run_sync"):
        agent_of("x").start("go")


async def test_awaiting_a_run_leaves_nobody_listening() -> None:
    agent = agent_of("a", "b", "c")
    await agent.run("go")
    await agent.start("go")
    async for _ in agent.stream("go"):
        pass
    assert (agent.toolbox.sink.listeners, bool(agent.toolbox.sink)) == ([], False)


async def test_what_the_callers_code_raised_is_raised_also_after_the_run() -> None:
    def broken() -> str:
        raise KeyError("instructions")

    run = agent_of("x", instructions=broken).start("go")
    assert [type(event) async for event in run][-1] is RunFinished
    with pytest.raises(KeyError):
        await run


# -- events


async def test_the_end_of_a_call_is_no_change_of_its_status() -> None:
    seen = []
    async for event in agent_of({"calls": [LOOK]}, "x").stream("go"):
        match event:
            case StatusChanged():
                seen.append("changed")
            case CallFinished():
                seen.append("finished")
            case _:
                pass
        assert isinstance(event, CallEvent) == isinstance(event, StatusChanged | CallFinished)
    assert seen == ["changed", "changed", "finished"]


@pytest.mark.parametrize("streams", [1, 50])
async def test_a_stream_is_handed_the_events_of_its_run_alone(
    streams: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the streams of a shared box cost grows with their events, not with their number squared."""
    handed: list[Event] = []
    put = Subscription.put

    def counted(subscription: Subscription, event: Event) -> None:
        handed.append(event)
        put(subscription, event)

    monkeypatch.setattr(Subscription, "put", counted)
    box = Toolbox([look])

    async def one(n: int) -> int:
        model = Scripted([{"calls": [LOOK]}, f"It is {n}."])
        return len([event async for event in Agent(model, toolbox=box).stream("go")])

    counts = await asyncio.gather(*(one(n) for n in range(streams)))
    assert len(handed) == sum(counts) == streams * counts[0]


def test_a_listener_to_a_run_hears_the_runs_within_it() -> None:
    sink = EventSink(lambda: 0.0)
    within = {"a/1/0": "a", "a/1/0/0/1": "a/1/0", "a/1/0/0/1/2/0": "a/1/0/0/1", "ab/1/0": "ab"}
    sink.parents.update(within)
    heard: dict[str, list[str]] = {"a": [], "a/1/0/0/1": [], "": []}
    for run in heard:
        subscription = Subscription(run=run)
        subscription.put = lambda event, run=run: heard[run].append(event.text)  # type: ignore[method-assign, misc]
        sink.add(subscription)
    for run in ("a", "a/1/0", "a/1/0/0/1", "a/1/0/0/1/2/0", "ab", "ab/1/0"):
        sink.emit(run, TextDelta(run))
    assert heard["a"] == ["a", "a/1/0", "a/1/0/0/1", "a/1/0/0/1/2/0"]
    assert heard["a/1/0/0/1"] == ["a/1/0/0/1", "a/1/0/0/1/2/0"]
    assert len(heard[""]) == 6
