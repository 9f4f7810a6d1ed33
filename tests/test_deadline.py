"""Deadlines are kept: what can be stopped is stopped, what will not stop is answered as of unknown outcome."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from toolcrib import Answer, Context, Effect, Retry, Toolbox, ToolError, Verdict
from toolcrib.call import CallKey
from toolcrib.errors import Cancelled
from toolcrib.events import CallFinished, CallRetried
from toolcrib.function import tool
from toolcrib.question import Question
from toolcrib.toolbox.policy import as_policy

READ, WRITE = Effect.READ, Effect.WRITE
SHORT = 0.03  # seconds


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Lets go, at the end of a test, of whatever still waits."""
    event = threading.Event()
    yield event
    event.set()


def box_of(*fns: Any, effect: Effect = READ, **named: Any) -> Toolbox:
    named.setdefault("grace", 0.1)
    return Toolbox([tool(fn, effect=effect, secrets=()) for fn in fns], autonomy="full", **named)


# -- async tools


@pytest.mark.promise(
    "faults.md",
    "Every call has a deadline (ten minutes unless you say otherwise), and exactly one result.",
)
async def test_an_async_tool_is_really_stopped() -> None:
    stopped: list[str] = []

    async def slow(ctx: Context) -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            stopped.append(f"cancelled={ctx.cancelled}")
            raise
        return "never"

    result = await box_of(slow).call("slow", {}, timeout=SHORT)
    assert result.code == "timed_out"
    assert stopped == ["cancelled=True"]


@pytest.mark.parametrize("person_only", [True, False])
@pytest.mark.parametrize("begin", [0, 1])
async def test_what_a_person_takes_to_give_a_permission_is_not_the_tools_time(
    begin: int, person_only: bool
) -> None:
    async def asks(ctx: Context) -> str:
        for _ in range(begin):
            await asyncio.sleep(0)
        asked = [ctx.ask(what, person_only=person_only) for what in ("one", "two")]
        await asyncio.gather(*asked)
        return "answered"

    async def hangs(ctx: Context) -> str:
        await ctx.ask("it", person_only=person_only)
        await asyncio.sleep(30)
        return "never"

    async def approver(question: Question) -> Answer:
        await asyncio.sleep(0.4 if question.action != "one" else 0.3)
        return Answer(Verdict.YES)

    box = box_of(asks, hangs, approver=approver)
    box.policy = as_policy("supervised")
    assert (await box.call("asks", {}, timeout=0.2)).text == "answered"
    assert (await box.call("hangs", {}, timeout=SHORT)).code == "timed_out"


@pytest.mark.parametrize("how", ["call", "call_all", "from a thread", "further within"])
async def test_what_a_person_takes_to_allow_a_call_is_not_the_time_of_the_tool_that_makes_it(
    how: str,
) -> None:
    @tool(effect=WRITE, secrets=())
    async def save() -> str:
        """Save."""
        return "saved"

    @tool(effect=READ, secrets=(), timeout=SHORT)
    async def calls(ctx: Context, inner: str = "save") -> str:
        """Call another tool."""
        result = await ctx.call(inner) if how != "call_all" else (await ctx.call_all([(inner, {})]))[0]
        return result.text

    @tool(effect=READ, secrets=(), timeout=SHORT)
    def waits(ctx: Context) -> str:
        """Call another tool from a thread."""
        return ctx.run(ctx.call("save")).text

    @tool(effect=READ, secrets=(), timeout=SHORT)
    async def hangs(ctx: Context) -> str:
        """Go on after the call."""
        await ctx.call("save")
        await asyncio.sleep(30)
        return "never"

    async def approver(question: Question) -> Answer:
        await asyncio.sleep(3 * SHORT)
        return Answer(Verdict.YES)

    box = Toolbox([save, calls, waits, hangs], approver=approver, grace=0.1)
    given = {"inner": "waits"} if how == "further within" else {}
    assert (await box.call("waits" if how == "from a thread" else "calls", given)).text == "saved"
    assert (await box.call("hangs", {})).code == "timed_out"
    assert not box._runs.clocks


async def test_a_tool_that_answers_while_it_is_being_stopped_keeps_its_answer() -> None:
    async def slow() -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return "half of it"
        return "never"

    result = await box_of(slow).call("slow", {}, timeout=SHORT)
    assert (result.text, result.code) == ("half of it", None)


async def test_a_tool_that_swallows_cancellation_is_answered_as_unknown() -> None:
    go_on = asyncio.Event()
    ended: list[str] = []

    async def stubborn() -> str:
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue
        ended.append("ended")
        return "late"

    box = box_of(stubborn, effect=WRITE)
    result = await box.call("stubborn", {}, timeout=SHORT)
    assert result.code == "outcome_unknown"
    assert ended == []
    go_on.set()
    assert (await box.call("stubborn", {})).text == "late"  # it waited for the first to end
    assert ended == ["ended", "ended"]


