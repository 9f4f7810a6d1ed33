"""Walks the files of a workspace as a developer sees them: without files that git ignores or tools generate.

Each folder is opened once, and symlinks to folders are not entered. Files that rules deny to the call are left
out and counted, whatever the search pattern is, so that the count reveals no names.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from toolcrib.access import Access, Reach
from toolcrib.errors import ToolError
from toolcrib.ignore_rules import MAX_IGNORE_FILE, SKIPPED, IgnoreFile, is_ignored, read_ignore_file
from toolcrib.tools.backends.protocol import Backend, DirectoryEntry, Folder, Permits
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
    _real: str = field(default="", init=False)

    def files(self) -> Iterator[tuple[str, DirectoryEntry]]:
        """The regular files as paths from `start`, sorted by name within each folder.

        When an entry was changed can be asked until the next entry is taken.
        """
        self.start = self.backend.place(self.start).shown
        ignored: dict[str, list[IgnoreFile]] = {}  # by folder; only folders that are still to be entered

        def enter(folder: str) -> bool:
            self.check()
            return folder in ignored

        skip = () if self.everything else SKIPPED
        walk = self.backend.walk(self.start, enter, skip=skip, permits=self.permits)
        for folder in walk:
            if not self._real:  # the first one
                self.check()
                self._real = self.backend.leads_to(self.start) or self.start
                ignored[folder.path] = [] if self.everything else self._ignored_above()
            yield from self._in_folder(folder, ignored)

    def _in_folder(
        self, folder: Folder, ignored: dict[str, list[IgnoreFile]]
    ) -> Iterator[tuple[str, DirectoryEntry]]:
        rules = ignored.pop(folder.path)
        if not self.everything and any(entry.name == ".gitignore" for entry in folder.entries):
            rules = rules + self._read_ignored(folder.path)
        for number, entry in enumerate(folder.entries, 1):
            if number % CHECKED_EVERY == 0:
                self.check()
            path = joined(folder.path, entry.name)
            if entry.kind == "other":
                continue
            is_folder = entry.kind == "folder"
            if not self.everything and (
                (is_folder and entry.name in SKIPPED) or is_ignored(rules, path, is_folder)
            ):
                continue
            if not self.may_read(path, entry.kind):
                self.withheld += 1
            elif is_folder:
                ignored[path] = rules
            elif entry.kind == "file" or is_file(self.backend, path, self.permits):
                yield (path if self.start == "." else path[len(self.start) + 1 :]), entry

    def may_read(self, path: str, kind: str) -> bool:
        """Whether a path may be read, judging by its name and by its real location."""
        below = kind == "folder"
        if not self.permits(Access(Reach.READ, path, subtree=below)):
            return False
        if kind != "link" and self._real == self.start:
            return True
        real = self.backend.leads_to(path)
        # What leads out or round is no file at all.
        return real is None or self.permits(Access(Reach.READ, real, subtree=below))

    def _ignored_above(self) -> list[IgnoreFile]:
        """The rules of the folders that `start` lies in, outermost first."""
        found: list[IgnoreFile] = []
        if posixpath.isabs(self.start) or self.start == ".":
            return found
        parts = self.start.split("/")
        for depth in range(len(parts)):
            found += self._read_ignored("/".join(parts[:depth]) or ".")
        return found

    def _read_ignored(self, folder: str) -> list[IgnoreFile]:
        try:
            data = self.backend.read(posixpath.join(folder, ".gitignore"), MAX_IGNORE_FILE, self.permits)
        except ToolError:
            return []
        return read_ignore_file(folder, data)


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
