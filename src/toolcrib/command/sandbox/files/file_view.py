"""Which files a command sees: what is hidden, what is shown all the same, and what is protected in the workspace.

Home folders are hidden as a whole, so secrets that no table knows are hidden too. What programs need of them
(toolchains, caches without credentials) is shown again, read-only. Outside of home folders a table names the secrets.
"""

from __future__ import annotations

import glob
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path

from toolcrib.command.sandbox.files.executed_files import PROTECTED, PROTECTED_IF_PRESENT, PUT_BACK
from toolcrib.command.sandbox.files.folder_walk import FolderListings
from toolcrib.command.sandbox.files.git_named_files import named_by_git
from toolcrib.command.sandbox.files.git_worktree import repository_of_worktree
from toolcrib.command.sandbox.files.known_paths import (
    HIDDEN_IN_CASE,
    PROTECTED_OF_HOME,
    SECRETS_OF_HOME,
    SECRETS_OF_SYSTEM,
    SHOWN_OF_HOME,
    SYSTEM_OWN,
    SYSTEM_PARTS,
    SYSTEM_ROOTS,
)
from toolcrib.command.sandbox.files.own_files import own_files, own_program_in
from toolcrib.command.sandbox.files.paths import (
    existing,
    innermost,
    innermost_around,
    names_in,
    within,
    within_any,
)
from toolcrib.command.sandbox.files.placeholders import is_placeholder
from toolcrib.command.sandbox.files.protected_links import without_links
from toolcrib.command.sandbox.files.secret_files import secret_files_elsewhere
from toolcrib.command.sandbox.files.shown_settings import settings_of, without_credentials_in
from toolcrib.command.sandbox.level import Files, Level
from toolcrib.dataclass import dataclass, replace

MAX_REPOSITORIES = 64  # nested ones whose hooks and settings are protected too
MAX_DEPTH = 4  # folders below the workspace in which they are looked for
MAX_FOLDERS = 4_000
NOT_ENTERED = {".git", "node_modules", ".venv", "venv", "__pycache__", "target", ".tox", ".mypy_cache"}


@dataclass(frozen=True, slots=True)
class FileView:
    """What a command sees of the file system. All paths are absolute and resolved.

    `hidden` files and folders do not exist for it. `shown` ones lie below hidden ones and can be read. `protected`,
    `links` and `watched` ones lie in the workspace: the first cannot be changed, the others are put back after a
    command. `links` are those on the way to something protected, on which no mount can lie. `denied` and `read_only`
    come from a level: the former is hidden whatever is shown, the latter cannot be changed. `redacted` are hidden
    settings with what a command may see of them, for back ends that can show it.
    """

    workspace: str
    home: str
    hidden: tuple[str, ...]
    shown: tuple[str, ...]
    protected: tuple[str, ...]
    watched: tuple[str, ...]
    links: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    redacted: tuple[tuple[str, bytes], ...] = ()

    def hides(self, path: str) -> bool:
        """Whether a path does not exist for a command."""
        if within(path, self.workspace):
            return any(within(path, place) for place in self.hidden if within(place, self.workspace))
        return len(innermost(path, self.hidden)) > len(innermost(path, self.shown))

    def showing(self, paths: Iterable[str]) -> FileView:
        """This view with some hidden files shown whole."""
        places = {path for path in paths if path in self.hidden}
        if not places:
            return self
        hidden = tuple(path for path in self.hidden if path not in places)
        below = (path for path in places if len(innermost(path, hidden)) > len(innermost(path, self.shown)))
        return replace(self, hidden=hidden, shown=tuple(sorted((*self.shown, *below))))

    def protects(self, path: str) -> bool:
        return within_any(path, (*self.protected, *self.links, *self.watched))

    def at(self, level: Level) -> FileView:
        """This view with the further paths of a level opened, and with what deny rules take from it removed."""
        level = level.without_links()
        return self._opened(level)._without_denied(level)

    def _opened(self, level: Level) -> FileView:
        """This view with the further paths of a level opened. Paths that are hidden below them stay hidden."""
        writable, opened = level.writable, (*level.writable, *level.readable)
        if not opened:
            return self
        shown = (path for path in opened if path not in self.shown and not within(path, self.workspace))
        return replace(
            self,
            hidden=tuple(path for path in self.hidden if path not in opened),
            shown=tuple(sorted((*self.shown, *shown))),
            protected=tuple(path for path in self.protected if not within_any(path, writable)),
            watched=tuple(path for path in self.watched if not within_any(path, writable)),
            links=tuple(path for path in self.links if not within_any(path, writable)),
        )

    def _without_denied(self, level: Level) -> FileView:
        """This view without what deny rules take from it. Paths that a command cannot reach anyway are not listed."""
        if not (level.hidden or level.read_only or level.blank):
            return self
        taken = dict.fromkeys((*level.hidden, *level.blank))
        denied = tuple(
            path
            for path in taken
            if path not in self.hidden and not self.hides(path) and not innermost_around(path, taken)
        )
        writable = self.writable(level)
        read_only = tuple(
            path for path in level.read_only if within_any(path, writable) and not within_any(path, denied)
        )
        links = dict.fromkeys(self.links)
        mine = [path for path in read_only if within(path, self.workspace)]
        protected = dict.fromkeys((*self.protected, *without_links(self.workspace, mine, links)))
        return replace(
            self,
            hidden=tuple(sorted((*self.hidden, *denied))),
            shown=tuple(path for path in self.shown if not within_any(path, denied)),
            protected=tuple(path for path in protected if not within_any(path, denied)),
            links=tuple(links),
            denied=denied,
            read_only=read_only,
        )

    def writable(self, level: Level) -> list[str]:
        """The folders and files that commands may change at a level."""
        return [self.workspace] * (level.files is Files.WORKSPACE_WRITE) + list(level.writable)