async def test_the_callers_own_timeout_is_the_callers() -> None:
    async def slow() -> str:
        await asyncio.sleep(30)
        return "never"

    box = box_of(slow)
    recorded: list[Any] = []
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(SHORT):
            await box.call("slow", {}, record=lambda key, result: recorded.append(result.code))
    assert recorded == ["cancelled"]


async def test_a_timeout_error_of_the_tool_is_a_failure_not_the_deadline() -> None:
    async def impatient() -> str:
        async with asyncio.timeout(SHORT):
            await asyncio.sleep(30)
        return "never"

    assert (await box_of(impatient).call("impatient", {})).code == "failed"


async def test_a_tool_that_never_waits_needs_no_time() -> None:
    async def quick() -> str:
        return "done"

    assert (await box_of(quick).call("quick", {}, timeout=1e-9)).text == "done"


@pytest.mark.parametrize(
    ("of_box", "of_tool", "of_call", "expected"),
    [
        (SHORT, None, None, "0.03"),
        (30.0, SHORT, None, "0.03"),
        (30.0, 30.0, SHORT, "0.03"),
        (0.001, 30.0, SHORT, "0.03"),
    ],
)
async def test_the_closest_timeout_holds(of_box: float, of_tool: Any, of_call: Any, expected: str) -> None:
    async def slow() -> str:
        await asyncio.sleep(30)
        return "never"

    box = Toolbox([tool(slow, effect=READ, secrets=(), timeout=of_tool)], timeout=of_box)
    result = await box.call("slow", {}, timeout=of_call)
    assert result.code == "timed_out"
    assert f"{expected} seconds" in result.text


@pytest.mark.promise(
    "faults.md",
    "Every call has a deadline (ten minutes unless you say otherwise), and exactly one result.",
)
def test_ten_minutes_are_the_default() -> None:
    assert Toolbox().timeout == 600.0


async def test_an_async_generator_is_stopped_and_closed() -> None:
    log: list[str] = []

    async def steps() -> AsyncIterator[str]:
        try:
            yield "one"
            await asyncio.sleep(30)
            yield "two"
        finally:
            log.append("closed")

    result = await box_of(steps).call("steps", {}, timeout=SHORT)
    assert result.code == "timed_out"
    assert log == ["closed"]


# -- threads


async def test_a_thread_that_looks_at_cancelled_is_stopped(release: threading.Event) -> None:
    def polite(ctx: Context) -> str:
        while not release.is_set():
            ctx.check_cancelled()
            release.wait(0.001)
        return "never"

    assert (await box_of(polite).call("polite", {}, timeout=SHORT)).code == "timed_out"


async def test_a_thread_that_returns_when_told_keeps_its_answer(release: threading.Event) -> None:
    def polite(ctx: Context) -> str:
        while not ctx.cancelled:
            release.wait(0.001)
        return "half of it"

    assert (await box_of(polite).call("polite", {}, timeout=SHORT)).text == "half of it"


@pytest.mark.promise(
    "faults.md",
    "A tool that does not stop is answered as `outcome_unknown`; what it holds stays locked until it ends.",
)
async def test_a_thread_that_will_not_stop_is_of_unknown_outcome(release: threading.Event) -> None:
    def deaf() -> str:
        release.wait(20)
        return "late"

    result = await box_of(deaf).call("deaf", {}, timeout=SHORT)
    assert result.code == "outcome_unknown"
    assert "Check the state" in result.text


async def test_a_sync_generator_is_stopped_between_its_steps(release: threading.Event) -> None:
    def steps() -> Iterator[int]:
        while True:
            yield 1
            release.wait(0.001)

    assert (await box_of(steps).call("steps", {}, timeout=SHORT)).code == "timed_out"


@pytest.mark.promise(
    "faults.md",
    "A tool that does not stop is answered as `outcome_unknown`; what it holds stays locked until it ends.",
)
async def test_what_a_straggler_holds_stays_locked_until_it_ends(release: threading.Event) -> None:
    ran: list[str] = []

    def deaf(path: str) -> str:
        if path == "/hold":
            release.wait(20)
        ran.append(path)
        return path

    def look(path: str) -> str:
        return "seen"

    def named(params: Any) -> list[str]:
        return [params["path"].split(":")[0]]

    box = Toolbox(
        [
            tool(deaf, effect=WRITE, secrets=(), resources=named),
            tool(look, effect=READ, secrets=(), resources=named),
        ],
        autonomy="full",
        grace=0.05,
    )
    assert (await box.call("deaf", {"path": "/hold"}, timeout=SHORT)).code == "outcome_unknown"
    blocked = await box.call("deaf", {"path": "/hold"})
    assert blocked.is_error and "was not run" in blocked.text
    assert (await box.call("look", {"path": "/hold"})).is_error  # a READ does not overtake a WRITE
    assert (await box.call("deaf", {"path": "/other"})).text == "/other"
    assert ran == ["/other"]
    release.set()
    for _ in range(100):
        if "/hold" in ran:
            break
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    assert (await box.call("look", {"path": "/hold"})).text == "seen"
    assert ran == ["/other", "/hold"]


