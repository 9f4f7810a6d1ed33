"""Texts and data of a server without the credentials that it was sent or started with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

__all__ = ["Conceal", "concealed", "unchanged"]


class Conceal(Protocol):
    """Gives a text of a server without the credentials that it was sent or started with.

    Without `words`, a credential that is a mere word, such as `postgres`, stays. This is for names and descriptions:
    the server would not recognise a changed name, and a gap in a description would show that the word is a credential.
    """

    def __call__(self, text: str, /, *, words: bool = True) -> str: ...


def unchanged(text: str, /, *, words: bool = True) -> str:
    """The text of a server that was given no credentials."""
    return text


def concealed(value: Any, conceal: Conceal, *, words: bool = True) -> Any:
    """JSON data of a server without the credentials that it was sent or started with; `words` as in `Conceal`."""
    if isinstance(value, str):
        return conceal(value, words=words)
    if isinstance(value, Mapping):
        return {
            concealed(name, conceal, words=words): concealed(item, conceal, words=words)
            for name, item in value.items()
        }
    return [concealed(item, conceal, words=words) for item in value] if isinstance(value, list) else value
