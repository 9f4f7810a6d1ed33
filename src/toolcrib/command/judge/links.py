"""Where the names in a command lead through links: the same question that file tools ask before they open a file."""

from __future__ import annotations

import fnmatch
import glob
import os
import posixpath
from collections.abc import Iterator

from toolcrib.command.judge import paths
from toolcrib.dataclass import dataclass

MAX_NAMES = 20_000  # names that are looked at below one operand
MAX_LOOKED_AT = 200_000  # names, to match one pattern


@dataclass(frozen=True, slots=True)
class Links:
    """Looks names up. `root` is the workspace, and `folder` is where the command runs: absolute paths without links.

    `runs_code`: whether code of the project may run unasked, because something confines it.
    """

    root: str
    folder: str
    runs_code: bool = False

    def exists(self, path: str) -> bool:
        """Whether anything is at a path; a link counts."""
        try:
            return os.path.lexists(posixpath.join(self.folder, path))
        except ValueError:  # no name that a file could have
            return False

    def objections(
        self, path: str, *, contents: bool, pattern: bool = False, below: bool = False
    ) -> Iterator[tuple[str, str]]:
        """Where links in a path lead that should not be used unasked, each with the reason.

        `pattern`: the path is one, and each name that it matches is looked up. `below`: links in the folder are
        followed.
        """
        if path in paths.HARMLESS_DEVICES:
            return
        whole = posixpath.join(self.folder, path)
        matches = self._matches(path) if pattern else []
        if matches is None:
            yield path, f"{path} goes through too many files to look for links among them"
            return
        for name in (whole, *matches[:MAX_NAMES]):
            yield from self._of_name(name, contents)
            if below:
                yield from self._below(name, contents)

    def _matches(self, pattern: str) -> list[str] | None:
        """The paths that a pattern matches; None if too many names would be looked at, as through links to folders."""
        found, left = ["/" if pattern.startswith("/") else self.folder], MAX_LOOKED_AT
        for part in filter(None, pattern.split("/")):
            if not glob.has_magic(part):
                found = [posixpath.join(base, part) for base in found]
                continue
            bases, found = found, []
            for base in bases:
                try:
                    names = os.listdir(base)  # noqa: PTH208 - names as they are written
                except OSError:
                    continue
                left -= len(names) + 1
                if left < 0:
                    return None
                shown = (name for name in names if part.startswith(".") or not name.startswith("."))
                found += (
                    posixpath.join(base, name) for name in fnmatch.filter(shown, paths.for_fnmatch(part))
                )
        return found

    def _of_name(self, name: str, contents: bool) -> Iterator[tuple[str, str]]:
        try:
            real = os.path.realpath(name)
        except (OSError, ValueError):  # no name that a file could have
            return
        if real == posixpath.normpath(name):
            return
        leads = paths.relative(real, self.root)
        if (wrong := paths.objection(leads, contents=contents)) is not None:
            yield leads, f"{paths.relative(name, self.root)} -> {wrong}"

    def _below(self, folder: str, contents: bool) -> Iterator[tuple[str, str]]:
        """The objections to links in a folder, and in the folders of the workspace to which these links lead."""
        waiting, seen, left = [os.path.realpath(folder)], set[str](), MAX_NAMES
        while waiting:
            at = waiting.pop()
            if at in seen or paths.relative(at, self.root).startswith("/"):
                continue
            seen.add(at)
            try:
                with os.scandir(at) as entries:
                    for entry in entries:
                        left -= 1
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                        elif entry.is_symlink():
                            yield from self._of_name(entry.path, contents)
                            waiting.append(os.path.realpath(entry.path))  # a file has nothing below it
                        if left < 0:
                            yield folder, f"{folder} holds too many files to look for links among them"
                            return
            except OSError:
                continue
