"""Open folders, and what is done to the names in them.

Where the system opens names relative to an open folder, a handle is the folder's descriptor: renaming the folder, or
putting a link in its place, changes nothing. Windows cannot do that. There a handle is the folder's path, and links
are looked for just before a name is used: a program that runs at the same time could swap one in between.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import TypeAlias

__all__ = [
    "BINARY",
    "CLOEXEC",
    "DIRECTORY",
    "NOCTTY",
    "NOFOLLOW",
    "NONBLOCK",
    "READ_FILE",
    "READ_FOLDER",
    "RELATIVE",
    "THROUGH_FOLDER",
    "FolderHandle",
    "close_handle",
    "copy_attributes",
    "duplicate",
    "is_link",
    "link_in",
    "link_target",
    "make_folder",
    "open_in",
    "open_root",
    "open_same",
    "remove_folder_in",
    "remove_in",
    "rename_in",
    "rename_new_in",
    "scanned",
    "status_in",
    "status_of",
    "sync_folder",
]

FolderHandle: TypeAlias = int | str

RELATIVE = sys.platform != "win32"
NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 1 << 28)  # where the system has no such flag, `open_in` reads ours
DIRECTORY: int = getattr(os, "O_DIRECTORY", 1 << 29)
NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
NOCTTY: int = getattr(os, "O_NOCTTY", 0)
CLOEXEC: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOINHERIT", 0)
BINARY: int = getattr(os, "O_BINARY", 0)
# Flags that open a file or a folder and nothing that a link in its place leads to. A pipe is not waited for.
READ_FILE = os.O_RDONLY | NOFOLLOW | NONBLOCK | NOCTTY | CLOEXEC
READ_FOLDER = os.O_RDONLY | DIRECTORY | NOFOLLOW | CLOEXEC
# A folder on the way to another needs no right to be listed.
THROUGH_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | DIRECTORY | NOFOLLOW | CLOEXEC
ACCESS_LIST = "system.posix_acl_access"
# Errors of file systems that allow a file only one name, or no further name.
NO_SECOND_NAMES = (
    errno.EPERM,
    errno.EACCES,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
    errno.EINVAL,
    errno.EMLINK,
)


def open_root(path: str) -> FolderHandle:
    """A handle of the folder at a path. Raises OSError, NotADirectoryError for anything else than a folder."""
    if RELATIVE:
        return os.open(path, os.O_RDONLY | DIRECTORY | CLOEXEC)
    if not stat.S_ISDIR(os.stat(path).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return path


def open_in(folder: FolderHandle, name: str, flags: int, mode: int = 0o666) -> FolderHandle:
    """Open a name in a folder: a file's descriptor, or a folder's handle. With NOFOLLOW a link raises ELOOP."""
    if isinstance(folder, int):
        return os.open(name, flags, mode, dir_fd=folder)
    path = os.path.join(folder, name)
    if flags & NOFOLLOW and is_link(path):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    if flags & os.O_CREAT == 0 and stat.S_ISDIR(os.stat(path).st_mode):
        return path
    if flags & DIRECTORY:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
    return os.open(path, (flags & ~(NOFOLLOW | DIRECTORY)) | BINARY, mode)


def open_same(folder: FolderHandle, flags: int) -> FolderHandle:
    """Another handle of the same folder, opened with these flags."""
    return os.open(".", flags, dir_fd=folder) if isinstance(folder, int) else folder


def duplicate(folder: FolderHandle) -> FolderHandle:
    """Another handle of the same folder, which is closed by itself."""
    return os.dup(folder) if isinstance(folder, int) else folder


def close_handle(handle: FolderHandle) -> None:
    """Close a file's descriptor or a folder's handle."""
    if isinstance(handle, int):
        os.close(handle)


def is_link(path: str) -> bool:
    """Whether a path is a symbolic link, or on Windows any other name that leads elsewhere, such as a junction."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISLNK(status.st_mode) or bool(getattr(status, "st_reparse_tag", 0))


def link_target(folder: FolderHandle, name: str) -> str | None:
    """Where a link in a folder leads, with `/` between names; None if the name is no link."""
    try:
        if isinstance(folder, int):
            return os.readlink(name, dir_fd=folder)
        path = os.path.join(folder, name)
        return os.readlink(path).removeprefix("\\\\?\\").replace("\\", "/") if is_link(path) else None
    except OSError:
        return None


def status_of(handle: FolderHandle) -> os.stat_result:
    """The status of an open file or folder."""
    return os.fstat(handle) if isinstance(handle, int) else os.stat(handle)


