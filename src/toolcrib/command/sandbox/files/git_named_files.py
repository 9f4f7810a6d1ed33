"""Files of a workspace that git's settings name: folders of hooks (`core.hooksPath`), more settings (`include.path`).

The settings are those of each repository in the workspace and of the one around it, also of a linked worktree, and the
user's own. What they include is read as well.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator

from toolcrib.command.sandbox.files.git_config import lines
from toolcrib.command.sandbox.files.paths import within
from toolcrib.command.sandbox.files.shown_settings import settings_of_git

MAX_BYTES = 1 << 20
MAX_FILES = 200  # of settings
NAMING = re.compile(rb"hookspath|include", re.IGNORECASE)
VALUE = re.compile(rb'(?:"(?:[^"\\]|\\.)*"|\\.|[^"\\;#])*')
ESCAPED_OR_QUOTE = re.compile(rb'\\(.)|"')

OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)  # Windows has neither

Settings = tuple[str, str]  # a file of settings, and the worktree that it counts for


def named_by_git(root: str, repositories: Iterable[str] = (), *, home: str | None = None) -> list[str]:
    """The folders and files in a workspace that git's settings name, as absolute paths. `repositories` lie in it."""
    home = home or os.path.expanduser("~")
    worktrees = [*_around(root), *repositories]
    todo = [(path, worktree) for worktree in worktrees for path in _own_settings(worktree)]
    todo += [(path, worktree) for path in settings_of_git(home) for worktree in worktrees or [root]]
    found: dict[str, None] = {}
    read: set[Settings] = set()
    while todo and len(read) < MAX_FILES:
        settings = todo.pop(0)
        if settings in read:
            continue
        read.add(settings)
        for path, is_settings in _named(*settings, home):
            if is_settings:
                todo.append((path, settings[1]))
            if within(path, root) and not within(f"{root}/.git", path):
                found[path] = None
    return list(found)


def _around(root: str) -> Iterator[str]:
    """The innermost folder that holds a `.git`, from a workspace upwards."""
    folder = root
    while (above := os.path.dirname(folder)) != folder:
        if os.path.lexists(f"{folder}/.git"):
            yield folder
            return
        folder = above


def _own_settings(worktree: str) -> list[str]:
    """The files of settings of the repository that a worktree belongs to."""
    git = f"{worktree}/.git"
    if not os.path.isdir(git):
        leads = _line(git)
        if not leads.startswith("gitdir: "):
            return []
        git = os.path.realpath(os.path.join(worktree, leads.removeprefix("gitdir: ")))
    common = os.path.realpath(os.path.join(git, _line(f"{git}/commondir") or "."))
    return [f"{common}/config", f"{git}/config.worktree"]


def _line(path: str) -> str:
    text = os.fsdecode(_content(path)).rstrip("\r\n")
    return "" if "\0" in text or "\n" in text else text


def _named(file: str, worktree: str, home: str) -> Iterator[tuple[str, bool]]:
    """The paths that a file of settings names, and whether each is a file of settings."""
    data = _content(file)
    if not NAMING.search(data):
        return
    for (section, _), _, key, _, value in lines(data):
        is_hooks = section == b"core." and key == b"hookspath"
        if is_hooks or (key == b"path" and section.startswith((b"include.", b"includeif."))):
            place = os.fsdecode(_plain(value))
            if place.startswith("~/"):
                place = home + place[1:]
            if place and "\0" not in place:
                folder = worktree if is_hooks else os.path.dirname(os.path.realpath(file))
                yield os.path.normpath(os.path.join(folder, place)), not is_hooks


def _plain(value: bytes) -> bytes:
    """A value as git reads it, without quotes, escapes and a comment at its end.

    >>> _plain(b'"../my hooks" # shared')
    b'../my hooks'
    """
    found = VALUE.match(value)
    return ESCAPED_OR_QUOTE.sub(lambda match: match[1] or b"", found[0] if found else b"").strip()


def _content(path: str) -> bytes:
    """What a regular file holds; nothing where there is none, and where it is too large."""
    try:
        fd = os.open(path, OPEN)
    except OSError:
        return b""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
        os.close(fd)
        return b""
    with open(fd, "rb") as file:
        return file.read(MAX_BYTES)
