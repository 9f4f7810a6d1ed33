"""Which cancellations of a task were asked for by an `asyncio.TaskGroup` inside of it.

When a task of a group fails while the group waits for its tasks at its end, the group cancels the task that it
stands in.
Before Python 3.13 it does not take that back, so the task counts as cancelled for good although nobody cancelled it.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

__all__ = ["cancelled_by_task_group"]

AT_ITS_END = asyncio.TaskGroup.__aexit__.__code__
DEEPEST = 1_000  # awaits within awaits that are looked through


def cancelled_by_task_group(work: Any) -> bool:
    """Whether the cancellation that a waiting coroutine is about to get comes from a group at whose end it waits."""
    if sys.version_info >= (3, 13):
        return False
    for _ in range(DEEPEST):
        frame = (
            getattr(work, "cr_frame", None)
            or getattr(work, "gi_frame", None)
            or getattr(work, "ag_frame", None)
        )
        if frame is not None and frame.f_code is AT_ITS_END:
            group = frame.f_locals.get("self")
            if getattr(group, "_parent_cancel_requested", False):
                return True
        inner = [getattr(work, name, None) for name in ("cr_await", "gi_yieldfrom", "ag_await")]
        work = next((awaited for awaited in inner if awaited is not None), None)
        if work is None:
            return False
    return False
