"""Files that only their owner may read or change: opened without following links, locked, and replaced whole.

Windows has no owner and mode of this kind: a file there is as private as its folder, which is the user's own.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from toolcrib.folder_handles import close_handle, open_root, sync_folder

__all__ = [
    "OPEN_FLAGS",
    "belongs_to_another_user",
    "lock",
    "locked",
    "others_may",
    "replace_private_file",
    "state_folder",
    "unlock",
    "write_new_private_file",
]

# A link in place of the file is an error, a pipe is not waited for, and no child process inherits the descriptor.
OPEN_FLAGS = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOINHERIT", 0)
    | getattr(os, "O_BINARY", 0)
)
LOCK_AT = 1 << 40  # where Windows locks a byte: behind any content, because a locked byte cannot be read


def state_folder() -> Path:
    """The folder of what outlasts a run, in the user's home. RuntimeError if there is no home."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "toolcrib"


def belongs_to_another_user(status: os.stat_result) -> bool:
    """Whether a file belongs to somebody else; never on Windows, where files say no owner."""
    return sys.platform != "win32" and status.st_uid != os.geteuid()


def others_may(status: os.stat_result, rights: int) -> bool:
    """Whether somebody else may do something with a file; `rights` are bits such as 0o022. Never on Windows."""
    return sys.platform != "win32" and bool(stat.S_IMODE(status.st_mode) & rights)


def open_locked(path: Path) -> int:
    """Open a file for a lock, wait until it is free, and lock it; `close_locked` releases it.

    The file and its folder are made where they are missing. Raises OSError, also where the file system has no locks.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | OPEN_FLAGS, 0o600)
    try:
        while not lock(fd, wait=True):
            pass
    except BaseException:
        os.close(fd)
        raise
    return fd


def close_locked(fd: int) -> None:
    """Release the lock of an open file, and close it.

    Closing alone would not release it where a process was forked meanwhile, because that has the descriptor, too.
    """
    try:
        unlock(fd)
    finally:
        os.close(fd)


@contextmanager
def locked(fd: int) -> Generator[None]:
    """Hold the lock of an open file, which other processes wait for."""
    while not lock(fd, wait=True):
        pass
    try:
        yield
    finally:
        unlock(fd)


def lock(fd: int, *, wait: bool) -> bool:
    """Lock an open file. Returns False if it is still locked by another.

    With `wait`, waits until it is free; on Windows, at most ten seconds.
    """
    if sys.platform == "win32":
        import msvcrt

        os.lseek(fd, LOCK_AT, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(fd, 0, os.SEEK_SET)
    else:
        import fcntl

        try:
            fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
    return True


def unlock(fd: int) -> None:
    """Release the lock of an open file."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(fd, LOCK_AT, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
    else:
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_UN)


def write_new_private_file(path: Path, data: bytes) -> None:
    """Write a file that does not exist yet, on disk when this returns. Raises OSError, FileExistsError if it exists.

    There is no file if it could not be written whole.
    """
    _write_new(path, data)
    _sync_names(path.parent)


def _write_new(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OPEN_FLAGS, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def replace_private_file(path: Path, data: bytes) -> None:
    """Replace the content of a file in one step: a reader sees the old or the new content. Raises OSError.

    The new content is on disk when this returns, under the file's name.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        _write_new(temporary, data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_names(path.parent)


def _sync_names(folder: Path) -> None:
    try:
        handle = open_root(str(folder))
    except PermissionError:  # a folder that may be written to and not read
        return
    try:
        sync_folder(handle)
    finally:
        close_handle(handle)
