"""What a person is shown: one stream of events, and statuses that are folds over it."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib import Answer, Context, Effect, Retry, Toolbox, ToolCall, ToolError, Verdict
from toolcrib.audit import AuditLog
from toolcrib.call import CallKey, CallState
from toolcrib.events import (
    ArgumentsDelta,
    CallEvent,
    CallFinished,
    Event,
    QuestionAnswered,
    QuestionAsked,
    StatusBoard,
    StatusChanged,
    TextDelta,
    ToolStatus,
    event_to_dict,
)
from toolcrib.function import tool
from toolcrib.question import Question
from toolcrib.rules import Limit
from toolcrib.sink import EventLog, EventSink, Subscription

READ, WRITE = Effect.READ, Effect.WRITE
WAIT, DOING, SUCCESS, ERROR = CallState.WAIT, CallState.DOING, CallState.SUCCESS, CallState.ERROR
KEY = CallKey("run", 1, 0)


def make_box(**named: Any) -> Toolbox:
    async def good(ctx: Context, n: int = 1) -> str:
        ctx.report(tip="half way", progress=0.5, params={"seen": True})
        ctx.report(progress=0.9, result="preview")
        return str(n)

    async def bad() -> str:
        raise ToolError("no")

    async def slow() -> str:
        await asyncio.sleep(30)
        return ""

    async def write() -> str:
        return "wrote"

    return Toolbox(
        [
            tool(good, effect=READ, secrets=()),
            tool(bad, effect=READ, secrets=()),
            tool(slow, effect=READ, secrets=(), timeout=0.01),
            tool(write, effect=WRITE, secrets=()),
        ],
        **named,
    )


async def watched(box: Toolbox, work: Any) -> list[Event]:
    log = box.events()
    try:
        await work
    except asyncio.CancelledError:
        pass
    box.unsubscribe(log)
    return [event async for event in log]


def states(events: list[Event]) -> list[CallState]:
    """The states in the order they came, each once."""
    seen = [event.state for event in events if isinstance(event, CallEvent)]
    return [state for n, state in enumerate(seen) if n == 0 or seen[n - 1] is not state]


# -- the life of a call


@pytest.mark.parametrize(
    ("name", "arguments", "expected", "code"),
    [
        ("good", {}, [WAIT, DOING, SUCCESS], ""),
        ("bad", {}, [WAIT, DOING, ERROR], "tool_error"),
        ("slow", {}, [WAIT, DOING, ERROR], "timed_out"),
        ("good", {"n": "x"}, [WAIT, ERROR], "invalid_arguments"),
        ("write", {}, [WAIT, ERROR], "nobody_to_ask"),
        ("nope", {}, [WAIT, ERROR], "unknown_tool"),
    ],
)
@pytest.mark.parametrize("box", ["plain", "limits", "audit log", "secrets", "middleware"])
async def test_every_transition_is_reported_and_ends_once(
    name: str, arguments: Any, expected: list[CallState], code: str, box: str, tmp_path: Path
) -> None:
    made = make_box(**box_options(box, tmp_path))
    for key in (KEY, CallKey("run", 1, 1)):  # what was looked up for the first call is known for the second
        events = await watched(made, made.call(name, arguments, key=key))
        assert states(events) == expected
        terminal = [e for e in events if isinstance(e, CallEvent) and e.state.terminal]
        assert [(e.code, e.key) for e in terminal] == [(code, key)]
        assert sum(isinstance(e, CallFinished) for e in events) == 1
        status = StatusBoard(events).statuses[key]
        assert status.state is expected[-1]
        assert status.duration is not None and status.duration >= 0


def box_options(box: str, folder: Path) -> dict[str, Any]:
    class Store:
        def names(self) -> tuple[str, ...]:
            return ("KEY",)

        def get(self, name: str) -> str | None:
            return "hunter2-hunter3"

    async def step(ready: Any, go_on: Any) -> Any:
        return await go_on(ready)

    made: dict[str, dict[str, Any]] = {
        "plain": {},
        "limits": {"limits": [Limit(100)]},
        "audit log": {"audit": AuditLog(folder / "audit.jsonl", key=b"k" * 32)},
        "secrets": {"secrets": Store()},
        "middleware": {"around_execute": [step]},
    }
    return made[box]


async def test_a_call_that_waits_for_its_turn_is_told_of_before_it_begins(tmp_path: Path) -> None:
    """An audit log may take long to note a call: a person sees meanwhile that the call came."""
    noting, go_on = asyncio.Event(), asyncio.Event()

    class Slow(AuditLog):
        async def decided(self, *given: Any) -> str:
            noting.set()
            await go_on.wait()
            return await super().decided(*given)

    box = make_box(audit=Slow(tmp_path / "audit.jsonl", key=b"k" * 32))
    log = box.subscribe(EventLog())
    for _ in range(2):
        seen = len(log.events)
        call = asyncio.ensure_future(box.call("bad", {}))
        await noting.wait()
        assert states(log.events[seen:]) == [WAIT]
        go_on.set()
        await call
        noting.clear()
        go_on.clear()
    box.unsubscribe(log)


async def test_success_comes_only_after_the_result_is_recorded() -> None:
    order: list[str] = []

    class Listener:
        def put(self, event: Event) -> None:
            if isinstance(event, CallEvent) and event.state.terminal:
                order.append(event.state.value)

        def close(self) -> None: ...

    box = make_box(autonomy="full")
    box.sink.add(Listener())
    for name in ("good", "bad", "nope"):
        await box.call(name, {}, record=lambda key, result: order.append("recorded"))
    assert order == ["recorded", "success", "recorded", "error", "recorded", "error"]


async def test_what_a_tool_reports_goes_to_the_person_alone() -> None:
    box = make_box()
    log = EventLog()
    box.sink.add(log)
    result = await box.call("good", {}, key=KEY)
    status = StatusBoard(log.events).statuses[KEY]
    assert (status.tip, status.progress, status.result) == ("half way", 0.9, "preview")
    assert status.params["seen"] is True
    assert "half way" not in result.text and "preview" not in result.text


async def test_a_question_and_its_answer_are_told() -> None:
    async def approver(question: Any) -> Answer:
        return Answer(Verdict.NO, "not now", by="ann")

    for box, verdict in ((make_box(approver=approver), "no"), (make_box(), "")):
        events = await watched(box, box.call("write", {}, key=KEY))
        asked = [e for e in events if isinstance(e, QuestionAsked)]
        answered = [e for e in events if isinstance(e, QuestionAnswered)]
        assert [e.question.key for e in asked] == [KEY]
        assert [(e.key, e.verdict) for e in answered] == [(KEY, verdict)]


async def test_events_of_a_run_are_numbered_without_gaps() -> None:
    box = make_box()
    log = EventLog()
    box.sink.add(log)
    for run in ("one", "two"):
        await box.call_turn([ToolCall("good"), ToolCall("nope"), ToolCall("bad")], run=run)
    for run in ("one", "two"):
        assert [event.seq for event in log.events if event.run == run] == list(range(len(log.since(0, run))))
    assert log.since(5, "one")[0].seq == 5
    assert len(log.since(0)) == len(log.events)


async def test_nothing_is_built_while_nobody_listens() -> None:
    box = make_box()
    await box.call("good", {}, key=KEY)
    assert not box.sink
    log = EventLog()
    box.sink.add(log)
    await box.call("good", {}, key=KEY)
    assert log.events[0].seq == 0


async def test_every_event_is_plain_json_data() -> None:
    async def approver(question: Any) -> Answer:
        return Answer(Verdict.YES)

    async def parts() -> AsyncIterator[Any]:
        yield {"n": 1}
        yield {"n": {2}}

    async def flaky() -> str:
        raise ConnectionError

    box = make_box(approver=approver)
    box.add(tool(parts, effect=READ, secrets=()))
    box.add(tool(flaky, effect=READ, secrets=(), retry=Retry.idempotent_transport(delay=0.0)))
    log = EventLog()
    box.sink.add(log)
    for name, arguments in [("good", "{'n': 1}"), ("write", "{}"), ("nope", {}), ("flaky", {})]:
        await box.call(name, arguments, key=KEY)
    stream = await box.open_call("good", KEY)
    stream.feed('{"n": 1')
    await stream.discard()
    for event in log.events:
        data = event_to_dict(event)
        assert json.loads(json.dumps(data))["kind"] == event.kind
    assert {event.kind for event in log.events} >= {
        "status", "call_finished", "question_asked", "question_answered", "call_retried", "arguments_delta",
    } - {"arguments_delta"}  # fmt: skip


# -- the fold


@pytest.mark.parametrize(
    ("updates", "expected"),
    [
        ([{"params": {"a": 1, "o": {"x": 1}}}, {"params": {"b": 2, "o": {"y": 2}}}], {"params": {"a": 1, "b": 2, "o": {"y": 2}}}),
        ([{"result": {"a": 1}}, {"result": {"b": 2}}], {"result": {"b": 2}}),
        ([{"tip": "one", "progress": 0.1}, {}], {"tip": "one", "progress": 0.1}),
        ([{"tip": "one"}, {"tip": ""}], {"tip": ""}),
        ([{"progress": 0.9}, {"progress": 0.1}], {"progress": 0.1}),
        ([{"result": 0}, {"result": ""}], {"result": ""}),
    ],
)  # fmt: skip
def test_fields_accumulate_params_merge_results_replace(updates: list[dict[str, Any]], expected: Any) -> None:
    status = ToolStatus(KEY, "t")
    for update in updates:
        assert status.apply(StatusChanged(KEY, "t", DOING, **update))
    assert {name: getattr(status, name) for name in expected} == expected


@settings(deadline=None)
@given(
    updates=st.lists(
        st.tuples(
            st.sampled_from([WAIT, DOING, SUCCESS, ERROR]),
            st.dictionaries(st.sampled_from("abc"), st.integers()),
        )
    )
)
def test_a_terminal_state_refuses_whatever_comes_after(updates: list[Any]) -> None:
    status = ToolStatus(KEY, "t")
    ended: Any = None
    for state, params in updates:
        taken = status.apply(StatusChanged(KEY, "t", state, params=params))
        assert taken == (ended is None)
        if ended is not None:
            assert (status.state, dict(status.params)) == ended
        elif state.terminal:
            ended = (status.state, dict(status.params))


def test_a_board_keeps_calls_apart() -> None:
    other = CallKey("run", 1, 1)
    board = StatusBoard(
        [
            StatusChanged(KEY, "a", DOING, tip="one"),
            StatusChanged(other, "b", WAIT),
            StatusChanged(KEY, "a", SUCCESS),
        ]
    )
    assert {key: status.state for key, status in board.statuses.items()} == {KEY: SUCCESS, other: WAIT}


# -- listeners


@pytest.mark.promise(
    "faults.md", "A subscriber that raises, whatever it raises, is told further events, and delays nobody."
)
@pytest.mark.parametrize("kind", [RuntimeError, SystemExit, KeyboardInterrupt, asyncio.CancelledError])
async def test_a_slow_or_broken_subscriber_never_delays_or_breaks_a_call(
    kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    release = threading.Event()
    seen: list[Event] = []
    told: list[Event] = []

    def slow(event: Event) -> None:
        release.wait(20)
        seen.append(event)

    def broken(event: Event) -> None:
        told.append(event)
        raise kind("broken subscriber")

    class Raising:
        def put(self, event: Event) -> None:
            raise RuntimeError("broken listener")

        def close(self) -> None: ...

    box = make_box(on_event=slow)
    other = box.subscribe(broken)
    box.sink.add(Raising())
    log = EventLog()
    box.sink.add(log)
    for _ in range(20):
        assert (await box.call("good", {})).text == "1"
    assert seen == []  # twenty calls ended while it was stuck on the first event
    assert other.flush(5)
    assert told == log.events
    release.set()
    for _ in range(500):
        if len(seen) == len(log.events):
            break
        time.sleep(0.01)  # noqa: ASYNC251 - another thread is waited for
    assert len(seen) == len(log.events)
    assert caplog.text.count("an event subscriber raised") == 1


async def test_who_leaves_a_box_finds_every_event_delivered() -> None:
    seen: list[Event] = []

    def slow(event: Event) -> None:
        time.sleep(0.01)
        seen.append(event)

    box, log = make_box(on_event=slow), EventLog()
    box.sink.add(log)
    async with box:
        await box.call("good", {})
    assert len(seen) == len(log.events) > 0
    await box.call("good", {})
    await box.aclose()
    assert len(seen) == len(log.events)


async def test_a_subscriber_that_leaves_is_told_no_more() -> None:
    seen: list[Event] = []
    box = make_box()
    subscription = box.subscribe(seen.append)
    await box.call("good", {})
    assert subscription.flush(5)
    count = len(seen)
    box.unsubscribe(subscription)
    await box.call("good", {})
    assert not box.sink
    assert len(seen) == count > 0


async def test_deltas_are_joined_when_a_reader_is_slow_and_nothing_else_is_dropped() -> None:
    subscription = Subscription(limit=10)
    sink = EventSink(lambda: 0.0)
    sink.add(subscription)
    for n in range(1_000):
        sink.emit("r", TextDelta(f"{n},"))
        if n % 100 == 0:
            sink.emit("r", StatusChanged(KEY, "t", DOING, tip=str(n)))
    subscription.close()
    events = [event async for event in subscription]
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text == "".join(f"{n}," for n in range(1_000))
    assert [e.tip for e in events if isinstance(e, StatusChanged)] == [str(n) for n in range(0, 1_000, 100)]
    assert len(events) < 50
    assert [e.seq for e in events] == sorted(e.seq for e in events)


async def test_a_reader_in_another_thread_and_loop_gets_everything() -> None:
    box = make_box()
    subscription = box.events()
    seen: list[str] = []

    def read() -> None:
        async def main() -> None:
            async for event in subscription:
                seen.append(event.kind)  # noqa: PERF401

        asyncio.run(main())

    thread = threading.Thread(target=read)
    thread.start()
    for _ in range(20):
        await box.call("good", {})
    box.unsubscribe(subscription)
    await asyncio.to_thread(thread.join, 20)
    assert seen.count("call_finished") == 20


# -- arguments as they stream in


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
async def test_arguments_stream_as_paths_and_deltas(size: int) -> None:
    text = '{"text": "h\\u00e9llo", "n": 12, "list": [true, {"k": "v"}]}'
    box = make_box()
    log = EventLog()
    box.sink.add(log)
    stream = await box.open_call("good", KEY)
    for start in range(0, len(text), size):
        stream.feed(text[start : start + size])
    assert stream.partial == {"text": "héllo", "n": 12, "list": [True, {"k": "v"}]}
    await stream.discard()
    deltas = [event for event in log.events if isinstance(event, ArgumentsDelta)]
    grown: dict[Any, Any] = {}
    for event in deltas:
        if isinstance(event.delta, str) and not event.finished:
            grown[event.path] = grown.get(event.path, "") + event.delta
        else:
            grown[event.path] = event.delta
    assert grown == {("text",): "héllo", ("n",): 12, ("list", 0): True, ("list", 1, "k"): "v"}


async def test_nothing_is_ever_executed_from_a_partial() -> None:
    ran: list[int] = []

    def act(n: int = 1) -> str:
        ran.append(n)
        return ""

    box = Toolbox([tool(act, effect=READ, secrets=())])
    stream = await box.open_call("act", KEY)
    stream.feed('{"n": 5}')
    prepared = await box.prepare(ToolCall("act", '{"n": 7}'), key=KEY, stream=stream)
    await box.execute(prepared)
    assert ran == [7]


# -- spans


@pytest.fixture
def spans() -> Any:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    exporter.tracer = provider.get_tracer("test")  # type: ignore[attr-defined]
    return exporter


async def test_a_call_is_a_span_by_the_conventions(spans: Any) -> None:
    made = tool(
        lambda q: "found",
        name="find",
        effect=READ,
        secrets=(),
        version="2",
        description="Finds.",
        idempotent=True,
    )
    box = Toolbox([made], tracer=spans.tracer)
    await box.call(ToolCall("find", {"q": "secret-query"}, id="call_9"), key=KEY)
    (span,) = spans.get_finished_spans()
    assert span.name == "execute_tool find"
    assert {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "find",
        "gen_ai.tool.call.id": "call_9",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Finds.",
        "toolcrib.tool.version": "2",
        "toolcrib.tool.idempotent": True,
    }.items() <= dict(span.attributes).items()
    assert "secret-query" not in str(dict(span.attributes)) and "found" not in str(dict(span.attributes))
    assert span.status.is_ok or span.status.status_code.name == "UNSET"


async def test_contents_are_on_the_span_only_when_opted_in(spans: Any) -> None:
    made = tool(lambda q: "found", name="find", effect=READ, secrets=())
    await Toolbox([made], tracer=spans.tracer, record_content=True).call("find", {"q": "x"})
    attributes = dict(spans.get_finished_spans()[0].attributes)
    assert json.loads(attributes["gen_ai.tool.call.arguments"]) == {"q": "x"}
    assert attributes["gen_ai.tool.call.result"] == "found"


async def test_errors_and_retries_are_on_the_span(spans: Any) -> None:
    failures: list[Exception] = [ConnectionError("secret-host"), ConnectionError("secret-host")]

    async def flaky() -> str:
        if failures:
            raise failures.pop()
        raise ValueError("secret-token")

    made = tool(flaky, effect=READ, secrets=(), retry=Retry.idempotent_transport(delay=0.0))
    await Toolbox([made], tracer=spans.tracer).call("flaky", {})
    (span,) = spans.get_finished_spans()
    assert span.attributes["error.type"] == "failed"
    assert span.attributes["toolcrib.call.retries"] == 2
    assert span.status.status_code.name == "ERROR"
    everything = span.to_json()
    assert "secret-token" not in everything and "secret-host" not in everything


async def test_spans_of_inner_calls_are_children_and_end_in_every_way(spans: Any) -> None:
    async def inner() -> str:
        return ""

    async def outer(ctx: Context) -> str:
        await ctx.call("inner")
        await asyncio.sleep(30)
        return ""

    def thread(ctx: Context) -> str:
        ctx.run(ctx.call("inner"))
        return ""

    box = Toolbox([tool(f, effect=READ, secrets=()) for f in (inner, outer, thread)], tracer=spans.tracer)
    await box.call("outer", {}, timeout=0.05)
    await box.call("thread", {})
    by_name: dict[str, list[Any]] = {}
    for span in spans.get_finished_spans():
        by_name.setdefault(span.name.removeprefix("execute_tool "), []).append(span)
    parents = [span.parent.span_id if span.parent else None for span in by_name["inner"]]
    assert parents == [by_name["outer"][0].context.span_id, by_name["thread"][0].context.span_id]
    assert by_name["outer"][0].attributes["error.type"] == "timed_out"


def test_a_refused_call_has_its_span_too(spans: Any) -> None:
    """Not required; it says what is so, for those who count errors by span."""
    Toolbox([], tracer=spans.tracer).call_sync("nope", {})
    assert len(spans.get_finished_spans()) in (0, 1)


async def test_the_title_of_a_tool_reaches_statuses_questions_and_what_is_saved() -> None:
    def weigh(item: str) -> str:
        return "3 kg"

    asked: list[Question] = []

    def yes(question: Question) -> Answer:
        asked.append(question)
        return Answer(Verdict.YES)

    titled = tool(weigh, effect=Effect.WRITE, secrets=(), title="Weigh an item")
    plain = tool(weigh, effect=Effect.WRITE, secrets=(), name="plain")
    board = StatusBoard()
    box = Toolbox([titled, plain], approver=yes, on_event=board.apply)
    for name in ("weigh", "plain"):
        assert not (await box.call(name, {"item": "saw"})).is_error
    await box.sink.delivered()  # a function that listens is called on a thread of its own
    assert [status.title for status in board.statuses.values()] == ["Weigh an item", ""]
    assert [question.title for question in asked] == ["Weigh an item", ""]
    assert [question.heading for question in asked] == ['run weigh "Weigh an item"', "run plain"]
    assert asked[0].to_dict()["title"] == "Weigh an item"


async def test_what_a_run_leaves_unfinished_is_forgotten_with_it() -> None:
    """A call that was cut off while its arguments came, with a text that is held back and a report that goes on."""

    class Store:
        def names(self) -> tuple[str, ...]:
            return ("KEY",)

        def get(self, name: str) -> str:
            return "hunter2-hunter3"

    box = make_box(secrets=Store())
    box.subscribe(EventLog())
    for number in range(100):
        run = f"run {number}"
        key = CallKey(run, 1, 0)
        stream = await box.open_call("good", key)
        stream.feed('{"a": "hunter2-hun')
        box.emit(run, StatusChanged(key, "good", CallState.DOING, "hunter2-hun"))
        box.emit(run, TextDelta("hunter2-hun"))
        box.forget(run)
    events: Any = box.sink.mask
    assert events is not None and events._runs == {}


async def test_a_run_whose_name_has_slashes_is_not_within_another() -> None:
    """Runs are named by callers: who listens to "tenant" is told nothing of "tenant/a/b"."""
    box = make_box()
    heard = {run: box.events(run) for run in ("tenant", "tenant/a/b")}
    await box.call("good", {}, key=CallKey("tenant/a/b", 0, 0))
    told = {}
    for run, subscription in heard.items():
        box.unsubscribe(subscription)
        told[run] = {event.run async for event in subscription}
    assert told == {"tenant": set(), "tenant/a/b": {"tenant/a/b"}}
