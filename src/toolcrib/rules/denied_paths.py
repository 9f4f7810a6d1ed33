# ruff: noqa: PTH110, PTH112, PTH208 - paths are text here
"""Which places of the file system deny rules take from a call, for a sandbox, which knows no patterns.

Patterns are followed through the folders that are there now, piece by piece: a folder that no pattern can lead into is
not entered. Where a rule has exceptions, each name below what it means is asked about. Both are bounded.
"""

from __future__ import annotations

import errno
import functools
import os
import posixpath
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from toolcrib.access import PATHS, Access, DeniedPaths, Reach
from toolcrib.command.sandbox.files.placeholders import is_placeholder
from toolcrib.rules.folder_cache import FOLDER, LINK, FolderCache, Name
from toolcrib.rules.patterns import SPECIAL, compiled, expanded, fits
from toolcrib.rules.rule import NO, PARTLY, YES, Rule, within
from toolcrib.toolbox.policy import PolicyRequest

MOST_NAMES = 50_000  # looked at for one command
MOST_PLACES = 128  # each is one more mount, and the more there are, the slower each is laid
READ, WRITE, DELETE = PATHS

Thread = tuple[tuple[str, ...], int]
"""A pattern's pieces, and how many of them have been met."""


class State:
    """How far some patterns have come in a folder. `ends`: one means the folder itself; `leads`: one means more."""

    __slots__ = ("_exact", "_stays", "_wild", "ends", "leads")

    def __init__(self, threads: frozenset[Thread]) -> None:
        closed = set(threads)
        for pieces, at in threads:  # `**` stands for no folder, too
            while pieces[at : at + 1] == ("**",):
                at += 1
                closed.add((pieces, at))
        self.ends = any(at == len(pieces) for pieces, at in closed)
        self._stays = frozenset((pieces, at) for pieces, at in closed if pieces[at : at + 1] == ("**",))
        self._exact: dict[str, list[Thread]] = {}
        self._wild: list[tuple[str, Thread]] = []
        for pieces, at in closed:
            if at < len(pieces) and pieces[at] != "**":
                after = (pieces, at + 1)
                if SPECIAL.search(pieces[at]):
                    self._wild.append((pieces[at], after))
                else:
                    self._exact.setdefault(pieces[at], []).append(after)
        self.leads = bool(self._exact or self._wild)

    def met(self, name: str) -> list[Thread] | None:
        """What a name leads further; None where it leads nothing."""
        found = self._exact.get(name)
        for pattern, after in self._wild:
            if fits(pattern, name):
                found = [*(found or ()), after]
        return found

    def inside(self, met: Iterable[Thread]) -> State:
        """The state in a folder whose name led some threads further."""
        return _state(self._stays.union(met))


@functools.lru_cache(1024)
def _state(threads: frozenset[Thread]) -> State:
    return State(threads)


def denied_paths(
    rules: Sequence[Rule], case: PolicyRequest, root: str, others: Iterable[str], folders: FolderCache
) -> DeniedPaths:
    """What deny rules about a call take below a workspace and some other folders, and by their full names elsewhere."""
    search = Search(rules, case, root, folders)
    search.below(root, "", search.relative(root, ""))
    opened = [place for place in others if not _in(place, root)]
    for place in opened:
        search.below(place, place, search.relative(place, place), skipped={root})
    search.below("/", "/", search.absolute(), skipped={root, *opened})
    search.keep_the_absent()
    return search.found()


@dataclass(frozen=True, slots=True)
class Spot:
    """A folder to look into. `kept`: nothing in it may be changed; `each`: each name in it is asked about.

    `via` are the links on the way to it.
    """

    path: str
    named: str
    state: State
    kept: bool
    each: bool
    via: tuple[str, ...] = ()


