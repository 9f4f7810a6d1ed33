# ruff: noqa: PTH101 - paths are text here
"""The folders of a workspace, looked through again and again: listed anew only where something was made or removed.

What no program can set, a folder's time of change, says which those are.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MOST = 100_000  # folders that are looked into
RECENT = 50_000_000  # nanoseconds: a folder changed so shortly before may change again in the same tick of the clock
OF_GITS_OWN = ("objects", "refs", "logs")  # in a `.git`, where git looks for no repository

OPENS = hasattr(os, "O_PATH")
FOLDS = sys.platform == "darwin"  # names differ there by more than their letters' case


@dataclass(frozen=True, slots=True)
class Listing:
    """What matters of a folder: paths of folders in it, whether it has a `.git`, and whether git takes it for one."""

    stamp: tuple[int, int, int]
    folders: tuple[str, ...]
    dot_git: str  # "folder", "other" (a file or a link), or ""
    is_git: bool


class Folders:
    """The listings known so far; one that is not asked for any more is forgotten."""

    def __init__(self) -> None:
        self._known: dict[str, Listing] = {}

    def walk(self, roots: Sequence[str], shut: set[str], *, opening: bool) -> Iterator[tuple[str, Listing]]:
        """Every folder of some, those further up first, at most `MOST`; no link is followed.

        One that cannot be listed is added to `shut`; where a command shut it (`opening`), it is opened first.
        """
        known, seen = self._known, dict[str, Listing]()
        todo = deque(roots)
        while todo and len(seen) < MOST:
            path = todo.popleft()
            if path in seen:
                continue
            listing: Listing | None = None
            try:
                listing = _listing(path, known.get(path))
            except PermissionError:
                listing = _opened(path) if opening and path not in shut else None
                if listing is None:
                    shut.add(path)
            except OSError:
                pass
            if listing is None:
                continue
            seen[path] = listing
            yield path, listing
            todo += listing.folders
        self._known = seen


def _opened(path: str) -> Listing | None:
    """A folder that nobody may list keeps no program from what lies in it under a name that it knows."""
    try:
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC) if OPENS else -1
        if fd < 0:
            return None
        try:
            os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(os.fstat(fd).st_mode) | 0o500)
        finally:
            os.close(fd)
        return _listing(path, None)
    except OSError:
        return None


def _listing(path: str, known: Listing | None) -> Listing:
    status = os.lstat(path)
    stamp = (status.st_dev, status.st_ino, status.st_ctime_ns)
    if known is not None and known.stamp == stamp:
        return known
    settled = time.time_ns() - status.st_ctime_ns > RECENT
    with os.scandir(path) as entries:
        folders = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    found = {name.casefold(): is_folder for name, is_folder in folders.items()} if FOLDS else folders
    dot_git = ("folder" if found[".git"] else "other") if ".git" in found else ""
    head = "head" if FOLDS else "HEAD"
    is_git = head in found and ("commondir" in found or ("objects" in found and "refs" in found))
    own = OF_GITS_OWN if is_git and "/.git/" in f"{path}/" else ()
    inner = tuple(f"{path}/{name}" for name, is_folder in folders.items() if is_folder and name not in own)
    return Listing(stamp if settled else (0, 0, 0), inner, dot_git, is_git)
