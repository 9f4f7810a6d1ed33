"""Paths in a workspace: root folders, paths as used and as shown, directory entries and file versions."""

from __future__ import annotations

import errno
import os
import posixpath
import re
import stat
import sys
import threading
import weakref
from collections.abc import Iterable
from functools import partial

from toolcrib.access import Access
from toolcrib.command.sandbox.files.executed_files import PROTECTED, PUT_BACK
from toolcrib.command.sandbox.files.git_named_files import named_by_git
from toolcrib.command.sandbox.files.paths import within_any
from toolcrib.command.sandbox.files.protected_links import led_to_by_links
from toolcrib.dataclass import dataclass
from toolcrib.folder_handles import (
    READ_FILE,
    FolderHandle,
    close_handle,
    open_in,
    open_root,
    scanned,
    status_in,
    status_of,
)
from toolcrib.question import Doubt
from toolcrib.tools.backends.protocol import DirectoryEntry, FileStatus, Kind
from toolcrib.tools.backends.refusals import too_large

WORDS = {
    errno.ENOTDIR: "{path}: a part of this path is a file, not a folder.",
    errno.EISDIR: "{path} is a folder, not a file.",
    errno.EACCES: "{path}: permission denied.",
    errno.EPERM: "{path}: not permitted.",
    errno.ELOOP: "{path}: its symlinks lead round in a circle or through too many links.",
    errno.EXDEV: "{path} leads outside the workspace through a symlink. Only files inside it can be used.",
    errno.EAGAIN: "{path} kept changing while it was opened. Try again.",
    errno.ENAMETOOLONG: "{path}: this name is too long for the file system.",
    errno.ENOSPC: "{path}: the disk is full.",
    errno.EROFS: "{path}: the file system is read-only.",
    errno.EINVAL: "{path} cannot be used as a path here.",
    errno.ESTALE: "{path} leads to another place than when it was decided on, so it was left alone. Try again.",
    errno.ENXIO: "{path} is not a regular file (a pipe, socket or device).",
}

DRIVE_LETTER = re.compile(r"[A-Za-z]:")
NO_FILE_NAME = re.compile(r'[<>:"|?*\x00-\x1f]')
SHORT_NAME = re.compile(r"~[0-9]")
DEVICES = frozenset(
    [
        "CON",
        "PRN",
        "AUX",
        "NUL",
        "CONIN$",
        "CONOUT$",
        *(f"{port}{n}" for port in ("COM", "LPT") for n in range(10)),
    ]
)
OBEYED = {f"/{name.casefold()}/": name for name in (".git", *PROTECTED, *PUT_BACK)}


# A folder is a git repository, whatever its name, where these lie together; so `HEAD` asks, and the rest beside one.
OF_A_REPOSITORY = ("objects", "refs", "config", "config.worktree", "hooks", "info", "modules", "worktrees")


def protected_path_doubt(accesses: Iterable[Access], root: str) -> Doubt | None:
    """The doubt about changing files that control programs outside the sandbox, such as git hooks: no autonomy
    level and no rule allows that unasked.

    `root` is the folder that relative paths start from.
    """
    linked = [*led_to_by_links(root), *named_by_git(root)]
    for access in accesses:
        path = f"/{access.target.casefold()}/"
        if linked and within_any(posixpath.join(root, access.target), linked):
            return Doubt("other programs obey this file: a link or git's settings lead to it", must_ask=True)
        for part, name in OBEYED.items():
            if part in path:
                return Doubt(f"other programs obey what stands in {name}", must_ask=True)
        if _makes_a_repository(access.target if access.target.startswith("/") else f"{root}/{access.target}"):
            return Doubt("git takes a folder with such files for a repository, and obeys them", must_ask=True)
    return None


def _makes_a_repository(path: str) -> bool:
    folder, name = os.path.split(path)
    if name.casefold() in ("head", "commondir"):
        return True
    while name:
        if name.casefold() in OF_A_REPOSITORY and os.path.lexists(f"{folder}/HEAD"):
            return True
        folder, name = os.path.split(folder)
    return False


@dataclass(frozen=True, slots=True)
class WorkspacePath:
    """A path in a workspace: its root, the path below the root, and the path that a model is shown."""

    root: WorkspaceRoot
    path: str
    shown: str

    def child(self, path: str) -> WorkspacePath:
        """The path of an entry below this one, for a relative path without symlinks."""
        if not path:
            return self
        inside = path if self.path == "." else f"{self.path}/{path}"
        return WorkspacePath(self.root, inside, path if self.shown == "." else f"{self.shown}/{path}")


