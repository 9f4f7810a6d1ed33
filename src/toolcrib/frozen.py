"""Frozen values of which each call makes new ones, in less time than `dataclass` and `NamedTuple` take.

The `__init__` of a frozen dataclass spends most of its time in `object.__setattr__`. The one of `quickly_filled` makes
the value an object of an open class with the same slots, assigns them, and gives it its own class again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import partial
from typing import Any, Final, TypeVar

__all__ = ["from_tuple", "open_class", "quickly_filled"]

T = TypeVar("T")
Named = TypeVar("Named", bound=tuple[Any, ...])

SET_CLASS: Final[Any] = object.__dict__["__class__"].__set__  # past a class that forbids to assign


def open_class(cls: type) -> Any:
    """A class with the slots of a frozen one, whose objects can be filled, and then be given the class `cls`."""
    return type(f"Open{cls.__name__}", (), {"__slots__": vars(cls)["__slots__"]})


def quickly_filled(cls: type[T]) -> type[T]:
    """A frozen dataclass with slots and another `__init__`, which takes half the time. None stands for a factory."""
    given, made, filled = ["self"], list[str](), list[str]()
    names = {"cls": cls, "init": cls.__init__, "set_class": SET_CLASS, "open_class": open_class(cls)}
    for item in fields(cls):  # type: ignore[arg-type] # of which only a dataclass has any
        name, default, factory = item.name, item.default, item.default_factory
        names[f"{name}_default"], names[f"{name}_factory"] = default, factory
        may_miss = default is not MISSING or factory is not MISSING
        given.append(
            name + f"={name}_default" * (default is not MISSING) + "=None" * (factory is not MISSING)
        )
        made += [f"if {name} is None: {name} = {name}_factory()"] * (may_miss and default is MISSING)
        filled.append(f"self.{name} = {name}")
    others = ", ".join(item.name for item in fields(cls))  # type: ignore[arg-type]
    lines = [
        *made,
        f"if type(self) is not cls: return init(self, {others})",  # a subclass may have other slots
        "set_class(self, open_class)",
        *filled,
        "self.__class__ = cls",
    ]
    exec(f"def __init__({', '.join(given)}):\n  " + "\n  ".join(lines), names)
    type.__setattr__(cls, "__init__", names["__init__"])
    return cls


def from_tuple(cls: type[Named]) -> Callable[[tuple[Any, ...]], Named]:
    """Makes a named tuple of a plain tuple of all its fields."""
    return partial(tuple.__new__, cls)
