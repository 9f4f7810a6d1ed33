"""Patterns of paths.

A piece is what stands between two slashes. `*`, `?` and `[...]` stand for characters within a piece, `**` for any
number of pieces, `{a,b}` for `a` or `b`. A pattern without a slash matches that name in any folder. A pattern that
matches a folder matches everything below it. Paths are compared as `comparable_paths.py` says, in two forms: a pattern
that forbids matches where it matches each piece in either, one that allows only where it matches in both.

The time of a comparison grows with pattern times path: a text between two `*`, or pieces between two `**`, are matched
where they first occur, and never looked for again.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from unicodedata import normalize

from toolcrib.access import Access
from toolcrib.glob_patterns import GlobError, expand_lists
from toolcrib.rules.comparable_paths import (
    FORMS,
    MAX_CACHED,
    NameForm,
    comparable_forms,
    path_pieces,
)
from toolcrib.rules.match import NO, PARTLY, YES, MatchLevel
from toolcrib.rules.name_patterns import WILDCARD, PatternError, name_expression, name_matches

__all__ = ["PathPattern", "Pieces", "expand_braces", "match_paths"]

MAX_ALTERNATIVES = 64  # that the braces of a pattern may stand for
BRACES = re.compile(r"\{([^{}]*)\}")
BRACKETS = re.compile(r"[\[\]\\]")

Pieces = tuple[str, ...]
"""The pieces of a pattern, after "/" if it is absolute."""


class PathPattern:
    """A compiled pattern of paths. Raises PatternError for a text that makes no sense as a pattern.

    >>> keys = PathPattern("config/*.key")
    >>> keys.matches("config/a.key"), keys.may_match_below("config"), keys.matches("config")
    (True, True, False)
    """

    __slots__ = ("_alternatives", "_matches", "alternatives", "either_form", "expression", "text")

    def __init__(self, text: str, *, either_form: bool = False) -> None:
        self.text = text
        self.either_form = either_form
        if not text.strip():
            raise PatternError("an empty path pattern matches nothing")
        if "\\" in text:
            raise PatternError(f"{text!r}: write / between the pieces of a path, not \\")
        if ".." in text.split("/"):
            raise PatternError(f"{text!r}: a pattern must not contain '..'")
        if "~" in text.split("/")[1:]:
            raise PatternError(f"{text!r}: '~' means the home folder only at the beginning")
        texts = expand_braces(text)
        self._alternatives = [tuple(_pattern_pieces(one, form) for one in texts) for form in FORMS]
        self.alternatives = tuple(dict.fromkeys(pieces for found in self._alternatives for pieces in found))
        expressions = ["|".join(map(_path_expression, found)) for found in self._alternatives]
        expressions = list(dict.fromkeys(expressions))  # one, where both forms of the pattern are the same
        self.expression = "|".join(expressions)
        try:
            self._matches = [re.compile(expression).match for expression in expressions]
        except re.error as problem:
            raise PatternError(f"{text!r} cannot be read: {problem}") from None

    def in_either_form(self) -> PathPattern:
        """The same pattern, but one that matches a path if it matches either form of it."""
        return self if self.either_form else PathPattern(self.text, either_form=True)

    def matches(self, path: str) -> bool:
        """Whether the pattern matches a path, or a folder above it."""
        return self.matches_forms(comparable_forms(path))

    def matches_forms(self, forms: Sequence[str]) -> bool:
        """The same for the result of `comparable_forms`."""
        first = self._matches[0](forms[0]) is not None
        if len(forms) == len(self._matches) == 1:
            return first
        if self.either_form:
            return first or any(match(form) is not None for match in self._matches for form in forms)
        return first and self._matches[-1](forms[-1]) is not None

    def may_match_below(self, folder: str, pattern: str = "") -> bool:
        """Whether the pattern may match something in a folder that another pattern matches there ("": anything)."""
        overlaps = _overlaps if len(folder) + len(pattern) <= MAX_CACHED else _overlaps.__wrapped__
        return overlaps(self, folder, pattern) or self.matches(folder)

    def relative_to(self, root: str) -> tuple[PathPattern, ...]:
        """Patterns that mean, relative to an absolute folder, what this pattern means there.

        >>> PathPattern("/home/*/shop/*.key").relative_to("/home/ann/shop")
        (PathPattern('./*.key'),)
        >>> PathPattern("src/**").relative_to("/home/ann")
        ()
        """
        texts = [_pattern_pieces(one, str) for one in expand_braces(self.text)]
        rests = {
            pieces[at:]
            for form, found in zip(FORMS, self._alternatives, strict=True)
            for pieces, compared in zip(texts, found, strict=True)
            for at in _positions_below(compared, path_pieces(root, form))
        }
        return tuple(
            PathPattern("./" + "/".join(rest) if rest else "**", either_form=self.either_form)
            for rest in sorted(rests)
        )

    def __repr__(self) -> str:
        return f"PathPattern({self.text!r})"


def match_paths(patterns: Sequence[PathPattern], access: Access) -> MatchLevel:
    """How far several patterns together match the path of an access."""
    forms = comparable_forms(access.target)
    for pattern in patterns:
        if pattern.matches_forms(forms):
            return YES
    if access.subtree and any(p.may_match_below(access.target, access.pattern) for p in patterns):
        return PARTLY
    return NO


def expand_braces(text: str) -> list[str]:
    """The patterns without braces that a pattern stands for. Raises PatternError for too many."""
    expanded: list[str] = []
    waiting = [text]
    while waiting:
        pattern = waiting.pop()
        found = BRACES.search(pattern)
        if found is None:
            expanded.append(pattern)
        else:
            waiting += [
                pattern[: found.start()] + part + pattern[found.end() :] for part in found[1].split(",")
            ]
        if len(expanded) + len(waiting) > MAX_ALTERNATIVES:
            raise PatternError(f"{text!r}: its braces stand for more than {MAX_ALTERNATIVES} patterns")
    return expanded


def _pattern_pieces(text: str, form: NameForm) -> Pieces:
    trimmed = text.rstrip("/")
    if not trimmed:
        return ("/",)
    pieces = path_pieces(trimmed, form)
    anywhere = "/" not in trimmed and not trimmed.startswith("~")
    return ("**", *pieces) if anywhere else pieces


def _path_expression(pieces: Pieces) -> str:
    """A pattern as a regular expression that matches the beginning of a comparable path."""
    chunks = [""]  # the pieces between two `**`
    for piece in pieces:
        if piece == "**":
            chunks.append("")
        else:
            chunks[-1] += "/" if piece == "/" else name_expression(piece, "[^/]") + "/"
    first, *rest = chunks
    return first + "".join(f"(?>(?:[^/]*/)*?{chunk})" for chunk in rest if chunk)


def _positions_below(pieces: Pieces, folder: Pieces) -> set[int]:
    """How many pieces of an absolute pattern lead to a folder: all of them where it matches the folder itself."""
    positions = {1} if pieces[:1] == ("/",) else set[int]()
    for name in folder[1:]:
        after: set[int] = set()
        for position in sorted(positions):
            while pieces[position : position + 1] == ("**",):
                after.add(position)
                position += 1
            if position == len(pieces):
                after.add(position)
            elif name_matches(pieces[position], name):
                after.add(position + 1)
        positions = after
    return positions


@functools.lru_cache(4096)
def _overlaps(pattern: PathPattern, folder: str, other: str) -> bool:
    """Whether a pattern may match a path that another pattern matches below a folder."""
    if ".." in other.split("/"):  # that may lead anywhere
        return True
    for form, alternatives in zip(FORMS, pattern._alternatives, strict=True):
        start = path_pieces(folder, form)
        below = [(*start, *pieces) for pieces in _tool_pattern_pieces(other, form)]
        if any(_may_overlap(pieces, inner) for pieces in alternatives for inner in below):
            return True
    return False


def _tool_pattern_pieces(pattern: str, form: NameForm) -> list[Pieces]:
    """The pieces of a pattern that a tool was given; one that cannot be read may match anything."""
    if not pattern.strip("/"):
        return [("**",)]
    try:
        texts = {*expand_lists(pattern), pattern}  # a name may hold braces
    except GlobError:
        return [("**",)]
    return [_read_by_tools(text, form) for text in texts]


def _read_by_tools(text: str, form: NameForm) -> Pieces:
    """The pieces of a tool's pattern without braces: a slash at the end means everything below."""
    names = [piece for piece in text.split("/") if piece not in ("", ".")]
    anywhere = ["**"] if "/" not in text.strip("/") else []
    below = ["**"] if text.endswith("/") else []
    return (*anywhere, *(_with_stars_alone(name, form) for name in names), *below)


