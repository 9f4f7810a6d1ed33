"""Secrets in a file that only its owner may read."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from toolcrib.private_files import (
    OPEN_FLAGS,
    belongs_to_another_user,
    close_locked,
    open_locked,
    others_may,
    replace_private_file,
)
from toolcrib.secrets.stores import MAX_VALUE, SecretError, valid_name

__all__ = ["SecretFile"]


class SecretFile:
    """A JSON object of names and values in a file of ours with mode 0600. A missing file has no names.

    The file is written whole and atomically, and several processes may change it at once. SecretError is raised for a
    file that belongs to somebody else or that others may read, for a link, and for a file in a folder to which
    everybody may write.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def get(self, name: str) -> str | None:
        return self._read().get(name)

    def names(self) -> Collection[str]:
        return sorted(self._read())

    def at_hand(self) -> Mapping[str, str | None]:
        return self._read()

    def set(self, name: str, value: str) -> None:
        """Store a value in place of an earlier one."""
        valid_name(name)
        with self._changing():
            self._write({**self._read(), name: value})

    def remove(self, name: str) -> bool:
        """Remove a value. Returns whether there was one."""
        if name not in self._read():
            return False
        with self._changing():
            values = self._read()
            if values.pop(name, None) is None:
                return False
            self._write(values)
            return True

    @contextmanager
    def _changing(self) -> Generator[None]:
        """Hold the file's lock, so that nobody changes the file between a read and the write that replaces it."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._check_folder()
            lock = open_locked(self.path.with_name(f".{self.path.name}.lock"))
        except OSError as problem:
            raise SecretError(f"{self.path} cannot be written: {problem.strerror}") from None
        try:
            yield
        finally:
            close_locked(lock)

    def _read(self) -> dict[str, str]:
        try:
            handle = os.open(self.path, os.O_RDONLY | OPEN_FLAGS)
        except FileNotFoundError:
            return {}
        except OSError as problem:
            raise SecretError(f"{self.path} cannot be read: {problem.strerror}") from None
        try:
            if (reason := _unsafe(os.fstat(handle))) is not None:
                raise SecretError(f"{self.path} is not used: {reason}")
            self._check_folder()
            with open(handle, "rb", closefd=False) as file:
                data = file.read(MAX_VALUE + 1)
        finally:
            os.close(handle)
        try:
            values: Any = json.loads(data)
        except ValueError:
            values = None
        if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
            raise SecretError(f"{self.path} is not used: expected a JSON object of names and strings")
        return values

    def _check_folder(self) -> None:
        folder = self.path.parent.stat()
        if others_may(folder, stat.S_IWOTH) and not folder.st_mode & stat.S_ISVTX:
            raise SecretError(f"{self.path} is not used: everybody may write to its folder")

    def _write(self, values: Mapping[str, str]) -> None:
        data = json.dumps(values, ensure_ascii=False, indent=1, sort_keys=True).encode()
        if len(data) > MAX_VALUE:
            raise SecretError(f"{self.path} would become larger than {MAX_VALUE} bytes")
        try:
            replace_private_file(self.path, data)
        except OSError as problem:
            raise SecretError(f"{self.path} cannot be written: {problem.strerror}") from None


def _unsafe(found: os.stat_result) -> str | None:
    if not stat.S_ISREG(found.st_mode):
        return "it is no ordinary file"
    if belongs_to_another_user(found):
        return "it belongs to another user"
    if others_may(found, 0o077):
        return f"others may read or change it (mode {found.st_mode & 0o777:04o}); run chmod 600 on it"
    if found.st_size > MAX_VALUE:
        return f"it is larger than {MAX_VALUE} bytes"
    return None
