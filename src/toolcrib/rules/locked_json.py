"""A JSON file of the user that nobody else may write: changed under a lock, and replaced as a whole.

The lock is on a file beside it and ends with the process that holds it. Reading needs no lock, because a file is always
replaced by one that is complete.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from toolcrib.call import FORMAT
from toolcrib.errors import ToolcribError
from toolcrib.private_files import (
    OPEN_FLAGS,
    belongs_to_another_user,
    close_locked,
    open_locked,
    others_may,
    replace_private_file,
)

__all__ = ["LockedJsonFile"]

MAX_BYTES = 10_000_000


class LockedJsonFile:
    """The list under one key of a file. Every failure to read or write is a ToolcribError that names the file."""

    def __init__(self, path: str | Path, key: str) -> None:
        self.path = Path(path)
        self.key = key

    def stamp(self) -> tuple[int, ...]:
        """A value that changes with the file and its permissions, so that the file need not be read each time."""
        try:
            status, folder = self.path.lstat(), self.path.parent.stat()
        except OSError:
            return ()
        times = status.st_mtime_ns, status.st_ctime_ns
        return (status.st_ino, status.st_size, *times, status.st_mode, status.st_uid, folder.st_mode)

    def read(self) -> list[Any]:
        """The list; empty if there is no file."""
        try:
            fd = os.open(self.path, os.O_RDONLY | OPEN_FLAGS)
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise ToolcribError(f"{self.path} cannot be read: {problem.strerror}") from None
        try:
            self._check(os.fstat(fd))
            with open(fd, "rb", closefd=False) as file:
                data = file.read(MAX_BYTES + 1)
        finally:
            os.close(fd)
        try:
            data_read: Any = json.loads(data) if len(data) <= MAX_BYTES else None
            listed, version = data_read[self.key], data_read["format"]
        except (ValueError, KeyError, TypeError, RecursionError):
            listed = version = None
        if version is not None and version != FORMAT:
            raise ToolcribError(f"{self.path} was written by another version; remove it to begin anew")
        if not isinstance(listed, list):
            raise ToolcribError(f"{self.path} cannot be read as {self.key}")
        return listed

    @contextmanager
    def changing(self) -> Generator[None]:
        """Hold the file's lock, so that nobody changes the file between a read and the `write` that replaces it."""
        try:
            lock = open_locked(self._beside("lock"))
        except OSError as problem:
            raise ToolcribError(f"{self.path} cannot be written: {problem.strerror}") from None
        try:
            yield
        finally:
            close_locked(lock)

    def write(self, listed: list[Any]) -> None:
        """Replace the list, inside of `changing`."""
        data = json.dumps({"format": FORMAT, self.key: listed}, indent=1).encode()
        try:
            replace_private_file(self.path, data)
        except OSError as problem:
            raise ToolcribError(f"{self.path} cannot be written: {problem.strerror}") from None

    def _beside(self, what: str) -> Path:
        return self.path.with_name(f".{self.path.name}.{what}")

    def _check(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise ToolcribError(f"{self.path} is no ordinary file")
        if belongs_to_another_user(status) or others_may(status, 0o022):
            raise ToolcribError(
                f"{self.path} could be written by others; make it yours alone: chmod 600 {self.path}"
            )
        folder = self.path.parent.stat()
        if others_may(folder, stat.S_IWOTH) and not folder.st_mode & stat.S_ISVTX:
            raise ToolcribError(f"{self.path} could be replaced by others: everybody may write to its folder")
