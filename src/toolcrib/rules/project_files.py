"""Reads files of a project that take effect only once a person trusted their content; links are not followed.

Each is read once, so that the same bytes are shown, hashed and used.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from toolcrib.dataclass import dataclass, field
from toolcrib.errors import ToolcribError
from toolcrib.folder_handles import (
    DIRECTORY,
    NOFOLLOW,
    FolderHandle,
    close_handle,
    open_in,
    open_root,
    scanned,
)
from toolcrib.private_files import OPEN_FLAGS
from toolcrib.text_file import text_of

__all__ = ["FOLDER", "ProjectFile", "TrustError", "read_project_file", "read_project_folder"]

FOLDER = ".toolcrib"
MAX_BYTES = 64_000  # of one file, that a person can be expected to have read
MAX_FILES = 200  # of one folder
MAX_DEPTH = 5
AS_FOLDER = os.O_RDONLY | DIRECTORY | NOFOLLOW | OPEN_FLAGS


class TrustError(ToolcribError):
    """A project's file that cannot be used: a link, a special file, too large, or not what it should be."""


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A file of a project: the project's path, the file's path in it, and its content."""

    project: str
    path: str
    data: bytes = field(repr=False)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def text(self) -> str:
        """The content as text. Raises TrustError where it is none."""
        try:
            return text_of(self.data)
        except ValueError as problem:
            raise TrustError(f"{self.path}: {problem}") from None


def read_project_file(project: str | Path, path: str) -> ProjectFile | None:
    """A file of a project; None if there is none. Raises TrustError."""
    root = os.path.realpath(project)
    *folders, name = path.split("/")
    handle = _opened_folder(root, folders)
    if handle is None:
        return None
    try:
        data = _read(handle, name, path)
    finally:
        close_handle(handle)
    return None if data is None else ProjectFile(root, path, data)


def read_project_folder(
    project: str | Path, folder: str, wanted: Callable[[str], bool]
) -> tuple[list[ProjectFile], list[TrustError]]:
    """The wanted files in a folder of a project and below, by their names, and what is wrong with others of them.

    Raises TrustError for a folder that is none, or that holds too much.
    """
    root = os.path.realpath(project)
    found: list[ProjectFile] = []
    problems: list[TrustError] = []
    handle = _opened_folder(root, folder.split("/"))
    for path, inside, name in () if handle is None else _walk(handle, folder, wanted, 0):
        if len(found) + len(problems) == MAX_FILES:
            raise TrustError(
                f"{folder} has more than {MAX_FILES} files, which nobody reads before trusting them"
            )
        try:
            data = _read(inside, name, path)
        except TrustError as problem:
            problems.append(problem)
        else:
            found += [] if data is None else [ProjectFile(root, path, data)]
    return found, problems


def _walk(
    handle: FolderHandle, path: str, wanted: Callable[[str], bool], depth: int
) -> Iterator[tuple[str, FolderHandle, str]]:
    """The wanted names below a folder, sorted, each with its open folder. Closes the handle."""
    try:
        with scanned(handle) as entries:
            kinds = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        for name, is_folder in kinds:
            inner = f"{path}/{name}"
            if is_folder and name != "__pycache__":
                if depth == MAX_DEPTH:
                    raise TrustError(f"{inner} lies too deep to be trusted")
                yield from _walk(open_in(handle, name, AS_FOLDER), inner, wanted, depth + 1)
            elif not is_folder and wanted(name):
                yield inner, handle, name
    except OSError as problem:
        raise TrustError(f"{path} cannot be read: {problem.strerror}") from None
    finally:
        close_handle(handle)


def _opened_folder(root: str, folders: list[str]) -> FolderHandle | None:
    """A folder of a project, opened without following links; None if there is none. Raises TrustError."""
    try:
        handle = open_root(root)
    except OSError as problem:
        raise TrustError(f"{root} cannot be read: {problem.strerror}") from None
    for number, name in enumerate(folders, 1):
        try:
            inner = open_in(handle, name, AS_FOLDER)
        except FileNotFoundError:
            return None
        except OSError as problem:
            shown = "/".join(folders[:number])
            raise TrustError(f"{shown} is no ordinary folder: {problem.strerror}") from None
        finally:
            close_handle(handle)
        handle = inner
    return handle


def _read(folder: FolderHandle, name: str, path: str) -> bytes | None:
    """The bytes of a file, which must be an ordinary file with one name; None if there is none."""
    try:
        fd = open_in(folder, name, os.O_RDONLY | NOFOLLOW | OPEN_FLAGS)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise TrustError(f"{path} is no ordinary file: {problem.strerror}") from None
    if not isinstance(fd, int):
        raise TrustError(f"{path} is no ordinary file")
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            from toolcrib.command.sandbox.files.placeholders import may_be_placeholder

            if may_be_placeholder(status):
                return None  # a command runs there now, maybe of another process
            raise TrustError(f"{path} is no ordinary file")
        if status.st_nlink > 1:
            raise TrustError(f"{path} has another name too (a hard link)")
        with open(fd, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    finally:
        os.close(fd)
    if len(data) > MAX_BYTES:
        raise TrustError(f"{path} has more than {MAX_BYTES:,} bytes, which nobody reads before trusting them")
    return data
