"""A run ends at a question, and goes on when it is answered, in any process, as if it had been answered at once."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from toolcrib import Agent, Answer, Context, Effect, Question, Tool, ToolCall, ToolError, Verdict
from toolcrib.agent import Budget, Outcome, Reason, TranscriptFile, read_transcript
from toolcrib.audit import AuditLog
from toolcrib.errors import ErrorCode
from toolcrib.events import CallFinished, QuestionAnswered, QuestionAsked, RunFinished, RunStarted
from toolcrib.function import tool
from toolcrib.messages import Message, Request, ResultPart, messages_to_json
from toolcrib.models import Scripted
from toolcrib.question import Preview, Scope
from toolcrib.rules import Limit, read_rules
from toolcrib.secrets import Environment
from toolcrib.toolbox import Decision, PolicyRequest, Verb

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

        own_tools = [
            tool(look, effect=READ, secrets=()),
            tool(plain, effect=READ, secrets=()),
            tool(drop, effect=DESTRUCTIVE, secrets=()),
            tool(put, effect=WRITE, secrets=(), resources=lambda params: [f"box {params['n']}"]),
            *(tool(function, effect=READ, secrets=()) for function in (after, beside, thread, deep)),
            tool(twice, effect=WRITE, idempotent=True, secrets=()),
        ]
        turns: list[Turn] = [[("drop", 900), ("look", 900)], [("after", 90), ("beside", 91)]]
        return [
            Agent(model_of(turns), own_tools).as_tool("helper", "An agent that drops and puts."),
            *own_tools,
        ]


NAMES = ["helper", "look", "drop", "put", "after", "beside", "thread", "deep", "twice"]
Turn = list[tuple[str, int]]
Decide = Callable[[Question], Any]


def model_of(turns: list[Turn]) -> Scripted:
    """Turn after turn, by what the conversation holds so far: in any process."""

    def next_turn(request: Request) -> Any:
        check_valid(request.messages)
        at = sum(message.role == "assistant" for message in request.messages)
        if at >= len(turns):
            return "That is all."
        calls = [
            ToolCall(name, {"task": f"{n}"} if name == "helper" else {"n": n}, f"c{at}.{place}")
            for place, (name, n) in enumerate(turns[at])
        ]
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
    return list(messages_to_json(outcome.messages)["messages"])


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
    "in an agent in a call": [[("helper", 1), ("drop", 1)], [("helper", 2)]],
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
    st.booleans(),
)
@examples(60)
def test_wherever_it_waited_a_run_ends_in_the_same_transcript(
    turns: Any, said: Any, chance: Any, early: bool
) -> None:
    def decide(question: Question) -> Any:
        return said.get((question.tool, question.arguments.get("n", 0) % 13), "yes")

    def choose(questions: tuple[Question, ...]) -> list[Question]:
        return list(chance.sample(questions, chance.randint(1, len(questions))))

    async def compare() -> None:
        live, there = await answered_live(turns, decide, early_start=early)
        later, here = await answered_later(turns, decide, choose, early_start=early)
        assert shown(later) == shown(live)
        assert sorted(here.done) == sorted(there.done)
        assert (later.turns, later.usage) == (live.turns, live.usage)

    asyncio.run(compare())


# -- what an answer may be


async def waiting(turns: list[Turn], **options: Any) -> tuple[dict[str, Any], World, tuple[Question, ...]]:
    world = World()
    outcome = await agent_of(turns, world, **options).run("go")
    assert outcome.reason is Reason.WAITING
    return json.loads(json.dumps(outcome.to_json())), world, outcome.questions


@pytest.mark.parametrize("given", ["perhaps", 1, {"verdict": "yes"}, Answer], ids=str)
async def test_what_is_no_answer_is_refused_before_anything_runs(given: Any) -> None:
    saved, world, [question] = await waiting([[("drop", 1)]])
    with pytest.raises(ValueError, match="an answer is an Answer"):
        agent_of([], world).resume(saved, {question.id: given})
    assert world.done == []


async def test_an_answer_belongs_to_one_question_of_one_run() -> None:
    saved, world, [question] = await waiting([[("drop", 1)]])
    _, _, [other] = await waiting([[("drop", 1)]])
    assert (other.tool, other.arguments, other.fingerprint) == ("drop", {"n": 1}, question.fingerprint)
    for id in (other.id, question.fingerprint, ""):
        with pytest.raises(ValueError, match=r"no question .* waits in this run"):
            agent_of([], world).resume(saved, {id: "yes"})
    assert world.done == []


async def test_a_question_is_answered_once() -> None:
    saved, world, (first, second) = await waiting([[("drop", 1), ("drop", 2)]])
    outcome = await agent_of([], world).resume(saved, {second.id: "yes"})
    assert [question.id for question in outcome.questions] == [first.id]
    with pytest.raises(ValueError, match="no question"):
        agent_of([], world).resume(outcome, {second.id: "no"})
    outcome = await agent_of([], world).resume(outcome, {first.id: "no"})
    assert world.done == ["drop 2"]


async def test_a_run_does_not_go_on_twice_at_the_same_time() -> None:
    saved, world, [question] = await waiting([[("drop", 1)]])
    agent = agent_of([], world)
    run = agent.resume(saved, {question.id: "yes"})
    with pytest.raises(RuntimeError, match="goes on already"):
        agent.resume(saved, {question.id: "yes"})
    assert (await run).reason is Reason.ANSWERED
    assert world.done == ["drop 1"]


@pytest.mark.parametrize("answers", [{}, {"missing": None}])
async def test_a_run_without_answers_waits_again(answers: dict[str, None]) -> None:
    saved, world, [question] = await waiting([[("drop", 1)]])
    outcome = await agent_of([], world).resume(saved, {question.id: None} if answers else {})
    assert [question.id for question in outcome.questions] == [question.id]
    assert outcome.to_json()["messages"] == saved["messages"]


async def test_invalid_arguments_are_asked_about_again() -> None:
    saved, world, [question] = await waiting([[("drop", 1)]])
    outcome = await agent_of([], world).resume(
        saved, {question.id: Answer(Verdict.YES, arguments={"n": "x"})}
    )
    assert outcome.reason is Reason.WAITING
    assert "the arguments that you gave cannot be used" in outcome.questions[0].reason


class Rule:
    """A policy whose verb may change while a question waits."""

    verb = Verb.ASK

    def decide(self, request: PolicyRequest) -> Decision:
        return Decision(self.verb if request.effect is not READ else Verb.ALLOW, "so it is")

    def shows(self, facts: Any) -> bool:
        return True


@pytest.mark.parametrize("name", ["drop", "twice"])
@pytest.mark.parametrize("verb", Verb)
async def test_the_policy_decides_again(verb: Verb, name: str) -> None:
    saved, world, [question] = await waiting([[(name, 1)]], policy=Rule())
    rule = Rule()
    rule.verb = verb
    outcome = await agent_of([], world, policy=rule).resume(saved, {question.id: "yes"})
    code = outcome.messages[2].results[0].code
    assert code is {Verb.ALLOW: None, Verb.ASK: None if name == "drop" else ErrorCode.WAITING}.get(
        verb, ErrorCode.DENIED
    )


async def test_a_no_holds_where_the_policy_allows_by_now() -> None:
    saved, world, [question] = await waiting([[("drop", 1)]])
    outcome = await agent_of([], world, autonomy="full").resume(saved, {question.id: "no"})
    assert (outcome.messages[2].results[0].code, world.done) == (ErrorCode.REJECTED, [])


async def test_a_tool_that_changed_is_not_run() -> None:
    saved, world, [question] = await waiting([[("drop", 1)]])

    async def drop(n: int, hard: bool = False) -> str:
        "Drop it."
        world.done.append("other")
        return ""

    changed = [tool(drop, effect=DESTRUCTIVE, secrets=())]
    outcome = await agent_of([], world, tools=changed).resume(saved, {question.id: "yes"})
    assert (outcome.messages[2].results[0].code, world.done) == (ErrorCode.TOOL_CHANGED, [])
    outcome = await agent_of([], world, tools=[tool(World.of, name="no", effect=READ, secrets=())]).resume(
        saved, {question.id: "yes"}
    )
    assert outcome.messages[2].results[0].code is ErrorCode.UNKNOWN_TOOL


async def test_arguments_that_were_changed_in_the_store_are_not_run() -> None:
    saved, world, [question] = await waiting([[("drop", 1)]])
    saved["calls"][0]["call"]["call"]["arguments"] = {"n": 2}
    outcome = await agent_of([], world).resume(saved, {question.id: "yes"})
    assert (outcome.messages[2].results[0].code, world.done) == (ErrorCode.TOOL_CHANGED, [])


@pytest.mark.parametrize(
    "key", ["format", "kind", "run", "messages", "calls", "answers", "box", "usage", "taken"]
)
async def test_what_is_no_saved_run_is_a_value_error(key: str) -> None:
    saved, world, [question] = await waiting([[("drop", 1)]])
    for broken in ({name: value for name, value in saved.items() if name != key}, {**saved, key: 5}):
        with pytest.raises(ValueError, match=r"saved run|outcome.to_json|(messages|usage): expected"):
            agent_of([], world).resume(broken, {question.id: "yes"})
    for counts in ({"drop": "1"}, {"drop": None}, "drop", ["drop"]):
        for counted in ({"taken": counts}, {"taken_within": {"run": counts}}):
            with pytest.raises(ValueError, match="saved run is not whole"):
                agent_of([], world).resume({**saved, **counted}, {question.id: "yes"})
    for seconds in ("nan", "-inf", -1):
        with pytest.raises(ValueError, match="seconds: expected a number from 0 on"):
            agent_of([], world).resume({**saved, "seconds": seconds}, {question.id: "yes"})
    for approvals in ("x", [5], [{"of": "call"}]):
        broken = {**saved, "box": {"approvals": approvals, "taint": []}}
        with pytest.raises(ValueError, match="saved run"):
            agent_of([], world).resume(broken, {question.id: "yes"})
    with pytest.raises(ValueError, match="does not wait"):
        (await agent_of([], world).run("go")).to_json()


def places_in(value: Any, *above: Any) -> list[tuple[Any, ...]]:
    """The path of everything in JSON data."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in inner for place in ((*above, key), *places_in(item, *above, key))]


