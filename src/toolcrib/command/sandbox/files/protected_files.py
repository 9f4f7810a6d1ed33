"""Puts back files of a workspace that a command must not change, where the sandbox cannot prevent the change.

Before a command their state is recorded; after it they are compared and restored, and what did not exist is removed.
While the command runs, its change takes effect.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from toolcrib.command.sandbox.files.paths import between, names_in
from toolcrib.command.sandbox.files.removal import remove_tree
from toolcrib.command.sandbox.interface import Launch

# Bytes of a file that is recorded; a larger file is compared by its stamp, and a change is only reported.
MAX_FILE = 4 << 20
MAX_FILES = 2_000


@dataclass(frozen=True, slots=True)
class SavedFile:
    """The recorded state of a path. `data` is the content of a file or the target of a link, else None."""

    kind: int
    mode: int
    data: bytes | None
    stamp: tuple[int, int, int]


class ProtectedFiles:
    """The recorded state of several paths below a root, which lead through no link (`FileView` resolves them)."""

    def __init__(self, root: str, paths: Iterable[str]) -> None:
        self.root = root
        self.paths = tuple(dict.fromkeys(paths))
        self.before = recorded(root, self.paths)

    def restore(self, launch: Launch) -> None:
        """Restores what changed, and adds those paths to `launch.restored`.

        What cannot be written again, because the disk is full, is set aside: nobody obeys it then.
        """
        now = recorded(self.root, self.paths)
        for path in self.paths:
            before, after = self.before.get(path, {}), now.get(path, {})
            if before == after:
                continue
            if before:
                _real_folders(self.root, path)
            if _link_on_the_way(self.root, path) not in (None, path):
                launch.restored.append(path)
                continue  # a command put a link there, and what it leads to is not in the workspace's protection
            after = dict(_tree(path))
            for name in sorted(after.keys() - before.keys(), reverse=True):
                _remove(name)
            aside = [
                _set_aside(name, problem)
                for name, saved in sorted(before.items())
                if after.get(name) != saved and (problem := _restore(name, saved))
            ]
            launch.not_restored += aside
            if not aside:
                launch.restored.append(path)


def recorded(root: str, paths: Iterable[str]) -> dict[str, dict[str, SavedFile]]:
    """The state of those of the paths that exist, each with everything below it. Absolute, or relative to the root."""
    at_the_top = names_in(root)
    found: dict[str, dict[str, SavedFile]] = {}
    start = f"{root}/"
    for path in paths:
        below = path.removeprefix(start)
        there = below.partition("/")[0] in at_the_top or below.startswith("/")
        if there and (state := dict(_tree(os.path.join(root, below)))):
            found[path] = state
    return found


def _link_on_the_way(root: str, path: str) -> str | None:
    """The first of a path's folders that is a link, or the path itself if that is one."""
    return next((part for part in (*between(root, path), path) if os.path.islink(part)), None)


def _real_folders(root: str, path: str) -> None:
    """Replaces whatever a command put in the place of a path's folders with folders."""
    for part in between(root, path):
        if os.path.islink(part) or (os.path.lexists(part) and not os.path.isdir(part)):
            _remove(part)
        if not os.path.lexists(part):
            os.mkdir(part)


def _tree(path: str) -> Iterator[tuple[str, SavedFile]]:
    todo = [path]
    count = 0
    while todo and count < MAX_FILES:
        count += 1
        name = todo.pop()
        saved = _saved(name)
        if saved is None:
            continue
        yield name, saved
        if stat.S_ISDIR(saved.kind):
            try:
                todo += [entry.path for entry in os.scandir(name)]
            except OSError:
                continue


def _saved(name: str) -> SavedFile | None:
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
    return SavedFile(kind, mode, data, stamp)


def _remove(name: str) -> None:
    try:
        if stat.S_ISDIR(os.lstat(name).st_mode):
            remove_tree(name)
        else:
            os.unlink(name)
    except OSError:
        pass


def _restore(name: str, saved: SavedFile) -> str:
    """Restores a path: writes a new file beside it and renames that, so that no link of a command is followed.

    Returns why that failed, or "".
    """
    beside = f"{name}.toolcrib-{os.getpid()}"
    try:
        if stat.S_ISDIR(saved.kind):
            if not os.path.isdir(name) or os.path.islink(name):
                _remove(name)
                os.mkdir(name)
            os.chmod(name, saved.mode)
        elif saved.data is not None:
            if os.path.isdir(name) and not os.path.islink(name):
                _remove(name)
            _remove(beside)
            if stat.S_ISLNK(saved.kind):
                os.symlink(os.fsdecode(saved.data), beside)
            else:
                fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, saved.mode)
                with open(fd, "wb") as file:
                    file.write(saved.data)
                os.chmod(beside, saved.mode)
            os.replace(beside, name)
    except OSError as problem:
        _remove(beside)
        return problem.strerror or str(problem)
    return ""


def _set_aside(name: str, problem: str) -> str:
    """Renames a changed path that could not be restored; returns a sentence about it."""
    aside = f"{name}.disabled-{secrets.token_hex(4)}"
    words = f"{name} may not be changed by commands, and could not be put back ({problem})"
    try:
        os.rename(name, aside)
    except FileNotFoundError:
        return f"{words}: it is gone."
    except OSError:
        return f"{words}: CHECK IT before you use it."
    return f"{words}: what is left of it is {aside}."
