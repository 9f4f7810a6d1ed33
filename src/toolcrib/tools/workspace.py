"""The folder that tools work in and cannot leave.

Every access is relative to a pinned directory and resolved by `confined.open_beneath`; nothing is checked
first and used later. What a model reads of a path is relative to the workspace.
"""

from __future__ import annotations

import difflib
import errno
import os
import posixpath
import re
import secrets
import stat
import threading
import weakref
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass

from toolcrib.errors import ToolError
from toolcrib.tools.confined import LOOK, below, open_beneath

MAX_HOPS = 40  # symlinks followed to find the file that a write replaces
NEAR_NAMES = 3
NEAR_NAMES_OF = 2_000  # names looked at for suggestions
DRIVE = re.compile(r"[A-Za-z]:[\\/]")
HOME = re.compile(r"~[^/]*/|~\Z")

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
    errno.ENXIO: "{path} is not a regular file (a pipe, socket or device).",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A path as it is used: the root that it lies below, the path from there, and what a model is shown."""

    root: Root
    path: str
    shown: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder. `kind` is "file", "folder", "link" or "other" (pipes, devices, sockets)."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Stamp:
    """Which version of a file was read: it changes when the file is replaced or written to."""

    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class Root:
    """A directory, pinned by a descriptor when it is first used."""

    __slots__ = ("__weakref__", "_fd", "_lock", "path", "prefixes")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.realpath(path)
        self.prefixes = tuple({self.path: None, os.path.abspath(path): None})  # noqa: PTH100 (links stay)
        self._fd = -1
        self._lock = threading.Lock()

    def fd(self) -> int:
        if self._fd < 0:
            with self._lock:
                if self._fd < 0:
                    fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                    weakref.finalize(self, os.close, fd)
                    self._fd = fd
        return self._fd


class Workspace:
    """A root that tools read and write below, and further ones that they may only read.

    `root` must exist (FileNotFoundError, NotADirectoryError). `readable` are folders outside of it that
    reading tools also take by absolute path, such as the one where long outputs are kept; they may come
    to exist later. `portable=True` does without the kernel's `openat2`.

    All methods raise ToolError with words for a model, and take paths as a model writes them: relative
    to the root, or absolute below a root.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        readable: Iterable[str | os.PathLike[str]] = (),
        portable: bool = False,
    ) -> None:
        self.root = Root(root)
        self.root.fd()
        self.readable = tuple(Root(path) for path in readable)
        self.portable = portable
        # Reading, changing and replacing a file is one step for all tools of this workspace.
        self.writing = threading.RLock()

    def __repr__(self) -> str:
        return f"Workspace({self.root.path!r})"

    # Paths: pure, nothing is touched.

    def place(self, path: str) -> Place:
        """Where a path as a model writes it lies. Pure: `..` is taken away in the text alone."""
        if not path or path.isspace():
            raise ToolError("The path is empty. Give a path relative to the workspace, such as src/main.py.")
        if "\0" in path:
            raise ToolError("The path contains a NUL character.")
        try:
            path.encode()
        except UnicodeEncodeError:
            raise ToolError("The path contains characters that no file name can have.") from None
        if HOME.match(path) or DRIVE.match(path):
            raise self._outside(path)
        if not path.startswith("/"):
            return self._relative(self.root, path, path)
        for root in (self.root, *self.readable):
            inside = below(root.prefixes, posixpath.normpath("/" + path.lstrip("/")))
            if inside is not None:
                return self._relative(root, inside or ".", path)
        raise self._outside(path)

    def resource(self, path: str) -> str:
        """The name under which calls that touch this path are kept apart; pure, and never an error."""
        try:
            return self.place(path).shown
        except ToolError:
            return path

    def _relative(self, root: Root, path: str, written: str) -> Place:
        normal = posixpath.normpath(path)
        if normal == ".." or normal.startswith("../"):
            raise self._outside(written)
        return Place(root, normal, normal if root is self.root else posixpath.join(root.path, normal))

    def _outside(self, path: str) -> ToolError:
        return ToolError(
            f"{path} lies outside the workspace. Use a path relative to the workspace, such as src/main.py "
            '("." is the workspace itself).'
        )

    # Opening: the caller closes.

    def open(self, place: Place, flags: int) -> int:
        """A descriptor, or OSError: for walks that step over what they cannot open."""
        return open_beneath(place.root.fd(), place.root.prefixes, place.path, flags, portable=self.portable)

    def open_file(self, path: str) -> tuple[int, os.stat_result]:
        """A regular file for reading; never waits for a pipe, never opens a device for use."""
        place = self.place(path)
        with self._spoken(place):
            return self._open_regular(place)

    def open_folder(self, path: str) -> int:
        """A folder for listing."""
        place = self.place(path)
        with self._spoken(place, wanted="folder"):
            return self.open(place, os.O_RDONLY | os.O_DIRECTORY)

    def _open_regular(self, place: Place) -> tuple[int, os.stat_result]:
        fd = self.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        status = os.fstat(fd)
        if stat.S_ISREG(status.st_mode):
            return fd, status
        os.close(fd)
        code = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.ENXIO
        raise OSError(code, os.strerror(code))

    # Reading.

    def read(self, path: str, limit: int) -> tuple[bytes, Stamp]:
        """The whole of a file that is at most `limit` bytes long, and which version it was."""
        place = self.place(path)
        with self._spoken(place):
            fd, status = self._open_regular(place)
            with os.fdopen(fd, "rb") as file:
                data = file.read(limit + 1) if status.st_size <= limit else b""
        if status.st_size > limit or len(data) > limit:
            raise ToolError(f"{place.shown} is larger than {limit:,} bytes.")
        return data, Stamp.of(status)

    def entries(self, path: str) -> list[Entry]:
        """The names in a folder, sorted."""
        fd = self.open_folder(path)
        try:
            return scan(fd)
        finally:
            os.close(fd)

    def stat(self, path: str) -> os.stat_result | None:
        """What a path leads to inside its root; None where it leads nowhere or out."""
        try:
            fd = self.open(self.place(path), LOOK)
        except (OSError, ToolError):
            return None
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def link_target(self, path: str) -> str:
        """What a symlink says, without the host's path to the root."""
        place = self.place(path)
        parent, name = posixpath.split(place.path)
        with self._spoken(place):
            fd = self.open(Place(place.root, parent or ".", place.shown), os.O_RDONLY | os.O_DIRECTORY)
            try:
                target = os.readlink(name, dir_fd=fd)
            finally:
                os.close(fd)
        return below(place.root.prefixes, target) or "." if target.startswith("/") else target

    # Writing: a new file beside the old one, then a rename within the pinned folder.

    def write(self, path: str, data: bytes, *, expect: Stamp | None = None) -> bool:
        """Put `data` in place of a file in one step, keeping its mode; True if there was none before.

        Folders on the way are created. With `expect`, a file that was changed since that version was read
        is left alone.
        """
        place = self.place(path)
        if place.root is not self.root:
            raise ToolError(f"{place.shown} can only be read.")
        with self.writing, self._spoken(place):
            folder, name = self._target(place)
            try:
                return self._replace(folder, name, data, expect, place.shown)
            finally:
                os.close(folder)

    def _target(self, place: Place) -> tuple[int, str]:
        """The pinned folder and the name that a write replaces: the end of the chain of symlinks."""
        path = place.path
        for _ in range(MAX_HOPS):
            parent, name = posixpath.split(path)
            if name in ("", ".", ".."):
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
            folder = self._make_folder(place.root, parent or ".")
            try:
                target = os.readlink(name, dir_fd=folder)
            except OSError:
                return folder, name
            os.close(folder)
            inside = below(place.root.prefixes, target) if target.startswith("/") else target
            if inside is None:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            path = inside if target.startswith("/") else posixpath.join(parent, target)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def _make_folder(self, root: Root, path: str) -> int:
        try:
            return self.open(Place(root, path, path), os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            parent, name = posixpath.split(path)
            if name in ("", ".", ".."):
                raise
        above = self._make_folder(root, parent or ".")
        try:
            try:
                os.mkdir(name, dir_fd=above)
            except FileExistsError:
                pass
            return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        finally:
            os.close(above)

    def _replace(self, folder: int, name: str, data: bytes, expect: Stamp | None, shown: str) -> bool:
        try:
            old = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            old = None
        if old is not None:
            if not stat.S_ISREG(old.st_mode):
                code = errno.EISDIR if stat.S_ISDIR(old.st_mode) else errno.ENXIO
                raise OSError(code, os.strerror(code))
            if not old.st_mode & 0o222:
                raise ToolError(f"{shown} is marked read-only, so it was left as it is.")
        temporary = f".toolcrib-{secrets.token_hex(8)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(temporary, flags, 0o666 if old is None else 0o600, dir_fd=folder)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                if old is not None:
                    _like(file.fileno(), old)
                os.fsync(file.fileno())
            if expect is not None and _stamp(folder, name) != expect:
                raise ToolError(f"{shown} was changed by somebody else meanwhile. Read it again, then edit.")
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            try:
                os.unlink(temporary, dir_fd=folder)
            except OSError:
                pass
            raise
        os.fsync(folder)
        return old is None

    # Words.

    @contextmanager
    def _spoken(self, place: Place, wanted: str = "file") -> Generator[None]:
        """Turn what the system refuses into words for a model."""
        try:
            yield
        except FileNotFoundError:
            raise ToolError(f"There is no {wanted} {place.shown}.{self._near(place)}") from None
        except OSError as problem:
            code = problem.errno or 0
            if wanted == "folder" and code == errno.ENOTDIR and self.stat(place.shown) is not None:
                raise ToolError(f"{place.shown} is a file, not a folder.") from None
            words = WORDS.get(code) or f"{{path}}: {os.strerror(code)}."
            raise ToolError(words.format(path=place.shown)) from None

    def _near(self, place: Place) -> str:
        parent, name = posixpath.split(place.path)
        folder = Place(place.root, parent or ".", posixpath.dirname(place.shown) or ".")
        try:
            fd = self.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            return f" There is no folder {folder.shown} either."
        except OSError:
            return ""
        try:
            names = {entry.name.casefold(): entry.name for entry in scan(fd)[:NEAR_NAMES_OF]}
        finally:
            os.close(fd)
        near = difflib.get_close_matches(name.casefold(), names, NEAR_NAMES, 0.6)
        if not near:
            return ""
        return " Did you mean " + ", ".join(printable(_join(parent, names[key])) for key in near) + "?"


def scan(fd: int) -> list[Entry]:
    """The names in an open folder, sorted as text."""
    with os.scandir(fd) as found:
        return sorted((Entry(item.name, _kind(item)) for item in found), key=lambda entry: entry.name)


def _kind(item: os.DirEntry[str]) -> str:
    if item.is_symlink():
        return "link"
    if item.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if item.is_file(follow_symlinks=False) else "other"


def printable(path: str) -> str:
    """A path on one line, whatever characters its names have."""
    text = os.fsencode(path).decode("utf-8", "replace")
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _join(parent: str, name: str) -> str:
    return f"{parent}/{name}" if parent not in ("", ".") else name


def _stamp(folder: int, name: str) -> Stamp | None:
    try:
        return Stamp.of(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _like(fd: int, old: os.stat_result) -> None:
    """Give a new file the owner and mode of the one that it replaces."""
    new = os.fstat(fd)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(fd, old.st_uid, old.st_gid)
        except PermissionError:
            pass
    os.fchmod(fd, stat.S_IMODE(old.st_mode))
