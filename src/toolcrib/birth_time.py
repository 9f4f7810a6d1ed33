"""When a file or folder was made: a time that no program can set, and that stays when the file is moved or written."""

from __future__ import annotations

import os
import stat
import struct
import sys
from collections.abc import Callable
from functools import cache

__all__ = ["birth_time"]

HERE = -100  # AT_FDCWD
NO_LINKS = 0x100  # AT_SYMLINK_NOFOLLOW
BIRTH = 0x800  # STATX_BTIME
ASKED = 0x1 | 0x4 | BIRTH  # with the kind and the number of names
# The fields of a `struct statx`: mask, number of names, mode, and `stx_btime`.
STATX = struct.Struct("=I12xI8xH50xqI164x")


def birth_time(path: str) -> int:
    """The time at which a file, folder or link was made, in nanoseconds; 0 where that is not known.

    A file with several names may have been made under another one, such as one in the cache of a package manager. On
    macOS programs can set the time, and copies have that of the original.
    """
    asked = _statx()
    return 0 if asked is None else asked(path)


@cache
def _statx() -> Callable[[str], int] | None:
    """Asks the C library, since `os.stat` leaves out the time; None where it has no such function."""
    if sys.platform != "linux":
        return None
    import ctypes

    try:
        statx = ctypes.CDLL(None).statx
    except AttributeError:
        return None

    def asked(path: str) -> int:
        found = ctypes.create_string_buffer(STATX.size)
        if statx(HERE, os.fsencode(path), NO_LINKS, ASKED, found) != 0:
            return 0
        known, names, mode, seconds, nanoseconds = STATX.unpack(found)
        if not known & BIRTH or (names > 1 and not stat.S_ISDIR(mode)):
            return 0
        return int(seconds * 10**9 + nanoseconds)

    return asked
