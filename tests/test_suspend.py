"""A run ends at a question, and goes on when it is answered, in any process, as if it had been answered at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from toolcrib import Agent, Answer, Context, Effect, Question, ToolCall, Verdict
from toolcrib.agent import Outcome, Reason
from toolcrib.function import tool
from toolcrib.messages import Message, Request, ResultPart, messages_to_json
from toolcrib.models import Scripted
from toolcrib.question import Scope

READ, WRITE, DESTRUCTIVE = Effect.READ, Effect.WRITE, Effect.DESTRUCTIVE


class World:
    """What the tools change: a list of what was done, which every result tells of."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.runs: list[str] = []  # of the tools' own code, also where it ran again

    def of(self, n: int) -> list[str]:
        return [what for what in self.done if what.endswith(f" {n}")]

    def tools(self) -> list[Any]:
        def own(n: int, ctx: Context) -> int:
            "A number that calls of the same turn, which run side by side, do not use."
            return (n * 10 + ctx.key.index + 1) * 10

        async def look(n: int, ctx: Context) -> str:
            "Look."
            self.runs.append(f"look {n}")
            return f"look {n}: {self.of(n)}"

        async def plain(n: int, ctx: Context) -> str:
            "What nothing changes."
            self.runs.append(f"plain {n}")
            return f"plain {n}"

        async def drop(n: int, ctx: Context) -> str:
            "Drop."
            self.done.append(f"drop {n}")
            return f"drop {n}: {self.of(n)}"

        async def put(n: int, ctx: Context) -> str:
            "Put into a box of its own."
            self.done.append(f"put {n}")
            return f"put {n}"

        async def after(n: int, ctx: Context) -> str:
            "Look, drop, and look again."
            self.runs.append(f"after {n}")
            texts = [(await ctx.call(name, n=own(n, ctx))).text for name in ("look", "drop", "look")]
            return " / ".join(texts)

        async def beside(n: int, ctx: Context) -> str:
            "Put two things side by side."
            results = await asyncio.gather(
                *(ctx.call(name, n=own(n, ctx) + at) for at, name in enumerate(("put", "plain", "put")))
            )
            return " / ".join(result.text for result in results)

        def thread(n: int, ctx: Context) -> str:
            "Drop from a worker thread."
            return ctx.run(ctx.call("drop", n=own(n, ctx))).text

        async def deep(n: int, ctx: Context) -> str:
            "A call in a call in a call."
            try:
                return (await ctx.call("after", n=own(n, ctx))).text
            except Exception as error:  # what a tool does with errors has no part in this
                return str(error)

        async def twice(n: int, ctx: Context) -> str:
            "Ask twice for the same, and for something else."
            for action in ("first", "first", "other"):
                await ctx.ask(action, [str(n)])
            return f"asked {n}"

        return [
            tool(look, effect=READ, secrets=()),
            tool(plain, effect=READ, secrets=()),
            tool(drop, effect=DESTRUCTIVE, secrets=()),
            tool(put, effect=WRITE, secrets=(), resources=lambda params: [f"box {params['n']}"]),
            *(tool(function, effect=READ, secrets=()) for function in (after, beside, thread, deep)),
            tool(twice, effect=WRITE, idempotent=True, secrets=()),
        ]


NAMES = ["look", "drop", "put", "after", "beside", "thread", "deep", "twice"]
Turn = list[tuple[str, int]]
Decide = Callable[[Question], Any]


def model_of(turns: list[Turn]) -> Scripted:
    """Turn after turn, by what the conversation holds so far: in any process."""

    def next_turn(request: Request) -> Any:
        check_valid(request.messages)
        at = sum(message.role == "assistant" for message in request.messages)
        if at >= len(turns):
            return "That is all."
        calls = [ToolCall(name, {"n": n}, f"c{at}.{place}") for place, (name, n) in enumerate(turns[at])]
        return {"text": f"turn {at}", "calls": calls, "usage": {"input_tokens": 7, "output_tokens": 3}}

    return Scripted(next_turn)


def check_valid(messages: list[Message]) -> None:
    for n, message in enumerate(messages):
        if message.calls:
            assert [
                part.call for part in messages[n + 1].parts if isinstance(part, ResultPart)
            ] == message.calls


def agent_of(turns: list[Turn], world: World, **options: Any) -> Agent:
    options = {"on_question": "suspend", **options}
    return Agent(model_of(turns), options.pop("tools", None) or world.tools(), **options)


