"""Absolute paths: which of them lies in which (by their text), their real paths, and the names in a folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator

NOT_A_NAME = ("", ".", "..")


def within(path: str, place: str) -> bool:
    """Whether a path is a place or lies below it."""
    return path == place or path.startswith(place.rstrip("/") + "/")


def within_any(path: str, places: Iterable[str]) -> bool:
    """Whether a path is one of several places or lies below one of them."""
    return any(within(path, place) for place in places)


def innermost(path: str, places: Collection[str]) -> str:
    """The longest of the places that a path lies in, or "" if it lies in none; it may be one itself.

    Places are written without a slash at their end. To look in a set takes the least time.
    """
    while path.rstrip("/"):
        if path in places:
            return path
        path = path.rpartition("/")[0]
    return "/" if "/" in places else ""


def innermost_around(path: str, places: Collection[str]) -> str:
    """The longest of the places that a path lies in and is not itself, or ""."""
    return innermost(path.rpartition("/")[0], places) if path != "/" else ""


def between(root: str, path: str) -> list[str]:
    """The folders between a root and a path below it, without both, the outermost first."""
    parts = path[len(root) + 1 :].split("/")[:-1]
    return [f"{root}/{'/'.join(parts[: count + 1])}" for count in range(len(parts))]


def existing(paths: Iterable[str], *, shut: bool = False) -> Iterator[str]:
    """The real path of each path that exists, as `os.path.realpath` gives it.

    With `shut`, also of those that may exist, in a folder that nobody may look into now: its owner may change that.
    """
    folders = _Folders()
    for path in paths:
        try:
            status = os.lstat(path)
        except PermissionError:
            if shut:
                yield os.path.realpath(path)
            continue
        except (OSError, ValueError):
            continue
        folder, _, name = path.rpartition("/")
        plain = path.startswith("/") and name not in NOT_A_NAME and not stat.S_ISLNK(status.st_mode)
        yield f"{folders[folder]}/{name}" if plain else os.path.realpath(path)


class _Folders(dict[str, str]):
    """The real paths of absolute folders, without a slash at the end; each is looked up once, at its first use."""

    def __missing__(self, folder: str) -> str:
        above, _, name = folder.rpartition("/")
        if not folder:
            real = ""
        elif name in NOT_A_NAME or os.path.islink(folder):
            real = os.path.realpath(folder).rstrip("/")
        else:
            real = f"{self[above]}/{name}"
        self[folder] = real
        return real


def names_in(folder: str) -> set[str]:
    """The names in a folder; none where it cannot be listed."""
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()
