"""Copies of files, by the SHA-256 of their content; each content is stored once.

Where the file system can, a copy of a large file shares its blocks until either is written (a reflink). A hard link
would not do: a command that writes into the file would change the copy, too.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["ContentStore", "DamagedCopy"]

WHOLE = 1 << 20  # bytes up to which a file is read in one piece
CLONED_FROM = 1 << 16  # bytes from which a copy shares blocks
SYNCED_ONE_BY_ONE = 20  # copies; where there are more, the system writes out all that it holds, once
FICLONE = 0x40049409
NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
OPEN = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class DamagedCopy(OSError):
    """A copy whose content is not what was stored, as after a power cut."""


class ContentStore:
    """The copies in a private folder. `stored` counts the bytes that were added."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stored = 0
        self._unsynced = 0  # copies since `settle`
        self._clones = True
        self._made: set[str] = set()

    def store(self, fd: int, size: int) -> tuple[str, int]:
        """Store the content of an open file; returns its hash and how many bytes were read.

        Of a file that grew beyond `size` one byte more is read: whoever writes it may be as fast as who reads it.
        """
        if size < CLONED_FROM:
            data = _read(fd, WHOLE)
            if len(data) < WHOLE:
                digest = hashlib.sha256(data).hexdigest()
                self._keep(digest, data)
                return digest, len(data)
        return self._store_large(fd, size)

    def digest(self, fd: int, size: int | None = None) -> tuple[str, int]:
        """The hash and the length of an open file's content; stores nothing. At most `size` + 1 bytes are read."""
        digest, length = hashlib.sha256(), 0
        for piece in _pieces(fd, size):
            digest.update(piece)
            length += len(piece)
        return digest.hexdigest(), length

    def read(self, digest: str) -> bytes:
        """A stored content. Raises OSError, DamagedCopy if the copy is not what was stored."""
        data = self._path(digest).read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            raise DamagedCopy(f"the stored copy {digest[:12]} is damaged")
        return data

    def write_to(self, digest: str, fd: int) -> None:
        """Write a stored content into an empty open file. Raises OSError, DamagedCopy if the copy is damaged."""
        source = os.open(self._path(digest), OPEN)
        try:
            if os.fstat(source).st_size >= CLONED_FROM and self._clone(source, fd):
                found, _ = self.digest(source)
            else:
                check = hashlib.sha256()
                for piece in _pieces(source):
                    check.update(piece)
                    _write(fd, piece)
                found = check.hexdigest()
        finally:
            os.close(source)
        if found != digest:
            raise DamagedCopy(f"the stored copy {digest[:12]} is damaged")

    def forget_folders(self) -> None:
        """Makes the folders anew when they are needed next, since somebody has removed the store."""
        self._made.clear()

    def settle(self) -> None:
        """See to it that all copies outlast a power cut."""
        if self._unsynced > SYNCED_ONE_BY_ONE and hasattr(os, "sync"):
            os.sync()
        self._unsynced = 0

    def has(self, digest: str) -> bool:
        """Whether a content is stored."""
        return self._path(digest).exists()

    def all(self) -> Iterator[tuple[str, int]]:
        """The hashes of all copies, each with its length."""
        with suppress(FileNotFoundError), os.scandir(self.folder) as folders:
            for folder in folders:
                with suppress(NotADirectoryError, FileNotFoundError), os.scandir(folder.path) as copies:
                    for copy in copies:
                        with suppress(FileNotFoundError):
                            yield folder.name + copy.name, copy.stat().st_size

    def remove(self, digest: str) -> None:
        """Remove a copy, or what a process that was killed left of one."""
        self._path(digest).unlink(missing_ok=True)

    def _path(self, digest: str) -> Path:
        return self.folder / digest[:2] / digest[2:]

    def _keep(self, digest: str, data: bytes) -> None:
        path = self._path(digest)
        with suppress(OSError):
            if os.stat(path).st_size == len(data):
                return
        temporary = self._temporary(digest[:2])
        fd = os.open(temporary, NEW, 0o600)
        try:
            try:
                _write(fd, data)
                self._sync(fd)
            finally:
                os.close(fd)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        self.stored += len(data)

    def _store_large(self, fd: int, size: int) -> tuple[str, int]:
        """Copy first, then hash the copy: the file may change meanwhile, the copy does not."""
        temporary = self._temporary("00")
        copy = os.open(temporary, NEW, 0o600)
        try:
            try:
                os.lseek(fd, 0, os.SEEK_SET)
                if not self._clone(fd, copy):
                    for piece in _pieces(fd, size):
                        _write(copy, piece)
                os.lseek(copy, 0, os.SEEK_SET)
                digest, length = self.digest(copy)
                self._sync(copy)
            finally:
                os.close(copy)
            path = self._path(digest)
            if path.exists() and path.stat().st_size == length:
                os.unlink(temporary)
            else:
                self._make(digest[:2])
                os.replace(temporary, path)
                self.stored += length
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        return digest, length

    def _sync(self, fd: int) -> None:
        """Writes a copy to the disk before it gets its name, because a copy with a name counts as complete."""
        self._unsynced += 1
        if self._unsynced <= SYNCED_ONE_BY_ONE or not hasattr(os, "sync"):
            os.fsync(fd)

    def _clone(self, source: int, target: int) -> bool:
        """Let the target share the blocks of the source; False where the file system cannot."""
        if sys.platform != "linux" or not self._clones:
            return False
        import fcntl

        try:
            fcntl.ioctl(target, FICLONE, source)
        except OSError:
            self._clones = False  # two file systems, or one without reflinks: as for the next file
            return False
        return True

    def _temporary(self, within: str) -> str:
        self._make(within)
        return f"{self.folder}/{within}/.{os.getpid()}.{os.urandom(4).hex()}"

    def _make(self, name: str) -> None:
        if name not in self._made:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            (self.folder / name).mkdir(mode=0o700, exist_ok=True)
            self._made.add(name)


def _pieces(fd: int, size: int | None = None) -> Iterator[bytes]:
    """The content of an open file, piece by piece; with `size`, at most `size` + 1 bytes of it."""
    left = sys.maxsize if size is None else size + 1
    while left > 0 and (piece := os.read(fd, min(WHOLE, left))):
        left -= len(piece)
        yield piece


def _read(fd: int, most: int) -> bytes:
    data = os.read(fd, most)
    while data and len(data) < most and (more := os.read(fd, most - len(data))):
        data += more
    return data


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
