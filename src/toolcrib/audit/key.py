"""The key of an audit log, in a file that only its owner may read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from toolcrib.audit.log_file import AuditError
from toolcrib.private_files import OPEN_FLAGS, belongs_to_another_user, others_may, write_new_private_file

__all__ = ["KEY_BYTES", "read_key"]

KEY_BYTES = 32


def read_key(path: str | Path) -> bytes:
    """Reads the key of a log, and makes it if missing. The file must belong to its owner alone. Raises AuditError."""
    place = Path(path)
    try:
        fd = os.open(place, os.O_RDONLY | OPEN_FLAGS)
    except FileNotFoundError:
        _make_key(place)
        fd = os.open(place, os.O_RDONLY | OPEN_FLAGS)
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise AuditError(f"{place} is no ordinary file")
        if belongs_to_another_user(status):
            raise AuditError(f"{place} belongs to another user")
        if others_may(status, 0o077):
            raise AuditError(f"{place} can be read by others; make it yours alone: chmod 600 {place}")
        try:
            key = bytes.fromhex(file.read(1000).decode().strip())
        except ValueError:
            key = b""
    if len(key) < KEY_BYTES:
        raise AuditError(f"{place} holds no key of {KEY_BYTES} bytes in hexadecimal")
    return key


def _make_key(place: Path) -> None:
    """Writes the key to a temporary file first, so that processes that make one at the same time use the same key."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    unnamed = place.with_name(f".{place.name}.{os.urandom(8).hex()}")
    try:
        write_new_private_file(unnamed, os.urandom(KEY_BYTES).hex().encode())
        os.link(unnamed, place)
    except FileExistsError:
        pass
    finally:
        unnamed.unlink(missing_ok=True)