@dataclass(frozen=True, slots=True)
class FileVersion:
    """The version of a file, which changes when the file is replaced or written."""

    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileVersion:
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class WorkspaceRoot:
    """A directory that is kept open from its first use, so that renaming it changes nothing."""

    __slots__ = ("__weakref__", "_handle", "_lock", "path", "prefixes")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = slashed(os.path.realpath(path))
        self.prefixes = tuple({self.path: None, slashed(os.path.abspath(path)): None})  # noqa: PTH100 (links stay)
        self._handle: FolderHandle | None = None
        self._lock = threading.Lock()

    def handle(self) -> FolderHandle:
        if self._handle is None:
            with self._lock:
                if self._handle is None:
                    opened = open_root(self.path)
                    weakref.finalize(self, close_handle, opened)
                    self._handle = opened
        return self._handle


def slashed(path: str) -> str:
    """A path of the system with `/` between its names, as models and rules write paths."""
    return path.replace("\\", "/") if sys.platform == "win32" else path


def windows_name_problem(path: str) -> str:
    """Why Windows would take a path with `/` for another file than it names, or for a device; "" if it would not.

    Rules decide on names, so a file must have one name only.
    """
    first, _, rest = path.partition("/")
    for name in (rest if DRIVE_LETTER.fullmatch(first) else path).split("/"):
        if name in ("", ".", ".."):
            continue
        if NO_FILE_NAME.search(name):
            return f"{name} contains a character that no file name has on Windows"
        if name != name.rstrip(". "):
            return f"Windows ignores the dots and blanks at the end of {name}"
        if name.partition(".")[0].rstrip().upper() in DEVICES:
            return f"{name} names a device on Windows"
        if SHORT_NAME.search(name):
            return f"{name} may be a short name of another file on Windows"
    return ""


def scan(folder: FolderHandle) -> list[DirectoryEntry]:
    """The names in an open folder, sorted as text. The status of a file can be asked while the folder is open."""
    with scanned(folder) as found:
        entries = [DirectoryEntry(item.name, kind_of(item), partial(_status, item)) for item in found]
    entries.sort(key=lambda entry: entry.name)
    return entries


def read_in(folder: FolderHandle, name: str, limit: int) -> bytes | None:
    """The content of a regular file in an open folder; None where there is none to read, or a link."""
    try:
        opened = open_in(folder, name, READ_FILE)
    except OSError:
        return None
    try:
        status = status_of(opened)
        if not isinstance(opened, int) or not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > limit:
            raise too_large(name, limit)
        data = os.read(opened, status.st_size + 1)
        while status.st_size < len(data) <= limit and (more := os.read(opened, limit + 1 - len(data))):
            data += more  # the file is growing, or its file system tells no sizes
    except OSError:
        return None
    finally:
        close_handle(opened)
    if len(data) > limit:
        raise too_large(name, limit)
    return data


def _status(item: os.DirEntry[str]) -> FileStatus | None:
    try:
        return file_status(item.stat(follow_symlinks=False))
    except OSError:  # gone meanwhile
        return None


def file_status(status: os.stat_result) -> FileStatus:
    """The status of a file or folder of this machine."""
    mode = status.st_mode
    kind: Kind = "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"
    return FileStatus(kind, status.st_size, status.st_mtime_ns, f"{status.st_dev}:{status.st_ino}")


def kind_of(item: os.DirEntry[str]) -> Kind:
    if item.is_symlink():
        return "link"
    if item.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if item.is_file(follow_symlinks=False) else "other"


def printable_path(path: str) -> str:
    """A path on one line, with unprintable characters escaped."""
    text = os.fsencode(path).decode("utf-8", "replace")
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def joined(parent: str, name: str) -> str:
    return f"{parent}/{name}" if parent not in ("", ".") else name


def file_version(folder: FolderHandle, name: str) -> FileVersion | None:
    """The version of a file in an open folder; None if there is no file."""
    try:
        return FileVersion.of(status_in(folder, name))
    except FileNotFoundError:
        return None


def copy_owner_and_mode(fd: int, old: os.stat_result) -> None:
    """Gives a new file the owner and mode of the file that it replaces. Windows has neither."""
    if sys.platform == "win32":
        return
    new = os.fstat(fd)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(fd, old.st_uid, old.st_gid)
        except PermissionError:
            pass
    os.fchmod(fd, stat.S_IMODE(old.st_mode))
