"""Values to which no object leads: a Context leads to all tools, and a model leads to its key."""

from __future__ import annotations

from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

__all__ = ["Unreachable"]

T = TypeVar("T")


class Unreachable(Generic[T]):
    """Stands for a value, which lives as long as this object does, in an object that a Context leads to."""

    __slots__ = ("__weakref__",)

    def __init__(self, value: T) -> None:
        _VALUES[self] = value

    @property
    def value(self) -> T:
        value: T = _VALUES[self]
        return value


_VALUES: WeakKeyDictionary[Unreachable[Any], Any] = WeakKeyDictionary()
