"""Functions of the user around a typed answer: those that are called with it, and its validators."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import isawaitable, iscoroutinefunction
from typing import Any

from toolcrib.compiling.annotations import signature_of
from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolError

__all__ = ["Function", "WrongAnswer", "called", "validator_of"]


class WrongAnswer(ToolError):
    """An answer that does not fit; the message is for the model."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the user: an alternative that is called with its fields, or a validator."""

    fn: Callable[..., Any]
    call: Callable[[Any, Any, Any], Any]
    wants_context: bool
    is_async: bool


def validator_of(fn: Callable[..., Any]) -> Function:
    """A validator as a Function. One with two required parameters is called with the value and the context."""
    try:
        given = signature_of(fn).parameters.values()
    except (TypeError, ValueError):  # a built-in one
        return Function(fn, lambda value, _, __: fn(value), False, iscoroutinefunction(fn))
    needed = [
        parameter
        for parameter in given
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if len(needed) not in (1, 2):
        raise TypeError(f"a validator takes the value, or the value and a Context; got {fn!r}")
    if len(needed) == 2:
        return Function(fn, lambda value, _, ctx: fn(value, ctx), True, iscoroutinefunction(fn))
    return Function(fn, lambda value, _, __: fn(value), False, iscoroutinefunction(fn))


async def called(function: Function, values: Any, ctx: Any) -> Any:
    """The value of a user's function, called with the fields of an answer; a sync one runs on a thread."""
    if function.is_async:
        return await function.call(None, values, ctx)
    made = await asyncio.to_thread(function.call, None, values, ctx)
    return await made if isawaitable(made) else made
