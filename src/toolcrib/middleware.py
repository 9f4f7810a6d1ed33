"""Middleware: a user's own steps around the preparation and the execution of calls.

A step is an async function of a value and of `next`, which is the rest of the way: further steps, then the box. The
first step of a list is the outermost. A step may answer without `next`, change what it hands to `next`, call `next`
again, or only look at the clock.

| step          | is handed                             | `next` takes                 | gives      |
| ------------- | ------------------------------------- | ---------------------------- | ---------- |
| `PrepareStep` | the ToolCall, as the model wrote it   | a ToolCall                   | Prepared   |
| `ExecuteStep` | the Ready call, which is allowed to run | that very Ready, or a ToolCall | ToolResult |

No step can bypass the box. `next` of an ExecuteStep runs nothing but what the box has decided on: a
ToolCall (or any Ready that is not the one the step was handed) is resolved, validated and decided anew, and asked
about if need be. The Ready that a step is handed is a copy: what is changed in it, in place, does not change what runs.
And whatever a step does, a call ends in exactly one recorded result: a step that raises, or that gives no result, is
answered like a tool that failed. What a step has left running is stopped when it gives its result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple, TypeVar

from toolcrib.call import ToolCall
from toolcrib.prepared import Prepared, Ready
from toolcrib.result import ToolResult

__all__ = ["ExecuteStep", "NextExecute", "NextPrepare", "PrepareStep", "Steps", "as_steps"]

NextPrepare = Callable[[ToolCall], Awaitable[Prepared]]
"""Prepares a call: resolves it, validates it, decides on it."""

PrepareStep = Callable[[ToolCall, NextPrepare], Awaitable[Prepared | ToolResult]]
"""Stands around the preparation of calls. A ToolResult answers the call without running it."""

NextExecute = Callable[[Ready | ToolCall], Awaitable[ToolResult]]
"""Runs a call: the one that is ready, or another one that is prepared anew."""

ExecuteStep = Callable[[Ready, NextExecute], Awaitable[ToolResult]]
"""Stands around the execution of calls that are allowed to run."""

S = TypeVar("S")


class Steps(NamedTuple):
    """The steps of a toolbox or of a toolset."""

    around_prepare: tuple[PrepareStep, ...] = ()
    around_execute: tuple[ExecuteStep, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.around_prepare or self.around_execute)

    def within(self, outer: Steps) -> Steps:
        """These steps inside of others."""
        return Steps(
            (*outer.around_prepare, *self.around_prepare), (*outer.around_execute, *self.around_execute)
        )

    def without(self, others: Steps) -> Steps:
        """These steps but those that are among others."""
        return Steps(
            tuple(step for step in self.around_prepare if step not in others.around_prepare),
            tuple(step for step in self.around_execute if step not in others.around_execute),
        )


def as_steps(around_prepare: Iterable[PrepareStep], around_execute: Iterable[ExecuteStep]) -> Steps:
    """The steps of two lists; TypeError for what is not a list of functions."""
    return Steps(_listed("around_prepare", around_prepare), _listed("around_execute", around_execute))


def _listed(name: str, steps: Iterable[S]) -> tuple[S, ...]:
    if callable(steps) or not isinstance(steps, Iterable):
        raise TypeError(f"{name} must be a list of steps; got {steps!r}: write [{steps!r}]")
    listed = tuple(steps)
    for step in listed:
        if not callable(step):
            raise TypeError(f"a step of {name} must be an async function of (value, next), got {step!r}")
    return listed
