"""What agents remember between runs: short texts in SQLite, found by their words, and readable as files."""

from __future__ import annotations

import os
import posixpath
import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from toolcrib.dataclass import dataclass
from toolcrib.tools.backends.database import Database
from toolcrib.tools.backends.flat import FlatBackend, StoredFile
from toolcrib.tools.backends.protocol import FileStatus
from toolcrib.tools.memory.words import indexed, query

__all__ = ["USER_FOLDER", "Memory", "MemoryStore"]

VERSION = 1  # of the tables
USER_FOLDER = "user"  # the folder of the memories that count in all projects of a user
SECOND = 1_000_000_000
DAY = 86_400 * SECOND
HALF_LIFE = 90 * DAY  # age at which a memory has lost half of `WEIGHT_OF_AGE`
WEIGHT_OF_AGE = 0.5  # the share of its rank that a very old memory loses
CANDIDATES = 200  # best matches that are ranked again by their age
TABLE = """
CREATE TABLE IF NOT EXISTS memories (
    id INTEGER PRIMARY KEY, owner TEXT NOT NULL, project TEXT NOT NULL, path TEXT NOT NULL, data BLOB NOT NULL,
    created INTEGER NOT NULL, modified INTEGER NOT NULL, expires INTEGER, UNIQUE (owner, project, path)
);
"""
MINE = "m.owner = ? AND m.project IN ('', ?) AND (m.expires IS NULL OR m.expires > ?)"
INDEX = "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(path, text, tokenize='porter unicode61')"


@dataclass(frozen=True, slots=True)
class Memory:
    """A text that was stored. Times are in seconds since the epoch; `expires` is None for one that stays."""

    path: str
    text: str
    modified: float
    expires: float | None = None

    @property
    def category(self) -> str:
        """The folder of its path, without the part that says for whom it holds; "" at the top."""
        folder = posixpath.dirname(self.path)
        return folder.removeprefix(USER_FOLDER).removeprefix("/") if _is_users(self.path) else folder


