"""Finds the text that an edit means: first exactly, then ignoring differences of typography or indentation only.

The accepted differences are a closed list, and a match must be the only one in the file: 1. the text as given,
line breaks of either kind taken as equal; 2. characters that stand for the same one (curly quotes, dashes, odd
spaces, full-width letters); 3. whole lines that differ at their ends, or are all indented by the same amount
more or less. Looser matching (similar lines, equal first and last lines, other spacing inside a line) has
corrupted files in other systems; here such a place is only reported as the nearest candidate. All matching
works on spans of the original, so that nothing outside the match changes.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass

LOOKED_AT = 60  # lines of the wanted text that vote for a place
CANDIDATES = 2
ENOUGH = 11  # tolerant matches after which no more are looked for: two are too many already
SHOWN_LINES = 6
SHOWN_CHARS = 200

SAME = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u00a0\u1680\u202f\u205f\u3000", " "),
    **{chr(code): " " for code in range(0x2000, 0x200B)},
}


@dataclass(frozen=True, slots=True)
class Match:
    """A span of the text, its replacement, and how the span differs from the wanted text (empty: not at all)."""

    start: int
    end: int
    new: str
    differs: str = ""


class Source:
    """A text with `\\n` line breaks only, that remembers where its `\\r` were."""

    __slots__ = ("_returns", "main_break", "original", "text")

    def __init__(self, original: str) -> None:
        self.original = original
        self.text = original.replace("\r\n", "\n")
        self._returns: list[int] = []
        if len(self.text) != len(original):
            at = original.find("\r\n")
            while at >= 0:
                self._returns.append(at - len(self._returns))
                at = original.find("\r\n", at + 2)
        self.main_break = "\r\n" if len(self._returns) * 2 > self.text.count("\n") else "\n"

    def original_offset(self, offset: int) -> int:
        return offset + bisect_left(self._returns, offset)

    def replace(self, matches: list[Match]) -> str:
        """The original with the matches replaced, in order; each span keeps its kind of line break."""
        parts: list[str] = []
        done = 0
        for match in matches:
            start, end = self.original_offset(match.start), self.original_offset(match.end)
            old = self.original[start:end]
            line_break = "\r\n" if "\r\n" in old else "\n" if "\n" in old else self.main_break
            parts += [self.original[done:start], match.new.replace("\n", line_break)]
            done = end
        parts.append(self.original[done:])
        return "".join(parts)

    def line_of(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1


def find_exact(text: str, old: str, new: str) -> list[Match]:
    """Every non-overlapping occurrence of `old`."""
    found: list[Match] = []
    at = text.find(old) if old else -1
    while at >= 0:
        found.append(Match(at, at + len(old), new))
        at = text.find(old, at + len(old))
    return found


def find_tolerant(text: str, old: str, new: str) -> list[Match]:
    """Places that differ from `old` only in the accepted ways; see the module's docstring."""
    found = [
        Match(match.start, match.end, new, "quotes, dashes or spaces of another kind")
        for match in find_exact(fold(text), fold(old), new)
    ]
    return found or _find_lines(text, old, new)


def fold(text: str) -> str:
    """The text with each typographic character replaced by its plain equivalent; the length stays the same."""
    if text.isascii():
        return text
    table: dict[int, str] = {}
    for char in set(text):
        if char >= "\x80":
            plain = SAME.get(char) or unicodedata.normalize("NFKC", char)
            if len(plain) == 1 and plain != char:
                table[ord(char)] = plain
    return text.translate(table)


def _find_lines(text: str, old: str, new: str) -> list[Match]:
    """Whole lines that are equal when stripped; `_shifted` compares their indentation."""
    whole = old.endswith("\n")
    wanted = fold(old).split("\n")[: -1 if whole else None]
    if not any(line.strip() for line in wanted):
        return []
    lines = text.split("\n")
    stripped = [_composed(line) for line in fold(text).split("\n")]
    starts = [0]
    for line in stripped:
        starts.append(starts[-1] + len(line) + 1)
    haystack = "\n" + "\n".join(stripped) + "\n"
    needle = "\n" + "\n".join(_composed(line) for line in wanted) + "\n"
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    found: list[Match] = []
    at = haystack.find(needle)
    while at >= 0 and len(found) < ENOUGH:
        first = bisect_left(starts, at)
        last = first + len(wanted)
        end = offsets[last] if whole and last < len(lines) else offsets[last] - 1
        found.append(_shifted(lines[first:last], wanted, new, offsets[first], end))
        at = haystack.find(needle, at + 1)
    return found


