# ruff: noqa: PTH102, PTH208 - paths are text and descriptors here
"""Folders that belong to a process as long as it lives: a lock on each, which the kernel lets go of however it ends.

So a later process can tell what was left behind from what is in use, without believing names, ids or ages.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator

OPEN = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
TRIES = 8


def made(place: str, prefix: str) -> tuple[str, int]:
    """A new folder in a place, and the descriptor that holds its lock. Raises OSError."""
    for _ in range(TRIES):
        path = f"{place}/{prefix}{secrets.token_hex(6)}"
        os.mkdir(path, 0o700)
        fd = claimed(path)
        if fd is not None:
            return path, fd
        # Another process took it for one that was left behind, in the moment between the two.
    raise OSError(f"no folder of ours can be kept in {place}")


def claimed(path: str) -> int | None:
    """The descriptor that holds the lock of a folder; None where a living process has it, or it is gone."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fd = os.open(path, OPEN)
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


def swept(place: str, prefix: str, remove: Callable[[str], None]) -> None:
    """Remove the folders of a prefix that we own and that no living process holds."""
    for path in _ours(place, prefix):
        fd = claimed(path)
        if fd is not None:
            try:
                remove(path)
            finally:
                os.close(fd)


def _ours(place: str, prefix: str) -> Iterator[str]:
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
