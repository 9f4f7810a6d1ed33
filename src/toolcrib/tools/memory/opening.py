"""A store that is opened at its first use, so that tools can be made and listed before there is a database."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable

from toolcrib.errors import ToolError
from toolcrib.tools.memory.store import MemoryStore

__all__ = ["Stores", "opened_once"]

Stores = MemoryStore | Callable[[], MemoryStore]


def opened_once(store: Stores) -> Callable[[], MemoryStore]:
    """A function that gives the store, opened by its first call. It raises ToolError where that cannot be done."""
    if isinstance(store, MemoryStore):
        return lambda: store
    lock = threading.Lock()
    found: list[MemoryStore] = []

    def opened() -> MemoryStore:
        with lock:
            try:
                if not found:
                    found.append(store())
                return found[0]
            except (OSError, sqlite3.Error, ValueError) as problem:
                raise ToolError(f"What was remembered cannot be opened: {problem}.") from problem

    return opened
