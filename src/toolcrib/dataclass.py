"""The standard library's `dataclass`, but it makes a class in half the time: a fifth of each start was spent on it.

The standard library compiles a text for every method of every class. Here `__eq__`, `__hash__` and `__repr__` are
functions that all classes share, and do the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "field", "replace"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, eq=True, repr=True, order=False, **options):
        """`dataclasses.dataclass`, with its options and their meaning, but for `unsafe_hash`."""
        if cls is None:
            return lambda cls: dataclass(cls, eq=eq, repr=repr, order=order, **options)
        if order:  # its methods are compiled
            return dataclasses.dataclass(cls, eq=eq, repr=repr, order=True, **options)
        own = set(vars(cls))
        if "__eq__" in own and vars(cls).get("__hash__") is None:
            own.discard("__hash__")  # Python set it to None
        made = dataclasses.dataclass(cls, eq=False, repr=False, **options)
        methods = {}
        if repr:
            methods["__repr__"] = _repr_of([item.name for item in _fields(made) if item.repr])
        if eq:
            methods["__eq__"] = _eq_of(_values([item.name for item in _fields(made) if item.compare]))
            methods["__hash__"] = None
            if options.get("frozen"):
                hashed = (
                    item.name for item in _fields(made) if (item.compare if item.hash is None else item.hash)
                )
                methods["__hash__"] = _hash_of(_values([*hashed]))
        for name, method in methods.items():
            if name not in own:
                setattr(made, name, method)
        return made


_fields: Callable[[Any], tuple[dataclasses.Field[Any], ...]] = dataclasses.fields


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Gives the values of the named fields of an object."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple([getattr(value, name) for name in names])


def _eq_of(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, Any], Any]:
    def __eq__(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash_of(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _repr_of(names: Sequence[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:
        shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{self.__class__.__qualname__}({shown})"

    return __repr__
