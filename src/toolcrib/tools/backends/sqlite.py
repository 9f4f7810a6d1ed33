"""Files in an SQLite database: they last, and several processes may share them."""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

from toolcrib.errors import ToolError
from toolcrib.tools.backends.flat import FlatBackend, StoredFile

VERSION = 1  # of the tables
PATIENCE = 10.0  # seconds to wait for another process's transaction


class SqliteBackend(FlatBackend):
    """Files in the database at `path`, which is made with mode 600 if it does not exist.

    A change set is one transaction: after a crash at any moment it is stored whole or not at all. Raises
    ValueError for a database of another version; sqlite3.Error where there is no usable database.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self.path = os.fspath(path)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600))
        # `_lock` keeps the threads of this process apart.
        self._database = sqlite3.connect(
            self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        weakref.finalize(self, self._database.close)
        found = self._database.execute("PRAGMA user_version").fetchone()[0]
        if found not in (0, VERSION):
            raise ValueError(f"{self.path} holds files of format {found}; this version reads {VERSION}")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, modified INTEGER NOT NULL, "
            "data BLOB NOT NULL)"
        )
        self._database.execute(f"PRAGMA user_version = {VERSION}")

    def __repr__(self) -> str:
        return f"SqliteBackend({self.path!r})"

    def close(self) -> None:
        """Close the database. The backend cannot be used after this."""
        self._database.close()

    def load(self, path: str) -> StoredFile | None:
        with _words(), self._lock:
            row = self._database.execute(
                "SELECT data, modified FROM files WHERE path = ?", (path,)
            ).fetchone()
        return None if row is None else StoredFile(bytes(row[0]), int(row[1]))

    def below(self, folder: str) -> list[tuple[str, int]]:
        if folder == ".":
            where, values = "", tuple[str, ...]()
        else:
            where, values = " WHERE path >= ? AND path < ?", (folder + "/", folder + "0")  # 0 follows /
        with _words(), self._lock:
            return self._database.execute(f"SELECT path, modified FROM files{where}", values).fetchall()

    def exclusively(self) -> AbstractContextManager[object]:
        return self._transaction()

    @contextmanager
    def _transaction(self) -> Generator[None]:
        with _words():
            self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            with _words():
                self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    def store(self, changes: dict[str, StoredFile | None]) -> None:
        with _words(), self._lock:
            for path, file in changes.items():
                if file is None:
                    self._database.execute("DELETE FROM files WHERE path = ?", (path,))
                else:
                    self._database.execute(
                        "INSERT OR REPLACE INTO files (path, modified, data) VALUES (?, ?, ?)",
                        (path, file.modified, file.data),
                    )


@contextmanager
def _words() -> Generator[None]:
    try:
        yield
    except sqlite3.Error as problem:
        raise ToolError(f"The store of these files cannot be used now: {problem}.") from problem
