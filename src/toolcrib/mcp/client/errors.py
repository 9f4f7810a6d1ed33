"""How a remote call can fail before there is a result. What the model is told of it stands in `calling.py`."""

from __future__ import annotations

__all__ = ["ConnectionLost", "ServerUnavailable", "leaf_of"]


class ServerUnavailable(Exception):
    """A server could not be started or reached. Nothing was sent. The message says why, for a person.

    `broke_off` says that it ended, or closed the connection, while it was being started.
    """

    def __init__(self, message: str, *, broke_off: bool = False) -> None:
        super().__init__(message)
        self.broke_off = broke_off


class ConnectionLost(Exception):
    """The connection broke after a request was sent: whether the server did the work is unknown."""


def leaf_of(problem: BaseException) -> BaseException:
    """The exception that a group of exceptions is about: the first one in it that is no mere cancellation."""
    import asyncio

    while isinstance(problem, BaseExceptionGroup):
        inner = [error for error in problem.exceptions if not isinstance(error, asyncio.CancelledError)]
        problem = (inner or list(problem.exceptions))[0]
    return problem
