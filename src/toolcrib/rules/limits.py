"""Limits how often tools may run: within a run, or within the last hour or another time."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolcrib.dataclass import dataclass
from toolcrib.errors import as_tuple
from toolcrib.rules.name_patterns import any_name_matches
from toolcrib.visible import counted

__all__ = ["Limit", "RateLimits", "limit_from"]

HOUR = 3600.0
PER = {"run": None, "minute": 60.0, "hour": HOUR, "day": 24 * HOUR}
KEYS = ("tool", "calls", "per")
MOMENTS = 100  # that a window is divided into, so that what is remembered does not grow with the calls


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `calls` calls of the tools (patterns of names; none: all tools together) in each run, or within
    `seconds`.

    The window slides: a call that ran longer ago than `seconds` no longer counts. Of a limit above 100 calls, those
    within a hundredth of the window count as one moment, their last: a call counts up to 1 % longer than `seconds`,
    never shorter. TypeError if `tools` is a single text.
    """

    calls: int
    tools: tuple[str, ...] = ()
    seconds: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tools", as_tuple("tools", self.tools))
        if not isinstance(self.calls, int) or not isinstance(self.seconds, int | float | None):
            raise TypeError(f"a limit is a number of calls and, if any, of seconds above 0; got {self!r}")
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
    if unknown := [repr(key) for key in table if key not in KEYS]:
        noun = "key" if len(unknown) == 1 else "keys"
        raise ValueError(f"unknown {noun} {', '.join(unknown)} in a limit; known are {', '.join(KEYS)}")
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
class _Moment:
    """Calls that leave the window together."""

    first: float
    last: float
    calls: int = 1


class _Counted:
    """The calls that count to one limit: by run, or by the moment in which they ran."""

    __slots__ = ("_moments", "in_window", "runs", "seconds", "width")

    def __init__(self, limit: Limit) -> None:
        self.runs: dict[str, int] = {}
        self.in_window = 0
        self.seconds = limit.seconds
        # A limit of a few calls remembers each of them, as it refuses further ones.
        self.width = 0.0 if self.seconds is None or limit.calls <= MOMENTS else self.seconds / MOMENTS
        self._moments: deque[_Moment] = deque()

    def add(self, run: str, now: float, calls: int = 1) -> None:
        if self.seconds is None:
            self.runs[run] = self.runs.get(run, 0) + calls
            return
        self.in_window += calls
        latest = self._moments[-1] if self._moments else None
        if latest is not None and now - latest.first < self.width:
            latest.last, latest.calls = max(latest.last, now), latest.calls + calls
        else:
            self._moments.append(_Moment(now, now, calls))

    def take_away(self, run: str) -> None:
        if self.seconds is None:
            if self.runs.get(run, 0) > 1:
                self.runs[run] -= 1
            else:  # a run that has been forgotten meanwhile is not counted again
                self.runs.pop(run, None)
        elif self._moments:
            self.in_window -= 1
            self._moments[-1].calls -= 1
            if not self._moments[-1].calls:
                self._moments.pop()

    def oldest(self, now: float) -> float | None:
        """When the oldest call ran that still counts; those before it are forgotten."""
        assert self.seconds is not None
        while self._moments and self._moments[0].last <= now - self.seconds:
            self.in_window -= self._moments.popleft().calls
        return self._moments[0].last if self._moments else None


class RateLimits:
    """Counts calls, and refuses those beyond a limit. Several toolboxes and threads may use the same counts.

    >>> limits = RateLimits([Limit(1, ("shell",), HOUR)], clock=lambda: 0.0)
    >>> limits.take("run", "shell"), limits.take("run", "shell"), limits.take("run", "grep")
    ('', 'at most 1 call of shell an hour; there is room again in 3,600 seconds', '')
    """

    def __init__(
        self, limits: Iterable[Limit] | Limit, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = tuple(limits) if isinstance(limits, Iterable) else (limits,)
        for limit in self.limits:
            if not isinstance(limit, Limit):
                raise TypeError(f"limits are a list of Limit, such as [Limit(5)]; got {limit!r}")
        self._clock = clock
        self._lock = threading.Lock()
        self._counted = [_Counted(limit) for limit in self.limits]

    def take(self, run: str, tool: str) -> str:
        """Count a call that is about to run. If a limit is reached, count nothing and say which limit."""
        now = self._clock()
        with self._lock:
            counts = self._counts_of(tool)
            for limit, counted in counts:
                if why := _full(limit, counted, run, now):
                    return why
            for _, counted in counts:
                counted.add(run, now)
        return ""

    def give_back(self, run: str, tool: str) -> None:
        """Undo `take` for a call that did not run after all."""
        with self._lock:
            for _, counted in self._counts_of(tool):
                counted.take_away(run)

    def resume(self, run: str, taken: Mapping[str, int]) -> None:
        """Count for the limits of a run what it took before it was saved, by tool."""
        with self._lock:
            for counted in self._counted:
                counted.runs.pop(run, None)
            for tool, calls in taken.items():
                for limit, counted in self._counts_of(tool):
                    if limit.seconds is None:
                        counted.add(run, 0.0, calls)

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


def _full(limit: Limit, calls: _Counted, run: str, now: float) -> str:
    if limit.seconds is None:
        return str(limit) if calls.runs.get(run, 0) >= limit.calls else ""
    oldest = calls.oldest(now)
    if calls.in_window < limit.calls:
        return ""
    wait = limit.seconds if oldest is None else oldest + limit.seconds - now
    return f"{limit}; there is room again in {counted(round(wait), 'second')}"


def _per(seconds: float) -> str:
    named = {60.0: "a minute", HOUR: "an hour", 24 * HOUR: "a day"}
    return named.get(float(seconds), f"in {counted(seconds, 'second')}")
