# ruff: noqa: PTH112, PTH114, PTH115, PTH118, PTH119, PTH120, PTH123, PTH208 - paths are text and descriptors here
"""Git repositories that a command made or changed: what git would run for whoever stands there is taken out of them.

No mount can cover what is not there yet, and a repository anywhere in the workspace will do: git runs what its
settings and hooks name, also those of one that is merely added to another (`git add folder`), or that is bare. So
they are looked through before a command and after it. While the command runs, its changes hold.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from toolcrib.command.sandbox.folders import MOST, Folders
from toolcrib.command.sandbox.gitconfig import Line, known_lines, without_programs
from toolcrib.command.sandbox.interface import Launch

SETTINGS = ("config", "config.worktree")
LARGEST = 1 << 20  # bytes of a configuration or a hook that is read
MOST_HOOKS = 200
NO_HOOKS = (".sample", ".disabled")
MOST_SAID = 20
LONGEST = 1_000  # characters of a sentence
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
BY_HAND = "remove it before git is used there"
GONE = (
    "the command removed HEAD, objects or refs, which cannot be put back. Tell the user before anything else."
)
ODD = b"\0"  # in the place of a file's content: a link, a folder, or too large to be read


@dataclass(frozen=True, slots=True)
class Repository:
    """What git obeys of a folder: settings, where the rest of it lies (b"" for what is not there), {hook: digest}."""

    settings: tuple[bytes, ...]
    common: bytes
    hooks: dict[str, str]


@dataclass(slots=True)
class Seen:
    """Repositories by their folders, and `.git` that are no folder by their paths: what they say, where it leads."""

    found: dict[str, Repository] = field(default_factory=dict)
    pointers: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    shut: set[str] = field(default_factory=set)
    whole: bool = True


class Repositories:
    """Those of the folders that commands of one sandbox may write to."""

    def __init__(self) -> None:
        self._folders = Folders()

    def watch(self, roots: Sequence[str]) -> list[Callable[[Launch], None]]:
        """Look now; what is given back looks again, after a command, and takes out what it brought."""
        return [partial(self._disarm, roots, self._look(roots))] if roots else []

    def _look(self, roots: Sequence[str], before: Seen | None = None) -> Seen:
        seen = Seen(shut=before.shut if before else set())
        count = 0
        for path, listing in self._folders.walk(roots, seen.shut, opening=before is not None):
            count += 1
            if listing.is_git:
                seen.found[path] = _repository(path)
            if listing.dot_git == "other" and (pointer := _pointer(f"{path}/.git")) is not None:
                seen.pointers[f"{path}/.git"] = pointer
        for _, target in seen.pointers.values():
            if target not in seen.found and _inside(target, roots) and os.path.isdir(target):
                seen.found[target] = _repository(target)
        seen.whole = count < MOST
        return seen

    def _disarm(self, roots: Sequence[str], before: Seen, launch: Launch) -> None:
        after = self._look(roots, before)
        said = [
            words
            for path, pointer in after.pointers.items()
            if before.pointers.get(path) != pointer and not _inside(pointer[1], roots)
            for words in _set_aside(os.path.dirname(path), ".git", roots, "leads git out of the workspace")
        ]
        lines = {
            line
            for one in before.found.values()
            for data in one.settings
            if data != ODD
            for line in known_lines(data)
        }
        hooks = {digest for one in before.found.values() for digest in one.hooks.values()}
        for path, now in after.found.items():
            was = before.found.get(path)
            if was != now:
                said += _disarmed(
                    path, was or Repository((b"",) * len(SETTINGS), b"", {}), now, lines, hooks, roots
                )
        for root in roots:
            if f"{root}/.git" in before.found and f"{root}/.git" not in after.found:
                said.append(f"{root}/.git is no repository any more: {GONE}")
        if not after.whole:
            said.append(
                f"There are more than {MOST:,} folders here; not all were looked through for what git runs."
            )
        launch.taken_out += [_plain(words) for words in said[:MOST_SAID]]
        if len(said) > MOST_SAID:
            launch.taken_out.append(f"And {len(said) - MOST_SAID:,} more of the kind.")


def _disarmed(
    path: str, was: Repository, now: Repository, lines: set[Line], hooks: set[str], roots: Sequence[str]
) -> Iterator[str]:
    """Take out of one repository what a command brought, a sentence about each."""
    for name, old, new in zip(SETTINGS, was.settings, now.settings, strict=True):
        if new == old:
            continue
        if new == ODD:
            yield from _set_aside(path, name, roots, "could not be read as git's settings")
            continue
        kept, gone = without_programs(new, lines, lambda place: _inside(_resolved(path, place), roots))
        if gone:
            what = f"git would have obeyed {path}/{name} outside the sandbox ({', '.join(gone[:8])}): "
            before = old if old not in (b"", ODD) else None
            if not _written(path, name, kept if before is None else before, roots):
                yield f"{what}and it could not be changed: {BY_HAND}."
            else:
                yield what + ("that was taken out of it." if before is None else "it was put back as it was.")
    if now.common != was.common and now.common and not _is_worktree_of(path, now.common):
        yield from _set_aside(path, "commondir", roots, "leads git to settings elsewhere", was.common)
    for name, digest in now.hooks.items():
        if was.hooks.get(name) != digest and digest not in hooks:
            where, _, base = f"{path}/{name}".rpartition("/")
            yield from _set_aside(where, base, roots, "would have been run by git outside the sandbox")


def _plain(words: str) -> str:
    """A sentence on one line: names of folders are a command's to choose."""
    shown = "".join(char if char.isprintable() else "?" for char in words)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST // 2]}[...]{shown[-LONGEST // 2 :]}"


