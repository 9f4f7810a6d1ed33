"""Closing the objects that were made for calls. A call has its result by then, and nothing here can change it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from toolcrib.errors import belongs_to_caller

if TYPE_CHECKING:
    from toolcrib.prepared import Ready
    from toolcrib.toolbox.registry import Entry

__all__ = ["close_all", "close_tool"]


async def close_tool(entry: Entry, tool: Any) -> None:
    """Close an object that was made for one call. What goes wrong is logged: the call has its result.

    It is given `entry.grace` seconds, and as long again to stop. Only the caller's own cancellation is raised.
    """
    closing = getattr(tool, "aclose", None)
    if closing is None:
        return
    try:
        ended = closing()
        if inspect.isawaitable(ended):
            from toolcrib.toolbox.foreign import ForeignCall  # it needs asyncio

            await ForeignCall(ended, entry.grace, entry.grace)
    except BaseException as problem:
        if belongs_to_caller(problem):
            raise
        import logging

        logging.getLogger("toolcrib").exception("closing tool %s failed", entry.name)


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
