"""The names of a tool's parameters, read without resolving a type: cheap enough for the moment of definition."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import Any, Final, TypeVar, get_origin

__all__ = [
    "WRAPPERS",
    "constructor_needs",
    "field_names",
    "function_parameters",
    "spellings",
    "takes_positional",
]

WRAPPERS: Final = frozenset({
    *("arguments", "args", "kwargs", "input", "inputs", "parameters", "params"),
    *("tool_input", "tool_args", "action_input", "function_args"),
})  # fmt: skip
"""Keys in which models wrap the arguments of a call."""

VARARGS = 0x04  # flag of a code object: the function takes *args
VARKEYWORDS = 0x08  # flag of a code object: the function takes **kwargs


def field_names(kind: Any) -> Collection[str] | None:
    """The names of the fields of a model, dataclass, TypedDict or raw JSON Schema; None if any name may come.

    They are read where such a class declares them: reading its annotations evaluates them from Python 3.14 on.
    """
    if isinstance(kind, TypeVar):
        return None
    if isinstance(kind, Mapping):
        properties = kind.get("properties")
        return list(properties) if isinstance(properties, Mapping) else None
    kind = get_origin(kind) or kind
    fields = getattr(kind, "__pydantic_fields__", None) or getattr(kind, "__dataclass_fields__", None)
    return (
        fields or {*getattr(kind, "__required_keys__", ()), *getattr(kind, "__optional_keys__", ())} or None
    )


def spellings(kind: Any) -> dict[str, set[str]]:
    """The names under which an argument may come, for each model field with an alias. Keys: field names, aliases."""
    kind = get_origin(kind) or kind
    config = getattr(kind, "model_config", None) or {}
    by_name = config.get("populate_by_name") or config.get("validate_by_name")
    found: dict[str, set[str]] = {}
    for name, field in (getattr(kind, "__pydantic_fields__", None) or {}).items():
        alias = field.validation_alias or field.alias
        if alias is None:
            continue
        choices = [getattr(choice, "path", [choice])[0] for choice in getattr(alias, "choices", [alias])]
        written = {choice for choice in choices if isinstance(choice, str)} | ({name} if by_name else set())
        found |= {spelling: written for spelling in written if spelling not in found} | {name: written}
    return found


def function_parameters(fn: Any) -> Collection[str] | None:
    """The parameters of a function, partial or callable object; None if any name may come."""
    filled: set[str] = set()
    while isinstance(fn, functools.partial):
        filled.update(fn.keywords)
        fn = fn.func
    code = getattr(fn, "__code__", None) or getattr(type(fn).__call__, "__code__", None)
    if code is None or code.co_flags & VARKEYWORDS:
        return None
    extra = 1 if code.co_flags & VARARGS else 0
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + extra]
    return [name for name in names if name not in filled]


def takes_positional(fn: Any, count: int) -> bool:
    """Whether a function takes that many positional arguments; True for callables without a code object."""
    code = getattr(fn, "__code__", None)
    return code is None or code.co_argcount >= count or bool(code.co_flags & VARARGS)


def constructor_needs(cls: Any) -> list[str]:
    """The parameters of a class's `__new__` and `__init__` without a default. A method without a code object adds none.

    Of a decorated constructor, the parameters of the decorator's function count: it may supply others itself. So may a
    metaclass with a `__call__` of its own.
    """
    if type(cls).__call__ is not type.__call__:
        return []
    return list(dict.fromkeys([*_needed_behind_first(cls.__new__), *_needed_behind_first(cls.__init__)]))


def _needed_behind_first(fn: Any) -> list[str]:
    """The parameters of a function behind the first that have no default; none where it has no code object."""
    code = getattr(fn, "__code__", None)
    if code is None:
        return []
    positional = code.co_varnames[: code.co_argcount - len(fn.__defaults__ or ())]
    by_keyword = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    return [*positional[1:], *(name for name in by_keyword if name not in (fn.__kwdefaults__ or ()))]
