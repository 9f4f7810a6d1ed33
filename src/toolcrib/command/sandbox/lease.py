"""Folders leased to a process: it holds a lock on each, which the kernel releases however the process ends.

So a later process can tell what was left behind from what is in use, without trusting names, process ids or ages.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from toolcrib.command.sandbox.files.removal import remove_tree
from toolcrib.folder_handles import READ_FOLDER

TRIES = 8
SCRATCH = "toolcrib-scratch-"


def lease_new_folder(place: str, prefix: str) -> tuple[str, int]:
    """Creates a folder in a place; returns its path and the descriptor that holds its lock. Raises OSError."""
    for _ in range(TRIES):
        path = f"{place}/{prefix}{secrets.token_hex(6)}"
        os.mkdir(path, 0o700)
        fd = _lock(path)
        if fd is not None:
            return path, fd
        # Between the two steps another process took the folder for one that was left behind, and removed it; or no
        # descriptor is left, and the empty folder goes.
        with suppress(OSError):
            os.rmdir(path)
    raise OSError(f"no folder of ours can be kept in {place}")


def remove_abandoned(place: str, prefix: str, remove: Callable[[str], None]) -> None:
    """Removes the folders with a prefix that belong to this user and that no living process has leased."""
    for path in _own_folders(place, prefix):
        fd = _lock(path)
        if fd is not None:
            try:
                remove(path)
            finally:
                os.close(fd)


def _lock(path: str) -> int | None:
    """The descriptor that holds the lock of a folder; None where a living process has it, or the folder is gone."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fd = os.open(path, READ_FOLDER)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), os.lstat(path)):
            return fd
    except OSError:
        pass
    os.close(fd)
    return None


def _own_folders(place: str, prefix: str) -> Iterator[str]:
    try:
        names = [name for name in os.listdir(place) if name.startswith(prefix)]
    except OSError:
        return
    for name in names:
        try:
            if os.lstat(f"{place}/{name}").st_uid == os.geteuid():
                yield f"{place}/{name}"
        except OSError:
            continue


class ScratchFolder:
    """A folder for temporary files that the commands of one sandbox share, and nobody else sees.

    Created when first needed and removed with the sandbox that owns it. Folders that killed processes left behind are
    removed when the next sandbox is made, whether or not a command is run in it.
    """

    __slots__ = ("__weakref__", "_lock", "_path", "_remove")

    def __init__(self) -> None:
        self._path = ""
        self._lock = threading.Lock()
        self._remove: Callable[[], Any] | None = None
        if sys.platform != "win32":  # a folder has no lock there: what a killed process leaves behind stays
            remove_abandoned(os.path.realpath(tempfile.gettempdir()), SCRATCH, remove_tree)

    def path(self) -> str:
        with self._lock:
            if not self._path or not os.path.isdir(self._path):
                place = os.path.realpath(tempfile.gettempdir())
                if sys.platform == "win32":
                    self._path = tempfile.mkdtemp(prefix=SCRATCH)
                    self._remove = weakref.finalize(self, remove_tree, self._path)
                    return self._path
                self._path, lock = lease_new_folder(place, SCRATCH)
                self._remove = weakref.finalize(self, _end_lease, self._path, lock)
            return self._path

    def keep_alive(self, launch: object) -> None:
        """Does nothing; a launch that holds this method keeps the folder."""

    def close(self) -> None:
        if self._remove is not None:
            self._remove()


def _end_lease(path: str, lock: int) -> None:
    remove_tree(path)
    os.close(lock)