def file_view_of(
    workspace: str,
    *,
    home: str | None = None,
    readable: Iterable[str] = (),
    protected: Iterable[str] = PROTECTED,
    listings: FolderListings | None = None,
) -> FileView:
    """The view from a workspace. `readable` are further folders to show; `protected` is relative to the workspace.
    `listings` are those of earlier views.
    """
    listings = listings or FolderListings()
    root = os.path.realpath(workspace)
    own_home = os.path.realpath(home or os.path.expanduser("~"))
    homes = [own_home, *_home_of_the_account()]
    ours = own_files(home)
    candidates = [*_existing(SECRETS_OF_SYSTEM), *homes, *_there_below(homes, SECRETS_OF_HOME), *ours]
    # Under Landlock, commands may change the times and the rights of folders outside.
    there = existing(candidates, shut=True)
    hidden = {path for path in there if not (within(path, root) and is_placeholder(path))}
    redacted = _redacted(own_home)
    opened = {os.path.realpath(path) for path in readable}
    secret = {path for path in (*redacted, *secret_files_elsewhere()) if not within(path, root)} - opened
    hidden |= secret
    hidden -= {root, "/"}  # a folder that holds the workspace is hidden, but the workspace in it is shown
    shown = _shown(own_home, hidden, {*opened, *filter(None, [repository_of_worktree(root)])}) - secret
    names = (*protected, *(PROTECTED_OF_HOME if root == own_home else ()))
    # Own files that do not exist yet could be created by a command, and the next run would obey them.
    created_later = [path for path in ours if path not in hidden and within(path, root) and path != root]
    links: dict[str, None] = {}
    repositories = list(islice(_nested_repositories(root, listings), MAX_REPOSITORIES))
    protecting = (*_protected(root, names, repositories), *created_later, *own_program_in(root))
    named = named_by_git(root, repositories, home=own_home)
    fixed = without_links(root, protecting, links, listings)
    watched = without_links(root, (*(f"{root}/{name}" for name in PUT_BACK), *named), links, listings)
    return FileView(
        root,
        own_home,
        tuple(sorted(hidden)),
        tuple(sorted(path for path in shown if not within(path, root))),
        tuple(fixed),
        tuple(path for path in watched if path not in fixed),
        tuple(links),
        redacted=tuple(redacted.items()),
    )


def _redacted(home: str) -> dict[str, bytes]:
    """The settings that hold credentials, and what a command may see of each."""
    return {
        os.path.realpath(path): data
        for path in settings_of(home, names_in(home))
        if (data := without_credentials_in(path)) is not None
    }


def _shown(home: str, hidden: set[str], readable: Iterable[str]) -> set[str]:
    """What is shown below hidden folders: the known parts of the home folder, Python, PATH, and `readable`."""
    candidates = [
        *_there_below([home], SHOWN_OF_HOME),
        *python_folders(),
        *(folder for folder in os.environ.get("PATH", "").split(":") if folder.startswith("/")),
    ]
    found = set(existing(candidates))
    around = (home, *SYSTEM_ROOTS)
    found = {path for path in found if not any(within(place, path) for place in around)}
    found |= {*existing(readable)}
    found = {path for path in found if innermost(path, hidden)}
    places = found | hidden
    # A path in a shown folder is shown anyway, unless something hidden lies between the two.
    return {path for path in found if innermost_around(path, places) not in found}


