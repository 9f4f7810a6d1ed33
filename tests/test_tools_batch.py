"""Several calls in one: each is decided on, asked about, scheduled and answered by itself."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from toolcrib import Agent, Answer, Context, Effect, Question, Toolbox, ToolError, Verdict, tool
from toolcrib.agent import Budget, Reason
from toolcrib.content import Image
from toolcrib.events import CallFinished
from toolcrib.facts import Facts
from toolcrib.models import Scripted
from toolcrib.rules import read_rules
from toolcrib.sink import EventLog
from toolcrib.toolbox import AutonomyPolicy
from toolcrib.tools import Batch
from toolcrib.toolset import prefixed


class World:
    """What the tools did, in order; `together` says whether two looks ran at the same time."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.looking = 0
        self.together = False

    def tools(self) -> list[Any]:
        @tool(effect=Effect.READ, secrets=())
        async def look(what: str) -> str:
            """Look."""
            self.looking += 1
            self.together |= self.looking > 1
            await asyncio.sleep(0.001)
            self.looking -= 1
            self.done.append(f"look {what}")
            return f"saw {what}"

        @tool(effect=Effect.WRITE, secrets=())
        async def save(what: str) -> str:
            """Save."""
            self.done.append(f"save {what}")
            return f"saved {what}"

        @tool(effect=Effect.READ, secrets=())
        async def fail(what: str) -> str:
            """Fail."""
            raise ToolError(f"There is no {what}.")

        @tool(effect=Effect.READ, secrets=())
        async def draw(what: str) -> Image:
            """Draw."""
            return Image.of(b"\x89PNG\r\n\x1a\n", name=what)

        return [Batch(), look, save, fail, draw]


def batch(*calls: str) -> dict[str, Any]:
    """The arguments of a batch of calls such as "look a"."""
    return {"calls": [{"tool": name, "arguments": {"what": what}} for name, what in map(str.split, calls)]}


class Yes:
    def __init__(self) -> None:
        self.asked: list[Question] = []

    async def __call__(self, question: Question) -> Answer:
        self.asked.append(question)
        return Answer(Verdict.NO if question.arguments["what"] == "no" else Verdict.YES)


@pytest.mark.parametrize(
    ("calls", "text"),
    [
        (["look a", "save b"], "2 of 2 calls are done.\n\n[1] look:\nsaw a\n\n[2] save:\nsaved b"),
        (["fail a", "look b"], "1 of 2 calls are done. Not done: 1 (fail).\n\n[1] fail failed:\nThere is no a.\n\n[2] look:\nsaw b"),
        (["fail a"], "0 of 1 calls are done. Not done: 1 (fail).\n\n[1] fail failed:\nThere is no a."),
        (["nothing a", "look b"], "1 of 2 calls are done. Not done: 1 (nothing).\n\n[1] nothing failed:\nUnknown tool \"nothing\"; nothing was run."),
        (["look a", "batch b"], "Nothing was run: a batch holds no other batch."),
        (["look a"] * 26, "at most 25"),
        ([], "at least 1"),
    ],
)  # fmt: skip
async def test_each_call_has_its_result(calls: list[str], text: str) -> None:
    result = await Toolbox(World().tools(), autonomy="full").call("batch", batch(*calls))
    assert text in result.text


async def test_a_batch_under_another_name_is_a_batch_too() -> None:
    box = Toolbox([prefixed(World().tools(), "my_")], autonomy="full")
    result = await box.call("my_batch", batch("my_look a", "my_batch b"))
    assert result.text.startswith("Nothing was run: a batch holds no other batch.")


async def test_pictures_stay_pictures() -> None:
    result = await Toolbox(World().tools(), autonomy="full").call("batch", batch("draw a", "draw b"))
    assert [part.name for part in result.parts if isinstance(part, Image)] == ["a", "b"]


async def test_calls_that_only_read_run_at_the_same_time_and_others_in_order() -> None:
    world = World()
    box = Toolbox(world.tools(), autonomy="full")
    await box.call("batch", batch("look a", "look b", "save c", "look d", "save e"))
    assert world.together
    assert world.done == ["look a", "look b", "save c", "look d", "save e"]


async def test_each_call_has_a_key_and_a_question_of_its_own() -> None:
    world, asked = World(), Yes()
    box = Toolbox(world.tools(), approver=asked)
    log = box.subscribe(EventLog())
    result = await box.call("batch", batch("save a", "look b", "save no"))
    assert [(question.tool, question.arguments["what"]) for question in asked.asked] == [
        ("save", "a"),
        ("save", "no"),
    ]
    assert "Not done: 3 (save)." in result.text
    ended = [event for event in log.events if isinstance(event, CallFinished)]
    assert len({event.key for event in ended}) == 4
    assert {event.parent for event in ended if event.tool != "batch"} == {box.run}
    assert box.sink.parents == {}


async def test_a_rule_about_a_tool_holds_in_a_batch() -> None:
    world = World()
    policy = read_rules('[[rule]]\ndeny = true\ntool = "look"\nargument = { what = "b*" }\n').policy("full")
    result = await Toolbox(world.tools(), policy=policy).call("batch", batch("look a", "look b"))
    assert world.done == ["look a"]
    assert "Not done: 2 (look)." in result.text


class Hiding(AutonomyPolicy):
    """A policy that allows a tool, for the calls of other tools, and does not show it to the model."""

    def shows(self, facts: Facts, /) -> bool:
        return facts.name != "look" and super().shows(facts)


