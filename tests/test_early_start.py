"""Calls that only read begin while the model still writes; nothing else does, and nothing of a void answer stays."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from toolcrib import Agent, Effect, Toolbox, ToolCall, tool
from toolcrib.agent import Reason
from toolcrib.events import AnswerRestarted, CallEvent, CallFinished, Event, StatusBoard, TurnStarted
from toolcrib.messages import (
    CallChunk,
    Chunk,
    Message,
    Request,
    Response,
    RestartChunk,
    TextChunk,
)
from toolcrib.models import ModelError

Step = Chunk | Response | Exception | asyncio.Event


@dataclass
class Writing:
    """A model that writes what it was given, step by step; an event among the steps is waited for."""

    answers: list[list[Step]]
    name: str = "writing"
    waited: list[bool] = field(default_factory=list)

    async def stream(self, request: Request) -> AsyncIterator[Chunk | Response]:
        for step in self.answers.pop(0):
            if isinstance(step, Exception):
                raise step
            if isinstance(step, asyncio.Event):
                try:
                    await asyncio.wait_for(step.wait(), 0.5)
                    self.waited.append(True)
                except TimeoutError:
                    self.waited.append(False)
            else:
                yield step

    async def respond(self, request: Request) -> Response:
        raise NotImplementedError


def call(index: int, name: str, arguments: str = "{}", id: str = "") -> list[Step]:
    half = len(arguments) // 2
    return [
        CallChunk(index, name, id or f"c{index}"),
        CallChunk(index, arguments=arguments[:half]),
        CallChunk(index, arguments=arguments[half:]),
        CallChunk(index, done=True),
    ]


def answer(*calls: ToolCall, text: str = "", stop: Any = None) -> Response:
    parts: list[Any] = [*calls]
    message = Message.user(text).parts if text else []
    return Response(Message("assistant", [*message, *parts]), stop or ("tool_calls" if calls else "end"))


def said(text: str) -> list[Step]:
    return [TextChunk(text), answer(text=text)]


class Watched:
    """Tools that say when they ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.look_ran = asyncio.Event()
        self.slow_ran = asyncio.Event()

        @tool(effect=Effect.READ, secrets=(), open_world=False)
        async def look(at: str = "") -> str:
            "Look."
            self.ran.append(f"look {at}".strip())
            self.look_ran.set()
            return f"saw {at}"

        @tool(effect=Effect.READ, secrets=(), open_world=True)
        async def browse() -> str:
            "Browse."
            self.ran.append("browse")
            self.look_ran.set()
            return "page"

        @tool(effect=Effect.WRITE, secrets=(), open_world=False)
        async def write() -> str:
            "Write."
            self.ran.append("write")
            self.look_ran.set()
            return "written"

        @tool(effect=Effect.READ, secrets=(), open_world=False)
        async def slow() -> str:
            "Never ends by itself."
            self.ran.append("slow")
            self.slow_ran.set()
            self.look_ran.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                self.ran.append("slow stopped")
                raise
            return "late"

        self.tools = [look, browse, write, slow]


async def run(
    watched: Watched, *answers: Iterable[Step], early: bool = True, **named: Any
) -> tuple[Any, Any]:
    model = Writing([list(steps) for steps in answers])
    agent = Agent(model, watched.tools, early_start=early, autonomy="full", **named)
    return await agent.run("go"), model


LOOK = ToolCall("look", '{"at": "sea"}', "c0")


async def test_a_call_that_only_reads_runs_while_the_model_writes() -> None:
    watched = Watched()
    steps = [*call(0, "look", '{"at": "sea"}'), watched.look_ran, TextChunk("…"), answer(LOOK)]
    outcome, model = await run(watched, steps, said("done"))
    assert model.waited == [True]
    assert watched.ran == ["look sea"]
    assert outcome.reason is Reason.ANSWERED
    assert [result.text for message in outcome.messages for result in message.results] == ["saw sea"]


async def test_it_is_off_unless_switched_on() -> None:
    watched = Watched()
    steps = [*call(0, "look", '{"at": "sea"}'), watched.look_ran, answer(LOOK)]
    _, model = await run(watched, steps, said("done"), early=False)
    assert model.waited == [False]
    assert watched.ran == ["look sea"]


