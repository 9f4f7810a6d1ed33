"""Deadlines that share a timer: each call is stopped at its own time, and what ended leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.virtual_time import VirtualLoop, run_virtually
from toolcrib import Effect, Toolbox, tool


@tool(effect=Effect.READ, secrets=())
async def wait(seconds: float) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "waited"


def scheduled() -> int:
    """How many timers the running loop has that were not cancelled."""
    loop: Any = asyncio.get_running_loop()
    return sum(not handle.cancelled() for handle in loop._scheduled)


TIMES = st.sampled_from([0.5, 1.0, 2.0, 3.5, 10.0])


@given(st.lists(st.tuples(TIMES, TIMES, TIMES, st.booleans()), max_size=12))
def test_each_call_ends_at_its_own_time(calls: list[tuple[float, float, float, bool]]) -> None:
    box = Toolbox([wait])

    async def one(begin: float, work: float, limit: float, cancelled: bool) -> tuple[str, float]:
        await asyncio.sleep(begin)
        # The limits differ a little, so that no call ends at the very time when it would be stopped.
        call = asyncio.ensure_future(box.call("wait", {"seconds": work}, timeout=limit + 0.125))
        if cancelled:
            asyncio.get_running_loop().call_later(0.25, call.cancel)
        try:
            result = await call
        except asyncio.CancelledError:
            return "cancelled", asyncio.get_running_loop().time() - begin
        return result.code or result.text, asyncio.get_running_loop().time() - begin

    async def all_of_them() -> list[tuple[str, float]]:
        return await asyncio.gather(*(one(*call) for call in calls))

    expected = [
        ("cancelled", 0.25)
        if cancelled
        else ("waited", work)
        if work < limit + 0.125
        else ("timed_out", limit + 0.125)
        for _, work, limit, cancelled in calls
    ]
    assert run_virtually(all_of_them()) == expected


def test_calls_that_wait_equally_long_share_a_timer() -> None:
    async def many() -> tuple[int, int]:
        box = Toolbox([wait])
        calls = [asyncio.ensure_future(box.call("wait", {"seconds": 5.0}, timeout=60.0)) for _ in range(50)]
        await asyncio.sleep(1.0)
        waiting = scheduled() - len(calls)  # the tools' own sleeps
        await asyncio.gather(*calls)
        return waiting, scheduled()

    assert run_virtually(many()) == (1, 1)


def test_limits_that_all_differ_leave_few_timers() -> None:
    async def many() -> int:
        box = Toolbox([wait])
        for number in range(300):
            await box.call("wait", {"seconds": 0.01}, timeout=1_000.0 + number)
        return scheduled()

    assert run_virtually(many()) < 100


def test_calls_with_limits_that_all_differ_are_stopped() -> None:
    async def many() -> tuple[set[str], list[Any], int]:
        broken: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: broken.append(context))
        box = Toolbox([wait])
        limits = [1.0 + number / 64 for number in range(100)]
        calls = [box.call("wait", {"seconds": 60.0}, timeout=limit) for limit in limits]
        results = await asyncio.gather(*calls)
        return {str(result.code) for result in results}, broken, scheduled()

    codes, broken, left = run_virtually(many())
    assert (codes, broken) == ({"timed_out"}, [])
    assert left <= 1  # that of the grace, which all of them shared


class Handle:
    """A handle as a loop of another library may have it: nothing but its methods."""

    __slots__ = ("_of",)
    _source_traceback = None

    def __init__(self, of: asyncio.TimerHandle) -> None:
        self._of = of

    def cancel(self) -> None:
        self._of.cancel()


class OtherLoop(VirtualLoop):
    def call_at(self, *args: Any, **named: Any) -> Any:  # type: ignore[override]
        return Handle(super().call_at(*args, **named))


def test_any_loop_will_do() -> None:
    async def both() -> list[Any]:
        box = Toolbox([wait])
        calls = [box.call("wait", {"seconds": seconds}, timeout=1.0) for seconds in (0.5, 60.0)]
        return [result.code or result.text for result in await asyncio.gather(*calls)]

    loop = OtherLoop()
    try:
        assert loop.run_until_complete(both()) == ["waited", "timed_out"]
    finally:
        loop.close()


def test_a_loop_that_ended_is_not_kept() -> None:
    loop = VirtualLoop()
    loop.run_until_complete(Toolbox([wait]).call("wait", {"seconds": 0.01}, timeout=3_600.0))
    loop.close()
    known = weakref.ref(loop)
    del loop
    gc.collect()
    assert known() is None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_loop_that_was_closed_while_a_call_waited_is_not_kept() -> None:
    async def begin(box: Toolbox[None]) -> None:
        call = asyncio.ensure_future(box.call("wait", {"seconds": 60.0}))
        call.get_loop().set_exception_handler(lambda loop, context: None)
        await asyncio.sleep(0.01)

    loop, box = VirtualLoop(), Toolbox([wait])
    loop.run_until_complete(begin(box))
    loop.close()
    known = weakref.ref(loop), weakref.ref(box)
    del loop, box
    gc.collect()
    assert [one() for one in known] == [None, None]
