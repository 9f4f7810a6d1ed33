"""The files below a folder that may hold secrets by their names, which a search through the folder would show unasked.

In the folder of a version control, only the settings count, and only if a credential stands in them.
"""

from __future__ import annotations

import glob
import os
import posixpath
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from toolcrib.command.judge.paths import may_hold_secrets
from toolcrib.command.sandbox.files.shown_settings import without_credentials_in

MAX_NAMES = 200_000  # names that are looked at for one command
MAX_FOUND = 100  # paths; each is one more mount for a sandbox
VERSION_CONTROL = (".git", ".hg", ".svn")
SETTINGS = ("config", "config.worktree", "hgrc")
OBJECTS = ("objects", "lfs", "store", "pristine")  # what is stored there is compressed


class SecretsBelow(NamedTuple):
    """Absolute paths. `incomplete` says in words why these are not all; "" if they are."""

    paths: tuple[str, ...]
    incomplete: str = ""


def secrets_below(folder: str, shown: Iterable[str]) -> SecretsBelow:
    """What may hold secrets in and below `shown`, paths and patterns relative to a folder. Follows no link."""
    found: list[str] = []
    left = MAX_NAMES
    for path, names in _walk(folder, shown):
        left -= names
        if path:
            found.append(path)
        if left < 0:
            return SecretsBelow(tuple(found), f"there are more than {MAX_NAMES:,} names to look at")
        if len(found) > MAX_FOUND:
            return SecretsBelow(tuple(found), f"more than {MAX_FOUND} files may hold secrets")
    return SecretsBelow(tuple(dict.fromkeys(found)))


def _walk(folder: str, shown: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Each path that may hold secrets, and how many names were looked at for it; "" with those of a whole folder."""
    waiting = [start for place in shown for start in _starts(folder, place)]
    seen = set[str]()
    while waiting:
        at, of_history = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        above = at.rpartition("/")[2]
        looked = 0
        try:
            with os.scandir(at) as entries:
                for entry in entries:
                    looked += 1
                    name = entry.name
                    if entry.is_symlink():
                        continue
                    inner = of_history or name in VERSION_CONTROL
                    if inner:
                        holds = name in SETTINGS and without_credentials_in(entry.path) is not None
                    else:
                        holds = may_hold_secrets(f"{above}/{name}")
                    if holds:
                        yield entry.path, 0
                    elif entry.is_dir(follow_symlinks=False) and not (of_history and name in OBJECTS):
                        waiting.append((entry.path, inner))
        except OSError:
            pass
        yield "", looked


def _starts(folder: str, place: str) -> Iterator[tuple[str, bool]]:
    signs = posixpath.join(glob.escape(folder), place)
    whole = posixpath.normpath(posixpath.join(folder, place))
    names = [whole]
    if not os.path.lexists(whole) and glob.has_magic(place):
        names = list(islice(glob.iglob(signs), MAX_NAMES))  # noqa: PTH207 - names as they are written
    for name in names:
        if os.path.isdir(name):  # noqa: PTH112 - paths are text here
            yield name, False
