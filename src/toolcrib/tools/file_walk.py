"""Walks the files of a workspace as a developer sees them: without files that git ignores or tools generate.

Each folder is opened once, and symlinks to folders are not entered. Files that rules deny to the call are left
out and counted, whatever the search pattern is, so that the count reveals no names. The files that are judged here are
the ones that are read: `content` opens a name in the folder that the walk has open.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterator
from functools import partial

from toolcrib.access import Access, Reach
from toolcrib.dataclass import dataclass, field
from toolcrib.errors import ToolError
from toolcrib.ignore_rules import (
    MAX_IGNORE_FILE,
    REPOSITORY,
    RULES_IN,
    SKIPPED,
    IgnoreFile,
    IgnoreRules,
    read_ignore_file,
)
from toolcrib.tools.backends.protocol import Backend, DirectoryEntry, Folder, Permits
from toolcrib.tools.backends.refusals import FileTooLargeError
from toolcrib.tools.workspace_paths import joined

CHECKED_EVERY = 256  # entries of one folder between looks at whether the call goes on


@dataclass(slots=True)
class FileWalk:
    """One walk through the files below `start`; `check` is called often and may end the walk by raising.

    Symlinks to files inside the workspace count as files; linked folders are not entered, so nothing is seen
    twice. Unreadable folders are skipped. `withheld` counts the files and folders that `permits` denies.
    """

    backend: Backend
    start: str
    everything: bool
    check: Callable[[], None]
    permits: Permits
    withheld: int = 0
    _folder: Folder | None = field(default=None, init=False)

    def files(self) -> Iterator[tuple[str, DirectoryEntry]]:
        """The regular files as paths from `start`, sorted by name within each folder.

        When an entry was changed, and its content, can be asked until the next entry is taken.
        """
        self.start = self.backend.place(self.start).shown
        skipped = 0 if self.start == "." else len(self.start) + 1
        rules: dict[str, IgnoreRules] = {}  # by folder; only folders that are still to be entered

        def enter(folder: str) -> bool:
            self.check()
            return folder in rules

        skip = () if self.everything else SKIPPED
        for folder in self.backend.walk(self.start, enter, skip=skip, permits=self.permits):
            if self._folder is None:  # the first one
                self.check()
                rules[folder.path] = IgnoreRules() if self.everything else self._rules_above()
            self._folder = folder
            for path, entry in self._in_folder(folder, rules):
                yield path[skipped:], entry

    @property
    def behind_link(self) -> bool:
        """Whether a link leads to the folder that the walk is in."""
        return self._folder is not None and bool(self._folder.real)

    def content(self, path: str, entry: DirectoryEntry, limit: int) -> bytes | None:
        """The content of the file that `files` gave last, whose whole path is `path`; None if it cannot be read.

        Raises FileTooLargeError.
        """
        folder = self._folder
        if folder is not None and folder.read is not None and entry.kind == "file":
            return folder.read(entry.name, limit)
        return read_or_none(self.backend, path, limit, self.permits)

    def _in_folder(
        self, folder: Folder, known: dict[str, IgnoreRules]
    ) -> Iterator[tuple[str, DirectoryEntry]]:
        rules = known.pop(folder.path)
        if not self.everything:
            rules = self._with_files_of(folder.path, {entry.name for entry in folder.entries}, rules)
        filtered = bool(rules)
        for number, entry in enumerate(folder.entries, 1):
            if number % CHECKED_EVERY == 0:
                self.check()
            name, kind = entry.name, entry.kind
            if kind == "other":
                continue
            path = joined(folder.path, name)
            is_folder = kind == "folder"
            if not self.everything and (
                (is_folder and name in SKIPPED) or (filtered and rules.ignores(path, is_folder))
            ):
                continue
            if not self._may_read(folder, path, entry):
                self.withheld += 1
            elif is_folder:
                known[path] = rules
            elif kind == "file" or is_file(self.backend, path, self.permits):
                yield path, entry

    def _may_read(self, folder: Folder, path: str, entry: DirectoryEntry) -> bool:
        """Whether a path may be read, judging by its name and by its real location."""
        below = entry.kind == "folder"
        if not self.permits(Access(Reach.READ, path, subtree=below)):
            return False
        if entry.kind == "link":
            real = self.backend.leads_to(path)
            # A link that leads out of the workspace or in a circle: `is_file` passes over it.
            return real is None or self.permits(Access(Reach.READ, real))
        return not folder.real or self.permits(
            Access(Reach.READ, joined(folder.real, entry.name), subtree=below)
        )

    def _rules_above(self) -> IgnoreRules:
        """The rules of the folders that `start` lies in."""
        rules = IgnoreRules()
        if posixpath.isabs(self.start) or self.start == ".":
            return rules
        parts = self.start.split("/")
        for depth in range(len(parts)):
            folder = "/".join(parts[:depth]) or "."
            rules = self._with_files_of(folder, RULES_IN, rules)
        return rules

    def _with_files_of(self, folder: str, names: Collection[str], rules: IgnoreRules) -> IgnoreRules:
        """The rules with those of a folder, in which there may be files of these names."""
        if RULES_IN.isdisjoint(names):
            return rules
        return rules.within(
            names,
            partial(self._read, folder),
            lambda: self.backend.stat(joined(folder, REPOSITORY), self.permits) is not None,
        )

    def _read(self, folder: str, name: str) -> tuple[IgnoreFile, ...]:
        path, there = joined(folder, name), self._folder
        try:
            if there is not None and there.path == folder and there.read is not None and "/" not in name:
                # Not every folder that is walked through has a path that the backend takes from a model.
                data = there.read(name, MAX_IGNORE_FILE) if self.permits(Access(Reach.READ, path)) else None
            else:
                data = read_or_none(self.backend, path, MAX_IGNORE_FILE, self.permits)
        except FileTooLargeError:
            return ()
        return tuple(read_ignore_file(folder, data)) if data else ()


def read_or_none(backend: Backend, path: str, limit: int, permits: Permits) -> bytes | None:
    """The content of a file; None if it cannot be read. Raises FileTooLargeError."""
    try:
        return backend.read(path, limit, permits)
    except FileTooLargeError:
        raise
    except ToolError:
        return None


def withheld_note(count: int) -> str:
    """The note for the model about files that were left out."""
    if not count:
        return ""
    what = "1 file or folder was" if count == 1 else f"{count:,} files or folders were"
    return f"{what} left out: rules do not let this call read everything here."


def is_file(backend: Backend, path: str, permits: Permits) -> bool:
    """Whether a path leads to a regular file inside the workspace that may be read."""
    status = backend.stat(path, permits)
    return status is not None and status.kind == "file"
