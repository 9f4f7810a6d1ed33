"""The folder that tools work in and cannot leave.

Every access is relative to a directory that is kept open, and resolved by `confined_open`; nothing is checked
first and used later. Symlinks are resolved, `permits` (a call's `ctx.permits`) decides on the resolved path,
and that path is opened without following links: either the path that was decided on is opened, or nothing is.
Paths in messages to the model are relative to the workspace.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
import stat
import sys
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from toolcrib.access import PATHS, Access, Confinement, Reach
from toolcrib.command.judge.paths import may_hold_secrets
from toolcrib.dataclass import replace
from toolcrib.errors import ToolError, as_tuple
from toolcrib.folder_handles import (
    DIRECTORY,
    NOCTTY,
    NONBLOCK,
    FolderHandle,
    close_handle,
    status_of,
)
from toolcrib.question import Doubt
from toolcrib.tools.backends import refusals
from toolcrib.tools.backends.protocol import (
    Change,
    DirectoryEntry,
    FileStatus,
    Folder,
    Permits,
    permit_all,
)
from toolcrib.tools.change_journal import ChangeJournal
from toolcrib.tools.confined_open import LOOK, below, open_beneath, real_beneath
from toolcrib.tools.local_changes import ChangeSet
from toolcrib.tools.seen_versions import SeenVersions
from toolcrib.tools.workspace_paths import (
    WORDS,
    WorkspacePath,
    WorkspaceRoot,
    file_status,
    joined,
    printable_path,
    protected_path_doubt,
    read_in,
    scan,
    windows_name_problem,
)

if TYPE_CHECKING:
    from toolcrib.command.sandbox import Level

ATTEMPTS = 8  # at a path whose links change while they are followed
DRIVE = re.compile(r"[A-Za-z]:[\\/]")
HOME = re.compile(r"~[^/]*/|~\Z")


class Workspace:
    """A root folder that tools read and write, and further folders that they may only read.

    `root` must exist (FileNotFoundError, NotADirectoryError). `readable` are folders outside of it that
    reading tools also take by absolute path, such as the one where long outputs are kept; they may come
    to exist later. `portable=True` does without the kernel's `openat2`. `level` is the sandbox's (`Sandbox.level`)
    and may be set to another at any time: where it is read-only, tools that write are neither offered nor run.

    All methods raise ToolError with words for a model, and take paths as a model writes them: relative
    to the root, or absolute below a root.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        readable: Iterable[str | os.PathLike[str]] = (),
        portable: bool = False,
        level: Level | None = None,
    ) -> None:
        self.root = WorkspaceRoot(root)
        self.root.handle()
        self.level = level
        self.readable = tuple(WorkspaceRoot(path) for path in as_tuple("readable", readable))
        self.portable = portable
        # Reading, changing and replacing a file is one step for all tools of this workspace.
        self.writing = threading.RLock()
        self.seen = SeenVersions()
        self.swept: set[str] = set()
        self._journal = ChangeJournal(self.root.path)
        self._finish_changes()

    def __repr__(self) -> str:
        return f"Workspace({self.root.path!r})"

    @property
    def read_only(self) -> str | None:
        """The reason why nothing in the workspace may be changed now; None if changes are allowed."""
        from toolcrib.command.sandbox.level import Files

        only = self.level is not None and self.level.files is Files.READ_ONLY
        return "the workspace may only be read now" if only else None

    # Paths: pure, nothing is touched.

    def place(self, path: str) -> WorkspacePath:
        """The workspace path of a path as a model writes it. Pure: `..` is removed in the text only."""
        refusals.check_text(path)
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            encoding = sys.getfilesystemencoding()
            raise ToolError(
                f"{path} has characters that no file name can have here: this program was started with a locale whose "
                f"encoding is {encoding}. Use others, or have it started with PYTHONUTF8=1."
            ) from None
        if sys.platform == "win32":
            path = path.replace("\\", "/")
            if problem := windows_name_problem(path):
                raise ToolError(f"{path} cannot be used: {problem}. Give the path of a file as it is listed.")
        if HOME.match(path) or (DRIVE.match(path) and sys.platform != "win32"):
            raise refusals.outside(path)
        if not (path.startswith("/") or DRIVE.match(path)):
            return self._relative(self.root, path, path)
        absolute = path if DRIVE.match(path) else "/" + path.lstrip("/")
        for root in (self.root, *self.readable):
            inside = below(root.prefixes, posixpath.normpath(absolute))
            if inside is not None:
                return self._relative(root, inside or ".", path)
        raise refusals.outside(path)

    def resource(self, path: str) -> str:
        """The resource name of a path, by which calls that touch the same path are ordered. Pure; raises nothing."""
        try:
            return self.place(path).shown
        except ToolError:
            return path

    def _relative(self, root: WorkspaceRoot, path: str, written: str) -> WorkspacePath:
        normal = posixpath.normpath(path)
        if normal == ".." or normal.startswith("../"):
            raise refusals.outside(written)
        return WorkspacePath(root, normal, normal if root is self.root else posixpath.join(root.path, normal))

    # Names: where they lead is looked up, nothing is opened for use.

    def real(self, place: WorkspacePath) -> WorkspacePath:
        """The path after following symlinks; raises OSError for a path that leads out or in a circle."""
        root = place.root
        path = real_beneath(root.handle(), root.prefixes, place.path, portable=self.portable)
        return place if path == place.path else self._relative(root, path, place.shown)

    def leads_to(self, path: str) -> str | None:
        """The path, as shown, to which links lead; None for a path that leads out or in a circle."""
        try:
            return self.real(self.place(path)).shown
        except OSError:
            return None

    def accesses_to(
        self, reach: Reach, path: str, *, subtree: bool = False, pattern: str = "", contents: bool = False
    ) -> tuple[Access, ...]:
        """The accesses of a tool that uses a path as a model writes it: to this path, and to where links lead.

        With `subtree` the tool must ask `ctx.permits` about all that it finds there; with `contents` it gives what
        stands in files, which may be secrets by their names.
        """
        named = Access(reach, self.resource(path), subtree=subtree, pattern=pattern, filtered=subtree)
        inside = Confinement(self.root.path, "the workspace")
        return tuple(
            replace(one, secret=contents) if may_hold_secrets(one.target) else replace(one, confined=inside)
            for one in self.with_targets([named])
        )

    def with_targets(self, accesses: Iterable[Access]) -> Iterator[Access]:
        """The accesses; for a path that is absolute or goes through a link, also the path in the workspace."""
        for access in accesses:
            yield access
            if access.subtree and access.target == "/" and access.pattern:
                yield from self._below_the_root(access)
            if access.reach not in PATHS or access.target == "." or "\0" in access.target:
                continue
            root, path = self._below_a_root(access.target)
            try:
                if root is None:
                    continue
                # As it is written: behind a link, `..` is the folder above the link's target.
                leads = real_beneath(root.handle(), root.prefixes, path, portable=self.portable)
            except (OSError, UnicodeEncodeError):
                continue
            shown = self._relative(root, leads, path).shown
            if leads != posixpath.normpath(path) or (root is self.root and access.target.startswith("/")):
                yield replace(access, target=shown, real=True)

    def _below_the_root(self, access: Access) -> Iterator[Access]:
        """The part of a pattern of absolute paths that lies in the workspace, as the workspace calls it."""
        inside = below(self.root.prefixes, f"/{access.pattern.removeprefix('./')}")
        if inside is not None:
            yield replace(access, target=".", pattern=f"./{inside}" if inside else "", real=True)

    def _below_a_root(self, path: str) -> tuple[WorkspaceRoot | None, str]:
        if not path.startswith("/"):
            return self.root, path
        for root in (self.root, *self.readable):
            if (inside := below(root.prefixes, path)) is not None:
                return root, inside or "."
        return None, path

    # Opening: the caller closes.

    def open(
        self, place: WorkspacePath, flags: int, permits: Permits = permit_all, reach: Reach = Reach.READ
    ) -> FolderHandle:
        """Opens a path: a file's descriptor, or a folder's handle.

        Raises OSError, for walks that skip what they cannot open; ESTALE if it is not permitted.
        """
        real = place
        for _ in range(ATTEMPTS):
            if not permits(Access(reach, real.shown, subtree=bool(flags & DIRECTORY))):
                raise _stale()
            try:
                return self.open_itself(real, flags)
            except OSError as problem:
                if problem.errno != errno.ELOOP:
                    raise
            real = self.real(place)
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def open_itself(self, place: WorkspacePath, flags: int) -> FolderHandle:
        """Opens a path that contains no symlink; raises ELOOP if a component is one."""
        return open_beneath(place.root.handle(), place.path, flags, portable=self.portable)

    def open_file(self, path: str, permits: Permits = permit_all) -> tuple[BinaryIO, FileStatus]:
        """Opens a regular file for reading; never blocks on a pipe and never opens a device."""
        place = self.place(path)
        with self.as_tool_error(place, permits=permits):
            fd, status = self._open_regular(place, permits)
        return os.fdopen(fd, "rb"), file_status(status)

    def open_folder(self, path: str, permits: Permits = permit_all) -> FolderHandle:
        """Opens a folder for listing."""
        place = self.place(path)
        with self.as_tool_error(place, "folder", permits):
            return self.open(place, os.O_RDONLY | DIRECTORY, permits)

    def _open_regular(self, place: WorkspacePath, permits: Permits) -> tuple[int, os.stat_result]:
        fd = self.open(place, os.O_RDONLY | NONBLOCK | NOCTTY, permits)
        status = status_of(fd)
        if isinstance(fd, int) and stat.S_ISREG(status.st_mode):
            return fd, status
        close_handle(fd)
        code = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.ENXIO
        raise OSError(code, os.strerror(code))

    # Reading.

    def read(self, path: str, limit: int, permits: Permits = permit_all) -> bytes:
        """The content of a file of at most `limit` bytes."""
        file, status = self.open_file(path, permits)
        with file:
            data = file.read(limit + 1) if status.size <= limit else b""
        if status.size > limit or len(data) > limit:
            raise refusals.too_large(self.place(path).shown, limit)
        return data

    def entries(self, path: str, permits: Permits = permit_all) -> list[DirectoryEntry]:
        """The names in a folder, sorted."""
        fd = self.open_folder(path, permits)
        try:
            entries = scan(fd)
        finally:
            close_handle(fd)
        shown = self.place(path).shown
        for entry in entries:  # the folder is closed now
            entry.looked_up = partial(self.stat, joined(shown, entry.name), permits)
        return entries

    def walk(
        self,
        path: str,
        enter: Callable[[str], bool],
        *,
        skip: Collection[str] = (),
        permits: Permits = permit_all,
    ) -> Iterator[Folder]:
        """The folder and those below it; each is opened once and stays open while its entries are looked at."""
        close_handle(self.open_folder(path, permits))
        place = self.place(path)
        try:
            real = self.real(place)
        except OSError:  # changed just now
            return
        todo = [""]
        while todo:
            below = todo.pop()
            shown = place.child(below).shown
            if below and not enter(shown):
                continue
            try:
                fd = self.open_itself(real.child(below), os.O_RDONLY | DIRECTORY)
            except OSError:
                continue
            try:
                try:
                    entries = scan(fd)
                except OSError:
                    continue
                leads = "" if real == place else real.child(below).shown
                yield Folder(shown, entries, leads, partial(read_in, fd))
            finally:
                close_handle(fd)
            deeper = (entry.name for entry in entries if entry.kind == "folder" and entry.name not in skip)
            todo += reversed([f"{below}/{name}" if below else name for name in deeper])

    def stat(self, path: str, permits: Permits = permit_all) -> FileStatus | None:
        """The status of a path inside its root; None where it does not exist or leads out."""
        try:
            fd = self.open(self.place(path), LOOK, permits)
        except (OSError, ToolError):
            return None
        try:
            return file_status(status_of(fd))
        finally:
            close_handle(fd)

    # Writing.

    def locked(self) -> AbstractContextManager[object]:
        """Held while a tool reads, changes and writes, so that no other call of this process comes in between."""
        return self.writing

    def apply(self, changes: Sequence[Change], permits: Permits = permit_all) -> tuple[bool, ...]:
        """Makes all changes or none; `local_changes` says how."""
        with self.writing:
            self._finish_changes()
            return ChangeSet(self, self._journal, permits).make(changes)

    def _finish_changes(self) -> None:
        """Finishes a change set of a process that was killed in the middle."""
        if self._journal.exists() and not self.read_only:
            with self._journal.exclusively():
                self._journal.finish(self._open_for_finishing)

    def _open_for_finishing(self, folder: str) -> FolderHandle:
        return self.open_itself(WorkspacePath(self.root, folder, folder), os.O_RDONLY | DIRECTORY)

    def doubt(self, accesses: Iterable[Access]) -> Doubt | None:
        """Why a person should look at changes of these paths, whatever the rules say.

        Of what may hold secrets it only gives the reason: autonomy and rules decide whether anybody is asked.
        """
        accesses = tuple(accesses)
        if (doubt := protected_path_doubt(accesses, self.root.path)) is not None:
            return doubt
        secret = next((access.target for access in accesses if may_hold_secrets(access.target)), None)
        return None if secret is None else Doubt(f"it changes {secret}, which may hold secrets")

    def command_backend(self) -> Workspace:
        """Itself: commands are processes of this machine, which `shell` starts in a sandbox."""
        return self

    # Words.

    @contextmanager
    def as_tool_error(
        self, place: WorkspacePath, wanted: str = "file", permits: Permits = permit_all
    ) -> Generator[None]:
        """Turns an error of the operating system into a message for the model."""
        try:
            yield
        except FileNotFoundError:
            raise ToolError(f"There is no {wanted} {place.shown}.{self._near(place, permits)}") from None
        except OSError as problem:
            code = problem.errno or 0
            if wanted == "folder" and code == errno.ENOTDIR and self.stat(place.shown) is not None:
                raise ToolError(f"{place.shown} is a file, not a folder.") from None
            words = WORDS.get(code) or f"{{path}}: {os.strerror(code)}."
            raise ToolError(words.format(path=place.shown)) from None

    def _near(self, place: WorkspacePath, permits: Permits) -> str:
        parent, name = posixpath.split(place.path)
        folder = WorkspacePath(place.root, parent or ".", posixpath.dirname(place.shown) or ".")
        permits = refusals.for_suggestions(permits)
        try:
            fd = self.open(folder, os.O_RDONLY | DIRECTORY, permits)
        except FileNotFoundError:
            return f" There is no folder {folder.shown} either."
        except OSError:
            return ""
        try:
            near = refusals.near_names(name, (entry.name for entry in scan(fd)))
        finally:
            close_handle(fd)
        known = [path for one in near if permits(Access(Reach.READ, path := joined(folder.shown, one)))]
        return f" Did you mean {', '.join(map(printable_path, known))}?" if known else ""


def _stale() -> OSError:
    return OSError(errno.ESTALE, os.strerror(errno.ESTALE))
