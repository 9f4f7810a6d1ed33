"""How often tools may run: only what ran counts, the window slides, and the model is told."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Agent, Effect, Toolbox, ToolCall, tool
from toolcrib.agent import Budget
from toolcrib.errors import ErrorCode
from toolcrib.models import Scripted
from toolcrib.rules import Limit, RateLimits

ran: list[str] = []


@tool(effect=Effect.READ, secrets=())
def look(at: str = "") -> str:
    "Look."
    ran.append(at)
    return "seen"


@tool(effect=Effect.READ, secrets=())
def other() -> str:
    "Another."
    return "done"


async def test_a_limit_of_a_run() -> None:
    box = Toolbox([look, other], limits=RateLimits([Limit(2, ("look",))]))
    calls = [ToolCall("look"), ToolCall("look"), ToolCall("look"), ToolCall("other")]
    results = [(await box.call_turn([call], run="one", turn=turn))[0] for turn, call in enumerate(calls)]
    assert [result.code for result in results] == [None, None, ErrorCode.RATE_LIMITED, None]
    assert 'Tool "look" was not run: at most 2 calls of look in a run' in results[2].text
    assert not (await box.call_turn([ToolCall("look")], run="two", turn=0))[0].is_error
    box.forget("one")
    assert not (await box.call_turn([ToolCall("look")], run="one", turn=9))[0].is_error


@pytest.mark.promise("policy.md", "Calls that were refused, denied, invalid or not recorded do not count.")
async def test_only_what_ran_counts() -> None:
    ran.clear()
    box = Toolbox([look], limits=RateLimits([Limit(1, ("look",))]))
    for arguments in ({"att": "x"}, {"at": 5, "b": 1}):
        assert (await box.call("look", arguments)).code is ErrorCode.INVALID_ARGUMENTS
    assert not (await box.call("look", {"at": "a"})).is_error
    assert (await box.call("look", {"at": "b"})).code is ErrorCode.RATE_LIMITED
    assert ran == ["a"]


@pytest.mark.promise("policy.md", "The window slides")
def test_the_window_slides() -> None:
    now = [0.0]
    limits = RateLimits([Limit(2, seconds=60)], clock=lambda: now[0])
    said = []
    for second in (0, 30, 45, 59, 60, 61, 89, 90):
        now[0] = float(second)
        said.append(not limits.take("run", "any"))
    assert said == [True, True, False, False, True, False, False, True]


def test_what_is_refused_by_one_limit_counts_for_none() -> None:
    limits = RateLimits([Limit(1, ("a",)), Limit(2)])
    assert [limits.take("run", name) == "" for name in ("a", "a", "a", "b", "b")] == [
        True,
        False,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("limit", [{"calls": -1}, {"calls": 1, "seconds": 0}])
def test_a_limit_that_cannot_be(limit: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="a number of calls"):
        Limit(**limit)


async def test_limits_may_be_given_as_a_list() -> None:
    box = Toolbox([look, other], limits=[Limit(1, ["look"])])  # type: ignore[arg-type]
    assert [(await box.call(name)).code for name in ("look", "look", "other")] == [
        None,
        ErrorCode.RATE_LIMITED,
        None,
    ]


def test_one_string_is_no_list_of_tools() -> None:
    with pytest.raises(TypeError, match=r"tools is a list of names, got the string 'look': write \['look'\]"):
        Limit(1, "look")  # type: ignore[arg-type]


@pytest.mark.parametrize("limits", [["look"], [1], "look", 3])
def test_what_is_no_limit_is_refused_when_the_box_is_made(limits: Any) -> None:
    with pytest.raises(TypeError, match=r"Limit|iterable"):
        Toolbox([look], limits=limits)


@pytest.mark.promise("policy.md", "The window slides")
@given(
    st.integers(1, 400),
    st.lists(st.tuples(st.floats(0, 20), st.integers(1, 60), st.booleans()), max_size=60),
)
def test_no_window_holds_more_calls_than_the_limit_and_no_call_counts_much_longer(
    most: int, waits: list[tuple[float, int, bool]]
) -> None:
    now, seconds, ran = [0.0], 100.0, []
    limits = RateLimits(Limit(most, seconds=seconds), clock=lambda: now[0])
    for wait, calls, given_back in waits:
        now[0] += wait
        for _ in range(calls):
            in_window = [at for at in ran if at > now[0] - seconds]
            if not limits.take("run", "any"):
                assert len(in_window) < most
                ran.append(now[0])
            else:
                assert len([at for at in ran if at > now[0] - seconds * 1.01]) >= most
        if given_back and ran and ran[-1] == now[0]:
            limits.give_back("run", "any")
            ran.pop()


def test_what_is_remembered_of_a_window_does_not_grow_with_the_calls() -> None:
    now = [0.0]
    limits = RateLimits(Limit(10_000_000, seconds=3600), clock=lambda: now[0])

    def kept_after(calls: int) -> int:
        tracemalloc.start()
        for _ in range(calls):
            now[0] += 0.5
            limits.take("run", "any")
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return kept

    assert kept_after(7_200) < 20_000  # each moment once
    assert kept_after(20_000) < 20_000


def test_a_call_that_is_given_back_after_its_run_was_forgotten_leaves_nothing() -> None:
    limits = RateLimits(Limit(5))
    limits.take("run", "any")
    limits.forget("run")
    limits.give_back("run", "any")
    limits.resume("run", {"any": 4})
    assert [limits.take("run", "any") == "" for _ in range(2)] == [True, False]


@pytest.mark.promise(
    "faults.md",
    "Deadlines, budgets of seconds and limits of calls count time that passes, not the clock on the wall.",
)
async def test_the_clock_on_the_wall_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits, deadlines and budgets count seconds that pass, whatever the system's clock is set to."""
    wall = itertools.cycle([0.0, 4e9, 1e9])
    monkeypatch.setattr("time.time", lambda: next(wall))

    box = Toolbox([look], limits=[Limit(3, ("look",), 3600)])
    results = [await box.call("look", {}, timeout=30.0) for _ in range(6)]
    assert [result.is_error for result in results] == [False] * 3 + [True] * 3
    turns = [{"calls": [{"name": "look", "arguments": {}}]}] * 3
    outcome = await Agent(Scripted([*turns, "Done."]), [look], budget=Budget(seconds=60)).run("Go.")
    assert outcome.text == "Done."
