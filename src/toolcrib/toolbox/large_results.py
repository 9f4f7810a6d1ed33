"""Large results are encoded, masked and cut on a thread, so that the event loop goes on meanwhile.

`workers` is that one thread here: results are worked on one by one. Several threads would together take the interpreter
from the loop for longer, and as many times the memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any, Protocol, TypeVar, cast

from toolcrib.content import Media
from toolcrib.prepared import Ready
from toolcrib.result import ToolResult
from toolcrib.toolbox.threads import Workers

__all__ = ["LARGE", "on_thread", "shown_result", "size_of"]

T = TypeVar("T")

LARGE = 262_144  # characters above which a result is large


class Cancellable(Protocol):
    """An execution that waits for a thread; a cancellation that comes meanwhile is kept in it, to be raised later."""

    to_raise: BaseException | None


def size_of(result: ToolResult) -> int:
    """How many characters the parts of a result have."""
    return sum(len(part.data) if isinstance(part, Media) else len(part.as_text()) for part in result.parts)


def on_thread(
    workers: Workers, waiting: Cancellable, fn: Callable[..., T], *args: Any
) -> Generator[Any, Any, T]:
    """Run a function on the thread. The tool has ended, so its result is waited for even if the caller is cancelled."""
    job = workers.submit(fn, args, asyncio.get_running_loop())
    while not job.done:
        try:
            yield from job.wait().__await__()
        except asyncio.CancelledError as cancelled:
            waiting.to_raise = cancelled
    return cast("T", job.result())


async def shown_result(
    workers: Workers, shown: Callable[[Ready, ToolResult], ToolResult], ready: Ready, result: ToolResult
) -> ToolResult:
    """The value of `shown` for a step's result; for a large one, computed on the thread."""
    if size_of(result) <= LARGE:
        return shown(ready, result)
    job = workers.submit(shown, (ready, result), asyncio.get_running_loop())
    await job.wait()
    return cast("ToolResult", job.result())
