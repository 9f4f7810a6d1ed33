# ruff: noqa: PTH110, PTH112 - paths are text here
"""Finds the files and folders that deny rules take from a call, for a sandbox, which knows no patterns.

The search goes only into folders to which a pattern leads. Below a folder that a rule with exceptions matches, it
looks at each name. The number of names and of denied paths is limited.
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Collection, Iterable, Iterator, Sequence

from toolcrib.access import PATHS, Access, DeniedPaths, Reach
from toolcrib.command.sandbox.files.paths import within
from toolcrib.command.sandbox.files.placeholders import is_placeholder
from toolcrib.dataclass import dataclass
from toolcrib.rules.folder_cache import FOLDER, LINK, FolderCache, FolderEntry
from toolcrib.rules.match import NO, PARTLY, YES, MatchLevel
from toolcrib.rules.name_patterns import WILDCARD
from toolcrib.rules.path_patterns import expand_braces
from toolcrib.rules.path_states import PathState, Position, state_of
from toolcrib.rules.rule import Rule, with_relative_paths
from toolcrib.toolbox.policy import PolicyRequest

__all__ = ["find_denied_paths"]

MAX_NAMES = 50_000  # looked at for one command
MAX_DENIED = 128  # paths; each is one more mount, and the more there are, the slower each is made
READ, WRITE, DELETE = PATHS


def find_denied_paths(
    rules: Sequence[Rule], request: PolicyRequest, root: str, others: Iterable[str], folders: FolderCache
) -> DeniedPaths:
    """The paths that deny rules take from a call: below a workspace and other folders, elsewhere if named in full."""
    search = _Search(rules, request, root, folders)
    search.below(root, "", search.relative_state(root, ""))
    outside = [folder for folder in others if not within(folder, root)]
    for folder in outside:
        search.below(folder, folder, search.relative_state(folder, folder), skipped={root})
    search.below("/", "/", search.absolute_state(), skipped={root, *outside})
    search.deny_missing_paths()
    return search.found()


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder to look into. `named` is its path as calls name it, `links` are the links on the way to it.

    `read_only`: nothing in it may be changed. `every_name`: each name in it must be decided on.
    """

    path: str
    named: str
    state: PathState
    read_only: bool
    every_name: bool
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Denial:
    """What rules deny of a path. `every_name`: the path is a folder in which exceptions have to be looked for."""

    hidden: bool
    read_only: bool
    every_name: bool


