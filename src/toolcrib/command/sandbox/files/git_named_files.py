"""Files of a workspace that git's settings name: folders of hooks (`core.hooksPath`), more settings (`include.path`).

The settings are those of each repository in the workspace and of the one around it, also of a linked worktree, and the
user's own. What they include is read as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from toolcrib.command.sandbox.files.git_config import HEADER, lines, plain_value
from toolcrib.command.sandbox.files.git_files import common_folder, content, repository_led_to
from toolcrib.command.sandbox.files.paths import within
from toolcrib.command.sandbox.files.shown_settings import settings_of_git

MAX_FILES = 200  # of settings
NAMING = re.compile(rb"hookspath|include", re.IGNORECASE)
CONTINUED = re.compile(rb"\\\r?\n")

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
        git = repository_led_to(git)
    return [f"{common_folder(git)}/config", f"{git}/config.worktree"] if git else []


def _named(file: str, worktree: str, home: str) -> Iterator[tuple[str, bool]]:
    """The paths that a file of settings names, and whether each is a file of settings."""
    data = content(file) or b""
    if not NAMING.search(data):
        return
    for section, key, value in _settings(data):
        is_hooks = section == b"core." and key == b"hookspath"
        if is_hooks or (key == b"path" and section.startswith((b"include.", b"includeif."))):
            place = os.fsdecode(plain_value(value))
            if place.startswith("~/"):
                place = home + place[1:]
            elif place.startswith("~"):
                place = os.path.expanduser(place)
            if place and "\0" not in place:
                folder = worktree if is_hooks else os.path.dirname(os.path.realpath(file))
                yield os.path.normpath(os.path.join(folder, place)), not is_hooks


def _settings(data: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """The section, key and value of each setting that git may find in a file.

    Whether a line goes on in the next one depends on what git takes it for, so both are looked at.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    for text in {data, CONTINUED.sub(b"", data)}:
        plain = b"\n".join(part for line in text.split(b"\n") for part in _parts(line))
        yield from ((section, key, value) for (section, _), _, key, _, value in lines(plain) if key)


def _parts(line: bytes) -> Iterator[bytes]:
    """A line; what follows a section on it is a line of its own."""
    text = line.strip()
    while (header := HEADER.match(text)) is not None:
        yield header[0]
        text = text[header.end() :].lstrip()
    yield text
