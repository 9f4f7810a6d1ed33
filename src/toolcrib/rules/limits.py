"""Limits how often tools may run: within a run, or within the last hour or another time."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcrib.errors import as_tuple
from toolcrib.rules.name_patterns import any_name_matches

__all__ = ["Limit", "RateLimits", "limit_from"]

HOUR = 3600.0
PER = {"run": None, "minute": 60.0, "hour": HOUR, "day": 24 * HOUR}
KEYS = ("tool", "calls", "per")


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `calls` calls of the tools (patterns of names; none: all tools together) in each run, or within
    `seconds`.

    The window slides: a call that ran longer ago than `seconds` no longer counts. TypeError if `tools` is a single
    text.
    """

    calls: int
    tools: tuple[str, ...] = ()
    seconds: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tools", as_tuple("tools", self.tools))
        if self.calls < 0 or (self.seconds is not None and self.seconds <= 0):
            raise ValueError(f"a limit is a number of calls and, if any, of seconds above 0; got {self}")

    def __str__(self) -> str:
        noun = "call" if self.calls == 1 else "calls"
        what = f"{noun} of {', '.join(self.tools)}" if self.tools else noun
        within = "in a run" if self.seconds is None else _per(self.seconds)
        return f"at most {self.calls} {what} {within}"


def limit_from(table: Any, tools: tuple[str, ...] = ()) -> Limit:
    """The limit in a `[[limit]]` table: `calls`, and `per` "run", "minute", "hour", "day" or seconds. Raises
    ValueError.

    >>> limit_from({"calls": 2, "per": "hour"}, ("shell",))
    Limit(calls=2, tools=('shell',), seconds=3600.0)
    """
    if unknown := sorted(set(table) - set(KEYS)):
        raise ValueError(f"unknown key {unknown[0]!r} in a limit; known are {', '.join(KEYS)}")
    calls, per = table.get("calls"), table.get("per", "run")
    if not isinstance(calls, int) or isinstance(calls, bool) or calls < 0:
        found = "is missing" if calls is None else f"got {calls!r}"
        raise ValueError(f"calls must be a number of calls, 0 or more; {found}")
    if isinstance(per, str) and per in PER:
        return Limit(calls, tools, PER[per])
    if isinstance(per, bool) or not isinstance(per, int | float) or not 0 < per < float("inf"):
        raise ValueError(f"per must be one of {', '.join(PER)}, or a number of seconds above 0; got {per!r}")
    return Limit(calls, tools, float(per))


@dataclass(slots=True)
class _Counted:
    runs: dict[str, int] = field(default_factory=dict)
    times: deque[float] = field(default_factory=deque)


class RateLimits:
    """Counts calls, and refuses those beyond a limit. Several toolboxes and threads may use the same counts.

    >>> limits = RateLimits([Limit(1, ("shell",), HOUR)], clock=lambda: 0.0)
    >>> limits.take("run", "shell"), limits.take("run", "shell"), limits.take("run", "grep")
    ('', 'at most 1 call of shell an hour; there is room again in 3600 seconds', '')
    """

    def __init__(
        self, limits: Iterable[Limit] | Limit, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = (limits,) if isinstance(limits, Limit) else tuple(limits)
        for limit in self.limits:
            if not isinstance(limit, Limit):
                raise TypeError(f"limits are a list of Limit, such as [Limit(5)]; got {limit!r} in it")
        self._clock = clock
        self._lock = threading.Lock()
        self._counted = [_Counted() for _ in self.limits]

    def take(self, run: str, tool: str) -> str:
        """Count a call that is about to run. If a limit is reached, count nothing and say which limit."""
        now = self._clock()
        with self._lock:
            counts = self._counts_of(tool)
            for limit, counted in counts:
                if why := _full(limit, counted, run, now):
                    return why
            for limit, counted in counts:
                if limit.seconds is None:
                    counted.runs[run] = counted.runs.get(run, 0) + 1
                else:
                    counted.times.append(now)
        return ""

    def give_back(self, run: str, tool: str) -> None:
        """Undo `take` for a call that did not run after all."""
        with self._lock:
            for limit, counted in self._counts_of(tool):
                if limit.seconds is None:
                    counted.runs[run] = max(0, counted.runs.get(run, 0) - 1)
                elif counted.times:
                    counted.times.pop()

    def resume(self, run: str, taken: Mapping[str, int]) -> None:
        """Count for the limits of a run what it took before it was saved, by tool."""
        with self._lock:
            for counted in self._counted:
                counted.runs.pop(run, None)
            for tool, calls in taken.items():
                for limit, counted in self._counts_of(tool):
                    if limit.seconds is None:
                        counted.runs[run] = counted.runs.get(run, 0) + calls

    def _counts_of(self, tool: str) -> list[tuple[Limit, _Counted]]:
        return [
            (limit, counted)
            for limit, counted in zip(self.limits, self._counted, strict=True)
            if not limit.tools or any_name_matches(limit.tools, tool)
        ]

    def forget(self, run: str) -> None:
        """Forget the counts of a run that is over."""
        with self._lock:
            for counted in self._counted:
                counted.runs.pop(run, None)


def _full(limit: Limit, counted: _Counted, run: str, now: float) -> str:
    if limit.seconds is None:
        return str(limit) if counted.runs.get(run, 0) >= limit.calls else ""
    while counted.times and counted.times[0] <= now - limit.seconds:
        counted.times.popleft()
    if len(counted.times) < limit.calls:
        return ""
    wait = counted.times[0] + limit.seconds - now if counted.times else limit.seconds
    return f"{limit}; there is room again in {wait:.0f} seconds"


def _per(seconds: float) -> str:
    named = {60.0: "a minute", HOUR: "an hour", 24 * HOUR: "a day"}
    return named.get(float(seconds), f"in {seconds:g} seconds")