class Search:
    """One look for what some rules mean."""

    def __init__(self, rules: Sequence[Rule], case: PolicyRequest, root: str, folders: FolderCache) -> None:
        self.rules = [within(rule, (root,)) for rule in rules]
        self.case, self.root, self.folders = case, root, folders
        self.patterns = [pattern for rule in self.rules for pattern in rule.paths]
        self.by_exceptions = any(not rule.paths for rule in self.rules)
        self.hidden: dict[str, None] = {}
        self.kept: dict[str, None] = {}
        self.beyond = ""
        self.left = MOST_NAMES

    def relative(self, place: str, named: str) -> State:
        """Where patterns begin in a folder: those of any folder, and full names that lead into it."""
        threads: set[Thread] = set()
        for pattern in self.patterns:
            for pieces in map(compiled, expanded(pattern.text)):
                if pieces[0] == "/":
                    rests = [one.text for one in pattern.within(place)]
                    threads |= {(compiled(one), 0) for rest in rests for one in expanded(rest)}
                elif not named or pieces[0] == "**":
                    threads.add((pieces, 0))
        return _state(frozenset(threads))

    def absolute(self) -> State:
        """Where full names begin. One that leaves open in which folder is only looked for where commands work."""
        found = {pieces for pattern in self.patterns for pieces in map(compiled, expanded(pattern.text))}
        return _state(
            frozenset((pieces, 1) for pieces in found if pieces[0] == "/" and pieces[1:2] != ("**",))
        )

    def below(self, path: str, named: str, state: State, skipped: Collection[str] = ()) -> None:
        """Look below a folder, which calls know by a name; not into those that are looked at for themselves."""
        step = (False, False) if path == "/" else self._judged(path, named or ".", True, False)
        if step is None:
            return
        each = step[1] and (state.ends or self.by_exceptions)  # else the patterns lead to what is meant
        if not (state.leads or each):
            return
        todo = [Spot(path, named, state, step[0], each)]
        while todo and self.left >= 0:
            spot = todo.pop()
            found = len(self.hidden) + len(self.kept)
            for name, alike, kind in self._names(spot):
                met = spot.state.met(alike)
                inner = f"{spot.path.rstrip('/')}/{name}"
                if (met or spot.each or kind == FOLDER) and inner not in skipped:
                    todo += self._led(spot, inner, name, met or [], kind)
            if spot.via and len(self.hidden) + len(self.kept) > found:
                self.kept.update(dict.fromkeys(spot.via))  # or it could lead elsewhere for the next command

    def _names(self, spot: Spot) -> Sequence[Name]:
        """What lies in a folder, as long as there is not too much."""
        try:
            names = self.folders.names(spot.path)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as problem:  # who owns it can open it in the command
            self._shut(spot.path, spot.named, problem)
            return ()
        self.left -= len(names)
        if self.left < 0:
            self.beyond = f"there are more than {MOST_NAMES:,} names to look at"
        elif len(self.hidden) + len(self.kept) > MOST_PLACES:
            self.beyond, self.left = f"rules deny more than {MOST_PLACES} places", -1
        return names if self.left >= 0 else ()

    def _led(self, spot: Spot, inner: str, name: str, met: list[Thread], kind: int) -> Iterator[Spot]:
        """Note what is denied of one name in a folder; where to go on."""
        after, named = spot.state.inside(met), f"{spot.named.rstrip('/')}/{name}" if spot.named else name
        step: tuple[bool, bool] | None = (spot.kept, False)
        if spot.each or after.ends:
            step = self._judged(inner, named, kind == FOLDER, spot.kept, link=kind == LINK)
        if step is None:
            return
        if kind == FOLDER and (after.leads or step[1]):
            yield Spot(inner, named, after, *step, via=spot.via)
        elif kind == LINK and met and os.path.isdir(inner):
            # Only what a name led here: what stays in any folder is found where it really lies.
            real = os.path.realpath(inner)
            yield Spot(real, named, _state(frozenset(met)), spot.kept, False, (*spot.via, inner))

    def _judged(
        self, path: str, named: str, folder: bool, kept: bool, *, link: bool = False
    ) -> tuple[bool, bool] | None:
        """Note what is denied of a name: None where it is hidden; else whether it is kept, and to be gone through."""
        if _is_absent(path):
            return None
        read, each = self._denied(READ, named, folder)
        if read is YES:
            self._hide(path, named, link)
            if not link:
                return None
        write, each_written = self._denied(WRITE, named, folder)
        delete, each_deleted = self._denied(DELETE, named, folder)
        if not kept and (write is YES or (delete is YES and not folder)):
            kept = True
            self._keep(path, named, link)
        elif not kept and delete is YES and write is not YES:
            self.beyond = f"nothing keeps commands from deleting what lies below {named}"
        return (kept, each or each_written or each_deleted) if read is not YES else None

    def _denied(self, reach: Reach, named: str, folder: bool) -> tuple[int, bool]:
        """What rules say of a name, and whether exceptions have to be looked for below it."""
        access = Access(reach, named, subtree=folder)
        most, each = NO, False
        for rule in self.rules:
            if not rule.weighs_on(access):
                continue
            found = rule.means(access, self.case)
            if found is PARTLY and not folder:
                found = YES
            each = each or (found is PARTLY and bool(rule.unless))
            most = max(most, found)
        return most, each

    def _hide(self, path: str, named: str, link: bool) -> None:
        if not self._is_around(path, named, link):
            real = os.path.realpath(path)
            if os.path.exists(real):
                self.hidden[real] = None

    def _keep(self, path: str, named: str, link: bool) -> None:
        if link:  # the name itself, and what it leads to
            self.kept[path] = None
        if not self._is_around(path, named, link):
            self.kept[os.path.realpath(path)] = None

    def _shut(self, path: str, named: str, problem: OSError) -> None:
        """Nobody knows what lies in a folder that cannot be listed, so all of it is hidden."""
        if problem.errno == errno.EACCES:
            self._hide(path, named, link=False)
        else:
            self.beyond = f"{named[:100]}: {problem.strerror}"

    def _is_around(self, path: str, named: str, link: bool) -> bool:
        """Whether a name leads to a folder around the workspace, which is itself asked what it means of that."""
        real = os.path.realpath(path)
        around = real != self.root and _in(self.root, real)
        if around and link:
            self.beyond = f"{named} leads to a folder around the workspace"
        return around

    def keep_the_absent(self) -> None:
        """What is written out in full and is not there yet is not to be made either."""
        for named in dict.fromkeys(self._written_out()):
            path = f"{self.root}/{named}"
            if os.path.lexists(path) and not _is_absent(path):
                continue
            above = posixpath.dirname(path)
            while not os.path.lexists(above):
                above = posixpath.dirname(above)
            real = os.path.realpath(above) == above and os.path.isdir(above)
            if real and self._denied(WRITE, named, False)[0] is YES:
                self.kept[path] = None

    def _written_out(self) -> Iterator[str]:
        """The patterns without wildcards that mean something of the workspace, as paths from there."""
        for pattern in self.patterns:
            for text in expanded(pattern.text):
                path = posixpath.expanduser(text.removeprefix("**/").removesuffix("/**"))
                if SPECIAL.search(path):
                    continue
                if path.startswith("/"):
                    if not _in(path, self.root) or path == self.root:
                        continue
                    path = path[len(self.root) + 1 :]
                named = posixpath.normpath(path)
                if named not in (".", "") and not named.startswith(".."):
                    yield named

    def found(self) -> DeniedPaths:
        hidden = [path for path in self.hidden if not _any_in(path, self.hidden)]
        kept = [path for path in self.kept if path not in self.hidden and not _any_in(path, hidden)]
        kept = [path for path in kept if not _any_in(path, self.kept)]
        return DeniedPaths(tuple(sorted(hidden)), tuple(sorted(kept)), self.beyond)


def _is_absent(path: str) -> bool:
    """Whether there is only what keeps a command from making it; any folder may be given the time of a mask."""
    try:
        return is_placeholder(path) and not os.listdir(path)
    except OSError:
        return False


def _in(path: str, place: str) -> bool:
    return path == place or path.startswith(place.rstrip("/") + "/")


def _any_in(path: str, places: Iterable[str]) -> bool:
    """Whether a path lies below one of some places."""
    return any(place != path and _in(path, place) for place in places)
