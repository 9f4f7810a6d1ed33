"""What a server may offer beside tools: resources, prompts, completions. The face hands requests on to your objects.

Everything is in its wire form, as the protocol's specification writes it, so that a gateway can pass on what it was
given. Reading and getting run as calls of the client: they may ask it by `peer_of_call`, and can be cancelled.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

__all__ = ["Complete", "Prompts", "Resources"]

Wire = Mapping[str, Any]


class Resources(Protocol):
    """Where the resources of a server come from."""

    async def list(self) -> Sequence[Wire]:
        """The resources, each with `uri` and `name`."""
        ...

    async def templates(self) -> Sequence[Wire]:
        """The templates, each with `uriTemplate` and `name`."""
        ...

    async def read(self, uri: str) -> Sequence[Wire] | None:
        """The contents of a resource, each with `uri` and `text` or `blob` (base64); None if there is none."""
        ...


class Prompts(Protocol):
    """Where the prompts of a server come from."""

    async def list(self) -> Sequence[Wire]:
        """The prompts, each with `name`, and `arguments` if it takes some."""
        ...

    async def get(self, name: str, arguments: Mapping[str, str]) -> Wire | None:
        """The `messages` of a prompt, and its `description`; None if there is none. ValueError for bad arguments."""
        ...


Complete = Callable[[Wire, str, str, Mapping[str, str]], Awaitable[Sequence[str]]]
"""Suggests values for an argument: what it belongs to (its `ref`), its name, what is typed, the other arguments."""
