"""Traps of deadlines and cancellation: threads that wait, tools that do not stop."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.cases import each
from tests.virtual_time import run_virtually
from toolcrib import Context, Effect, Retry, Toolbox, ToolError
from toolcrib.function import tool
from toolcrib.sink import EventLog

READ, WRITE = Effect.READ, Effect.WRITE


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize("way", ["work", "call"])
async def test_what_a_thread_waits_for_through_its_context_stops_with_it(way: str) -> None:
    """The thread itself cannot look at ctx.cancelled while it waits; what it waits for can be stopped."""
    stopped: list[str] = []

    async def slow() -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            stopped.append("stopped")
            raise
        return ""

    def outer(ctx: Context) -> str:
        ctx.run(slow() if way == "work" else ctx.call("slow"))
        return "never"

    box = Toolbox(
        [
            tool(outer, effect=WRITE, secrets=(), effect_for=lambda params: READ),
            tool(slow, effect=READ, secrets=()),
        ],
        grace=0.3,
    )
    result = await box.call("outer", {}, timeout=0.03)
    assert result.code == "timed_out"
    assert stopped == ["stopped"]


async def test_a_question_that_a_thread_waits_for_stops_with_its_caller() -> None:
    asked, stopped = asyncio.Event(), asyncio.Event()

    async def approver(question: Any) -> Any:
        asked.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            stopped.set()
            raise

    def outer(ctx: Context) -> str:
        ctx.run(ctx.ask("x"))
        return "never"

    asks = tool(outer, effect=WRITE, secrets=(), effect_for=lambda params: READ)
    call = asyncio.ensure_future(Toolbox([asks], approver=approver, grace=0.3).call("outer", {}))
    await asked.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert stopped.is_set()


def test_what_a_straggler_holds_is_locked_for_other_loops_too(release: threading.Event) -> None:
    def hold() -> str:
        release.wait(20)
        return ""

    box = Toolbox([tool(hold, effect=WRITE, secrets=())], autonomy="full", grace=0.05)
    assert box.call_sync("hold", {}, timeout=0.03).code == "outcome_unknown"

    async def again() -> Any:
        return await box.call("hold", {}, timeout=0.03)

    result = asyncio.run(again())
    assert "was not run" in result.text


@pytest.fixture
def threads_left(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many threads the system starts yet; it begins with none."""
    left, start = [0], threading.Thread.start

    def start_if_left(thread: threading.Thread) -> None:
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_if_left)
    return left


