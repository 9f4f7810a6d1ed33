"""Puts back files of a workspace that a command must not change, where the sandbox cannot prevent the change.

Before a command their state is recorded; after it they are compared and restored, and what did not exist is removed.
While the command runs, its change takes effect.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping

from toolcrib.command.sandbox.files.paths import between, names_in
from toolcrib.command.sandbox.files.removal import remove_tree
from toolcrib.command.sandbox.interface import Launch
from toolcrib.dataclass import dataclass

# Of a protected path, the bytes of a file and the number of files whose content is recorded. What is larger or comes
# later is compared by its stamp, and set aside if it changed.
MAX_FILE = 4 << 20
MAX_FILES = 2_000
MAX_NAMES = 20_000  # of a protected path; what comes later is left as it is
MAX_ASIDE = 5  # of a protected path, that are set aside one by one
NOT_RECORDED = "its content was not recorded"


@dataclass(frozen=True, slots=True)
class SavedFile:
    """The recorded state of a path. `data` is the content of a file or the target of a link; else None, and `stamp`
    changes with any change.
    """

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

        What cannot be written again, because the disk is full or it was not recorded, is set aside: nobody obeys it
        then.
        """
        now = recorded(self.root, self.paths)
        for path in self.paths:
            before, after = self.before.get(path, {}), now.get(path, {})
            if before == after:
                continue
            _without_links_above(self.root, path)
            if before:
                _real_folders(self.root, path)
            if len(before) < MAX_NAMES:
                _remove_added(path, before)
            after = dict(_tree(path))
            failed = {
                name: problem
                for name, saved in sorted(before.items())
                if after.get(name) != saved and (problem := _restore(name, saved))
            }
            if len(failed) > MAX_ASIDE:
                failed = {path: next(iter(failed.values()))}
            launch.not_restored += [_set_aside(name, problem) for name, problem in failed.items()]
            if not failed:
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


def _without_links_above(root: str, path: str) -> None:
    """Removes a link that stands for a folder of the path. It led through none before the command."""
    for part in between(root, path):
        if os.path.islink(part):
            _remove(part)


def _real_folders(root: str, path: str) -> None:
    """Replaces whatever a command put in the place of a path's folders with folders."""
    for part in between(root, path):
        if os.path.lexists(part) and not os.path.isdir(part):
            _remove(part)
        if not os.path.lexists(part):
            os.mkdir(part)


def _remove_added(path: str, before: Mapping[str, SavedFile]) -> None:
    """Removes what is in a path and was not there before, however much it is."""
    todo = [path]
    while todo:
        name = todo.pop()
        if name not in before:
            _remove(name)
        elif os.path.isdir(name) and not os.path.islink(name):
            todo += (f"{name}/{inner}" for inner in names_in(name))


def _tree(path: str) -> Iterator[tuple[str, SavedFile]]:
    todo = [path]
    count = 0
    while todo and count < MAX_NAMES:
        count += 1
        name = todo.pop()
        saved = _saved(name, content=count <= MAX_FILES)
        if saved is None:
            continue
        yield name, saved
        if stat.S_ISDIR(saved.kind):
            todo += (f"{name}/{inner}" for inner in sorted(names_in(name), reverse=True))


def _saved(name: str, *, content: bool) -> SavedFile | None:
    try:
        status = os.lstat(name)
    except OSError:
        return None
    kind, mode = stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)
    data: bytes | None = None
    try:
        if stat.S_ISLNK(kind):
            data = os.fsencode(os.readlink(name))
        elif stat.S_ISREG(kind) and status.st_size <= MAX_FILE and content:
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(fd, "rb") as file:
                data = file.read(MAX_FILE)
    except OSError:
        pass
    stamped = data is None and not stat.S_ISDIR(kind)
    return SavedFile(
        kind, mode, data, (status.st_ino, status.st_size, status.st_ctime_ns) if stamped else (0, 0, 0)
    )


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
        else:
            return NOT_RECORDED
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