NOT_EARLY: dict[str, list[tuple[str, str]]] = {
    "writes": [("write", "{}")],
    "speaks to the world": [("browse", "{}")],
    "needs a repair": [("look", "{'at': 'sea',}")],
    "comes after a call that writes": [("write", "{}"), ("look", '{"at": "sea"}')],
    "comes after a call that nobody knows": [("nothing", "{}"), ("look", '{"at": "sea"}')],
    "comes after a call that speaks to the world": [("browse", "{}"), ("look", "{}")],
}


@pytest.mark.parametrize("calls", NOT_EARLY.values(), ids=NOT_EARLY)
async def test_what_does_not_begin_early(calls: list[tuple[str, str]]) -> None:
    watched = Watched()
    steps: list[Step] = []
    for index, (name, arguments) in enumerate(calls):
        steps += call(index, name, arguments)
    whole = [ToolCall(name, arguments, f"c{index}") for index, (name, arguments) in enumerate(calls)]
    outcome, model = await run(watched, [*steps, watched.look_ran, answer(*whole)], said("done"))
    assert model.waited == [False]
    assert outcome.reason is Reason.ANSWERED
    assert len([r for message in outcome.messages for r in message.results]) == len(calls)


async def test_a_call_that_must_be_asked_for_does_not_begin() -> None:
    from toolcrib.toolbox.policy import Decision, PolicyRequest, Verb

    class AskAlways:
        def decide(self, case: PolicyRequest) -> Decision:
            return Decision(Verb.ASK, "always")

        def shows(self, facts: Any) -> bool:
            return True

    watched = Watched()
    steps = [*call(0, "look", "{}"), watched.look_ran, answer(ToolCall("look", "{}", "c0"))]
    model = Writing([steps, said("done")])
    agent = Agent(model, watched.tools, early_start=True, policy=AskAlways())
    await agent.run("go")
    assert model.waited == [False]
    assert watched.ran == []


async def test_calls_run_once_and_answer_in_order() -> None:
    watched = Watched()
    calls = [ToolCall("look", f'{{"at": "{place}"}}', f"c{n}") for n, place in enumerate("abc")]
    steps = [step for n, item in enumerate(calls) for step in call(n, "look", str(item.arguments))]
    outcome, _ = await run(watched, [*steps, answer(*calls, ToolCall("write", "{}", "c3"))], said("done"))
    assert sorted(watched.ran) == ["look a", "look b", "look c", "write"]
    texts = [result.text for message in outcome.messages for result in message.results]
    assert texts == ["saw a", "saw b", "saw c", "written"]


async def test_what_was_begun_for_another_call_is_thrown_away() -> None:
    """A codec may know better at the end: the call that counts is the one of the whole answer."""
    watched = Watched()
    other = ToolCall("look", '{"at": "land"}', "c0")
    outcome, _ = await run(watched, [*call(0, "look", '{"at": "sea"}'), answer(other)], said("done"))
    assert [result.text for message in outcome.messages for result in message.results] == ["saw land"]


async def test_an_object_that_streamed_as_text_is_the_same_call() -> None:
    watched = Watched()
    whole = ToolCall("look", {"at": "sea"}, "c0")
    await run(watched, [*call(0, "look", '{"at":  "sea"}'), watched.look_ran, answer(whole)], said("done"))
    assert watched.ran == ["look sea"]


async def test_a_failed_answer_discards_its_calls() -> None:
    watched = Watched()
    steps = [*call(0, "slow"), watched.look_ran, ModelError("overloaded")]
    outcome, _ = await run(watched, steps)
    assert outcome.reason is Reason.MODEL_ERROR
    assert watched.ran == ["slow", "slow stopped"]
    assert [message.role for message in outcome.messages] == ["user"]


async def test_an_answer_that_begins_again_voids_what_came() -> None:
    watched = Watched()
    model = Writing(
        [
            [
                TextChunk("half"),
                *call(0, "slow"),
                watched.look_ran,
                RestartChunk("connection lost"),
                *call(0, "look", '{"at": "sea"}'),
                answer(LOOK),
            ],
            said("done"),
        ]
    )
    agent = Agent(model, watched.tools, early_start=True, autonomy="full")
    run = agent.start("go")
    events: list[Event] = [event async for event in run]
    outcome = await run
    assert watched.ran == ["slow", "slow stopped", "look sea"]
    assert [event.why for event in events if isinstance(event, AnswerRestarted)] == ["connection lost"]
    keys = [event.key for event in events if isinstance(event, CallFinished)]
    assert len(keys) == len(set(keys))
    assert [event.turn for event in events if isinstance(event, TurnStarted)] == [1, 2, 3]
    assert [result.text for message in outcome.messages for result in message.results] == ["saw sea"]