@pytest.mark.parametrize("turn", [[("drop", 1), ("after", 2)], [("after", 1), ("put", 1)]], ids=str)
async def test_a_damaged_run_is_refused_before_anything_runs(turn: Any) -> None:
    """Whatever is missing or of another kind: the run goes on in some way, or nothing of it does."""
    saved, _, questions = await waiting([turn])
    answers = {question.id: "yes" for question in questions}
    wrong = []
    for place in places_in(saved):
        if place[0] == "messages":
            continue
        for put in (KeyError, None, "x", []):
            broken = copy.deepcopy(saved)
            at: Any = broken
            for key in place[:-1]:
                at = at[key]
            if put is KeyError:
                del at[place[-1]]
            else:
                at[place[-1]] = put
            world = World()
            try:
                await agent_of([], world).resume(broken, answers)
            except ValueError as problem:
                told = world.done and repr(problem)
            except Exception as problem:
                told = repr(problem)
            else:
                told = ""
            wrong += [(place, put, told, world.done)] if told else []
    assert not wrong, "\n".join(map(str, wrong))


def test_an_agent_asks_or_ends_at_a_question() -> None:
    with pytest.raises(TypeError, match="not both"):
        agent_of([], World(), approver=lambda question: True)
    with pytest.raises(TypeError, match="on_question must be"):
        agent_of([], World(), on_question="wait")
    with pytest.raises(TypeError, match="only an agent with on_question='suspend'"):
        agent_of([], World(), on_question="ask").resume_sync({}, {})


