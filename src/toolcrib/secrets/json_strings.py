"""Finds strings in JSON data, or replaces them in a copy. Data of any depth is accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["Path", "find_strings", "replace_strings"]

Path = tuple[str | int, ...]


def find_strings(value: Any) -> Iterator[tuple[Path, str, bool]]:
    """Path and text of every string, in no fixed order; the third item says whether it is a dict key."""
    waiting: list[tuple[Path, Any]] = [((), value)]
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
    """A copy in which every string, key and number is replaced; tuples become lists. Equal new keys are numbered.

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
    count = len(taken)  # nearly always free at once, as fewer keys were numbered here
    while f"{key} {count}" in taken:
        count += 1
    return f"{key} {count}"
