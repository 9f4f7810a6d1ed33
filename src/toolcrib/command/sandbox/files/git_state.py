"""What git obeys of the repositories in some folders, as it is at one moment: settings, hooks, stopped operations."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterator
from typing import TypeVar

from toolcrib.command.sandbox.files.folder_walk import give_rights_to_list
from toolcrib.command.sandbox.files.git_config import ConfigLine, known_lines
from toolcrib.command.sandbox.files.git_files import LEADS_TO, content, place_named
from toolcrib.command.sandbox.files.git_unfinished import UNFINISHED
from toolcrib.command.sandbox.files.paths import within, within_any
from toolcrib.dataclass import dataclass, field, replace

SETTINGS = ("config", "config.worktree")
REMOTES = ("remotes", "branches")
MAX_HOOKS = 200
NO_HOOKS = (".sample", ".disabled")
UNREADABLE = b"\0"  # stands for the content of a link, of a folder and of a file that is too large
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class GitRepository:
    """What git obeys of a repository: its settings files, its `commondir` (b"" for a missing file), {hook: digest}.

    `unfinished` is what git left of stopped operations, in the order of `UNFINISHED`. The old files of `REMOTES` count
    as hooks: what such a file names may be a program (`helper::address`).
    """

    settings: tuple[bytes, ...]
    common: bytes
    hooks: dict[str, str]
    unfinished: tuple[bytes, ...] = (b"",) * len(UNFINISHED)

    def with_file(self, name: str, data: bytes) -> GitRepository:
        """A copy in which one of the files has another content."""
        if name == "commondir":
            return replace(self, common=data)
        if name.partition("/")[0] in ("hooks", *REMOTES):
            return replace(self, hooks={**self.hooks, name: _digest(data)})
        return replace(
            self,
            settings=tuple(
                data if file == name else was for file, was in zip(SETTINGS, self.settings, strict=True)
            ),
            unfinished=tuple(
                data if file == name else was for file, was in zip(UNFINISHED, self.unfinished, strict=True)
            ),
        )

    def without_changes_in(self, kept: Collection[str], folder: str, before: GitRepository) -> GitRepository:
        """A copy without the changes of files in `kept`, which the command could not change: somebody else did."""

        def own(name: str) -> bool:
            return not within_any(f"{folder}/{name}", kept)

        return replace(
            self,
            settings=tuple(
                now if own(name) else was
                for name, was, now in zip(SETTINGS, before.settings, self.settings, strict=True)
            ),
            common=self.common if own("commondir") else before.common,
            hooks={name: digest for name, digest in self.hooks.items() if own(name)},
        )


NOTHING = GitRepository((b"",) * len(SETTINGS), b"", {})


@dataclass(frozen=True, slots=True)
class KnownContents:
    """What stands in some of several repositories: lines of settings, digests of hooks, lines of stopped operations.

    What a command only copied from one repository to another adds nothing to it.
    """

    lines: set[ConfigLine]
    hooks: set[str]
    unfinished: set[bytes]


@dataclass
class RepositoryScan:
    """All repositories by their folders, and every `.git` that is no folder by its path: content, and where it leads.

    `shut` are folders that could not be listed before the command; `whole` is False where not all were scanned.
    `obeyed` are paths of what other programs than git execute or obey.
    """

    found: dict[str, GitRepository] = field(default_factory=dict)
    pointers: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    shut: set[str] = field(default_factory=set)
    whole: bool = True
    obeyed: list[str] = field(default_factory=list)

    def contents(self) -> KnownContents:
        """What the repositories hold together."""
        return KnownContents(
            {
                line
                for one in self.found.values()
                for data in one.settings
                if data != UNREADABLE
                for line in known_lines(data)
            },
            {digest for one in self.found.values() for digest in one.hooks.values()},
            {
                line.strip()
                for one in self.found.values()
                for data in one.unfinished
                for line in data.split(b"\n")
            },
        )

    def accept(self, path: str, data: bytes | None) -> None:
        """Records what a tool has just written to a file (None: it removed it) as the state before the command."""
        for folder, repository in self.found.items():
            if within(path, folder) and path != folder:
                self.found[folder] = repository.with_file(path[len(folder) + 1 :], data or b"")
        if (
            os.path.basename(path) == ".git"
            and (led := _led_to(os.path.dirname(path), data or b"")) is not None
        ):
            self.pointers[path] = led

    def correct(self, before: RepositoryScan, after: RepositoryScan) -> None:
        """Takes out what an earlier command changed between its two scans. That was not there before any command."""
        _correct(self.found, before.found, after.found)
        _correct(self.pointers, before.pointers, after.pointers)


def _correct(known: dict[str, Found], before: dict[str, Found], after: dict[str, Found]) -> None:
    for path, now in after.items():
        if path in known and before.get(path) != now:
            if path in before:
                known[path] = before[path]
            else:
                del known[path]


def repository_at(path: str, opening: bool, shut: Collection[str]) -> GitRepository:
    """The repository in a folder. `opening` and `shut` are as for `_files_of`."""
    common = _read(f"{path}/commondir")
    settings = tuple(_read(f"{path}/{name}") for name in SETTINGS)
    unfinished = tuple(_unfinished(path, file) for file in UNFINISHED)
    return GitRepository(settings, common, dict(_hooks(path, opening, shut)), unfinished)


def _unfinished(path: str, file: str) -> bytes:
    data = _read(f"{path}/{file}")
    return UNREADABLE if data and os.path.islink(os.path.dirname(f"{path}/{file}")) else data


def _hooks(path: str, opening: bool, shut: Collection[str]) -> Iterator[tuple[str, str]]:
    """Each executable hook and each old file of a remote, with its digest."""
    for kind in ("hooks", *REMOTES):
        yield from _files_of(path, kind, opening, shut)


def _files_of(path: str, kind: str, opening: bool, shut: Collection[str]) -> Iterator[tuple[str, str]]:
    """The files of one folder. If that is a link or cannot be listed, it stands for all of them.

    With `opening`, a folder that cannot be listed is given the rights for that: git would run what lies in it. One
    that was shut before and is still passed by nobody stays so.
    """
    folder = f"{path}/{kind}"
    try:
        if os.path.islink(folder):
            yield kind, f"link {os.readlink(folder)}"
            return
        names = _names(folder, opening and not (folder in shut and _passed_by_nobody(folder)))
    except PermissionError:
        yield kind, "a folder that cannot be listed"
        return
    except OSError:
        return
    names = sorted(name for name in names if not name.endswith(NO_HOOKS))
    if len(names) > MAX_HOOKS:
        yield kind, f"{len(names)} files"
        return
    for name in names:
        try:
            status = os.lstat(f"{folder}/{name}")
        except OSError:
            continue
        runs = kind in REMOTES or status.st_mode & 0o111
        if stat.S_ISLNK(status.st_mode) or (stat.S_ISREG(status.st_mode) and runs):
            data = _read(f"{folder}/{name}")
            stamp = f"{status.st_ino} {status.st_ctime_ns}" if data == UNREADABLE else ""
            yield f"{kind}/{name}", stamp or _digest(data)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _names(folder: str, opening: bool) -> list[str]:
    try:
        return os.listdir(folder)
    except PermissionError:
        if not opening or not give_rights_to_list(folder):
            raise
    return os.listdir(folder)


def _passed_by_nobody(folder: str) -> bool:
    return not os.lstat(folder).st_mode & 0o111


def pointer_at(path: str) -> tuple[bytes, str] | None:
    """The content of a `.git` that is no folder, and the folder that it leads to."""
    folder = os.path.dirname(path)
    try:
        if os.path.islink(path):
            link = os.readlink(path)
            # Git would also follow a link to a file, which nobody needs, so that counts as leading nowhere.
            return os.fsencode(f"link {link}"), os.path.realpath(path) if os.path.isdir(path) else ""
    except OSError:
        return None
    return _led_to(folder, _read(path))


def _led_to(folder: str, data: bytes) -> tuple[bytes, str] | None:
    """The content of a file `.git` in a folder, and the folder that it leads to; None if it leads to none."""
    if not data.startswith(LEADS_TO):
        return None
    return data, place_named(folder, data.removeprefix(LEADS_TO))


def _read(path: str) -> bytes:
    data = content(path, behind_links=False)
    return UNREADABLE if data is None else data