class MemoryStore(FlatBackend):
    """The memories of one user in one project, in the database at `path`, which is made with mode 600.

    Each memory has a path, such as `decisions/database.md`; those below `user/` hold in all projects of the user. As a
    backend for file tools, the store shows every memory as a file: what one way stores, the other finds. Several
    processes may use the database at once; each change is on disk, whole, when it returns. A memory that has expired is
    neither found nor shown, and is removed at the next change.

    `clock` gives the time in nanoseconds. `searchable` is False where this SQLite has no FTS5: recall then looks for
    the words one text after the other, and takes time in proportion to what is stored. Raises ValueError for a
    database of another kind or version, sqlite3.Error where there is no usable database.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        user: str = "",
        project: str = "",
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        super().__init__()
        self.user, self.project = user, project
        self._clock = clock
        self._database = Database(path, holds="memories", version=VERSION, table="memories", create=TABLE)
        self.path = self._database.path
        self.searchable = self._has_index()

    def __repr__(self) -> str:
        return f"MemoryStore({self.path!r}, user={self.user!r}, project={self.project!r})"

    def close(self) -> None:
        """Close the database. The store cannot be used after this."""
        self._database.close()

    def _has_index(self) -> bool:
        try:
            self._database.connection.execute(INDEX)
        except sqlite3.OperationalError as problem:
            if "no such module" not in str(problem):
                raise
            return False
        return True

    # What is stored and found by its words.

    def remember(self, path: str, text: str, *, expires: float | None = None) -> bool:
        """Store a text under a path, in place of what was there; True if nothing was. `expires` as in Memory."""
        shown = self.place(path).shown
        data = text.encode()
        with self._lock, self.exclusively():
            there = self.load(shown)
            self._check_folders({shown: StoredFile(data, 0)})
            self._put(shown, data, None if expires is None else int(expires * SECOND))
        return there is None

    def recall(self, words: str, *, category: str = "", limit: int = 10) -> list[Memory]:
        """The memories that fit best: those with the words that are rare among all, newer ones before old ones.

        With a `category` only those in its folder, here and of the user. Without words the newest.
        """
        found = self._ranked(words) if words.strip() else self._newest()
        folders = tuple(f"{top}{category.strip('/')}/" for top in ("", f"{USER_FOLDER}/")) if category else ()
        return [one for one in found if not folders or one.path.startswith(folders)][:limit]

    def _ranked(self, words: str) -> list[Memory]:
        asked = query(words)
        if not asked:
            return []
        if not self.searchable:
            return self._scanned(words)
        now = self._clock()
        rows = self._database.rows(
            "SELECT m.project, m.path, m.data, m.modified, m.expires, bm25(words, 2.0, 1.0) AS rank FROM words "
            f"JOIN memories m ON m.id = words.rowid WHERE words MATCH ? AND {MINE} "
            f"ORDER BY rank LIMIT {CANDIDATES}",
            (asked, *self._whose(now)),
        )
        best = min((row[5] for row in rows), default=0.0)

        def worth(row: tuple[str, str, bytes, int, int | None, float]) -> float:
            # the values of bm25 are negative, the best one lowest; 0 for words that most texts have
            fit: float = row[5] / best if best else 1.0
            freshness: float = 0.5 ** (max(0, now - row[3]) / HALF_LIFE)
            return fit * (1 - WEIGHT_OF_AGE + WEIGHT_OF_AGE * freshness)

        rows.sort(key=lambda row: (-worth(row), row[1]))
        return [_memory(row) for row in rows]

    def _scanned(self, words: str) -> list[Memory]:
        """Without an index: texts by how many of the words they have, the newest first."""
        wanted = [part.strip('"*') for part in query(words).casefold().split(" OR ".casefold())]
        counted = [
            (sum(part in indexed(f"{one.path} {one.text}").casefold() for part in wanted), one)
            for one in self._newest()
        ]
        return [one for count, one in sorted(counted, key=lambda pair: -pair[0]) if count]

    def _newest(self) -> list[Memory]:
        rows = self._database.rows(
            "SELECT m.project, m.path, m.data, m.modified, m.expires FROM memories m "
            f"WHERE {MINE} ORDER BY m.modified DESC, m.path",
            self._whose(self._clock()),
        )
        return [_memory(row) for row in rows]

    # The same as files.

    def load(self, path: str) -> StoredFile | None:
        project, inner = self._row_of(path)
        rows = self._database.rows(
            "SELECT data, modified FROM memories WHERE owner = ? AND project = ? AND path = ? "
            "AND (expires IS NULL OR expires > ?)",
            (self.user, project, inner, self._clock()),
        )
        return StoredFile(bytes(rows[0][0]), int(rows[0][1])) if rows else None

    def below(self, folder: str) -> list[tuple[str, FileStatus]]:
        prefix = "" if folder == "." else folder + "/"
        rows = self._database.rows(
            f"SELECT m.project, m.path, length(m.data), m.modified FROM memories m WHERE {MINE}",
            self._whose(self._clock()),
        )
        shown = [(_shown(project, path), size, modified) for project, path, size, modified in rows]
        return [
            (path, FileStatus("file", size, modified, path))
            for path, size, modified in shown
            if path.startswith(prefix)
        ]

    def exclusively(self) -> AbstractContextManager[object]:
        return self._database.transaction(lambda: self._remove("expires <= ?", (self._clock(),)))

    def store(self, changes: dict[str, StoredFile | None]) -> None:
        for path, file in changes.items():
            if file is None:
                project, inner = self._row_of(path)
                self._remove("owner = ? AND project = ? AND path = ?", (self.user, project, inner))
            else:
                self._put(path, file.data, self._expiry(path))

    def _expiry(self, path: str) -> int | None:
        """When the memory at a path expires; an edit of its text leaves that as it is."""
        project, inner = self._row_of(path)
        rows = self._database.rows(
            "SELECT expires FROM memories WHERE owner = ? AND project = ? AND path = ? AND expires > ?",
            (self.user, project, inner, self._clock()),
        )
        return int(rows[0][0]) if rows else None

    def _put(self, path: str, data: bytes, expires: int | None) -> None:
        project, inner = self._row_of(path)
        now = self._clock()
        ((number,),) = self._database.rows(
            "INSERT INTO memories (owner, project, path, data, created, modified, expires) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (owner, project, path) DO UPDATE SET "
            "data = excluded.data, modified = excluded.modified, expires = excluded.expires RETURNING id",
            (self.user, project, inner, data, now, now, expires),
        )
        if self.searchable:
            words = (indexed(inner.replace("_", " ")), indexed(data.decode(errors="replace")))
            self._database.rows("DELETE FROM words WHERE rowid = ?", (number,))
            self._database.rows("INSERT INTO words (rowid, path, text) VALUES (?, ?, ?)", (number, *words))

    def _remove(self, where: str, values: tuple[str | int, ...]) -> None:
        if self.searchable:
            self._database.rows(
                f"DELETE FROM words WHERE rowid IN (SELECT id FROM memories WHERE {where})", values
            )
        self._database.rows(f"DELETE FROM memories WHERE {where}", values)

    # Whose they are.

    def _row_of(self, path: str) -> tuple[str, str]:
        """The project and the path under which a memory is stored; those of the user have no project."""
        if _is_users(path):
            return "", path.removeprefix(f"{USER_FOLDER}/")
        return f"={self.project}", path

    def _whose(self, now: int) -> tuple[str, str, int]:
        return self.user, f"={self.project}", now


def _is_users(path: str) -> bool:
    return path.startswith(f"{USER_FOLDER}/")


def _shown(project: str, path: str) -> str:
    return path if project else f"{USER_FOLDER}/{path}"


def _memory(
    row: tuple[str, str, bytes, int, int | None, float] | tuple[str, str, bytes, int, int | None],
) -> Memory:
    project, path, data, modified, expires = row[:5]
    text = bytes(data).decode(errors="replace")
    return Memory(
        _shown(project, path), text, modified / SECOND, None if expires is None else expires / SECOND
    )
