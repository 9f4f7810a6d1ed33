"""Code of users, wherever it is called: whatever it raises, and even if it never ends, a call has one true result and
a run one true outcome. A cancellation belongs to whoever asked for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from pydantic import BaseModel

from tests.cases import each
from toolcrib import Agent, Answer, Context, Effect, Tool, Toolbox, ToolCall, ToolFactory, Verdict, tool
from toolcrib.agent import Outcome, Reason
from toolcrib.audit import AuditLog
from toolcrib.messages import Message, Request, Response, Text
from toolcrib.question import Lasting, Preview, Question
from toolcrib.toolbox import Review
from toolcrib.toolset import StaticToolset

WRITE, READ = Effect.WRITE, Effect.READ
pytestmark = pytest.mark.filterwarnings("ignore:.*was set aside")


class NotAnError(BaseException):
    """Neither an Exception nor one of Python's own."""


RAISED: dict[str, Callable[[], BaseException]] = {
    "an exception": lambda: ValueError("x"),
    "a cancellation": asyncio.CancelledError,
    "a timeout": TimeoutError,
    "the end of the program": lambda: SystemExit(3),
    "another BaseException": NotAnError,
    "a generator's end": GeneratorExit,
    "an end of an iteration": StopAsyncIteration,
}


class Nothing(BaseModel):
    pass


class Behaviour:
    """What the code in one place does: raise, wait for ever, or answer its own cancellation with an error."""

    def __init__(self, place: str, what: Any) -> None:
        self.place = place
        self.what = what
        self.reached = asyncio.Event()
        self.did: list[str] = []
        self.listening: Any = None
        self.over = False  # the test is: what does not stop may stop now

    def __call__(self, place: str) -> None:
        """In code that cannot wait."""
        if place == self.place:
            self.reached.set()
            if callable(self.what):
                raise self.what()

    async def later(self, place: str) -> None:
        """In code that can."""
        self(place)
        if place != self.place:
            return
        if self.what == "waits":
            await asyncio.Event().wait()
        elif self.what == "turns its cancellation into an error":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ValueError("cancelled, it says") from None
        elif self.what == "swallows its cancellation":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return
        elif self.what == "does not stop":
            while True:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    if self.over:
                        raise


@tool(effect=READ, secrets=())
def look() -> str:
    return "looked"


class Mine(StaticToolset):
    def __init__(self, behaviour: Behaviour, tools: list[Any]) -> None:
        super().__init__(tools)
        self.behaviour = behaviour

    async def names(self) -> list[str]:
        await self.behaviour.later("toolset names")
        return await super().names()

    async def get(self, name: str) -> Any:
        await self.behaviour.later("toolset get")
        return await super().get(name)

    async def __aexit__(self, *exc: object) -> None:
        await self.behaviour.later("toolset exit")


class Model:
    """A model that asks for one call, with partial arguments, and then answers."""

    name = "mine"

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.asked = 0

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        from toolcrib.messages import CallChunk

        await self.behaviour.later("model")
        self.asked += 1
        if self.asked > 1:
            yield Response(Message("assistant", [Text("done")]))
            return
        yield CallChunk(0, "act", "c1", '{"text": ')
        yield CallChunk(0, "act", "c1", '"x"}', done=True)
        yield Response(Message("assistant", [ToolCall("act", '{"text": "x"}', "c1")]))


class Keeper:
    """A limiter, a store of approvals and a store of secrets, of somebody's own."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour

    def take(self, run: str, tool: str) -> str:
        self.behaviour("limiter take")
        return ""

    def give_back(self, run: str, tool: str) -> None:
        self.behaviour("limiter give back")

    def forget(self, run: str) -> None:
        self.behaviour("limiter forget")

    def all(self) -> list[Any]:
        self.behaviour("approvals read")
        return []

    def add(self, approval: Any) -> None:
        self.behaviour("approvals write")

    def names(self) -> list[str]:
        self.behaviour("secrets names")
        return ["KEY"]

    def get(self, name: str) -> str:
        self.behaviour("secrets get")
        return "a-secret-value"


class Spans(SpanProcessor):
    """Receives the spans of an application."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self.behaviour("span begins")

    def on_end(self, span: Any) -> None:
        self.behaviour("span ends")


