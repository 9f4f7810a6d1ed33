# ruff: noqa: PTH102, PTH106, PTH120 - paths are text and descriptors here
"""Empty folders in the place of protected files that are not there, so that a mount can cover them.

Folders, for git does not see them. Other processes may have commands in the same workspace: whoever needs a mask
holds a lock on it, and the last one removes it (to remove it earlier would take the mounts on it away). A mask is
known by its time of change, which no folder has by chance and which any use of it changes; so what a process that
was killed has left behind is taken for a mask and not for the user's own.
"""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from toolcrib.command.sandbox.interface import Launch

TIME_OF_A_MASK = 1_000_000_007  # seconds
TRIES = 8
OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def is_mask(path: str) -> bool:
    """Whether a path is an empty folder of ours; to its user it is not there."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_mtime_ns // 10**9 == TIME_OF_A_MASK


class Masks:
    """The masks that commands of one sandbox need; each is held once, however many of them run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, int] = {}
        self._users: Counter[str] = Counter()

    def hold(self, paths: Sequence[str]) -> Callable[[Launch], None]:
        """Make the masks that are missing, and hold all; what is given back lets go of them, and removes the last."""
        mine: list[str] = []
        with self._lock:
            for path in paths:
                for folder in [*_absent_above(path), path]:
                    if folder in mine or (os.path.lexists(folder) and not is_mask(folder)):
                        continue
                    if not self._has(folder):
                        break
                    mine.append(folder)
                    self._users[folder] += 1

        def release(launch: Launch) -> None:
            with self._lock:
                while mine:
                    self._let_go(mine.pop())

        return release

    def _has(self, folder: str) -> bool:
        fd = self._held.get(folder)
        if fd is not None and _is_still(fd, folder):
            return True
        found = _held(folder)
        if found is None:
            return False
        if fd is not None:
            os.close(fd)
        self._held[folder] = found
        _mark([folder, os.path.dirname(folder)], self._held)
        return True

    def _let_go(self, folder: str) -> None:
        self._users[folder] -= 1
        if self._users[folder]:
            return
        fd = self._held.pop(folder)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rmdir(folder)  # only if it is still the empty folder
            _mark([os.path.dirname(folder)], self._held)
        except OSError:
            pass
        finally:
            os.close(fd)


def _is_still(fd: int, folder: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(folder))
    except OSError:
        return False


def _held(folder: str) -> int | None:
    """The descriptor that holds a mask, made if it is not there."""
    for _ in range(TRIES):
        try:
            os.mkdir(folder)
        except FileExistsError:
            pass
        except OSError:
            return None
        try:
            fd = os.open(folder, OPEN)
        except OSError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH)  # waits only while another looks whether it is the last
            if _is_still(fd, folder):
                return fd
        except OSError:
            pass
        os.close(fd)
    return None


def _mark(folders: Sequence[str], held: Mapping[str, int]) -> None:
    """Give masks their time, which a mask made in them has changed."""
    for folder in folders:
        if folder in held:
            os.utime(held[folder], (TIME_OF_A_MASK, TIME_OF_A_MASK))


def _absent_above(path: str) -> list[str]:
    found: list[str] = []
    folder = os.path.dirname(path)
    while not os.path.lexists(folder) or is_mask(folder):
        found.append(folder)
        folder = os.path.dirname(folder)
    return found[::-1]