def shown(outcome: Outcome) -> list[Any]:
    """A transcript as it is saved; the repairs of calls are told once, and not saved."""
    return messages_to_json(outcome.messages)["messages"]


async def answered_live(turns: list[Turn], decide: Decide, **options: Any) -> tuple[Outcome, World]:
    async def approver(question: Question) -> Any:
        return decide(question)

    world = World()
    agent = agent_of(turns, world, on_question="ask", approver=approver, **options)
    return await agent.run("go"), world


async def answered_later(
    turns: list[Turn],
    decide: Decide,
    choose: Callable[[tuple[Question, ...]], list[Question]] = list,
    **options: Any,
) -> tuple[Outcome, World]:
    """The same, with each answer given to another agent that has read the run from JSON text."""
    world = World()
    outcome = await agent_of(turns, world, **options).run("go")
    for _ in range(200):
        if outcome.reason is not Reason.WAITING:
            return outcome, world
        check_valid(outcome.messages)
        assert outcome.questions
        assert len({question.id for question in outcome.questions}) == len(outcome.questions)
        saved = json.loads(json.dumps(outcome.to_json()))
        answers = {question.id: decide(question) for question in choose(outcome.questions)}
        outcome = await agent_of(turns, world, **options).resume(saved, answers)
    raise AssertionError("the run waits for ever")


def other_arguments(question: Question) -> dict[str, Any] | None:
    return {"n": question.arguments["n"] + 5000} if question.arguments else None


ANSWERS: dict[str, Decide] = {
    "yes": lambda question: "yes",
    "no": lambda question: Answer(Verdict.NO, "keep it"),
    "always, for these arguments": lambda question: Answer(Verdict.ALWAYS, by="ann"),
    "always, for the tool": lambda question: Answer(Verdict.ALWAYS, scope=Scope.TOOL),
    "other arguments": lambda question: Answer(Verdict.YES, arguments=other_arguments(question)),
}
TURNS: dict[str, list[Turn]] = {
    "one call": [[("drop", 1)]],
    "one after the other": [[("look", 1), ("drop", 1), ("look", 2), ("drop", 2), ("look", 3)]],
    "side by side": [[("put", 1), ("look", 5), ("put", 2), ("put", 3)]],
    "the same twice": [[("drop", 1), ("drop", 1)], [("drop", 1)]],
    "in a tool": [[("after", 1)], [("after", 1)]],
    "side by side in a tool": [[("beside", 1), ("look", 1)]],
    "in a tool on a thread": [[("thread", 1), ("drop", 1)]],
    "in a tool in a tool": [[("deep", 1), ("after", 2)]],
    "asked by a tool": [[("twice", 1)], [("twice", 1), ("twice", 2)]],
}


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("choose", [list, lambda questions: [questions[-1]]], ids=["all", "one by one"])
async def test_a_run_that_waited_is_what_it_would_have_been(turns: str, answer: str, choose: Any) -> None:
    live, there = await answered_live(TURNS[turns], ANSWERS[answer])
    later, here = await answered_later(TURNS[turns], ANSWERS[answer], choose)
    assert live.reason is Reason.ANSWERED
    assert shown(later) == shown(live)
    assert sorted(here.done) == sorted(there.done)
    assert (later.reason, later.text, later.turns, later.usage) == (
        live.reason,
        live.text,
        live.turns,
        live.usage,
    )


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 2)), min_size=1, max_size=4), max_size=3
    ),
    st.dictionaries(st.tuples(st.sampled_from(NAMES), st.integers(0, 12)), st.sampled_from(["no", "always"])),
    st.randoms(use_true_random=False),
)
@examples(60)
def test_wherever_it_waited_a_run_ends_in_the_same_transcript(turns: Any, said: Any, chance: Any) -> None:
    def decide(question: Question) -> Any:
        return said.get((question.tool, question.arguments.get("n", 0) % 13), "yes")

    def choose(questions: tuple[Question, ...]) -> list[Question]:
        return chance.sample(questions, chance.randint(1, len(questions)))

    async def compare() -> None:
        live, there = await answered_live(turns, decide)
        later, here = await answered_later(turns, decide, choose)
        assert shown(later) == shown(live)
        assert sorted(here.done) == sorted(there.done)

    asyncio.run(compare())
