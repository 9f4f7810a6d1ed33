"""Patterns of commands, word by word."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from toolcrib.access import UNKNOWN_WORD, Access
from toolcrib.rules.match import NO, PARTLY, YES, MatchLevel
from toolcrib.rules.name_patterns import PatternError, name_matches

__all__ = ["CommandPattern", "match_commands"]


class CommandPattern:
    """A compiled pattern of commands. Raises PatternError for a text that cannot be read as words.

    Each word is a pattern of one word. `*` as the last word stands for any number of further words, also none; `**`
    does so anywhere.

    >>> CommandPattern("git push *").matches(("git", "push", "--force"))
    True
    >>> CommandPattern("git push").matches(("git", "push", "--force"))
    False
    >>> CommandPattern("git push ** --force *").matches(("git", "push", "origin", "--force"))
    True
    """

    __slots__ = ("open", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            words = shlex.split(text)
        except ValueError as problem:
            raise PatternError(f"{text!r} cannot be read as words of a command: {problem}") from None
        if not words:
            raise PatternError("an empty command pattern matches nothing")
        self.open = words[-1] == "*"
        self.words = tuple(words[:-1] if self.open else words)

    def with_any_more_words(self) -> CommandPattern:
        """The same pattern, which any further words may follow."""
        return self if self.open else CommandPattern(f"{self.text} *")

    def matches(self, argv: Sequence[str]) -> bool:
        """Whether the pattern matches all words of a command."""
        return self._matched_lengths(argv)[len(self.words)]

    def may_match(self, argv: Sequence[str]) -> bool:
        """Whether the pattern matches for at least one value of the unknown words."""
        if UNKNOWN_WORD not in argv:
            return self.matches(argv)
        return any(self._matched_lengths(argv[: argv.index(UNKNOWN_WORD)]))

    def surely_matches(self, argv: Sequence[str]) -> bool:
        """Whether the pattern matches whatever the unknown words are."""
        if UNKNOWN_WORD not in argv:
            return self.matches(argv)
        return self.open and self.matches(argv[: argv.index(UNKNOWN_WORD)])

    def _matched_lengths(self, argv: Sequence[str]) -> list[bool]:
        """For each number n: whether the first n words of the pattern match all given words."""
        row = [True] + [False] * len(self.words)
        for at, word in enumerate(self.words, 1):
            row[at] = row[at - 1] and word == "**"
        for given in argv:
            new = [False] * len(row)
            for at, word in enumerate(self.words, 1):
                any_number = word == "**"
                new[at] = (
                    (row[at] or new[at - 1]) if any_number else (row[at - 1] and name_matches(word, given))
                )
            new[-1] = new[-1] or (self.open and row[-1])
            if not any(new):
                return new
            row = new
        return row

    def __repr__(self) -> str:
        return f"CommandPattern({self.text!r})"


def match_commands(patterns: Sequence[CommandPattern], access: Access) -> MatchLevel:
    """How far several patterns together match the command of an access."""
    if not access.argv:
        return PARTLY  # nobody knows what an opaque command runs
    if any(pattern.surely_matches(access.argv) for pattern in patterns):
        return PARTLY if access.perhaps else YES
    return PARTLY if any(pattern.may_match(access.argv) for pattern in patterns) else NO