@pytest.mark.promise(
    "faults.md", "Where the system has no thread left, the threads that there are do the work"
)
async def test_a_box_works_on_after_threads_could_not_be_started(threads_left: list[int]) -> None:
    def wait(seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    box = Toolbox([tool(wait, effect=READ, secrets=())])
    for _ in range(70):  # more than it has workers
        assert (await box.call("wait", {"seconds": 0})).code == "failed"
    threads_left[0] = 1
    results = await asyncio.gather(*(box.call("wait", {"seconds": 0.01}, timeout=20) for _ in range(8)))
    assert [result.code for result in results] == [None] * 8
    threads_left[0] = 2
    started = time.perf_counter()
    await asyncio.gather(*(box.call("wait", {"seconds": 0.2}, timeout=20) for _ in range(3)))
    assert threads_left == [0] and time.perf_counter() - started < 0.5


async def test_the_threads_of_a_toolbox_that_is_gone_end() -> None:
    """A server may make a toolbox for each request."""

    def look() -> str:
        seen.append(threading.current_thread())
        return "seen"

    seen: list[threading.Thread] = []
    for _ in range(20):
        await Toolbox([tool(look, effect=READ, secrets=())]).call("look", {})
    gc.collect()
    ends = time.monotonic() + 5  # without work they would end after 10 seconds
    for thread in seen:
        thread.join(max(0.0, ends - time.monotonic()))
    assert len(seen) == 20 and not any(thread.is_alive() for thread in seen)


@pytest.mark.promise("faults.md", "a call that finds none fails, and later ones run")
def test_a_call_without_a_loop_runs_after_its_thread_could_not_be_started(threads_left: list[int]) -> None:
    async def look() -> str:
        return "seen"

    box = Toolbox([tool(look, effect=READ, secrets=())])
    with pytest.raises(RuntimeError, match="can't start new thread"):
        box.call_sync("look", {})
    threads_left[0] = 1
    assert box.call_sync("look", {}).text == "seen"


@pytest.mark.promise("faults.md", "A call that waited for a thread in vain is never run later.")
async def test_a_call_that_waited_for_a_worker_in_vain_is_never_run(release: threading.Event) -> None:
    """Its result says that nothing was run, so nothing may run afterwards."""
    ran: list[str] = []

    def hold() -> str:
        release.wait(20)
        return ""

    def save(name: str) -> str:
        ran.append(name)
        return name

    box = Toolbox(
        [tool(hold, effect=READ, secrets=()), tool(save, effect=WRITE, secrets=())],
        autonomy="full",
        grace=0.05,
    )
    held = [asyncio.ensure_future(box.call("hold", {})) for _ in range(64)]
    await asyncio.sleep(0)
    late = await box.call("save", {"name": "late"}, timeout=0.02)
    assert late.code == "timed_out" and "was not run" in late.text
    waiting = asyncio.ensure_future(box.call("save", {"name": "cancelled"}))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    release.set()
    await asyncio.gather(*held)
    assert (await box.call("save", {"name": "next"})).text == "next"
    assert ran == ["next"]


async def test_a_coroutine_that_a_cancelled_sync_tool_returns_is_not_run(release: threading.Event) -> None:
    ran: list[str] = []

    async def later() -> str:
        ran.append("later")
        return ""

    def start(patient: bool) -> Any:
        release.wait(0.1 if patient else 20)
        return later()

    box = Toolbox([tool(start, effect=WRITE, secrets=())], autonomy="full", grace=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (await box.call("start", {"patient": True}, timeout=0.02)).code == "timed_out"
        assert (await box.call("start", {"patient": False}, timeout=0.02)).code == "outcome_unknown"
        release.set()
        await asyncio.sleep(0.02)
    assert ran == []


FORKED = """
import os, select, sys, time
from toolcrib import Effect, Toolbox, tool

@tool(effect=Effect.READ, secrets=())
def here() -> str:
    return str(os.getpid())

box = Toolbox([here])
assert box.call_sync("here", {}).text == str(os.getpid())
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.write(write, box.call_sync("here", {}).text.encode())
    os._exit(0)
ready, _, _ = select.select([read], [], [], 10)
said = os.read(read, 100).decode() if ready else "nothing"
os.kill(child, 9)
os.waitpid(child, 0)
print(said == str(child))
"""


@pytest.mark.promise(
    "faults.md", "A forked process has threads of its own, and does not wait for those of its parent."
)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=30)
    assert done.stdout == "True\n", done.stderr


async def test_what_outlives_its_call_reports_nothing_more(release: threading.Event) -> None:
    """A thread that did not stop, and a task that a tool left behind, speak of a call that has its result."""
    left: list[asyncio.Task[None]] = []
    said: list[str] = []
    spoken = threading.Event()

    def stubborn(ctx: Context) -> str:
        release.wait(20)
        ctx.report(tip="late")
        with pytest.raises(ToolError):
            ctx.run(ctx.call("leaves"))
        spoken.set()
        return ""

    async def leaves(ctx: Context) -> str:
        async def later() -> None:
            await asyncio.sleep(0.01)
            ctx.report(tip="late")
            with pytest.raises(ToolError):
                await ctx.call("leaves")
            said.append("refused")

        left.append(asyncio.create_task(later()))
        return "done"

    box = Toolbox(
        [tool(stubborn, effect=READ, secrets=()), tool(leaves, effect=READ, secrets=())], grace=0.02
    )
    log = box.subscribe(EventLog())
    assert (await box.call("stubborn", {}, timeout=0.02)).code == "outcome_unknown"
    assert (await box.call("leaves", {})).text == "done"
    ended = len(log.events)
    release.set()
    await asyncio.gather(*left)
    assert await asyncio.to_thread(spoken.wait, 10) and said == ["refused"]
    assert len(log.events) == ended


# -- timeouts and groups of a tool's own, on a clock that jumps. The grace is 5 s, the deadline of the call 60 s.


class Own:
    """What a tool does when something of its own cancels it: what follows the cancellation takes `after` seconds."""

    def __init__(self, after: float, *, stops: bool = True) -> None:
        self.after = after
        self.stops = stops
        self.seen: list[bool] = []  # what the context said of each cancellation
        self.ended = asyncio.Event()

    async def interrupted(self, ctx: Context) -> None:
        """Waits until it is cancelled, and then cleans up."""
        try:
            await asyncio.Event().wait()
        finally:
            self.seen.append(ctx.cancelled)
            await self.clean_up(ctx)

    async def clean_up(self, ctx: Context) -> None:
        if self.stops:
            await asyncio.sleep(self.after)
            return
        until = asyncio.get_running_loop().time() + self.after
        while (left := until - asyncio.get_running_loop().time()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                self.seen.append(ctx.cancelled)

    async def timeout(self, ctx: Context) -> str:
        try:
            async with asyncio.timeout(1):
                await self.interrupted(ctx)
        except TimeoutError:
            return "went on"
        finally:
            self.ended.set()
        return "never"

    async def caught(self, ctx: Context) -> str:
        try:
            async with asyncio.timeout(1):
                await asyncio.Event().wait()
        except TimeoutError:
            await self.clean_up(ctx)
        return "went on"

    async def within(self, ctx: Context) -> str:
        @asynccontextmanager
        async def limited() -> AsyncIterator[None]:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(asyncio.timeout(1))
                yield

        try:
            async with limited():
                await self.interrupted(ctx)
        except TimeoutError:
            return "went on"
        return "never"

    async def group(self, ctx: Context) -> str:
        async def fail() -> None:
            await asyncio.sleep(1)
            raise ValueError("x")

        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(fail())
                await self.interrupted(ctx)
        except* ValueError:
            pass
        return "went on"

    async def anyio(self, ctx: Context) -> str:
        with anyio.move_on_after(1):
            try:
                await anyio.sleep_forever()
            finally:
                self.seen.append(ctx.cancelled)
                with anyio.CancelScope(shield=True):
                    await self.clean_up(ctx)
        return "went on"

    async def inner(self, ctx: Context) -> str:
        return (await ctx.call("timeout")).text

    async def message(self, ctx: Context) -> str:
        task = asyncio.ensure_future(asyncio.sleep(30))
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            await self.clean_up(ctx)
        return "went on"

    async def retried(self, ctx: Context) -> str:
        return await self.timeout(ctx)

    async def later(self, ctx: Context) -> str:
        """A timeout that passes when the call has its answer already."""
        try:
            async with asyncio.timeout(100):
                await self.clean_up(ctx)
        finally:
            self.ended.set()
        return "never"

    def box(self) -> Toolbox:
        names = ["timeout", "caught", "within", "group", "anyio", "inner", "message", "later"]
        tools = [tool(getattr(self, name), effect=READ, secrets=()) for name in names]
        tools.append(tool(self.retried, effect=READ, secrets=(), idempotent=True, retry=Retry(attempts=2)))
        return Toolbox(tools, timeout=60, grace=5)


@pytest.mark.promise(
    "faults.md",
    "A timeout or a task group of a tool's own cancels neither the call nor its caller, however long the tool takes to "
    "clean up.",
)
@each("name", ["timeout", "caught", "within", "group", "anyio", "inner", "message", "retried"])
def test_a_timeout_of_the_tools_own_takes_nothing_from_its_deadline(name: str) -> None:
    """What follows it takes longer than the grace, as the tool may: nobody told the call to stop."""

    async def called() -> tuple[str, int, list[bool]]:
        own = Own(20.0)
        task = asyncio.current_task()
        assert task is not None
        return (await own.box().call(name, {})).text, task.cancelling(), own.seen

    text, cancelling, seen = run_virtually(called())
    assert (text, cancelling) == ("went on", 0)
    assert not any(seen), "the context said that the call was cancelled"


@pytest.mark.promise(
    "faults.md",
    "A timeout or a task group of a tool's own cancels neither the call nor its caller, however long the tool takes to "
    "clean up.",
)
@each(
    "name, stops, code",
    [
        ("timeout", True, "timed_out"),
        ("within", True, "timed_out"),
        ("timeout", False, "outcome_unknown"),
        ("within", False, "outcome_unknown"),
        ("group", False, "outcome_unknown"),
        ("anyio", False, "outcome_unknown"),
        ("inner", False, "outcome_unknown"),
        ("later", False, "outcome_unknown"),
        ("retried", False, "outcome_unknown"),
    ],
)
def test_a_clean_up_that_outlasts_the_deadline_is_a_result_and_cancels_nobody(
    name: str, stops: bool, code: str
) -> None:
    async def called() -> tuple[str | None, float, int, int]:
        own = Own(200.0, stops=stops)
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        result = await own.box().call(name, {})
        ended, cancelling = loop.time(), task.cancelling()
        await asyncio.sleep(400)  # what was let go goes on, and cancels whoever it runs in, not its caller
        return result.code, ended, cancelling, task.cancelling()

    found, ended, *cancelling = run_virtually(called())
    assert (found, cancelling) == (code, [0, 0])
    assert ended == pytest.approx(60 if stops else 65, abs=6)


@each("name", ["timeout", "within", "group", "anyio", "inner"])
def test_the_callers_cancellation_reaches_a_tool_that_a_timeout_of_its_own_has_cancelled(name: str) -> None:
    async def called() -> tuple[bool, float]:
        own = Own(200.0, stops=False)
        loop = asyncio.get_running_loop()
        call = asyncio.ensure_future(own.box().call(name, {}))
        await asyncio.sleep(2)
        call.cancel()
        await asyncio.wait([call])
        return call.cancelled(), loop.time()

    cancelled, ended = run_virtually(called())
    assert cancelled
    assert ended == pytest.approx(7, abs=6)
