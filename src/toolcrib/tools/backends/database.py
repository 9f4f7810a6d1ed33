"""A private SQLite database in which tools keep files or memories, for several threads and processes at once."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from toolcrib.errors import ToolError

PATIENCE = 10.0  # seconds to wait for another process's transaction


class Database:
    """The database at `path`, which is made with mode 600 if it does not exist. `holds` names its content in errors.

    The tables are made by `create`, if this is a new database. Raises ValueError for one of another `version` or kind,
    sqlite3.Error where there is no usable database. Later errors of SQLite become ToolErrors.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, holds: str, version: int, table: str, create: str
    ) -> None:
        self.path = os.fspath(path)
        self.holds = holds
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600))
        self.lock = threading.RLock()  # keeps the threads of this process apart
        self.connection = sqlite3.connect(
            self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        weakref.finalize(self, self.connection.close)
        run = self.connection.execute
        found = run("PRAGMA user_version").fetchone()[0]
        tables = {row[0] for row in run("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if found not in (0, version) or (tables and table not in tables):
            raise ValueError(f"{self.path} holds no {holds} of format {version}, which this version reads")
        run(create)
        run(f"PRAGMA user_version = {version}")

    def rows(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """All rows that a statement gives."""
        with self.words(), self.lock:
            return self.connection.execute(statement, values).fetchall()

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def transaction(self, last: Callable[[], None] = lambda: None) -> Generator[None]:
        """All of the changes within, and of `last`, or none of them."""
        with self.lock:
            with self.words():
                self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                with self.words():
                    last()
                    self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    @contextmanager
    def words(self) -> Generator[None]:
        """Turns errors of SQLite into words for a model."""
        try:
            yield
        except sqlite3.Error as problem:
            raise ToolError(f"The store of these {self.holds} cannot be used now: {problem}.") from problem
