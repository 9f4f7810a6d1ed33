"""Calls that did not stop when they were told to: what they touch stays locked until they really end."""

from __future__ import annotations

import time
from collections.abc import Callable

from toolcrib.prepared import Ready
from toolcrib.toolbox.resources import in_conflict, resources_of

POLL = 0.02  # seconds between two looks: what did not stop may belong to any thread or loop


class RunawayCalls:
    """The calls that were let go. False while there are none."""

    def __init__(self) -> None:
        self._held: list[tuple[Ready, Callable[[], bool]]] = []

    def __bool__(self) -> bool:
        return bool(self._held)

    def __contains__(self, ready: Ready) -> bool:
        return any(other is ready for other, _ in self._held)

    def add(self, ready: Ready, has_stopped: Callable[[], bool]) -> None:
        self._held.append((ready, has_stopped))

    async def gone(self, ready: Ready, seconds: float) -> bool:
        """Wait until none is left that touches what this call touches; False when it takes longer."""
        import asyncio

        touched = resources_of(ready)
        give_up = time.monotonic() + seconds
        while True:
            self._held = [(other, stopped) for other, stopped in self._held if not stopped()]
            if not any(
                in_conflict(ready.effect, touched, other.effect, resources_of(other))
                for other, _ in self._held
            ):
                return True
            if time.monotonic() >= give_up:
                return False
            await asyncio.sleep(POLL)
