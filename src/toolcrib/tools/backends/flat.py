"""Backends whose store knows only paths and contents: folders are where files are, and there are no links."""

from __future__ import annotations

import io
import posixpath
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, BinaryIO

from toolcrib.access import Access, Reach
from toolcrib.command.judge.paths import may_hold_secrets
from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolError
from toolcrib.tools.backends import refusals
from toolcrib.tools.backends.protocol import (
    ABSENT,
    Change,
    DirectoryEntry,
    FileStatus,
    Folder,
    Move,
    Permits,
    Write,
    permit_all,
    version_of,
)
from toolcrib.tools.seen_versions import SeenVersions

if TYPE_CHECKING:
    from toolcrib.question import Doubt


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in a store. `modified` is in nanoseconds."""

    data: bytes
    modified: int


@dataclass(frozen=True, slots=True)
class FlatPath:
    """A path in a store, without `..`, relative to its root."""

    shown: str


class FlatBackend(ABC):
    """A store of files by path. A subclass says how files are found, and how a set of changes is stored at once."""

    read_only: str | None = None

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.seen = SeenVersions()

    @abstractmethod
    def load(self, path: str) -> StoredFile | None:
        """The file at a path."""

    @abstractmethod
    def below(self, folder: str) -> list[tuple[str, FileStatus]]:
        """The paths of all files below a folder ("." is the root), each with its status."""

    @abstractmethod
    def exclusively(self) -> AbstractContextManager[object]:
        """Held while versions are compared and the changes stored: nobody else changes the store meanwhile."""

    @abstractmethod
    def store(self, changes: dict[str, StoredFile | None]) -> None:
        """Stores all files of a change set, or none; None removes the file."""

    # Paths.

    def place(self, path: str) -> FlatPath:
        refusals.check_text(path)
        normal = posixpath.normpath(path.lstrip("/") or ".")
        if normal == ".." or normal.startswith("../") or path == "~" or path.startswith("~/"):
            raise refusals.outside(path)
        return FlatPath(normal)

    def resource(self, path: str) -> str:
        try:
            return self.place(path).shown
        except ToolError:
            return path

    def accesses_to(
        self, reach: Reach, path: str, *, subtree: bool = False, pattern: str = "", contents: bool = False
    ) -> tuple[Access, ...]:
        target = self.resource(path)
        secret = contents and may_hold_secrets(target)
        return (Access(reach, target, subtree=subtree, pattern=pattern, filtered=subtree, secret=secret),)

    def leads_to(self, path: str) -> str | None:
        return self.place(path).shown

    def doubt(self, accesses: Iterable[Access]) -> Doubt | None:
        return None  # no program of the host obeys what stands here

    # Reading.

    def read(self, path: str, limit: int, permits: Permits = permit_all) -> bytes:
        data = self._file(path, permits).data
        if len(data) > limit:
            raise refusals.too_large(self.place(path).shown, limit)
        return data

    def open_file(self, path: str, permits: Permits = permit_all) -> tuple[BinaryIO, FileStatus]:
        file = self._file(path, permits)
        return io.BytesIO(file.data), stored_status(self.place(path).shown, file)

    def _file(self, path: str, permits: Permits) -> StoredFile:
        shown = self.place(path).shown
        if not permits(Access(Reach.READ, shown)):
            raise refusals.not_permitted(shown)
        file = self.load(shown)
        if file is not None:
            return file
        raise self._missing(shown, permits)

    def _missing(self, shown: str, permits: Permits, wanted: str = "file") -> ToolError:
        if shown == "." or self.below(shown):
            return refusals.is_folder(shown)
        if self._file_above(shown):
            return refusals.part_is_file(shown)
        parent = posixpath.dirname(shown) or "."
        names = [entry.name for entry in self._children(parent)]
        return refusals.not_there(shown, names if names or parent == "." else None, permits, wanted)

    def _file_above(self, shown: str) -> bool:
        parent = posixpath.dirname(shown)
        return bool(parent) and (self.load(parent) is not None or self._file_above(parent))

    def stat(self, path: str, permits: Permits = permit_all) -> FileStatus | None:
        try:
            shown = self.place(path).shown
        except ToolError:
            return None
        file = self.load(shown)
        is_folder = file is None and (shown == "." or bool(self.below(shown)))
        if not (file or is_folder) or not permits(Access(Reach.READ, shown, subtree=is_folder)):
            return None
        return FileStatus("folder", identity=shown) if file is None else stored_status(shown, file)

    def entries(self, path: str, permits: Permits = permit_all) -> list[DirectoryEntry]:
        shown = self._folder(path, permits)
        return self._children(shown)

    def _folder(self, path: str, permits: Permits) -> str:
        shown = self.place(path).shown
        if not permits(Access(Reach.READ, shown, subtree=True)):
            raise refusals.not_permitted(shown)
        if shown != "." and not self.below(shown):
            if self.load(shown) is not None:
                raise refusals.not_a_folder(shown)
            raise self._missing(shown, permits, "folder")
        return shown

    def _children(self, folder: str) -> list[DirectoryEntry]:
        return _tree(folder, self.below(folder)).get(folder, [])

    def walk(
        self,
        path: str,
        enter: Callable[[str], bool],
        *,
        skip: Collection[str] = (),
        permits: Permits = permit_all,
    ) -> Iterator[Folder]:
        shown = self._folder(path, permits)
        return walk_tree(shown, _tree(shown, self.below(shown)), enter, skip)

    # Changing.

    def locked(self) -> AbstractContextManager[object]:
        return self._lock

    def apply(self, changes: Sequence[Change], permits: Permits = permit_all) -> tuple[bool, ...]:
        if self.read_only:
            raise ToolError(f"{self.place(changes[0].path).shown} can only be read.")
        now = time.time_ns()
        new: list[bool] = []
        planned: dict[str, StoredFile | None] = {}
        with self._lock, self.exclusively():
            for change in changes:
                for path, reaches in refusals.reaches_of(change):
                    shown = self.place(path).shown
                    if not all(permits(Access(reach, shown)) for reach in reaches):
                        raise refusals.not_permitted(shown)
                    if shown in planned:
                        raise refusals.named_twice(shown)
                    planned[shown] = None
                new.append(self._plan(change, planned, now, permits))
            self._check_folders(planned)
            self.store(planned)
        return tuple(new)

    def _plan(
        self, change: Change, planned: dict[str, StoredFile | None], now: int, permits: Permits
    ) -> bool:
        shown = self.place(change.path).shown
        old = self.load(shown)
        if old is None and not (isinstance(change, Write) and not self.below(shown) and shown != "."):
            raise self._missing(shown, permits)
        refusals.check_version(shown, change.expect, ABSENT if old is None else version_of(old.data))
        if isinstance(change, Write):
            planned[shown] = StoredFile(change.data, now)
            return old is None
        if isinstance(change, Move):
            assert old is not None
            target = self.place(change.to).shown
            if target == "." or self.below(target):
                raise refusals.is_folder(target)
            there = self.load(target)
            refusals.check_version(target, ABSENT, ABSENT if there is None else version_of(there.data))
            planned[target] = StoredFile(old.data if change.data is None else change.data, now)
            return True
        return False

    def _check_folders(self, planned: dict[str, StoredFile | None]) -> None:
        """A path is a file or a folder, never both."""
        for shown in [path for path, file in planned.items() if file is not None]:
            above = posixpath.dirname(shown)
            while above:
                if planned[above] if above in planned else self.load(above):
                    raise refusals.part_is_file(shown)
                above = posixpath.dirname(above)

    def command_backend(self) -> None:
        return None


def stored_status(path: str, file: StoredFile) -> FileStatus:
    """The status of a file at a path."""
    return FileStatus("file", len(file.data), file.modified, path)


def _tree(top: str, files: Iterable[tuple[str, FileStatus]]) -> dict[str, list[DirectoryEntry]]:
    """The folders with their entries, sorted by name."""
    folders: dict[str, dict[str, DirectoryEntry]] = {top: {}}
    for path, status in files:
        parent, name = posixpath.split(path)
        parent = parent or "."
        folders.setdefault(parent, {})[name] = DirectoryEntry(name, "file", status)
        while parent != top:
            above, name = posixpath.split(parent)
            above = above or "."
            known = folders.setdefault(above, {})
            if name in known:
                break
            known[name] = DirectoryEntry(name, "folder")
            parent = above
    return {folder: [known[name] for name in sorted(known)] for folder, known in folders.items()}


def walk_tree(
    top: str,
    folders: dict[str, list[DirectoryEntry]],
    enter: Callable[[str], bool],
    skip: Collection[str],
) -> Iterator[Folder]:
    """A walk as `Backend.walk` gives it, through folders that are known already."""
    todo = [top]
    while todo:
        folder = todo.pop()
        if folder != top and not enter(folder):
            continue
        entries = folders.get(folder, [])
        yield Folder(folder, entries)
        deeper = [entry.name for entry in entries if entry.kind == "folder" and entry.name not in skip]
        todo += reversed([name if folder == "." else f"{folder}/{name}" for name in deeper])
