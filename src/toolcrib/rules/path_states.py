"""Follows many path patterns down a tree of folders at once, and skips folders in which no pattern can match.

This is a nondeterministic automaton: a state is the set of all positions that the patterns have reached.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from toolcrib.rules.name_patterns import WILDCARD, name_matches
from toolcrib.rules.path_patterns import Pieces

__all__ = ["PathState", "Position", "state_of"]

Position = tuple[Pieces, int]
"""The pieces of a pattern, and how many of them have been matched."""


class PathState:
    """The positions that patterns have reached in a folder.

    `matched`: a pattern matches the folder itself. `leads_on`: a pattern may match something in the folder.
    """

    __slots__ = ("_any_depth", "_plain", "_wild", "leads_on", "matched")

    def __init__(self, positions: frozenset[Position]) -> None:
        reached = set(positions)
        for pieces, at in positions:  # `**` also stands for no folder at all
            while pieces[at : at + 1] == ("**",):
                at += 1
                reached.add((pieces, at))
        self.matched = any(at == len(pieces) for pieces, at in reached)
        self._any_depth = frozenset((pieces, at) for pieces, at in reached if pieces[at : at + 1] == ("**",))
        self._plain: dict[str, list[Position]] = {}
        self._wild: list[tuple[str, Position]] = []
        for pieces, at in reached:
            if at < len(pieces) and pieces[at] != "**":
                after = (pieces, at + 1)
                if WILDCARD.search(pieces[at]):
                    self._wild.append((pieces[at], after))
                else:
                    self._plain.setdefault(pieces[at], []).append(after)
        self.leads_on = bool(self._plain or self._wild)

    def after(self, forms: Sequence[str]) -> list[Position]:
        """The positions that patterns reach by matching a form of a name in the folder; often none."""
        found: list[Position] = []
        for name in forms:
            found = found + self._plain.get(name, [])
            found += [position for pattern, position in self._wild if name_matches(pattern, name)]
        return found

    def inside(self, positions: Iterable[Position]) -> PathState:
        """The state inside a folder, for whose name `after` gave the positions."""
        return state_of(self._any_depth.union(positions))


@functools.lru_cache(1024)
def state_of(positions: frozenset[Position]) -> PathState:
    """A state, cached."""
    return PathState(positions)
