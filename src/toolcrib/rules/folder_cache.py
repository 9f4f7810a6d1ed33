# ruff: noqa: PTH116 - paths are text here
"""Lists folders, and again only those that changed."""

from __future__ import annotations

import os
import time

from toolcrib.rules.comparable_paths import forms_of_name

__all__ = ["FILE", "FOLDER", "LINK", "FolderCache", "FolderEntry"]

FILE, FOLDER, LINK = 0, 1, 2
MAX_CACHED_NAMES = 100_000
# A change right after a listing may leave the same time stamps, on coarse file systems for as long as this.
SETTLED = 3_000_000_000  # nanoseconds

FolderEntry = tuple[str, tuple[str, ...], int]
"""A name, its comparable forms, and its kind (FILE, FOLDER or LINK)."""


class FolderCache:
    """Listings of folders, valid while a folder's time stamps stay: adding, removing and renaming changes these."""

    __slots__ = ("_listings", "_size")

    def __init__(self) -> None:
        self._listings: dict[str, tuple[tuple[int, ...], list[FolderEntry]]] = {}
        self._size = 0

    def entries(self, path: str) -> list[FolderEntry]:
        """The entries of a folder. Raises OSError for a folder that cannot be listed."""
        status = os.stat(path)  # before listing, so that a change during it is noticed
        stamp = (status.st_dev, status.st_ino, status.st_ctime_ns, status.st_mtime_ns)
        known = self._listings.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        started = time.time_ns()
        with os.scandir(path) as entries:
            found = [(entry.name, forms_of_name(entry.name), _kind(entry)) for entry in entries]
        if started - max(status.st_ctime_ns, status.st_mtime_ns) > SETTLED:
            if self._size + len(found) > MAX_CACHED_NAMES:
                self._listings, self._size = {}, 0
            self._listings[path] = stamp, found
            self._size += len(found)
        else:
            self._listings.pop(path, None)
        return found


def _kind(entry: os.DirEntry[str]) -> int:
    if entry.is_symlink():
        return LINK
    return FOLDER if entry.is_dir(follow_symlinks=False) else FILE
