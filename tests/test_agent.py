"""The loop: ask, call, tell, again; it never ends silently and its transcript is valid at every moment."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.properties import examples
from toolcrib import Agent, Answer, Context, Effect, Message, Tool, Toolbox, ToolCall, ToolError, Verdict
from toolcrib.agent import Budget, Reason, TranscriptFile, read_transcript
from toolcrib.codecs.codec import ModelError
from toolcrib.content import Text
from toolcrib.events import ArgumentsDelta, CallEvent, RunFinished, StatusChanged, TextDelta
from toolcrib.function import tool
from toolcrib.messages import (
    CallChunk,
    Request,
    Response,
    ResultPart,
    TextChunk,
    ToolChoice,
    Usage,
    messages_from_json,
    messages_to_json,
)
from toolcrib.models import Scripted
from toolcrib.sink import EventLog

READ, WRITE = Effect.READ, Effect.WRITE


class Script:
    """A model by hand: each turn is text, calls as (name, arguments), a Response, or an exception."""

    name = "script"

    def __init__(self, *turns: Any, usage: Usage | None = None, pieces: int = 4) -> None:
        self.turns = list(turns)
        self.requests: list[list[dict[str, Any]]] = []
        self.tools: list[list[str]] = []
        self.choices: list[str] = []
        self.usage = usage or Usage(10, 5)
        self.pieces = pieces

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        self.requests.append(messages_to_json(request.messages)["messages"])
        self.tools.append([spec.name for spec in request.tools])
        self.choices.append(request.tool_choice.mode)
        check_valid(request.messages)
        turn = self.turns.pop(0) if self.turns else "nothing more to do"
        if isinstance(turn, BaseException):
            raise turn
        response = turn if isinstance(turn, Response) else self.response(turn)
        for part in response.message.parts:
            if isinstance(part, Text):
                for piece in self.cut(part.text):
                    await asyncio.sleep(0)
                    yield TextChunk(piece)
        for index, call in enumerate(response.message.calls):
            yield CallChunk(index, name=call.name, id=call.id)
            text = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
            for piece in self.cut(text):
                await asyncio.sleep(0)
                yield CallChunk(index, arguments=piece)
            yield CallChunk(index, done=True)
        yield response

    async def respond(self, request: Request) -> Response:
        raise NotImplementedError

    def response(self, turn: Any) -> Response:
        if isinstance(turn, str):
            return Response(Message("assistant", [Text(turn)]), usage=self.usage)
        calls = [ToolCall(name, arguments, id=f"c{n}") for n, (name, arguments) in enumerate(turn)]
        return Response(Message("assistant", list(calls)), stop_reason="tool_calls", usage=self.usage)

    def cut(self, text: str) -> Iterator[str]:
        size = max(1, len(text) // self.pieces)
        return (text[start : start + size] for start in range(0, len(text), size))


def check_valid(messages: list[Message]) -> None:
    """Each message with calls is followed at once by one result for each of them, in order."""
    for n, message in enumerate(messages):
        if message.calls:
            answer = messages[n + 1]
            assert answer.role == "tool"
            assert [part.call for part in answer.parts if isinstance(part, ResultPart)] == message.calls
        if message.role == "tool":
            assert messages[n - 1].calls


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    await asyncio.sleep(0)
    return a + b


async def fail(how: str = "error") -> str:
    if how == "error":
        raise ToolError("it did not work")
    if how == "crash":
        raise ValueError
    return "fine"


async def write(text: str) -> str:
    return f"wrote {text}"


def tools() -> list[Any]:
    return [
        tool(add, effect=READ, secrets=()),
        tool(fail, effect=READ, secrets=()),
        tool(write, effect=WRITE, secrets=()),
    ]


def agent_of(*turns: Any, **named: Any) -> Agent:
    model = named.pop("model", None) or Script(*turns)
    return Agent(model, named.pop("tools", None) or tools(), **named)


ADD = [("add", {"a": 1, "b": 2})]
FAIL = [("fail", {})]
CRASH = [("fail", {"how": "crash"})]
INVALID = [("add", {"a": "x"})]
DENIED = [("write", {"text": "x"})]
GOOD = [("fail", {"how": "not"})]


# -- why a run ends


def cut_off(reason: str, text: str = "half") -> Response:
    return Response(Message("assistant", [Text(text)]), stop_reason=reason)  # type: ignore[arg-type]


ENDINGS: list[tuple[str, list[Any], dict[str, Any], Reason, str, int]] = [
    ("answered at once", ["hello"], {}, Reason.ANSWERED, "hello", 1),
    ("answered after a call", [ADD, "it is 3"], {}, Reason.ANSWERED, "it is 3", 2),
    ("answered with nothing", [""], {}, Reason.ANSWERED, "", 1),
    ("completed", [ADD, [("attempt_completion", {"result": "all done"})]], {}, Reason.COMPLETED, "all done", 2),
    ("a completion that was refused goes on", [[("attempt_completion", {})], "well then"], {}, Reason.ANSWERED, "well then", 2),
    ("turn limit", [ADD, ADD, ADD, "the summary"], {"max_turns": 3}, Reason.TURN_LIMIT, "the summary", 4),
    ("fifty turns are the default", [*[ADD] * 50, "the summary"], {}, Reason.TURN_LIMIT, "the summary", 51),
    ("turn limit, still calling", [ADD, ADD], {"max_turns": 1}, Reason.TURN_LIMIT, "", 2),
    ("tokens", [ADD] * 9, {"budget": Budget(tokens=40)}, Reason.BUDGET, "", 3),
    ("refused", [cut_off("refusal")], {}, Reason.REFUSED, "half", 1),
    ("filtered", [cut_off("filter")], {}, Reason.REFUSED, "half", 1),
    ("cut off", [cut_off("length")], {}, Reason.REFUSED, "half", 1),
    ("the model fails", [ADD, ModelError("overloaded")], {}, Reason.MODEL_ERROR, "", 2),
    ("three failures in a row", [FAIL] * 9, {}, Reason.PAUSED, "", 3),
    ("three failures at once", [FAIL * 3], {}, Reason.PAUSED, "", 1),
    ("three crashes", [CRASH] * 9, {}, Reason.PAUSED, "", 3),
    ("three invalid calls", [INVALID] * 9, {}, Reason.PAUSED, "", 3),
    ("mixed failures", [FAIL, CRASH, [("fail", {"why": 1})]], {}, Reason.PAUSED, "", 3),
    ("a success resets", [FAIL, FAIL, GOOD, FAIL, FAIL, "gave up"], {}, Reason.ANSWERED, "gave up", 6),
    ("each tool has its own row", [FAIL, INVALID, FAIL, INVALID, "gave up"], {}, Reason.ANSWERED, "gave up", 5),
    ("another tool's success resets nothing", [FAIL, ADD, FAIL, ADD, FAIL], {}, Reason.PAUSED, "", 5),
    ("denials do not count", [DENIED] * 4 + ["gave up"], {}, Reason.ANSWERED, "gave up", 5),
    ("more patience", [FAIL] * 4 + ["gave up"], {"max_failures": 5}, Reason.ANSWERED, "gave up", 5),
]  # fmt: skip


@pytest.mark.parametrize(
    ("turns", "options", "reason", "text", "asked"), [e[1:] for e in ENDINGS], ids=[e[0] for e in ENDINGS]
)
async def test_every_run_ends_with_a_reason(
    turns: Any, options: Any, reason: Reason, text: str, asked: int
) -> None:
    agent = agent_of(*turns, **options)
    log = EventLog()
    agent.toolbox.sink.add(log)
    outcome = await agent.run("do it")
    assert (outcome.reason, outcome.text) == (reason, text)
    assert outcome.turns == asked
    assert outcome.finished == (reason in (Reason.ANSWERED, Reason.COMPLETED))
    assert outcome.detail or reason in (Reason.ANSWERED, Reason.COMPLETED)
    check_valid(outcome.messages)
    ends = [event for event in log.events if isinstance(event, RunFinished)]
    assert [event.reason for event in ends] == [reason.value]
    assert log.events[-1] is ends[0]


async def test_the_reason_to_pause_says_which_tool_and_why() -> None:
    outcome = await agent_of(FAIL, FAIL, FAIL).run("x")
    assert "fail" in outcome.detail and "it did not work" in outcome.detail and "3" in outcome.detail


async def test_the_last_request_at_the_limit_keeps_its_tools_for_the_cache_and_lets_none_be_called() -> None:
    model = Script(ADD, "summary")
    await Agent(model, tools(), max_turns=1).run("x")
    assert model.tools == [["add", "attempt_completion", "fail", "write"]] * 2
    assert model.choices == ["auto", "none"]
    assert model.requests[1][-1]["role"] == "user"


@pytest.mark.parametrize(
    ("budget", "usage", "reason"),
    [
        (Budget(tokens=15), Usage(10, 5), Reason.BUDGET),
        (Budget(tokens=16), Usage(10, 5), Reason.ANSWERED),
        (Budget(cost=0.5), Usage(1, 1, cost=0.5), Reason.BUDGET),
        (Budget(cost=0.5), Usage(1, 1, cost=0.4), Reason.ANSWERED),
        (Budget(cost=0.5), Usage(10**6, 10**6), Reason.BUDGET),  # a price that nobody knows cannot be limited
        (Budget(), Usage(10**9, 10**9, cost=1e9), Reason.ANSWERED),
    ],
)
async def test_budgets_end_a_run_before_the_next_request(
    budget: Budget, usage: Usage, reason: Reason
) -> None:
    outcome = await agent_of(model=Script(ADD, "done", usage=usage), budget=budget).run("x")
    assert outcome.reason is reason
    check_valid(outcome.messages)


@pytest.mark.parametrize("where", ["tool", "model"])
async def test_a_wall_time_budget_stops_in_the_middle(where: str) -> None:
    async def hang() -> str:
        await asyncio.sleep(30)
        return ""

    class Slow(Script):
        async def stream(self, request: Request) -> AsyncIterator[Any]:
            if where == "model":
                await asyncio.sleep(30)
            async for chunk in super().stream(request):
                yield chunk

    agent = Agent(
        Slow([("hang", {})]), [tool(hang, effect=READ, secrets=())], budget=Budget(seconds=0.05), grace=0.05
    )
    outcome = await agent.run("x")
    assert outcome.reason is Reason.BUDGET
    check_valid(outcome.messages)


async def test_usage_adds_up() -> None:
    outcome = await agent_of(ADD, ADD, "done").run("x")
    assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (30, 15)


# -- calls of every kind lead to results and a next turn


@pytest.mark.parametrize(
    ("calls", "codes"),
    [
        ([("nope", {})], ["unknown_tool"]),
        ([("add", '{"a": 1, "b"')], ["invalid_arguments"]),
        ([("add", "not json")], ["invalid_arguments"]),
        ([("add", {"a": 1})], ["invalid_arguments"]),
        ([("", "")], ["unknown_tool"]),
        ([("add", '{"a": "1", "b": 2,}')], [None]),
        ([("add", {"a": 1, "b": 2}), ("nope", {}), ("fail", {}), ("add", {"a": 3, "b": 4})], [None, "unknown_tool", "tool_error", None]),
        ([("write", {"text": "x"})], ["nobody_to_ask"]),
    ],
)  # fmt: skip
async def test_bad_calls_are_answered_and_the_run_goes_on(calls: Any, codes: list[Any]) -> None:
    outcome = await agent_of(calls, "done").run("x")
    assert outcome.reason is Reason.ANSWERED
    results = [part.result for part in outcome.messages[-2].parts if isinstance(part, ResultPart)]
    assert [result.code for result in results] == codes


async def test_the_model_sees_what_the_tools_said() -> None:
    model = Script([*ADD, ("nope", {})], "done")
    await Agent(model, tools(), instructions="Be brief.").run("add")
    first, second = model.requests
    assert [m["role"] for m in first] == ["system", "user"]
    assert [m["role"] for m in second] == ["system", "user", "assistant", "tool"]
    shown = [part["result"]["parts"][0]["text"] for part in second[-1]["parts"]]
    assert shown[0] == "3"
    assert 'Unknown tool "nope"' in shown[1]


async def test_an_overriding_attempt_completion_still_ends_the_run() -> None:
    @tool(effect=READ, secrets=())
    def attempt_completion(summary: str, score: int = 0) -> str:
        return f"{summary} ({score})"

    agent = agent_of(
        [("attempt_completion", {"summary": "fine", "score": 3})], tools=[*tools(), attempt_completion]
    )
    outcome = await agent.run("x")
    assert (outcome.reason, outcome.text) == (Reason.COMPLETED, "fine (3)")


async def test_an_attempt_completion_that_fails_does_not_end_the_run() -> None:
    @tool(effect=READ, secrets=(), precheck=lambda params: "run the tests first")
    def attempt_completion(result: str) -> str:
        return result

    outcome = await agent_of(
        [("attempt_completion", {"result": "x"})], "sorry", tools=[attempt_completion]
    ).run("x")
    assert (outcome.reason, outcome.text) == (Reason.ANSWERED, "sorry")


async def test_calls_beside_attempt_completion_are_run_too() -> None:
    outcome = await agent_of([*ADD, ("attempt_completion", {"result": "done"})]).run("x")
    assert outcome.reason is Reason.COMPLETED
    results = [part.result.text for part in outcome.messages[-1].parts if isinstance(part, ResultPart)]
    assert results == ["3", "done"]


async def test_a_tool_that_was_replaced_within_the_turn_is_refused_by_name() -> None:
    @tool(effect=READ, secrets=())
    async def swap() -> str:
        agent.toolbox.remove("add")
        return "swapped"

    model = Script([("swap", {})], ADD, "done")
    agent = Agent(model, [*tools(), swap])
    outcome = await agent.run("x")
    assert "add" not in model.tools[1]
    assert outcome.messages[-2].parts[0].result.code == "unknown_tool"  # type: ignore[union-attr]


async def test_a_conversation_goes_on_with_its_messages() -> None:
    model = Script(ADD, "3", "5")
    agent = Agent(model, tools(), instructions="Be brief.")
    first = await agent.run("1 + 2?")
    second = await agent.run("2 + 3?", messages=first.messages)
    assert [m["role"] for m in model.requests[-1]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert second.text == "5"
    assert len(first.messages) == 5  # the first outcome is as it was


async def test_instructions_may_be_a_function_of_the_moment() -> None:
    count = iter(range(9))
    model = Script(ADD, "done")
    await Agent(model, tools(), instructions=lambda: f"turn {next(count)}").run("x")
    heads = [request[0]["parts"][0]["text"] for request in model.requests]
    assert heads[0] != heads[1] and all(request[0]["role"] == "system" for request in model.requests)
    assert [m["role"] for m in model.requests[1]].count("system") == 1


async def test_a_box_or_tools_but_not_both() -> None:
    with pytest.raises(TypeError, match="not both"):
        Agent(Script(), tools(), toolbox=Toolbox())
    assert (await Agent(Script(ADD, "done"), toolbox=Toolbox(tools())).run("x")).text == "done"


def test_run_sync_needs_no_loop() -> None:
    assert agent_of(ADD, "3").run_sync("x").text == "3"


async def test_two_runs_of_one_agent_at_once_are_apart() -> None:
    class Echo(Script):
        async def stream(self, request: Request) -> AsyncIterator[Any]:
            await asyncio.sleep(0)
            yield self.response(request.messages[-1].text)

    agent = agent_of(model=Echo())
    outcomes = await asyncio.gather(*(agent.run(f"task {n}") for n in range(10)))
    assert [outcome.text for outcome in outcomes] == [f"task {n}" for n in range(10)]
    assert len({outcome.run for outcome in outcomes}) == 10


# -- dependencies, approvals


async def test_dependencies_reach_the_tools() -> None:
    @tool(effect=READ, secrets=())
    async def who(ctx: Context[dict[str, str]]) -> str:
        return ctx.deps["user"]

    outcome = await agent_of([("who", {})], "done", tools=[who]).run("x", deps={"user": "ann"})
    assert outcome.messages[-2].parts[0].result.text == "ann"  # type: ignore[union-attr]


async def test_always_is_forgotten_when_the_run_ends() -> None:
    asked: list[Any] = []

    async def approver(question: Any) -> Answer:
        asked.append(question)
        return Answer(Verdict.ALWAYS)

    agent = agent_of(DENIED, DENIED, "done", DENIED, "done", approver=approver)
    await agent.run("x")
    assert len(asked) == 1
    await agent.run("x")
    assert len(asked) == 2


# -- events


@pytest.mark.parametrize("pieces", [1, 3, 1_000])
async def test_events_stream_in_order(pieces: int) -> None:
    answer = Response(
        Message("assistant", [Text("Let me see."), ToolCall("add", {"a": 1, "b": 2}, id="c1")]), "tool_calls"
    )
    agent = agent_of(model=Script(answer, "It is 3.", pieces=pieces))
    events = [event async for event in agent.stream("1 + 2?")]
    assert [event.seq for event in events] == list(range(len(events)))
    kinds = [event.kind for event in events]
    order = [
        "run_started",
        "turn_started",
        "text_delta",
        "status",
        "arguments_delta",
        "turn_finished",
        "call_finished",
    ]
    assert [kinds.index(kind) for kind in order] == sorted(kinds.index(kind) for kind in order)
    assert kinds[-1] == "run_finished"
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "Let me see.It is 3."
    deltas = [(e.path, e.delta) for e in events if isinstance(e, ArgumentsDelta)]
    assert deltas == [(("a",), 1), (("b",), 2)]
    states = [e.state.value for e in events if isinstance(e, CallEvent)]
    assert list(dict.fromkeys(states)) == ["wait", "doing", "success"]


async def test_a_stream_shows_its_own_run_and_what_it_calls() -> None:
    @tool(effect=READ, secrets=())
    async def outer(ctx: Context) -> str:
        return (await ctx.call("add", a=1, b=2)).text

    agent = agent_of([("outer", {})], "done", tools=[*tools(), outer])
    noise = asyncio.create_task(agent.toolbox.call("add", {"a": 5, "b": 5}))
    events = [event async for event in agent.stream("x")]
    await noise
    finished = [event for event in events if event.kind == "call_finished"]
    assert [event.tool for event in finished] == ["add", "outer"]  # type: ignore[attr-defined]
    inner, own = finished
    assert inner.parent == own.run and inner.run != own.run


async def test_events_are_replayable_from_any_point() -> None:
    agent = agent_of(ADD, "3")
    log = EventLog()
    agent.toolbox.sink.add(log)
    outcome = await agent.run("x")
    everything = log.since(0, outcome.run)
    for seq in range(len(everything) + 2):
        assert log.since(seq, outcome.run) == everything[seq:]


async def test_leaving_the_stream_cancels_the_run() -> None:
    stopped: list[str] = []

    async def hang() -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            stopped.append("stopped")
            raise
        return ""

    agent = agent_of([("hang", {})], tools=[tool(hang, effect=READ, secrets=())])
    stream = agent.stream("x")
    async for event in stream:
        if isinstance(event, StatusChanged) and event.state.value == "doing":
            break
    await asyncio.sleep(0.01)
    await stream.aclose()  # type: ignore[attr-defined]
    assert stopped == ["stopped"]
    assert not agent.toolbox.sink


# -- cancellation


async def hanging_run() -> tuple[Agent, Any]:
    async def hang() -> str:
        await asyncio.sleep(30)
        return ""

    agent = agent_of([("hang", {}), ("hang", {})], tools=[tool(hang, effect=READ, secrets=())])
    run = agent.start("x")
    return agent, run


async def test_a_run_that_is_cancelled_says_so() -> None:
    _, run = await hanging_run()
    events: list[Any] = []
    async for event in run:
        events.append(event.kind)
        if event.kind == "turn_finished":
            run.cancel()
    outcome = await run
    assert outcome.reason is Reason.CANCELLED
    assert events[-1] == "run_finished"
    check_valid(outcome.messages)
    assert [p.result.code for p in outcome.messages[-1].parts] == ["cancelled", "cancelled"]


async def test_cancellation_from_outside_goes_on_and_leaves_a_valid_transcript() -> None:
    _, run = await hanging_run()
    work = asyncio.ensure_future(asyncio.wait_for(run, 0.02))
    with pytest.raises(TimeoutError):
        await work
    assert run.outcome is not None and run.outcome.reason is Reason.CANCELLED
    check_valid(run.messages)


# -- the transcript is valid at every moment


@examples(80, suppress_health_check=[HealthCheck.too_slow])
@given(
    turns=st.lists(
        st.lists(
            st.sampled_from(
                [("add", {"a": 1, "b": 2}), ("add", {"a": "x"}), ("nope", {}), ("fail", {}), ("write", {"text": "x"}), ("wait", {}), ("add", '{"a": 1,')]
            ),
            min_size=1,
            max_size=4,
        ),
        max_size=4,
    ),
    steps=st.integers(1, 150),
    approve=st.booleans(),
    streamed=st.booleans(),
)  # fmt: skip
def test_a_run_that_is_cut_anywhere_leaves_a_valid_transcript(
    tmp_path_factory: pytest.TempPathFactory, turns: Any, steps: int, approve: bool, streamed: bool
) -> None:
    path = tmp_path_factory.mktemp("run") / "transcript.jsonl"

    async def wait() -> str:
        for _ in range(5):
            await asyncio.sleep(0)
        return "waited"

    async def approver(question: Any) -> Answer:
        await asyncio.sleep(0)
        return Answer(Verdict.YES if approve else Verdict.NO)

    async def scenario() -> None:
        agent = agent_of(
            *turns,
            "done",
            tools=[*tools(), tool(wait, effect=WRITE, secrets=())],
            approver=approver,
            grace=0.05,
        )
        if streamed:
            agent.toolbox.sink.add(EventLog())
        file = TranscriptFile(path)
        run = agent.start("x", transcript=file)

        async def main() -> None:
            await run

        work = asyncio.create_task(main())
        for _ in range(steps):
            await asyncio.sleep(0)
            check_valid(run.messages)
        work.cancel()
        try:
            await work
        except asyncio.CancelledError:
            pass
        file.close()
        check_valid(run.messages)
        assert run.outcome is not None
        assert messages_from_json(messages_to_json(run.messages)) == run.messages
        read = read_transcript(path)
        check_valid(read)
        assert messages_to_json(read) == messages_to_json(run.messages)

    asyncio.run(scenario())


# -- on disk


def cut_everywhere(path: Path, check: Callable[[list[Message]], None]) -> None:
    whole = path.read_bytes()
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        check(read_transcript(path))


async def test_a_transcript_file_is_readable_cut_at_any_byte(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    file = TranscriptFile(path)
    agent = agent_of([*ADD, *FAIL], ADD, "It is three.", instructions="Be brief.")
    outcome = await agent.run("What is it?", transcript=file)
    file.close()
    assert messages_to_json(read_transcript(path)) == messages_to_json(outcome.messages)
    lengths: list[int] = []

    def check(messages: list[Message]) -> None:
        check_valid(messages)
        lengths.append(len(messages))

    cut_everywhere(path, check)
    assert lengths == sorted(lengths)
    assert lengths[-1] == len(outcome.messages)


async def test_an_interrupted_call_is_told_to_be_of_unknown_outcome(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    file = TranscriptFile(path)
    await agent_of([*ADD, *ADD], "done").run("x", transcript=file)
    file.close()
    lines = path.read_text().splitlines(keepends=True)
    first_result = next(n for n, line in enumerate(lines) if '"result"' in line and '"index"' in line)
    path.write_text("".join(lines[: first_result + 1]))
    results = [part.result for part in read_transcript(path)[-1].parts if isinstance(part, ResultPart)]
    assert [result.code for result in results] == [None, "outcome_unknown"]


@pytest.mark.parametrize(
    "content",
    [
        '{"format": 99}\n',
        '{"format": 1}\n{"format": 99}\n',
        "nonsense\n",
        "GIF89a\n\n{",
    ],
)
def test_what_is_no_transcript_is_a_value_error_with_its_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(content)
    with pytest.raises(ValueError, match="line"):
        read_transcript(path)


# -- partial arguments meet the object that executes


async def test_on_partial_is_called_on_the_object_that_executes() -> None:
    log: list[Any] = []

    class Params(BaseModel):
        text: str

    class Typed(Tool[Params, str], name="typed", effect=READ, secrets=()):
        def __init__(self) -> None:
            self.seen: list[str] = []
            log.append("made")

        def on_partial(self, partial: Any, ctx: Context) -> None:
            if "text" in partial:
                self.seen.append(partial["text"])

        async def execute(self, params: Params, ctx: Context) -> str:
            log.append(self.seen[-1])
            assert all(params.text.startswith(text) for text in self.seen)
            return "done"

        async def aclose(self) -> None:
            log.append("closed")

    outcome = await agent_of([("typed", {"text": "a long text"})], "done", tools=[Typed]).run("x")
    assert outcome.text == "done"
    assert log == ["made", "a long text", "closed"]


async def test_an_answer_that_pauses_is_asked_for_again() -> None:
    """A provider that runs tools of its own may stop in the middle and go on when it is asked again."""
    model = Scripted([{"text": "Searching.", "stop_reason": "pause"}, "Found it."])
    outcome = await Agent(model).run("x")
    assert (outcome.reason, outcome.text) == (Reason.ANSWERED, "Found it.")
    assert [message.role for message in outcome.messages] == ["user", "assistant", "assistant"]


@pytest.mark.parametrize(
    ("one", "other", "cost"),
    [
        (Usage(), Usage(1, 1, cost=0.5), 0.5),
        (Usage(1, 1, cost=0.25), Usage(1, 1, cost=0.5), 0.75),
        (Usage(1, 1), Usage(1, 1, cost=0.5), None),  # a part that is not known makes the sum unknown
        (Usage(1, 1, cost=0.5), Usage(1, 1), None),
        (Usage(), Usage(), None),
    ],
)
def test_the_cost_of_a_sum_is_known_only_if_all_of_it_is(
    one: Usage, other: Usage, cost: float | None
) -> None:
    assert (one + other).cost == cost


@tool(effect=READ, secrets=())
def weigh(item: str) -> int:
    """Weigh an item."""
    return len(item)


WEIGH = {"calls": [{"name": "weigh", "arguments": {"item": "saw"}}]}


@pytest.mark.parametrize(
    ("choice", "asked"),
    [
        ("required", ["required", "required"]),
        (ToolChoice("required", ("weigh",)), ["required", "auto"]),  # once: or nothing could be answered
        (ToolChoice("auto", ("weigh",)), ["auto", "auto"]),
        ("none", ["none", "none"]),
    ],
)
async def test_a_choice_of_tools_lets_the_run_end(choice: Any, asked: list[str]) -> None:
    seen: list[str] = []

    def say(request: Request) -> Any:
        seen.append(request.tool_choice.mode)
        return WEIGH if len(seen) == 1 else "Three."

    assert (await Agent(Scripted(say), [weigh], tool_choice=choice).run("x")).finished
    assert seen == asked


async def test_a_choice_of_a_tool_that_there_is_not_is_said() -> None:
    agent = Agent(Scripted(["Three."]), [weigh], tool_choice=ToolChoice("required", ("wiegh",)))
    with pytest.raises(
        ValueError, match="'wiegh', which is not offered; tools are attempt_completion, weigh"
    ):
        await agent.run("x")


def test_a_choice_that_means_nothing_is_said() -> None:
    with pytest.raises(
        ValueError, match=r"expected one of 'auto', 'none', 'required', got 'weigh'; .*ToolChoice"
    ):
        Agent(Scripted([]), [weigh], tool_choice="weigh")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"\('weigh',\)"):
        ToolChoice("required", "weigh")  # type: ignore[arg-type]
