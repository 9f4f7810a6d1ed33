"""How often tools may run: only what ran counts, the window slides, and the model is told."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib import Effect, Toolbox, ToolCall, tool
from toolcrib.errors import ErrorCode
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


async def test_only_what_ran_counts() -> None:
    ran.clear()
    box = Toolbox([look], limits=RateLimits([Limit(1, ("look",))]))
    for arguments in ({"att": "x"}, {"at": 5, "b": 1}):
        assert (await box.call("look", arguments)).code is ErrorCode.INVALID_ARGUMENTS
    assert not (await box.call("look", {"at": "a"})).is_error
    assert (await box.call("look", {"at": "b"})).code is ErrorCode.RATE_LIMITED
    assert ran == ["a"]


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
