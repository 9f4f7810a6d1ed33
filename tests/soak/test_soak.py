"""A toolbox under load for a while: one result for each call, events without a gap, and nothing that stays behind.

It takes half a minute; `python3 dev.py soak 3600` lets it go on for an hour.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.soak.account import Held, Memory, growth, steady_allocator
from tests.soak.workload import KINDS, Objects, Workload
from toolcrib import Agent, Toolbox
from toolcrib.agent import Budget, Outcome
from toolcrib.mending import mend
from toolcrib.toolbox import threads

pytestmark = pytest.mark.slow

SECONDS = float(os.environ.get("SOAK_SECONDS", "14"))
ROUNDS = 8
MORE_ROUNDS = 24  # while the process seems to grow: a leak goes on, a heap that only settles does not
WARM_UP = 2  # rounds that do not count: caches fill, and threads are started
RESIDENT, BLOCKS = 5.0, 20.0  # by which 1,000 calls may grow: KiB of the process, objects of the interpreter
NOISE = 8_192  # KiB by which a process grows and shrinks anyway, above all one that ran other tests before
NOISE_BLOCKS = 1_000  # objects, likewise; a leak of one for each call would be ten times as much
STORM = 0.25  # of the time


@pytest.fixture(autouse=True)
def nothing_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Threads, descriptors and temporary files are at the end what they were at the beginning."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(threads, "IDLE", 0.2)
    steady_allocator()
    monkeypatch.setattr(logging.getLogger("toolcrib"), "disabled", True)  # pytest keeps all that is logged
    before = Held()
    yield
    until = time.monotonic() + 15
    while Held().beyond(before) and time.monotonic() < until:
        time.sleep(0.05)
    assert Held().beyond(before) == {}


def remembered(box: Toolbox[Any]) -> dict[str, Any]:
    """What a toolbox remembers of runs."""
    runs = {name: kept for name, kept in vars(box._runs).items() if name != "_sink"}
    listeners = box.sink._of_runs.by_run
    found = {**runs, "numbers": box.sink._seq, "parents": box.sink.parents, "listeners": listeners}
    return {name: kept for name, kept in found.items() if kept}


def grew_too_much(counted: list[Memory]) -> bool:
    """Whether the process grew by more than a process does anyway."""
    thousands = (counted[-1].calls - counted[0].calls) / 1_000
    return growth(counted, "resident") >= RESIDENT * thousands + NOISE


def test_calls_of_every_kind_from_many_threads(tmp_path: Path) -> None:
    overflow = tmp_path / "overflow"
    overflow.mkdir()
    load = Workload(overflow)
    measured = [load.round(SECONDS / ROUNDS) for _ in range(ROUNDS)]
    while grew_too_much(measured[WARM_UP:]) and len(measured) < ROUNDS + MORE_ROUNDS:
        measured.append(load.round(SECONDS / ROUNDS))
    overflow.rmdir()
    asyncio.run(load.box.aclose())

    assert load.broken == []
    assert load.calls.wrong == []
    assert load.events.wrong == []
    assert set(load.calls.kinds) == {kind for kind, *_ in KINDS}
    assert {name: one.calls for name, one in load.box.stats().items()} == dict(load.events.finished)
    assert (load.events.open_runs, remembered(load.box)) == (0, {})
    assert Objects.made == Objects.closed
    counted = measured[WARM_UP:]
    thousands = (counted[-1].calls - counted[0].calls) / 1_000
    resident, blocks = growth(counted, "resident"), growth(counted, "blocks")
    print(
        f"{load.calls.count:,} calls, {load.runs:,} runs; in the last {thousands:.0f},000 calls the process grew by "
        f"{resident:,.0f} KiB and {blocks:,.0f} objects"
    )
    assert blocks < BLOCKS * thousands + NOISE_BLOCKS, measured
    assert not grew_too_much(counted), measured


# -- storms of cancellation

WAYS = ("cancel", "task", "timeout", "budget", "stream", "none")


async def stop(agent: Agent[Any], way: str, after: float) -> tuple[str, Outcome | None]:
    """One run that is stopped in a way of many, after some time; its name, and its outcome if the caller was given one."""
    run = agent.start("go")

    async def work() -> Outcome:
        if way == "stream":
            async for _ in run:
                await asyncio.sleep(0)
        return await run

    async def cancel() -> None:
        await asyncio.sleep(after)
        task.cancel() if way in ("task", "stream") else run.cancel()

    task = asyncio.ensure_future(asyncio.wait_for(work(), after) if way == "timeout" else work())
    stopping = asyncio.ensure_future(cancel()) if way in ("cancel", "task", "stream") else None
    given = (await asyncio.gather(task, return_exceptions=True))[0]
    if stopping is not None:
        await stopping
    run.cancel()  # of a stream that was left alone
    await asyncio.gather(run, return_exceptions=True)
    assert isinstance(given, Outcome | asyncio.CancelledError | TimeoutError), (way, given)
    if isinstance(given, Outcome):
        assert given is run.outcome, way
    return way, run.outcome


async def storm(agents: dict[str, Agent[Any]], dice: random.Random, runs: int) -> list[str]:
    """Runs side by side that are all stopped; what is wrong with their outcomes."""
    ways = [dice.choice(WAYS) for _ in range(runs)]
    stopped = await asyncio.gather(*(stop(agents[way], way, dice.random() * 0.05) for way in ways))
    wrong = [f"{way} has no outcome" for way, outcome in stopped if outcome is None]
    for way, outcome in stopped:
        notes = mend(outcome.messages)[1] if outcome is not None else ()
        wrong += [f"{way}: {note}" for note in notes]
    await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    return [*wrong, *(f"the task {task!r} is left" for task in left)]


def test_storms_of_cancellation_over_agents(tmp_path: Path) -> None:
    load = Workload(tmp_path)
    agents = dict.fromkeys(WAYS, load.agent)
    budget = Budget(seconds=0.02)
    agents["budget"] = Agent(load.agent.model, toolbox=load.box, budget=budget)
    until, dice, runs, wrong = time.monotonic() + SECONDS * STORM, random.Random(1), 0, []
    while time.monotonic() < until and not wrong:
        wrong = asyncio.run(storm(agents, dice, 50))
        runs += 50
    asyncio.run(load.box.aclose())
    assert wrong == []
    assert load.events.wrong == []
    assert {name: one.calls for name, one in load.box.stats().items()} == dict(load.events.finished)
    assert remembered(load.box) == {}
    print(f"{runs:,} runs were stopped")


@pytest.mark.parametrize("way", ["run", "stream", "waiting"])
def test_runs_one_after_another_leave_nothing(way: str, tmp_path: Path) -> None:
    load = Workload(tmp_path)
    load.box.unsubscribe(load.events)

    async def one() -> None:
        if way == "run":
            await load.agent.run("go")
        elif way == "stream":
            async for _ in load.agent.stream("go"):
                pass
        else:
            waits = await load.waiting.run("go")
            await load.waiting.resume(waits, {question.id: "yes" for question in waits.questions})

    def many() -> Memory:
        runs, until = 0, time.monotonic() + SECONDS / 12
        while time.monotonic() < until:
            asyncio.run(one())
            runs += 1
        return Memory.after(runs)

    many()
    before, after = many(), many()
    assert (remembered(load.box), remembered(load.waiting.toolbox)) == ({}, {})
    assert after.blocks - before.blocks < 100 + after.calls / 2, (before, after)
    print(f"{after.calls:,} runs: {after.blocks - before.blocks} more objects")
