"""The loop at the edges: cut answers, cut files, cut turns, models that raise."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.test_agent import READ, WRITE, Script, agent_of, check_valid, tools
from toolcrib import Agent, Context, Message, Tool, Toolbox, ToolCall
from toolcrib.agent import Budget, ClearOldResults, Reason, TranscriptFile, read_transcript
from toolcrib.content import Text
from toolcrib.function import tool
from toolcrib.messages import Response
from toolcrib.sink import EventLog
from toolcrib.toolset import StaticToolset


async def hang() -> str:
    await asyncio.sleep(30)
    return ""


@pytest.mark.parametrize(
    "wrong",
    [
        {"context": "all"},
        {"context": ClearOldResults()},
        {"checkpoints": "store"},
        {"max_turns": 0},
        {"output": 3},
    ],
)
def test_an_agent_that_is_refused_leaves_the_toolbox_as_it_was(wrong: dict[str, Any]) -> None:
    box = Toolbox([*tools(), tool(hang, name="read_result", effect=READ, secrets=())])
    before = asyncio.run(box.names())
    with pytest.raises(TypeError):
        Agent(Script("hello"), toolbox=box, **wrong)
    assert asyncio.run(box.names()) == before


# -- cancelling a run


async def test_a_run_that_is_cancelled_before_it_starts_asks_no_model() -> None:
    model = Script("hello")
    run = Agent(model, tools()).start("x")
    run.cancel()
    assert (await run).reason is Reason.CANCELLED
    assert model.requests == []


@pytest.mark.parametrize("steps", [1, 2, 20])
async def test_a_run_that_is_awaited_elsewhere_can_be_cancelled(steps: int) -> None:
    agent = agent_of([("hang", {})], tools=[tool(hang, effect=READ, secrets=())])
    run = agent.start("x")

    async def wait() -> Any:
        return await run

    waiting = asyncio.create_task(wait())
    for _ in range(steps):
        await asyncio.sleep(0)
    run.cancel()
    await asyncio.wait([waiting], timeout=5)  # which cancels nothing
    assert waiting.done()
    assert waiting.result().reason is Reason.CANCELLED
    check_valid(waiting.result().messages)


async def test_a_run_that_is_awaited_twice_runs_once() -> None:
    ran: list[int] = []

    async def once() -> str:
        await asyncio.sleep(0)
        ran.append(1)
        return "done"

    run = agent_of([("once", {})], "said", tools=[tool(once, effect=READ, secrets=())]).start("x")

    async def wait() -> Any:
        return await run

    one, other = await asyncio.gather(wait(), wait())
    assert one is other
    assert ran == [1]


# -- a run never ends silently


@pytest.mark.parametrize(
    "error", [RuntimeError("bug"), TimeoutError("slow"), ConnectionError("lost"), ValueError()]
)
async def test_whatever_a_model_raises_the_run_ends_with_a_reason(error: Exception) -> None:
    """A hand-made Model raises what its client library raises."""
    agent = agent_of([("add", {"a": 1, "b": 2})], error)
    log = EventLog()
    agent.toolbox.sink.add(log)
    outcome = await agent.run("x")
    assert outcome.reason is Reason.MODEL_ERROR
    assert log.events[-1].kind == "run_finished"


async def test_a_model_that_ends_without_an_answer_is_a_reason() -> None:
    class Mute(Script):
        async def stream(self, request: Any) -> AsyncIterator[Any]:
            return
            yield

    assert (await Agent(Mute(), tools()).run("x")).reason is Reason.MODEL_ERROR


# -- an answer that was cut off


@pytest.mark.parametrize("arguments", ["", {}])
async def test_a_call_of_an_answer_that_was_cut_off_does_not_change_anything(arguments: Any) -> None:
    """At the token limit the last call may have its name and not one of its arguments."""
    ran: list[Any] = []

    @tool(effect=WRITE, secrets=(), inline=True)
    def wipe(path: str = "/", force: bool = False) -> str:
        ran.append(path)
        return "wiped"

    cut = Response(Message("assistant", [Text("I will"), ToolCall("wipe", arguments, id="c")]), "length")
    outcome = await agent_of(cut, "oh", tools=[wipe], autonomy="full").run("x")
    assert ran == []
    check_valid(outcome.messages)


# -- toolsets


class Living(StaticToolset):
    def __init__(self, *items: Any) -> None:
        super().__init__(items)
        self.log: list[str] = []

    async def names(self) -> list[str]:
        self.log.append("listed")
        return await super().names()

    async def __aenter__(self) -> "Living":
        self.log.append("in")
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.log.append("out")


async def test_a_toolset_is_entered_before_its_first_use_and_left_at_the_end() -> None:
    living = Living(*tools())
    outcome = await agent_of([("add", {"a": 1, "b": 2})], "3", tools=[living]).run("x")
    assert outcome.text == "3"
    assert living.log[0] == "in"
    assert living.log[-1] == "out"


async def test_two_agents_may_share_a_box_with_a_toolset() -> None:
    box = Toolbox([StaticToolset(tools())])
    for _ in range(2):
        assert (await Agent(Script("hello"), toolbox=box).run("x")).text == "hello"


class Slow(StaticToolset):
    """A toolset that takes a while to open and to close, and may fail the first time."""

    def __init__(self, *failures: BaseException) -> None:
        super().__init__(tools())
        self.failures = list(failures)
        self.log: list[str] = []
        self.open = False
        self.leaving = asyncio.Event()

    async def __aenter__(self) -> "Slow":
        await asyncio.sleep(0.01)
        if self.failures:
            raise self.failures.pop()
        self.log.append("in")
        self.open = True
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.open = False
        self.leaving.set()
        await asyncio.sleep(0.01)
        self.log.append("out")

    async def entered(self, box: Toolbox) -> bool:
        async with box:
            await asyncio.sleep(0.005)
            return self.open


async def test_runs_that_begin_at_once_wait_until_the_toolset_is_open() -> None:
    slow = Slow()
    box = Toolbox([slow])
    for _ in range(2):
        helper = box.restricted(["add"])
        assert all(await asyncio.gather(*(slow.entered(one) for one in (box, box, helper))))
    assert slow.log == ["in", "out"] * 2


async def test_who_enters_while_a_toolset_is_left_waits_and_opens_it_again() -> None:
    slow = Slow()
    box = Toolbox([slow])
    first = asyncio.ensure_future(slow.entered(box))
    await slow.leaving.wait()
    assert await slow.entered(box) and await first
    assert slow.log == ["in", "out"] * 2


@pytest.mark.parametrize("failure", [ConnectionError("no server"), asyncio.CancelledError()])
async def test_a_toolset_that_could_not_be_entered_is_entered_the_next_time(failure: BaseException) -> None:
    slow = Slow(failure)
    box = Toolbox([slow])
    refused, entered = await asyncio.gather(slow.entered(box), slow.entered(box), return_exceptions=True)
    assert isinstance(refused, Exception) and entered is True
    assert await slow.entered(box) is True
    assert slow.log == ["in", "out"] * 2


async def test_who_is_cancelled_while_a_toolset_opens_leaves_it_to_the_next() -> None:
    slow = Slow()
    box = Toolbox([slow])
    cancelled, waiting = (asyncio.ensure_future(slow.entered(box)) for _ in range(2))
    await asyncio.sleep(0)
    cancelled.cancel()
    assert await waiting is True
    assert cancelled.cancelled() and slow.log == ["in", "out"]


def test_loops_of_several_threads_share_an_entered_toolset() -> None:
    slow = Slow()
    box = Toolbox([slow])
    entered: list[bool] = []
    work = [lambda: entered.append(asyncio.run(slow.entered(box)))] * 8
    threads = [threading.Thread(target=one) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert entered == [True] * 8
    assert not slow.open and len(slow.log) % 2 == 0


# -- objects of calls that never came to run


class Params(BaseModel):
    n: int = 0


def closing(log: list[str]) -> Any:
    class Made(Tool[Params, str], name="made", effect=WRITE, secrets=()):
        def __init__(self) -> None:
            log.append("made")

        def on_partial(self, partial: Any, ctx: Context) -> None: ...

        async def execute(self, params: Params, ctx: Context) -> str:
            await asyncio.sleep(30)
            return ""

        async def aclose(self) -> None:
            log.append("closed")

    return Made


@pytest.mark.parametrize("calls", [1, 2, 4])
@pytest.mark.parametrize("watched", [False, True])
async def test_a_turn_that_is_cut_short_closes_everything_that_was_made(calls: int, watched: bool) -> None:
    log: list[str] = []
    agent = agent_of(
        [("made", {"n": n}) for n in range(calls)], tools=[closing(log)], autonomy="full", grace=0.05
    )
    if watched:
        agent.toolbox.sink.add(EventLog())
    work = asyncio.create_task(agent.run("x"))
    for _ in range(1_000):
        if log.count("made") == calls:
            break
        await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert log.count("made") == log.count("closed") == calls


async def test_a_turn_that_is_cut_short_while_it_is_prepared_closes_everything_that_was_made() -> None:
    from toolcrib import ToolFactory

    log: list[str] = []

    async def slow(ctx: Context) -> Any:
        await asyncio.sleep(30)

    box = Toolbox([closing(log), ToolFactory("slow", slow)], autonomy="full")
    work = asyncio.create_task(box.call_turn([ToolCall("made"), ToolCall("slow"), ToolCall("made")]))
    await asyncio.sleep(0.02)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert log.count("made") == log.count("closed")


# -- on disk


async def test_a_transcript_cut_inside_a_character_is_readable(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    file = TranscriptFile(path)
    await agent_of([("add", {"a": 1, "b": 2})], "Drei. 🦀 Grüße").run("Wie viel? 🦀", transcript=file)
    file.close()
    whole = path.read_bytes()
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        check_valid(read_transcript(path))


async def test_a_transcript_that_was_cut_off_can_be_written_on(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    file = TranscriptFile(path)
    await agent_of([("add", {"a": 1, "b": 2})], "It is 3.").run("x", transcript=file)
    file.close()
    whole = path.read_bytes()
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        before = read_transcript(path)
        file = TranscriptFile(path)
        await agent_of("hello").run("again", messages=before, transcript=file)
        file.close()
        read = read_transcript(path)
        check_valid(read)
        assert read[-1].text == "hello"


async def test_a_refused_call_at_the_limit_reads_the_same_from_disk(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    file = TranscriptFile(path)
    add = [("add", {"a": 1, "b": 2})]
    outcome = await agent_of(add, add, max_turns=1).run("x", transcript=file)
    file.close()
    assert read_transcript(path)[-1].parts == outcome.messages[-1].parts


# -- what users of other libraries write first


def made_of(**options: Any) -> Any:
    return Agent(Script("hello"), **options)


def loose(called: Any) -> Any:
    """The same, for calls that a type checker would refuse."""
    return called


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda: made_of(system_prompt="x"), "Agent() has no option 'system_prompt'; the page Agents"),
        (lambda: made_of(max_turn=3), "Agent() has no option 'max_turn'; do you mean 'max_turns'?"),
        (lambda: made_of(aprover=print), "Agent() has no option 'aprover'; do you mean 'approver'?"),
        (lambda: made_of(max_turns=0), "max_turns must be a whole number from 1, got 0"),
        (lambda: made_of(max_failures="3"), "max_failures must be a whole number from 1, got '3'"),
        (lambda: made_of(tools=[made_of()]), "(hand in agent.as_tool(name, description))"),
        (
            lambda: Budget(tokens=-1),
            "tokens of a Budget must be a number from 0, or None for no limit; got -1",
        ),
        (lambda: Budget(cost=float("nan")), "cost of a Budget must be a number from 0"),
        (lambda: loose(Budget)(seconds="10"), "seconds of a Budget must be a number from 0"),
        (
            lambda: made_of().run_sync("x", message_history=[]),
            "no option 'message_history'; it takes messages, deps",
        ),
        (lambda: made_of().run_sync("x", messages=made_of().run_sync("y")), "as in outcome.messages"),
        (lambda: made_of().run_sync("x", messages=Message.user("y")), "as in outcome.messages"),
        (
            lambda: loose(tool)(hang, effect=READ, secrets=(), args_schema=BaseModel),
            "there is no option 'args_schema'",
        ),
    ],
)
def test_a_mistake_is_answered_with_what_to_write_instead(mistake: Any, words: str) -> None:
    with pytest.raises(TypeError) as raised:
        mistake()
    assert words in str(raised.value)
    assert "dynamic_schema" not in str(raised.value)
    assert "_run_of" not in str(raised.value)


def test_a_saved_run_that_is_still_text_is_refused_with_what_to_do() -> None:
    with pytest.raises(ValueError, match="that was stored as JSON text"):
        made_of(on_question="suspend").resume_sync('{"format": 1}', {})
