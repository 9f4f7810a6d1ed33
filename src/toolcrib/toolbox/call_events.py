"""The three events of each call, made where somebody listens: in a third of the time that calling their classes takes.

Each is made by the sink, of what it sets itself (run, number, parent, time) and of the facts of the event.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from toolcrib.call import CallKey, CallState
from toolcrib.events import CallFinished, Event, StatusChanged
from toolcrib.prepared import Ready
from toolcrib.result import ToolResult

__all__ = ["call_begins", "call_comes", "call_comes_and_begins", "call_ended"]

# Looked up once: an enum's members are slow to reach on 3.11.
WAIT, DOING, SUCCESS, ERROR = CallState.WAIT, CallState.DOING, CallState.SUCCESS, CallState.ERROR
new: Final[Any] = object.__new__


def call_comes(
    run: str, numbers: Iterator[int], parent: str, time: float, facts: tuple[CallKey, str, str, Any]
) -> tuple[Event, ...]:
    """A call comes: its key, the name of its tool, and the title if the tool is known."""
    event: StatusChanged = new(StatusChanged)
    event.run, event.seq, event.parent = run, next(numbers), parent
    event.time = time
    event.key, event.tool, event.title, _ = facts
    event.state = WAIT
    event.tip = event.progress = event.result = event.unread = None
    event.code = ""
    return (event,)


def call_begins(
    run: str, numbers: Iterator[int], parent: str, time: float, facts: tuple[CallKey, str, str, Ready]
) -> tuple[Event, ...]:
    """A call begins to run. Its arguments are read from their text when somebody looks at the event's `params`."""
    event: StatusChanged = new(StatusChanged)
    event.run, event.seq, event.parent = run, next(numbers), parent
    event.time = time
    event.key, event.tool, event.title, ready = facts
    event.state = DOING
    event.unread = given = ready.given
    if type(given) is not str:
        event.unread, event.params = None, ready.arguments
    event.tip = event.progress = event.result = None
    event.code = ""
    return (event,)


def call_comes_and_begins(
    run: str, numbers: Iterator[int], parent: str, time: float, facts: tuple[CallKey, str, str, Ready]
) -> tuple[Event, ...]:
    """Both of a call that begins as soon as it comes."""
    comes: StatusChanged = new(StatusChanged)
    begins: StatusChanged = new(StatusChanged)
    comes.run = begins.run = run
    comes.seq, begins.seq = next(numbers), next(numbers)
    comes.parent = begins.parent = parent
    comes.time = begins.time = time
    key, tool, title, ready = facts
    comes.key = begins.key = key
    comes.tool = begins.tool = tool
    comes.title = begins.title = title
    comes.state, begins.state = WAIT, DOING
    begins.unread = given = ready.given
    if type(given) is not str:
        begins.unread, begins.params = None, ready.arguments
    comes.tip = comes.progress = comes.result = comes.unread = None
    begins.tip = begins.progress = begins.result = None
    comes.code = begins.code = ""
    return (comes, begins)


def call_ended(
    run: str,
    numbers: Iterator[int],
    parent: str,
    time: float,
    facts: tuple[CallKey, str, ToolResult, float, str, int],
) -> tuple[Event, ...]:
    """A call has its result: its key, the name of its tool, the result, its seconds, what went wrong, its repairs."""
    event: CallFinished = new(CallFinished)
    event.run, event.seq, event.parent = run, next(numbers), parent
    event.time = time
    event.key, event.tool, result, event.duration, event.problem, event.repairs = facts
    event.result = result
    event.state = ERROR if result.is_error else SUCCESS
    event.tip = event.progress = event.params = None
    event.code = "" if result.code is None else result.code.value
    return (event,)