# -- the end of the program


@pytest.mark.parametrize("error", [KeyboardInterrupt])  # SystemExit of a tool is a failure like others
@pytest.mark.parametrize("kind", ["async", "inline", "thread"])
async def test_the_end_of_the_program_is_recorded_and_goes_on(error: type[BaseException], kind: str) -> None:
    async def of_async() -> str:
        raise error

    def of_sync() -> str:
        raise error

    made = tool(
        of_async if kind == "async" else of_sync,
        name="t",
        effect=READ,
        secrets=(),
        inline=kind == "inline",
    )
    recorded: list[Any] = []
    work = Toolbox([made]).call("t", {}, record=lambda key, result: recorded.append(result.code))
    with pytest.raises(error):
        # Stepped by hand: a KeyboardInterrupt inside a task of pytest's loop would end the test run.
        await _stepped(work)
    assert recorded == ["failed"]


class _stepped:
    def __init__(self, coro: Any) -> None:
        self.coro = coro

    def __await__(self) -> Any:
        return (yield from self.coro.__await__())


# -- cancellation of the caller


@pytest.mark.parametrize("kind", ["async", "thread", "generator", "swallows"])
async def test_a_cancelled_caller_has_a_recorded_result_and_the_cancellation_goes_on(
    kind: str, release: threading.Event
) -> None:
    async def of_async() -> str:
        await asyncio.sleep(30)
        return "never"

    def of_thread(ctx: Context) -> str:
        while not release.is_set():
            ctx.check_cancelled()
            release.wait(0.001)
        return "never"

    async def of_generator() -> AsyncIterator[str]:
        yield "one"
        await asyncio.sleep(30)

    async def swallows() -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            pass
        return "done anyway"

    fn = {"async": of_async, "thread": of_thread, "generator": of_generator, "swallows": swallows}[kind]
    recorded: list[Any] = []
    box = box_of(fn)
    work = asyncio.create_task(box.call(fn.__name__, {}, record=lambda key, result: recorded.append(result)))
    await asyncio.sleep(SHORT)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert len(recorded) == 1
    assert (recorded[0].code, recorded[0].text)[kind == "swallows"] in ("cancelled", "done anyway")


async def test_a_call_that_is_cancelled_while_a_person_is_asked_is_recorded() -> None:
    async def approver(question: Any) -> Answer:
        await asyncio.sleep(30)
        return Answer(Verdict.YES)

    ran: list[int] = []

    def write() -> str:
        ran.append(1)
        return ""

    box = Toolbox([tool(write, effect=WRITE, secrets=())], approver=approver)
    recorded: list[Any] = []
    work = asyncio.create_task(box.call("write", {}, record=lambda key, result: recorded.append(result.code)))
    await asyncio.sleep(SHORT)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert recorded == ["cancelled"]
    assert ran == []


# -- retries


def flaky(failures: list[BaseException], **named: Any) -> tuple[Any, list[tuple[str, int]]]:
    attempts: list[tuple[str, int]] = []

    async def fetch(ctx: Context) -> str:
        attempts.append((ctx.idempotency_key, ctx.key.index))
        if failures:
            raise failures.pop(0)
        return "fetched"

    named.setdefault("retry", Retry.idempotent_transport(delay=0.0))
    return tool(fetch, effect=READ, secrets=(), **named), attempts


@pytest.mark.parametrize(
    ("failures", "attempts", "code"),
    [
        ([], 1, None),
        ([ConnectionError("x")], 2, None),
        ([TimeoutError("x"), ToolError("busy", transient=True)], 3, None),
        ([ConnectionError("x")] * 3, 3, "failed"),
        ([ToolError("busy", transient=True)] * 5, 3, "tool_error"),
        ([ToolError("no")], 1, "tool_error"),
        ([ValueError("no")], 1, "failed"),
        ([ConnectionError("x"), ValueError("no")], 2, "failed"),
    ],
)
async def test_transient_failures_are_tried_again_and_answered_once(
    failures: list[BaseException], attempts: int, code: Any
) -> None:
    fetch, made = flaky(list(failures))
    recorded: list[Any] = []
    box = Toolbox([fetch])
    result = await box.call("fetch", {}, record=lambda key, result: recorded.append(result))
    assert result.code == code
    assert len(made) == attempts
    assert len({key for key, _ in made}) == 1  # one idempotency key
    assert made[0][0]
    assert len(recorded) == 1
    stats = box.stats()["fetch"]
    assert (stats.calls, stats.retries) == (1, attempts - 1)


