"""The interface of an engine that computes masks: it compiles fields once, and starts a matcher for each answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from toolcrib.errors import ToolcribError

__all__ = ["Compiled", "Engine", "GuideError", "Matcher"]


class GuideError(ToolcribError):
    """An engine cannot compile a constraint, or reached a limit of its own while matching."""


class Matcher(Protocol):
    """The state of one answer."""

    def mask(self) -> bytes:
        """One bit for each token, the lowest bit of a byte first: set where the token may come next."""
        ...

    def accept(self, token: int) -> bool:
        """Goes on with a token that does not end the answer; False, and nothing changed, where it may not come."""
        ...

    def forced(self) -> list[int]:
        """The tokens that must come next, as far as there is but one way."""
        ...

    def complete(self) -> bool:
        """Whether the answer may end here."""
        ...

    def stopped(self) -> bool:
        """Whether nothing but the end may follow."""
        ...

    def rollback(self, count: int) -> None:
        """Takes back the last tokens."""
        ...

    def fork(self) -> Matcher:
        """The same state, to go on by itself."""
        ...


class Compiled(Protocol):
    """A compiled constraint, which any number of answers share."""

    def start(self) -> Matcher: ...


class Engine(Protocol):
    """Compiles the fields that `lower` gives for a local target, over one vocabulary."""

    target: str
    vocabulary_size: int
    ends: tuple[int, ...]  # the tokens that end an answer

    def compile(self, fields: Mapping[str, Any]) -> Compiled: ...
