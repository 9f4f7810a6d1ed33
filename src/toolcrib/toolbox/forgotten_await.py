"""A permission that a tool asked for without `await`: nobody was asked, and the tool went on as if it were allowed."""

from __future__ import annotations

from inspect import CORO_CREATED, getcoroutinestate
from typing import Any

from toolcrib.context import Context

__all__ = ["forgotten_await"]


def forgotten_await(ctx: Context[Any]) -> RuntimeError | None:
    """The failure of a call whose tool asked for permission and did not wait for the answer; None for any other."""
    forgotten = [asked for asked in ctx._asked if getcoroutinestate(asked) == CORO_CREATED]
    if not forgotten:
        return None
    for asked in forgotten:
        asked.close()
    return RuntimeError(
        "ctx.ask(...) was not awaited, so nobody was asked: write `await ctx.ask(...)`, "
        "or `ctx.run(ctx.ask(...))` in a sync tool"
    )
