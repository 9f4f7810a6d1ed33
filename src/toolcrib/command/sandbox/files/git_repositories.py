"""Removes from git repositories, after a command, what the command added and git would run for whoever works there.

Git runs what a repository's settings and hooks name, also those of a repository that is bare or merely added to another
one (`git add folder`). No mount can cover what does not exist yet, and any folder of the workspace can become a
repository. So all repositories are read before a command and again after it. While the command runs, its changes hold.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress

from toolcrib.command.sandbox.files.folder_walk import FolderListings, FolderWalk
from toolcrib.command.sandbox.files.git_config import without_programs
from toolcrib.command.sandbox.files.git_files import place_named
from toolcrib.command.sandbox.files.git_state import (
    NOTHING,
    REMOTES,
    SETTINGS,
    UNREADABLE,
    GitRepository,
    KnownContents,
    RepositoryScan,
    pointer_at,
    repository_at,
)
from toolcrib.command.sandbox.files.git_unfinished import UNFINISHED
from toolcrib.command.sandbox.files.nested_executed_files import NestedFiles
from toolcrib.command.sandbox.files.paths import innermost, within, within_any
from toolcrib.command.sandbox.files.running_records import RunningRecords
from toolcrib.command.sandbox.interface import Launch
from toolcrib.folder_handles import READ_FOLDER

MAX_SENTENCES = 20
MAX_LENGTH = 1_000  # characters of a sentence
REMOVE_BY_HAND = "remove it before git is used there"
HISTORY_LOST = (
    "the command removed HEAD, objects or refs, which cannot be put back. Tell the user before anything else."
)


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
                seen.found[path] = repository_at(path, opening, seen.shut)
            if listing.dot_git == "other" and (pointer := pointer_at(f"{path}/.git")) is not None:
                seen.pointers[f"{path}/.git"] = pointer
        for _, target in seen.pointers.values():
            if target not in seen.found and within_any(target, roots) and os.path.isdir(target):
                seen.found[target] = repository_at(target, opening, seen.shut)
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
        known = before.contents()
        for path, now in after.found.items():
            was = before.found.get(path) or NOTHING
            if was != now:
                now = now.without_changes_in(launch.kept_by_mounts, path, was)
                said += _clean(path, was, now, known, roots)
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
    path: str, was: GitRepository, now: GitRepository, known: KnownContents, roots: Sequence[str]
) -> Iterator[str]:
    """Removes from one repository what a command added; yields a sentence about each removal."""
    for name, old, new in zip(SETTINGS, was.settings, now.settings, strict=True):
        if new == old:
            continue
        if new == UNREADABLE:
            yield from _disable(path, name, roots, "could not be read as git's settings")
            continue
        kept, gone = without_programs(
            new, known.lines, lambda place: within_any(place_named(path, os.fsencode(place)), roots)
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
            yield from _clean_unfinished(path, file, new, known.unfinished, roots)
    for name, digest in now.hooks.items():
        if was.hooks.get(name) != digest and digest not in known.hooks:
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