UNSAFE = "indentation that differs from line to line"


def _shifted(there: list[str], wanted: list[str], new: str, start: int, end: int) -> Match:
    shifts = {
        _shift(_indent(line), _indent(want)) for line, want in zip(there, wanted, strict=True) if want.strip()
    }
    if shifts == {("", "")}:
        return Match(
            start, end, new, "spaces at the ends of lines, or how letters and accents are put together"
        )
    if len(shifts) != 1 or None in shifts:
        return Match(start, end, new, UNSAFE)
    more, less = next(iter(shifts)) or ("", "")
    lines = new.split("\n")
    if _first_indent(lines) == _first_indent(there) != _first_indent(wanted):
        return Match(start, end, new, "its indentation; new_string was indented right and put in as it is")
    if any(line.strip() and not line.startswith(less) for line in lines):
        return Match(start, end, new, UNSAFE)
    shifted = "\n".join(more + line.removeprefix(less) if line.strip() else line for line in lines)
    return Match(start, end, shifted, "the indentation of all its lines, which was adjusted")


def _composed(line: str) -> str:
    """A line, stripped, in Unicode's composed form."""
    line = line.strip()
    return line if line.isascii() else unicodedata.normalize("NFC", line)


def _first_indent(lines: list[str]) -> str | None:
    return next((_indent(line) for line in lines if line.strip()), None)


def _shift(there: str, want: str) -> tuple[str, str] | None:
    """The indentation that the file's line has more, and less, than the wanted line; None if neither starts
    like the other.
    """
    if there.endswith(want):
        return there[: len(there) - len(want)], ""
    if want.endswith(there):
        return "", want[: len(want) - len(there)]
    return None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def nearest(text: str, old: str) -> list[tuple[int, list[str], str]]:
    """The places most similar to `old`: line number, lines, and the first difference."""
    wanted = old.strip("\n").split("\n")
    lines = text.removesuffix("\n").split("\n")
    keys: dict[str, int] = {}
    for index, line in enumerate(wanted[:LOOKED_AT]):
        if key := _key(line):
            keys.setdefault(key, index)
    votes: Counter[int] = Counter()
    for number, line in enumerate(lines):
        at = keys.get(_key(line))
        if at is not None:
            votes[number - at] += len(line.strip())
    starts = [max(0, start) for start, _ in votes.most_common(CANDIDATES)] or _similar(lines, wanted)
    return [
        (start + 1, lines[start : start + len(wanted)], _difference(lines[start:], wanted))
        for start in dict.fromkeys(starts)
    ]


def _key(line: str) -> str:
    """A line without what models most often get wrong: case, spacing and quotes."""
    return "".join(fold(line).casefold().replace('"', "'").split())


def _similar(lines: list[str], wanted: list[str]) -> list[int]:
    """The places whose line shares most words with the most distinctive line of the wanted text."""
    index, line = max(enumerate(wanted[:LOOKED_AT]), key=lambda pair: len(pair[1].strip()))
    words = set(_words(line))
    if not words:
        return []
    best, best_share = -1, 0.4
    for number, other in enumerate(lines):
        theirs = set(_words(other[:SHOWN_CHARS]))
        share = len(words & theirs) / len(words | theirs)
        if share > best_share:
            best, best_share = number, share
    return [max(0, best - index)] if best >= 0 else []


def _words(line: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in line.casefold()).split()


def _difference(there: list[str], wanted: list[str]) -> str:
    for index, want in enumerate(wanted):
        if index >= len(there):
            return f"the file ends after {index} of the {len(wanted)} lines"
        line = there[index]
        if line == want:
            continue
        where = f"line {index + 1} of old_string differs "
        if line.strip() == want.strip():
            same_start = _indent(line) == _indent(want)
            return where + ("in spaces at its end" if same_start else "in its indentation")
        if "".join(line.split()) == "".join(want.split()):
            return where + "in its spacing"
        if fold(line).replace('"', "'").strip() == fold(want).replace('"', "'").strip():
            return where + "in its quotes or other typography"
        if line.casefold().strip() == want.casefold().strip():
            return where + "in upper and lower case"
        return where + "in its text"
    return "only the surroundings differ"
