"""Reads the values of a TOML table. ValueError names the key, what was expected and what is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

__all__ = ["choices", "examples", "flag", "table", "tables", "text", "texts"]

T = TypeVar("T")
Table = Mapping[str, Any]


def text(given: Table, key: str) -> str:
    """A text; "" if the key is missing."""
    value = given.get(key, "")
    if not isinstance(value, str):
        raise ValueError(f"{key} must be text, got {value!r}")
    return value


def texts(given: Table, key: str) -> tuple[str, ...]:
    """A text or a list of texts; none if the key is missing."""
    listed = examples(given, key)
    if key in given and not listed:
        raise ValueError(f"{key} is an empty list, and would mean everything: leave it out if that is meant")
    return listed


def examples(given: Table, key: str) -> tuple[str, ...]:
    """A text or a list of texts, which may be empty; none if the key is missing."""
    value = given.get(key, [])
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or any(not isinstance(item, str) or not item.strip() for item in listed):
        raise ValueError(f"{key} must be a text or a list of texts, got {value!r}")
    return tuple(listed)


def choices(known: Mapping[str, T]) -> Callable[[Table, str], frozenset[T]]:
    """A reader of one or several of the known words."""

    def read(given: Table, key: str) -> frozenset[T]:
        named = texts(given, key)
        for name in named:
            if name not in known:
                raise ValueError(f"{key} must be one of {', '.join(known)}; got {name!r}")
        return frozenset(known[name] for name in named)

    return read


def flag(given: Table, key: str) -> bool | None:
    """True or false; None if the key is missing."""
    value = given.get(key)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{key} must be true or false, got {value!r}")
    return value


def table(given: Table, key: str) -> dict[str, Any]:
    """A table; empty if the key is missing."""
    value = given.get(key, {})
    if not isinstance(value, dict):
        raise ValueError(f'{key} must be a table such as {{ branch = "main" }}, got {value!r}')
    return value


def tables(given: Table, key: str) -> list[dict[str, Any]]:
    """A table or a list of tables; none if the key is missing."""
    value = given.get(key, [])
    listed = [value] if isinstance(value, dict) else value
    if not isinstance(listed, list) or any(not isinstance(item, dict) for item in listed):
        raise ValueError(f'{key} must be a table such as {{ path = "docs/**" }}, or several, got {value!r}')
    return listed
