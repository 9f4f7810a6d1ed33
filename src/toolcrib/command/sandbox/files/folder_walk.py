"""Walks the folders of a workspace again and again, and lists only those anew in which something was added or removed.

Those are known by their ctime, which no program can set. Of files nothing is remembered: a program that mapped a file
into its memory may change its content without changing its ctime (in memory file systems, and until the first change
is written to the disk).
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence

from toolcrib.command.sandbox.files.executed_files import PROTECTED, PUT_BACK
from toolcrib.command.sandbox.files.paths import innermost
from toolcrib.dataclass import dataclass
from toolcrib.folder_handles import THROUGH_FOLDER

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
    """A folder's inner folders and links, the number of names in it, whether it has a `.git`, and whether git takes the
    folder itself for a repository.
    """

    stamp: tuple[int, int, int]
    folders: tuple[str, ...]
    dot_git: str  # "folder", "other" (a file or a link), or ""
    is_git: bool
    obeyed: tuple[str, ...] = ()  # paths in it of what other programs execute or obey
    of_git: tuple[str, ...] = ()  # its inner folders in which git stores its data
    leads_into_git: bool = False  # whether a link in it names a `.git`
    links: tuple[str, ...] = ()
    count: int = 0
    files: tuple[int, ...] = ()  # the inode numbers of what are neither folders nor links


class FolderListings:
    """The listings of folders, each remembered for as long as nothing is added to its folder or removed from it."""

    def __init__(self) -> None:
        self._known: dict[str, FolderListing] = {}

    def of(self, path: str) -> FolderListing:
        """The listing of a folder. Raises OSError where there is no folder, or where it cannot be listed."""
        known = self._known.get(path)
        status = os.lstat(path)
        stamp = (status.st_dev, status.st_ino, status.st_ctime_ns)
        if known is not None and known.stamp == stamp:
            return known
        listing = _listing(path, status)
        if len(self._known) >= 2 * MAX_FOLDERS:
            self._known.clear()
        self._known[path] = listing
        return listing


class FolderWalk:
    """Walks folders, and knows which ones the last walk found. `listings` are remembered from walk to walk."""

    def __init__(self, listings: FolderListings | None = None) -> None:
        self.listings = listings or FolderListings()
        self._seen: dict[str, FolderListing] = {}
        self._left_out: list[str] = []
        self.whole = True  # whether the last walk came to its end within the limits
        self._shut: Collection[str] = ()

    @property
    def folders(self) -> Collection[str]:
        """The folders of the last walk, which a later walk leaves as they are."""
        return self._seen.keys()

    def walk(
        self, roots: Sequence[str], shut: set[str], *, opening: bool, fixed: Collection[str] = ()
    ) -> Iterator[tuple[str, FolderListing]]:
        """Yields every folder below the roots, outer ones first, within the limits above; follows no link.

        Folders in `fixed`, in which nothing can change, are not entered.

        The folders in which git stores its data come only where a link leads into a `.git`, and so maybe to a
        repository among them.

        Folders that cannot be listed are added to `shut`. With `opening`, a folder that is not in `shut` yet (a command
        took the rights away) is given back the right to be listed.
        """
        listing_of, seen = self.listings.of, dict[str, FolderListing]()
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
            if path in seen or path in fixed:
                continue
            listing: FolderListing | None = None
            try:
                listing = listing_of(path)
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
        self._seen, self._left_out, self._shut = seen, of_git, shut

    def inodes(self, wanted: set[int], roots: Collection[str], places: Collection[str]) -> set[int]:
        """Those of the inode numbers that have a name below the roots, by the last walk, outside of some places.

        All of them, where not all folders could be listed, or the last walk was one of other roots.
        """
        if not self.whole or self._shut or any(os.path.isdir(root) for root in {*roots} - self._seen.keys()):
            return wanted
        found: set[int] = set()
        todo = [*self._seen.items()]
        left_out = [*self._left_out]
        for count, path in enumerate(left_out):
            try:
                listing = self.listings.of(path)
            except OSError:
                return wanted
            if count >= MAX_FOLDERS:
                return wanted
            todo.append((path, listing))
            left_out += (*listing.folders, *listing.of_git)
        for path, listing in todo:
            if not wanted.isdisjoint(listing.files) and not innermost(path, places):
                found |= wanted.intersection(listing.files)
        return found


def _opened(path: str) -> FolderListing | None:
    """The listing of a folder that is given the rights to be listed; None where it cannot be."""
    try:
        return _listing(path, os.lstat(path)) if give_rights_to_list(path) else None
    except OSError:
        return None


def give_rights_to_list(path: str) -> bool:
    """Gives a folder the rights to be listed. Without them, programs still reach what lies in it by its name.

    No folder that is reached through a link gets them: another command may put one in the place of an outer folder.
    """
    try:
        fd = os.open(path, THROUGH_FOLDER) if HAS_O_PATH else -1
        if fd < 0:
            return False
        try:
            if os.readlink(f"/proc/self/fd/{fd}") != path:
                return False
            os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(os.fstat(fd).st_mode) | 0o500)
        finally:
            os.close(fd)
    except OSError:
        return False
    return True


def _listing(path: str, status: os.stat_result) -> FolderListing:
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(path)
    stamp = (status.st_dev, status.st_ino, status.st_ctime_ns)
    settled = time.time_ns() - status.st_ctime_ns > RECENT
    folders: dict[str, bool] = {}
    links: list[str] = []
    files: list[int] = []
    with os.scandir(path) as entries:
        for entry in entries:
            folders[entry.name] = is_folder = entry.is_dir(follow_symlinks=False)
            if entry.is_symlink():
                links.append(entry.path)
            elif not is_folder:
                files.append(entry.inode())
    found = {name.casefold(): is_folder for name, is_folder in folders.items()} if IGNORES_CASE else folders
    dot_git = ("folder" if found[".git"] else "other") if ".git" in found else ""
    head = "head" if IGNORES_CASE else "HEAD"
    is_git = head in found and ("commondir" in found or ("objects" in found and "refs" in found))
    own = GIT_DATA if is_git and "/.git/" in f"{path}/" else ()
    inner = tuple(f"{path}/{name}" for name, is_folder in folders.items() if is_folder and name not in own)
    of_git = tuple(f"{path}/{name}" for name in own if folders.get(name))
    obeyed = tuple(f"{path}/{name}" for name in sorted(OBEYED & folders.keys()))
    return FolderListing(
        stamp if settled else (0, 0, 0),
        inner,
        dot_git,
        is_git,
        obeyed,
        of_git,
        any(map(_names_a_git, links)),
        tuple(links),
        len(folders),
        tuple(files),
    )


def _names_a_git(link: str) -> bool:
    try:
        return ".git" in os.readlink(link).split("/")
    except OSError:
        return False
