"""Writing a log: one file that several threads and processes append to, whole lines, in one chain.

Whoever writes holds the file's lock, which ends with its process, and first follows what others have appended.
The head is written after the lines are on the disk, so that it never knows more than the disk does.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from toolcrib.audit.chain import START, Broken, Chain, Checked, follow, too_short
from toolcrib.errors import ToolcribError

CAREFUL = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
OPEN = os.O_RDWR | os.O_APPEND | CAREFUL
MAX_HEAD = 1_000
REPLACED = 10  # times that the file may be another one once its lock is had


class AuditError(ToolcribError):
    """The log cannot be written, or is not the one that this key wrote."""


class LogFile:
    """The file of a log and its head. Not safe between threads: `AuditLog` writes from one."""

    def __init__(self, path: Path, key: bytes, *, sync: bool) -> None:
        self.path = path
        self.head = path.with_name(path.name + ".head")
        self._key = key
        self._sync = sync
        self._chain: Chain | None = None
        self._at: tuple[int, ...] | None = None  # how file and head were when we left or judged them
        self._broken = ""

    def append(self, records: Sequence[dict[str, Any]]) -> None:
        """Records as lines on the disk, all of them or none. Raises AuditError."""
        try:
            with self._locked(create=True) as fd:
                chain = self._followed(fd)
                following = Chain(chain.key, chain.seal, chain.count)
                data = "".join(following.sealed(record) + "\n" for record in records).encode()
                if not chain.count:
                    self._keep_head(Chain(self._key))  # from the first line on, a missing head shows
                self._chain = None  # until it is known what stands in the file
                _write_whole(fd, data)
                if self._sync:
                    os.fsync(fd)
                self._keep_head(following)
                self._chain, self._at = following, self._mark(fd)
        except OSError as problem:
            raise AuditError(
                f"the audit log {self.path.name} cannot be written: {problem.strerror or problem}"
            ) from None

    def ready(self) -> None:
        """Whether lines could be appended; the file and its head are made where there are none. Raises AuditError."""
        try:
            with self._locked(create=True) as fd:
                chain = self._followed(fd)
                self._keep_head(chain)
                self._chain, self._at = chain, self._mark(fd)
        except OSError as problem:
            raise AuditError(
                f"the audit log {self.path.name} cannot be written: {problem.strerror or problem}"
            ) from None

    def check(self) -> Checked:
        """Follow the chain from its beginning to the head. Raises OSError for a missing file."""
        with self._locked(create=False) as fd:
            chain = Chain(self._key)
            broken = self._judged(chain, fd, 0)
            return Checked(chain.count, chain.seal, broken)

    def _followed(self, fd: int) -> Chain:
        """The chain as the file leaves it: what others appended since is followed, the whole only once."""
        now = self._mark(fd)
        if self._broken and now == self._at:
            raise AuditError(self._broken)
        known, start, self._broken = self._chain, 0, ""
        if known is not None and self._at is not None:
            if now == self._at:
                return known
            if now[0] == self._at[0] and now[1] > self._at[1]:
                start = self._at[1]
        chain = Chain(known.key, known.seal, known.count) if known is not None and start else Chain(self._key)
        _drop_torn_line(fd, start)
        if (broken := self._judged(chain, fd, start)) is not None:
            self._chain, self._at = None, self._mark(fd)
            self._broken = f"the audit log {self.path} does not hold: {broken}"
            raise AuditError(self._broken)
        return chain

    def _judged(self, chain: Chain, fd: int, start: int) -> Broken | None:
        head = self._head()
        with open(fd, encoding="utf-8", errors="replace", newline="\n", closefd=False) as lines:
            lines.seek(start)
            broken = follow(chain, lines, head)
        if broken is None and head is None and chain.count:
            return Broken(chain.count, f"its head, {self.head.name}, is missing or no head")
        return broken or too_short(chain, head)

    @contextmanager
    def _locked(self, *, create: bool) -> Generator[int]:
        """The open file, ours alone; the one that stands at the path once its lock is had."""
        import fcntl

        for _ in range(REPLACED):
            fd = self._opened(create)
            try:
                status = os.fstat(fd)
                if not stat.S_ISREG(status.st_mode):
                    raise OSError(0, "it is no ordinary file")
                fcntl.flock(fd, fcntl.LOCK_EX)
                try:
                    if os.path.samestat(status, self.path.lstat()):
                        yield fd
                        return
                except FileNotFoundError:
                    pass
            finally:
                os.close(fd)
        raise OSError(0, "it is replaced again and again")

    def _opened(self, create: bool) -> int:
        try:
            return os.open(self.path, OPEN if create else os.O_RDONLY | CAREFUL)
        except FileNotFoundError:
            if not create:
                raise
            head = self._head()
            if head is not None and head[0]:
                raise AuditError(
                    f"the audit log {self.path} is gone, and its head is there: somebody removed it"
                ) from None
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return os.open(self.path, OPEN | os.O_CREAT, 0o600)

    def _mark(self, fd: int) -> tuple[int, ...]:
        status = os.fstat(fd)
        log = status.st_ino, status.st_size, status.st_mtime_ns
        try:
            head = self.head.lstat()
        except FileNotFoundError:
            return log
        return (*log, head.st_ino, head.st_size, head.st_mtime_ns)

    def _keep_head(self, chain: Chain) -> None:
        """Written in place, which needs no room on a full disk; it only ever becomes longer."""
        fd = os.open(self.head, os.O_WRONLY | os.O_CREAT | CAREFUL, 0o600)
        try:
            _write_whole(fd, f"{chain.count} {chain.seal}\n".encode())
        finally:
            os.close(fd)

    def _head(self) -> tuple[int, str] | None:
        try:
            fd = os.open(self.head, os.O_RDONLY | CAREFUL)
        except FileNotFoundError:
            return None
        with os.fdopen(fd, "rb") as file:
            count, _, seal = file.read(MAX_HEAD).decode("ascii", "replace").strip().partition(" ")
        plain = count.isascii() and count.isdecimal() and len(seal) == len(START)
        return (int(count), seal) if plain else None


def _drop_torn_line(fd: int, start: int) -> None:
    """A line that a crash cut in the middle was never followed by its call; the head does not count it."""
    size = os.fstat(fd).st_size
    at = size
    while at > start:
        begin = max(start, at - 4096)
        found = os.pread(fd, at - begin, begin).rfind(b"\n")
        if found >= 0:
            at = begin + found + 1
            break
        at = begin
    if at < size:
        os.ftruncate(fd, at)


def _write_whole(fd: int, data: bytes) -> None:
    """All of it, or nothing: what a full disk left of it is taken back. Raises OSError."""
    before = os.fstat(fd).st_size
    try:
        if os.write(fd, data) != len(data):
            raise OSError(28, "only a part of the line could be written")
    except OSError:
        if os.fstat(fd).st_size > before:
            os.ftruncate(fd, before)
        raise