class Meter:
    """A meter of somebody's own."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour

    def create_histogram(self, name: str, unit: str, **options: Any) -> Meter:
        return self

    def record(self, value: float, attributes: Any) -> None:
        self.behaviour("measure")


class Log(AuditLog):
    """An audit log of somebody's own."""

    behaviour: Behaviour

    async def decided(self, *args: Any) -> str:
        await self.behaviour.later("audit before")
        return ""

    def ended(self, *args: Any) -> None:
        self.behaviour("audit after")


def watching(behaviour: Behaviour) -> dict[str, Any]:
    """What measures and notes a call, and is not asked about it."""

    def clock(place: str) -> Callable[[], float]:
        def told() -> float:
            behaviour(place)
            return 0.0

        return told

    place, given = behaviour.place, {}
    if place.startswith("span"):
        provider = TracerProvider()
        provider.add_span_processor(Spans(behaviour))
        given["tracer"] = provider.get_tracer("theirs")
    elif place == "measure":
        given["meter"] = Meter(behaviour)
    elif place in ("clock", "timer"):
        given[place] = clock(place)
    elif place.startswith("audit"):
        given["audit"] = Log(Path("never-written"), key=b"k" * 32)
        given["audit"].behaviour = behaviour
    return given


def agent_with(behaviour: Behaviour) -> Agent[Any]:
    class Params(BaseModel):
        text: str

    class Act(Tool[Params, str], name="act", effect=WRITE, secrets=()):
        "Act."

        def __init__(self) -> None:
            behaviour.did.append("made")
            behaviour("constructor")

        def precheck(self, params: Params) -> str | None:
            behaviour("precheck")
            return None

        def preview(self, params: Params) -> Preview:
            behaviour("preview")
            return Preview("it acts")

        def on_partial(self, partial: Any, ctx: Any) -> None:
            behaviour("on_partial")

        async def execute(self, params: Params, ctx: Context[Any]) -> str:
            behaviour.did.append("acted")
            await behaviour.later("execute")
            return "acted"

        async def aclose(self) -> None:
            behaviour.did.append("closed")
            await behaviour.later("aclose")

    async def build(ctx: Any) -> Any:
        await behaviour.later("factory")
        return Act()

    async def described(ctx: Any) -> str:
        await behaviour.later("description")
        return "Look."

    @tool(effect=READ, secrets=(), dynamic_description=described)
    def look() -> str:
        return "looked"

    async def approver(question: Any) -> Answer:
        await behaviour.later("approver")
        return Answer(Verdict.ALWAYS, lasting=Lasting.USER)

    async def reviewer(request: Any) -> Review:
        await behaviour.later("reviewer")
        return Review(False, "let a person look")

    async def step(prepared: Any, next: Any) -> Any:
        await behaviour.later("middleware")
        return await next(prepared)

    async def instructions() -> str:
        await behaviour.later("instructions")
        return "be brief"

    act: Any = ToolFactory("act", build) if behaviour.place != "on_partial" else Act
    keeper = Keeper(behaviour)
    box = Toolbox(
        [Mine(behaviour, [act, look])],
        approver=approver,
        reviewer=reviewer,
        around_execute=[step],
        grace=0.03,
        timeout=5.0,
        limits=keeper,
        approvals=keeper,
        secrets=keeper,
        **watching(behaviour),
    )
    if behaviour.place == "listener":
        behaviour.listening = box.subscribe(lambda event: behaviour("listener"))
    return Agent(Model(behaviour), toolbox=box, instructions=instructions)


async def outcome_of(run: Any) -> Outcome | BaseException:
    try:
        return await run
    except BaseException as raised:
        return raised


