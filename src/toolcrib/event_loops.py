"""Work in the event loop that something belongs to, which may be another thread's."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

__all__ = ["in_loop"]

T = TypeVar("T")


async def in_loop(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Do work in a loop that may be another thread's; in this one, if that loop is closed."""
    import asyncio

    if loop is asyncio.get_running_loop() or loop.is_closed():
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))
