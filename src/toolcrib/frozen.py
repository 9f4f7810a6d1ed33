"""Frozen values of which each call makes new ones, in less time than `dataclass` and `NamedTuple` take.

The `__init__` of a frozen dataclass spends most of its time in `object.__setattr__`. The one of `quickly_filled` makes
the value an object of an open class with the same slots, assigns them, and gives it its own class again. What a factory
gives is made when it is first read, which it seldom is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import partial, wraps
from typing import Any, Final, TypeVar

__all__ = ["from_tuple", "made_when_read", "open_class", "quickly_filled"]

T = TypeVar("T")
Named = TypeVar("Named", bound=tuple[Any, ...])

SET_CLASS: Final[Any] = object.__dict__["__class__"].__set__  # past a class that forbids to assign


def open_class(cls: type) -> Any:
    """A class with the slots of a frozen one, whose objects can be filled, and then be given the class `cls`."""
    return type(f"Open{cls.__name__}", (), {"__slots__": vars(cls)["__slots__"]})


def quickly_filled(cls: type[T]) -> type[T]:
    """Give a frozen dataclass with slots the quick `__init__`, in which None stands for what a factory gives."""
    known: tuple[Any, ...] = fields(cls)  # type: ignore[arg-type] # it is a dataclass
    factories = {item.name: item.default_factory for item in known if item.default_factory is not MISSING}
    names = {f"{item.name}_default": item.default for item in known}
    names |= {"cls": cls, "init": cls.__init__, "set_class": SET_CLASS, "open_class": open_class(cls)}
    given, filled, others = ["self"], list[str](), list[str]()
    for name, default in ((item.name, item.default) for item in known):
        if name in factories:
            given.append(f"{name}=None")
            filled.append(f"if {name} is not None: self.{name} = {name}")
            others.append(f"**({{}} if {name} is None else {{{name!r}: {name}}})")
        else:
            given.append(name if default is MISSING else f"{name}={name}_default")
            filled.append(f"self.{name} = {name}")
            others.append(f"{name}={name}")
    lines = [
        f"if type(self) is not cls: return init(self, {', '.join(others)})",  # a subclass may have other slots
        "set_class(self, open_class)",
        *filled,
        "self.__class__ = cls",
    ]
    exec(f"def __init__({', '.join(given)}):\n  " + "\n  ".join(lines), names)

    type.__setattr__(cls, "__init__", wraps(cls.__init__)(names["__init__"]))  # it shows the same signature
    for name, factory in factories.items():
        type.__setattr__(cls, name, made_when_read(vars(cls)[name], partial(_of_factory, factory)))
    return cls


def _of_factory(factory: Callable[[], Any], _: Any) -> Any:
    return factory()


def made_when_read(slot: Any, make: Callable[[Any], Any]) -> property:
    """A slot whose value is made of its object when it is first read, unless it was set before."""

    def read(self: Any) -> Any:
        try:
            return slot.__get__(self)
        except AttributeError:
            slot.__set__(self, make(self))
            return slot.__get__(self)

    return property(read, slot.__set__)


def from_tuple(cls: type[Named]) -> Callable[[tuple[Any, ...]], Named]:
    """Makes a named tuple of a plain tuple of all its fields."""
    return partial(tuple.__new__, cls)
