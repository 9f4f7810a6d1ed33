"""How a remote call can fail before there is a result. What the model is told of it stands in `calling.py`."""

from __future__ import annotations

__all__ = ["ConnectionLost", "ServerUnavailable"]


class ServerUnavailable(Exception):
    """A server could not be started or reached. Nothing was sent. The message says why, for a person."""


class ConnectionLost(Exception):
    """The connection broke after a request was sent: whether the server did the work is unknown."""