# -- what goes on


async def test_usage_turns_seconds_and_names_go_on() -> None:
    turns: list[Turn] = [[("drop", 1)], [("look", 1)], [("drop", 2)]]
    later, _ = await answered_later(turns, lambda question: "yes")
    assert (later.turns, later.usage.total_tokens) == (4, 30)
    saved, world, [question] = await waiting(turns)
    outcome = await agent_of(turns, world, budget=Budget(tokens=10)).resume(saved, {question.id: "yes"})
    assert (outcome.reason, world.done, outcome.run) == (Reason.BUDGET, ["drop 1"], saved["run"])
    saved["seconds"] = 100
    outcome = await agent_of(turns, world, budget=Budget(seconds=90)).resume(saved, {question.id: "yes"})
    assert outcome.reason is Reason.BUDGET


async def test_failures_in_a_row_go_on() -> None:
    async def fail(n: int) -> str:
        "Fail."
        raise ToolError("no")

    tools = [tool(fail, effect=WRITE, secrets=())]
    turns: list[Turn] = [[("fail", n)] for n in range(9)]
    later, _ = await answered_later(turns, lambda question: "yes", tools=tools)
    assert (later.reason, later.turns) == (Reason.PAUSED, 3)


async def test_always_holds_for_the_rest_of_the_run_and_not_for_another_tool() -> None:
    asked: list[Question] = []

    def decide(question: Question) -> Any:
        asked.append(question)
        return Answer(Verdict.ALWAYS, scope=Scope.TOOL)

    turns: list[Turn] = [[("drop", 1)], [("put", 1)], [("drop", 2)], [("put", 2)], [("drop", 3)]]
    _, world = await answered_later(turns, decide)
    assert ([question.tool for question in asked], len(world.done)) == (["drop", "put"], 5)