def _with_stars_alone(name: str, form: NameForm) -> str:
    """A name of a tool's pattern with `*` in place of all other wildcards.

    What `[...]` and a backslash mean depends on the tool, and case counts in a set. A `?` may be a character that a
    comparable name does not have.
    """
    marks = [found.start() for found in BRACKETS.finditer(name)]
    if marks:
        name = f"{name[: marks[0]]}*{name[marks[-1] + 1 :]}"
    return form(name).replace("?", "*") if name != "**" else name


def _may_overlap(pieces: Pieces, other: Pieces) -> bool:
    """Whether a pattern may match a path that another pattern matches, or a folder above such a path."""
    reached = {(0, 0)}
    waiting = [(0, 0)]
    while waiting:
        i, j = waiting.pop()
        if i == len(pieces):
            return True
        if j == len(other):
            if all(piece == "**" for piece in pieces[i:]):
                return True
            continue
        a, b = pieces[i], other[j]
        following: list[tuple[int, int]] = []
        if a == "**" or b == "**":
            following = [(i + 1, j), (i, j + 1)]
        elif _names_may_overlap(a, b):
            following = [(i + 1, j + 1)]
        for place in following:
            if place not in reached:
                reached.add(place)
                waiting.append(place)
    return False


def _names_may_overlap(one: str, other: str) -> bool:
    """Whether a pattern of names may match a name that another one matches, whose wildcards are all `*`.

    Of two with wildcards only the ends are compared. An accent may be a character of its own, which a `*` stands for.
    """
    if "*" not in other:
        return name_matches(one, other)
    one, other = normalize("NFD", one), normalize("NFD", other)
    wild = WILDCARD.search(one)
    if wild is None:
        return name_matches(other, one)
    start_one, start_other = one[: wild.start()], other[: other.index("*")]
    end_one, end_other = re.split(r"[*?\[\]]", one)[-1], other[other.rindex("*") + 1 :]
    starts = start_one.startswith(start_other) or start_other.startswith(start_one)
    return starts and (end_one.endswith(end_other) or end_other.endswith(end_one))
