"""Tasks that a model hands to other agents: the agents of the moment, their rights, time and place, also in the background."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from toolcrib import Agent, Answer, Effect, Question, Toolbox, Verdict, tool
from toolcrib.agent import Budget, Outcome, Reason
from toolcrib.agent.delegation import Delegate, delegation_tools
from toolcrib.events import CallFinished, Event, QuestionAsked, RunFinished, RunStarted
from toolcrib.messages import Request
from toolcrib.models import Scripted
from toolcrib.rules import Rule, RulePolicy, read_rules
from toolcrib.toolbox import PolicyRequest, Verb

USED = {"input_tokens": 10, "output_tokens": 5}


@tool(effect=Effect.READ, secrets=(), open_world=False, resources=lambda params: [])
async def look(path: str) -> str:
    """Look."""
    await asyncio.sleep(0)
    return f"saw {path}"


@tool(effect=Effect.WRITE, secrets=(), open_world=False)
async def save(path: str) -> str:
    """Save."""
    return f"saved {path}"


@tool(effect=Effect.DESTRUCTIVE, secrets=(), open_world=False)
async def wipe(path: str) -> str:
    """Wipe."""
    return f"wiped {path}"


@tool(effect=Effect.READ, secrets=(), open_world=False)
async def hang(path: str) -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return path


TOOLS = (look, save, wipe, hang)


def calling(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": args} for name, args in calls], "usage": USED}


def task(agent: str = "helper", **more: Any) -> tuple[str, dict[str, Any]]:
    return "new_task", {"agent": agent, "task": "do it", **more}


def saying(text: str) -> dict[str, Any]:
    return {"text": text, "usage": USED}


def helper(*turns: Any, tools: Any = TOOLS, **options: Any) -> Delegate:
    options.setdefault("autonomy", "full")
    return Delegate(Agent(Scripted(turns or [saying("found it")]), list(tools), **options), "It helps.")


def manager(delegates: Any, *turns: Any, given: Any = None, **options: Any) -> Agent:
    options.setdefault("autonomy", "full")
    if not isinstance(delegates, dict):
        delegates = {"helper": delegates}
    script = [*turns, saying("all done")] if turns else [calling(task()), saying("all done")]
    return Agent(Scripted(script), [*delegation_tools(delegates, **(given or {})), look, save], **options)


def results(outcome: Outcome) -> list[str]:
    return [result.text for message in outcome.messages for result in message.results]


class Asked:
    """An approver that gives one answer after some time, and remembers what it was asked."""

    def __init__(self, verdict: Verdict = Verdict.YES, seconds: float = 0.0) -> None:
        self.questions: list[Question] = []
        self.verdict = verdict
        self.seconds = seconds

    async def __call__(self, question: Question) -> Answer:
        self.questions.append(question)
        await asyncio.sleep(self.seconds)
        return Answer(self.verdict)


# -- which agents there are


async def spec_of(agent: Agent, name: str = "new_task") -> Any:
    specs = (await agent.toolbox.tool_list()).specs
    return next((spec for spec in specs if spec.name == name), None)


async def test_the_model_is_told_of_the_agents_of_the_moment() -> None:
    agents = {"coder": helper(), "researcher": helper()}
    agent = manager(agents)
    for names in (["coder", "researcher"], ["coder", "extra", "researcher"], []):
        if "extra" in names:
            agents["extra"] = Delegate(helper().agent, "Does the rest.")
        elif not names:
            agents.clear()
        spec = await spec_of(agent)
        if not names:
            assert spec is None
            break
        schema = spec.input_schema["properties"]["agent"]
        assert schema["enum"] == names
        assert schema["description"] == f"Which agent to delegate to. Available: {', '.join(names)}"
        assert all(f"- {name}: " in spec.description for name in names)


async def test_an_agent_that_is_gone_or_unknown_is_named_with_those_there_are() -> None:
    box = Toolbox(delegation_tools({"coder": helper(), "other": helper()}), autonomy="full")
    result = await box.call("new_task", {"agent": "nobody", "task": "x"})
    assert result.text == "There is no agent 'nobody'. Available: coder, other."


@pytest.mark.parametrize("wrong", ["agent", "description", "delegate", "depth"])
def test_what_cannot_be_delegated_to_is_a_type_error(wrong: str) -> None:
    with pytest.raises(TypeError):
        match wrong:
            case "agent":
                Delegate("openai:gpt-5", "It helps.")  # type: ignore[arg-type]
            case "description":
                Delegate(helper().agent, " ")
            case "delegate":
                delegation_tools({"coder": helper().agent})  # type: ignore[dict-item]
            case _:
                delegation_tools({"coder": helper()}, max_depth=0)


@pytest.mark.parametrize(
    ("given", "names", "has_background"),
    [
        ({}, ["new_task", "task_cancel", "task_check", "task_message"], True),
        ({"background": False}, ["new_task"], False),
        ({"rows": True, "background": False}, ["new_task", "task_rows"], False),
    ],
)
async def test_what_is_not_wanted_is_not_shown(given: Any, names: list[str], has_background: bool) -> None:
    agent = manager(helper(), given=given)
    shown = [spec.name for spec in (await agent.toolbox.tool_list()).specs]
    assert [name for name in shown if "task" in name] == names
    assert ("background" in (await spec_of(agent)).input_schema["properties"]) is has_background


async def test_under_read_only_an_agent_that_only_reads_can_have_a_task() -> None:
    reader = helper(calling(("look", {"path": "a"})), saying("seen"), tools=[look])
    assert results(await manager(reader, autonomy="read_only").run("go")) == ["seen"]


async def test_under_read_only_an_agent_that_could_change_something_has_the_task_and_changes_nothing() -> (
    None
):
    """Its rights are at most those of the run, whatever its own toolbox allows."""
    helped = helper(
        calling(("save", {"path": "a"}), ("wipe", {"path": "b"})), saying("tried"), autonomy="full"
    )
    agent = manager(helped, autonomy="read_only")
    assert await spec_of(agent) is not None
    run = agent.start("go")
    ended = {event.tool: event async for event in run if isinstance(event, CallFinished)}
    await run
    assert {ended[name].code for name in ("save", "wipe")} <= {"denied", "unknown_tool"}


# -- its place


async def test_the_result_is_the_text_and_cost_and_events_are_the_outer_runs() -> None:
    agent = manager(helper(calling(("look", {"path": "a"})), saying("found it")))
    run = agent.start("go")
    events: list[Event] = [event async for event in run]
    outcome = await run
    assert (results(outcome), outcome.text) == (["found it"], "all done")
    assert outcome.usage.total_tokens == 60
    inner = {event.run for event in events if isinstance(event, RunStarted)} - {outcome.run}
    assert len(inner) == 1
    assert {event.parent for event in events if event.run in inner} == {f"{outcome.run}/1/0"}


async def test_the_outer_budget_ends_it() -> None:
    script = [calling(("look", {"path": "a"}))] * 40
    outcome = await manager(helper(*script), budget=Budget(tokens=100)).run("go")
    assert (outcome.reason, outcome.nested[0].reason) == (Reason.BUDGET, Reason.BUDGET)


async def test_its_failure_is_a_result() -> None:
    def broken() -> str:
        raise RuntimeError("no instructions in /home/me")

    for options, words in (
        ({"instructions": broken}, "failed"),
        ({"budget": Budget(tokens=1)}, "The task was not finished: 15 of 1 tokens are used."),
    ):
        script = [calling(("look", {"path": "a"})), saying("b")]
        outcome = await manager(helper(*script, **options)).run("go")  # type: ignore[arg-type]
        assert outcome.text == "all done"
        assert words in results(outcome)[0]
        assert "/home/me" not in results(outcome)[0]


def nested_managers(count: int, **given: Any) -> Agent:
    """An agent that hands its task to another, and so on: `count` agents, each but the last with new_task."""
    agent = Agent(Scripted([saying("at the bottom")]), [look], autonomy="full")
    for _ in range(count - 1):
        tools = delegation_tools({"helper": Delegate(agent, "It helps.")}, **given)
        agent = Agent(Scripted(lambda request: next_turn(request)), tools, autonomy="full")
    return agent


def next_turn(request: Request) -> dict[str, Any]:
    """Hand the task on, then say what came back."""
    last = request.messages[-1]
    return saying(last.results[0].text) if last.results else calling(task())


@pytest.mark.parametrize(
    ("agents", "given", "words"),
    [
        (4, {}, "at the bottom"),
        (5, {}, "Max delegation depth reached (3). Do this part of the task yourself."),
        (2, {"max_depth": 1}, "at the bottom"),
        (3, {"max_depth": 1}, "Max delegation depth reached (1). Do this part of the task yourself."),
    ],
)
async def test_tasks_are_handed_on_only_so_deep(agents: int, given: Any, words: str) -> None:
    agent = nested_managers(agents, **given)
    assert (await agent.run("go")).text == words
    assert agent.toolbox.sink.parents == {}


@pytest.mark.parametrize("background", [False, True])
async def test_no_agent_is_handed_a_task_that_it_waits_for(background: bool) -> None:
    """A hands a task to B, and B to A; or to itself."""
    agents: dict[str, Delegate] = {}
    tools = delegation_tools(agents)
    for name in ("a", "b"):
        other = "b" if name == "a" else "a"
        script = [calling(task(other, background=background)), lambda_free(other)]
        agents[name] = Delegate(Agent(Scripted(script), tools, autonomy="full"), "It helps.")
    outcome = await agents["a"].agent.run("go")
    (inner,) = outcome.nested
    assert "waits for the result of this task already" in results(inner)[0]


def lambda_free(text: str) -> dict[str, Any]:
    return saying(f"told {text}")


async def test_tasks_for_agents_that_only_read_are_worked_on_at_the_same_time() -> None:
    at_work, most = 0, 0

    async def says(request: Request) -> Any:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0.001)
        at_work -= 1
        return saying("ok")

    for tools, together in (([look], 2), ([save], 1)):
        most = 0
        given = Delegate(Agent(Scripted(says), tools, autonomy="full"), "It helps.")
        await manager({"helper": given, "other": helper()}, calling(task(), task())).run("go")
        assert most == together


# -- its time


async def test_its_time_is_limited_and_its_last_words_are_told() -> None:
    script = [{**calling(("hang", {"path": "a"})), "text": "I am at it."}]
    outcome = await manager(helper(*script), calling(task(timeout=1))).run("go")
    assert results(outcome) == [
        "The task was not finished: its time of 1 second is over. Its last words: I am at it."
    ]
    assert outcome.nested[0].reason is Reason.CANCELLED


async def test_the_time_that_a_person_takes_does_not_count() -> None:
    asked = Asked(seconds=1.3)
    script = [calling(("save", {"path": "a"})), saying("saved")]
    agent = manager(helper(*script), calling(task(timeout=1)), autonomy="supervised", approver=asked)
    assert results(await agent.run("go")) == ["saved"]
    assert [question.tool for question in asked.questions] == ["save"]


@pytest.mark.parametrize("seconds", [0.0, 0.6])
@pytest.mark.parametrize("how", ["a task", "a tool"])
async def test_the_time_before_a_run_waited_counts_when_it_goes_on(seconds: float, how: str) -> None:
    @tool(effect=Effect.READ, secrets=(), open_world=False)
    async def nap() -> str:
        """Take a nap."""
        await asyncio.sleep(seconds)
        return "rested"

    script = [calling(("nap", {})), calling(("save", {"path": "a"})), calling(("nap", {})), saying("saved")]
    given = helper(*script, tools=[nap, save])
    options: Any = {"autonomy": "supervised", "on_question": "suspend"}
    if how == "a task":
        agent = manager(given, calling(task(timeout=1)), **options)
    else:
        asked = calling(("helper", {"task": "do it"}))
        agent = Agent(
            Scripted([asked, saying("done")]),
            [given.agent.as_tool("helper", "It helps.", timeout=1)],
            **options,
        )
    waiting = await agent.run("go")
    outcome = await agent.resume(waiting.to_json(), {waiting.questions[0].id: "yes"})
    over = "The task was not finished: its time of 1 second is over."
    assert results(outcome) == [over if seconds else "saved"]


# -- its rights


@pytest.mark.parametrize(
    ("rule", "call", "runs"),
    [
        ('tool = "bash"\nargument.command = "git push*"', ("bash", {"command": "git push"}), False),
        ('tool = "bash"\nargument.command = "git push*"', ("bash", {"command": "git pull"}), True),
        ('tool = "bash"', ("bash", {"command": "git pull"}), False),
        ('tool = "new_task"\nargument.agent = "helper"', ("bash", {"command": "git pull"}), False),
        ('tool = "new_task"\nargument.agent = "other"', ("bash", {"command": "git pull"}), True),
    ],
)
async def test_what_a_rule_above_denies_stays_denied_where_the_agent_may_all(
    rule: str, call: Any, runs: bool
) -> None:
    ran: list[str] = []

    @tool(effect=Effect.DESTRUCTIVE, secrets=())
    async def bash(command: str) -> str:
        """Run."""
        ran.append(command)
        return "ran"

    policy = read_rules(f"[[rule]]\ndeny = true\n{rule}\n").policy("full")
    await manager(helper(calling(call), saying("b"), tools=[bash]), policy=policy).run("go")
    assert bool(ran) is runs


RULES = st.lists(
    st.builds(
        Rule,
        verb=st.sampled_from(list(Verb)),
        tools=st.sampled_from([("look",), ("save",), ("wipe",)]),
    ),
    max_size=2,
)
POLICIES = st.tuples(st.sampled_from(["read_only", "supervised", "full"]), RULES)


@examples(40)
@given(st.lists(POLICIES, min_size=2, max_size=4), st.sampled_from(["look", "save", "wipe"]))
def test_an_agent_may_do_what_all_agents_above_it_may_do_and_nothing_else(policies: Any, name: str) -> None:
    """The agent at the bottom tries a tool. It is asked about where one policy asks, refused where one refuses."""

    async def run() -> None:
        done: list[str] = []
        effect = {"look": Effect.READ, "save": Effect.WRITE, "wipe": Effect.DESTRUCTIVE}[name]

        @tool(effect=effect, secrets=(), name=name)
        async def act() -> str:
            """Act."""
            done.append(name)
            return "done"

        made = [RulePolicy(autonomy, rules) for autonomy, rules in policies]
        verbs = {policy.decide(PolicyRequest(act.facts, effect)).verb for policy in made}
        may = Verb.DENY not in verbs and all(policy.shows(act.facts) for policy in made)
        asked = Asked()
        agent = Agent(Scripted([calling((name, {})), saying("tried")]), [act], policy=made[0], approver=asked)
        for policy in made[1:]:
            tools = delegation_tools({"helper": Delegate(agent, "It helps.")})
            may = may and policy.shows(tools[0].facts)
            agent = Agent(Scripted([calling(task()), saying("tried")]), tools, policy=policy, approver=asked)
        await agent.run("go")
        assert done == ([name] if may else [])
        assert len(asked.questions) == (may and Verb.ASK in verbs)

    asyncio.run(run())


# -- questions, at any depth


def three_levels(turns: list[Any], **options: Any) -> Agent:
    """A manager, a lead and a helper that acts."""
    low = Agent(Scripted(turns), [look, save, wipe], autonomy="full")
    lead = Agent(
        Scripted([calling(task("low")), saying("lead: done")]),
        delegation_tools({"low": Delegate(low, "Acts.")}),
        autonomy="full",
    )
    script = [calling(task("lead")), saying("all done")]
    return Agent(Scripted(script), delegation_tools({"lead": Delegate(lead, "Leads.")}), **options)


@pytest.mark.parametrize("verdict", ["yes", "no"])
async def test_a_question_two_levels_down_suspends_and_resumes_the_whole_tree(verdict: str) -> None:
    acting = [calling(("save", {"path": "a"})), saying("low: done")]
    asking = await three_levels(list(acting), autonomy="supervised", approver=Asked(Verdict(verdict))).run(
        "go"
    )
    agent = three_levels(list(acting), autonomy="supervised", on_question="suspend")
    waiting = await agent.run("go")
    assert waiting.reason is Reason.WAITING
    (question,) = waiting.questions
    assert (question.tool, question.arguments) == ("save", {"path": "a"})
    saved = json.loads(json.dumps(waiting.to_json()))
    outcome = await agent.resume(saved, {question.id: verdict})
    assert (outcome.reason, outcome.text) == (asking.reason, asking.text)
    assert results(outcome) == results(asking) == ["lead: done"]
    assert outcome.usage.total_tokens == asking.usage.total_tokens
    assert tree_of(outcome) == tree_of(asking)


def tree_of(outcome: Outcome) -> Any:
    """How a run and the runs within it ended."""
    texts = [message.text for message in outcome.messages]
    return outcome.reason, outcome.text, texts, outcome.usage, [tree_of(nested) for nested in outcome.nested]


async def test_what_ended_before_a_run_waited_is_known_when_it_goes_on() -> None:
    """A task that was finished, with one inside of it, and one in the turn that waits: each is there once."""

    def team() -> dict[str, Delegate]:
        inner = {"low": helper(saying("low: done"))}
        tools = delegation_tools(inner)
        lead = Agent(Scripted([calling(task("low")), saying("lead: done")]), tools, autonomy="full")
        return {
            "lead": Delegate(lead, "Leads."),
            "helper": helper(calling(("save", {"path": "a"})), saying("saved")),
        }

    turns = [calling(task("lead")), calling(task("helper"))]
    asking = await manager(team(), *turns, autonomy="supervised", approver=Asked()).run("go")
    agent = manager(team(), *turns, autonomy="supervised", on_question="suspend")
    waiting = await agent.run("go")
    saved = json.loads(json.dumps(waiting.to_json()))
    outcome = await agent.resume(saved, {waiting.questions[0].id: "yes"})
    assert tree_of(outcome) == tree_of(asking)
    assert [nested.text for nested in outcome.nested] == ["lead: done", "saved"]


async def test_in_a_run_that_suspends_a_background_task_is_done_at_once() -> None:
    acting = [calling(("save", {"path": "a"})), saying("low: done")]
    agent = manager(
        helper(*acting), calling(task(background=True)), autonomy="supervised", on_question="suspend"
    )
    waiting = await agent.run("go")
    outcome = await agent.resume(waiting.to_json(), {waiting.questions[0].id: "yes"})
    (result,) = results(outcome)
    assert result.startswith("[Done at once: ")
    assert result.endswith("low: done")


# -- in the background


async def test_the_model_goes_on_and_is_told_when_a_task_has_ended() -> None:
    agent = manager(
        helper(calling(("look", {"path": "a"})), saying("found it")),
        calling(task(background=True)),
        saying("I wait."),
        calling(("task_check", {"task_id": "helper-1"})),
    )
    outcome = await agent.run("go")
    begun, found = results(outcome)
    assert "task_id helper-1" in begun
    assert found == "found it"
    told = [message.text for message in outcome.messages if message.role == "user"][1:]
    assert told == ["[Task helper-1 has ended: task_check(task_id='helper-1') gives its result.]"]
    assert (outcome.text, [nested.text for nested in outcome.nested]) == ("all done", ["found it"])
    assert outcome.usage.total_tokens == 15 * 6
    assert agent.toolbox.sink.parents == {}


async def test_its_questions_reach_the_approver_and_its_events_the_outer_stream() -> None:
    asked = Asked()
    agent = manager(
        helper(calling(("save", {"path": "a"})), saying("saved it")),
        calling(task(background=True)),
        saying("I wait."),
        calling(("task_check", {"task_id": "helper-1"})),
        autonomy="supervised",
        approver=asked,
    )
    events = [event async for event in agent.stream("go")]
    outer = events[0].run
    question = next(event for event in events if isinstance(event, QuestionAsked))
    finished = next(event for event in events if isinstance(event, RunFinished))
    assert [question.tool for question in asked.questions] == ["save"]
    assert question.parent == finished.parent == outer
    assert finished.text == "saved it"


async def test_a_task_ends_with_its_run_and_its_outcome_is_kept() -> None:
    agent = manager(
        helper(calling(("hang", {"path": "a"}))),
        calling(task(background=True)),
        calling(("attempt_completion", {"result": "enough"})),
    )
    outcome = await agent.run("go")
    assert (outcome.text, [nested.reason for nested in outcome.nested]) == ("enough", [Reason.CANCELLED])
    assert not [each for each in asyncio.all_tasks() if "toolcrib" in each.get_name()]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ([("task_check", {"task_id": "x"})], "This run has no task 'x' in the background. There are: helper-1."),
        ([("task_check", {"task_id": "helper-1", "timeout": 0})], "Task helper-1 is running: 0 s, "),
        ([("task_cancel", {"task_id": "helper-1"})], "Task helper-1 was stopped. The task was not finished: it was cancelled."),
        ([("task_cancel", {"task_id": "helper-1"}), ("task_cancel", {"task_id": "helper-1"})], "Task helper-1 had ended before."),
        ([("task_cancel", {"task_id": "helper-1"}), ("task_check", {"task_id": "helper-1"})], "The task was not finished: it was cancelled."),
        ([("task_cancel", {"task_id": "helper-1"}), ("task_message", {"task_id": "helper-1", "message": "x"})], "Task helper-1 has ended."),
    ],
)  # fmt: skip
async def test_what_can_be_done_with_a_task(script: Any, words: str) -> None:
    turns = [calling(task(background=True)), *(calling(call) for call in script)]
    end = calling(("attempt_completion", {"result": "enough"}))
    outcome = await manager(helper(calling(("hang", {"path": "a"}))), *turns, end).run("go")
    assert results(outcome)[len(script)].startswith(words)


async def test_a_message_reaches_a_running_agent_at_its_next_turn() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @tool(effect=Effect.READ, secrets=())
    async def wait() -> str:
        """Wait."""
        begun.set()
        await go_on.wait()
        return "waited"

    @tool(effect=Effect.READ, secrets=())
    async def let_go() -> str:
        """Let it go on."""
        go_on.set()
        return ""

    def says(request: Request) -> Any:
        texts = [message.text for message in request.messages if message.role == "user"]
        return calling(("wait", {})) if len(request.messages) == 1 else saying(texts[-1])

    given = Delegate(Agent(Scripted(says), [wait], autonomy="full"), "It helps.")
    script = [
        calling(task(background=True)),
        calling(("task_message", {"task_id": "helper-1", "message": "Also the cellar."})),
        calling(("let_go", {})),
        calling(("task_check", {"task_id": "helper-1"})),
        saying("all done"),
    ]
    agent = Agent(Scripted(script), [*delegation_tools({"helper": given}), let_go], autonomy="full")
    assert (
        results(await agent.run("go"))[-1] == "[A message from whoever gave you the task:]\nAlso the cellar."
    )


def test_tasks_are_reached_from_other_event_loops_and_end_with_their_toolbox() -> None:
    begun = threading.Event()

    @tool(effect=Effect.READ, secrets=())
    async def wait() -> str:
        """Wait for ever."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    given = Delegate(Agent(Scripted([calling(("wait", {}))]), [wait], autonomy="full"), "It helps.")
    box = Toolbox(delegation_tools({"helper": given}), autonomy="full")
    box.call_sync(*task(background=True))
    assert begun.wait(10)

    async def elsewhere() -> str:
        looked = await box.call("task_check", {"task_id": "helper-1", "timeout": 0})
        await box.aclose()
        return looked.text

    assert asyncio.run(elsewhere()).startswith("Task helper-1 is running")
    assert (box.sink.parents, len(box._runs.owned)) == ({}, 0)


