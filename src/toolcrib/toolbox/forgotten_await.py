"""A permission that a tool asked for without `await`: nobody was asked, and the tool went on as if it were allowed."""

from __future__ import annotations

from inspect import CORO_CREATED, CORO_RUNNING, getcoroutinestate
from typing import Any

from toolcrib.context import Context

__all__ = ["drop_later_asks", "forgotten_await"]


def drop_later_asks(ctx: Context[Any]) -> None:
    """Forgets the permissions that a tool would have asked for after the one that is being refused."""
    states = [getcoroutinestate(asked) for asked in ctx._asked]
    if CORO_RUNNING in states:
        ctx._asked = ctx._asked[: states.index(CORO_RUNNING)]


def forgotten_await(ctx: Context[Any]) -> RuntimeError | None:
    """The failure of a call whose tool asked for permission and did not wait for the answer; None for any other.

    A task that was cancelled before it asked is no failure.
    """
    not_begun = [asked for asked in ctx._asked if getcoroutinestate(asked) == CORO_CREATED]
    if not not_begun:
        return None
    import asyncio

    tasks = {task.get_coro(): task for task in asyncio.all_tasks()}
    forgotten = [asked for asked in not_begun if asked not in tasks or not tasks[asked].cancelling()]
    for asked in forgotten:
        if asked in tasks:
            tasks[asked].cancel()
        else:
            asked.close()
    if not forgotten:
        return None
    return RuntimeError(
        "ctx.ask(...) was not awaited, so nobody was asked: write `await ctx.ask(...)`, "
        "or `ctx.run(ctx.ask(...))` in a sync tool"
    )
