"""Walks the folders of a workspace again and again, and lists only those anew in which something was added or removed.

Those are known by their ctime, which no program can set.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence

from toolcrib.command.sandbox.files.executed_files import PROTECTED, PUT_BACK
from toolcrib.dataclass import dataclass

MAX_FOLDERS = 100_000
# The kernel goes down each path from its beginning: in a chain of folders, the work grows with the square of its depth.
MAX_CHARACTERS = 25_000_000  # of all paths together
# Nanoseconds. A folder that changed so shortly before its listing may change again within the same tick of the clock.
RECENT = 50_000_000
# Folders of a `.git` in which git looks for no repository.
GIT_DATA = ("objects", "refs", "logs")

# Names, also below the top of a workspace, of what other programs execute or obey. A submodule is git's own affair.
OBEYED = {name for name in (*PROTECTED, *PUT_BACK) if "/" not in name} - {"HEAD", ".gitmodules"}

HAS_O_PATH = hasattr(os, "O_PATH")
IGNORES_CASE = sys.platform == "darwin"


@dataclass(frozen=True, slots=True)
class FolderListing:
    """A folder's inner folders, whether it has a `.git`, and whether git takes the folder itself for a repository."""

    stamp: tuple[int, int, int]
    folders: tuple[str, ...]
    dot_git: str  # "folder", "other" (a file or a link), or ""
    is_git: bool
    obeyed: tuple[str, ...] = ()  # paths in it of what other programs execute or obey
    of_git: tuple[str, ...] = ()  # its inner folders in which git stores its data
    leads_into_git: bool = False  # whether a link in it names a `.git`


class FolderWalk:
    """Remembers the listings of the last walk."""

    def __init__(self) -> None:
        self._known: dict[str, FolderListing] = {}
        self.whole = True  # whether the last walk came to its end within the limits

    @property
    def folders(self) -> Collection[str]:
        """The folders of the last walk, which a later walk leaves as they are."""
        return self._known.keys()

    def walk(
        self, roots: Sequence[str], shut: set[str], *, opening: bool
    ) -> Iterator[tuple[str, FolderListing]]:
        """Yields every folder below the roots, outer ones first, within the limits above; follows no link.

        The folders in which git stores its data come only where a link leads into a `.git`, and so maybe to a
        repository among them.

        Folders that cannot be listed are added to `shut`. With `opening`, a folder that is not in `shut` yet (a command
        took the rights away) is given back the right to be listed.
        """
        known, seen = self._known, dict[str, FolderListing]()
        todo = deque(roots)
        of_git: list[str] = []
        leads_into_git = False
        characters = 0
        self.whole = True
        while todo or (leads_into_git and of_git):
            if not todo:
                todo += of_git
                of_git.clear()
            if len(seen) >= MAX_FOLDERS or characters >= MAX_CHARACTERS:
                self.whole = False
                break
            path = todo.popleft()
            characters += len(path)
            if path in seen:
                continue
            listing: FolderListing | None = None
            try:
                listing = _listing(path, known.get(path))
            except PermissionError:
                listing = _opened(path) if opening and path not in shut else None
                if listing is None:
                    shut.add(path)
            except OSError:
                pass
            if listing is None:
                continue
            seen[path] = listing
            yield path, listing
            todo += listing.folders
            of_git += listing.of_git
            leads_into_git = leads_into_git or listing.leads_into_git
        self._known = seen


def _opened(path: str) -> FolderListing | None:
    """Gives a folder the rights to be listed. Without them, programs still reach what lies in it by its name."""
    try:
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC) if HAS_O_PATH else -1
        if fd < 0:
            return None
        try:
            os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(os.fstat(fd).st_mode) | 0o500)
        finally:
            os.close(fd)
        return _listing(path, None)
    except OSError:
        return None


def _listing(path: str, known: FolderListing | None) -> FolderListing:
    status = os.lstat(path)
    stamp = (status.st_dev, status.st_ino, status.st_ctime_ns)
    if known is not None and known.stamp == stamp:
        return known
    settled = time.time_ns() - status.st_ctime_ns > RECENT
    folders: dict[str, bool] = {}
    leads_into_git = False
    with os.scandir(path) as entries:
        for entry in entries:
            folders[entry.name] = entry.is_dir(follow_symlinks=False)
            leads_into_git = leads_into_git or (entry.is_symlink() and _names_a_git(entry.path))
    found = {name.casefold(): is_folder for name, is_folder in folders.items()} if IGNORES_CASE else folders
    dot_git = ("folder" if found[".git"] else "other") if ".git" in found else ""
    head = "head" if IGNORES_CASE else "HEAD"
    is_git = head in found and ("commondir" in found or ("objects" in found and "refs" in found))
    own = GIT_DATA if is_git and "/.git/" in f"{path}/" else ()
    inner = tuple(f"{path}/{name}" for name, is_folder in folders.items() if is_folder and name not in own)
    of_git = tuple(f"{path}/{name}" for name in own if folders.get(name))
    obeyed = tuple(f"{path}/{name}" for name in sorted(OBEYED & folders.keys()))
    return FolderListing(
        stamp if settled else (0, 0, 0), inner, dot_git, is_git, obeyed, of_git, leads_into_git
    )


def _names_a_git(link: str) -> bool:
    try:
        return ".git" in os.readlink(link).split("/")
    except OSError:
        return False
