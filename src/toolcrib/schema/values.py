"""Reads the values of keywords that contain no schema; gives None for a value without meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from toolcrib.schema import keywords as kw
from toolcrib.schema.keywords import KINDS, TYPES
from toolcrib.schema.legacy import type_name

_WIDTHS: Final = frozenset(
    (
        *("float", "double", "float32", "float64", "decimal", "int", "uint"),
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64, 128)),
    )
)


def _of(*kinds: type) -> Callable[[Any], Any]:
    return lambda value: value if isinstance(value, kinds) else None


def _format(value: Any) -> str | None:
    return value if isinstance(value, str) and value.lower() not in _WIDTHS else None


def _number(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _count(value: Any) -> int | None:
    number = _number(value)
    if number is None or number < 0 or (isinstance(number, float) and not number.is_integer()):
        return None
    return int(number)


def _names(value: Any) -> list[str] | None:
    if not isinstance(value, list):
        return None
    return list(dict.fromkeys(name for name in value if isinstance(name, str))) or None


def _name_lists(value: Any) -> dict[str, list[str]] | None:
    if not isinstance(value, Mapping):
        return None
    lists = {name: _names(names) for name, names in value.items()}
    return {name: names for name, names in lists.items() if names} or None


def _type(value: Any) -> str | list[str] | None:
    if isinstance(value, str) and value in TYPES:
        return value
    written = value if isinstance(value, list) else [value]
    named = dict.fromkeys(type_name(item, TYPES) for item in written if isinstance(item, str))
    known = [name for name in named if name is not None and name != "null"]
    if "null" in named:
        known.append("null")
    return (known[0] if len(known) == 1 else known) or None


_OF_KIND: Final[Mapping[str, Callable[[Any], Any]]] = {
    kw.TEXT: _of(str),
    kw.NUMBER: _number,
    kw.COUNT: _count,
    kw.FLAG: _of(bool),
    kw.NAMES: _names,
    kw.NAME_LISTS: _name_lists,
    kw.VALUES: _of(list),
    kw.TYPE: _type,
}
PLAIN: Final[Mapping[str, Callable[[Any], Any]]] = {
    **{keyword: _OF_KIND[kind] for keyword, kind in KINDS.items() if kind in _OF_KIND},
    "format": _format,
}
