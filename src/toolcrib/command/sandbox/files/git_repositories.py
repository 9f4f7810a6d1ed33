"""Removes from git repositories, after a command, what the command added and git would run for whoever works there.

Git runs what a repository's settings and hooks name, also those of a repository that is bare or merely added to another
one (`git add folder`). No mount can cover what does not exist yet, and any folder of the workspace can become a
repository. So all repositories are read before a command and again after it. While the command runs, its changes hold.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

from toolcrib.command.sandbox.files.folder_walk import FolderListings, FolderWalk, give_rights_to_list
from toolcrib.command.sandbox.files.git_config import ConfigLine, known_lines, without_programs
from toolcrib.command.sandbox.files.git_files import LEADS_TO, content, place_named
from toolcrib.command.sandbox.files.git_unfinished import UNFINISHED
from toolcrib.command.sandbox.files.nested_executed_files import NestedFiles
from toolcrib.command.sandbox.files.paths import innermost, within, within_any
from toolcrib.command.sandbox.files.running_records import RunningRecords
from toolcrib.command.sandbox.interface import Launch
from toolcrib.dataclass import dataclass, field, replace
from toolcrib.folder_handles import READ_FOLDER

SETTINGS = ("config", "config.worktree")
REMOTES = ("remotes", "branches")
MAX_HOOKS = 200
NO_HOOKS = (".sample", ".disabled")
MAX_SENTENCES = 20
MAX_LENGTH = 1_000  # characters of a sentence
REMOVE_BY_HAND = "remove it before git is used there"
HISTORY_LOST = (
    "the command removed HEAD, objects or refs, which cannot be put back. Tell the user before anything else."
)
Found = TypeVar("Found")
UNREADABLE = b"\0"  # stands for the content of a link, of a folder and of a file that is too large


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


class GitRepositories:
    """The repositories in the folders that commands of one sandbox may write to.

    `running` are the records of commands that run in the same folders.
    """

    def __init__(self, listings: FolderListings | None = None, running: RunningRecords | None = None) -> None:
        self.walk = FolderWalk(listings)
        self.running = RunningRecords() if running is None else running

    def watch(
        self, roots: Sequence[str], workspace: str = "", fixed: Collection[str] = ()
    ) -> list[Callable[[Launch], None]]:
        """Scans now; returns the steps that scan again after the command and remove what it added.

        What other programs execute is put back below the top of the workspace, if one is named. `fixed` are folders
        that the command cannot change, so they are not scanned.
        """
        if not roots:
            return []
        with self.running.lock:
            before = self._scan(roots, fixed=fixed)
            self.running.add(before)
            nested = None
            if workspace in roots:
                given = [root for root in roots if root != workspace and within(root, workspace)]
                nested = NestedFiles(workspace, before.obeyed, self.walk.folders, given, self.running)

        def at_end(launch: Launch) -> None:
            with self.running.lock:
                self._clean_up(roots, before, nested, fixed, launch)

        return [at_end]

    def named(self, root: str, names: frozenset[str]) -> tuple[list[str], bool]:
        """The folders below a root with one of the names, and every `.git` that is no folder; whether it saw all."""
        found: list[str] = []
        for path, listing in self.walk.walk([root], set(), opening=False):
            if os.path.basename(path) in names:
                found.append(path)
            if listing.dot_git == "other":
                found.append(f"{path}/.git")
        return found, self.walk.whole

    def _scan(
        self, roots: Sequence[str], before: RepositoryScan | None = None, fixed: Collection[str] = ()
    ) -> RepositoryScan:
        seen = RepositoryScan(shut=before.shut if before else set())
        opening = before is not None
        for path, listing in self.walk.walk(roots, seen.shut, opening=opening, fixed=fixed):
            seen.obeyed += listing.obeyed
            if listing.is_git:
                seen.found[path] = _repository(path, opening, seen.shut)
            if listing.dot_git == "other" and (pointer := _pointer(f"{path}/.git")) is not None:
                seen.pointers[f"{path}/.git"] = pointer
        for _, target in seen.pointers.values():
            if target not in seen.found and within_any(target, roots) and os.path.isdir(target):
                seen.found[target] = _repository(target, opening, seen.shut)
        seen.whole = self.walk.whole
        return seen

    def _clean_up(
        self,
        roots: Sequence[str],
        before: RepositoryScan,
        nested: NestedFiles | None,
        fixed: Collection[str],
        launch: Launch,
    ) -> None:
        after = self._scan(roots, before, fixed)
        for later in self.running.later_than(before):
            later.correct(before, after)
        if nested is not None:
            nested.restore(after.obeyed, launch)
        said = [
            words
            for path, pointer in after.pointers.items()
            if before.pointers.get(path) != pointer
            and not within_any(pointer[1], roots)
            and not within_any(path, launch.kept_by_mounts)
            for words in _disable(os.path.dirname(path), ".git", roots, "leads git out of the workspace")
        ]
        lines = {
            line
            for one in before.found.values()
            for data in one.settings
            if data != UNREADABLE
            for line in known_lines(data)
        }
        hooks = {digest for one in before.found.values() for digest in one.hooks.values()}
        unfinished = {
            line.strip()
            for one in before.found.values()
            for data in one.unfinished
            for line in data.split(b"\n")
        }
        for path, now in after.found.items():
            was = before.found.get(path) or NOTHING
            if was != now:
                now = now.without_changes_in(launch.kept_by_mounts, path, was)
                said += _clean(path, was, now, lines, hooks, unfinished, roots)
        for root in roots:
            if f"{root}/.git" in before.found and f"{root}/.git" not in after.found:
                said.append(f"{root}/.git is no repository any more: {HISTORY_LOST}")
        if not after.whole:
            said.append(
                "There are too many or too deep folders here; not all were looked through for what git runs."
            )
        launch.git_changes += [_printable(words) for words in said[:MAX_SENTENCES]]
        if len(said) > MAX_SENTENCES:
            launch.git_changes.append(f"And {len(said) - MAX_SENTENCES:,} more of the kind.")


def _clean(
    path: str,
    was: GitRepository,
    now: GitRepository,
    lines: set[ConfigLine],
    hooks: set[str],
    unfinished: set[bytes],
    roots: Sequence[str],
) -> Iterator[str]:
    """Removes from one repository what a command added; yields a sentence about each removal."""
    for name, old, new in zip(SETTINGS, was.settings, now.settings, strict=True):
        if new == old:
            continue
        if new == UNREADABLE:
            yield from _disable(path, name, roots, "could not be read as git's settings")
            continue
        kept, gone = without_programs(
            new, lines, lambda place: within_any(place_named(path, os.fsencode(place)), roots)
        )
        if gone:
            what = f"git would have obeyed {path}/{name} outside the sandbox ({', '.join(gone[:8])}): "
            before = old if old not in (b"", UNREADABLE) else None
            # Somebody else may have changed it meanwhile, too: what is replaced stays beside it.
            copied = before is not None and _write(path, f"{name}.disabled", new, roots, mode_of=name)
            if not _write(path, name, kept if before is None else before, roots):
                yield f"{what}and it could not be changed: {REMOVE_BY_HAND}."
            elif before is None:
                yield f"{what}that was taken out of it."
            else:
                where = f"; what it said is in {name}.disabled" if copied else ""
                yield f"{what}it was put back as it was{where}."
    if now.common != was.common and now.common and not _is_worktree_of(path, now.common):
        yield from _disable(path, "commondir", roots, "leads git to settings elsewhere", was.common)
    for file, old, new in zip(UNFINISHED, was.unfinished, now.unfinished, strict=True):
        if new != old:
            yield from _clean_unfinished(path, file, new, unfinished, roots)
    for name, digest in now.hooks.items():
        if was.hooks.get(name) != digest and digest not in hooks:
            where, _, base = f"{path}/{name}".rpartition("/")
            what = "obeyed" if name.partition("/")[0] in REMOTES else "run"
            yield from _disable(where, base, roots, f"would have been {what} by git outside the sandbox")


def _clean_unfinished(
    path: str, file: str, data: bytes, known: set[bytes], roots: Sequence[str]
) -> Iterator[str]:
    """Takes out of a stopped operation what would run a program when somebody goes on with it."""
    folder, _, name = file.partition("/")
    if data == UNREADABLE:
        yield from _disable(path, folder, roots, "could not be read as what is left of a stopped operation")
        return
    kept = UNFINISHED[file](data, known)
    if kept != data:
        what = f"git would have run a program that {path}/{file} names outside the sandbox: "
        done = _write(f"{path}/{folder}", name, kept, roots)
        yield what + (
            "that was taken out of it." if done else f"and it could not be changed: {REMOVE_BY_HAND}."
        )


def _printable(words: str) -> str:
    """A sentence on one line. It may contain names of folders, which a command chooses."""
    shown = "".join(char if char.isprintable() else "?" for char in words)
    return (
        shown if len(shown) <= MAX_LENGTH else f"{shown[: MAX_LENGTH // 2]}[...]{shown[-MAX_LENGTH // 2 :]}"
    )


def _is_worktree_of(path: str, common: bytes) -> bool:
    """Whether a `commondir` names the repository in whose `worktrees` the folder lies, which is what git writes."""
    parent, _ = os.path.split(path)
    return os.path.basename(parent) == "worktrees" and place_named(path, common) == os.path.realpath(
        os.path.dirname(parent)
    )


def _repository(path: str, opening: bool, shut: Collection[str]) -> GitRepository:
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


def _pointer(path: str) -> tuple[bytes, str] | None:
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


@contextmanager
def _open_folder(folder: str, roots: Sequence[str]) -> Generator[int]:
    """Opens a folder below one of the roots, to change it, with the rights that a command may have taken from it.

    No link is followed: other commands may be changing it now.
    """
    root = innermost(folder, roots)
    fd = os.open(root, READ_FOLDER)
    try:
        for name in filter(None, folder[len(root) :].split("/")):
            fd, outer = os.open(name, READ_FOLDER, dir_fd=fd), fd
            os.close(outer)
        mode = stat.S_IMODE(os.fstat(fd).st_mode)
        if mode & 0o700 != 0o700:
            os.fchmod(fd, mode | 0o700)
        yield fd
    finally:
        os.close(fd)


def _disable(folder: str, name: str, roots: Sequence[str], why: str, old: bytes = b"") -> Iterator[str]:
    """Renames a file to a name that git ignores, and restores its previous content under the old name."""
    try:
        with _open_folder(folder, roots) as fd:
            aside = next(
                other
                for other in (f"{name}.disabled", *(f"{name}.{number}.disabled" for number in range(1, 100)))
                if not _exists(other, fd)
            )
            os.rename(name, aside, src_dir_fd=fd, dst_dir_fd=fd)
    except (OSError, StopIteration):
        yield f"{folder}/{name} {why}, and could not be set aside: {REMOVE_BY_HAND}."
        return
    if old not in (b"", UNREADABLE):
        _write(folder, name, old, roots)
    yield f"{folder}/{name} {why}: it was set aside as {aside}."


def _write(folder: str, name: str, data: bytes, roots: Sequence[str], *, mode_of: str = "") -> bool:
    """Replaces a file, which keeps its mode, or gets that of the file `mode_of`; returns whether that worked."""
    like = mode_of or name
    beside = f"{name}.toolcrib-{secrets.token_hex(8)}"
    try:
        with _open_folder(folder, roots) as fd:
            mode = 0o644
            if _exists(like, fd):
                mode = stat.S_IMODE(os.stat(like, dir_fd=fd, follow_symlinks=False).st_mode) & 0o777
            new = os.open(
                beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=fd
            )
            with open(new, "wb") as file:
                file.write(data)
            os.replace(beside, name, src_dir_fd=fd, dst_dir_fd=fd)
    except OSError:
        with suppress(OSError), _open_folder(folder, roots) as fd:
            os.unlink(beside, dir_fd=fd)
        return False
    return True


def _exists(name: str, fd: int) -> bool:
    try:
        os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
