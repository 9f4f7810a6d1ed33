"""Backends: where the files are that tools work with. `Backend` is the contract; tools never know which it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names
from toolcrib.tools.backends.protocol import (
    ABSENT,
    Backend,
    Change,
    CommandOutput,
    CommandRunner,
    Delete,
    DirectoryEntry,
    FileStatus,
    Folder,
    Move,
    Write,
    version_of,
)

if TYPE_CHECKING:
    from toolcrib.tools.backends.command import CommandBackend
    from toolcrib.tools.backends.composite import CompositeBackend
    from toolcrib.tools.backends.memory import MemoryBackend
    from toolcrib.tools.backends.sqlite import SqliteBackend

__all__ = [
    "ABSENT",
    "Backend",
    "Change",
    "CommandBackend",
    "CommandOutput",
    "CommandRunner",
    "CompositeBackend",
    "Delete",
    "DirectoryEntry",
    "FileStatus",
    "Folder",
    "MemoryBackend",
    "Move",
    "SqliteBackend",
    "Write",
    "version_of",
]

__getattr__ = lazy_names(
    __name__,
    {
        "command": ("CommandBackend",),
        "composite": ("CompositeBackend",),
        "memory": ("MemoryBackend",),
        "sqlite": ("SqliteBackend",),
    },
)
