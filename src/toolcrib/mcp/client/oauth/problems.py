"""How a login can fail. The messages are for people; foreign texts in them are on one line, short and visible."""

from __future__ import annotations

from toolcrib.errors import ToolcribError
from toolcrib.visible import on_one_line

__all__ = ["NeedsLogin", "OAuthError", "foreign_words"]

MAX_FOREIGN = 200  # characters of a text that a server wrote


class OAuthError(ToolcribError):
    """A login or a token could not be had. The message says which server refused, and what to do."""


class NeedsLogin(OAuthError):
    """A person has to log in. No browser was opened: `toolcrib mcp login NAME` does that."""


def foreign_words(error: object, description: object = None) -> str:
    """A server's error code and description, safe to show."""
    words = [on_one_line(str(part), MAX_FOREIGN) for part in (error, description) if part]
    return ": ".join(words) or "no reason given"