def assert_true(behaviour: Behaviour, messages: list[Message]) -> None:
    """What the transcript says of the call is what happened, and each call has exactly one result."""
    calls = [call for message in messages for call in message.calls]
    results = [part for message in messages if message.role == "tool" for part in message.parts]
    assert len(calls) == len(results)
    if results and "acted" in behaviour.did and behaviour.place != "execute":
        assert "nothing was run" not in results[0].result.text, results[0].result.text  # type: ignore[union-attr]
        if behaviour.place == "aclose":
            assert results[0].result.text == "acted"  # type: ignore[union-attr]
    assert behaviour.did.count("closed") <= behaviour.did.count("made"), "an object was closed twice"


PLACES = [
    "model", "instructions", "toolset names", "toolset get", "toolset exit", "factory", "constructor", "description",
    "precheck", "preview", "on_partial", "reviewer", "approver", "middleware", "execute", "aclose", "listener",
    "limiter take", "limiter forget", "approvals read", "approvals write", "secrets names", "secrets get",
    "span begins", "span ends", "measure", "clock", "timer", "audit before", "audit after",
]  # fmt: skip
CAN_WAIT = [*PLACES[:4], "factory", "description", "reviewer", "approver", "middleware", "execute", "aclose"]
CAN_WAIT += ["audit before"]
ENDS_A_RUN = {
    "model": Reason.MODEL_ERROR,
    "instructions": Reason.FAILED,
}  # what cannot be answered as a call's result


@pytest.mark.promise(
    "faults.md",
    "Whatever code of yours raises, a run has its true outcome, and work that was done is recorded.",
)
@each("place, kind", [(place, kind) for place in PLACES for kind in RAISED])
async def test_whatever_is_raised_anywhere_ends_no_run_without_its_true_outcome(
    place: str, kind: str
) -> None:
    behaviour = Behaviour(place, RAISED[kind])
    logging.getLogger("toolcrib").setLevel(logging.CRITICAL)
    try:
        run = agent_with(behaviour).start("go")
        async with asyncio.timeout(10):
            ended = await outcome_of(run)
    finally:
        logging.getLogger("toolcrib").setLevel(logging.NOTSET)
    if behaviour.listening is not None:
        assert behaviour.listening.flush(5.0), "events are no longer handed over"
    assert behaviour.reached.is_set(), "the place was never reached"
    assert run.outcome is not None, f"no outcome; {ended!r}"
    assert run.outcome.reason is not Reason.CANCELLED, "nobody cancelled it"
    if place in ENDS_A_RUN:
        assert run.outcome.reason is ENDS_A_RUN[place]
    else:
        assert run.outcome.finished, run.outcome
        assert isinstance(ended, Outcome)
    assert not isinstance(ended, asyncio.CancelledError | SystemExit | GeneratorExit)
    if place.startswith(("approvals", "secrets", "span", "measure", "clock", "timer", "audit after")):
        assert "acted" in behaviour.did, "a person said yes"
    assert_true(behaviour, run.messages)


WAITS = ["waits", "turns its cancellation into an error", "swallows its cancellation", "does not stop"]


@each("place, what", [(place, what) for place in CAN_WAIT for what in WAITS])
async def test_a_run_that_is_cancelled_is_cancelled_wherever_it_waits(place: str, what: str) -> None:
    behaviour = Behaviour(place, what)
    logging.getLogger("toolcrib").setLevel(logging.CRITICAL)
    before = asyncio.all_tasks()
    try:
        run = agent_with(behaviour).start("go")
        waiting = asyncio.ensure_future(outcome_of(run))
        async with asyncio.timeout(10):
            await behaviour.reached.wait()
            await asyncio.sleep(0)
            run.cancel()
            ended = await waiting
    finally:
        logging.getLogger("toolcrib").setLevel(logging.NOTSET)
    assert isinstance(ended, Outcome), repr(ended)
    after_the_end = place == "toolset exit"  # by then the run had ended by itself
    assert ended.reason is (Reason.ANSWERED if after_the_end else Reason.CANCELLED), ended
    assert_true(behaviour, ended.messages)
    behaviour.over = True
    for task in asyncio.all_tasks() - before:  # what does not stop runs on, but in nobody's way
        task.cancel()


