# ruff: noqa: PTH111, PTH112, PTH114, PTH115, PTH118, PTH120, PTH123, PTH207 - paths are text here
"""The filters that the settings of a repository name, which git runs when it compares files with what it has stored.

No option of git switches them off. What a user set up for all repositories (`~/.gitconfig`) is the user's own.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator
from itertools import islice

from toolcrib.folder_handles import CLOEXEC, NONBLOCK

COMPARES = {
    "git status", "git diff", "git diff --no-index", "git diff-files", "git diff-index", "git blame", "git annotate",
    "git ls-files", "git hash-object", "git apply",
}  # fmt: skip
# These match all that git reads, and more: sections of any spelling, also after another one on the same line.
FILTER = re.compile(rb'\[\s*(?:filter[\s.]\s*"?([^"\]\n]*)|(lfs[\s.]\s*"?extension\.[^"\]\n]*))', re.I)
INCLUDE = re.compile(rb"\[\s*include(?:if)?\b", re.I)
PATH = re.compile(rb"(?:^|\])[^\n\S]*path[^\n\S]*=([^\n]*)", re.I | re.M)
PLAIN = re.compile(rb'"?([^"\\;#%\0-\x1f]+)"?')
HEAD = re.compile(rb"ref:[ \t\n\r]*refs/|[0-9a-fA-F]{40}")
POINTED = re.compile(rb"[^\s\0](?:[^\r\n\0]*[^\s\0])?")
GITLINK = b"\0\0\xe0\0"  # the mode of a submodule in the index; other bytes may look the same
MAX_BYTES = 1 << 20
MAX_INDEX = 1 << 28
MAX_FILES = 200  # of settings
MAX_FOLDERS = 20_000  # in which repositories are looked for
NOT_LOOKED_AT = ("objects", "refs", "logs", "hooks", "info")
UNKNOWN = "settings that are not understood"


class NotUnderstood(Exception):
    """It cannot be told how git would read the files of a repository."""


class WithoutWorktree(NotUnderstood):
    """A folder is a repository itself, or lies in one: `.git`, or a bare one."""


def filter_of(folder: str) -> str:
    """The name of a filter that git may run for files of a folder, as its repository's settings say; "" for none."""
    try:
        for _, data in read_settings(_settings(folder)):
            if (found := FILTER.search(data)) is not None:
                return (found[1] or found[2] or b"").decode("utf-8", "replace").strip()
    except (NotUnderstood, OSError):
        return UNKNOWN
    return ""


def read_settings(paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Files of settings with what is in them, and the files that they include, whatever the condition."""
    waiting = list(islice(paths, MAX_FILES + 1))
    seen = set[str]()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        if len(seen) > MAX_FILES:
            raise NotUnderstood
        data = read_small(path, MAX_BYTES)
        yield path, data
        if INCLUDE.search(data):
            waiting += (path_in(match[1], os.path.dirname(path)) for match in PATH.finditer(data))


def path_in(value: bytes, folder: str) -> str:
    """The path that a setting has as its value, from a folder."""
    plain = PLAIN.fullmatch(value.strip(b" \t\r"))
    if plain is None:
        raise NotUnderstood
    return os.path.normpath(os.path.join(folder, os.path.expanduser(os.fsdecode(plain[1]))))


def _settings(folder: str) -> Iterator[str]:
    """The files of settings of a folder's repository, and of the repositories in it, whose state git looks at."""
    found = git_folder(folder)
    if found is None:
        return
    top, own = found
    common = pointed(f"{own}/commondir", own) or own
    yield from (f"{common}/config", f"{common}/config.worktree", f"{own}/config.worktree")
    for at, folders, names in os.walk(f"{common}/modules"):
        folders[:] = [name for name in folders if name not in NOT_LOOKED_AT]
        yield from (f"{at}/{name}" for name in names if name in ("config", "config.worktree"))
    indexes = (f"{own}/index", *glob.glob(f"{glob.escape(own)}/sharedindex.*"))
    if any(GITLINK in read_small(index, MAX_INDEX) for index in indexes):
        yield from _of_inner_repositories(top)


def _of_inner_repositories(top: str) -> Iterator[str]:
    for count, (at, folders, names) in enumerate(os.walk(top)):
        if count > MAX_FOLDERS:
            raise NotUnderstood
        if at != top and ".git" in (*folders, *names):
            own = (
                f"{at}/.git" if ".git" in folders else pointed(f"{at}/.git", at, b"gitdir: ") or f"{at}/.git"
            )
            common = pointed(f"{own}/commondir", own) or own
            yield from (f"{common}/config", f"{own}/config.worktree")
        folders[:] = [name for name in folders if name != ".git"]


def git_folder(folder: str) -> tuple[str, str] | None:
    """The worktree that a folder belongs to, and the `.git` folder that git uses there.

    Raises NotUnderstood, and WithoutWorktree in `.git` itself and in a bare repository.
    """
    at = os.path.realpath(folder)
    while True:
        place = f"{at.rstrip('/')}/.git"
        if os.path.isdir(place):
            if _is_repository(place):
                return at, place
        elif (leads := pointed(place, at, b"gitdir: ")) is not None:
            return at, leads
        if _may_be_bare(at):
            raise WithoutWorktree
        above = os.path.dirname(at)
        if above == at:
            return None
        at = above


def _may_be_bare(folder: str) -> bool:
    """Whether git may take a folder itself for a repository. `git diff` of two paths compares files there."""
    return os.path.lexists(f"{folder}/HEAD") and any(
        os.path.lexists(f"{folder}/{name}") for name in ("refs", "commondir")
    )


def _is_repository(own: str) -> bool:
    """Whether git takes a `.git` folder for a repository. If it does not, it looks in the folder above."""
    head = f"{own}/HEAD"
    if not os.path.lexists(head):
        return False
    starts = (
        b"ref: " + os.fsencode(os.readlink(head)) if os.path.islink(head) else read_small(head, MAX_BYTES)
    )
    common = pointed(f"{own}/commondir", own) or own
    parts = [f"{common}/objects", f"{common}/refs"]
    if HEAD.match(starts) and all(os.path.isdir(part) and os.access(part, os.X_OK) for part in parts):
        return True
    raise NotUnderstood  # a broken one, or one that only git understands


def pointed(file: str, base: str, before: bytes = b"") -> str | None:
    """Where a file such as `commondir` leads, from a folder; None where there is no such file."""
    text = read_small(file, MAX_BYTES)
    if not text or not text.startswith(before):
        return None
    value = text.removeprefix(before).rstrip(b"\r\n")
    if POINTED.fullmatch(value) is None:  # to git, a blank at the end belongs to the name
        raise NotUnderstood
    return os.path.normpath(os.path.join(base, os.fsdecode(value)))


def read_small(path: str, limit: int) -> bytes:
    """What is in an ordinary file; nothing where there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | NONBLOCK | CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode):
            return b""
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            raise NotUnderstood
        return file.read()
