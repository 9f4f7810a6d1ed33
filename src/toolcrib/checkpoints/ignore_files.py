"""The ignore files of a workspace, read in folders that a scan has open; each is read again only if it changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection

from toolcrib.folder_handles import (
    READ_FILE,
    READ_FOLDER,
    FolderHandle,
    close_handle,
    open_in,
    open_root,
    status_in,
)
from toolcrib.ignore_rules import (
    MAX_IGNORE_FILE,
    MAX_LOOKED_AT,
    REPOSITORY,
    RULES_IN,
    IgnoreFile,
    IgnoreRules,
    read_ignore_file,
)

__all__ = ["IgnoreFiles"]


class IgnoreFiles:
    """The ignore files of one workspace."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: dict[tuple[str, str], tuple[tuple[int, ...], list[IgnoreFile]]] = {}

    def rules_of(self, parts: list[str]) -> list[IgnoreRules]:
        """The rules of the workspace, and of each folder that a path lies in, as far as these folders exist."""
        found: list[IgnoreRules] = []
        try:
            handle = open_root(self._root)
        except PermissionError:
            return [IgnoreRules()] * len(parts)
        try:
            for depth in range(len(parts)):
                if depth:
                    inner = open_in(handle, parts[depth - 1], READ_FOLDER)
                    close_handle(handle)
                    handle = inner
                above = found[-1] if found else IgnoreRules()
                found.append(self.rules_in("/".join(parts[:depth]), handle, RULES_IN, above))
        except OSError:
            pass
        finally:
            close_handle(handle)
        return found + [found[-1]] * (len(parts) - len(found))

    def rules_in(
        self, folder: str, handle: FolderHandle, names: Collection[str], above: IgnoreRules
    ) -> IgnoreRules:
        """The rules of an open folder, in which there may be files of these names."""
        if RULES_IN.isdisjoint(names):
            return above
        return above.within(
            names, lambda name: self._read(folder, handle, name), lambda: _exists(handle, REPOSITORY)
        )

    def _read(self, folder: str, handle: FolderHandle, name: str) -> list[IgnoreFile]:
        """The rules in a file of an open folder; read again only if it changed."""
        try:
            fd = _open_below(handle, name)
        except OSError:
            return []
        try:
            if not isinstance(fd, int):
                return []
            status = os.fstat(fd)
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            known = self._known.get((folder, name))
            if known is None or known[0] != stamp:
                counts = stat.S_ISREG(status.st_mode) and status.st_size <= MAX_IGNORE_FILE
                data = os.read(fd, MAX_LOOKED_AT + 1) if counts else b""
                known = self._known[folder, name] = (stamp, read_ignore_file(folder or ".", data))
            return known[1]
        finally:
            close_handle(fd)


def _exists(folder: FolderHandle, name: str) -> bool:
    try:
        status_in(folder, name)
    except OSError:
        return False
    return True


def _open_below(folder: FolderHandle, path: str) -> FolderHandle:
    """Open a file below a folder without following a link. Raises OSError."""
    above, _, name = path.rpartition("/")
    if not above:
        return open_in(folder, name, READ_FILE)
    inner = _open_below(folder, above)
    try:
        return open_in(inner, name, READ_FILE)
    finally:
        close_handle(inner)
