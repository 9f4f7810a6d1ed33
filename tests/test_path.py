"""The path of one call: every way that it can go wrong is one recorded result with a stable code."""

import asyncio
import logging
from typing import Any, Literal

import pytest
from pydantic import BaseModel, field_validator

from toolcrib import Answer, Context, Effect, Tool, Toolbox, ToolCall, ToolError, ToolFactory, Verdict
from toolcrib.call import CallKey
from toolcrib.errors import ErrorCode
from toolcrib.events import CallFinished
from toolcrib.function import tool
from toolcrib.prepared import Pending, Ready, Refused
from toolcrib.toolbox import Decision, PolicyRequest, Verb
from toolcrib.toolset import StaticToolset

READ, WRITE = Effect.READ, Effect.WRITE


class Ledger:
    """Counts what was really run, and what was recorded."""

    def __init__(self) -> None:
        self.ran: list[Any] = []
        self.recorded: list[tuple[CallKey, Any]] = []

    def record(self, key: CallKey, result: Any) -> None:
        self.recorded.append((key, result))


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def make_box(ledger: Ledger, **named: Any) -> Toolbox:
    @tool(effect=READ, secrets=(), inline=True)
    def look(n: int = 1) -> str:
        ledger.ran.append(("look", n))
        return f"saw {n}"

    @tool(effect=WRITE, secrets=(), inline=True)
    def write(text: str) -> str:
        ledger.ran.append(("write", text))
        return f"wrote {text}"

    @tool(effect=Effect.DESTRUCTIVE, secrets=(), inline=True)
    def wipe() -> str:
        ledger.ran.append(("wipe",))
        return "wiped"

    @tool(effect=READ, secrets=(), precheck=lambda p: "even numbers only" if p["n"] % 2 else None)
    async def even(n: int) -> str:
        ledger.ran.append(("even", n))
        return str(n)

    @tool(effect=READ, secrets=())
    async def crash(how: str = "value") -> str:
        if how == "tool":
            raise ToolError("The disk is full: delete something first.")
        if how == "transient":
            raise ToolError("Try again later.", transient=True)
        raise {"value": ValueError, "key": KeyError, "assert": AssertionError, "stop": StopAsyncIteration}[
            how
        ]("secret-token-123")

    @tool(effect=READ, secrets=(), timeout=0.05)
    async def slow() -> str:
        await asyncio.sleep(30)
        return "never"

    return Toolbox([look, write, wipe, even, crash, slow], **named)


async def yes(question: Any) -> Answer:
    return Answer(Verdict.YES)


async def no(question: Any) -> Answer:
    return Answer(Verdict.NO, "use the staging server")


async def silent(question: Any) -> None:
    return None


async def broken(question: Any) -> Answer:
    raise RuntimeError("the terminal is gone")


# -- every code

