"""An agent as a tool: what it uses, asks, sees and leaves behind belongs to the run that called it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from toolcrib import (
    Agent,
    Answer,
    Context,
    Effect,
    Question,
    Tool,
    Toolbox,
    ToolCall,
    ToolFactory,
    ToolResult,
    Verdict,
    tool,
)
from toolcrib.access import Access, Reach
from toolcrib.agent import Budget, Outcome, Reason
from toolcrib.audit import AuditLog
from toolcrib.events import CallFinished, Event, RunFinished, RunStarted
from toolcrib.models import Scripted
from toolcrib.prepared import Prepared, Ready
from toolcrib.question import Lasting, Scope
from toolcrib.rules import ApprovalStore, Limit, RateLimits, Rule, RulePolicy, read_rules
from toolcrib.sink import EventLog
from toolcrib.toolbox import NextExecute, NextPrepare
from toolcrib.toolbox.nested import BothPolicies
from toolcrib.toolbox.policy import Autonomy, PolicyRequest, Verb
from toolcrib.tools import Batch, Workspace, workspace_tools
from toolcrib.tools.backends import Backend, CompositeBackend, MemoryBackend
from toolcrib.toolset import StaticToolset

USED = {"input_tokens": 10, "output_tokens": 5}


@tool(effect=Effect.READ, secrets=(), open_world=False)
def look(path: str) -> str:
    """Look."""
    return f"saw {path}"


@tool(effect=Effect.READ, secrets=(), open_world=True)
def browse(url: str) -> str:
    """Browse."""
    return f"read {url}"


@tool(effect=Effect.WRITE, secrets=(), open_world=False)
def save(path: str) -> str:
    """Save."""
    return f"saved {path}"


@tool(effect=Effect.DESTRUCTIVE, secrets=(), open_world=False)
def wipe(path: str) -> str:
    """Wipe."""
    return f"wiped {path}"


def calling(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}], "usage": USED}


def saying(text: str) -> dict[str, Any]:
    return {"text": text, "usage": USED}


def helper_of(*turns: Any, tools: Any = (look, browse, save), **options: Any) -> Agent:
    options.setdefault("autonomy", "full")
    return Agent(Scripted(turns or [saying("found it")]), list(tools), **options)


def outer_of(helper: Agent, *more: Any, calls: int = 1, **options: Any) -> Agent:
    options.setdefault("autonomy", "full")
    turns = [calling("helper", task="find it")] * calls
    return Agent(
        Scripted([*turns, saying("all done")]), [helper.as_tool("helper", "It helps."), *more], **options
    )


def told(outcome: Outcome, turn: int = 0) -> str:
    """What the outer model was told by its helper."""
    return [result.text for message in outcome.messages for result in message.results][turn]


class Asked:
    """An approver that says yes, and remembers what it was asked."""

    def __init__(self, verdict: Verdict = Verdict.YES) -> None:
        self.questions: list[Question] = []
        self.verdict = verdict

    async def __call__(self, question: Question) -> Answer:
        self.questions.append(question)
        return Answer(self.verdict)


# -- what the tool is


def test_it_takes_a_task_and_says_what_it_is_for() -> None:
    spec = helper_of().as_tool("helper", "It helps.", title="Helper").spec
    assert (spec.name, spec.description, spec.title) == ("helper", "It helps.", "Helper")
    assert spec.input_schema["required"] == ["task"]
    with pytest.raises(TypeError, match="say in description"):
        helper_of().as_tool("helper", "")


@pytest.mark.parametrize(
    ("tools", "options", "effect", "open_world"),
    [
        ([look], {}, Effect.READ, False),
        ([look, browse], {}, Effect.READ, True),
        ([look, save], {}, Effect.WRITE, False),
        ([look, save, wipe], {}, Effect.DESTRUCTIVE, False),
        ([look, save, wipe], {"autonomy": "read_only"}, Effect.READ, False),
        ([look, StaticToolset([look])], {}, Effect.DESTRUCTIVE, True),  # a toolset may supply anything later
        ([StaticToolset([save])], {"autonomy": "read_only"}, Effect.READ, True),
        ([ToolFactory("made", lambda ctx: look)], {}, Effect.DESTRUCTIVE, True),
    ],
)
def test_its_effect_is_the_worst_that_its_agent_may_do(
    tools: Any, options: Any, effect: Effect, open_world: bool
) -> None:
    facts = helper_of(tools=tools, **options).as_tool("helper", "It helps.").facts
    assert (facts.effect, facts.open_world) == (effect, open_world)


async def test_a_tool_that_came_later_and_does_worse_is_not_run() -> None:
    helper = helper_of(calling("wipe", path="a"), saying("tried"), tools=[look])
    outer = outer_of(helper)
    helper.toolbox.add(wipe)
    outcome = await outer.run("go")
    (nested,) = outcome.nested
    assert "wiped" not in told(nested)


# -- its result


async def test_its_result_is_the_text_of_its_run() -> None:
    outcome = await outer_of(helper_of(saying("found it"))).run("go")
    assert (outcome.reason, outcome.text, told(outcome)) == (Reason.ANSWERED, "all done", "found it")
    assert outcome.nested[0].messages[0].text == "find it"


FAILING = [calling("look", way="x")] * 3


@pytest.mark.parametrize(
    ("turns", "options", "words"),
    [
        (FAILING, {}, "The task was not finished: tool look failed 3 times in a row"),
        ([calling("look", path="a"), saying("half")], {"max_turns": 1}, "The task was not finished: the limit of 1 turn is reached. Its last words: half"),
        ([calling("look", path="a")], {"budget": Budget(tokens=10)}, "The task was not finished: 15 of 10 tokens are used."),
        ([{"error": "http://10.0.0.1/ refused"}], {}, "The task was not finished: its model could not be reached, or sent what cannot be read."),
        ([saying("")], {}, "It finished without a word."),
    ],
)  # fmt: skip
async def test_a_run_that_did_not_finish_gives_words_to_act_on(turns: Any, options: Any, words: str) -> None:
    outcome = await outer_of(helper_of(*turns, **options)).run("go")
    assert outcome.text == "all done"
    assert told(outcome).startswith(words)


async def test_an_agent_with_code_that_raises_is_a_failed_tool() -> None:
    def broken() -> str:
        raise RuntimeError("no instructions in /home/me")

    outcome = await outer_of(helper_of(saying("x"), instructions=broken)).run("go")
    assert outcome.text == "all done"
    assert "/home/me" not in told(outcome)
    assert outcome.nested[0].reason is Reason.FAILED


# -- what it uses


async def test_what_it_uses_counts_in_the_outer_run() -> None:
    outcome = await outer_of(helper_of(calling("look", path="a"), saying("found it"))).run("go")
    assert outcome.nested[0].usage.total_tokens == 30
    assert outcome.usage.total_tokens == 60


async def test_the_outer_budget_ends_the_inner_run() -> None:
    helper = helper_of(*[calling("look", path="a")] * 40)
    outcome = await outer_of(helper, budget=Budget(tokens=100)).run("go")
    assert outcome.reason is Reason.BUDGET
    assert outcome.usage.total_tokens == 105
    (nested,) = outcome.nested
    assert nested.reason is Reason.BUDGET
    assert nested.detail == "the budget of the whole run is used up: 105 of 100 tokens are used"


async def test_the_inner_budget_ends_the_inner_run_alone() -> None:
    helper = helper_of(*[calling("look", path="a")] * 40, budget=Budget(tokens=50))
    outcome = await outer_of(helper, budget=Budget(tokens=500)).run("go")
    assert outcome.reason is Reason.ANSWERED
    assert outcome.nested[0].reason is Reason.BUDGET


async def test_the_time_of_the_outer_budget_ends_both() -> None:
    waiting = asyncio.Event()

    @tool(effect=Effect.READ, secrets=())
    async def wait() -> str:
        """Wait."""
        await waiting.wait()
        return ""

    helper = helper_of(calling("wait"), tools=[wait])
    outcome = await outer_of(helper, budget=Budget(seconds=0.05)).run("go")
    assert (outcome.reason, outcome.nested[0].reason) == (Reason.BUDGET, Reason.CANCELLED)


async def test_a_limit_of_the_outer_box_counts_the_calls_of_the_inner_run() -> None:
    helper = helper_of(*[calling("look", path="a")] * 3, saying("found it"))
    outcome = await outer_of(helper, limits=[Limit(2, ("look",))]).run("go")
    assert [told(outcome.nested[0], n)[:3] for n in range(3)] == ["saw", "saw", "Too"]


async def test_a_limit_of_the_inner_box_holds_for_each_of_its_runs() -> None:
    script = [calling("look", path="a"), calling("look", path="a"), saying("found it")]
    outcome = await outer_of(helper_of(*script, *script, limits=[Limit(1)]), calls=2).run("go")
    assert [told(nested, n)[:3] for nested in outcome.nested for n in range(2)] == ["saw", "Too"] * 2


CHANGES = 'effect = ["write", "destructive"]'
RULES_ABOUT_WHAT_IS_DONE = [
    # a rule, whether the call that hands something on asks, and what the call within it comes to; None: it is not made
    ('deny = true\npath = "a"', False, "denied"),
    ('deny = true\npath = "b"', False, ""),
    ('ask = true\npath = "a"', False, "nobody_to_ask"),
    ('deny = true\nhost = "a"', False, ""),
    ('deny = true\nreach = "write"', False, "denied"),
    ('deny = true\ntool = ["helper", "batch"]\npath = "a"', True, None),
    (f"ask = true\n{CHANGES}", False, "nobody_to_ask"),
    (f"deny = true\n{CHANGES}", False, "denied"),
    (f'ask = true\n{CHANGES}\nexcept = {{ tool = "put" }}', False, ""),
    ('ask = true\nexcept = { effect = "read" }', True, None),
    (f'ask = true\ntool = ["helper", "batch"]\n{CHANGES}', True, None),
    (
        f'ask = true\n{CHANGES}\nargument.task = "do it"\n[[rule]]\nask = true\n{CHANGES}\nargument.calls.tool = "p*"',
        True,
        None,
    ),
]


@pytest.mark.parametrize(("rule", "asks", "within"), RULES_ABOUT_WHAT_IS_DONE)
@pytest.mark.parametrize("how", ["helper", "batch"])
async def test_a_rule_about_what_is_done_asks_about_the_calls_within_and_not_about_their_call(
    how: str, rule: str, asks: bool, within: str | None
) -> None:
    write = Access(Reach.WRITE, "a")

    @tool(effect=Effect.WRITE, secrets=(), open_world=False, accesses=lambda given: [write])
    def put() -> str:
        """Write the file a."""
        return "put"

    helper = helper_of(calling("put"), saying("done"), tools=[put])
    log = EventLog()
    box = Toolbox(
        [helper.as_tool("helper", "It helps."), Batch(), put],
        policy=read_rules(f"[[rule]]\n{rule}").policy("full"),
    )
    box.subscribe(log)
    given = {"task": "do it"} if how == "helper" else {"calls": [{"tool": "put"}]}
    await box.call(how, given)
    codes = {event.tool: event.code for event in log.events if isinstance(event, CallFinished)}
    assert (codes[how] == "nobody_to_ask", codes.get("put")) == (asks, within)


FOLDERS = [
    # the folder of the helper's tools, a call, what it shows, and a deny rule of the outer policy about that
    ("secret", calling("read_file", path="a.txt"), "CANARY", "secret/**"),
    ("secret", calling("grep", pattern="CAN"), "CANARY", "secret/*.txt"),
    ("secret", calling("list_dir"), "a.txt", "secret/**"),
    ("shop/inner", calling("read_file", path="a.txt"), "CANARY", "shop/inner/a.txt"),
]


@pytest.mark.parametrize(("folder", "call", "shows", "path"), FOLDERS)
@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("composite", [False, True])
async def test_a_rule_about_an_absolute_path_holds_for_a_helper_in_another_folder(
    folder: str, call: Any, shows: str, path: str, between: bool, composite: bool, tmp_path: Path
) -> None:
    """Also where it is a rule of an agent that stands between the two."""
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "a.txt").write_text("CANARY")
    files: Backend = Workspace(tmp_path / folder)
    if composite:
        files = CompositeBackend({"/memories/": MemoryBackend()}, default=files)
    shown = []
    for rule in ("", f'[[rule]]\ndeny = true\npath = "{tmp_path}/{path}"'):
        policy = read_rules(rule).policy("full").within(str(tmp_path / "shop"))
        tools = workspace_tools(files)
        helper = helper_of(call, saying("done"), tools=tools)
        if between:
            middle = Agent(
                Scripted([calling("helper", task="find it"), saying("half")]),
                [helper.as_tool("helper", "It helps.")],
                policy=policy,
            )
            outcome = await outer_of(middle).run("go")
            outcome = outcome.nested[0]
        else:
            outcome = await outer_of(helper, autonomy=None, policy=policy).run("go")
        shown.append(told(outcome.nested[0]))
    assert [shows in text for text in shown] == [True, False]


async def test_an_approval_of_a_project_is_not_for_a_helper_in_another_folder(tmp_path: Path) -> None:
    for name in ("shop", "other"):
        (tmp_path / name / "src").mkdir(parents=True)
    asked = list[str]()

    async def always(question: Question) -> Answer:
        asked.append(question.arguments["path"])
        return Answer(Verdict.ALWAYS, scope=Scope.FOLDER, lasting=Lasting.PROJECT)

    def writing(path: str) -> Any:
        return calling("write_file", path=path, content="x")

    kept: Any = {
        "approver": always,
        "approvals": ApprovalStore(tmp_path / "approvals.json"),
        "project": tmp_path / "shop",
    }
    for folder, again in (("shop", []), ("other", ["src/b"]), ("other", [])):
        helper = helper_of(
            writing("src/b"),
            saying("done"),
            tools=workspace_tools(Workspace(tmp_path / folder)),
            autonomy="supervised",
        )
        own = workspace_tools(Workspace(tmp_path / "shop"))
        script = [writing("src/a"), calling("helper", task="find it"), saying("all done")]
        outer = Agent(Scripted(script), [*own, helper.as_tool("helper", "It helps.")], **kept)
        asked.clear()
        await outer.run("go")
        assert [path for path in asked if path != "src/a"] == again, folder


@pytest.mark.parametrize(("path", "runs"), [("shop/b", True), ("other/b", True), ("other/a", False)])
async def test_a_rule_about_an_absolute_path_holds_for_a_step_of_a_helper_in_another_folder(
    path: str, runs: bool, tmp_path: Path
) -> None:
    @tool(effect=Effect.WRITE, secrets=(), base_folder=lambda: str(tmp_path / "other"))
    async def step(ctx: Context[Any]) -> str:
        """Ask about a file."""
        await ctx.ask("write a", accesses=[Access(Reach.WRITE, "a")])
        return "written"

    rule = f'[[rule]]\ndeny = true\ntool = "step"\npath = "{tmp_path / path}"'
    policy = read_rules(rule).policy("full").within(str(tmp_path / "shop"))
    helper = helper_of(calling("step"), saying("done"), tools=[step])
    outcome = await outer_of(helper, autonomy=None, policy=policy, approver=Asked()).run("go")
    assert (told(outcome.nested[0]) == "written") is runs


class Nothing(BaseModel):
    """No parameters."""


class Step(Tool[Nothing, str], name="step", effect=Effect.WRITE, secrets=(), idempotent=True):
    """A tool that asks about a step of its work, in a folder."""

    def __init__(self, folder: Path, person_only: bool) -> None:
        self.folder, self.person_only = str(folder), person_only

    def base_folder(self) -> str:
        return self.folder

    async def execute(self, params: Nothing, ctx: Context[Any]) -> str:
        remembered = len(ctx.remembered_approvals())
        await ctx.ask("remove build", ["rm -r build"], person_only=self.person_only)
        return f"remembered {remembered}"


@pytest.mark.parametrize("person_only", [False, True])
@pytest.mark.parametrize(
    ("lasting", "folder", "asked"),
    [
        (Lasting.RUN, "shop", 1),
        (Lasting.RUN, "other", 2),
        (Lasting.PROJECT, "shop", 1),
        (Lasting.PROJECT, "other", 2),
        (Lasting.USER, "other", 1),
    ],
)
async def test_a_yes_to_a_step_of_a_tool_is_not_for_one_of_a_helper_in_another_folder(
    lasting: Lasting, folder: str, asked: int, person_only: bool, tmp_path: Path
) -> None:
    steps = list[str]()

    async def approver(question: Question) -> Answer:
        if question.action == "run step":
            return Answer(Verdict.YES)
        steps.append(question.action)
        return Answer(Verdict.ALWAYS, lasting=lasting)

    helper = helper_of(
        *[calling("step")] * 2,
        saying("done"),
        tools=[Step(tmp_path / folder, person_only)],
        autonomy="supervised",
    )
    outer = Agent(
        Scripted([*[calling("step")] * 2, calling("helper", task="do it"), saying("all done")]),
        [Step(tmp_path / "shop", person_only), helper.as_tool("helper", "It helps.")],
        approver=approver,
        approvals=ApprovalStore(tmp_path / "approvals.json"),
        project=tmp_path / "shop",
    )
    outcome = await outer.run("go")
    assert len(steps) == asked
    expected = [f"remembered {int(person_only and known)}" for known in (asked == 1, True)]
    assert [told(outcome.nested[0], turn) for turn in range(2)] == expected


@pytest.mark.parametrize("kind", ["a call", "a step", "a permission"])
async def test_what_was_allowed_a_helper_is_not_allowed_its_outer_run_once_that_has_waited(
    kind: str, tmp_path: Path
) -> None:
    """The tool of the helper has the same name and is the same but for what it works on."""

    def tools(folder: str) -> list[Any]:
        @tool(effect=Effect.WRITE, secrets=(), open_world=False)
        def put() -> str:
            """Put."""
            return "put"

        return [put] if kind == "a call" else [Step(tmp_path / folder, kind == "a permission")]

    name = "put" if kind == "a call" else "step"
    helper = helper_of(calling(name), saying("done"), tools=tools("other"), autonomy="supervised")
    outer = Agent(
        Scripted(
            [
                calling("helper", task="do it"),
                *[calling("save", path="a"), calling(name)] * 2,
                saying("all done"),
            ]
        ),
        [*tools("shop"), save, helper.as_tool("helper", "It helps.")],
        on_question="suspend",
    )
    outcome, asked = await outer.run("go"), list[str]()
    while outcome.reason is Reason.WAITING:
        question = outcome.questions[0]
        asked.append(question.action)
        about_it = question.action == ("remove build" if name == "step" else "run put")
        answer = Answer(Verdict.ALWAYS if about_it else Verdict.YES)
        outcome = await outer.resume(outcome.saved, {question.id: answer})
    assert outcome.reason is Reason.ANSWERED
    if kind == "a call":  # what was allowed the outer run still holds after it has waited again
        assert asked == ["run put", "run save", "run put", "run save"]
    else:
        again = ["run step", "remove build"]
        assert asked == [*again, "run save", *again, "run save", "run step"]


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("how", ["restricted", "the same limits and steps"])
async def test_limits_and_middleware_that_both_boxes_share_count_and_run_once(
    how: str, between: bool
) -> None:
    """Also where a box of other limits stands between the two."""
    limits, stepped = RateLimits([Limit(3, ("look",), seconds=3600)]), list[str]()

    async def prepares(call: ToolCall, next: NextPrepare) -> Prepared:
        stepped.append(f"prepare {call.name}")
        return await next(call)

    async def executes(prepared: Ready, next: NextExecute) -> ToolResult:
        stepped.append(prepared.call.name)
        return await next(prepared)

    shared: Any = {"limits": limits, "around_prepare": [prepares], "around_execute": [executes]}
    box = Toolbox([look], autonomy="full", **shared)
    script = [*[calling("look", path="a")] * 3, saying("found it")]
    if how == "restricted":
        helper = Agent(Scripted(script), toolbox=box.restricted(["look"]))
    else:
        helper = helper_of(*script, **shared)
    if between:
        helper = outer_of(helper, limits=[Limit(9)])
    outer = Toolbox([helper.as_tool("helper", "It helps.")], autonomy="full", **shared)
    script = [calling("helper", task="find it"), saying("all done")]
    outcome = await Agent(Scripted(script), toolbox=outer).run("go")
    nested = outcome.nested[0].nested[0] if between else outcome.nested[0]
    assert [told(nested, n)[:3] for n in range(3)] == ["saw"] * 3
    assert [step for step in stepped if "look" in step] == ["prepare look", "look"] * 3


# -- its events


async def test_its_events_are_in_the_outer_stream_and_name_the_call() -> None:
    events: list[Event] = [
        event async for event in outer_of(helper_of(calling("look", path="a"), saying("b"))).stream("go")
    ]
    outer, nested = events[0].run, next(event.run for event in events if event.run != events[0].run)
    inner = [event for event in events if event.run == nested]
    assert (type(inner[0]), type(inner[-1])) == (RunStarted, RunFinished)
    assert {event.parent for event in inner} == {f"{outer}/1/0"}
    assert [event.seq for event in inner] == list(range(len(inner)))
    assert isinstance(events[-1], RunFinished)
    assert events[-1].run == outer


async def test_nothing_is_remembered_of_runs_that_are_over() -> None:
    outer = outer_of(
        helper_of(calling("save", path="a"), saying("b")),
        autonomy="supervised",
        approver=Asked(Verdict.ALWAYS),
    )
    await outer.run("go")
    run = outer.start("go")
    run.cancel()
    await run
    assert all(not kept for name, kept in vars(outer.toolbox._runs).items() if name != "_sink")
    assert (outer.toolbox.sink._seq, outer.toolbox.sink.parents) == ({}, {})


# -- its rights


async def test_the_outer_approver_is_asked_about_what_the_inner_run_does_and_not_about_the_task() -> None:
    own, outers = Asked(), Asked()
    helper = helper_of(calling("save", path="a"), calling("save", path="a"), saying("b"), approver=own)
    outcome = await outer_of(helper, autonomy="supervised", approver=outers).run("go")
    assert [question.tool for question in outers.questions] == ["save", "save"]
    assert own.questions == []
    assert told(outcome.nested[0]) == "saved a"


async def test_an_always_holds_for_the_outer_run() -> None:
    asked = Asked(Verdict.ALWAYS)
    script = [calling("save", path="a"), saying("b")]
    await outer_of(helper_of(*script, *script), calls=2, autonomy="supervised", approver=asked).run("go")
    assert [question.tool for question in asked.questions] == ["save"]


@pytest.mark.parametrize("outer", ["read_only", "supervised", "full"])
@pytest.mark.parametrize("inner", ["read_only", "supervised", "full"])
async def test_the_lower_autonomy_counts(outer: Any, inner: Any) -> None:
    asked = Asked()
    helper = helper_of(calling("save", path="a"), saying("b"), tools=[look, save], autonomy=inner)
    handing = Toolbox([helper.as_tool("helper", "It helps.")], autonomy=outer, approver=asked)
    outcome = await Agent(Scripted([calling("helper", task="x"), saying("c")]), toolbox=handing).run("go")
    saved = any(
        "saved" in result.text
        for nested in outcome.nested
        for message in nested.messages
        for result in message.results
    )
    assert saved == ("read_only" not in (outer, inner))
    assert len(asked.questions) == (saved and "supervised" in (outer, inner))


@pytest.mark.parametrize("outer", ["read_only", "supervised", "full"])
@pytest.mark.parametrize("inner", ["read_only", "supervised", "full"])
async def test_a_tool_that_only_reads_may_ask_about_a_step_in_a_helper_too(outer: Any, inner: Any) -> None:
    @tool(effect=Effect.READ, secrets=(), open_world=False)
    async def calendar(ctx: Context[Any]) -> str:
        """Read the calendar."""
        await ctx.ask("read what is private")
        return "busy"

    approver = Asked()
    helper = helper_of(calling("calendar"), saying("done"), tools=[calendar], autonomy=inner)
    outcome = await outer_of(helper, autonomy=outer, approver=approver).run("go")
    allowed = "read_only" not in (outer, inner)
    assert told(outcome.nested[0]).startswith("busy" if allowed else "Not allowed")
    assert bool(approver.questions) is (allowed and "supervised" in (outer, inner))


@pytest.mark.parametrize("whose", ["outer", "inner"])
async def test_another_policy_counts_for_a_helper_that_runs(whose: str) -> None:
    boxes = {}

    @tool(effect=Effect.READ, secrets=(), open_world=False)
    def change() -> str:
        """Change the policy."""
        boxes[whose].policy = RulePolicy("supervised")
        return "changed"

    turns = [calling("save", path="a"), calling("change"), calling("save", path="b"), saying("done")]
    helper = helper_of(*turns, tools=[save, change])
    outer = outer_of(helper)
    boxes |= {"outer": outer.toolbox, "inner": helper.toolbox}
    outcome = await outer.run("go")
    words = [told(outcome.nested[0], turn) for turn in (0, 2)]
    assert words[0] == "saved a"
    assert "needs approval" in words[1]


async def test_rules_of_either_hold() -> None:
    no_look = RulePolicy("full", [Rule(verb=Verb.DENY, tools=("look",), reason="nobody looks")])
    for options in ({"policy": no_look}, {}):
        other: dict[str, Any] = {} if options else {"policy": no_look}
        helper = helper_of(calling("look", path="a"), saying("b"), **options)
        outcome = await outer_of(helper, **other).run("go")
        assert "saw" not in told(outcome.nested[0])


RULES = st.lists(
    st.builds(
        Rule, verb=st.sampled_from(list(Verb)), tools=st.sampled_from([("look",), ("save",), ("wipe",), ()]),
        effects=st.sampled_from([frozenset(), frozenset({Effect.WRITE}), frozenset({Effect.DESTRUCTIVE})]),
    ).filter(lambda rule: rule.tools or rule.effects),
    max_size=3,
)  # fmt: skip
POLICIES = st.builds(RulePolicy, st.sampled_from(list(Autonomy)), RULES)


@given(own=POLICIES, outer=POLICIES, most=st.sampled_from(list(Effect)))
def test_no_call_may_do_more_than_either_policy_allows(
    own: RulePolicy, outer: RulePolicy, most: Effect
) -> None:
    both = BothPolicies(own, SimpleNamespace(policy=outer), most)
    for used in (look, save, wipe):
        request = PolicyRequest(used.facts, used.facts.effect)
        decision, parts = both.decide(request), [policy.decide(request) for policy in (own, outer)]
        order = [Verb.ALLOW, Verb.ASK, Verb.DENY]
        if used.facts.effect > most:
            assert decision.verb is Verb.DENY
            continue
        assert order.index(decision.verb) == max(order.index(part.verb) for part in parts)
        if decision.verb is Verb.ASK:
            assert decision.strict == any(part.strict for part in parts if part.verb is Verb.ASK)
        assert both.shows(used.facts) == all(policy.shows(used.facts) for policy in (own, outer))


async def test_a_tool_of_ones_own_may_begin_a_run_within_its_call_and_lends_its_effect() -> None:
    helper = helper_of(calling("save", path="a"), calling("look", path="b"), saying("found 3"))

    @tool(effect=Effect.READ, secrets=())
    async def count(item: str, ctx: Context[Any]) -> int:
        """Count."""
        outcome = await helper.run(f"Count the {item}s.", within=ctx)
        return int(outcome.text.split()[-1])

    outcome = await Agent(
        Scripted([calling("count", item="saw"), saying("c")]), [count], autonomy="full"
    ).run("go")
    (nested,) = outcome.nested
    assert nested.messages[0].text == "Count the saws."
    assert "saved" not in told(nested, 0)
    assert (told(nested, 1), told(outcome)) == ("saw b", "3")


async def test_permissions_of_a_call_are_those_of_both() -> None:
    from toolcrib.access import Access, Reach

    seen: dict[str, tuple[bool, bool]] = {}

    @tool(
        effect=Effect.READ,
        secrets=(),
        accesses=lambda params: [Access(Reach.READ, "", subtree=True, filtered=True)],
    )
    def walk(ctx: Context[Any]) -> str:
        """Walk."""
        for name in ("a.txt", "b.txt", "c.txt"):
            seen[name] = ctx.permits(Access(Reach.READ, name)), ctx.denied_paths is not None
        return ""

    def deny(path: str) -> RulePolicy:
        return read_rules(f'[[rule]]\ndeny = true\npath = "{path}"\n').policy("full")

    helper = helper_of(calling("walk"), saying("b"), tools=[walk], policy=deny("a.txt"))
    await outer_of(helper, policy=deny("b.txt")).run("go")
    assert seen == {"a.txt": (False, True), "b.txt": (False, True), "c.txt": (True, True)}


async def test_middleware_of_the_outer_box_stands_around_inner_calls() -> None:
    seen: list[str] = []

    async def watch(ready: Any, next: Callable[[Any], Any]) -> Any:
        seen.append(ready.call.name)
        return await next(ready)

    await outer_of(helper_of(calling("look", path="a"), saying("b")), around_execute=[watch]).run("go")
    assert seen == ["helper", "look"]


async def test_inner_calls_stand_in_the_audit_log_of_the_outer_box(tmp_path: Any) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path, key=b"k" * 32)
    await outer_of(helper_of(calling("look", path="a"), saying("b")), audit=log).run("go")
    text = path.read_text()
    assert '"look"' in text
    assert '"helper"' in text


# -- where things came from


def tainted_asks() -> RulePolicy:
    return read_rules('[[rule]]\ndeny = true\ntool = "save"\ntainted = true\n').policy("full")


@pytest.mark.parametrize(("name", "refused"), [("browse", True), ("look", False)])
async def test_what_an_inner_run_took_in_taints_the_outer_run(name: str, refused: bool) -> None:
    arguments = {"browse": {"url": "u"}, "look": {"path": "a"}}[name]
    used = browse if name == "browse" else look
    helper = helper_of(calling(name, **arguments), saying("b"), tools=[used]).as_tool("helper", "It helps.")
    script = [calling("helper", task="x"), calling("save", path="a"), saying("c")]
    outcome = await Agent(Scripted(script), [helper, save], policy=tainted_asks()).run("go")
    assert ("saved" not in told(outcome, 1)) is refused


@pytest.mark.parametrize("tracking", ["outer", "inner"])
async def test_an_inner_run_is_tainted_by_what_the_outer_run_took_in(tracking: str) -> None:
    policy = {"policy": tainted_asks()}
    helper = helper_of(calling("save", path="a"), saying("b"), **(policy if tracking == "inner" else {}))
    script = [calling("browse", url="u"), calling("helper", task="x"), saying("c")]
    tools = [helper.as_tool("helper", "It helps."), browse]
    options: Any = policy if tracking == "outer" else {"autonomy": "full"}
    outcome = await Agent(Scripted(script), tools, **options).run("go")
    assert "saved" not in told(outcome.nested[0])


async def test_the_task_of_an_inner_run_is_not_what_the_user_wrote() -> None:
    rules = read_rules('[[rule]]\ndeny = true\ntool = "save"\nunsaid = "path"\n').policy("full")
    saved = []
    for path in ("by_user.txt", "by_model.txt"):
        helper = helper_of(calling("save", path=path), saying("b"))
        script = [calling("helper", task="save to by_model.txt"), saying("c")]
        tools = [helper.as_tool("helper", "It helps.")]
        outcome = await Agent(Scripted(script), tools, policy=rules).run("Save to by_user.txt, please.")
        saved.append("saved" in told(outcome.nested[0]))
    assert saved == [True, False]


# -- secrets


class Store:
    def __init__(self, **values: str) -> None:
        self.values = values

    def get(self, name: str) -> str | None:
        return self.values.get(name)

    def names(self) -> list[str]:
        return list(self.values)


OUTER_KEY, INNER_KEY = "outer-key-abcdefgh-12345", "inner-key-ijklmnop-67890"


@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize("outer", [True, False])
async def test_an_inner_run_names_its_own_secrets_alone_and_sees_none(inner: bool, outer: bool) -> None:
    used: list[str] = []

    @tool(effect=Effect.READ, secrets=("key",))
    def use(key: str, ctx: Context[Any]) -> str:
        """Use a key."""
        used.append(key)
        ctx.report(tip=f"using {INNER_KEY}", result=OUTER_KEY)
        return f"{INNER_KEY} {OUTER_KEY}"

    helper = helper_of(
        calling("use", key="<secret_ref:INNER>"), calling("use", key="<secret_ref:OUTER>"), saying(f"I say {INNER_KEY}"),
        tools=[use], **({"secrets": Store(INNER=INNER_KEY)} if inner else {}),
    )  # fmt: skip
    options: dict[str, Any] = {"secrets": Store(OUTER=OUTER_KEY)} if outer else {}
    agent = outer_of(helper, **options)
    log = agent.toolbox.subscribe(EventLog())
    outcome = await agent.run("go")
    assert OUTER_KEY not in used
    assert (INNER_KEY in used) is inner
    shown = "".join(result.text for message in outcome.nested[0].messages for result in message.results)
    events = "".join(map(repr, log.events))
    if outer:
        assert OUTER_KEY not in shown + events
    if inner:
        assert INNER_KEY not in shown + events


# -- its life


async def test_cancelling_the_outer_run_cancels_the_inner_and_records_it() -> None:
    begun = asyncio.Event()

    @tool(effect=Effect.READ, secrets=())
    async def wait() -> str:
        """Wait."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    run = outer_of(helper_of(calling("wait"), tools=[wait])).start("go")
    waiting = asyncio.ensure_future(run.ended())
    await begun.wait()
    run.cancel()
    outcome = await waiting
    assert outcome.reason is Reason.CANCELLED
    assert [nested.reason for nested in outcome.nested] == [Reason.CANCELLED]
    assert outcome.nested[0].messages[-1].results[0].is_error