@each("place, what", [(place, what) for place in CAN_WAIT if place != "toolset exit" for what in WAITS])
async def test_the_timeout_of_a_caller_holds_wherever_a_run_waits(place: str, what: str) -> None:
    behaviour = Behaviour(place, what)
    logging.getLogger("toolcrib").setLevel(logging.CRITICAL)
    before = asyncio.all_tasks()
    try:
        run = agent_with(behaviour).start("go")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(None) as deadline:
                work = asyncio.current_task()
                assert work is not None

                async def expire() -> None:
                    await behaviour.reached.wait()
                    deadline.reschedule(asyncio.get_running_loop().time())

                expiring = asyncio.ensure_future(expire())
                await run
    finally:
        logging.getLogger("toolcrib").setLevel(logging.NOTSET)
    await expiring
    assert_true(behaviour, run.messages)
    behaviour.over = True
    for task in asyncio.all_tasks() - before:
        task.cancel()


@each("kind", list(RAISED))
async def test_what_an_audit_log_raises_before_a_call_is_the_failure_of_the_call(kind: str) -> None:
    behaviour = Behaviour("audit before", RAISED[kind])
    box = Toolbox([look], audit=watching(behaviour)["audit"])
    assert (await box.call("look", {})).is_error
    assert behaviour.reached.is_set()


@each("what", ["swallows its cancellation", "does not stop"])
async def test_an_audit_log_that_does_not_stop_is_let_go(what: str) -> None:
    behaviour = Behaviour("audit before", what)
    box = Toolbox([look], audit=watching(behaviour)["audit"], grace=0.03)
    call = asyncio.ensure_future(box.call("look", {}))
    await behaviour.reached.wait()
    await asyncio.sleep(0)
    call.cancel()
    ended, _ = await asyncio.wait([call], timeout=10)
    behaviour.over = True
    assert ended, "the call waits for its log"
    assert call.cancelled()


class HandsOn:
    """Hands on to an audit log whatever it is asked for."""

    def __init__(self, log: AuditLog) -> None:
        self.log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self.log, name)


