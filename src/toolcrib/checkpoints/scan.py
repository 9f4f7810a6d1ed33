"""Scans a workspace: every file's status is compared with the last scan, and what changed is read and stored.

Folders are opened one in the other and links are never followed, so nothing outside the workspace is reached. Special
files are not opened.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections import Counter
from collections.abc import Collection
from contextlib import suppress

from toolcrib.checkpoints.content import ContentStore
from toolcrib.checkpoints.entry import FILE, FOLDER, LINK, ROOT, FileTree, PathEntry, entry_of, kind_of_mode
from toolcrib.checkpoints.ignore_files import IgnoreFiles
from toolcrib.checkpoints.rights import open_up, open_up_root, set_mode
from toolcrib.command.sandbox.files.placeholders import is_placeholder, may_be_placeholder
from toolcrib.dataclass import dataclass, field
from toolcrib.folder_handles import (
    READ_FILE,
    READ_FOLDER,
    FolderHandle,
    close_handle,
    link_target,
    open_in,
    scanned,
)
from toolcrib.ignore_rules import (
    GENERATED,
    IGNORE_FILE,
    OWN_IGNORE_FILE,
    RULES_IN,
    VERSION_CONTROL,
    IgnoreRules,
)

__all__ = ["CheckpointLimits", "TreeScanner"]

# Nanoseconds. A file that changed so shortly before it was read may change again within the same tick of the clock.
RECENT = 50_000_000
IGNORE_FILES = (IGNORE_FILE, OWN_IGNORE_FILE)  # always covered
TRIES = 3  # to read a file that is written meanwhile


@dataclass(frozen=True, slots=True)
class CheckpointLimits:
    """How much of a workspace a checkpoint covers, and how much is stored of all checkpoints of a workspace.

    Files that ignore rules leave out are covered up to `ignored_bytes` each, where a folder has at most
    `ignored_in_folder` of them that are new, and the whole workspace `ignored_paths`.
    """

    file_bytes: int = 32 << 20
    tree_bytes: int = 1 << 30
    tree_paths: int = 50_000
    depth: int = 100
    ignored_bytes: int = 64 << 10
    ignored_in_folder: int = 20
    ignored_paths: int = 1_000
    checkpoints: int = 1_000
    days: float = 14
    stored_bytes: int = 2 << 30

    def why_full(self, tree: FileTree) -> str:
        """Why a tree has no room for a further path; "" where it has."""
        if len(tree.entries) + len(tree.not_covered) < self.tree_paths:
            return ""
        return f"the workspace has more than {self.tree_paths:,} files"


@dataclass(slots=True)
class _Folder:
    """A folder that is being scanned: its handle, what is left to visit, and the rules that hold in it."""

    path: str
    handle: FolderHandle
    ignore: IgnoreRules
    mode: int | None = None  # to be given back to it
    inner: list[str] = field(default_factory=list)


class TreeScanner:
    """Scans one workspace again and again; with `store=None` nothing is stored, only hashed."""

    def __init__(self, root: str, limits: CheckpointLimits) -> None:
        self.root = root
        self.limits = limits
        self.ignore_files = IgnoreFiles(root)
        self.without_room = 0  # files of the last scan that could not be saved because the disk is full

    def scan(
        self,
        before: FileTree,
        contents: ContentStore,
        *,
        save: bool = True,
        trusted: bool = True,
        covered: Collection[str] = (),
    ) -> FileTree:
        """The workspace as it is now. What was covered before stays covered, whatever ignore files and limits say now.

        `covered` are further paths that are covered if they exist, because an earlier checkpoint covers them. Unless
        `trusted`, the next scan reads again what this one reads, whatever the status of the file says then.
        """
        self.without_room = 0
        scan = _Scan(self, before, contents, save, trusted, covered)
        scan.run()
        return scan.tree


class _Scan:
    """One scan."""

    def __init__(
        self,
        scanner: TreeScanner,
        before: FileTree,
        contents: ContentStore,
        save: bool,
        trusted: bool,
        covered: Collection[str],
    ) -> None:
        self.tree = FileTree()
        self._scanner = scanner
        self._limits = scanner.limits
        self._before, self._shut_before = before.entries, before.not_covered
        self._contents = contents
        self._save = save
        self._trusted = trusted
        self._covered = covered
        self._bytes = 0
        self._ignored = 0  # small files that ignore rules leave out, and that were not known
        self._placeholders: list[str] = []  # of the sandbox, if they are empty

    def run(self) -> None:
        """Depth first, with an open handle for each folder on the way down."""
        self.tree.entries[ROOT] = entry_of(os.stat(self._scanner.root))
        root, mode = open_up_root(self._scanner.root)
        path = [_Folder("", root, IgnoreRules(), mode)]
        try:
            self._list(path[0])
            while path:
                folder = path[-1]
                if not folder.inner:
                    _leave(path.pop())
                    continue
                name = folder.inner.pop()
                if (inner := self._enter(folder, name, len(path))) is not None:
                    path.append(inner)
        finally:
            for folder in path:
                _leave(folder)
        if self._placeholders:
            self._leave_out_placeholders()

    def _leave_out_placeholders(self) -> None:
        """Empty folders that the sandbox makes for as long as a command runs are no change of it."""
        inside = Counter(path.rpartition("/")[0] for path in (*self.tree.entries, *self.tree.not_covered))
        for path in sorted(self._placeholders, reverse=True):
            if not inside[path] and path not in self._covered and path not in self.tree.not_covered:
                del self.tree.entries[path]
                inside[path.rpartition("/")[0]] -= 1

    def _enter(self, folder: _Folder, name: str, depth: int) -> _Folder | None:
        path = f"{folder.path}/{name}" if folder.path else name
        if depth > self._limits.depth:
            self.tree.not_covered[path] = f"it lies more than {self._limits.depth} folders deep"
            return None
        try:
            try:
                return self._listed(folder, name, path, widened=False)
            except PermissionError:
                known = path in self._before and path not in self._shut_before
                if not known and path not in self._covered:
                    raise
                return self._listed(folder, name, path, widened=True)  # it was read before
        except OSError as problem:
            if path in self._placeholders and isinstance(problem, FileNotFoundError):
                return None  # the command that needed it has just ended
            self.tree.not_covered[path] = f"it cannot be read: {problem.strerror}"
            self._keep_what_was_below(path)
            return None

    def _listed(self, folder: _Folder, name: str, path: str, *, widened: bool) -> _Folder:
        """An inner folder, open and listed; `widened` gives it the rights for that until it is left."""
        mode = open_up(folder.handle, name, 0o500) if widened else None
        inner = _Folder(path, open_in(folder.handle, name, READ_FOLDER), folder.ignore, mode)
        try:
            self._list(inner)
        except BaseException:
            _leave(inner)
            raise
        return inner

    def _keep_what_was_below(self, path: str) -> None:
        """A folder that cannot be read counts as unchanged."""
        below = f"{path}/"
        for known, entry in self._before.items():
            if known.startswith(below):
                self.tree.entries[known] = entry

    def _list(self, folder: _Folder) -> None:
        """Every entry of a folder: known ones by their status, new ones by the rules."""
        before, entries, prefix = self._before, self.tree.entries, f"{folder.path}/" if folder.path else ""
        with scanned(folder.handle) as found:
            listed = list(found)
            names = RULES_IN.intersection([entry.name for entry in listed])
            folder.ignore = self._scanner.ignore_files.rules_in(
                folder.path, folder.handle, names, folder.ignore
            )
            ignored: list[tuple[str, str, os.stat_result]] = []
            for item in listed:
                path = prefix + item.name
                try:
                    status = item.stat(follow_symlinks=False)
                except FileNotFoundError:  # removed just now
                    continue
                known = before.get(path)
                if (
                    known is not None
                    and (known.saved or known.kind != FILE)  # it may be read or copied now
                    and known.changed_ns == status.st_ctime_ns
                    and known.mtime_ns == status.st_mtime_ns
                    and known.size == status.st_size
                    and known.inode == status.st_ino
                    and stat.S_IMODE(status.st_mode) == known.mode
                ):
                    entries[path] = known
                    if known.content:
                        self._bytes += known.size
                    if known.kind == FOLDER:
                        folder.inner.append(item.name)
                    continue
                is_new = known is None and path not in self._covered
                if is_new and self._is_small_ignored(folder, item.name, path, status):
                    ignored.append((item.name, path, status))
                    continue
                if is_new and self._leaves_out(folder, item.name, path, kind_of_mode(status.st_mode)):
                    continue
                self._changed(folder, item.name, path, known, status)
            self._add_ignored(folder, ignored)

    def _is_small_ignored(self, folder: _Folder, name: str, path: str, status: os.stat_result) -> bool:
        """Whether this is a small file that ignore rules leave out."""
        return (
            bool(folder.ignore)
            and kind_of_mode(status.st_mode) == FILE
            and status.st_size <= self._limits.ignored_bytes
            and not why_by_name(name)
            and name not in IGNORE_FILES
            and folder.ignore.ignores(path, False)
        )

    def _add_ignored(self, folder: _Folder, ignored: list[tuple[str, str, os.stat_result]]) -> None:
        """Covers the ignored files of a folder that has few, such as `.env`. Many are a program's output."""
        self._ignored += len(ignored)
        few = len(ignored) <= self._limits.ignored_in_folder and self._ignored <= self._limits.ignored_paths
        for name, path, status in ignored:
            if self._is_full(folder):
                return
            if few:
                self.tree.entries[path] = self._file(folder.handle, name, path, None, status)
            else:
                self.tree.not_covered[path] = IGNORED

    def _changed(
        self, folder: _Folder, name: str, path: str, known: PathEntry | None, status: os.stat_result
    ) -> None:
        kind = kind_of_mode(status.st_mode)
        if kind == FOLDER:
            folder.inner.append(name)
            self.tree.entries[path] = entry_of(status)
            if may_be_placeholder(status):
                self._placeholders.append(path)
        elif kind == LINK:
            target = link_target(folder.handle, name)
            if target is not None:
                self.tree.entries[path] = entry_of(status, content=target)
        elif kind == FILE:
            self.tree.entries[path] = self._file(folder.handle, name, path, known, status)
        else:
            self.tree.entries[path] = entry_of(status)

    def _leaves_out(self, folder: _Folder, name: str, path: str, kind: str) -> bool:
        """Whether a path that was not known before is not covered; then the tree says why."""
        if self._is_full(folder):
            return True
        why = why_by_name(name)
        if not why and folder.ignore and name not in IGNORE_FILES:
            why = IGNORED if folder.ignore.ignores(path, kind == FOLDER) else ""
        if why and not (kind == FOLDER and is_placeholder(f"{self._scanner.root}/{path}")):
            self.tree.not_covered[path] = why
        return bool(why)

    def _is_full(self, folder: _Folder) -> bool:
        """Whether there is no room for a further path. If so, this is noted once, for the folder, not for each path."""
        why = self._limits.why_full(self.tree)
        if why:
            self.tree.not_covered[folder.path] = why
        return bool(why)

    def _file(
        self, folder: FolderHandle, name: str, path: str, known: PathEntry | None, status: os.stat_result
    ) -> PathEntry:
        limit = self._limits
        if status.st_size > limit.file_bytes:
            return entry_of(status, reason=f"it is larger than {limit.file_bytes >> 20} MB")
        if self._bytes + status.st_size > limit.tree_bytes:
            return entry_of(status, reason=f"the workspace holds more than {limit.tree_bytes >> 20} MB")
        self._bytes += status.st_size
        try:
            was_read = known is not None and known.kind == FILE and known.saved
            fd = _open_file(folder, name, widened=was_read or path in self._covered)
        except OSError as problem:
            if known is not None and known.kind == FILE and _same_content(known, status):
                return entry_of(status, content=known.content, reason=known.reason)
            return entry_of(status, reason=f"it cannot be read: {problem.strerror}")
        try:
            return self._read(fd, status)
        except OSError as problem:
            self._scanner.without_room += problem.errno in (errno.ENOSPC, errno.EDQUOT)
            return entry_of(status, reason=f"it cannot be copied: {problem.strerror}")
        finally:
            os.close(fd)

    def _read(self, fd: int, listed: os.stat_result) -> PathEntry:
        """Read an open file until it was not written meanwhile; if it always is, the next scan reads it again."""
        tries = TRIES
        while True:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                return entry_of(before)
            if before.st_size > self._limits.file_bytes:
                return entry_of(before, reason="it grew while it was read")
            os.lseek(fd, 0, os.SEEK_SET)
            started = time.time_ns()
            if self._save:
                digest, length = self._contents.store(fd, before.st_size)
            else:
                digest, length = self._contents.digest(fd, before.st_size)
            after = os.fstat(fd)
            if _stamp(before) == _stamp(after) and length == after.st_size:
                same = _stamp(listed)[:2] == _stamp(after)[:2]
                settled = self._trusted and same and started - after.st_ctime_ns > RECENT
                # The status of the listing is compared with that of the next one: on Windows an open file has others.
                return entry_of(listed if settled else after, content=digest, settled=settled)
            tries -= 1
            if not tries:
                return entry_of(after, content=digest, settled=False)


IGNORED = "ignore rules leave it out"


def why_by_name(name: str) -> str:
    """Why folders and files of a name are never covered; "" for all others."""
    if name in VERSION_CONTROL:
        return "it belongs to the version control"
    return "tools generate it" if name in GENERATED else ""


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _same_content(known: PathEntry, status: os.stat_result) -> bool:
    return (known.size, known.mtime_ns, known.inode) == (status.st_size, status.st_mtime_ns, status.st_ino)


def _open_file(folder: FolderHandle, name: str, *, widened: bool) -> int:
    """Open a file; with `widened` also one that lost the right to be read, and has it for a moment."""
    try:
        fd = open_in(folder, name, READ_FILE)
    except PermissionError:
        mode = open_up(folder, name, 0o400) if widened else None
        if mode is None:
            raise
        fd = open_in(folder, name, READ_FILE)
        if isinstance(fd, int):
            set_mode(fd, mode)
    if isinstance(fd, int):
        return fd
    raise IsADirectoryError(name)


def _leave(folder: _Folder) -> None:
    """Close a folder, and give it its mode back."""
    if folder.mode is not None and isinstance(folder.handle, int):
        with suppress(OSError):
            set_mode(folder.handle, folder.mode)
    close_handle(folder.handle)
