"""Running a call again after transient failures, as its tool declared."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from toolcrib.call import CallState
from toolcrib.context import Context
from toolcrib.errors import traceback_text
from toolcrib.events import CallRetried, StatusChanged
from toolcrib.prepared import Ready
from toolcrib.sink import EventSink
from toolcrib.toolbox import telemetry
from toolcrib.toolbox.deadline import NotStarted
from toolcrib.toolbox.stats import Statistics

__all__ = ["with_retries"]


class Reports(Protocol):
    """Where retries are counted and told; `toolcrib.toolbox.execute.Executor` is one."""

    @property
    def sink(self) -> EventSink: ...
    @property
    def stats(self) -> Statistics: ...
    @property
    def random(self) -> Callable[[], float]: ...


async def with_retries(
    attempt: Callable[[], Awaitable[Any]], ready: Ready, reports: Reports, ctx: Context[Any] | None
) -> Any:
    """The value of the first attempt without a transient failure. All attempts share one deadline."""
    key, name, retry = ready.key, ready.call.name, ready.tool.definition.facts.retry
    assert retry is not None
    number = 1
    while True:
        try:
            return await attempt()
        except NotStarted:
            if number > 1:  # the call has run, though this attempt has not
                raise asyncio.CancelledError from None
            raise
        except Exception as error:
            if number >= retry.attempts or not retry.is_transient(error):
                raise
            delay = retry.delay_after(number, error, reports.random())
            reports.stats[name].retries += 1
            telemetry.retried(number, delay)
            if reports.sink.listeners:
                tip = f"attempt {number} failed, trying again in {delay:.1f} s"
                reports.sink.emit(key.run, CallRetried(key, name, number, delay, traceback_text(error)))
                reports.sink.emit(key.run, StatusChanged(key, name, CallState.DOING, tip))
        if ctx is not None:  # the next attempt asks for its permissions anew
            ctx._asked = ()
        await asyncio.sleep(delay)
        number += 1
