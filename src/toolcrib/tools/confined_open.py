"""Opens paths below one directory, and nothing else. Resolution and opening are one step, so that there is no
race between a check and its use.

`real_beneath` resolves a path: it follows symlinks by their names and opens nothing for use. Rules decide on the
result, and `open_beneath` opens exactly that: a component that became a symlink meanwhile is an error.

On Linux the kernel opens (`openat2` with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS). Elsewhere, and in old sandboxes, a
walk does it: each component is opened with O_NOFOLLOW relative to the one before.

Both raise OSError; errno EXDEV says that the path leads out.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
import stat
import struct
import sys
from collections.abc import Callable
from functools import cache

from toolcrib.folder_handles import (
    CLOEXEC,
    DIRECTORY,
    NOCTTY,
    NOFOLLOW,
    NONBLOCK,
    FolderHandle,
    close_handle,
    duplicate,
    link_target,
    open_in,
    open_same,
    status_of,
)

RESOLVE_NO_SYMLINKS = 0x04
RESOLVE_BENEATH = 0x08
SYS_OPENAT2 = 437  # the same on every architecture that has it
OPEN_HOW = struct.Struct("=QQQ")
MAX_ATTEMPTS = 128  # EAGAIN: something was renamed while the kernel resolved
MAX_LINKS = 40  # as the kernel's own limit

# O_PATH needs only search permission on the folders on the way.
PATH_ONLY = getattr(os, "O_PATH", 0) if sys.platform == "linux" else 0
FOLDER = DIRECTORY | CLOEXEC | PATH_ONLY
LOOK = PATH_ONLY or NONBLOCK | NOCTTY  # to ask what something is, without opening it for use
DRIVE = re.compile(r"[A-Za-z]:/")
REFUSED_LINK = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK, getattr(errno, "EFTYPE", errno.ELOOP)}


def open_beneath(root: FolderHandle, path: str, flags: int, *, portable: bool = False) -> FolderHandle:
    """A file's descriptor or a folder's handle for `path` below the folder `root`. Any symlink raises ELOOP."""
    if not portable and isinstance(root, int) and (native := _openat2()) is not None:
        return native(root, path, flags)
    return _walk(root, path, flags)


def real_beneath(root: FolderHandle, prefixes: tuple[str, ...], path: str, *, portable: bool = False) -> str:
    """Where a path leads below a root, by its names alone: nothing is opened for use.

    `prefixes` are the absolute names of the root: absolute symlinks to what lies below them stay inside.
    Names that do not exist, or cannot be looked at, stay as they are written. OSError for a path that leads out of the
    root or in a circle.
    """
    if not portable and isinstance(root, int) and (native := _openat2()) is not None:
        try:
            os.close(native(root, path, LOOK))
            return path
        except OSError as problem:
            if problem.errno not in (errno.ELOOP, errno.EXDEV):
                if posixpath.normpath(path).split("/")[0] == "..":  # behind what does not exist
                    raise _leads_out(path) from None
                return path
    return _real(root, prefixes, path)


def below(prefixes: tuple[str, ...], path: str) -> str | None:
    """The rest of an absolute path after the root; None for a path outside it."""
    for prefix in prefixes:
        top = prefix.rstrip("/")
        if same_name(path, prefix):
            return ""
        if same_name(path[: len(top) + 1], top + "/"):
            return path[len(top) + 1 :]
    return None


def same_name(one: str, other: str) -> bool:
    """Whether two paths are the same by their names; on Windows the case of letters does not count."""
    return one == other or (sys.platform == "win32" and one.casefold() == other.casefold())


@cache
def _openat2() -> Callable[[int, str, int], int] | None:
    """Calls `openat2`; None where the kernel or a sandbox does not allow it."""
    if sys.platform != "linux":
        return None
    import ctypes

    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long

    def openat2(root: int, path: str, flags: int) -> int:
        how = OPEN_HOW.pack(flags | os.O_CLOEXEC, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)
        code = errno.EAGAIN
        for _ in range(MAX_ATTEMPTS):
            opened = int(syscall(SYS_OPENAT2, root, os.fsencode(path), how, OPEN_HOW.size))
            if opened >= 0:
                return opened
            code = ctypes.get_errno()
            if code not in (errno.EAGAIN, errno.EINTR):
                break
        raise OSError(code, os.strerror(code), path)

    try:
        here = os.open(".", FOLDER)
        try:
            os.close(openat2(here, ".", FOLDER))
        finally:
            os.close(here)
    except OSError:
        return None
    return openat2


def _walk(root: FolderHandle, path: str, flags: int) -> FolderHandle:
    todo = _components(path)
    held = [duplicate(root)]
    try:
        while todo:
            name = todo.pop()
            if name == "..":
                if len(held) == 1:
                    raise _leads_out(path)
                close_handle(held.pop())
                continue
            opened = _open_itself(name, FOLDER if todo else flags | CLOEXEC, held[-1])
            if not todo:
                return opened
            held.append(opened)
        return open_same(held[-1], flags | CLOEXEC)
    finally:
        for handle in held:
            close_handle(handle)


def _real(root: FolderHandle, prefixes: tuple[str, ...], path: str) -> str:
    todo = _components(path)
    held = [duplicate(root)]
    names: list[str] = []
    links = 0
    try:
        while todo:
            name = todo.pop()
            if name == "..":
                if not names:
                    raise _leads_out(path)
                close_handle(held.pop())
                names.pop()
                continue
            target = link_target(held[-1], name)
            if target is None:
                names.append(name)
                try:
                    held.append(open_in(held[-1], name, FOLDER | NOFOLLOW))
                except OSError:
                    if ".." in todo:  # behind what is no folder
                        raise
                    return "/".join([*names, *reversed(todo)])
                continue
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if _is_absolute(target):
                inside = below(prefixes, target)
                if inside is None:
                    raise _leads_out(path)
                target = inside
                names.clear()
                while len(held) > 1:
                    close_handle(held.pop())
            todo += _components(target)
        return "/".join(names) or "."
    finally:
        for handle in held:
            close_handle(handle)


def _open_itself(name: str, flags: int, folder: FolderHandle) -> FolderHandle:
    """Opens a name in a folder; raises ELOOP for a symlink, also where O_PATH would open the link itself."""
    try:
        opened = open_in(folder, name, flags | NOFOLLOW)
    except OSError as problem:
        if problem.errno in REFUSED_LINK and link_target(folder, name) is not None:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise
    if flags & PATH_ONLY and stat.S_ISLNK(status_of(opened).st_mode):
        close_handle(opened)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    return opened


def _components(path: str) -> list[str]:
    """The parts of a path, last first, so that the next one is popped."""
    return [part for part in path.split("/") if part not in ("", ".")][::-1]


def _is_absolute(target: str) -> bool:
    return target.startswith("/") or DRIVE.match(target) is not None


def _leads_out(path: str) -> OSError:
    return OSError(errno.EXDEV, "leads out of the root", path)
