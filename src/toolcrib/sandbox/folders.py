"""The folders of a workspace, looked through again and again: listed anew only where something was made or removed.

What no program can set, a folder's time of change, says which those are.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MOST = 50_000  # folders that are looked into
RECENT = 50_000_000  # nanoseconds: a folder changed so shortly before may change again in the same tick of the clock
OF_GITS_OWN = ("objects", "refs", "logs")  # in a `.git`, where git looks for no repository


@dataclass(frozen=True, slots=True)
class Listing:
    """What matters of a folder: the folders in it, whether it has a `.git`, and whether git takes it for one."""

    stamp: tuple[int, int]
    folders: tuple[str, ...]
    dot_git: str  # "folder", "other" (a file or a link), or ""
    is_git: bool


class Folders:
    """The listings known so far; one that is not asked for any more is forgotten."""

    def __init__(self) -> None:
        self._known: dict[str, Listing] = {}

    def walk(self, roots: Sequence[str]) -> Iterator[tuple[str, Listing]]:
        """Every folder of some, those further up first, at most `MOST`; no link is followed."""
        known, seen = self._known, dict[str, Listing]()
        todo = deque(roots)
        while todo and len(seen) < MOST:
            path = todo.popleft()
            if path in seen or (listing := _listing(path, known.get(path))) is None:
                continue
            seen[path] = listing
            yield path, listing
            own = OF_GITS_OWN if listing.is_git and "/.git/" in f"{path}/" else ()
            todo += [f"{path}/{name}" for name in listing.folders if name not in own]
        self._known = seen


def _listing(path: str, known: Listing | None) -> Listing | None:
    try:
        status = os.lstat(path)
        stamp = (status.st_ino, status.st_ctime_ns)
        if known is not None and known.stamp == stamp:
            return known
        settled = time.time_ns() - status.st_ctime_ns > RECENT
        with os.scandir(path) as entries:
            found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    except OSError:
        return None
    dot_git = ("folder" if found[".git"] else "other") if ".git" in found else ""
    is_git = "HEAD" in found and ("commondir" in found or ("objects" in found and "refs" in found))
    folders = tuple(name for name, is_folder in found.items() if is_folder)
    return Listing(stamp if settled else (0, 0), folders, dot_git, is_git)
