"""The order in which the calls of one turn have to run, as far as it matters."""

from __future__ import annotations

import asyncio

from toolcrib.effect import Effect
from toolcrib.toolbox.resources import Resources

__all__ = ["CallOrder", "Work"]

Work = asyncio.Task[bool]


class CallOrder:
    """Which earlier calls of a turn each call has to wait for.

    Two calls that only read run side by side; others keep their order if they may touch the same resource. An earlier
    call that another one already waits for is left out, so that a thousand calls are not compared in pairs.
    """

    def __init__(self) -> None:
        self._begin_after([])

    def _begin_after(self, barrier: list[Work]) -> None:
        self._barrier = barrier  # the last call that may change anything; every later call waits for it
        self._since: list[Work] = []  # all calls since then
        self._changing: list[Work] = []  # those that change something
        self._reading_any: list[Work] = []  # those that may read anything
        self._last_change: dict[str, Work] = {}  # by resource
        self._reads: dict[str, list[Work]] = {}  # by resource, since its last change

    def before(self, effect: Effect, touched: Resources) -> list[Work]:
        """The earlier calls that a call of this effect and these resources waits for."""
        reads = effect is Effect.READ
        if touched is None:
            found = self._changing if reads else self._since
        else:
            found = [self._last_change[name] for name in touched if name in self._last_change]
            if not reads:
                found += self._reading_any
                for name in touched:
                    found += self._reads.get(name, ())
        return list(dict.fromkeys(found)) or self._barrier

    def add(self, effect: Effect, touched: Resources, work: Work) -> None:
        """Add the next call, with its work."""
        if effect is not Effect.READ and touched is None:
            self._begin_after([work])
            return
        self._since.append(work)
        if effect is Effect.READ:
            if touched is None:
                self._reading_any.append(work)
            for name in touched or ():
                self._reads.setdefault(name, []).append(work)
            return
        self._changing.append(work)
        for name in touched or ():
            self._last_change[name] = work
            self._reads.pop(name, None)
