"""How absolute paths lie to each other, as text; and what lies in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable


def within(path: str, place: str) -> bool:
    """Whether a path is a place or lies below it."""
    return path == place or path.startswith(place.rstrip("/") + "/")


def within_any(path: str, places: Iterable[str]) -> bool:
    """Whether a path is one of several places or lies below one of them."""
    return any(within(path, place) for place in places)


def innermost(path: str, places: Iterable[str]) -> str:
    """The longest of the places that a path lies in, or "" if it lies in none."""
    return max((place for place in places if within(path, place)), key=len, default="")


def between(root: str, path: str) -> list[str]:
    """The folders between a root and a path below it, without both, the outermost first."""
    parts = path[len(root) + 1 :].split("/")[:-1]
    return [f"{root}/{'/'.join(parts[: count + 1])}" for count in range(len(parts))]


def names_in(folder: str) -> set[str]:
    """The names in a folder; none where it cannot be listed."""
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()
