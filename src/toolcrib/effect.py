"""The worst that running a tool can do."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Effect"]


class Effect(IntEnum):
    """The worst that running a tool can do.

    READ only looks. WRITE changes something that can be put back. DESTRUCTIVE changes something that may be gone for
    good. They are ordered, so that the worse of two is `max(a, b)`.
    """

    READ = 0
    WRITE = 1
    DESTRUCTIVE = 2

    @property
    def label(self) -> str:
        """Its name in small letters, such as "read"."""
        return self.name.lower()
