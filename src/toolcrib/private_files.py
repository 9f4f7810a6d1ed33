"""Files that only their owner may read or change: opened without following links, and replaced whole."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["OPEN_FLAGS", "replace_private_file", "write_new_private_file"]

# A link in place of the file is an error, a pipe is not waited for, and no child process inherits the descriptor.
OPEN_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def write_new_private_file(path: Path, data: bytes) -> None:
    """Write a file that does not exist yet, on disk when this returns. Raises OSError, FileExistsError if it exists."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OPEN_FLAGS, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_private_file(path: Path, data: bytes) -> None:
    """Replace the content of a file in one step: a reader sees the old or the new content. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        write_new_private_file(temporary, data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
