"""Placeholders: what is created before a command where a path does not exist yet, and removed again after it.

An empty *folder* stands for a protected file that does not exist, so that a mount can cover it (a folder, because git
ignores empty ones). Other processes may have commands in the same workspace: whoever needs a placeholder holds a lock
on it, and the last one removes it, because removing it would also remove the mounts on it. A placeholder is recognised
by its modification time, which no folder has by chance and which any use of it changes. It must be empty, too, because
a command may give any folder that time. So a placeholder that a killed process left behind is not taken for the user's
own folder. Until it has that time, a placeholder is recognised by rights that no other folder has.

An empty *file* stands for a path that a command may write and that does not exist: neither a mount nor a Landlock rule
can name it, and to open its folder instead would open far more.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from toolcrib.command.sandbox.interface import Launch
from toolcrib.folder_handles import READ_FOLDER, THROUGH_FOLDER

TIME_OF_A_PLACEHOLDER = 1_000_000_007  # seconds
NEW = 0o1677  # the mode of one that is just being made: its owner may not enter it
TRIES = 8
HAS_FD_PATHS = os.path.isdir("/proc/self/fd")


def is_placeholder(path: str) -> bool:
    """Whether a path is a folder of ours that does not exist for its user: it is empty, or holds only others.

    So it is where nothing is: another process may remove its placeholder at any moment.
    """
    todo = [path]
    while todo:
        folder = todo.pop()
        try:
            if not may_be_placeholder(os.lstat(folder)):
                return False
            todo += [f"{folder}/{name}" for name in os.listdir(folder)]
        except FileNotFoundError:
            continue
        except OSError:
            return False
    return True


def may_be_placeholder(status: os.stat_result) -> bool:
    """Whether a folder may be a placeholder. Any program can set times: `is_placeholder` also looks into the folder."""
    return stat.S_ISDIR(status.st_mode) and (_has_time(status) or _is_new(status))


def _has_time(status: os.stat_result) -> bool:
    return status.st_mtime_ns // 10**9 == TIME_OF_A_PLACEHOLDER


def _is_new(status: os.stat_result) -> bool:
    return status.st_mode & 0o1700 == NEW & 0o1700


class Placeholders:
    """The placeholder folders that commands of one sandbox need. Each is locked once, however many commands use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._descriptors: dict[str, int] = {}
        self._users: Counter[str] = Counter()

    @property
    def held_paths(self) -> Collection[str]:
        """Those that some command holds now."""
        return self._descriptors.keys()

    def hold(self, paths: Sequence[str]) -> Callable[[Launch], None]:
        """Creates the missing placeholders and holds all of them; returns the step that releases them again."""
        held: list[str] = []
        with self._lock, _Parents() as parents:
            for path in paths:
                for folder in [*_absent_above(path), path]:
                    if folder in held or not is_placeholder(folder):
                        continue
                    if not self._acquire(folder, parents):
                        break
                    held.append(folder)
                    self._users[folder] += 1

        def release(launch: Launch) -> None:
            with self._lock, _Parents() as parents:
                while held:
                    self._release(held.pop(), parents)

        return release

    def _acquire(self, folder: str, parents: _Parents) -> bool:
        fd = self._descriptors.get(folder)
        if fd is not None and _is_still(fd, folder):
            return True
        new = _create_and_lock(folder, parents)
        if new is None:
            return False
        if fd is not None:
            os.close(fd)
        self._descriptors[folder] = new
        _set_time([folder, os.path.dirname(folder)], self._descriptors)
        return True

    def _release(self, folder: str, parents: _Parents) -> None:
        self._users[folder] -= 1
        if self._users[folder]:
            return
        import fcntl

        fd = self._descriptors.pop(folder)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            parent, name = parents.of(folder)
            os.rmdir(name, dir_fd=parent)  # succeeds only if it is still empty
            _set_time([os.path.dirname(folder)], self._descriptors)
        except OSError:
            pass
        finally:
            os.close(fd)


def _is_still(fd: int, folder: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(folder))
    except OSError:
        return False


class _Parents:
    """The open folders in which placeholders lie, reached through no link, and opened again only if they were moved."""

    def __init__(self) -> None:
        self._descriptors: dict[str, int] = {}

    def __enter__(self) -> _Parents:
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self._descriptors.values():
            os.close(fd)

    def of(self, path: str) -> tuple[int, str]:
        """The open folder of a path, and the name in it. Raises OSError if a link leads there by now."""
        folder, _, name = path.rpartition("/")
        folder = folder or "/"
        fd = self._descriptors.get(folder)
        if fd is None or not _is_at(fd, folder):
            if fd is not None:
                os.close(self._descriptors.pop(folder))
            fd = self._descriptors[folder] = os.open(folder, THROUGH_FOLDER)
            if HAS_FD_PATHS and not _is_at(fd, folder):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), folder)
        return fd, name


def _is_at(fd: int, folder: str) -> bool:
    """Whether an open folder has this path without links; False where that cannot be known."""
    return HAS_FD_PATHS and os.readlink(f"/proc/self/fd/{fd}") == folder


def _create_and_lock(folder: str, parents: _Parents) -> int | None:
    """The descriptor that holds the lock of a placeholder, which is created if it does not exist."""
    import fcntl

    for _ in range(TRIES):
        try:
            parent, name = parents.of(folder)
            with suppress(FileExistsError):
                os.mkdir(name, NEW, dir_fd=parent)
            fd = os.open(name, READ_FOLDER, dir_fd=parent)
        except FileNotFoundError:  # another process has just removed it
            continue
        except OSError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH)  # waits only while another process checks whether it is the last
            if _is_still(fd, folder):
                return fd
        except OSError:
            pass
        os.close(fd)
    return None


def _set_time(folders: Sequence[str], descriptors: Mapping[str, int]) -> None:
    """Gives placeholders their time, again where creating a placeholder in them has changed it, and usual rights."""
    for folder in folders:
        fd = descriptors.get(folder)
        if fd is None:
            continue
        status = os.fstat(fd)
        with suppress(PermissionError):  # one that a command of another user needs has both
            if not _has_time(status):
                os.utime(fd, (TIME_OF_A_PLACEHOLDER, TIME_OF_A_PLACEHOLDER))
            if _is_new(status):  # commands of other users know it by its emptiness, so that all may list it
                os.fchmod(fd, status.st_mode & 0o777 | 0o555)


def _absent_above(path: str) -> list[str]:
    found: list[str] = []
    folder = os.path.dirname(path)
    while is_placeholder(folder):
        found.append(folder)
        folder = os.path.dirname(folder)
    return found[::-1]


def create_missing_files(paths: Iterable[str]) -> list[Callable[[Launch], None]]:
    """Creates those of the files that do not exist; returns the steps that remove them if they are still empty."""
    removals: list[Callable[[Launch], None]] = []
    for path in paths:
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except OSError:  # it exists, or cannot be created: then the command says so
            continue
        removals.append(partial(_remove_if_unchanged, path, _stamp(os.fstat(fd))))
        os.close(fd)
    return removals


def _remove_if_unchanged(path: str, before: tuple[int, ...], launch: Launch) -> None:
    try:
        if _stamp(os.lstat(path)) == before:
            os.unlink(path)
    except OSError:
        pass


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
