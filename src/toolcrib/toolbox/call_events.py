"""The three events of each call, made where somebody listens: in a third of the time that calling their classes takes.

Each is made by the sink, of what it sets itself (run, number, parent, time) and of the facts of the event.
"""

from __future__ import annotations

from typing import Any, Final

from toolcrib.call import CallKey, CallState
from toolcrib.events import CallFinished, StatusChanged
from toolcrib.prepared import Ready
from toolcrib.result import ToolResult

__all__ = ["BEGINS", "COMES", "COMES_AND_BEGINS", "ENDED"]

# Looked up once: an enum's members are slow to reach on 3.11.
WAIT, DOING, SUCCESS, ERROR = CallState.WAIT, CallState.DOING, CallState.SUCCESS, CallState.ERROR
new: Final[Any] = object.__new__


def _call_comes(
    run: str, seq: int, parent: str, time: float, facts: tuple[CallKey, str, str, Ready | None]
) -> StatusChanged:
    """A call comes: its key, the name of its tool, and the title if the tool is known."""
    event: StatusChanged = new(StatusChanged)
    event.run, event.seq, event.parent = run, seq, parent
    event.time = time
    event.key, event.tool, event.title, _ = facts
    event.state = WAIT
    event.tip = event.progress = event.result = event.unread = None
    event.code = ""
    return event


def _call_begins(
    run: str, seq: int, parent: str, time: float, facts: tuple[CallKey, str, str, Ready]
) -> StatusChanged:
    """A call begins to run. Its arguments are read from their text when somebody looks at the event's `params`."""
    event: StatusChanged = new(StatusChanged)
    event.run, event.seq, event.parent = run, seq, parent
    event.time = time
    event.key, event.tool, event.title, ready = facts
    event.state = DOING
    event.unread = given = ready.given
    if type(given) is not str:
        event.unread, event.params = None, ready.arguments
    event.tip = event.progress = event.result = None
    event.code = ""
    return event


def _call_ended(
    run: str,
    seq: int,
    parent: str,
    time: float,
    facts: tuple[CallKey, str, ToolResult, float, str, int],
) -> CallFinished:
    """A call has its result: its key, the name of its tool, the result, its seconds, what went wrong, its repairs."""
    event: CallFinished = new(CallFinished)
    event.run, event.seq, event.parent = run, seq, parent
    event.time = time
    event.key, event.tool, result, event.duration, event.problem, event.repairs = facts
    event.result = result
    event.state = ERROR if result.is_error else SUCCESS
    event.tip = event.progress = event.params = None
    event.code = "" if result.code is None else result.code.value
    return event


COMES: Final = (_call_comes,)
BEGINS: Final = (_call_begins,)
COMES_AND_BEGINS: Final = (_call_comes, _call_begins)
ENDED: Final = (_call_ended,)
