"""Budgets: of a run and of a conversation, looked at before each request and before the calls of an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Agent, Effect, Message, tool
from toolcrib.agent import Budget, ModelReviewer, Reason, TranscriptFile, read_transcript
from toolcrib.agent.delegation import Delegate, delegation_tools
from toolcrib.messages import Usage, messages_from_json, messages_to_json
from toolcrib.models import Scripted

USED = {"input_tokens": 10, "output_tokens": 5}
PRICED = {**USED, "cost": 0.1}
ran: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@tool(effect=Effect.READ, secrets=(), open_world=False)
def look(path: str) -> str:
    """Look."""
    ran.append(path)
    return f"saw {path}"


def calling(*paths: str, usage: Any = USED) -> dict[str, Any]:
    return {"calls": [{"name": "look", "arguments": {"path": path}} for path in paths], "usage": usage}


def saying(text: str, usage: Any = USED) -> dict[str, Any]:
    return {"text": text, "usage": usage}


COMPLETED = {"calls": [{"name": "attempt_completion", "arguments": {"result": "done"}}], "usage": USED}


@pytest.mark.parametrize(
    ("turns", "budget", "reason", "paths", "detail"),
    [
        ([calling("a", "b"), saying("x")], Budget(calls=2), Reason.ANSWERED, ["a", "b"], ""),
        ([calling("a"), calling("b", "c"), saying("x")], Budget(calls=2), Reason.BUDGET, ["a"],
         "the model asked for 3 calls, and the limit is 2"),
        ([calling("a"), COMPLETED], Budget(calls=1), Reason.COMPLETED, ["a"], ""),
        ([calling("a"), saying("x")], Budget(calls=0), Reason.BUDGET, [], "the model asked for 1 call, and the limit is 0"),
        ([calling("a"), calling("b"), saying("x")], Budget(tokens=30), Reason.BUDGET, ["a"], "30 of 30 tokens are used"),
        ([COMPLETED], Budget(tokens=1), Reason.COMPLETED, [], ""),  # the answer is paid for
        ([calling("a", usage=PRICED), calling("b", usage=PRICED)], Budget(cost=0.15), Reason.BUDGET, ["a"],
         "$0.2000 of $0.1500 are spent"),
    ],
)  # fmt: skip
async def test_calls_that_a_budget_does_not_pay_for_are_not_run(
    turns: Any, budget: Budget, reason: Reason, paths: list[str], detail: str
) -> None:
    outcome = await Agent(Scripted(turns), [look], budget=budget).run("go")
    assert (outcome.reason, ran, outcome.detail) == (reason, paths, detail)
    if outcome.messages[-1].role == "tool" and reason is Reason.BUDGET:
        assert all(result.text == f"Not run: {detail}." for result in outcome.messages[-1].results)


@pytest.mark.parametrize("option", ["budget", "conversation_budget"])
async def test_with_a_limit_of_calls_none_begins_before_the_answer_is_whole(option: str) -> None:
    turns = [calling("a"), calling("b", "c", "d")]
    options: Any = {option: Budget(calls=2), "early_start": True}
    outcome = await Agent(Scripted(turns), [look], **options).run("go")
    assert (outcome.reason, ran) == (Reason.BUDGET, ["a"])


async def test_an_outcome_counts_calls() -> None:
    outcome = await Agent(Scripted([calling("a", "b"), COMPLETED]), [look]).run("go")
    assert outcome.usage.calls == 2


@pytest.mark.parametrize("how", ["in memory", "as JSON", "in a file"])
@pytest.mark.parametrize(
    ("budget", "turns"),
    [(Budget(tokens=50), 4), (Budget(cost=0.35), 4), (Budget(calls=1), 3), (Budget(tokens=500), 6)],
)
async def test_a_conversation_carries_what_it_used(
    how: str, budget: Budget, turns: int, tmp_path: Path
) -> None:
    script = [calling("a", usage=PRICED), saying("x", PRICED)] * 3
    agent = Agent(Scripted(script), [look], conversation_budget=budget)
    messages: list[Message] = []
    file = TranscriptFile(tmp_path / "run.jsonl") if how == "in a file" else None
    asked, outcome = 0, None
    for _ in range(3):
        outcome = await agent.run("go", messages=messages, transcript=file)
        asked += outcome.turns
        messages = outcome.messages
        if how == "as JSON":
            messages = messages_from_json(messages_to_json(messages))
        if file is not None:
            messages = read_transcript(tmp_path / "run.jsonl")
        if outcome.reason is Reason.BUDGET:
            break
    assert outcome is not None
    assert (outcome.reason is Reason.BUDGET) == (budget.tokens != 500)
    if outcome.reason is Reason.BUDGET:
        assert outcome.detail.startswith("in this conversation ")
    assert asked == turns


async def test_what_nested_runs_used_stands_in_the_conversation(tmp_path: Path) -> None:
    helper = Agent(Scripted([calling("a"), saying("found")]), [look])
    task = {"calls": [{"name": "helper", "arguments": {"task": "x"}}], "usage": USED}
    agent = Agent(
        Scripted([task, saying("done"), saying("again")]), [helper.as_tool("helper", "It helps.")],
        conversation_budget=Budget(tokens=60),
    )  # fmt: skip
    file = TranscriptFile(tmp_path / "run.jsonl")
    first = await agent.run("go", transcript=file)
    assert (first.reason, first.usage.total_tokens, first.usage.calls) == (Reason.ANSWERED, 60, 2)
    for messages in (first.messages, read_transcript(tmp_path / "run.jsonl")):
        second = await agent.run("more", messages=messages)
        assert (second.reason, second.turns) == (Reason.BUDGET, 0)
        assert second.detail == "in this conversation 60 of 60 tokens are used"


async def test_what_a_reviewer_used_stands_in_a_transcript_file(tmp_path: Path) -> None:
    @tool(effect=Effect.WRITE, secrets=(), open_world=False)
    def save(path: str) -> str:
        """Save."""
        return path

    yes = {"calls": [{"name": "decide", "arguments": {"allow": True, "reason": "asked for"}}], "usage": USED}
    turn = {"calls": [{"name": "save", "arguments": {"path": "a"}}], "usage": USED}
    agent = Agent(Scripted([turn, saying("done")]), [save], reviewer=ModelReviewer(Scripted([yes])))
    file = TranscriptFile(tmp_path / "run.jsonl")
    outcome = await agent.run("go", transcript=file)
    read = [message.usage for message in read_transcript(tmp_path / "run.jsonl") if message.usage is not None]
    assert sum(usage.total_tokens for usage in read) == outcome.usage.total_tokens == 45


def calling_tool(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}], "usage": USED}


async def _answers_late(request: Any) -> Any:
    """Look once; then answer only when the run is cancelled."""
    if len(request.messages) == 1:
        return calling("a")
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    return saying("too late")


IN_BACKGROUND = calling_tool("new_task", agent="helper", task="x", background=True)
ENDS = [
    ("its model waits for it", Scripted([calling("a"), saying("found")]), saying("I wait.")),
    ("its run is completed", Scripted(_answers_late), COMPLETED),
]


@pytest.mark.parametrize(("helper", "end"), [end[1:] for end in ENDS], ids=[end[0] for end in ENDS])
async def test_what_a_task_in_the_background_used_stands_in_outcome_conversation_and_file(
    tmp_path: Path, helper: Scripted, end: Any
) -> None:
    tools = delegation_tools({"helper": Delegate(Agent(helper, [look]), "It helps.")})
    agent = Agent(Scripted([IN_BACKGROUND, calling("b"), end, saying("done")]), [look, *tools])
    with closing(TranscriptFile(tmp_path / "run.jsonl")) as file:
        outcome = await agent.run("go", transcript=file)
    used = outcome.turns * 15 + outcome.nested[0].usage.total_tokens
    assert outcome.usage.total_tokens == used > outcome.turns * 15
    for messages in (outcome.messages, read_transcript(tmp_path / "run.jsonl")):
        assert total(messages) == outcome.usage


async def test_what_a_nested_run_used_after_a_wait_stands_in_the_file(tmp_path: Path) -> None:
    @tool(effect=Effect.WRITE, secrets=(), open_world=False)
    def save(path: str) -> str:
        """Save."""
        return path

    helper = Agent(Scripted([calling_tool("save", path="a"), saying("saved")]), [save], autonomy="full")
    agent = Agent(
        Scripted([calling_tool("helper", task="x"), saying("done")]), [helper.as_tool("helper", "It helps.")],
        on_question="suspend",
    )  # fmt: skip
    with closing(TranscriptFile(tmp_path / "run.jsonl")) as file:
        waiting = await agent.run("go", transcript=file)
    with closing(TranscriptFile(tmp_path / "run.jsonl")) as file:
        outcome = await agent.resume(waiting, {waiting.questions[0].id: "yes"}, transcript=file)
    assert outcome.usage.total_tokens == 60
    for messages in (outcome.messages, read_transcript(tmp_path / "run.jsonl")):
        assert total(messages) == outcome.usage


def total(messages: Iterable[Message]) -> Usage:
    return sum((message.usage for message in messages if message.usage is not None), Usage())


async def test_calls_of_nested_runs_count() -> None:
    helper = Agent(Scripted([calling("a", "b"), saying("found")]), [look])
    task = {"calls": [{"name": "helper", "arguments": {"task": "x"}}], "usage": USED}
    script = [task, saying("done")]
    agent = Agent(Scripted(script), [helper.as_tool("helper", "It helps.")], budget=Budget(calls=2))
    outcome = await agent.run("go")
    assert (outcome.nested[0].reason, ran) == (Reason.BUDGET, [])


@pytest.mark.parametrize("given", [Budget(seconds=3), 5, {"tokens": 5}])
def test_a_conversation_has_no_seconds(given: Any) -> None:
    with pytest.raises(TypeError, match="conversation_budget must be a Budget of tokens, cost or calls"):
        Agent(Scripted([]), [look], conversation_budget=given)
