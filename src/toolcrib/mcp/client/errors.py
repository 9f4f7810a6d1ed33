"""How a remote call can fail before there is a result. What the model is told of it stands in `calling.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

__all__ = [
    "LOST",
    "NOT_SENT",
    "STATUS",
    "ConnectionLost",
    "DefinitionChanged",
    "ServerUnavailable",
    "check_loop_runs",
    "in_place_of_answer",
    "leaf_of",
]

# Parts of the error of the protocol that our own transports put in the place of an answer.
LOST = -32098  # its code
NOT_SENT = "toolcrib/not-sent"  # in its data: the request never reached the server
STATUS = "toolcrib/status"  # in its data: the HTTP status of the answer


class ServerUnavailable(Exception):
    """A server could not be started or reached. Nothing was sent. The message says why, for a person.

    `broke_off` says that it ended, or closed the connection, while it was being started. `status` is the HTTP status of
    its answer, if it answered with an error.
    """

    def __init__(self, message: str, *, broke_off: bool = False, status: int = 0) -> None:
        super().__init__(message)
        self.broke_off = broke_off
        self.status = status


class ConnectionLost(Exception):
    """The connection broke after a request was sent: whether the server did the work is unknown."""


class DefinitionChanged(Exception):
    """A server no longer lists a tool as it was defined when a call of it was decided on. Nothing was sent."""


def check_loop_runs(loop: asyncio.AbstractEventLoop, server: str) -> None:
    """Raises ServerUnavailable where a loop has stopped: work that is handed to it would wait for ever."""
    if not loop.is_running():
        raise ServerUnavailable(f"MCP server {server!r}: its event loop does not run")


def in_place_of_answer(problem: BaseException) -> Mapping[str, Any] | None:
    """The data of an error that stands in the place of an answer; None for any other error."""
    if getattr(problem, "code", 0) != LOST:
        return None
    data = getattr(problem, "data", None)
    return data if isinstance(data, Mapping) else {}


def leaf_of(problem: BaseException) -> BaseException:
    """The exception that a group of exceptions is about: the first one in it that is no mere cancellation."""
    import asyncio

    while isinstance(problem, BaseExceptionGroup):
        inner = [error for error in problem.exceptions if not isinstance(error, asyncio.CancelledError)]
        problem = (inner or list(problem.exceptions))[0]
    return problem