async def test_its_tools_have_the_dependencies_of_the_call_or_its_own() -> None:
    @tool(effect=Effect.READ, secrets=())
    def deps(ctx: Context[Any]) -> str:
        """Give the dependencies."""
        return str(ctx.deps)

    for own, expected in ({}, "outer's"), ({"deps": "its own"}, "its own"):
        helper = helper_of(calling("deps"), saying("b"), tools=[deps], **own)
        outcome = await outer_of(helper).run("go", deps="outer's")
        assert told(outcome.nested[0]) == expected


async def test_an_agent_may_be_its_own_tool_and_ends_all_the_same() -> None:
    agent = Agent(Scripted(lambda request: calling("again", task="deeper")), [look], max_turns=2)
    agent.toolbox.add(agent.as_tool("again", "Does it again."))
    outcome = await agent.run("go")

    def depth(outcome: Outcome) -> int:
        return 1 + max(map(depth, outcome.nested), default=0)

    assert depth(outcome) == 6
    assert agent.toolbox.sink.parents == {}


async def test_a_sync_tool_may_begin_a_run_within_its_call() -> None:
    helper = helper_of(calling("look", path="a"), saying("found it"))

    @tool(effect=Effect.READ, secrets=(), delegates=True)
    def ask_helper(ctx: Context[Any]) -> str:
        """Ask the helper."""
        return ctx.run(helper.run("find it", within=ctx)).text

    outcome = await Agent(Scripted([calling("ask_helper"), saying("c")]), [ask_helper]).run("go")
    assert (told(outcome), len(outcome.nested)) == ("found it", 1)


async def test_two_runs_of_one_helper_side_by_side_are_apart() -> None:
    helper = Agent(Scripted(lambda request: saying(f"did {request.messages[-1].text}")), [look])
    calls = [{"name": "helper", "arguments": {"task": str(n)}} for n in range(5)]
    script = [{"calls": calls, "usage": USED}, saying("c")]
    outcome = await Agent(Scripted(script), [helper.as_tool("helper", "It helps.")]).run("go")
    assert [told(outcome, n) for n in range(5)] == [f"did {n}" for n in range(5)]
    assert len({nested.run for nested in outcome.nested}) == 5
    assert outcome.usage.total_tokens == 15 * 7


async def test_a_call_without_an_agent_around_it_works_too() -> None:
    asked = Asked()
    helper = helper_of(calling("save", path="a"), saying("found it"))
    box = Toolbox([helper.as_tool("helper", "It helps.")], approver=asked)
    result = await box.call("helper", {"task": "x"})
    assert (result.text, [question.tool for question in asked.questions]) == ("found it", ["save"])