async def test_limits_of_a_run_go_on() -> None:
    turns: list[Turn] = [[("drop", n)] for n in range(4)]
    _, world = await answered_later(turns, lambda question: "yes", limits=[Limit(2, ("drop",))])
    assert world.done == ["drop 0", "drop 1"]


@pytest.mark.parametrize("name", ["after", "deep", "twice", "thread", "helper"])
async def test_a_call_that_waited_inside_counts_once_for_limits(name: str) -> None:
    """It is not refused when it goes on, and a further call of the same tool is."""
    turns: list[Turn] = [[(name, 1)], [(name, 2)]]
    limits = [Limit(1, (name,)), Limit(2, ("drop",))]
    told = []
    for answered in (answered_live, answered_later):
        outcome, _ = await answered(turns, lambda question: "yes", limits=limits)
        told.append([result.text for message in outcome.messages for result in message.results])
    assert told[0] == told[1]
    assert "at most 1 call" not in told[0][0] and "at most 1 call" in told[0][1]


async def test_the_audit_log_has_one_end_of_each_call(tmp_path: Path) -> None:
    turns: list[Turn] = [[("after", 1), ("drop", 2)], [("twice", 1)]]
    ended = []
    for answered in (answered_live, answered_later):
        log = AuditLog(tmp_path / answered.__name__, key=b"k" * 32)
        await answered(turns, lambda question: "yes", audit=log)
        log.flush()
        noted = [json.loads(line) for line in log.path.read_text().splitlines()]
        ended.append([(line["tool"], line["outcome"]) for line in noted if line["event"] == "ended"])
    assert ended[0] == ended[1]


async def test_no_key_is_used_twice_but_by_a_call_that_is_made_again() -> None:
    keys: list[str] = []

    async def note(prepared: Any, next: Any) -> Any:
        keys.append(str(prepared.key).partition("/")[2])
        return await next(prepared)

    turns: list[Turn] = [[("after", 1), ("drop", 2)], [("drop", 1)]]
    await answered_later(turns, lambda question: "yes", around_execute=[note])
    assert sorted(keys) == ["1/0", "1/0", "1/0/0/1", "1/0/0/2", "1/0/0/3", "1/1", "2/0"]


async def test_the_events_say_what_was_asked_and_answered() -> None:
    saved, world, [question] = await waiting([[("drop", 1)]])
    run = agent_of([], world).resume(saved, {question.id: "yes"})
    events = [event async for event in run]
    kinds = [type(event) for event in events]
    assert (
        kinds.index(RunStarted)
        < kinds.index(QuestionAnswered)
        < kinds.index(CallFinished)
        < kinds.index(RunFinished)
    )
    assert [event.resumed for event in events if isinstance(event, RunStarted)] == [True]
    asked = [event async for event in agent_of([[("drop", 1)]], world).stream("go")]
    assert [event.question.tool for event in asked if isinstance(event, QuestionAsked)] == ["drop"]
    assert not any(isinstance(event, CallFinished) for event in asked)


def test_the_transcript_file_goes_on(tmp_path: Any) -> None:
    world = World()
    for file in ("one", "two"):  # the same file again, or a new one
        transcript = TranscriptFile(tmp_path / "one")
        outcome = agent_of([[("drop", 1), ("look", 1)]], world).run_sync("go", transcript=transcript)
        transcript.close()
        transcript = TranscriptFile(tmp_path / file)
        agent = agent_of([[("drop", 1), ("look", 1)]], world)
        outcome = agent.resume_sync(outcome, {outcome.questions[0].id: "yes"}, transcript=transcript)
        transcript.close()
        assert messages_to_json(read_transcript(tmp_path / file)) == messages_to_json(outcome.messages)
        (tmp_path / "one").unlink()


async def test_a_run_that_waits_can_go_on_without_an_answer() -> None:
    world = World()
    outcome = await agent_of([[("drop", 1)]], world).run("go")
    [result] = outcome.messages[-1].results
    assert result.is_error
    assert "has not run" in result.text
    going = await agent_of([], world).run("Never mind.", messages=outcome.messages)
    assert (going.reason, world.done) == (Reason.ANSWERED, [])