async def test_only_so_many_tasks_run_at_one_time() -> None:
    calls = [task(background=True)] * 9
    script = [calling(("hang", {"path": "a"}))]
    given = Delegate(Agent(Scripted(lambda request: script[0]), [hang], autonomy="full"), "It helps.")
    outcome = await manager(
        given, calling(*calls), calling(("attempt_completion", {"result": "enough"}))
    ).run("go")
    assert results(outcome)[8].startswith(
        "8 tasks run in the background, and no more are allowed at one time"
    )
    assert [nested.reason for nested in outcome.nested] == [Reason.CANCELLED] * 8


@examples(20)
@given(st.integers(0, 60), st.lists(st.booleans(), min_size=1, max_size=4))
def test_a_run_that_is_cancelled_at_any_moment_leaves_nothing_behind(
    steps: int, background: list[bool]
) -> None:
    async def run() -> None:
        low = Agent(Scripted(lambda request: calling(("look", {"path": "a"}))), [look], autonomy="full")
        tools = delegation_tools({"low": Delegate(low, "Looks.")}, rows=True)

        def leads(request: Request) -> Any:
            rows = ("task_rows", {"agent": "low", "task": "Look.", "rows": ["a", "b", "c"], "at_once": 2})
            return calling(*[task("low", background=each) for each in background], rows)

        lead = Agent(Scripted(leads), tools, autonomy="full", max_turns=5)
        agent = manager(
            {"lead": Delegate(lead, "Leads.")}, calling(task("lead"), task("lead", background=True))
        )
        started = agent.start("go")
        for _ in range(steps):
            await asyncio.sleep(0)
        started.cancel()
        await started
        left = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
        assert left == []
        box = agent.toolbox
        assert (box.sink.parents, box.sink._seq, box._approving.clocks, len(box._runs.owned)) == (
            {},
            {},
            {},
            0,
        )

    asyncio.run(run())


