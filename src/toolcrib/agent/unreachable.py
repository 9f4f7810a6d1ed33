"""Values that no chain of references leads to: from its Context a tool could otherwise reach a model and its key."""

from __future__ import annotations

from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

__all__ = ["Unreachable"]

T = TypeVar("T")


class Unreachable(Generic[T]):
    """Stands for a value in an object that can be reached from a Context. The value lives as long as this object."""

    __slots__ = ("__weakref__",)

    def __init__(self, value: T) -> None:
        _VALUES[self] = value

    @property
    def value(self) -> T:
        value: T = _VALUES[self]
        return value


_VALUES: WeakKeyDictionary[Unreachable[Any], Any] = WeakKeyDictionary()
