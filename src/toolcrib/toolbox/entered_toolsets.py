"""The lifespan of the toolsets in a toolbox."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from toolcrib.toolbox.operator_log import log_failure
from toolcrib.toolbox.registry import Registry

if TYPE_CHECKING:
    from concurrent.futures import Future
    from contextlib import AsyncExitStack

__all__ = ["EnteredToolsets"]


class EnteredToolsets:
    """The toolsets of a registry while they are entered; entered several times, they are left with the last.

    Tasks of several loops may enter at once. While one of them opens or closes the toolsets, the others wait for it.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._times = 0
        self._stack: AsyncExitStack | None = None
        self._lock = threading.Lock()
        self._change: Future[None] | None = None  # while the toolsets are being opened or closed

    async def enter(self) -> None:
        """Enter the toolsets, the first time. Raises what a toolset raises; whoever enters next tries again."""
        while True:
            with self._lock:
                change = self._change
                if change is None:
                    if self._times or not self._registry.toolsets:
                        self._times += 1
                        return
                    mine = self._begin_change()
                    break
            import asyncio

            await asyncio.shield(asyncio.wrap_future(change))
        try:
            self._stack = await self._opened()
            self._times = 1
        finally:
            self._end_change(mine)

    async def leave(self, before: Callable[[], Awaitable[None]]) -> None:
        """Leave the toolsets. The last `leave` awaits `before` and closes them. What fails or hangs is logged."""
        try:
            if self._times == 1:
                await before()
        finally:
            await self._leave()

    async def _leave(self) -> None:
        with self._lock:
            self._times -= 1
            if self._times or self._stack is None:
                return
            stack, self._stack = self._stack, None
            mine = self._begin_change()
        try:
            await self._close(stack)
        finally:
            self._end_change(mine)

    async def _opened(self) -> AsyncExitStack:
        from contextlib import AsyncExitStack

        from toolcrib.toolbox.foreign import ForeignCall

        stack = AsyncExitStack()
        try:
            for toolset in self._registry.toolsets:
                await ForeignCall(stack.enter_async_context(toolset), None, self._registry.grace)
        except BaseException:
            await self._close(stack)
            raise
        return stack

    async def _close(self, stack: AsyncExitStack) -> None:
        from toolcrib.toolbox.foreign import ForeignCall

        grace = self._registry.grace
        try:
            await ForeignCall(stack.aclose(), grace, grace)
        except Exception:
            log_failure("leaving a toolset failed", self._registry.mask)

    def _begin_change(self) -> Future[None]:
        from concurrent.futures import Future

        self._change = Future()
        return self._change

    def _end_change(self, mine: Future[None]) -> None:
        with self._lock:
            self._change = None
        mine.set_result(None)
