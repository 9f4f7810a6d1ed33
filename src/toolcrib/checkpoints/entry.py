"""What a checkpoint knows of a path, and of a whole workspace."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from toolcrib.dataclass import dataclass, field

__all__ = [
    "FILE",
    "FOLDER",
    "LINK",
    "OTHER",
    "ROOT",
    "FileTree",
    "PathEntry",
    "changed_paths",
    "kind_of_mode",
]

FILE, FOLDER, LINK, OTHER = "file", "folder", "link", "other"
ROOT = "."  # the path of the workspace itself: a command can take its rights, too
IS_NONE_OF_THEM = "it is no file, folder or link, but a special file"


class PathEntry(NamedTuple):
    """A file, folder or link as a scan found it. `content` is the hash of the copy of a file, or a link's target.

    A file without a copy says in `reason` why it has none. `changed_ns` is the time that no program can set; 0 where
    the file was so new that it may change again within the same tick of the clock: the next scan reads it again.
    """

    kind: str
    mode: int
    size: int
    mtime_ns: int
    changed_ns: int
    inode: int
    owner: int
    group: int
    content: str = ""
    reason: str = ""

    @property
    def saved(self) -> bool:
        """Whether all that is needed to make it again is known."""
        return not self.reason

    @property
    def value(self) -> tuple[Any, ...]:
        """What entries are compared by: content, link target and mode; the times only of a file without a copy."""
        if self.kind == LINK:
            return LINK, self.content
        if self.kind == FOLDER:
            return FOLDER, self.mode
        if self.saved:
            return FILE, self.mode, self.content
        return self.kind, self.mode, self.size, self.mtime_ns, self.inode

    def is_same(self, other: PathEntry) -> bool:
        """Whether nothing was changed between the two. If only one of them has a copy, by the status alone."""
        if self.saved is other.saved:
            return self.value == other.value
        return self._status == other._status

    @property
    def _status(self) -> tuple[Any, ...]:
        return self.kind, self.mode, self.size, self.mtime_ns, self.changed_ns, self.inode

    @property
    def words(self) -> str:
        """What it is, in a word or two."""
        return {FILE: "a file", FOLDER: "a folder", LINK: "a link"}.get(self.kind, "a special file")


def entry_of(
    status: os.stat_result, *, content: str = "", reason: str = "", settled: bool = True
) -> PathEntry:
    """The entry of a path with this status."""
    kind = kind_of_mode(status.st_mode)
    return PathEntry(
        kind,
        stat.S_IMODE(status.st_mode),
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns if settled else 0,
        status.st_ino,
        status.st_uid,
        status.st_gid,
        content,
        IS_NONE_OF_THEM if kind == OTHER else reason,
    )


def kind_of_mode(mode: int) -> str:
    """The kind of a path (FILE, FOLDER, LINK, OTHER) by its mode."""
    if stat.S_ISREG(mode):
        return FILE
    if stat.S_ISDIR(mode):
        return FOLDER
    return LINK if stat.S_ISLNK(mode) else OTHER


@dataclass(slots=True)
class FileTree:
    """A workspace as a scan found it: the entries by path, and why paths are not covered.

    A reason in `not_covered` holds for the path and for everything below it that has no entry. Paths are relative to
    the workspace, with `/` between names.
    """

    entries: dict[str, PathEntry] = field(default_factory=dict)
    not_covered: dict[str, str] = field(default_factory=dict)

    def why_not_covered(self, path: str) -> str:
        """Why a path has no entry although it may exist; "" where nothing stands there."""
        while path:
            if path in self.not_covered:
                return self.not_covered[path]
            path = path.rpartition("/")[0]
        return self.not_covered.get("", "")

    def all_not_covered(self) -> dict[str, str]:
        """The paths that are not covered, also those that have an entry but no copy, each with the reason."""
        unsaved = {path: entry.reason for path, entry in self.entries.items() if not entry.saved}
        return unsaved | self.not_covered


def changed_paths(old: Mapping[str, PathEntry], new: Mapping[str, PathEntry]) -> Iterable[str]:
    """The paths that differ in kind, content, target or mode."""
    for path, entry in new.items():
        before = old.get(path)
        if before is not entry and (before is None or before.value != entry.value):
            yield path
    yield from old.keys() - new.keys()