# -- many rows


def rows_of(*rows: str, **more: Any) -> dict[str, Any]:
    return calling(("task_rows", {"agent": "helper", "task": "Weigh it.", "rows": list(rows), **more}))


def weighs(request: Request) -> Any:
    """An agent that fails on stones, and asks before it saves an egg."""
    row = request.messages[0].text.rpartition("\n")[2]
    if row == "stone":
        return {"error": "too heavy"}
    if row == "egg" and len(request.messages) == 1:
        return calling(("save", {"path": row}))
    return saying(f"{row}: light")


def weigher(**options: Any) -> Delegate:
    return Delegate(Agent(Scripted(weighs), [save], autonomy="full", **options), "It weighs.")


async def test_each_row_has_its_result_and_a_failure_stops_no_other() -> None:
    agent = manager(weigher(), rows_of("pen", "stone", "cup", at_once=2), given={"rows": True})
    (text,) = results(await agent.run("go"))
    assert text == (
        "2 of 3 rows are done.\n\n[1] pen\npen: light\n\n[2] (not done) stone\nThe task was not finished: its model could "
        "not be reached, or sent what cannot be read.\n\n[3] cup\ncup: light"
    )


async def test_rows_wait_for_a_person_together_and_go_on_where_they_were() -> None:
    rows = ("pen", "egg", "cup", "stone", "egg")
    agent = manager(
        weigher(),
        rows_of(*rows, at_once=2),
        given={"rows": True},
        autonomy="supervised",
        on_question="suspend",
    )
    waiting = await agent.run("go")
    assert [question.arguments for question in waiting.questions] == [{"path": "egg"}] * 2
    answers = {question.id: answer for question, answer in zip(waiting.questions, ("yes", "no"), strict=True)}
    outcome = await agent.resume(json.loads(json.dumps(waiting.to_json())), answers)
    (text,) = results(outcome)
    assert text.startswith("4 of 5 rows are done.")
    assert [part.splitlines()[0] for part in text.split("\n\n")[1:]] == [
        "[1] pen", "[2] egg", "[3] cup", "[4] (not done) stone", "[5] egg",
    ]  # fmt: skip
    assert outcome.usage.total_tokens == 15 * (2 + 2 + 4)


@pytest.mark.parametrize("at_once", [1, 3, 16])
async def test_no_more_rows_than_allowed_are_worked_on_at_the_same_time(at_once: int) -> None:
    at_work, most = 0, 0

    async def says(request: Request) -> Any:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0.001)
        at_work -= 1
        return saying("ok")

    given = Delegate(Agent(Scripted(says), [look], autonomy="full"), "It helps.")
    await manager(given, rows_of(*"abcdefgh", at_once=at_once), given={"rows": True}).run("go")
    assert most == min(at_once, 8)


async def test_an_agent_that_is_not_there_is_said_once_for_all_rows() -> None:
    box = Toolbox(delegation_tools({"helper": weigher()}, rows=True), autonomy="full")
    result = await box.call("task_rows", {"agent": "x", "task": "y", "rows": ["a", "b"]})
    assert result.text == "There is no agent 'x'. Available: helper."