def status_in(folder: FolderHandle, name: str) -> os.stat_result:
    """The status of a name in a folder; a link is not followed. Raises OSError."""
    if isinstance(folder, int):
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    return os.lstat(os.path.join(folder, name))


def make_folder(folder: FolderHandle, name: str) -> None:
    """Make a folder in a folder. Raises OSError, FileExistsError if the name is taken."""
    if isinstance(folder, int):
        os.mkdir(name, dir_fd=folder)
    else:
        os.mkdir(os.path.join(folder, name))


def link_in(folder: FolderHandle, name: str, into: FolderHandle, new: str) -> None:
    """Give a file a second name, maybe in another folder. Raises OSError, FileExistsError if the name is taken."""
    if isinstance(folder, int) and isinstance(into, int):
        os.link(name, new, src_dir_fd=folder, dst_dir_fd=into, follow_symlinks=False)
    else:
        assert isinstance(folder, str) and isinstance(into, str)
        os.link(os.path.join(folder, name), os.path.join(into, new))


def rename_in(folder: FolderHandle, old: str, new: str) -> None:
    """Rename a file in a folder; a file of the new name is replaced. Raises OSError."""
    if isinstance(folder, int):
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        os.replace(os.path.join(folder, old), os.path.join(folder, new))


def rename_new_in(folder: FolderHandle, old: str, new: str) -> None:
    """Rename a file in a folder, and replace nothing. Raises OSError, FileExistsError if the new name is taken.

    A file system without second names for files, such as FAT, cannot do that in one step: there the new name is looked
    for just before, and a file of that name which another program makes in between is replaced.
    """
    if not isinstance(folder, int):
        os.rename(os.path.join(folder, old), os.path.join(folder, new))  # on Windows it replaces nothing
        return
    try:
        link_in(folder, old, folder, new)
    except OSError as problem:
        if problem.errno not in NO_SECOND_NAMES:
            raise
        if _is_there(folder, new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from None
        rename_in(folder, old, new)
    else:
        with suppress(OSError):  # the file has its new name
            remove_in(folder, old)


def _is_there(folder: FolderHandle, name: str) -> bool:
    try:
        status_in(folder, name)
    except FileNotFoundError:
        return False
    return True


def remove_in(folder: FolderHandle, name: str) -> None:
    """Remove a file in a folder. Raises OSError."""
    if isinstance(folder, int):
        os.unlink(name, dir_fd=folder)
    else:
        os.unlink(os.path.join(folder, name))


def remove_folder_in(folder: FolderHandle, name: str) -> None:
    """Remove an empty folder in a folder. Raises OSError."""
    if isinstance(folder, int):
        os.rmdir(name, dir_fd=folder)
    else:
        os.rmdir(os.path.join(folder, name))


@contextmanager
def scanned(folder: FolderHandle) -> Generator[Iterator[os.DirEntry[str]]]:
    """The entries of a folder, in no order. Raises OSError."""
    with os.scandir(folder) as found:
        yield found


def sync_folder(folder: FolderHandle) -> None:
    """Wait until the names in a folder are on disk, where the system can do that for a folder. Raises OSError."""
    if isinstance(folder, int):
        try:
            os.fsync(folder)
        except OSError as problem:
            if problem.errno not in (errno.EINVAL, errno.ENOTSUP):  # of systems that cannot sync folders
                raise


def copy_attributes(folder: FolderHandle, name: str, fd: int, mode: int) -> None:
    """Gives a new file of a mode the access list and the user's own attributes of the file that it replaces, on Linux.

    With an access list, the group's bits of a mode say what the list allows at most; those of `mode` count. Without the
    list they would allow it to the group: where the list cannot be set, the group has no rights.
    """
    if sys.platform != "linux" or not isinstance(folder, int):
        return
    path = f"/proc/self/fd/{folder}/{name}"
    try:
        names = os.listxattr(path, follow_symlinks=False)
    except OSError:  # the file system has no attributes
        return
    if ACCESS_LIST not in names:  # a new file has the list that its folder gives
        with suppress(OSError):
            os.removexattr(fd, ACCESS_LIST)
    for attribute in names:
        if attribute != ACCESS_LIST and not attribute.startswith("user."):
            continue
        try:
            os.setxattr(fd, attribute, os.getxattr(path, attribute, follow_symlinks=False))
        except OSError:
            if attribute == ACCESS_LIST:
                mode &= ~stat.S_IRWXG
    if ACCESS_LIST in names:
        os.fchmod(fd, mode)
