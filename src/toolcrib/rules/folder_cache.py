# ruff: noqa: PTH116 - paths are text here
"""The names in folders, read again only where a folder changed."""

from __future__ import annotations

import os
import time

from toolcrib.rules.patterns import folded

FILE, FOLDER, LINK = 0, 1, 2
KEPT_NAMES = 100_000
# A change that comes right after a look may leave the same times, on coarse file systems for as long as this.
SETTLED = 3_000_000_000  # nanoseconds

Name = tuple[str, str, int]
"""A name, the same as patterns compare it, and what it is."""


class FolderCache:
    """A cache by the times that the kernel keeps of each folder: what was added, removed or renamed changes them."""

    __slots__ = ("_kept", "_size")

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[int, ...], list[Name]]] = {}
        self._size = 0

    def names(self, path: str) -> list[Name]:
        """What lies in a folder; OSError where that cannot be told."""
        status = os.stat(path)  # before the look, so that a change during it shows
        stamp = (status.st_dev, status.st_ino, status.st_ctime_ns, status.st_mtime_ns)
        kept = self._kept.get(path)
        if kept is not None and kept[0] == stamp:
            return kept[1]
        begun = time.time_ns()
        with os.scandir(path) as entries:
            found = [(entry.name, folded(entry.name), _kind(entry)) for entry in entries]
        if begun - max(status.st_ctime_ns, status.st_mtime_ns) > SETTLED:
            if self._size + len(found) > KEPT_NAMES:
                self._kept, self._size = {}, 0
            self._kept[path] = stamp, found
            self._size += len(found)
        else:
            self._kept.pop(path, None)
        return found


def _kind(entry: os.DirEntry[str]) -> int:
    if entry.is_symlink():
        return LINK
    return FOLDER if entry.is_dir(follow_symlinks=False) else FILE
