"""Protected files that a command could change by another name of theirs (a hard link), which no mount covers."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator

from toolcrib.command.sandbox.files.folder_walk import FolderWalk
from toolcrib.command.sandbox.files.protected_links import entries_inside


def with_another_name(protected: Iterable[str], writable: Collection[str], walk: FolderWalk) -> Iterator[str]:
    """The files of protected paths that have another name where commands may write, after a walk of those folders.

    Files in an environment that uv or pnpm made have another name in its cache, where commands may not write. So a file
    in a protected folder counts only if the walk found its inode in a folder where commands may write.
    """
    places = set(protected)
    inside: dict[str, int] = {}
    for path in protected:
        try:
            status = os.lstat(path)
        except OSError:
            continue
        if stat.S_ISDIR(status.st_mode):
            inside |= _with_several_names(path)
        elif status.st_nlink > 1:
            yield path
    if inside:
        wanted = {*inside.values()}
        met = walk.inodes(wanted, writable, places) | _inodes(writable)
        yield from (path for path, inode in inside.items() if inode in met or not inode)


def _with_several_names(folder: str) -> dict[str, int]:
    """The files in a folder that have several names, with their inodes; 0 where a listing gives another number."""
    found: dict[str, int] = {}
    for entry in entries_inside(folder):
        try:
            if not entry.is_dir(follow_symlinks=False) and not entry.is_symlink():
                status = entry.stat(follow_symlinks=False)
                if status.st_nlink > 1:
                    found[entry.path] = status.st_ino if status.st_ino == entry.inode() else 0
        except OSError:  # it is gone
            continue
    return found


def _inodes(paths: Iterable[str]) -> set[int]:
    found: set[int] = set()
    for path in paths:
        try:
            found.add(os.stat(path).st_ino)
        except OSError:
            continue
    return found
