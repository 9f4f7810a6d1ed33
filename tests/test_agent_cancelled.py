"""A run that is cancelled at each step of its event loop, one step per run: what it used counts, and it ends whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.virtual_time import VirtualLoop
from toolcrib import Agent, Effect, Message, tool
from toolcrib.agent import Budget, Outcome, Reason, TranscriptFile, read_transcript
from toolcrib.agent.delegation import Delegate, delegation_tools
from toolcrib.agent.run import Run
from toolcrib.events import RunFinished
from toolcrib.mending import mend
from toolcrib.messages import Request, Response, TextChunk, Usage
from toolcrib.models import AnthropicMessages, ModelError, Scripted
from toolcrib.models.fallback import Fallback

Event = dict[str, Any]


class StepLoop(VirtualLoop):
    """Calls a function at a step of the loop."""

    steps = 0
    at: tuple[int, Callable[[], None]] | None = None

    def _run_once(self) -> None:
        self.steps += 1
        if self.at is not None and self.steps >= self.at[0]:
            (_, act), self.at = self.at, None
            act()
        super()._run_once()  # type: ignore[misc]


class Wired(AnthropicMessages):
    """A model that reads given events, each in a step of its own. `used` has the tokens that each answer has told."""

    def __init__(self, answers: list[list[Event]], used: list[int], **options: Any) -> None:
        super().__init__("m", api_key="k" * 20, **options)
        self.answers, self.used = iter(answers), used
        self.headers = {"content-type": "text/event-stream"}

    async def _client(self) -> Any:
        return self

    @asynccontextmanager
    async def _send(self, client: Any, body: Any) -> AsyncIterator[Any]:
        await asyncio.sleep(0)
        yield self

    async def iter_bytes(self) -> AsyncIterator[bytes]:
        number = len(self.used)
        self.used.append(0)
        for event in next(self.answers):
            await asyncio.sleep(0)
            if event["type"] == "message_start":
                self.used[number] = 101
            if event["type"] == "message_delta":
                self.used[number] = 107
            yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        await asyncio.sleep(1)  # the connection stays open


STARTED: Event = {
    "type": "message_start",
    "message": {
        "id": "m", "role": "assistant", "content": [], "usage": {"input_tokens": 100, "output_tokens": 1}
    },
}  # fmt: skip
OVERLOADED: Event = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def block(index: int, start: Event, delta: Event) -> list[Event]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    ]


def text(words: str) -> list[Event]:
    return block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": words})


def call(index: int, path: str) -> list[Event]:
    begun = {"type": "tool_use", "id": f"t{index}", "name": "look", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": json.dumps({"path": path})}
    return block(index, begun, delta)


def ended(reason: str) -> list[Event]:
    usage = {"output_tokens": 7}
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage},
        {"type": "message_stop"},
    ]


BROKEN = [STARTED, *text("Hel"), *call(1, "a"), OVERLOADED]
CALLS = [STARTED, *text("I look."), *call(1, "b"), *call(2, "c"), *ended("tool_use")]
DONE = [STARTED, *text("Done."), *ended("end_turn")]


@tool(effect=Effect.READ, secrets=(), open_world=False)
async def look(path: str) -> str:
    """Look. It takes a moment to stop, too."""
    try:
        await asyncio.sleep(0.1)
    except asyncio.CancelledError:
        await asyncio.sleep(0.01)
        raise
    return path


def one(used: list[int]) -> Any:
    return Wired([CALLS, DONE], used, max_retries=0)


def again(used: list[int]) -> Any:
    return Wired([BROKEN, BROKEN, CALLS, BROKEN, DONE], used, max_retries=2)


def next_model(used: list[int]) -> Any:
    first = Wired([BROKEN, BROKEN], used, max_retries=0)
    return Fallback([first, Wired([CALLS, DONE], used, max_retries=0)])


async def cancelled_at(
    step: int, start: Callable[[], Run[Any]], again: int | None = None
) -> tuple[Outcome[Any], bool]:
    """The outcome of a run that is cancelled at this step, after checks; and whether it was, before it had ended.

    It is cancelled once more `again` steps later.
    """
    loop: Any = asyncio.get_running_loop()
    others, run = asyncio.all_tasks(), start()
    acted: list[bool] = []

    def cancel() -> None:
        acted.append(run._task is not None and not run._task.done())
        run.cancel()
        if again is not None:
            loop.at = (loop.steps + again, run.cancel)

    loop.at = (loop.steps + step, cancel)
    events = [event async for event in run]
    outcome = await run
    loop.at = None
    assert isinstance(events[-1], RunFinished), step
    assert asyncio.all_tasks() == others, step
    assert mend(outcome.messages)[1] == [], step
    return outcome, acted == [True]


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("make", [one, again, next_model])
def test_what_was_used_counts_at_whatever_step_a_run_is_cancelled(
    make: Callable[[list[int]], Any], early: bool
) -> None:
    async def all_steps() -> int:
        for step in range(1, 1_000):
            used: list[int] = []
            agent: Agent[Any, Any] = Agent(make(used), [look], early_start=early)
            outcome, cancelled = await cancelled_at(step, partial(agent.start, "go"))
            assert outcome.usage.total_tokens == sum(used), step
            if not cancelled:
                return step
        raise AssertionError("the run did not end")

    with asyncio.Runner(loop_factory=StepLoop) as runner:
        assert runner.run(all_steps()) > 20


@tool(effect=Effect.WRITE, secrets=(), open_world=False)
async def save(path: str) -> str:
    """Save."""
    await asyncio.sleep(0.01)
    return path


def test_what_was_used_before_a_wait_counts_at_whatever_step_the_resumed_run_is_cancelled() -> None:
    used = {"input_tokens": 10, "output_tokens": 5}
    asks = {"calls": [{"name": "save", "arguments": {"path": "a"}}], "usage": used}
    task = {"calls": [{"name": "helper", "arguments": {"task": "x"}}], "usage": used}

    async def all_steps() -> int:
        for step in range(1, 1_000):
            helper = Agent(Scripted([asks, {"text": "saved", "usage": used}]), [save])
            script = Scripted([task, {"text": "done", "usage": used}])
            agent = Agent(script, [helper.as_tool("helper", "It helps.")], on_question="suspend")
            waiting = await agent.run("go")
            assert waiting.usage.total_tokens == 30
            resumed = partial(agent.resume, waiting, {waiting.questions[0].id: "yes"})
            outcome, cancelled = await cancelled_at(step, resumed)
            noted = [message.usage for message in outcome.messages if message.usage is not None]
            assert outcome.usage == sum(noted, Usage()), step
            if not cancelled:
                assert outcome.usage.total_tokens == 60
                return step
        raise AssertionError("the run did not end")

    with asyncio.Runner(loop_factory=StepLoop) as runner:
        assert runner.run(all_steps()) > 5


class Breaks:
    """A model whose first answers break off when they have used a hundred tokens; a script follows."""

    name = "breaks"

    def __init__(self, times: int, script: list[Any]) -> None:
        self.times, self.script = times, Scripted(script)

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        if self.times:
            self.times -= 1
            broken = Response(Message("assistant"), usage=Usage(input_tokens=100))
            yield TextChunk("Hel")
            raise ModelError("it broke off", partial=broken)
        async for item in self.script.stream(request):
            yield item

    async def respond(self, request: Request) -> Response:
        raise AssertionError("an agent reads streams")


async def test_what_no_answer_came_of_counts_in_the_conversation_and_stands_in_its_file(
    tmp_path: Path,
) -> None:
    agent = Agent(Breaks(2, ["done"]), [look], conversation_budget=Budget(tokens=150))
    task, messages, path = (
        Message.user("go"),
        [Message.user("Hi."), Message.assistant("Hi.")],
        tmp_path / "run.jsonl",
    )
    reasons = []
    for number in (1, 2, 3):
        with closing(TranscriptFile(path)) as file:
            outcome = await agent.run(task, messages=messages, transcript=file)
        reasons.append(outcome.reason)
        messages = read_transcript(path) if number == 1 else outcome.messages
        assert (
            sum(message.usage.total_tokens for message in messages if message.usage) == min(number, 2) * 100
        )
        assert task.usage is None
    assert reasons == [Reason.MODEL_ERROR, Reason.MODEL_ERROR, Reason.BUDGET]
    assert read_transcript(path)[:-1] == messages[:-1]


async def test_a_nested_run_that_waits_goes_on_though_its_first_answer_broke_off() -> None:
    asks = {"calls": [{"name": "save", "arguments": {"path": "a"}}]}
    helper: Any = Agent(Fallback([Breaks(1, []), Scripted([asks, "saved"])]), [save])
    script = Scripted([{"calls": [{"name": "helper", "arguments": {"task": "x"}}]}, "done"])
    agent = Agent(script, [helper.as_tool("helper", "It helps.")], on_question="suspend")
    waiting = await agent.run("go")
    helper._settings.model.models[0].times = 0
    outcome = await agent.resume(json.loads(json.dumps(waiting.to_json())), {waiting.questions[0].id: "yes"})
    assert (outcome.text, outcome.nested[0].text) == ("done", "saved")
    assert outcome.usage.total_tokens == outcome.nested[0].usage.total_tokens == 100


@tool(effect=Effect.READ, secrets=(), open_world=False)
async def stop_slowly(path: str) -> str:
    """Take a moment, however often it is cancelled."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0.1)
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0.1)
    return path


