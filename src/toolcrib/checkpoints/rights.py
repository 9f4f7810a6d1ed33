"""Rights that a command took away from a file or folder of ours, given back for as long as it is read or changed."""

from __future__ import annotations

import os
import stat
import sys

from toolcrib.folder_handles import CLOEXEC, NOFOLLOW, FolderHandle, close_handle, open_root, status_in

__all__ = ["entered", "open_up", "open_up_root", "set_mode"]


def open_up(folder: FolderHandle, name: str, rights: int) -> int | None:
    """Add rights such as 0o700 to a file or folder; returns the mode that it had, None where that is not possible.

    A link is not followed. Raises OSError where it is not ours.
    """
    if sys.platform != "linux" or not isinstance(folder, int):
        return None
    return _add_rights(os.open(name, os.O_PATH | NOFOLLOW | CLOEXEC, dir_fd=folder), rights)


def open_up_root(path: str) -> tuple[FolderHandle, int | None]:
    """Opens a folder. Where its rights forbid that, it is given 0o500 more, and its earlier mode is returned, too.

    Raises OSError.
    """
    try:
        return entered(open_root(path)), None
    except PermissionError:
        if sys.platform != "linux":
            raise
        mode = _add_rights(os.open(path, os.O_PATH | NOFOLLOW | CLOEXEC), 0o500)
        return open_root(path), mode


def entered(folder: FolderHandle) -> FolderHandle:
    """An open folder, if names in it may be used; else closes it and raises PermissionError.

    A folder can be opened that may be listed only.
    """
    try:
        status_in(folder, ".")
    except PermissionError:
        close_handle(folder)
        raise
    return folder


def _add_rights(fd: int, rights: int) -> int | None:
    """Add rights to what a descriptor stands for, and close it; returns the mode that it had, None for a link."""
    try:
        status = os.fstat(fd)
        if stat.S_ISLNK(status.st_mode):
            return None
        mode = stat.S_IMODE(status.st_mode)
        os.chmod(f"/proc/self/fd/{fd}", mode | rights)
        return mode
    finally:
        os.close(fd)


def set_mode(fd: int, mode: int) -> None:
    """Set the mode of an open file or folder, where the system has modes."""
    if sys.platform != "win32":
        os.fchmod(fd, mode)
