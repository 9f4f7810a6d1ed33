"""The file of an audit log, to which several threads and processes append whole lines of one chain.

A writer holds the file's lock, which ends with the writer's process, and first follows the lines that others have
appended. The head is written after the lines are on the disk, so that it never counts a line that is not there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from toolcrib.audit.chain import NO_END, START, Chain, LogBreak, LogCheck, follow, too_short
from toolcrib.errors import ToolcribError
from toolcrib.private_files import OPEN_FLAGS, locked

__all__ = ["AuditError", "LogFile"]

OPEN = os.O_RDWR | os.O_APPEND | OPEN_FLAGS
MAX_HEAD = 1_000  # bytes
MAX_LINE = 10_000_000  # bytes: a file without line breaks would otherwise be read into memory as one line
MAX_REPLACED = 10  # how often the file may have been replaced by the time its lock is obtained


class AuditError(ToolcribError):
    """The log cannot be written, or was not written with this key."""


class LogFile:
    """The file of a log, and its head beside it. Not thread-safe: `LogWriter` uses it from one thread at a time."""

    def __init__(self, path: Path, key: bytes, *, sync: bool) -> None:
        self.path = path
        self.head = path.with_name(path.name + ".head")
        self._key = key
        self._sync = sync
        self._chain: Chain | None = None
        self._stamp: tuple[int, ...] | None = None  # stamps of file and head at the last write or check
        self._broken = ""

    def append(self, records: Sequence[dict[str, Any]], *, sync: bool = True) -> None:
        """Append records as lines, all of them or none; creates the file and its head if needed. Raises AuditError.

        With `sync`, these and all lines before are on the disk afterwards, and the head counts them.
        """
        try:
            with self._locked(create=True) as fd:
                chain = self._followed(fd)
                following = Chain(chain.key, chain.seal, chain.count)
                lines = [f"{following.sealed(record)}\n".encode() for record in records]
                if any(len(line) >= MAX_LINE for line in lines):
                    raise OSError(0, f"a line would be longer than {MAX_LINE:,} bytes")
                if not chain.count:
                    self._write_head(Chain(self._key))  # from the first line on, a missing head shows
                self._chain = None  # unknown until all is written
                size = os.fstat(fd).st_size
                _write_whole(fd, b"".join(lines))
                try:
                    if sync:
                        if self._sync:
                            _to_disk(fd)
                        self._write_head(following)
                except OSError:
                    os.ftruncate(fd, size)  # the calls that they announce will not run
                    raise
                self._chain, self._stamp = following, self._stamp_of(fd)
        except OSError as problem:
            raise AuditError(
                f"the audit log {self.path.name} cannot be written: {problem.strerror or problem}"
            ) from None

    def check(self) -> LogCheck:
        """Follow the chain from its beginning to the head. Raises OSError for a missing file."""
        with self._locked(create=False) as fd:
            chain = Chain(self._key)
            broken, end = self._find_break(chain, fd, 0)
            if broken is None and end < os.fstat(fd).st_size:
                broken = LogBreak(chain.count + 1, NO_END)
            return LogCheck(chain.count, chain.seal, broken)

    def _followed(self, fd: int) -> Chain:
        """The chain at the end of the file. Only lines that are new since the last look are followed."""
        now = self._stamp_of(fd)
        if self._broken and now == self._stamp:
            raise AuditError(self._broken)
        known, start, self._broken = self._chain, 0, ""
        if known is not None and self._stamp is not None:
            if now == self._stamp:
                return known
            if now[0] == self._stamp[0] and now[1] > self._stamp[1]:
                start = self._stamp[1]
        chain = Chain(known.key, known.seal, known.count) if known is not None and start else Chain(self._key)
        broken, end = self._find_break(chain, fd, start)
        if broken is not None:
            self._chain, self._stamp = None, self._stamp_of(fd)
            self._broken = f"the audit log {self.path} does not hold: {broken}"
            raise AuditError(self._broken)
        if end < os.fstat(fd).st_size:  # a crash left a line half written: its call never ran
            os.ftruncate(fd, end)
        return chain

    def _find_break(self, chain: Chain, fd: int, start: int) -> tuple[LogBreak | None, int]:
        """Move a chain on over the lines from `start`. Returns where it breaks, and where the last whole line ends.

        What stands behind that is no break by itself, unless the head counts it as a line.
        """
        head = self._read_head()
        with open(fd, "rb", closefd=False) as file:
            file.seek(start)
            lines = _WholeLines(file)
            broken = follow(chain, lines, head)
        if broken is None and head is None and chain.count:
            broken = LogBreak(chain.count, f"its head, {self.head.name}, is missing or no head")
        return broken or too_short(chain, head), start + lines.bytes

    @contextmanager
    def _locked(self, *, create: bool) -> Generator[int]:
        """Open and lock the file, again if another file stands at its path by then."""
        for _ in range(MAX_REPLACED):
            fd = self._open(create)
            try:
                status = os.fstat(fd)
                if not stat.S_ISREG(status.st_mode):
                    raise OSError(0, "it is no ordinary file")
                with locked(fd):
                    if self._is_in_place(status):
                        yield fd
                        return
            finally:
                os.close(fd)
        raise OSError(0, "it is replaced again and again")

    def _is_in_place(self, status: os.stat_result) -> bool:
        """Whether the log's path still leads to the file that was opened."""
        try:
            return os.path.samestat(status, self.path.lstat())
        except FileNotFoundError:
            return False

    def _open(self, create: bool) -> int:
        try:
            return os.open(self.path, OPEN if create else os.O_RDONLY | OPEN_FLAGS)
        except FileNotFoundError:
            if not create:
                raise
            head = self._read_head()
            if head is not None and head[0]:
                raise AuditError(
                    f"the audit log {self.path} is gone, and its head is there: somebody removed it"
                ) from None
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return os.open(self.path, OPEN | os.O_CREAT, 0o600)

    def _stamp_of(self, fd: int) -> tuple[int, ...]:
        status = os.fstat(fd)
        log = status.st_ino, status.st_size, status.st_mtime_ns
        try:
            head = self.head.lstat()
        except FileNotFoundError:
            return log
        return (*log, head.st_ino, head.st_size, head.st_mtime_ns)

    def _write_head(self, chain: Chain) -> None:
        """Write in place, which needs no room on a full disk: the text never becomes shorter."""
        fd = os.open(self.head, os.O_WRONLY | os.O_CREAT | OPEN_FLAGS, 0o600)
        try:
            _write_whole(fd, f"{chain.count} {chain.seal}\n".encode())
        finally:
            os.close(fd)

    def _read_head(self) -> tuple[int, str] | None:
        try:
            fd = os.open(self.head, os.O_RDONLY | OPEN_FLAGS)
        except FileNotFoundError:
            return None
        with os.fdopen(fd, "rb") as file:
            count, _, seal = file.read(MAX_HEAD).decode("ascii", "replace").strip().partition(" ")
        plain = count.isascii() and count.isdecimal() and len(seal) == len(START)
        return (int(count), seal) if plain else None


class _WholeLines:
    """The lines of an open file that have an end, and how many bytes they are. A line without an end is left out."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.bytes = 0

    def __iter__(self) -> Iterator[str]:
        while (line := self._file.readline(MAX_LINE)).endswith(b"\n"):
            yield line.decode("utf-8", "replace")
            self.bytes += len(line)
        if len(line) == MAX_LINE:
            yield line.decode(
                "utf-8", "replace"
            )  # no line of a log is as long, so that its seal does not fit


def _to_disk(fd: int) -> None:
    """Wait until a file's bytes and its size are on the disk; when it was changed may follow later."""
    getattr(os, "fdatasync", os.fsync)(fd)


def _write_whole(fd: int, data: bytes) -> None:
    """Write all of the data or nothing: what a full disk let through is cut off again. Raises OSError."""
    before = os.fstat(fd).st_size
    try:
        if os.write(fd, data) != len(data):
            raise OSError(28, "only a part of the line could be written")
    except OSError:
        if os.fstat(fd).st_size > before:
            os.ftruncate(fd, before)
        raise