def _below(folders: Iterable[str], names: Iterable[str]) -> list[str]:
    return [os.path.join(folder, name) for folder in folders for name in names]


def _there_below(folders: Iterable[str], names: Iterable[str]) -> Iterator[str]:
    """The paths that may exist: of the folders each is listed once, which is faster than to ask for each name."""
    for folder in dict.fromkeys(folders):
        at_the_top = names_in(folder)
        for name in names:
            if name.partition("/")[0] in at_the_top:
                yield f"{folder}/{name}"


def _existing(patterns: Iterable[str]) -> list[str]:
    """Paths as they are, and the matches of those that are patterns."""
    return [path for place in patterns for path in (glob.glob(place) if "*" in place else [place])]


@cache
def _home_of_the_account() -> tuple[str, ...]:
    """The home folder in the system's list of users, wherever HOME points; none where it is a part of the system."""
    if sys.platform == "win32":
        return ()
    import pwd

    try:
        home = os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return ()
    return () if home == "/" or within_any(home, SYSTEM_PARTS) else (home,)


@cache
def python_folders() -> tuple[str, ...]:
    """Where this Python and its packages lie, which commands such as `pytest` need, and where our launcher lies."""
    ours = str(Path(__file__).resolve().parents[1])
    return tuple(dict.fromkeys((sys.prefix, sys.base_prefix, ours)))


def _protected(root: str, names: tuple[str, ...], repositories: Iterable[str]) -> list[str]:
    """The protected paths of a workspace, and of the git repositories below its top."""
    git = f"{root}/.git"
    found = [f"{root}/{name}" for name in names]
    if not os.path.isdir(git) or is_placeholder(git):  # no repository yet, or a file that leads to one
        found = [path for path in found if not within(path, git)] + [git]
    of_git = [name for name in names if name.startswith(".git/")]
    of_git += PROTECTED_IF_PRESENT if of_git else ()
    for repository in (root, *repositories):
        found += [f"{repository}/{name}" for name in of_git if os.path.lexists(f"{repository}/{name}")]
    return found


def _nested_repositories(root: str, listings: FolderListings) -> Iterator[str]:
    """Folders below the workspace that hold a `.git`, the outermost first, up to a depth and a number of folders."""
    todo = deque([(root, 0)])
    looked = 0
    while todo and looked < MAX_FOLDERS:
        folder, depth = todo.popleft()
        looked += 1
        try:
            found = listings.of(folder)
        except OSError:
            continue
        if folder != root and found.dot_git:
            yield folder
        if depth < MAX_DEPTH:
            todo.extend(
                (path, depth + 1) for path in found.folders if path.rpartition("/")[2] not in NOT_ENTERED
            )


def never_offered(path: str, view: FileView, *, writing: bool) -> bool:
    """Whether nobody is ever asked to open a path: it holds secrets, or programs outside the sandbox obey it.

    For writing, the same holds for a folder that contains such a place, the workspace or a home folder.
    """
    homes = {view.home, *_home_of_the_account()}
    system = [place for place in SECRETS_OF_SYSTEM if place not in HIDDEN_IN_CASE]
    closed = [*_existing(system), *_below(homes, SECRETS_OF_HOME), *own_files(), *secret_files_elsewhere()]
    closed += [path for path, _ in view.redacted]
    closed += _below(homes, PROTECTED_OF_HOME) if writing else []
    places = {os.path.realpath(place) for place in closed}
    if within_any(path, places) or (writing and (view.protects(path) or _is_obeyed(path))):
        return True
    around = {*places, *homes, view.workspace} if writing else {*homes, view.workspace}
    return path == "/" or any(within(place, path) for place in around)


def _is_obeyed(path: str) -> bool:
    """Whether a path is the system's own, or programs obey it in any folder, or it contains something of the kind."""
    if within_any(path, SYSTEM_OWN) or any(f"/{name}/" in f"{path}/" for name in (*PROTECTED, *PUT_BACK)):
        return True
    return any(os.path.lexists(os.path.join(path, name)) for name in (".git", *PROTECTED, *PUT_BACK))
