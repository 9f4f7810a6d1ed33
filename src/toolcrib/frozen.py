"""Frozen values that every call makes anew, in less time than `dataclass` and `NamedTuple` take.

The `__init__` of a frozen dataclass spends most of its time in `object.__setattr__`. The one of `quickly_filled` makes
the value an object of an open class with the same slots, assigns them, and gives it its own class again. Values that
have no extras share one dict, `EMPTY`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import partial, wraps
from typing import Any, Final, NoReturn, Self, TypeVar

__all__ = ["EMPTY", "from_tuple", "made_when_read", "open_class", "quickly_filled"]

T = TypeVar("T")
Named = TypeVar("Named", bound=tuple[Any, ...])

SET_CLASS: Final[Any] = object.__dict__["__class__"].__set__  # works if the class forbids assignment


class EmptyDict(dict[str, Any]):
    """A dict without items that nobody can fill. What is made of it, as by `copy` or `asdict`, is a plain dict."""

    __slots__ = ()

    def __new__(cls, *given: Any) -> Self:
        made: Any = dict(*given) if given else super().__new__(cls)
        return made  # type: ignore[no-any-return]

    def _refuse(*_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "this dict cannot be changed, as all values without extras share it: give extras when the value is made, "
            "as in Text('text', extras={...}), or make another value with dataclasses.replace(value, extras={...})"
        )

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _refuse

    def __hash__(self) -> int:  # type: ignore[override] # a default of a dataclass has to have one
        return 0

    def __reduce__(self) -> str:
        return "EMPTY"  # copies and pickles of it are the one dict


EMPTY: Final[Mapping[str, Any]] = EmptyDict()


def open_class(cls: type) -> Any:
    """A class with the slots of a frozen one, whose objects can be filled, and then be given the class `cls`."""
    return type(f"Open{cls.__name__}", (), {"__slots__": vars(cls)["__slots__"]})


def quickly_filled(cls: type[T]) -> type[T]:
    """Give a frozen dataclass with slots the quick `__init__`."""
    known: tuple[Any, ...] = fields(cls)  # type: ignore[arg-type] # it is a dataclass
    names = {f"{item.name}_default": item.default for item in known}
    names |= {"cls": cls, "init": cls.__init__, "set_class": SET_CLASS, "open_class": open_class(cls)}
    given = [item.name if item.default is MISSING else f"{item.name}={item.name}_default" for item in known]
    lines = [  # a subclass may have other slots
        f"if type(self) is not cls: return init(self, {', '.join(item.name for item in known)})",
        "set_class(self, open_class)",
        *(f"self.{item.name} = {item.name}" for item in known),
        "self.__class__ = cls",
    ]
    exec(f"def __init__(self, {', '.join(given)}):\n  " + "\n  ".join(lines), names)

    type.__setattr__(cls, "__init__", wraps(cls.__init__)(names["__init__"]))  # it shows the same signature
    return cls


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