def _is_worktree_of(path: str, common: bytes) -> bool:
    """Whether a folder says that it belongs to the repository in whose `worktrees` it lies, as git itself writes."""
    rooms, _ = os.path.split(path)
    place = os.fsdecode(common.rstrip(b"\r\n"))
    return os.path.basename(rooms) == "worktrees" and _resolved(path, place) == os.path.realpath(
        os.path.dirname(rooms)
    )


def _repository(path: str) -> Repository:
    common = _content(f"{path}/commondir")
    return Repository(tuple(_content(f"{path}/{name}") for name in SETTINGS), common, dict(_hooks(path)))


def _hooks(path: str) -> Iterator[tuple[str, str]]:
    """What git would run of a folder of hooks; for one that is a link, the link."""
    folder = f"{path}/hooks"
    try:
        if os.path.islink(folder):
            yield "hooks", f"link {os.readlink(folder)}"
            return
        names = os.listdir(folder)
    except OSError:
        return
    names = sorted(name for name in names if not name.endswith(NO_HOOKS))
    if len(names) > MOST_HOOKS:
        yield "hooks", f"{len(names)} files"
        return
    for name in names:
        try:
            status = os.lstat(f"{folder}/{name}")
        except OSError:
            continue
        if stat.S_ISLNK(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_mode & 0o111):
            data = _content(f"{folder}/{name}")
            stamp = f"{status.st_ino} {status.st_ctime_ns}" if data == ODD else ""
            yield f"hooks/{name}", stamp or hashlib.sha256(data).hexdigest()


def _pointer(path: str) -> tuple[bytes, str] | None:
    """What a `.git` that is no folder says, and where it leads."""
    folder = os.path.dirname(path)
    try:
        if os.path.islink(path):
            link = os.readlink(path)
            # Git reads a file through it too, which nobody needs: that leads nowhere.
            return os.fsencode(f"link {link}"), os.path.realpath(path) if os.path.isdir(path) else ""
    except OSError:
        return None
    data = _content(path)
    if not data.startswith(b"gitdir: "):
        return None
    place = os.fsdecode(data.removeprefix(b"gitdir: ").rstrip(b"\r\n"))
    return data, _resolved(folder, place)


def _resolved(folder: str, place: str) -> str:
    return os.path.realpath(os.path.join(folder, place)) if "\0" not in place else ""


def _inside(path: str, roots: Sequence[str]) -> bool:
    return any(path == root or path.startswith(f"{root}/") for root in roots)


def _content(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    except OSError:
        return ODD if os.path.lexists(path) else b""
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            return ODD
        return file.read(LARGEST)


@contextmanager
def _opened(folder: str, roots: Sequence[str]) -> Generator[int]:
    """A folder below one of the roots, reached through no link: others may have commands running in it."""
    root = max((root for root in roots if _inside(folder, [root])), key=len)
    fd = os.open(root, FOLDER)
    try:
        for name in filter(None, folder[len(root) :].split("/")):
            fd, outer = os.open(name, FOLDER, dir_fd=fd), fd
            os.close(outer)
        yield fd
    finally:
        os.close(fd)


def _set_aside(folder: str, name: str, roots: Sequence[str], why: str, old: bytes = b"") -> Iterator[str]:
    """Give a file a name that git does not know, and put back what it said before."""
    try:
        with _opened(folder, roots) as fd:
            aside = next(
                other
                for other in (f"{name}.disabled", *(f"{name}.{number}.disabled" for number in range(1, 100)))
                if not _there(other, fd)
            )
            os.rename(name, aside, src_dir_fd=fd, dst_dir_fd=fd)
    except (OSError, StopIteration):
        yield f"{folder}/{name} {why}, and could not be set aside: {BY_HAND}."
        return
    if old not in (b"", ODD):
        _written(folder, name, old, roots)
    yield f"{folder}/{name} {why}: it was set aside as {aside}."


def _written(folder: str, name: str, data: bytes, roots: Sequence[str]) -> bool:
    beside = f"{name}.toolcrib-{os.getpid()}"
    try:
        with _opened(folder, roots) as fd:
            mode = 0o644
            if _there(name, fd):
                mode = stat.S_IMODE(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode) & 0o777
            new = os.open(
                beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=fd
            )
            with open(new, "wb") as file:
                file.write(data)
            os.replace(beside, name, src_dir_fd=fd, dst_dir_fd=fd)
    except OSError:
        return False
    return True


def _there(name: str, fd: int) -> bool:
    try:
        os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