async def test_an_object_that_hands_on_to_an_audit_log_is_a_log(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a.jsonl", key=b"k" * 32)
    audit: Any = HandsOn(log)
    assert (await Toolbox([look], audit=audit).call("look", {})).text == "looked"
    assert log.check().lines == 2


async def test_an_audit_log_whose_method_was_replaced_is_let_go(tmp_path: Path) -> None:
    behaviour = Behaviour("audit before", "does not stop")
    audit: Any = AuditLog(tmp_path / "a.jsonl", key=b"k" * 32)
    audit.decided = lambda *args: behaviour.later("audit before")
    call = asyncio.ensure_future(Toolbox([look], audit=audit, grace=0.03).call("look", {}))
    await behaviour.reached.wait()
    call.cancel()
    ended, _ = await asyncio.wait([call], timeout=2)
    behaviour.over = True
    assert ended, "the call waits for its log"


@pytest.mark.promise(
    "faults.md",
    "What a call did is recorded before the object that was made for it is closed. Closing "
    "goes on to its end, within the grace, if the caller is cancelled meanwhile.",
)
async def test_what_was_made_for_a_call_is_closed_to_the_end_although_the_call_is_cancelled() -> None:
    closing, closed = asyncio.Event(), asyncio.Event()

    class Act(Tool[Nothing, str], name="act", effect=WRITE, secrets=()):
        "Act."

        def execute(self, params: Nothing, ctx: Context[Any]) -> str:
            return "acted"

        async def aclose(self) -> None:
            closing.set()
            await asyncio.sleep(0.01)
            closed.set()

    call = asyncio.ensure_future(Toolbox([Act], autonomy="full").call("act", {}))
    await closing.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not closed.is_set()
    async with asyncio.timeout(5):
        await closed.wait()


@pytest.mark.promise(
    "faults.md",
    "Whatever code of yours raises, a run has its true outcome, and work that was done is recorded.",
)
@pytest.mark.promise(
    "faults.md",
    "What a call did is recorded before the object that was made for it is closed. Closing "
    "goes on to its end, within the grace, if the caller is cancelled meanwhile.",
)
async def test_work_that_was_done_is_recorded_although_closing_is_cancelled() -> None:
    """A bare call, without an agent: its result is in the audit and in the events, and the cancellation goes on."""
    behaviour = Behaviour("aclose", "waits")

    class Act(Tool[Nothing, str], name="act", effect=WRITE, secrets=()):
        "Act."

        def execute(self, params: Nothing, ctx: Context[Any]) -> str:
            behaviour.did.append("acted")
            return "acted"

        async def aclose(self) -> None:
            behaviour.did.append("closed")
            await behaviour.later("aclose")

    recorded: list[str] = []
    box = Toolbox([Act], autonomy="full", grace=0.03)
    box_call = asyncio.ensure_future(
        box.execute(
            await box.prepare(ToolCall("act", {})), record=lambda key, result: recorded.append(result.text)
        )
    )
    await behaviour.reached.wait()
    assert recorded == ["acted"]
    box_call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await box_call
    assert behaviour.did == ["acted", "closed"]
    assert box.stats()["act"].calls == 1


@each("kind", [*RAISED, "a number", "lists"])
async def test_a_tool_that_cannot_name_its_resources_waits_for_the_calls_before_it(kind: str) -> None:
    order: list[str] = []

    def named(given: Any) -> Any:
        if kind in RAISED:
            raise RAISED[kind]()
        return 5 if kind == "a number" else [[]]

    @tool(effect=WRITE, secrets=(), resources=named)
    async def act(n: int) -> str:
        order.append(f"begins {n}")
        await asyncio.sleep(0)
        order.append(f"ends {n}")
        return "acted"

    calls = [ToolCall("act", {"n": n}) for n in (1, 2)]
    results = await Toolbox([act], autonomy="full").call_turn(calls)
    assert [result.text for result in results] == ["acted", "acted"]
    assert order == ["begins 1", "ends 1", "begins 2", "ends 2"]


@each(
    "make", [Path, lambda name: [Path(name)], lambda name: name.encode(), lambda name: [name.encode()], str]
)
async def test_resources_may_be_named_by_paths_or_by_one_name(make: Any) -> None:
    order: list[str] = []

    @tool(effect=WRITE, secrets=(), resources=lambda given: make(given["path"]))
    async def act(path: str) -> str:
        order.append(f"begins {path}")
        await asyncio.sleep(0)
        order.append(f"ends {path}")
        return "acted"

    async def always(question: Question) -> Answer:
        return Answer(Verdict.ALWAYS)

    calls = [ToolCall("act", {"path": path}) for path in ("ab", "ba", "ab")]
    results = await Toolbox([act], autonomy="full").call_turn(calls)
    assert [result.text for result in results] == ["acted"] * 3
    assert order == ["begins ab", "begins ba", "ends ab", "ends ba", "begins ab", "ends ab"]
    assert (await Toolbox([act], approver=always).call("act", {"path": "ab"})).text == "acted"


@pytest.mark.parametrize("caught", [True, False])
async def test_a_task_group_that_fails_in_a_tool_cancels_nobody_else(caught: bool) -> None:
    """Before Python 3.13 such a group leaves its task cancelled, although nobody asked for that."""

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("x")

    async def group() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail())

    @tool(effect=READ, secrets=())
    async def act() -> str:
        if not caught:
            await group()
        try:
            await group()
        except* ValueError:
            pass
        return "went on"

    box = Toolbox([act])
    result = await box.call("act", {})
    assert result.text == "went on" if caught else result.code == "failed"
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0
    assert (await box.call("act", {})).is_error is not caught
