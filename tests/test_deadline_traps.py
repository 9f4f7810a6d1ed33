"""Traps of deadlines and cancellation: threads that wait, tools that do not stop."""

import asyncio
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from toolcrib import Context, Effect, Toolbox, ToolError
from toolcrib.function import tool
from toolcrib.sink import EventLog

READ, WRITE = Effect.READ, Effect.WRITE


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize("way", ["work", "call", "ask"])
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

    async def approver(question: Any) -> Any:
        await slow()

    def outer(ctx: Context) -> str:
        ctx.run({"work": slow, "call": lambda: ctx.call("slow"), "ask": lambda: ctx.ask("x")}[way]())  # type: ignore[operator]
        return "never"

    box = Toolbox(
        [
            tool(outer, effect=WRITE, secrets=(), effect_for=lambda params: READ),
            tool(slow, effect=READ, secrets=()),
        ],
        approver=approver,
        grace=0.3,
    )
    result = await box.call("outer", {}, timeout=0.03)
    assert result.code == "timed_out"
    assert stopped == ["stopped"]


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
