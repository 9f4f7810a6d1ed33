"""Finds tokens and keys of known formats in texts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache, lru_cache

from toolcrib.secrets.patterns import PATTERNS, TokenPattern

__all__ = ["TokenSearch", "looks_like_a_token"]

CONTEXT = 40  # characters before a match in which `before` is searched


@cache
def _lookalikes() -> re.Pattern[str]:
    lookalikes = [pattern.lookalike for pattern in PATTERNS if pattern.lookalike]
    return re.compile(rf"\b(?:{'|'.join(lookalikes)})")


def looks_like_a_token(text: str) -> bool:
    """Whether a text contains what looks like a token or key, also if it has not quite the length of one.

    This is for questions about a command, whose words all processes can read: a false alarm costs less there than a
    masked text.
    """
    return _lookalikes().search(text) is not None


class TokenSearch:
    """Finds tokens of several formats in texts. A format is only tried on a text that contains one of its hints.

    >>> TokenSearch().find("key=" + "AKIA" + "IOSFODNN7EXAMPLE;")
    [(4, 24, 'AWS access key')]
    """

    def __init__(self, patterns: Iterable[TokenPattern] = PATTERNS) -> None:
        self._patterns = tuple(patterns)
        self._plain = _by_sign((index, row) for index, row in enumerate(self._patterns) if not row.folded)
        self._folded = _by_sign((index, row) for index, row in enumerate(self._patterns) if row.folded)

    def may_find(self, text: str) -> bool:
        """Whether a text, or a string in it if it is JSON, may contain a token.

        One search answers for both: an expression looks at one character beside a token at most, and the quote at the
        end of a JSON string counts like the end of a text.
        """
        for index in self._hinted(text):
            pattern = self._patterns[index]
            if _compiled(pattern.expression, pattern.folded).search(text) is not None:
                return True
        return False

    def find(self, text: str) -> list[tuple[int, int, str]]:
        """Start, end and kind of every token, in order, without overlaps; of two that overlap the first format wins."""
        found: list[tuple[int, int, int, str]] = []
        for index in self._hinted(text):
            pattern = self._patterns[index]
            expression = _compiled(pattern.expression, pattern.folded)
            group = "key" if "key" in expression.groupindex else 0
            for match in expression.finditer(text):
                if pattern.before and not _stands_before(pattern.before, text, match.start()):
                    continue
                if pattern.fits(match[group]):
                    found.append((match.start(group), index, match.end(group), pattern.kind))
        out: list[tuple[int, int, str]] = []
        for start, _, end, kind in sorted(found):
            if not out or start >= out[-1][1]:
                out.append((start, end, kind))
        return out

    def _hinted(self, text: str) -> Collection[int]:
        """The indices of the formats of which a text contains a hint: for most texts none."""
        found = _hinted(text, self._plain)
        if self._folded:
            found += _hinted(text.lower(), self._folded)
        return set(found) if found else ()


Hints = dict[str, dict[str, list[int]]]
"""Hints, and for each the indices of its formats. They are grouped by a sign of theirs, such as `_`, or "" if they
have none: in a text without the sign, none of its group needs to be looked for."""


def _by_sign(rows: Iterable[tuple[int, TokenPattern]]) -> Hints:
    made: Hints = {}
    for index, row in rows:
        for hint in row.hints:
            sign = next((char for char in hint if not char.isalnum()), "")
            made.setdefault(sign, {}).setdefault(hint, []).append(index)
    return made


def _hinted(text: str, hints: Hints) -> list[int]:
    found: list[int] = []
    for sign, group in hints.items():  # loops, as comprehensions take twice as long where nothing is found
        if sign in text:
            for hint in group:
                if hint in text:
                    found += group[hint]
    return found


def _stands_before(expression: str, text: str, end: int) -> bool:
    return _compiled(expression, folded=True).search(text, max(0, end - CONTEXT), end) is not None


@lru_cache(maxsize=256)
def _compiled(expression: str, folded: bool) -> re.Pattern[str]:
    """Compiled when it is first needed: most texts contain no hint of most formats."""
    return re.compile(expression, re.IGNORECASE if folded else 0)