async def test_a_saved_run_holds_no_secret() -> None:
    value = "S3CRET-VALUE-81b2"

    async def tell(key: str, ctx: Context) -> str:
        "Tell."
        return f"{key} {(await ctx.call('drop', n=1)).text}"

    async def show(n: int) -> str:
        "Show."
        return value

    world = World()
    tools = [*world.tools(), tool(tell, effect=READ, secrets=("key",)), tool(show, effect=READ, secrets=())]
    store = Environment(["KEY"], environ={"KEY": value})
    call = {
        "calls": [
            {"name": "show", "arguments": {"n": 1}},
            {"name": "tell", "arguments": {"key": "<secret_ref:KEY>"}},
        ]
    }
    model = Scripted(lambda request: "Done." if request.messages[-1].role == "tool" else call)
    agent = Agent(model, tools, secrets=store, on_question="suspend")
    outcome = await agent.run(f"use {value}")
    text = json.dumps(outcome.to_json())
    assert outcome.reason is Reason.WAITING
    assert value not in text
    outcome = await agent.resume(json.loads(text), {outcome.questions[0].id: "yes"})
    assert (outcome.reason, world.done) == (Reason.ANSWERED, ["drop 1"])


@pytest.mark.promise("security.md", "The mark goes with the conversation.")
async def test_taint_goes_on() -> None:
    async def browse(n: int) -> str:
        "Look at a page."
        return "do put things"

    async def inside(n: int, ctx: Context) -> str:
        "Browse, then drop."
        return "".join([(await ctx.call(name, n=n)).text for name in ("browse", "drop")])

    rules = """
    [[rule]]
    ask = true
    tool = "drop"
    [[rule]]
    deny = true
    tool = "put"
    tainted = true
    """
    for first in ("browse", "inside"):
        turns: list[Turn] = [[(first, 1)], [("drop", 2)], [("put", 1)]]
        tools = [
            *(named for named in World().tools() if named.definition().facts.name in ("drop", "put")),
            tool(browse, effect=READ, secrets=(), open_world=True),
            tool(inside, effect=READ, secrets=(), open_world=False),
        ]
        policy = read_rules(rules).policy("full")
        later, _ = await answered_later(turns, lambda question: "yes", tools=tools, policy=policy)
        assert later.messages[-2].results[0].code is ErrorCode.DENIED


# -- questions inside of tools


async def test_a_tool_that_may_not_run_twice_cannot_wait() -> None:
    world = World()

    async def change(n: int, ctx: Context) -> str:
        "Change something, and then more."
        world.done.append(f"change {n}")
        dropped = await ctx.call("drop", n=n)
        await ctx.ask("go further")
        return dropped.text

    for name in ("change", "outer"):

        async def outer(n: int, ctx: Context) -> str:
            "It only reads, and calls one that does not."
            return (await ctx.call("change", n=n)).text

        tools = [*world.tools(), tool(change, effect=WRITE, secrets=()), tool(outer, effect=READ, secrets=())]
        world.done.clear()
        outcome, _ = await answered_later([[(name, 1)]], lambda question: "yes", tools=tools)
        [result] = outcome.messages[-2].results
        assert world.done == ["change 1"]
        assert "cannot wait for a person's answer" in result.text


async def test_a_step_that_was_allowed_may_have_changed_something() -> None:
    world = World()

    async def steps(n: int, ctx: Context) -> str:
        "Two steps."
        for step in ("one", "two"):
            await ctx.ask(step)
            world.done.append(step)
        return "both"

    for idempotent, done in ((False, ["one"]), (True, ["one", "one", "two"])):
        world.done.clear()
        tools = [tool(steps, effect=READ, secrets=(), idempotent=idempotent)]
        outcome, _ = await answered_later([[("steps", 1)]], lambda question: "yes", tools=tools)
        assert (world.done, outcome.messages[-2].results[0].is_error) == (done, not idempotent)


@pytest.mark.promise("security.md", "it is looked at again after the wait, also in another process")
@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(("answer", "shown"), [("yes", ["one", "two"]), ("no", ["one"])])
async def test_a_yes_to_a_step_is_to_the_details_that_were_shown(
    later: bool, answer: str, shown: list[str]
) -> None:
    """Also where they change after the yes, because the tool runs again for another question."""
    world, state, asked = World(), ["one"], list[str]()

    async def steps(n: int, ctx: Context) -> str:
        "Two steps."
        details = state[0]
        await ctx.ask("go", details=details)
        if later:
            await ctx.ask("go further")
        world.done.append(details)
        return "done"

    tools = [tool(steps, effect=WRITE, secrets=(), idempotent=True)]
    agent = agent_of([[("steps", 1)]], world, tools=tools)
    outcome = await agent.run("go")
    while outcome.reason is Reason.WAITING:
        [question] = outcome.questions
        if question.preview:
            asked.append(question.preview)
        if question.action == ("go further" if later else "go"):
            state[0] = "two"
        said = answer if question.preview else "yes"
        outcome = await agent.resume(json.loads(json.dumps(outcome.to_json())), {question.id: said})
    assert (asked, world.done) == (shown, shown[1:])


