"""Tells whether the mounts on protected files stayed while a command ran, and sets aside what lost its mount.

A mount lies on a file, not on its name. Whoever replaces the file outside of the sandbox (git, many editors, the tools
that write files) takes the mount away, and from then on the command can write to what has this name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from toolcrib.birth_time import birth_time
from toolcrib.command.sandbox.files.git_files import content
from toolcrib.command.sandbox.files.placeholders import is_placeholder
from toolcrib.command.sandbox.files.protected_files import set_aside
from toolcrib.command.sandbox.files.running_records import RunningRecords
from toolcrib.command.sandbox.interface import Launch

__all__ = ["MountPoints"]

LOST = "another program replaced it while the command ran, which could write to it from then on"


class MountPoints:
    """The protected paths of a workspace as they are when they are mounted. `running` are the records of commands."""

    def __init__(self, root: str, paths: Iterable[str], running: RunningRecords) -> None:
        self._root = root
        self._running = running
        self._before = {path: _identity(path) for path in paths}
        # The content too, since git and editors replace a file by an equal one; None if it could not be read.
        self._contents = {
            path: content(path, behind_links=False) for path in self._before if not _is_of_git(path)
        }
        running.add(self)

    def compare(self, launch: Launch) -> None:
        """Adds the paths that kept their mounts to `launch.kept_by_mounts`; sets aside what lost its mount and changed.

        What git obeys is left to `GitRepositories`, which knows what may stay.
        """
        with self._running.lock:
            for path, before in self._before.items():
                if before is not None and _identity(path) == before:
                    launch.kept_by_mounts.append(path)
                elif not _is_of_git(path) and self._may_be_changed(path):
                    launch.not_restored.append(set_aside(self._root, path, LOST))

    def accept(self, path: str, data: bytes | None) -> None:
        """Records what a tool has just written to a file (None: it removed it): that may stay."""
        if path in self._contents:
            self._contents[path] = b"" if data is None else data

    def _may_be_changed(self, path: str) -> bool:
        if not os.path.lexists(path) or is_placeholder(path):
            return False
        known = self._contents[path]
        return known is None or content(path, behind_links=False) != known


def _is_of_git(path: str) -> bool:
    return "/.git/" in f"{path}/"


def _identity(path: str) -> tuple[int, int, int] | None:
    """What tells a file from another one that gets its name; None where nothing is. Numbers of files are used again."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, birth_time(path)
