"""Finds tokens and keys of known formats in texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from toolcrib.secrets.patterns import PATTERNS, TokenPattern

__all__ = ["PatternHints", "find_patterns", "looks_like_a_token", "may_hold_tokens"]

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


class PatternHints:
    """Tells at low cost whether a text may contain a token of several formats: most texts contain no hint of any."""

    def __init__(self, patterns: Iterable[TokenPattern]) -> None:
        rows = tuple(patterns)
        self._plain = tuple({hint for row in rows if not row.folded for hint in row.hints})
        self._folded = tuple({hint for row in rows if row.folded for hint in row.hints})

    def in_text(self, text: str) -> bool:
        for hint in self._plain:
            if hint in text:
                return True
        folded = text.lower()
        for hint in self._folded:  # noqa: SIM110 - `any` takes three times as long
            if hint in folded:
                return True
        return False


def may_hold_tokens(text: str, patterns: Iterable[TokenPattern]) -> bool:
    """Whether a text, or a string in it if it is JSON, may contain a token.

    One search answers for both: an expression looks at one character beside a token at most, and the quote at the end
    of a JSON string counts like the end of a text.
    """
    folded = text.lower()
    return any(
        any(hint in (folded if pattern.folded else text) for hint in pattern.hints)
        and _compiled(pattern.expression, pattern.folded).search(text) is not None
        for pattern in patterns
    )


def find_patterns(text: str, patterns: Iterable[TokenPattern] = PATTERNS) -> list[tuple[int, int, str]]:
    """Start, end and kind of every token, in order, without overlaps; of two that overlap, the row further up wins.

    >>> find_patterns("key=" + "AKIA" + "IOSFODNN7EXAMPLE;")
    [(4, 24, 'AWS access key')]
    """
    found: list[tuple[int, int, int, str]] = []
    folded = ""
    for rank, pattern in enumerate(patterns):
        if pattern.folded and not folded:
            folded = text.lower()
        where = folded if pattern.folded else text
        if not any(hint in where for hint in pattern.hints):
            continue
        expression = _compiled(pattern.expression, pattern.folded)
        group = "key" if "key" in expression.groupindex else 0
        for match in expression.finditer(text):
            if pattern.before and not _stands_before(pattern.before, text, match.start()):
                continue
            if pattern.fits(match[group]):
                found.append((match.start(group), rank, match.end(group), pattern.kind))
    out: list[tuple[int, int, str]] = []
    for start, _, end, kind in sorted(found):
        if not out or start >= out[-1][1]:
            out.append((start, end, kind))
    return out


def _stands_before(expression: str, text: str, end: int) -> bool:
    return _compiled(expression, folded=True).search(text, max(0, end - CONTEXT), end) is not None


@lru_cache(maxsize=256)
def _compiled(expression: str, folded: bool) -> re.Pattern[str]:
    """Compiled when it is first needed: most texts contain no hint of most formats."""
    return re.compile(expression, re.IGNORECASE if folded else 0)