class _Search:
    """One search for what the rules match."""

    def __init__(
        self, rules: Sequence[Rule], request: PolicyRequest, root: str, folders: FolderCache
    ) -> None:
        self.rules = [with_relative_paths(rule, (root,)) for rule in rules]
        self.request, self.root, self.folders = request, root, folders
        self.patterns = [pattern for rule in self.rules for pattern in rule.paths]
        self.has_rules_without_paths = any(not rule.paths for rule in self.rules)
        self.hidden: dict[str, None] = {}
        self.read_only: dict[str, None] = {}
        self.incomplete = ""
        self.names_left = MAX_NAMES

    # Where the patterns begin

    def relative_state(self, folder: str, named: str) -> PathState:
        """The state in a folder of patterns that hold in any folder, and of absolute ones that lead into this one."""
        positions: set[Position] = set()
        for pattern in self.patterns:
            for pieces in pattern.alternatives:
                if pieces[0] == "/":
                    rests = pattern.relative_to(folder)
                    positions |= {(inner, 0) for rest in rests for inner in rest.alternatives}
                elif not named or pieces[0] == "**":
                    positions.add((pieces, 0))
        return state_of(frozenset(positions))

    def absolute_state(self) -> PathState:
        """The state of absolute patterns in "/", without those of any depth: these are searched in workspaces only."""
        found = {pieces for pattern in self.patterns for pieces in pattern.alternatives}
        return state_of(
            frozenset((pieces, 1) for pieces in found if pieces[0] == "/" and pieces[1:2] != ("**",))
        )

    # The search

    def below(self, path: str, named: str, state: PathState, skipped: Collection[str] = ()) -> None:
        """Search a folder, which calls know as `named`, except the folders that are searched by themselves."""
        denial = _Denial(False, False, False)
        if path != "/":
            denial = self._deny(path, named or ".", folder=True, read_only=False)
        if denial.hidden:
            return
        # Other patterns lead to what they match; only exceptions and rules without paths need a look at each name.
        every_name = denial.every_name and (state.matched or self.has_rules_without_paths)
        if not (state.leads_on or every_name):
            return
        waiting = [_Folder(path, named, state, denial.read_only, every_name)]
        while waiting and self.names_left >= 0:
            folder = waiting.pop()
            denied_before = self._denied_count()
            for name, forms, kind in self._entries(folder):
                positions = folder.state.after(forms)
                inner = f"{folder.path.rstrip('/')}/{name}"
                if (positions or folder.every_name or kind == FOLDER) and inner not in skipped:
                    waiting += self._enter(folder, inner, name, kind, positions)
            if folder.links and self._denied_count() > denied_before:
                # Else a command could make the links lead elsewhere for the next command.
                self.read_only.update(dict.fromkeys(folder.links))

    def _entries(self, folder: _Folder) -> Sequence[FolderEntry]:
        """The names in a folder; none once there are too many."""
        try:
            entries = self.folders.entries(folder.path)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as problem:  # the command could open the folder, if its user owns it
            self._deny_unreadable(folder.path, folder.named, problem)
            return ()
        self.names_left -= len(entries)
        if self.names_left < 0:
            self.incomplete = f"there are more than {MAX_NAMES:,} names to look at"
        elif self._denied_count() > MAX_DENIED:
            self.incomplete, self.names_left = f"rules deny more than {MAX_DENIED} places", -1
        return entries if self.names_left >= 0 else ()

    def _denied_count(self) -> int:
        return len(self.hidden) + len(self.read_only)

    def _enter(
        self, folder: _Folder, path: str, name: str, kind: int, positions: list[Position]
    ) -> Iterator[_Folder]:
        """Note what is denied of a name in a folder; yields the folder that it leads to."""
        state = folder.state.inside(positions)
        named = f"{folder.named.rstrip('/')}/{name}" if folder.named else name
        denial = _Denial(False, folder.read_only, False)
        if folder.every_name or state.matched:
            is_folder, is_link = kind == FOLDER, kind == LINK
            denial = self._deny(path, named, folder=is_folder, read_only=folder.read_only, link=is_link)
        if denial.hidden:
            return
        if kind == FOLDER and (state.leads_on or denial.every_name):
            yield _Folder(path, named, state, denial.read_only, denial.every_name, folder.links)
        elif kind == LINK and positions and os.path.isdir(path):
            # Only patterns that led to this name go on: those of any depth find what is behind it at its real place.
            real, links = os.path.realpath(path), (*folder.links, path)
            yield _Folder(real, named, state_of(frozenset(positions)), folder.read_only, False, links)

    # What is denied of a path

    def _deny(self, path: str, named: str, *, folder: bool, read_only: bool, link: bool = False) -> _Denial:
        """Note what rules deny of a path; `read_only` is what is already known of the folder above it."""
        if is_placeholder(path):
            return _Denial(True, read_only, False)
        read, exceptions = self._match(READ, named, folder)
        if read is YES:
            self._hide(path, named, link)
            if not link:
                return _Denial(True, read_only, False)
        write, exceptions_to_write = self._match(WRITE, named, folder)
        delete, exceptions_to_delete = self._match(DELETE, named, folder)
        if not read_only and (write is YES or (delete is YES and not folder)):
            read_only = True
            self._make_read_only(path, named, link)
        elif not read_only and delete is YES and write is not YES:
            self.incomplete = f"nothing keeps commands from deleting what lies below {named}"
        every_name = exceptions or exceptions_to_write or exceptions_to_delete
        return _Denial(read is YES, read_only, every_name)

    def _match(self, reach: Reach, named: str, folder: bool) -> tuple[MatchLevel, bool]:
        """How far rules match a path, and whether exceptions have to be looked for below it."""
        access = Access(reach, named, subtree=folder)
        most: MatchLevel = NO
        exceptions = False
        for rule in self.rules:
            if not rule.may_forbid(access):
                continue
            found = rule.match(access, self.request)
            if found is PARTLY and not folder:
                found = YES
            exceptions = exceptions or (found is PARTLY and bool(rule.unless))
            most = max(most, found)
        return most, exceptions

    def _hide(self, path: str, named: str, link: bool) -> None:
        if not self._holds_workspace(path, named, link):
            real = os.path.realpath(path)
            if os.path.exists(real):
                self.hidden[real] = None

    def _make_read_only(self, path: str, named: str, link: bool) -> None:
        if link:  # the name itself, and what it leads to
            self.read_only[path] = None
        if not self._holds_workspace(path, named, link):
            self.read_only[os.path.realpath(path)] = None

    def _deny_unreadable(self, path: str, named: str, problem: OSError) -> None:
        """A folder that cannot be listed may hold anything, so all of it is hidden."""
        if problem.errno == errno.EACCES:
            self._hide(path, named, link=False)
        else:
            self.incomplete = f"{named[:100]}: {problem.strerror}"

    def _holds_workspace(self, path: str, named: str, link: bool) -> bool:
        """Whether a path leads to a folder above the workspace; the workspace itself is searched for what is denied."""
        real = os.path.realpath(path)
        holds = real != self.root and within(self.root, real)
        if holds and link:
            self.incomplete = f"{named} leads to a folder around the workspace"
        return holds

    def deny_missing_paths(self) -> None:
        """Denies the creation of missing files that a rule names in full."""
        for named in dict.fromkeys(self._paths_in_workspace()):
            path = f"{self.root}/{named}"
            if os.path.lexists(path) and not is_placeholder(path):
                continue
            above = posixpath.dirname(path)
            while not os.path.lexists(above):
                above = posixpath.dirname(above)
            real = os.path.realpath(above) == above and os.path.isdir(above)
            if real and self._match(WRITE, named, False)[0] is YES:
                self.read_only[path] = None

    def _paths_in_workspace(self) -> Iterator[str]:
        """The patterns without wildcards that match something in the workspace, relative to it."""
        for pattern in self.patterns:
            for text in expand_braces(pattern.text):
                path = posixpath.expanduser(text.removeprefix("**/").removesuffix("/**"))
                if WILDCARD.search(path):
                    continue
                if path.startswith("/"):
                    if not within(path, self.root) or path == self.root:
                        continue
                    path = path[len(self.root) + 1 :]
                named = posixpath.normpath(path)
                if named not in (".", "") and not named.startswith(".."):
                    yield named

    def found(self) -> DeniedPaths:
        hidden = [path for path in self.hidden if not _is_below_any(path, self.hidden)]
        read_only = [
            path
            for path in self.read_only
            if path not in self.hidden
            and not _is_below_any(path, hidden)
            and not _is_below_any(path, self.read_only)
        ]
        return DeniedPaths(tuple(sorted(hidden)), tuple(sorted(read_only)), self.incomplete)


def _is_below_any(path: str, folders: Iterable[str]) -> bool:
    return any(folder != path and within(path, folder) for folder in folders)
