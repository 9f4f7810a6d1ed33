"""Closing the objects that were made for calls. A call has its result by then, and nothing here can change it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, Any

from toolcrib.errors import belongs_to_caller
from toolcrib.tool import Tool

if TYPE_CHECKING:
    from toolcrib.prepared import Ready
    from toolcrib.toolbox.registry import Entry

__all__ = ["close_all", "close_tool"]


async def close_tool(entry: Entry, tool: Any) -> None:
    """Close an object that was made for one call. What goes wrong is logged: the call has its result.

    It is closed in a task of its own, so that it is closed to the end if the caller is cancelled meanwhile, which is
    raised at once. It is given `entry.grace` seconds, and as long again to stop.
    """
    closing = getattr(tool, "aclose", None)
    if closing is None or getattr(type(tool), "aclose", None) is Tool.aclose:  # which does nothing
        return
    try:
        ended = closing()
    except BaseException as problem:
        if belongs_to_caller(problem):
            raise
        entry.log_failure("aclose")
        return
    if inspect.isawaitable(ended):
        import asyncio

        task = asyncio.get_running_loop().create_task(
            _closed(entry, ended), name=f"toolcrib close {entry.name}"
        )
        _closing.add(task)
        task.add_done_callback(_closing.discard)
        await asyncio.shield(task)


_closing: set[Any] = set()  # the loop itself keeps no task alive


async def _closed(entry: Entry, ended: Awaitable[Any]) -> None:
    from toolcrib.toolbox.foreign import ForeignCall  # it needs asyncio

    try:
        await ForeignCall(ended, entry.grace, entry.grace)
    except Exception:
        entry.log_failure("aclose")


async def close_all(executed: Iterable[Ready]) -> BaseException | None:
    """Close the objects that were made for these calls. Returns the caller's cancellation, if it came meanwhile."""
    to_raise: BaseException | None = None
    for ready in executed:
        if ready.tool.entry.owned:
            try:
                await close_tool(ready.tool.entry, ready.tool.instance)
            except BaseException as cancelled:  # the others are closed all the same
                to_raise = cancelled
    return to_raise