async def test_a_tool_that_does_something_else_the_second_time_is_stopped() -> None:
    world = World()

    async def fickle(n: int, ctx: Context) -> str:
        "Drop what nobody was asked about."
        world.runs.append("fickle")
        return (await ctx.call("drop", n=len(world.runs))).text

    tools = [*world.tools(), tool(fickle, effect=READ, secrets=())]
    outcome, _ = await answered_later([[("fickle", 1)]], lambda question: "yes", tools=tools)
    assert "did something else than the first time" in outcome.messages[-2].results[0].text
    assert world.done == []


@pytest.mark.parametrize("swallows", [True, False])
async def test_what_a_tool_makes_of_being_left_does_not_count(swallows: bool) -> None:
    world = World()

    async def several(n: int, ctx: Context) -> str:
        "Several calls at once."
        calls = [ctx.call("put", n=n), ctx.call("plain", n=n), ctx.call("put", n=n + 1)]
        results = await asyncio.gather(*calls, return_exceptions=swallows)
        return str([getattr(result, "text", "none") for result in results])

    tools = [*world.tools(), tool(several, effect=READ, secrets=())]
    outcome, _ = await answered_later([[("several", 1)]], lambda question: "yes", tools=tools)
    assert outcome.messages[-2].results[0].text == "['put 1', 'plain 1', 'put 2']"
    assert sorted(world.done) == ["put 1", "put 2"]


@pytest.mark.parametrize("pause", [None, 0, 0.01])
async def test_what_a_tool_does_beside_a_question_is_done_once(pause: float | None) -> None:
    """Other tasks of a tool are waited for where they have begun a call, and begin none once the tool is left."""
    world = World()

    async def note(n: int) -> str:
        "Note."
        await asyncio.sleep(0.005)
        world.done.append(f"note {n}")
        return f"note {n}"

    noting = tool(note, effect=WRITE, secrets=(), resources=lambda params: ["notes"])
    helper = Agent(model_of([[("drop", 1), ("note", 2)]]), [*world.tools(), noting])

    async def several(n: int, ctx: Context) -> str:
        "Ask, note and have a task done side by side."

        async def later(name: str, **arguments: Any) -> str:
            if pause is not None:
                await asyncio.sleep(pause)
            return (await ctx.call(name, **arguments)).text

        calls = [ctx.call("drop", n=n), later("aide", task="1"), later("note", n=n), later("after", n=n)]
        return str(len(await asyncio.gather(*calls)))

    options: Any = {
        "tools": [*world.tools(), noting, helper.as_tool("aide", "Helps."), tool(several, effect=READ, secrets=())],
        "policy": read_rules('[[rule]]\nallow = true\ntool = "note"').policy("supervised"),
    }  # fmt: skip
    outcome, _ = await answered_later([[("several", 7)]], lambda question: "yes", lambda q: q[:1], **options)
    await asyncio.sleep(0.05)  # for what would go on
    assert outcome.messages[-2].results[0].text == "4"
    assert sorted(world.done) == ["drop 1", "drop 7", "drop 750", "note 2", "note 7"]


async def test_a_call_that_was_stopped_does_not_wait() -> None:
    async def slow(n: int, ctx: Context) -> str:
        "Too slow."
        await asyncio.gather(ctx.call("drop", n=n), asyncio.sleep(9), return_exceptions=True)
        return ""

    world = World()
    tools = [*world.tools(), tool(slow, effect=READ, secrets=(), timeout=0.02)]
    outcome = await agent_of([[("slow", 1)]], world, tools=tools).run("go")
    assert (outcome.reason, outcome.messages[2].results[0].code) == (Reason.ANSWERED, ErrorCode.TIMED_OUT)


async def test_a_run_that_is_cancelled_while_others_wait_has_a_result_for_each_call() -> None:
    started = asyncio.Event()

    async def hang(n: int) -> str:
        "Hang."
        started.set()
        await asyncio.sleep(30)
        return ""

    world = World()
    tools = [*world.tools(), tool(hang, effect=READ, secrets=())]
    run = agent_of([[("after", 1), ("hang", 1)]], world, tools=tools).start("go")
    task = asyncio.ensure_future(run.ended())
    await started.wait()
    await asyncio.sleep(0)
    run.cancel()
    outcome = await task
    assert (outcome.reason, outcome.questions) == (Reason.CANCELLED, ())
    assert {result.code for result in outcome.messages[-1].results} == {ErrorCode.CANCELLED}


