# ruff: noqa: PTH108 - paths are text and descriptors here
"""A file that may be written to and is not there yet: made empty before a command, and gone again if it stays so.

Neither a mount nor a Landlock rule can name what is not there; to open its folder instead would open far more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial

from toolcrib.command.sandbox.interface import Launch


def made_where_missing(paths: Iterable[str]) -> list[Callable[[Launch], None]]:
    """Make the missing ones; what is to be done with each after the command."""
    made: list[Callable[[Launch], None]] = []
    for path in paths:
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except OSError:  # it is there, or cannot be made: then the command says so
            continue
        made.append(partial(_unmade, path, _stamp(os.fstat(fd))))
        os.close(fd)
    return made


def _unmade(path: str, before: tuple[int, ...], launch: Launch) -> None:
    try:
        if _stamp(os.lstat(path)) == before:
            os.unlink(path)
    except OSError:
        pass


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