async def test_every_call_has_an_idempotency_key_of_its_own() -> None:
    fetch, made = flaky([])
    box = Toolbox([fetch])
    for index in range(3):
        await box.call("fetch", {}, key=CallKey("run", 1, index))
    await box.call("fetch", {})
    assert len({key for key, _ in made}) == 4


async def test_retries_share_one_deadline() -> None:
    async def hang() -> str:
        attempts.append(1)
        await asyncio.sleep(SHORT)
        raise ConnectionError

    attempts: list[int] = []
    retry = Retry.idempotent_transport(attempts=1_000, delay=0.0)
    box = Toolbox([tool(hang, effect=READ, secrets=(), retry=retry, timeout=SHORT * 4)])
    result = await box.call("hang", {})
    assert result.code == "timed_out"
    assert 1 < len(attempts) < 10


async def test_a_retry_is_visible_as_status_and_event() -> None:
    fetch, _ = flaky([ConnectionError("lost")])
    box = Toolbox([fetch])
    log = box.events()
    await box.call("fetch", {})
    box.unsubscribe(log)
    events = [event async for event in log]
    retried = [event for event in events if isinstance(event, CallRetried)]
    assert [(event.attempt, "lost" in event.problem) for event in retried] == [(1, True)]
    assert any("trying again" in (getattr(event, "tip", "") or "") for event in events)
    assert sum(isinstance(event, CallFinished) for event in events) == 1


@pytest.mark.parametrize(
    ("attempt", "error", "random", "expected"),
    [
        (1, ConnectionError(), 0.0, 0.2),
        (2, ConnectionError(), 0.0, 0.4),
        (3, ConnectionError(), 1.0, 0.8 * 0.7),
        (50, ConnectionError(), 0.0, 30.0),
        (1, ToolError("x", transient=True, retry_after=7), 0.5, 7.0),
        (1, ToolError("x", transient=True, retry_after=900), 0.5, 30.0),
        (1, ToolError("x", transient=True, retry_after=-5), 0.0, 0.2),
    ],
)
def test_delays_grow_and_are_capped(attempt: int, error: Exception, random: float, expected: float) -> None:
    assert Retry().delay_after(attempt, error, random) == pytest.approx(expected)


async def test_a_cancelled_wait_between_attempts_ends_the_call() -> None:
    fetch, made = flaky([ConnectionError("x")] * 9, retry=Retry.idempotent_transport(delay=30.0, jitter=0.0))
    recorded: list[Any] = []
    work = asyncio.create_task(
        Toolbox([fetch]).call("fetch", {}, record=lambda key, result: recorded.append(result.code))
    )
    await asyncio.sleep(SHORT)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert (recorded, len(made)) == (["cancelled"], 1)


async def test_a_thread_is_retried_too() -> None:
    failures: list[Exception] = [ConnectionError("x")]

    def fetch() -> str:
        if failures:
            raise failures.pop()
        return "fetched"

    box = Toolbox([tool(fetch, effect=READ, secrets=(), retry=Retry.idempotent_transport(delay=0.0))])
    assert (await box.call("fetch", {})).text == "fetched"


def test_check_cancelled_raises_only_when_cancelled() -> None:
    ctx = Context[None]()
    ctx.check_cancelled()
    ctx._cancelled = True
    with pytest.raises(Cancelled):
        ctx.check_cancelled()


# -- no loop, several loops, several threads


def test_call_sync_needs_no_loop_and_refuses_a_running_one() -> None:
    async def give() -> str:
        return "given"

    box = box_of(give)
    assert box.call_sync("give", {}).text == "given"

    async def inside() -> None:
        with pytest.raises(RuntimeError, match="already running"):
            box.call_sync("give", {})

    asyncio.run(inside())


def test_a_box_serves_several_threads_and_loops_at_once() -> None:
    async def of_async(n: int) -> int:
        await asyncio.sleep(0)
        return n

    def of_thread(n: int) -> int:
        return n

    box = box_of(of_async, of_thread)
    wrong: list[Any] = []

    def work(start: int, sync: bool) -> None:
        async def many() -> None:
            for n in range(start, start + 50):
                for name in ("of_async", "of_thread"):
                    result = await box.call(name, {"n": n})
                    if result.text != str(n):
                        wrong.append((name, n, result.text))

        if sync:
            for n in range(start, start + 50):
                for name in ("of_async", "of_thread"):
                    if box.call_sync(name, {"n": n}).text != str(n):
                        wrong.append((name, n))  # noqa: PERF401
        else:
            asyncio.run(many())

    threads = [threading.Thread(target=work, args=(n * 100, n % 2 == 0)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    stats = box.stats()
    assert (stats["of_async"].calls, stats["of_thread"].calls) == (300, 300)