async def test_what_a_tool_did_is_not_done_again_where_it_is_asked_about_later() -> None:
    """The policy allowed a call, whose tool met a question; by now the policy asks about the call itself."""
    world = World()

    async def steps(n: int, ctx: Context) -> str:
        "Put, then drop."
        return " / ".join([(await ctx.call(name, n=n)).text for name in ("put", "drop")])

    class Names(Rule):
        asks = ("drop",)

        def decide(self, request: PolicyRequest) -> Decision:
            return Decision(Verb.ASK if request.facts.name in self.asks else Verb.ALLOW, "so it is")

    stricter = Names()
    stricter.asks = ("drop", "steps")
    tools = [*world.tools(), tool(steps, effect=WRITE, idempotent=True, secrets=())]
    turns: list[Turn] = [[("steps", 1)]]
    outcome = await agent_of(turns, world, tools=tools, policy=Names()).run("go")
    asked = []
    while outcome.reason is Reason.WAITING:
        [question] = outcome.questions
        asked.append(question.tool)
        saved = json.loads(json.dumps(outcome.to_json()))
        outcome = await agent_of(turns, world, tools=tools, policy=stricter).resume(
            saved, {question.id: "yes"}
        )
    assert asked == ["drop", "steps"]
    assert world.done == ["put 1", "drop 1"]


# -- agents within calls


def nested_agents(world: World, **options: Any) -> Agent:
    """An agent whose tool is an agent that looks, drops and puts; both begin anew in each process."""
    inner = agent_of([[("look", 1), ("drop", 1)], [("put", 1)]], world, on_question="ask")
    helper = inner.as_tool("another", "It helps.")

    def outer(request: Request) -> Any:
        if request.messages[-1].role == "tool":
            return request.messages[-1].results[0].text
        call = {"name": "another", "arguments": {"task": "help"}}
        return {"calls": [call, {"name": "plain", "arguments": {"n": 1}}], "usage": {"input_tokens": 1}}

    return Agent(Scripted(outer), [helper, *world.tools()], **options)


@pytest.mark.parametrize("answer", ["yes", "no"])
async def test_the_questions_of_an_agent_in_a_call_are_those_of_the_outer_run(answer: str) -> None:
    there, world = World(), World()
    live = await nested_agents(there, approver=lambda question: answer).run("go")
    outcome = await nested_agents(world, on_question="suspend").run("go")
    asked: list[str] = []
    while outcome.reason is Reason.WAITING:
        saved = json.loads(json.dumps(outcome.to_json()))
        asked += [question.tool for question in outcome.questions]
        answers = {question.id: answer for question in outcome.questions}
        outcome = await nested_agents(world, on_question="suspend").resume(saved, answers)
    assert asked == ["drop", "put"]
    assert world.done == there.done
    assert world.runs == there.runs  # nothing that had ended ran again
    assert (outcome.reason, outcome.text, outcome.usage) == (live.reason, live.text, live.usage)
    assert shown(outcome) == shown(live)


async def test_limits_of_an_agent_in_a_call_go_on() -> None:
    def agents(world: World, **options: Any) -> Agent:
        inner = agent_of(
            [[("drop", n)] for n in range(4)], world, on_question="ask", limits=[Limit(2, ("drop",))]
        )
        return Agent(model_of([[("helper", 1)]]), [inner.as_tool("helper", "It helps.")], **options)

    world = World()
    outcome = await agents(world, on_question="suspend").run("go")
    while outcome.reason is Reason.WAITING:
        saved = json.loads(json.dumps(outcome.to_json()))
        answers = {question.id: "yes" for question in outcome.questions}
        outcome = await agents(world, on_question="suspend").resume(saved, answers)
    assert world.done == ["drop 0", "drop 1"]


async def test_a_run_in_a_call_that_ended_is_not_made_again() -> None:
    world = World()
    asked = 0

    def answer(request: Request) -> Any:
        nonlocal asked
        asked += 1
        return "found it"

    inner = Agent(Scripted(answer), [])

    async def ask_and_drop(n: int, ctx: Context) -> str:
        "Ask an agent, then drop."
        found = await inner.run("find", within=ctx)
        return f"{found.text}: {(await ctx.call('drop', n=n)).text}"

    tools = [*world.tools(), tool(ask_and_drop, effect=READ, secrets=())]
    outcome, _ = await answered_later([[("ask_and_drop", 1)]], lambda question: "yes", tools=tools)
    assert (outcome.messages[-2].results[0].text, asked) == ("found it: drop 1: ['drop 1']", 1)


