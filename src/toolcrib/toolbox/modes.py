"""The ways in which a tool is run: async, on a thread, inline. A generator that it gives is run to its end."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from toolcrib.context import Context
from toolcrib.errors import Cancelled
from toolcrib.prepared import ResolvedTool
from toolcrib.toolbox.deadline import NotStarted, WillNotStop
from toolcrib.toolbox.registry import Entry
from toolcrib.toolbox.threads import BRIEF_WAIT, Workers

if TYPE_CHECKING:
    from toolcrib.compiling.output import Output

__all__ = ["MODES", "settled"]

THREAD_GRACE = 1.0  # seconds that a worker thread has to see ctx.cancelled


async def _here(workers: Workers, grace: float, tool: ResolvedTool, params: Any, ctx: Any) -> Any:
    output = tool.definition.output
    value = await settled(tool.definition.start(tool.instance, params, ctx), output, ctx)
    if not isinstance(value, GeneratorType):
        return value
    return await _on_worker(workers, grace, tool.entry, _yielded, (value, output, ctx), ctx)


async def _thread(workers: Workers, grace: float, tool: ResolvedTool, params: Any, ctx: Any) -> Any:
    output = tool.definition.output

    def work() -> Any:
        value = tool.definition.start(tool.instance, params, ctx)
        return _yielded(value, output, ctx) if isinstance(value, GeneratorType) else value

    return await settled(await _on_worker(workers, grace, tool.entry, work, (), ctx), output, ctx)


MODES: dict[str, Any] = {"async": _here, "inline": _here, "thread": _thread}


def _yielded(steps: GeneratorType[Any, Any, Any], output: Output, ctx: Context[Any] | None) -> Any:
    """Runs a generator to its end: what it returns, or else all that it yielded."""
    items: list[Any] = []
    while True:
        try:
            items.append(next(steps))
        except StopIteration as stop:
            return stop.value if stop.value is not None else output.of_items(items)
        if ctx is not None:
            ctx.report(result=items[-1])
            ctx.check_cancelled()


async def _on_worker(
    workers: Workers,
    grace: float,
    entry: Entry,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    ctx: Context[Any] | None,
) -> Any:
    """Run on a worker thread. A thread that does not stop when it is told is let go: its outcome is unknown."""
    loop = asyncio.get_running_loop()
    if ctx is not None:
        ctx._loop = loop
    job = workers.submit(fn, args, loop)
    try:
        await job.wait(brief=entry.brief)
        entry.brief = job.duration < BRIEF_WAIT
    except asyncio.CancelledError:
        if job.withdraw():
            raise NotStarted from None
        if ctx is not None:
            ctx._cancelled = True
            await _stopped(tuple(ctx._waiting), grace)  # what the thread waits for through ctx.run
        if not await job.wait(min(THREAD_GRACE, grace / 2)):
            job.abandon()
            raise WillNotStop(lambda: job.done) from None
        try:
            value = job.result()
        except Cancelled:
            raise asyncio.CancelledError from None
        if inspect.iscoroutine(value):  # the work that it would do was cancelled
            value.close()
            raise
        return value
    return job.result()


async def _stopped(tasks: tuple[asyncio.Task[Any], ...], grace: float) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=grace / 2)


async def settled(value: Any, output: Output, ctx: Context[Any] | None = None) -> Any:
    """What a function returned, or what comes of it: of a coroutine its value, of an async iterator all its items."""
    if inspect.isawaitable(value):
        value = await value
    if not hasattr(type(value), "__anext__"):
        return value
    items: list[Any] = []
    async for item in value:
        items.append(item)
        if ctx is not None:
            ctx.report(result=item)
    return output.of_items(items)