@pytest.mark.parametrize("again", [1, 3])
def test_calls_that_began_early_end_with_a_run_that_is_cancelled_twice(again: int) -> None:
    """Each is cancelled before any of them is waited for: the helper's model was asked once more after the run."""
    look_first: list[Any] = [{"calls": [{"name": "look", "arguments": {"path": "a"}}]}, "seen"]
    slow = {"name": "stop_slowly", "arguments": {"path": "a"}}
    calls: list[Any] = [{"calls": [slow, {"name": "helper", "arguments": {"task": "x"}}, slow]}, "done"]

    async def all_steps() -> int:
        for step in range(1, 1_000):
            helper = Agent(Scripted(look_first, delay=0.05), [look]).as_tool("helper", "It helps.")
            model = Scripted(calls, delay=0.01)
            agent: Agent[Any, Any] = Agent(model, [stop_slowly, helper], early_start=True)
            _, cancelled = await cancelled_at(step, partial(agent.start, "go"), again)
            if not cancelled:
                return step
        raise AssertionError("the run did not end")

    with asyncio.Runner(loop_factory=StepLoop) as runner:
        assert runner.run(all_steps()) > 10


def test_what_a_run_owns_has_ended_with_it_at_whatever_step_it_is_cancelled() -> None:
    """Also where it has its answer, and stops its task in the background."""
    task = {"name": "new_task", "arguments": {"agent": "helper", "task": "x", "background": True}}
    answers: list[Any] = [
        {"calls": [task]},
        {"calls": [{"name": "attempt_completion", "arguments": {"result": "done"}}]},
    ]
    slowly: list[Any] = [{"calls": [{"name": "stop_slowly", "arguments": {"path": "a"}}]}, "seen"]

    async def all_steps() -> int:
        for step in range(1, 1_000):
            helper = Delegate(Agent(Scripted(slowly), [stop_slowly]), "It helps.")
            agent: Agent[Any, Any] = Agent(Scripted(answers), delegation_tools({"helper": helper}))
            _, cancelled = await cancelled_at(step, partial(agent.start, "go"))
            if not cancelled:
                return step
        raise AssertionError("the run did not end")

    with asyncio.Runner(loop_factory=StepLoop) as runner:
        assert runner.run(all_steps()) > 10
