"""Checks of what callers hand a toolbox as a call. Their errors say what was expected."""

from __future__ import annotations

import reprlib
from typing import Any

from toolcrib.call import ToolCall
from toolcrib.prepared import Pending, Ready, Refused
from toolcrib.question import Answer

__all__ = ["check_call", "check_prepared", "listed_calls"]

EXAMPLE = """ToolCall('look', '{"shelf": 2}', 'call_1'): the tool's name, its arguments, the provider's id"""

NO_LISTS = (str, dict, ToolCall)


def check_call(call: Any, arguments: Any = None) -> None:
    """Raises TypeError for what is no ToolCall, and for arguments beside a ToolCall, which has its own."""
    if not isinstance(call, ToolCall):
        raise TypeError(f"expected a ToolCall, as in {EXAMPLE}; got {reprlib.repr(call)}")
    if arguments is not None:
        raise TypeError(
            f"give a ToolCall, or the name of a tool and its arguments; got {call!r} and arguments"
        )


def listed_calls(calls: Any) -> list[ToolCall]:
    """The calls as a list. Raises TypeError for what is no list of ToolCalls, such as the dicts of a provider's SDK."""
    if isinstance(calls, NO_LISTS) or not hasattr(calls, "__iter__"):
        raise TypeError(f"calls are a list of ToolCalls, got {reprlib.repr(calls)}")
    listed = list(calls)
    for call in listed:
        check_call(call)
    return listed


def check_prepared(prepared: Any, answer: Any = None) -> None:
    """Raises TypeError for what is no prepared call, such as a ToolCall, and for an answer that is no Answer.

    A text or a bool is no Answer: any value of a program can be one, without a person's decision about this call.
    """
    if not isinstance(prepared, Ready | Pending | Refused):
        raise TypeError(
            f"expected what prepare returns, as in execute(await box.prepare(call)); got {reprlib.repr(prepared)}"
        )
    if answer is not None and not isinstance(answer, Answer):
        raise TypeError(
            f"expected an Answer, as in Answer(Verdict.YES) or Answer(Verdict.NO); got {reprlib.repr(answer)}"
        )