@pytest.mark.promise(
    "faults.md",
    "Every call that was shown of a void answer ends on a status board, and what was started "
    "early of it is stopped.",
)
@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize(
    "rest",
    [
        [ModelError("overloaded")],
        [RuntimeError("of the model's own")],
        [RestartChunk("connection lost"), ModelError("overloaded")],
        [RestartChunk("connection lost"), answer()],
        [answer(LOOK, stop="length")],
        [answer(LOOK)],
        [answer(ToolCall("write", "{}", "c0"))],
        [answer()],
    ],
)
async def test_no_call_waits_for_ever_on_a_status_board(early: bool, rest: list[Any]) -> None:
    watched = Watched()
    started = [*call(0, "look", '{"at": "sea"}'), *call(1, "write", "{}"), CallChunk(2, "wr", "c2")]
    model = Writing([[*started, *rest], said("done")])
    run = Agent(model, watched.tools, early_start=early, autonomy="full").start("go")
    events: list[Event] = [event async for event in run]
    with suppress(RuntimeError):
        await run
    calls = [event for event in events if isinstance(event, CallEvent)]
    board = StatusBoard(calls)
    assert calls and all(status.state.terminal for status in board.statuses.values())
    ends = Counter(event.key for event in calls if event.state.terminal)
    assert set(ends.values()) == {1}


async def test_the_last_call_of_an_answer_that_was_cut_off_has_no_result_of_its_own() -> None:
    watched = Watched()
    steps = [*call(0, "look", '{"at": "sea"}'), answer(LOOK, stop="length")]
    outcome, _ = await run(watched, steps, said("done"))
    texts = [result.text for message in outcome.messages for result in message.results]
    assert len(texts) == 1
    assert "cut off" in texts[0]


async def test_cancelling_the_run_stops_what_was_begun() -> None:
    watched = Watched()
    model = Writing(
        [[*call(0, "slow"), watched.look_ran, asyncio.Event(), answer(ToolCall("slow", "{}", "c0"))]]
    )
    agent = Agent(model, watched.tools, early_start=True, autonomy="full")
    run = agent.start("go")
    task = asyncio.ensure_future(run.ended())
    await asyncio.wait_for(watched.look_ran.wait(), 5)
    run.cancel()
    outcome = await task
    assert outcome.reason is Reason.CANCELLED
    assert watched.ran == ["slow", "slow stopped"]


async def test_cancelling_the_turn_leaves_each_call_one_result() -> None:
    watched = Watched()
    calls = [ToolCall("look", "{}", "c0"), ToolCall("slow", "{}", "c1")]
    steps = [*call(0, "look"), *call(1, "slow"), answer(*calls)]
    model = Writing([steps])
    agent = Agent(model, watched.tools, early_start=True, autonomy="full")
    run = agent.start("go")
    task = asyncio.ensure_future(run.ended())
    await asyncio.wait_for(watched.slow_ran.wait(), 5)
    await asyncio.sleep(0.05)
    run.cancel()
    outcome = await task
    results = [result for message in outcome.messages for result in message.results]
    assert len(results) == 2
    assert results[0].text == "saw "
    assert results[1].is_error


async def test_a_call_that_the_whole_answer_has_with_other_arguments_is_recorded_once() -> None:
    """What was started for other arguments is thrown away: a key has one result."""

    @tool(effect=Effect.READ, secrets=(), open_world=False)
    async def look(path: str) -> str:
        return f"seen {path}"

    box: Toolbox = Toolbox([look])
    early = box.early_start("r", 0, None)
    early.feed(0, "look", "i", '{"path": "streamed"}')
    assert await early.completed(0, None)
    await asyncio.sleep(0.01)
    recorded: list[str] = []
    await box.call_turn(
        [ToolCall("look", {"path": "whole"}, "i")],
        run="r",
        early=early,
        record=lambda key, result: recorded.append(result.text),
    )
    assert recorded == ["seen whole"]
