"""Strings anywhere inside JSON data: found with their place, or replaced in a copy. No depth is too much."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Path = tuple[str | int, ...]


def find_strings(value: Any, path: Path = ()) -> Iterator[tuple[Path, str, bool]]:
    """Every string with the path to it; the last item says whether it is a dict key. In no promised order."""
    waiting: list[tuple[Path, Any]] = [(path, value)]
    while waiting:
        where, found = waiting.pop()
        if isinstance(found, str):
            yield where, found, False
        elif isinstance(found, Mapping):
            for key, item in found.items():
                if isinstance(key, str):
                    yield where, key, True
                waiting.append(((*where, key), item))
        elif isinstance(found, list | tuple):
            waiting.extend(((*where, number), item) for number, item in enumerate(found))


def replace_strings(
    value: Any,
    text: Callable[[str], Any],
    *,
    key: Callable[[str], str] = lambda key: key,
    number: Callable[[Any], Any] = lambda number: number,
    other: Callable[[Any], Any] = lambda other: other,
) -> Any:
    """A copy with every string, key and number replaced; tuples become lists. Equal new keys are told apart.

    `other` replaces what is no JSON data.
    """
    made: list[Any] = [None]
    waiting: list[tuple[Any, Any, Any]] = [(value, made, 0)]
    while waiting:
        found, target, place = waiting.pop()
        if isinstance(found, str):
            target[place] = text(found)
        elif isinstance(found, Mapping):
            copy: dict[Any, Any] = {}
            target[place] = copy
            for old, item in found.items():
                new = _unused(key(old), copy) if isinstance(old, str) else old
                copy[new] = None  # holds the order; filled below
                waiting.append((item, copy, new))
        elif isinstance(found, list | tuple):
            items: list[Any] = [None] * len(found)
            target[place] = items
            waiting.extend((item, items, index) for index, item in enumerate(found))
        elif isinstance(found, int | float) and not isinstance(found, bool):
            target[place] = number(found)
        else:
            target[place] = found if found is None or isinstance(found, bool) else other(found)
    return made[0]


def _unused(key: str, taken: Mapping[Any, Any]) -> str:
    if key not in taken:
        return key
    count = len(taken)  # more than were ever numbered here, so nearly always free at once
    while f"{key} {count}" in taken:
        count += 1
    return f"{key} {count}"
