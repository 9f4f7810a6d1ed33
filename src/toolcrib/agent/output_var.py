"""The type variable of what a run answers with: text, where nothing else is said."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultingTypeVar

    Out = DefaultingTypeVar("Out", default=str)
else:
    Out = TypeVar("Out")

__all__ = ["Out"]
