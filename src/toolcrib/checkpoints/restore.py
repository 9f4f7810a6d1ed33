"""Carries out the steps of an undo: each file is replaced in one step, so that it is old or new at every moment.

A journal is written first. After a crash, the same steps are carried out again: what is done already is left as it is.
Folders are opened one in the other without following links, so nothing outside the workspace is written.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from toolcrib.checkpoints.content import ContentStore, DamagedCopy
from toolcrib.checkpoints.entry import FILE, FOLDER, LINK, ROOT, PathEntry, kind_of_mode
from toolcrib.checkpoints.rights import entered, open_up, open_up_root, set_mode
from toolcrib.checkpoints.undo_plan import UndoStep
from toolcrib.folder_handles import (
    BINARY,
    CLOEXEC,
    NOFOLLOW,
    READ_FILE,
    READ_FOLDER,
    FolderHandle,
    close_handle,
    copy_attributes,
    link_target,
    make_folder,
    open_in,
    remove_folder_in,
    remove_in,
    rename_in,
    status_in,
)

__all__ = ["Restorer"]

NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | NOFOLLOW | CLOEXEC | BINARY
SYNCED_ONE_BY_ONE = 200  # files; where there are more, the whole system writes out what it holds, once
CHANGED = "it changed during the undo"


class Restorer:
    """Carries out steps below a folder. `token` names the files that it makes on the way; `kept` says what stayed.

    `full` is True if a step failed because the disk is full.
    """

    def __init__(self, root: str, contents: ContentStore, token: str) -> None:
        self.kept: dict[str, str] = {}
        self.full = False
        self.aside: dict[str, str] = {}  # new names of what stood in the way and could not be saved
        self._root = root
        self._contents = contents
        self._token = token
        self._open: tuple[str, FolderHandle] | None = None
        self._syncs = True
        self._passing: list[FolderHandle] = []
        self._modes: dict[str, int] = {}  # of folders that were made writable on the way

    def run(self, steps: Sequence[UndoStep]) -> None:
        """Carry out all steps; again, if they were begun before."""
        self._syncs = len(steps) <= SYNCED_ONE_BY_ONE
        try:
            deepest_first = sorted(steps, key=lambda step: (-_depth(step.path), step.path))
            for step in deepest_first:
                self._try(step, self._clear)
            for step in reversed(deepest_first):
                self._try(step, self._make)
            for step in deepest_first:
                if step.want is not None and step.want.kind == FOLDER:
                    self._try(step, self._set_folder_mode)
            if not self._syncs and hasattr(os, "sync"):
                os.sync()
        finally:
            self._shut()
            self._give_modes_back()

    def clean(self, steps: Sequence[UndoStep]) -> None:
        """Remove the temporary files that a process which was killed left behind."""
        for folder in {step.path.rpartition("/")[0] for step in steps}:
            with suppress(OSError):
                handle = self._folder(folder)
                for name in os.listdir(handle):
                    if name.startswith(f".{self._token}-"):
                        remove_in(handle, name)
        self._shut()

    def _try(self, step: UndoStep, action: Callable[[UndoStep], None]) -> None:
        if step.path in self.kept:
            return
        try:
            action(step)
        except DamagedCopy as problem:
            self.kept[step.path] = str(problem)
        except OSError as problem:
            self.kept[step.path] = f"{problem.strerror or problem}"
            self.full = self.full or problem.errno in (errno.ENOSPC, errno.EDQUOT)

    # -- the three passes

    def _clear(self, step: UndoStep) -> None:
        """Take away what shall be gone, or what a file cannot replace in one step."""
        have, want = step.have, step.want
        if have is None or (want is not None and FOLDER not in (have.kind, want.kind) and have.saved):
            return
        if want is not None and have.kind == want.kind == FOLDER:
            return
        try:
            folder, name = self._place(step.path)
        except (FileNotFoundError, NotADirectoryError):  # its folder is gone already
            return
        now = self._now(folder, name)
        if now is None or (want is not None and self._is(folder, name, now, want)):
            return
        if not self._is(folder, name, now, have):
            self.kept[step.path] = CHANGED
            return
        if not have.saved:
            self._set_aside(step.path, folder, name)
        elif have.kind == FOLDER:
            try:
                remove_folder_in(folder, name)
            except OSError as problem:
                if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                if want is None:
                    self.kept[step.path] = "it holds files that are not covered"
                else:
                    self._set_aside(step.path, folder, name)
        else:
            remove_in(folder, name)

    def _make(self, step: UndoStep) -> None:
        """Make what shall be there."""
        want = step.want
        if want is None:
            return
        folder, name = self._place(step.path)
        now = self._now(folder, name)
        if now is not None and self._is(folder, name, now, want):
            return
        if want.kind == FOLDER:
            if now is None:
                make_folder(folder, name)
            elif kind_of_mode(now.st_mode) != FOLDER:
                self.kept[step.path] = CHANGED
            return
        expected = (
            step.have if step.have is not None and step.have.saved and step.have.kind != FOLDER else None
        )
        if now is not None and (expected is None or not self._is(folder, name, now, expected)):
            self.kept[step.path] = CHANGED
            return
        temporary = f".{self._token}-{os.urandom(4).hex()}"
        try:
            if want.kind == LINK:
                _make_link(want.content, folder, temporary)
            else:
                self._write(want, folder, temporary, name if now is not None else "")
            rename_in(folder, temporary, name)
        except BaseException:
            with suppress(OSError):
                remove_in(folder, temporary)
            raise

    def _write(self, want: PathEntry, folder: FolderHandle, name: str, replaced: str) -> None:
        fd = open_in(folder, name, NEW, 0o600)
        assert isinstance(fd, int)
        try:
            self._contents.write_to(want.content, fd)
            _give(fd, want)
            if replaced:
                copy_attributes(folder, replaced, fd, want.mode)
            if self._syncs:
                os.fsync(fd)
        finally:
            os.close(fd)

    def _set_folder_mode(self, step: UndoStep) -> None:
        assert step.want is not None
        above, _, name = step.path.rpartition("/")
        handle = self._entered(self._folder(above, writable=False), name, step.path)
        try:
            if isinstance(handle, int):
                self._modes.pop(step.path, None)
                _give(handle, step.want)
        finally:
            close_handle(handle)

    # -- places

    def _place(self, path: str) -> tuple[FolderHandle, str]:
        """The open folder of a path, which may be changed, and the name in it."""
        above, _, name = path.rpartition("/")
        return self._folder(above), name

    def _folder(self, path: str, *, writable: bool = True) -> FolderHandle:
        if self._open is not None and self._open[0] == path:
            return self._open[1]
        self._shut()
        handle, so_far = self._opened_root(), ""
        try:
            for name in path.split("/") if path else ():
                so_far = f"{so_far}/{name}" if so_far else name
                inner = self._entered(handle, name, so_far)
                close_handle(handle)
                handle = inner
            if writable:
                self._make_writable(handle, path)
        except BaseException:
            close_handle(handle)
            raise
        if writable:
            self._open = path, handle
        else:
            self._passing.append(handle)
        return handle

    def _entered(self, folder: FolderHandle, name: str, path: str) -> FolderHandle:
        try:
            return entered(open_in(folder, name, READ_FOLDER))
        except PermissionError:
            self._open_up(folder, name, path)
            return open_in(folder, name, READ_FOLDER)

    def _make_writable(self, handle: FolderHandle, path: str) -> None:
        if isinstance(handle, int):
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
            if mode & 0o300 != 0o300:
                with suppress(OSError):
                    set_mode(handle, mode | 0o700)
                    self._modes.setdefault(path or ROOT, mode)

    def _opened_root(self) -> FolderHandle:
        handle, mode = open_up_root(self._root)
        if mode is not None:
            self._modes.setdefault(ROOT, mode)
        return handle

    def _open_up(self, handle: FolderHandle, name: str, path: str) -> None:
        """Give a folder the rights to be entered; it gets its own mode back at the end."""
        mode = open_up(handle, name, 0o700)
        if mode is not None:
            self._modes.setdefault(path, mode)

    def _give_modes_back(self) -> None:
        for path in sorted(self._modes, key=_depth, reverse=True):
            if path != ROOT:
                self._give_mode_back(path)
        if ROOT in self._modes:  # last, and also if another folder was reached through it just now
            self._give_mode_back(ROOT)
        self._shut()

    def _give_mode_back(self, path: str) -> None:
        with suppress(OSError):
            above, _, name = path.rpartition("/")
            handle = open_in(self._folder(above, writable=False), name, READ_FOLDER)
            try:
                if isinstance(handle, int):
                    set_mode(handle, self._modes[path])
            finally:
                close_handle(handle)

    def _shut(self) -> None:
        while self._passing:
            close_handle(self._passing.pop())
        if self._open is not None:
            close_handle(self._open[1])
            self._open = None

    # -- what is there

    @staticmethod
    def _now(folder: FolderHandle, name: str) -> os.stat_result | None:
        try:
            return status_in(folder, name)
        except FileNotFoundError:
            return None

    def _is(self, folder: FolderHandle, name: str, now: os.stat_result, entry: PathEntry) -> bool:
        """Whether what is there now is what an entry says: by its status if that is the same, else by its content."""
        if kind_of_mode(now.st_mode) != entry.kind:
            return False
        if entry.kind == FOLDER:
            return True
        if entry.kind == LINK:
            return link_target(folder, name) == entry.content
        same = (now.st_size, now.st_mtime_ns, now.st_ino) == (entry.size, entry.mtime_ns, entry.inode)
        if entry.kind != FILE or not entry.saved:
            return same
        if stat.S_IMODE(now.st_mode) != entry.mode:
            return False
        if same and entry.changed_ns == now.st_ctime_ns:
            return True
        try:
            fd = open_in(folder, name, READ_FILE)
        except PermissionError:  # nobody could have written it without changing its mode
            return same
        if not isinstance(fd, int):
            return False
        try:
            return self._contents.digest(fd)[0] == entry.content
        finally:
            os.close(fd)

    def _set_aside(self, path: str, folder: FolderHandle, name: str) -> None:
        """Rename what cannot be saved, so that it is not lost."""
        new = f"{os.fsdecode(os.fsencode(name)[:200])}.before-undo-{self._token[-8:]}"
        rename_in(folder, name, new)
        above = path.rpartition("/")[0]
        self.aside[path] = f"{above}/{new}" if above else new


def _depth(path: str) -> int:
    return 0 if path == ROOT else path.count("/") + 1


def _give(fd: int, entry: PathEntry) -> None:
    """Give an open file or folder the owner and mode of an entry, the owner only where we may."""
    if sys.platform == "win32":
        return
    status = os.fstat(fd)
    if (status.st_uid, status.st_gid) != (entry.owner, entry.group):
        with suppress(OSError):
            os.fchown(fd, entry.owner, entry.group)
    set_mode(fd, entry.mode)


def _make_link(target: str, folder: FolderHandle, name: str) -> None:
    if isinstance(folder, int):
        os.symlink(target, name, dir_fd=folder)
    else:
        os.symlink(target, os.path.join(folder, name))
