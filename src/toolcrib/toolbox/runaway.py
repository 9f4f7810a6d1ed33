"""Runaway calls were told to stop and did not. What they touch stays locked until they really end."""

from __future__ import annotations

import time
from collections.abc import Callable

from toolcrib.prepared import Ready
from toolcrib.toolbox.resources import in_conflict, resources_of

__all__ = ["RunawayCalls"]

POLL = 0.02  # seconds between two looks: what did not stop may belong to any thread or loop


class RunawayCalls:
    """The `calls` that nobody waits for any more and that still run, each with a function that says if it has ended."""

    def __init__(self) -> None:
        self.calls: list[tuple[Ready, Callable[[], bool]]] = []

    def ended(self, *calls: Ready) -> list[Ready]:
        """Those of the calls that have really ended."""
        return [ready for ready in calls if all(other is not ready for other, _ in self.calls)]

    def add(self, ready: Ready, has_stopped: Callable[[], bool]) -> None:
        self.calls.append((ready, has_stopped))

    async def gone(self, ready: Ready, seconds: float) -> bool:
        """Wait until no runaway call touches what this call touches. False if that takes longer than `seconds`."""
        import asyncio

        touched = resources_of(ready)
        give_up = time.monotonic() + seconds
        while True:
            self.calls = [(other, stopped) for other, stopped in self.calls if not stopped()]
            if not any(
                in_conflict(ready.effect, touched, other.effect, resources_of(other))
                for other, _ in self.calls
            ):
                return True
            if time.monotonic() >= give_up:
                return False
            await asyncio.sleep(POLL)
