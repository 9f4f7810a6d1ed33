"""What can go wrong: stable codes, and exceptions. `toolbox/model_messages.py` has the words for the model."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from toolcrib.dataclass import dataclass

__all__ = [
    "Cancelled",
    "ErrorCode",
    "FieldError",
    "Suspended",
    "ToolDefinitionError",
    "ToolError",
    "ToolcribError",
    "as_tuple",
    "belongs_to_caller",
    "check_seconds",
    "traceback_text",
]


class ErrorCode(StrEnum):
    """Why a call failed. The codes are stable: programs and prompts may rely on them."""

    UNKNOWN_TOOL = "unknown_tool"
    TOOL_CHANGED = "tool_changed"
    INVALID_ARGUMENTS = "invalid_arguments"
    PRECHECK = "precheck"
    DENIED = "denied"
    REJECTED = "rejected"
    NOBODY_TO_ASK = "nobody_to_ask"
    RATE_LIMITED = "rate_limited"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    FAILED = "failed"
    OUTCOME_UNKNOWN = "outcome_unknown"
    OUTPUT_TOO_LARGE = "output_too_large"
    TOOL_ERROR = "tool_error"
    WAITING = "waiting"


class ToolcribError(Exception):
    """The base of every exception that toolcrib raises on purpose."""


class ToolDefinitionError(ToolcribError, TypeError):
    """A tool cannot be compiled; the message names the tool and the parameter."""


class ToolError(ToolcribError):
    """Raise it in a tool to tell the model, in your words, what went wrong and what to do next.

    `transient=True` says that the same call may succeed a moment later (see `Retry`); `retry_after` is the
    number of seconds that the service asked to wait.
    """

    def __init__(self, message: str, *, transient: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = str(message)
        self.transient = transient
        self.retry_after = retry_after


class Cancelled(ToolcribError):
    """Raised by `ctx.check_cancelled()` in a tool whose call was cancelled or ran out of time."""


class Suspended(BaseException):
    """Ends the run of a tool whose call waits for a person's answer, to run again when the answer is there.

    It is no Exception, so that an `except Exception` in a tool does not catch it.
    """


@dataclass(frozen=True, slots=True)
class FieldError:
    """One argument that does not fit: its path, what was expected, what was given, and which values are allowed."""

    path: str
    expected: str
    got: str = ""
    allowed: tuple[Any, ...] = ()


def as_tuple(name: str, given: Any) -> tuple[Any, ...]:
    """The members of a list. Raises TypeError for a single string, which would be taken as a list of letters."""
    if isinstance(given, str | bytes):
        raise TypeError(f"{name} is a list of names, got the string {given!r}: write [{given!r}]")
    return tuple(given)


def is_object_with(value: Any, method: str) -> bool:
    """Whether this is an object with a method; a class in the place of its instance is none."""
    return not isinstance(value, type) and callable(getattr(value, method, None))


def check_seconds(owner: str, **given: Any) -> None:
    """Raises TypeError for a limit of time that is neither None nor a number above 0, such as the text "60"."""
    for name, value in given.items():
        known = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (known and value > 0):
            raise TypeError(f"{owner}{name} must be more than 0 seconds, got {value!r}")


def traceback_text(error: BaseException) -> str:
    """An error with its traceback, for the operator. Works also where `str(error)` raises."""
    import traceback

    return "".join(traceback.format_exception(error))


def belongs_to_caller(problem: BaseException) -> bool:
    """Whether what code of a user raised has to be raised further: the end of the program by a person, or the
    cancellation of the task that called it. Anything else is a failure of that code.
    """
    import asyncio

    if isinstance(problem, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is None or bool(task.cancelling())
    return isinstance(problem, KeyboardInterrupt)
