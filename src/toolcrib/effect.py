"""The worst that running a tool can do."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Effect"]


class Effect(IntEnum):
    """The worst that running a tool can do; ordered, so that the worse of two is `max(a, b)`."""

    READ = 0
    WRITE = 1
    DESTRUCTIVE = 2

    @property
    def label(self) -> str:
        return self.name.lower()
