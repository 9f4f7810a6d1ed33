"""Backends: where the files are that tools work with. `Backend` is the contract; tools never know which it is."""

from __future__ import annotations

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

__all__ = [
    "ABSENT",
    "Backend",
    "Change",
    "CommandOutput",
    "CommandRunner",
    "Delete",
    "DirectoryEntry",
    "FileStatus",
    "Folder",
    "Move",
    "Write",
    "version_of",
]