CODES: list[tuple[str, dict[str, Any], str, Any, str, list[str]]] = [
    ("unknown", {}, "loook", {}, "unknown_tool", ['"loook"', '"look"', "nothing was run"]),
    ("unknown, nothing near", {}, "zzzzzz", {}, "unknown_tool", ["Available: ", "wipe"]),
    ("empty name", {}, "", {}, "unknown_tool", ["nothing was run"]),
    ("wrong type", {}, "look", {"n": "many"}, "invalid_arguments", ["- n: expected integer", '"many"']),
    ("missing", {}, "even", {}, "invalid_arguments", ["- n: expected integer, got nothing"]),
    ("unknown field", {}, "look", {"m": 1}, "invalid_arguments", ["- m: ", "n"]),
    ("no object", {}, "look", "[1]", "invalid_arguments", ["object"]),
    ("not JSON", {}, "look", "look at it!", "invalid_arguments", ["could not be read"]),
    ("truncated", {}, "write", '{"text": "abc', "invalid_arguments", ["could not be read"]),
    ("truncated late", {}, "write", '{"text": "abc"', "invalid_arguments", ["could not be read"]),
    ("precheck", {}, "even", {"n": 3}, "precheck", ["even numbers only"]),
    ("read only", {"autonomy": "read_only"}, "write", {"text": "x"}, "denied", ["only reading"]),
    ("read only, even when approved", {"autonomy": "read_only", "approver": yes}, "wipe", {}, "denied", []),
    ("nobody to ask", {}, "write", {"text": "x"}, "nobody_to_ask", ["nobody", "needs approval"]),
    ("approver is silent", {"approver": silent}, "write", {"text": "x"}, "nobody_to_ask", ["nobody"]),
    ("approver fails", {"approver": broken}, "write", {"text": "x"}, "nobody_to_ask", ["nobody"]),
    ("rejected", {"approver": no}, "write", {"text": "x"}, "rejected", ["The user rejected", "use the staging server"]),
    ("timed out", {}, "slow", {}, "timed_out", ["0.05 seconds"]),
    ("the tool's own words", {}, "crash", {"how": "tool"}, "tool_error", ["The disk is full: delete something first."]),
    ("a transient error is answered too", {}, "crash", {"how": "transient"}, "tool_error", ["Try again later."]),
    ("crash", {}, "crash", {}, "failed", ["crash", "internal error"]),
    ("crash with StopAsyncIteration", {}, "crash", {"how": "stop"}, "failed", ["crash"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "name", "arguments", "code", "words"), [c[1:] for c in CODES], ids=[c[0] for c in CODES]
)
async def test_every_failure_is_one_recorded_result_with_a_code(
    ledger: Ledger, options: Any, name: str, arguments: Any, code: str, words: list[str]
) -> None:
    box = make_box(ledger, **options)
    key = CallKey("run", 1, 0)
    result = await box.call(name, arguments, key=key, record=ledger.record)
    assert (result.code, result.is_error) == (code, True)
    assert [(k, r.text) for k, r in ledger.recorded] == [(key, result.text)]
    assert ledger.ran == []
    for word in words:
        assert word in result.text
    for leak in ("Traceback", "secret-token-123", "ValueError", "toolcrib.", ".py"):
        assert leak not in result.text


def test_every_code_is_known_and_stable() -> None:
    assert {code.value for code in ErrorCode} == {
        "unknown_tool", "tool_changed", "invalid_arguments", "precheck", "denied", "rejected",
        "nobody_to_ask", "rate_limited", "timed_out", "cancelled", "failed", "outcome_unknown",
        "output_too_large", "tool_error", "waiting",
    }  # fmt: skip


async def test_the_operator_gets_a_crash_in_full(ledger: Ledger, caplog: pytest.LogCaptureFixture) -> None:
    box = make_box(ledger)
    log = box.events()
    with caplog.at_level(logging.ERROR, "toolcrib"):
        await box.call("crash", {})
    assert "secret-token-123" in caplog.text
    assert "Traceback" in caplog.text
    box.unsubscribe(log)
    finished = [event async for event in log if isinstance(event, CallFinished)]
    assert "secret-token-123" in finished[0].problem


async def test_a_validators_own_words_reach_the_model() -> None:
    class Port(BaseModel):
        port: int

        @field_validator("port")
        @classmethod
        def unprivileged(cls, value: int) -> int:
            if value < 1024:
                raise ValueError("ports below 1024 are reserved")
            return value

    def serve(params: Port) -> int:
        return params.port

    box = Toolbox([tool(serve, effect=READ, secrets=(), params=Port)])
    result = await box.call("serve", {"port": 80})
    assert "- port: " in result.text and "ports below 1024 are reserved" in result.text


async def test_a_validator_that_crashes_is_a_result() -> None:
    class Odd(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def divide(cls, value: int) -> int:
            return 1 // value

    box = Toolbox([tool(lambda p: "ok", name="odd", effect=READ, secrets=(), params=Odd)])
    assert (await box.call("odd", {"n": 0})).code == "failed"
    assert (await box.call("odd", {"n": 1})).text == "ok"


# -- repairs


@pytest.mark.parametrize(
    ("raw", "kinds"),
    [
        ('{"n": "3"}', {"number_text"}),
        ('{"arguments": {"n": 3}}', {"unwrapped"}),
        ('```json\n{"n": 3}\n```', None),
        ('{"n": 3,}', None),
        ("{'n': 3}", None),
    ],
)
async def test_a_repaired_call_runs_and_its_repairs_are_recorded(
    ledger: Ledger, raw: str, kinds: set[str] | None
) -> None:
    box = make_box(ledger)
    result = await box.call("look", raw)
    assert result.text == "saw 3"
    assert result.edits
    if kinds is not None:
        assert {edit.kind for edit in result.edits} == kinds
    assert box.stats()["look"].repairs == len(result.edits)


SYNTAX = ["{'text': 'x'}", '{"text": "x",}', '```json\n{"text": "x"}\n```', '{"text": "x\n"}']


@pytest.mark.parametrize("raw", SYNTAX)
async def test_repaired_syntax_asks_even_under_full_autonomy(ledger: Ledger, raw: str) -> None:
    asked: list[Any] = []

    async def approver(question: Any) -> Answer:
        asked.append(question)
        return Answer(Verdict.YES)

    box = make_box(ledger, autonomy="full", approver=approver)
    assert not (await box.call("write", raw)).is_error
    assert len(asked) == 1
    assert asked[0].edits and any(edit.is_syntax for edit in asked[0].edits)

    alone = make_box(ledger, autonomy="full")
    assert (await alone.call("write", raw)).code == "nobody_to_ask"
    assert not (await alone.call("look", "{'n': 1}")).is_error  # a READ may


async def test_a_repaired_value_does_not_ask_under_full_autonomy() -> None:
    @tool(effect=WRITE, secrets=(), inline=True)
    def put(n: int) -> str:
        return f"put {n}"

    assert (await Toolbox([put], autonomy="full").call("put", {"n": "3"})).text == "put 3"


async def test_a_question_shows_the_repairs_of_a_write() -> None:
    asked: list[Any] = []

    async def approver(question: Any) -> Answer:
        asked.append(question)
        return Answer(Verdict.YES)

    @tool(effect=WRITE, secrets=(), inline=True)
    def put(n: int) -> str:
        return f"put {n}"

    assert (await Toolbox([put], approver=approver).call("put", {"n": "3"})).text == "put 3"
    assert [(e.path, e.before, e.after) for e in asked[0].edits] == [("n", "3", 3)]
    assert asked[0].arguments == {"n": 3}


@pytest.mark.parametrize("content", ['{"a": 1}', "[1]", "true", "null", "3", "", "'x'", "```json\n{}\n```"])
async def test_a_string_is_never_reinterpreted(ledger: Ledger, content: str) -> None:
    box = make_box(ledger, autonomy="full")
    result = await box.call("write", {"text": content})
    assert ledger.ran == [("write", content)]
    assert not result.edits


@pytest.mark.parametrize("empty", ["", "{}", {}, None])
async def test_no_arguments_in_every_spelling(ledger: Ledger, empty: Any) -> None:
    result = await make_box(ledger).call("look", empty)
    assert result.text == "saw 1", result.text


# -- prepare has no effects


@pytest.mark.promise("policy.md", "Nothing is read or changed before.")
async def test_prepare_decides_and_runs_nothing(ledger: Ledger) -> None:
    box = make_box(ledger)
    prepared = [
        await box.prepare(ToolCall(name, arguments))
        for name, arguments in [("look", {}), ("write", {"text": "x"}), ("nope", {}), ("look", {"n": []})]
    ]
    assert [type(p) for p in prepared] == [Ready, Pending, Refused, Refused]
    assert ledger.ran == []
    pending = prepared[1]
    assert isinstance(pending, Pending)
    assert (pending.question.tool, pending.question.arguments, pending.question.effect) == (
        "write",
        {"text": "x"},
        "write",
    )


async def test_what_was_executed_is_executed_once(ledger: Ledger) -> None:
    box = make_box(ledger, autonomy="full")
    prepared = await box.prepare(ToolCall("write", {"text": "x"}))
    results = [await box.execute(prepared, record=ledger.record) for _ in range(3)]
    assert ledger.ran == [("write", "x")]
    assert len(ledger.recorded) == 1
    assert all(result is results[0] for result in results)


async def test_a_pending_call_needs_an_answer_that_allows(ledger: Ledger) -> None:
    box = make_box(ledger)

    async def outcome(answer: Answer | None) -> Any:
        return (await box.execute(await box.prepare(ToolCall("write", {"text": "x"})), answer)).code

    assert await outcome(None) == "nobody_to_ask"
    assert await outcome(Answer(Verdict.NO)) == "rejected"
    assert ledger.ran == []
    assert await outcome(Answer(Verdict.YES)) is None
    assert ledger.ran == [("write", "x")]


async def test_decide_comes_before_precheck_and_precheck_before_the_question(ledger: Ledger) -> None:
    order: list[str] = []

    class Watching:
        def decide(self, case: PolicyRequest) -> Decision:
            order.append("decide")
            return Decision(Verb.ASK, "to be sure")

        def shows(self, facts: Any) -> bool:
            return True

    async def approver(question: Any) -> Answer:
        order.append("ask")
        return Answer(Verdict.YES)

    def check(params: Any) -> None:
        order.append("precheck")

    @tool(effect=WRITE, secrets=(), precheck=check, inline=True)
    def act() -> str:
        order.append("execute")
        return ""

    await Toolbox([act], policy=Watching(), approver=approver).call("act", {})
    assert order[:3] == ["decide", "precheck", "ask"]
    assert order[-1] == "execute"


@pytest.mark.parametrize("hook", ["precheck", "effect_for", "resources"])
async def test_a_hook_that_raises_is_no_bug_of_the_box(hook: str) -> None:
    def bad(params: Any) -> Any:
        raise RuntimeError("hook")

    ran: list[int] = []

    @tool(effect=WRITE, secrets=(), inline=True, **{hook: bad})
    def act() -> str:
        ran.append(1)
        return "done"

    box = Toolbox([act], autonomy="full")
    result = (await box.call_turn([ToolCall("act", {}), ToolCall("act", {})]))[0]
    if hook == "precheck":  # what cannot be checked does not run
        assert result.code == "failed" and not ran
    else:
        assert result.text == "done"


@pytest.mark.parametrize(
    ("declared", "said", "expected"),
    [
        (Effect.WRITE, Effect.READ, "allow"),
        (Effect.DESTRUCTIVE, Effect.WRITE, "ask"),
        (Effect.READ, Effect.DESTRUCTIVE, "allow"),  # never raised
        (Effect.WRITE, "nonsense", "ask"),
    ],
)
async def test_the_effect_of_one_call_may_be_lower_never_higher(
    declared: Effect, said: Any, expected: str
) -> None:
    @tool(effect=declared, secrets=(), effect_for=lambda params: said, inline=True)
    def act() -> str:
        return ""

    prepared = await Toolbox([act]).prepare(ToolCall("act"))
    assert type(prepared) is {"allow": Ready, "ask": Pending}[expected]


# -- the list that offered it


async def test_a_tool_that_was_removed_or_replaced_is_refused_by_name(ledger: Ledger) -> None:
    box = make_box(ledger)
    tool_list = await box.tool_list()
    box.remove("look")
    assert (await box.call("look", {}, tool_list=tool_list)).code == "tool_changed"

    @tool(name="look", effect=READ, secrets=(), inline=True)
    def other(n: int = 1) -> str:
        ledger.ran.append("other")
        return "other"

    box.add(other)
    assert (await box.call("look", {}, tool_list=tool_list)).code == "tool_changed"
    assert (await box.call("look", {}, tool_list=await box.tool_list())).text == "other"
    box.add(tool(lambda: "new", name="new", effect=READ, secrets=()))
    assert (await box.call("new", {}, tool_list=tool_list)).code == "unknown_tool"


async def test_a_tool_that_was_called_before_is_looked_up_anew_after_each_change() -> None:
    def said(words: str) -> Any:
        async def give() -> str:
            return words

        return tool(give, effect=READ, secrets=())

    box = Toolbox([said("mine")], override=True, builtin=[said("built in")])
    for _ in range(2):  # the second time it is at hand
        assert (await box.call("give")).text == "mine"
    box.add(said("other"))
    assert (await box.call("give")).text == "other"
    box.remove("give")
    for _ in range(2):
        assert (await box.call("give")).text == "built in"
    lent = StaticToolset([said("lent")])
    box.add(lent)
    for _ in range(2):
        assert (await box.call("give")).text == "lent"
    lent.remove("give")
    assert (await box.call("give")).text == "built in"
    lent.add(said("lent again"))
    assert (await box.call("give")).text == "lent again"


async def test_a_tool_replaced_between_question_and_answer_is_refused(ledger: Ledger) -> None:
    box = make_box(ledger)
    prepared = await box.prepare(ToolCall("write", {"text": "x"}))

    @tool(name="write", effect=WRITE, secrets=(), inline=True)
    def other(text: str) -> str:
        ledger.ran.append("other")
        return "other"

    box.add(other, override=True)
    assert (await box.execute(prepared, Answer(Verdict.YES))).code == "tool_changed"
    assert ledger.ran == []


async def test_a_policy_that_changed_its_mind_between_question_and_answer_wins(ledger: Ledger) -> None:
    box = make_box(ledger)
    prepared = await box.prepare(ToolCall("write", {"text": "x"}))
    box.policy = make_box(ledger, autonomy="read_only").policy
    assert (await box.execute(prepared, Answer(Verdict.YES))).code == "denied"
    assert ledger.ran == []


# -- names


async def test_duplicates_are_an_error_unless_overridden() -> None:
    one = tool(lambda: "one", name="t", effect=READ, secrets=())
    two = tool(lambda: "two", name="t", effect=READ, secrets=())
    with pytest.raises(ValueError, match="'t'"):
        Toolbox([one, two])
    assert (await Toolbox([one, two], override=True).call("t")).text == "two"
    box = Toolbox([one], builtin=[two])  # the caller's shadow the built-in ones
    assert (await box.call("t")).text == "one"
    assert [spec.name for spec in (await box.tool_list()).specs] == ["t"]


# -- objects of one call


class Nothing(BaseModel):
    pass


class Kind(BaseModel):
    how: Literal["fine", "crash", "error", "hang", "exit"] = "fine"


def closing_class(log: list[str]) -> type[Tool[Kind, str]]:
    class Made(Tool[Kind, str], name="made", effect=WRITE, secrets=()):
        def __init__(self) -> None:
            log.append("made")

        def precheck(self, params: Kind) -> str | None:
            return "no exit" if params.how == "exit" else None

        async def execute(self, params: Kind, ctx: Context) -> str:
            log.append("ran")
            if params.how == "crash":
                raise ValueError
            if params.how == "error":
                raise ToolError("no")
            if params.how == "hang":
                await asyncio.sleep(30)
            return "fine"

        async def aclose(self) -> None:
            log.append("closed")

    return Made


@pytest.mark.parametrize("given", ["class", "factory", "async factory"])
@pytest.mark.parametrize(
    ("way", "arguments", "options", "expected"),
    [
        ("fine", {}, {"autonomy": "full"}, ["made", "ran", "closed"]),
        ("crash", {"how": "crash"}, {"autonomy": "full"}, ["made", "ran", "closed"]),
        ("tool error", {"how": "error"}, {"autonomy": "full"}, ["made", "ran", "closed"]),
        ("timeout", {"how": "hang"}, {"autonomy": "full", "timeout": 0.02}, ["made", "ran", "closed"]),
        ("invalid", {"how": "no"}, {"autonomy": "full"}, ["made", "closed"]),
        ("unreadable", "{", {"autonomy": "full"}, ["made", "closed"]),
        ("precheck", {"how": "exit"}, {"autonomy": "full"}, ["made", "closed"]),
        ("denied", {}, {"autonomy": "read_only"}, ["made", "closed"]),
        ("nobody", {}, {}, ["made", "closed"]),
        ("rejected", {}, {"approver": no}, ["made", "closed"]),
        ("approved", {}, {"approver": yes}, ["made", "ran", "closed"]),
    ],
)
async def test_an_object_made_for_a_call_is_closed_exactly_once(
    given: str, way: str, arguments: Any, options: Any, expected: list[str]
) -> None:
    log: list[str] = []
    made = closing_class(log)

    async def later(ctx: Context) -> Any:
        return made()

    supplied: Any = {
        "class": made,
        "factory": ToolFactory("made", lambda ctx: made()),
        "async factory": ToolFactory("made", later),
    }[given]
    await Toolbox([supplied], **options).call("made", arguments)
    assert log == expected


async def test_an_instance_is_that_instance_and_never_closed() -> None:
    log: list[str] = []
    instance = closing_class(log)()
    box = Toolbox([instance], autonomy="full")
    assert [(await box.call("made", {})).text for _ in range(2)] == ["fine", "fine"]
    assert log == ["made", "ran", "ran"]


async def test_a_caller_that_is_cancelled_closes_what_was_made() -> None:
    log: list[str] = []
    box = Toolbox([closing_class(log)], autonomy="full")
    work = asyncio.create_task(box.call("made", {"how": "hang"}))
    await asyncio.sleep(0.01)
    assert log == ["made", "ran"]
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert log == ["made", "ran", "closed"]


@pytest.mark.parametrize("failure", [RuntimeError("no database"), ToolError("no database")])
async def test_a_factory_that_fails_is_a_result(failure: Exception) -> None:
    def build(ctx: Context) -> Any:
        raise failure

    result = await Toolbox([ToolFactory("made", build)]).call("made", {})
    assert result.is_error
    assert "Traceback" not in result.text


async def test_a_factory_that_makes_no_tool_is_a_result() -> None:
    with pytest.warns(UserWarning, match="not a tool"):
        result = await Toolbox([ToolFactory("made", lambda ctx: 3)]).call("made", {})
    assert result.code == "failed"


async def test_closing_that_fails_does_not_change_the_result() -> None:
    class Bad(Tool[Nothing, str], name="bad", effect=READ, secrets=()):
        async def execute(self, params: Nothing, ctx: Context) -> str:
            return "fine"

        async def aclose(self) -> None:
            raise RuntimeError("cannot close")

    assert (await Toolbox([Bad]).call("bad", {})).text == "fine"


# -- partial arguments meet the object that will execute


def partial_class(log: list[Any]) -> type[Tool[Any, Any]]:
    class Params(BaseModel):
        text: str

    class Partial(Tool[Params, str], name="partial", effect=READ, secrets=()):
        def __init__(self) -> None:
            log.append("made")
            self.seen: list[Any] = []

        def on_partial(self, partial: Any, ctx: Context) -> None:
            self.seen.append(dict(partial))

        async def execute(self, params: Params, ctx: Context) -> str:
            return f"{params.text} after {len(self.seen)}, first {self.seen[0]}"

        async def aclose(self) -> None:
            log.append("closed")

    return Partial


async def test_partials_come_to_the_object_that_executes() -> None:
    log: list[Any] = []
    box = Toolbox([partial_class(log)])
    key = CallKey("run", 1, 0)
    stream = await box.open_call("partial", key)
    for piece in ('{"te', 'xt": "ab', 'c"}'):
        stream.feed(piece)
    prepared = await box.prepare(ToolCall("partial", '{"text": "abc"}'), key=key, stream=stream)
    result = await box.execute(prepared)
    assert result.text.startswith("abc after ")
    assert log == ["made", "closed"]


async def test_a_partial_only_call_is_closed_too() -> None:
    log: list[Any] = []
    box = Toolbox([partial_class(log)])
    stream = await box.open_call("partial", CallKey("run", 1, 0))
    stream.feed('{"text": "a')
    await stream.discard()
    await stream.discard()
    assert log == ["made", "closed"]


async def test_a_partial_call_that_is_refused_is_closed_once() -> None:
    log: list[Any] = []
    box = Toolbox([partial_class(log)])
    key = CallKey("run", 1, 0)
    stream = await box.open_call("partial", key)
    stream.feed('{"text": 1')
    prepared = await box.prepare(ToolCall("partial", '{"text": [1]}'), key=key, stream=stream)
    await box.execute(prepared)
    assert log == ["made", "closed"]


async def test_a_partial_context_can_report_and_nothing_else() -> None:
    problems: list[str] = []

    class Params(BaseModel):
        text: str

    class Eager(Tool[Params, str], name="eager", effect=READ, secrets=()):
        def on_partial(self, partial: Any, ctx: Context) -> None:
            ctx.report(tip=f"{len(partial)} so far")
            for way in (lambda: ctx.call("other"), lambda: ctx.ask("act")):
                try:
                    way().send(None)
                except ToolError as error:
                    problems.append(str(error))

        async def execute(self, params: Params, ctx: Context) -> str:
            return "ran"

    box = Toolbox([Eager])
    stream = await box.open_call("eager", CallKey("r", 1, 0))
    stream.feed('{"text": "a"}')
    assert len(problems) == 2
    assert all("streaming" in problem for problem in problems)
    await stream.discard()


@pytest.mark.parametrize("pieces", [["{", "oops", "}"], ['{"n": 1} {"n": 2}'], ["\ud800"], ["["]])
async def test_streamed_text_that_is_no_json_ends_the_partial_view_quietly(
    ledger: Ledger, pieces: list[str]
) -> None:
    box = make_box(ledger)
    key = CallKey("r", 1, 0)
    stream = await box.open_call("look", key)
    for piece in pieces:
        stream.feed(piece)
    prepared = await box.prepare(ToolCall("look", "".join(pieces)), key=key, stream=stream)
    assert (await box.execute(prepared)).code == "invalid_arguments"


async def test_an_on_partial_that_raises_harms_nothing() -> None:
    class Params(BaseModel):
        text: str

    class Bad(Tool[Params, str], name="bad", effect=READ, secrets=()):
        def on_partial(self, partial: Any, ctx: Context) -> None:
            raise RuntimeError("oops")

        async def execute(self, params: Params, ctx: Context) -> str:
            return "ran"

    box = Toolbox([Bad])
    key = CallKey("r", 1, 0)
    stream = await box.open_call("bad", key)
    stream.feed('{"text": "a"}')
    assert (
        await box.execute(await box.prepare(ToolCall("bad", '{"text": "a"}'), key=key, stream=stream))
    ).text == "ran"


@pytest.mark.parametrize("name", ["add", "nobody", ""])
async def test_a_call_that_its_codec_could_not_read_is_answered_with_why(name: str) -> None:
    @tool(effect=Effect.READ, secrets=())
    def add(a: int = 0) -> int:
        "Add."
        return a

    box = Toolbox([add])
    result = await box.call(
        ToolCall(name, "", problem="its tag was never closed. Write the call again, whole")
    )
    known = {
        "add": 'The call of tool "add" could not be read: its tag was never closed',
        "": "The call could not",
    }
    assert known.get(name, 'Unknown tool "nobody"') in result.text
    assert result.is_error
