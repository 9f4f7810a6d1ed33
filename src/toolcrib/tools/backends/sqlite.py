"""Files in an SQLite database: they last, and several processes may share them."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager

from toolcrib.tools.backends.database import Database
from toolcrib.tools.backends.flat import FlatBackend, StoredFile
from toolcrib.tools.backends.protocol import FileStatus

VERSION = 1  # of the tables
TABLE = (
    "CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, modified INTEGER NOT NULL, data BLOB NOT NULL)"
)


class SqliteBackend(FlatBackend):
    """Files in the database at `path`, which is made with mode 600 if it does not exist.

    A change set is one transaction: after a crash at any moment it is stored whole or not at all. Raises
    ValueError for a database of another version; sqlite3.Error where there is no usable database.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._database = Database(path, holds="files", version=VERSION, table="files", create=TABLE)
        self.path = self._database.path

    def __repr__(self) -> str:
        return f"SqliteBackend({self.path!r})"

    def close(self) -> None:
        """Close the database. The backend cannot be used after this."""
        self._database.close()

    def load(self, path: str) -> StoredFile | None:
        rows = self._database.rows("SELECT data, modified FROM files WHERE path = ?", (path,))
        return StoredFile(bytes(rows[0][0]), int(rows[0][1])) if rows else None

    def below(self, folder: str) -> list[tuple[str, FileStatus]]:
        if folder == ".":
            where, values = "", tuple[str, ...]()
        else:
            where, values = " WHERE path >= ? AND path < ?", (folder + "/", folder + "0")  # 0 follows /
        rows = self._database.rows(f"SELECT path, length(data), modified FROM files{where}", values)
        return [(path, FileStatus("file", size, modified, path)) for path, size, modified in rows]

    def exclusively(self) -> AbstractContextManager[object]:
        return self._database.transaction()

    def store(self, changes: dict[str, StoredFile | None]) -> None:
        for path, file in changes.items():
            if file is None:
                self._database.rows("DELETE FROM files WHERE path = ?", (path,))
            else:
                self._database.rows(
                    "INSERT OR REPLACE INTO files (path, modified, data) VALUES (?, ?, ?)",
                    (path, file.modified, file.data),
                )
