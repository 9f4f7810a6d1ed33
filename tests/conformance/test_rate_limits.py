"""The sequences that an hourly limit of actions is known to give."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.conftest import load_cases
from toolcrib.rules import Limit, RateLimits

CASES = [case for case in load_cases("cases/zeroclaw/rate_limit.json") if isinstance(case["expected"], list)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_limit_by_the_hour(case: dict[str, Any]) -> None:
    """People have limits of their own: a box each."""
    limit = Limit(case["input"]["max_actions_per_hour"], seconds=3600)
    of: dict[str, RateLimits] = {}
    used: dict[str, int] = {}
    for op, expected in zip(case["input"]["ops"], case["expected"], strict=True):
        what, _, who = op.partition("@")
        limits = of.setdefault(who, RateLimits([limit], clock=lambda: 0.0))
        if what == "record":
            ran = limits.take("run", "x") == ""
            used[who] = used.get(who, 0) + ran
            assert ran is expected
        elif what == "limited?":  # asked without running anything: full is full
            assert (used.get(who, 0) >= limit.calls) is expected
