# ruff: noqa: PTH101, PTH102, PTH105, PTH108, PTH112, PTH114, PTH115, PTH123, PTH211 - paths are text and descriptors here
"""Files of a workspace that commands must not change, put back where a sandbox could not keep them from it.

What is there is remembered before a command, and compared and restored after it; what was not there is removed.
A command can still make use of a change while it runs.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from toolcrib.command.sandbox.interface import Launch

MAX_FILE = (
    4 << 20
)  # bytes of a file that is remembered; a larger one is compared by its stamp and only reported
MAX_FILES = 2_000


@dataclass(frozen=True, slots=True)
class Kept:
    """One name as it was. `data` is the content of a file, the target of a link, None for all else."""

    kind: int
    mode: int
    data: bytes | None
    stamp: tuple[int, int, int]


class Protection:
    """The state of some paths, to be put back."""

    def __init__(self, root: str, paths: Iterable[str]) -> None:
        self.root = root
        # Where a link leads is not for us to follow when something is put back: the link itself is kept.
        self.paths = tuple(dict.fromkeys(_link_on_the_way(root, path) or path for path in paths))
        self.before = {path: dict(_tree(path)) for path in self.paths}

    def restore(self, launch: Launch) -> None:
        """Put back what changed; its paths are added to what the launch says was restored."""
        for path in self.paths:
            before, after = self.before[path], dict(_tree(path))
            if before == after:
                continue
            launch.restored.append(path)
            if before:
                _real_folders(self.root, path)
            if _link_on_the_way(self.root, path) not in (None, path):
                continue  # it is not there any more: where the link leads is none of our business
            after = dict(_tree(path))
            for name in sorted(after.keys() - before.keys(), reverse=True):
                _remove(name)
            for name, kept in sorted(before.items()):
                if after.get(name) != kept:
                    _put(name, kept)


def _above(root: str, path: str) -> list[str]:
    parts = path[len(root) + 1 :].split("/")
    return [f"{root}/{'/'.join(parts[: count + 1])}" for count in range(len(parts) - 1)]


def _link_on_the_way(root: str, path: str) -> str | None:
    """The first link on the way to a path, the path itself included."""
    return next((part for part in (*_above(root, path), path) if os.path.islink(part)), None)


def _real_folders(root: str, path: str) -> None:
    """Make sure that the way to a path is made of folders, and not of what a command put in their place."""
    for part in _above(root, path):
        if os.path.islink(part) or (os.path.lexists(part) and not os.path.isdir(part)):
            _remove(part)
        if not os.path.lexists(part):
            os.mkdir(part)


def _tree(path: str) -> Iterator[tuple[str, Kept]]:
    todo = [path]
    count = 0
    while todo and count < MAX_FILES:
        count += 1
        name = todo.pop()
        kept = _kept(name)
        if kept is None:
            continue
        yield name, kept
        if stat.S_ISDIR(kept.kind):
            try:
                todo += [entry.path for entry in os.scandir(name)]
            except OSError:
                continue


def _kept(name: str) -> Kept | None:
    try:
        status = os.lstat(name)
    except OSError:
        return None
    kind, mode = stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)
    data: bytes | None = None
    stamp = (0, 0, 0)
    try:
        if stat.S_ISLNK(kind):
            data = os.fsencode(os.readlink(name))
        elif stat.S_ISREG(kind) and status.st_size <= MAX_FILE:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(fd, "rb") as file:
                data = file.read(MAX_FILE)
        elif stat.S_ISREG(kind):
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
    except OSError:
        pass
    return Kept(kind, mode, data, stamp)


def _remove(name: str) -> None:
    try:
        if stat.S_ISDIR(os.lstat(name).st_mode):
            shutil.rmtree(name, ignore_errors=True)
        else:
            os.unlink(name)
    except OSError:
        pass


def _put(name: str, kept: Kept) -> None:
    """One name as it was. Written beside it and renamed, so that no link of a command's is written through."""
    try:
        if stat.S_ISDIR(kept.kind):
            if not os.path.isdir(name) or os.path.islink(name):
                _remove(name)
                os.mkdir(name)
            os.chmod(name, kept.mode)
        elif kept.data is not None:
            if os.path.isdir(name) and not os.path.islink(name):
                _remove(name)
            beside = f"{name}.toolcrib-{os.getpid()}"
            _remove(beside)
            if stat.S_ISLNK(kept.kind):
                os.symlink(os.fsdecode(kept.data), beside)
            else:
                fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, kept.mode)
                with open(fd, "wb") as file:
                    file.write(kept.data)
                os.chmod(beside, kept.mode)
            os.replace(beside, name)
    except OSError:
        pass