async def test_a_batch_reaches_no_tool_that_the_model_is_not_shown() -> None:
    world = World()

    @tool(effect=Effect.READ, secrets=())
    async def wrapped(what: str, ctx: Context) -> str:
        """Look, by a call of its own."""
        return (await ctx.call("look", what=what)).text

    result = await Toolbox([*world.tools(), wrapped], policy=Hiding("full")).call(
        "batch", batch("look a", "wrapped b")
    )
    assert world.done == ["look b"]
    assert '[1] look failed:\nTool "look" is not available now; nothing was run.' in result.text


BUDGETS = [
    # calls that the run has, calls of the batches of its turns, what is done, how the run ends
    (4, [["save a", "save b", "save c"]], "abc", Reason.ANSWERED),
    (3, [["save a", "save b", "save c"]], "", Reason.BUDGET),
    (6, [["save a", "save b"], ["save c", "save d"]], "abcd", Reason.ANSWERED),
    (5, [["save a", "save b"], ["save c", "save d"]], "ab", Reason.BUDGET),
]


@pytest.mark.parametrize(("calls", "turns", "done", "reason"), BUDGETS)
@pytest.mark.parametrize("where", ["run", "conversation", "nested"])
async def test_calls_of_a_batch_count_in_the_budget(
    calls: int, turns: list[list[str]], done: str, reason: Reason, where: str
) -> None:
    world = World()
    script: list[Any] = [{"calls": [{"name": "batch", "arguments": batch(*turn)}]} for turn in turns]
    options: Any = {"autonomy": "full", "budget": Budget(calls=calls)}
    if where == "conversation":
        options = {"autonomy": "full", "conversation_budget": Budget(calls=calls)}
    agent = Agent(Scripted([*script, "done"]), world.tools(), **({} if where == "nested" else options))
    if where == "nested":
        options["budget"] = Budget(calls=calls + 1)
        ask: Any = {"calls": [{"name": "helper", "arguments": {"task": "x"}}]}
        helper = Agent(Scripted([*script, "done"]), world.tools(), autonomy="full").as_tool(
            "helper", "It helps."
        )
        agent = Agent(Scripted([ask, "done"]), [helper], **options)
    outcome = await agent.run("go")
    assert ([name[-1] for name in world.done], outcome.reason) == (list(done), reason)


async def test_calls_of_a_batch_count_once_where_it_waited() -> None:
    world = World()
    turn = {"calls": [{"name": "batch", "arguments": batch("look a", "save b", "save c")}]}
    agent = Agent(Scripted([turn, "done"]), world.tools(), on_question="suspend", budget=Budget(calls=4))
    waiting = await agent.run("go")
    for _ in waiting.questions:
        question = waiting.questions[0]
        waiting = await agent.resume(json.loads(json.dumps(waiting.to_json())), {question.id: "yes"})
    assert (waiting.reason, waiting.usage.calls, len(world.done)) == (Reason.ANSWERED, 4, 3)


@pytest.mark.parametrize("answers", [("yes", "yes"), ("yes", "no"), ("no", "no")])
async def test_questions_in_a_batch_wait_together_and_nothing_is_done_twice(answers: tuple[str, str]) -> None:
    world = World()
    calls = batch("look a", "save b", "save c", "look d")
    script = [{"calls": [{"name": "batch", "arguments": calls}]}, "Done."]
    agent = Agent(Scripted(script), world.tools(), on_question="suspend")
    waiting = await agent.run("go")
    assert waiting.reason is Reason.WAITING
    assert [question.arguments["what"] for question in waiting.questions] == ["b", "c"]
    outcome = await _answered(agent, waiting, answers)
    (text,) = [result.text for message in outcome.messages for result in message.results]
    said = [f"save {what}" for what, answer in zip("bc", answers, strict=True) if answer == "yes"]
    assert world.done == ["look a", *said, "look d"]
    assert text.startswith(f"{2 + len(said)} of 4 calls are done.")


async def _answered(agent: Agent, outcome: Any, answers: tuple[str, str]) -> Any:
    """The outcome after all questions, as they come, were answered by what they are about."""
    for _ in range(3):
        if outcome.reason is not Reason.WAITING:
            break
        saved = json.loads(json.dumps(outcome.to_json()))
        given = {
            question.id: answers["bc".index(question.arguments["what"])] for question in outcome.questions
        }
        outcome = await agent.resume(saved, given)
    return outcome


async def test_a_tool_may_make_calls_before_and_after_such_calls() -> None:
    """Each inner call has a key of its own, whether it is made alone or with others."""
    world = World()

    @tool(effect=Effect.READ, secrets=(), delegates=True)
    async def several(ctx: Context[Any]) -> str:
        """Do several things."""
        first = await ctx.call("look", what="a")
        both = await ctx.call_all([("look", {"what": "b"}), ("look", {"what": "c"})])
        none = await ctx.call_all([])
        last = await ctx.call("look", what="d")
        return " ".join(result.text for result in [first, *both, *none, last])

    box = Toolbox([*world.tools(), several], autonomy="full")
    log = box.subscribe(EventLog())
    assert (await box.call("several")).text == "saw a saw b saw c saw d"
    ended = [event.key for event in log.events if isinstance(event, CallFinished)]
    assert len(set(ended)) == len(ended) == 5
