"""A set of changes of files in a workspace: all are verified and prepared, then made by renaming; or none is made.

1. Where each name leads is looked up, its folder is opened, and the version that the change expects is compared.
2. New contents are written beside their targets, on disk; of what is replaced or removed, a link is kept beside it.
3. Each step is one rename or removal in an open folder. A new file replaces nothing, also not a file that came in
   between. If a step fails, those before it are taken back. `change_journal` says what holds if the process is killed.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
import secrets
import shutil
import stat
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import Protocol

from toolcrib.access import Access, Reach
from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolError
from toolcrib.folder_handles import (
    CLOEXEC,
    DIRECTORY,
    NOFOLLOW,
    READ_FILE,
    READ_FOLDER,
    FolderHandle,
    close_handle,
    copy_attributes,
    link_in,
    link_target,
    make_folder,
    open_in,
    remove_folder_in,
    remove_in,
    rename_in,
    rename_new_in,
    scanned,
    status_in,
    sync_folder,
)
from toolcrib.tools.backends import refusals
from toolcrib.tools.backends.protocol import (
    ABSENT,
    Change,
    Delete,
    Move,
    Permits,
    Write,
    permit_all,
    version_of,
)
from toolcrib.tools.change_journal import BACK, FORWARD, ChangeJournal, JournalStep, take_back
from toolcrib.tools.workspace_paths import (
    FileVersion,
    WorkspacePath,
    WorkspaceRoot,
    copy_owner_and_mode,
    file_version,
)

TEMPORARY = re.compile(r"\.toolcrib-[0-9a-f]{16}\.tmp")
ABANDONED = 3_600  # seconds after which a temporary file belongs to a process that was killed
MOST_MADE = 100  # folders for one file; each is open until the file is written
ATTEMPTS = 8  # at a path whose links change while they are followed


class ConfinedFolder(Protocol):
    """What a change set needs of a `Workspace`."""

    root: WorkspaceRoot

    swept: set[str]  # folders without temporary files that a killed process left

    @property
    def read_only(self) -> str | None: ...
    def place(self, path: str) -> WorkspacePath: ...
    def real(self, place: WorkspacePath) -> WorkspacePath: ...
    def open_itself(self, place: WorkspacePath, flags: int) -> FolderHandle: ...
    def as_tool_error(
        self, place: WorkspacePath, wanted: str = "file", permits: Permits = permit_all
    ) -> AbstractContextManager[None]: ...


@dataclass(slots=True)
class FileStep:
    """One name in an open folder that gets the content of `prepared`, or is removed if there is none."""

    shown: str
    path: str  # below the root, without links
    folder: FolderHandle
    name: str
    old: os.stat_result | None
    expected: bool = False  # whether the present file was compared with a version
    prepared: str = ""
    backup: str = ""


def _refuse_placeholder(shown: str, status: os.stat_result) -> None:
    """Raises ToolError for a folder that stands for a missing file as long as a command of a sandbox runs."""
    from toolcrib.command.sandbox.files.placeholders import may_be_placeholder

    if may_be_placeholder(status):
        raise ToolError(
            f"{shown} cannot be made while a command runs in the sandbox, which covers this name. Wait until the "
            "command has ended, or stop it, and try again."
        )


class ChangeSet:
    """The changes of one `Workspace.apply`."""

    def __init__(self, workspace: ConfinedFolder, journal: ChangeJournal, permits: Permits) -> None:
        self.workspace = workspace
        self.journal = journal
        self.permits = permits
        self.steps: list[FileStep] = []
        self.folders_made: list[tuple[FolderHandle, str]] = []

    def make(self, changes: Sequence[Change]) -> tuple[bool, ...]:
        """Makes all changes; raises with everything as it was."""
        try:
            new = [self._plan(change) for change in changes]
            self._prepare(changes)
            with self.journal.exclusively() as noted:
                self._verify_again()
                self._commit(noted=noted and len(self.steps) > 1)
                self._tell_running_commands(changes)
        except BaseException:
            for step in self.steps:
                for name in filter(None, (step.prepared, step.backup)):
                    with suppress(OSError):
                        remove_in(step.folder, name)
            for folder, name in reversed(self.folders_made):
                with suppress(OSError):
                    remove_folder_in(folder, name)
            raise
        finally:
            for folder in [step.folder for step in self.steps] + [folder for folder, _ in self.folders_made]:
                close_handle(folder)
        return tuple(new)

    def _tell_running_commands(self, changes: Sequence[Change]) -> None:
        """A command that runs meanwhile puts protected files back at its end, but not what was written here."""
        from toolcrib.command.sandbox.files.running_records import accept_changes

        changed: dict[str, bytes | None] = {}
        steps = iter(self.steps)
        for change in changes:
            path = f"{self.workspace.root.path}/{next(steps).path}"
            changed[path] = change.data if isinstance(change, Write) else None
            if isinstance(change, Move):
                target = f"{self.workspace.root.path}/{next(steps).path}"
                if change.data is not None:
                    changed[target] = change.data
        accept_changes(self.workspace.root.path, changed)

    # Planning: nothing is changed, except that missing folders are made.

    def _plan(self, change: Change) -> bool:
        """Adds the steps of a change; whether there will be a file where none was."""
        if isinstance(change, Write):
            step = self._step(change.path, (Reach.WRITE,))
            self._expect(step, change.expect)
            return step.old is None
        self._refuse_link(change.path)
        if isinstance(change, Delete):
            step = self._step(change.path, (Reach.DELETE,), must_exist=True)
            self._expect(step, change.expect)
            return False
        source = self._step(change.path, (Reach.DELETE, Reach.READ), must_exist=True)
        self._expect(source, change.expect)
        source.expected = True  # the file that is removed must be the one that got the new name
        target = self._step(change.to, (Reach.WRITE,))
        self._expect(target, ABSENT)
        return True

    def _step(self, path: str, reaches: tuple[Reach, ...], *, must_exist: bool = False) -> FileStep:
        place = self.workspace.place(path)
        if place.root is not self.workspace.root or self.workspace.read_only:
            raise ToolError(f"{place.shown} can only be read.")
        with self.workspace.as_tool_error(place, permits=self.permits):
            real, folder, name = self._target(place, reaches, make=not must_exist)
            step = FileStep(place.shown, real.path, folder, name, None)
            self.steps.append(step)
            try:
                step.old = status_in(folder, name)
            except FileNotFoundError:
                if must_exist:
                    raise
        if any(step.path == other.path for other in self.steps[:-1]):
            raise refusals.named_twice(place.shown)
        if step.old is not None:
            with self.workspace.as_tool_error(place):
                if not stat.S_ISREG(step.old.st_mode):
                    _refuse_placeholder(place.shown, step.old)
                    code = errno.EISDIR if stat.S_ISDIR(step.old.st_mode) else errno.ENXIO
                    raise OSError(code, os.strerror(code))
            if not step.old.st_mode & 0o222:
                raise ToolError(f"{place.shown} is marked read-only, so it was left as it is.")
        return step

    def _refuse_link(self, path: str) -> None:
        """A link would be followed, so that another file than the named one would be moved or deleted."""
        place = self.workspace.place(path)
        parent, name = posixpath.split(place.path)
        with self.workspace.as_tool_error(place, permits=self.permits):
            above = WorkspacePath(place.root, parent or ".", place.shown)
            folder = self.workspace.open_itself(self.workspace.real(above), os.O_RDONLY | DIRECTORY)
            try:
                is_link = link_target(folder, name) is not None
            finally:
                close_handle(folder)
        if is_link:
            raise ToolError(f"{place.shown} is a symlink. Only files can be moved or deleted.")

    def _expect(self, step: FileStep, version: str | None) -> None:
        if version is not None:
            step.expected = True
            now = ABSENT if step.old is None else "" if version == ABSENT else self._version(step)
            refusals.check_version(step.shown, version, now)

    def _version(self, step: FileStep) -> str:
        fd = open_in(step.folder, step.name, READ_FILE)
        assert isinstance(fd, int)
        with os.fdopen(fd, "rb") as file:
            step.old = os.fstat(fd)
            return version_of(file.read())

    def _target(
        self, place: WorkspacePath, reaches: tuple[Reach, ...], *, make: bool
    ) -> tuple[WorkspacePath, FolderHandle, str]:
        """Where a path leads: the path, its open folder, and the name in it."""
        for _ in range(ATTEMPTS):
            real = self.workspace.real(place)
            parent, name = posixpath.split(real.path)
            if name in ("", ".", ".."):
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
            if not all(self.permits(Access(reach, real.shown)) for reach in reaches):
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
            try:
                folder = self._folder(real, parent or ".", make=make)
            except OSError as problem:
                if problem.errno != errno.ELOOP:
                    raise
                continue
            if link_target(folder, name) is None:
                self._sweep(folder, parent)
                return real, folder, name
            close_handle(folder)
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def _sweep(self, folder: FolderHandle, path: str) -> None:
        """Removes what a process that was killed before a rename left in a folder; looks into each folder once."""
        if path in self.workspace.swept:
            return
        self.workspace.swept.add(path)
        before = time.time() - ABANDONED
        with suppress(OSError):
            with scanned(folder) as found:
                names = [entry.name for entry in found if TEMPORARY.fullmatch(entry.name)]
            for name in names:
                if status_in(folder, name).st_ctime < before:  # a second name of an old file has a new one
                    remove_in(folder, name)

    def _folder(self, of: WorkspacePath, path: str, *, make: bool) -> FolderHandle:
        """Opens a folder; with `make` it is made if need be, with those above it that are missing."""
        missing: list[str] = []
        while True:
            try:
                folder = self.workspace.open_itself(
                    WorkspacePath(of.root, path, path), os.O_RDONLY | DIRECTORY
                )
                break
            except FileNotFoundError:
                path, name = posixpath.split(path)
                if not make or name in ("", ".", ".."):
                    raise
                if len(missing) == MOST_MADE:
                    raise ToolError(
                        f"More than {MOST_MADE} folders of {of.shown} do not exist, so none was made."
                    ) from None
                missing.append(name)
                path = path or "."
        while missing:
            folder = self._open_or_make(folder, missing.pop())
        return folder

    def _open_or_make(self, above: FolderHandle, name: str) -> FolderHandle:
        """Opens a folder in a folder, and makes it if need be."""
        try:
            with suppress(FileExistsError):
                make_folder(above, name)
                self.folders_made.append((above, name))  # closed with the set
            return open_in(above, name, READ_FOLDER)
        finally:
            if (above, name) not in self.folders_made:
                close_handle(above)

    # Preparing: everything that may lack room or rights.

    def _prepare(self, changes: Sequence[Change]) -> None:
        steps = iter(self.steps)
        for change in changes:
            step = next(steps)
            with self._words(step):
                if isinstance(change, Write):
                    self._prepare_content(step, change.data, step)
                elif isinstance(change, Move):
                    target = next(steps)
                    if change.data is not None:
                        self._prepare_content(target, change.data, step)
                    else:
                        target.prepared = _temporary()
                        _link_or_copy(step, step.name, target.folder, target.prepared)
        if len(self.steps) > 1:
            for step in self.steps:
                if step.old is not None:
                    step.backup = _temporary()
                    with self._words(step):
                        _link_or_copy(step, step.name, step.folder, step.backup)

    def _prepare_content(self, step: FileStep, data: bytes, of: FileStep) -> None:
        """Writes a new content beside its target, with the rights of the file `of` that it is in the place of."""
        step.prepared, old = _temporary(), of.old
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOFOLLOW | CLOEXEC
        fd = open_in(step.folder, step.prepared, flags, 0o666 if old is None else 0o600)
        assert isinstance(fd, int)  # a new file
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            if old is not None:
                copy_owner_and_mode(file.fileno(), old)
                copy_attributes(of.folder, of.name, file.fileno(), stat.S_IMODE(old.st_mode))
            os.fsync(file.fileno())

    def _verify_again(self) -> None:
        for step in self.steps:
            if not step.expected:
                continue
            now = file_version(step.folder, step.name)
            if now != (None if step.old is None else FileVersion.of(step.old)):
                raise refusals.changed(step.shown)

    def _words(self, step: FileStep) -> AbstractContextManager[None]:
        return self.workspace.as_tool_error(self.workspace.place(step.shown))

    # Committing.

    def _commit(self, *, noted: bool) -> None:
        """Makes the steps, or takes back those that were made."""
        ordered = sorted(self.steps, key=lambda step: not step.prepared)
        notes = [_note(step) for step in ordered] if len(ordered) > 1 else []
        if noted and not self.journal.write(FORWARD, notes):
            self.journal.remove()
            noted = False
        done: list[FileStep] = []
        try:
            for step in ordered:
                with self._words(step):
                    self._make_step(step)
                done.append(step)
        except BaseException:
            if noted:  # if this fails and the process is killed, the earlier note has the whole set made
                self.journal.write(BACK, notes)
            for step, note in reversed(list(zip(done, notes, strict=False))):
                take_back(step.folder, note)
            if noted:
                self.journal.remove()
            raise
        for step in self.steps:
            if step.backup:
                with suppress(OSError):
                    remove_in(step.folder, step.backup)
        for step in self.steps:
            sync_folder(step.folder)
        if noted:
            self.journal.remove()

    @staticmethod
    def _make_step(step: FileStep) -> None:
        if not step.prepared:
            remove_in(step.folder, step.name)
            return
        if step.old is None:
            try:
                rename_new_in(step.folder, step.prepared, step.name)
            except FileExistsError:
                raise refusals.exists(step.shown) from None
        else:
            rename_in(step.folder, step.prepared, step.name)
        step.prepared = ""


def _note(step: FileStep) -> JournalStep:
    return JournalStep(
        posixpath.dirname(step.path) or ".",
        step.name,
        step.prepared,
        step.backup,
        file_version(step.folder, step.prepared) if step.prepared else None,
        None if step.old is None else FileVersion.of(step.old),
        file_version(step.folder, step.backup) if step.backup else None,
    )


def _temporary() -> str:
    return f".toolcrib-{secrets.token_hex(8)}.tmp"


def _link_or_copy(step: FileStep, name: str, folder: FolderHandle, new: str) -> None:
    """Gives a file a second name, or where the file system has no such names, a copy."""
    try:
        link_in(step.folder, name, folder, new)
    except OSError as problem:
        if problem.errno in (errno.ENOENT, errno.ENOSPC, errno.EDQUOT):
            raise
        source = open_in(step.folder, name, READ_FILE)
        target = open_in(folder, new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOFOLLOW | CLOEXEC, 0o600)
        assert isinstance(source, int) and isinstance(target, int)
        with os.fdopen(source, "rb") as old, os.fdopen(target, "wb") as copy:
            shutil.copyfileobj(old, copy)
            copy.flush()
            status = os.fstat(old.fileno())
            copy_owner_and_mode(copy.fileno(), status)
            copy_attributes(step.folder, name, copy.fileno(), stat.S_IMODE(status.st_mode))
            os.fsync(copy.fileno())