# -- what else a turn may hold


class Closing(Tool[dict[str, int], str], name="closing", effect=DESTRUCTIVE, secrets=()):
    """Made for each call, and closed after it."""

    open = 0

    def __init__(self) -> None:
        Closing.open += 1

    async def execute(self, params: dict[str, int], ctx: Context) -> str:
        return "closing"

    async def aclose(self) -> None:
        Closing.open -= 1


DROP = {"name": "drop", "arguments": {"n": 1}, "id": "a"}
ODD_TURNS: dict[str, dict[str, Any]] = {
    "the same call twice, with its id": {"calls": [DROP, DROP]},
    "a call that was cut off": {"calls": [DROP, {**DROP, "id": "b"}], "stop_reason": "length"},
    "a completion": {"calls": [DROP, {"name": "attempt_completion", "arguments": {"result": "all"}}]},
    "a tool made for each call": {"calls": [{"name": "closing", "arguments": {"n": 1}}, DROP]},
    "repaired arguments": {"calls": [{"name": "put", "arguments": "{'n': '1'}"}]},
    "calls that are refused": {"calls": [{"name": "nope"}, DROP, {"name": "drop", "arguments": {"m": 1}}]},
    "arguments that are no JSON": {"calls": [{"name": "at", "arguments": {"n": 1}}]},
}


@pytest.mark.parametrize("turn", ODD_TURNS)
async def test_a_turn_with(turn: str) -> None:
    def model() -> Scripted:
        return Scripted(lambda request: "End." if request.messages[-1].role == "tool" else ODD_TURNS[turn])

    async def on_day(day: date) -> str:
        "Do it on a day."
        return f"on {day}"

    async def at(n: int, ctx: Context) -> str:
        "Do it on the first day."
        return (await ctx.call("on_day", day=date(2030, 1, n))).text

    def tools(world: World) -> list[Any]:
        made = [tool(on_day, effect=WRITE, secrets=()), tool(at, effect=READ, secrets=())]
        return [*world.tools(), *made, Closing]

    there, here = World(), World()
    live = await Agent(model(), tools(there), approver=lambda question: "yes").run("go")
    outcome = await Agent(model(), tools(here), on_question="suspend").run("go")
    assert outcome.reason is Reason.WAITING
    while outcome.reason is Reason.WAITING:
        saved = json.loads(json.dumps(outcome.to_json()))
        answers = {question.id: True for question in outcome.questions}
        outcome = await Agent(model(), tools(here), on_question="suspend").resume(saved, answers)
    assert shown(outcome) == shown(live)
    assert (outcome.reason, here.done, Closing.open) == (live.reason, there.done, 0)


@pytest.mark.parametrize(("answer", "times"), [("yes", 2), ("no", 1)])
async def test_a_yes_to_a_preview_that_has_changed_is_asked_for_again(answer: str, times: int) -> None:
    state = "one"

    async def save(n: int) -> str:
        "Save."
        return f"saved over {state}"

    def preview(params: Any) -> Preview:
        return Preview(f"it is {state}", state)

    tools = [tool(save, effect=WRITE, secrets=(), preview=preview)]
    outcome = await agent_of([[("save", 1)]], World(), tools=tools).run("go")
    previews = []
    while outcome.reason is Reason.WAITING:
        [question] = outcome.questions
        previews.append(question.preview)
        state = "two"
        outcome = await agent_of([[("save", 1)]], World(), tools=tools).resume(outcome, {question.id: answer})
    assert previews == ["it is one", "it is two"][:times]
    assert outcome.messages[2].results[0].is_error == (answer == "no")


async def test_a_run_that_is_cancelled_while_a_waiting_call_is_closed_is_cancelled() -> None:
    """The call waits for an answer to a question inside of it; the cancellation still belongs to whoever asked."""
    closing = asyncio.Event()

    @tool(effect=WRITE, secrets=())
    def save() -> str:
        "Save."
        return "saved"

    class Outer(Tool[dict[str, int], str], name="outer", effect=READ, secrets=()):
        "Save inside."

        async def execute(self, params: dict[str, int], ctx: Context[Any]) -> str:
            return (await ctx.call("save")).text

        async def aclose(self) -> None:
            closing.set()
            await asyncio.sleep(0.01)

    model = Scripted([{"calls": [{"name": "outer", "arguments": {}}]}, {"text": "done"}])
    run = Agent(model, [save, Outer], on_question="suspend").start("go")
    await closing.wait()
    run.cancel()
    outcome = await run
    assert outcome.reason is Reason.CANCELLED, outcome
