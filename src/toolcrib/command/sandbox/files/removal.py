"""Removes a folder with everything in it, however deep it is and whatever rights a command took away in it.

`shutil.rmtree` calls itself for each level, and a path names at most some 2,000 of them; commands can make more. Here a
descriptor goes down and up again, so that each level costs the same, and two descriptors are open at a time.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress

from toolcrib.folder_handles import NOFOLLOW, READ_FOLDER, RELATIVE, THROUGH_FOLDER

HAS_O_PATH = hasattr(os, "O_PATH")
Identity = tuple[int, int]


def remove_tree(path: str) -> None:
    """Remove a folder as far as that is possible; a link in it is removed and not followed."""
    if not RELATIVE:
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        parent = os.open(os.path.dirname(path) or ".", READ_FOLDER & ~NOFOLLOW)
        try:
            _remove_folder(parent, os.path.basename(path))
        finally:
            os.close(parent)


def remove_tree_in(parent: int, name: str) -> None:
    """Remove a folder by its name in an open folder, as `remove_tree` does."""
    with suppress(OSError):
        _remove_folder(parent, name)


def _remove_folder(parent: int, top: str) -> None:
    """Remove a folder by its name in another; one that cannot be emptied stays. Raises OSError if it is no folder."""
    fd = _opened(parent, top)
    outer: list[
        tuple[str, list[str], Identity]
    ] = []  # of each level above: its name, the folders left, who it is
    name, folders = top, _without_files(fd)
    try:
        while folders or outer:
            if folders:
                inner = folders.pop()
                with suppress(OSError):
                    below = _opened(fd, inner)
                    outer.append((name, folders, _identity(fd)))
                    os.close(fd)
                    fd, name, folders = below, inner, _without_files(below)
                continue
            emptied = name
            name, folders, identity = outer.pop()
            above = os.open("..", READ_FOLDER, dir_fd=fd)
            os.close(fd)
            fd = above
            if _identity(fd) != identity:
                return  # somebody moved the folder meanwhile: what lies above it is not ours
            with suppress(OSError):
                os.rmdir(emptied, dir_fd=fd)
    finally:
        os.close(fd)
    os.rmdir(top, dir_fd=parent)


def _opened(parent: int, name: str) -> int:
    """A folder opened to be changed, with the rights for that. Raises OSError."""
    try:
        fd = os.open(name, READ_FOLDER, dir_fd=parent)
    except PermissionError:
        give_rights(parent, name)
        fd = os.open(name, READ_FOLDER, dir_fd=parent)
    with suppress(OSError):
        if os.fstat(fd).st_mode & 0o700 != 0o700:
            os.fchmod(fd, 0o700)
    return fd


def give_rights(parent: int, name: str) -> None:
    """Gives a folder in an open one the rights to be listed and changed; never what a link of its name leads to."""
    status = os.lstat(name, dir_fd=parent)
    if status.st_mode & 0o700 != 0o700:
        set_folder_mode(parent, name, stat.S_IMODE(status.st_mode) | 0o700)


def set_folder_mode(parent: int, name: str, mode: int) -> None:
    """Sets the mode of a folder in an open one; never of what a link of its name leads to. Raises OSError."""
    if not HAS_O_PATH:
        os.chmod(name, mode, dir_fd=parent, follow_symlinks=False)
        return
    fd = os.open(name, THROUGH_FOLDER, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{fd}", mode)
    finally:
        os.close(fd)


def _without_files(fd: int) -> list[str]:
    """Remove the files and links in a folder, and return the names of the folders that are left."""
    folders: list[str] = []
    with suppress(OSError), os.scandir(fd) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
                continue
            with suppress(OSError):
                os.unlink(entry.name, dir_fd=fd)
    return folders


def _identity(fd: int) -> Identity:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino
