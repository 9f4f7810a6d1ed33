"""An event loop whose clock jumps: it never waits, and a minute of waiting passes at once."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Jumping(selectors.DefaultSelector):
    """A selector that does not wait for a timeout, but counts it."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0 if timeout is not None else None)
        if not ready and timeout:
            self.passed += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on which time passes only by waiting."""

    def __init__(self) -> None:
        self.selector = Jumping()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.selector.passed

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Waits for threads without a timeout: on this clock, it would pass at once."""
        await super().shutdown_default_executor()


def run_virtually(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine without any real waiting."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
