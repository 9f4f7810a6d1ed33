"""Finds the text that an edit means: first exactly, then ignoring differences of typography or indentation only.

The accepted differences are a closed list, and a match must be the only one in the file: 1. the text as given,
line breaks of either kind taken as equal; 2. characters that stand for the same one (curly quotes, dashes, odd
spaces, full-width letters); 3. whole lines that differ at their ends, or are all indented by the same amount
more or less, or where each indentation stands for one of the file's, as tabs for spaces. Looser matching (similar
lines, equal first and last lines, other spacing inside a line) has corrupted files in other systems; here such a
place is only reported as the nearest candidate. All matching works on spans of the original, so that nothing outside
the match changes.

Each pass costs a few searches of the whole text: lines are compared only where their longest one occurs.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from functools import cache

from toolcrib.dataclass import dataclass

ENOUGH = 11  # tolerant matches after which the search ends: more than one is an error in any case

SAME = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u00a0\u1680\u202f\u205f\u3000", " "),
    **{chr(code): " " for code in range(0x2000, 0x200B)},
}
# Where Unicode has other forms of one character: signs, letters of mathematics, full and half width.
OTHER_FORMS = (
    (0xA0, 0x180),
    (0x2000, 0x2500),
    (0x3000, 0x3400),
    (0xF900, 0xFB50),
    (0xFE30, 0xFFF0),
    (0x1D400, 0x1D800),
)
ASCII = bytes(range(128))
TAB_WIDTHS = {1, 2, 3, 4}  # of more spaces, nobody can tell whether they are one tab or two


@dataclass(frozen=True, slots=True)
class Match:
    """A span of the text, its replacement, and how the span differs from the wanted text (empty: not at all)."""

    start: int
    end: int
    new: str
    differs: str = ""


class Source:
    """A text with `\\n` line breaks only, that remembers where its `\\r` were."""

    __slots__ = ("_all_returns", "_folded", "_returns", "main_break", "original", "text")

    def __init__(self, original: str) -> None:
        self.original = original
        self.text = original.replace("\r\n", "\n") if "\r" in original else original
        self._returns: list[int] | None = None
        self._folded: str | None = None
        removed = len(original) - len(self.text)
        breaks = self.text.count("\n") if removed else 0
        self._all_returns = removed == breaks
        self.main_break = "\r\n" if removed * 2 > breaks else "\n"

    @property
    def folded(self) -> str:
        """The text with plain characters in the place of typographic ones."""
        if self._folded is None:
            self._folded = fold(self.text)
        return self._folded

    def original_offset(self, offset: int) -> int:
        if len(self.text) == len(self.original):
            return offset
        if self._all_returns:
            return offset + self.text.count("\n", 0, offset)
        if self._returns is None:
            found = re.finditer("\r\n", self.original)
            self._returns = [match.start() - index for index, match in enumerate(found)]
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


def find_exact(text: str, old: str, new: str, *, overlapping: bool = False) -> list[Match]:
    """Every occurrence of `old`; of those that overlap only the first, but where they count as places of their own."""
    found: list[Match] = []
    at = text.find(old) if old else -1
    while at >= 0:
        found.append(Match(at, at + len(old), new))
        at = text.find(old, at + (1 if overlapping else len(old)))
    return found


def find_tolerant(source: Source, old: str, new: str) -> list[Match]:
    """Places that differ from `old` only in the accepted ways; see the module's docstring."""
    folded, wanted = source.folded, fold(old)
    found: list[Match] = []
    if folded is not source.text or wanted is not old:
        found = [
            Match(match.start, match.end, new, "quotes, dashes or spaces of another kind")
            for match in find_exact(folded, wanted, new)
        ]
    return found or _find_lines(source.text, folded, wanted, new)


def fold(text: str) -> str:
    """The text with each typographic character replaced by its plain equivalent; the length stays the same."""
    if text.isascii():
        return text
    plain = _plain_forms()
    # ASCII is removed first, which is fast on bytes and leaves little of most texts.
    rest = text.encode("utf-8", "ignore").translate(None, ASCII).decode()
    for char in plain.keys() & set(rest):
        text = text.replace(char, plain[char])
    return text


@cache
def _plain_forms() -> dict[str, str]:
    """The plain equivalent of each typographic character."""
    plain: dict[str, str] = {}
    for first, end in OTHER_FORMS:
        for char in map(chr, range(first, end)):
            other = unicodedata.normalize("NFKC", char)
            if len(other) == 1 and other != char:
                plain[char] = other
    plain.update(SAME)
    return plain


def _find_lines(text: str, folded: str, wanted: str, new: str) -> list[Match]:
    """Whole lines that are equal when stripped; `shifted` compares their indentation."""
    whole = wanted.endswith("\n")
    lines = wanted.split("\n")[: -1 if whole else None]
    stripped = [_composed(line) for line in lines]
    if not any(stripped):
        return []
    index = max(range(len(lines)), key=lambda number: _distinct(stripped[number]))
    found: list[Match] = []
    for at in _starts_of_lines(folded, stripped[index]):
        start = _lines_back(text, at, index)
        end = start
        for want in stripped if start >= 0 else ():
            stop = folded.find("\n", end)
            stop = len(folded) if stop < 0 else stop
            if end > len(folded) or _composed(folded[end:stop]) != want:
                break
            end = stop + 1
        else:
            if start < 0:
                continue
            there = text[start : end - 1].split("\n")
            end = min(end, len(text)) if whole else end - 1
            found.append(shifted(there, lines, new, start, end))
            if len(found) == ENOUGH:
                break
    return found


def _distinct(line: str) -> tuple[int, bool, int]:
    """How good a line is to search for, to compare: not empty, then in ASCII, which has one form only, then long."""
    return min(len(line), 1), line.isascii(), len(line)


def _starts_of_lines(text: str, key: str) -> list[int]:
    """The starts of the lines that contain a text, each once."""
    starts: dict[int, None] = {}
    for form in dict.fromkeys((key, unicodedata.normalize("NFD", key))):
        at = text.find(form)
        while at >= 0:
            starts[text.rfind("\n", 0, at) + 1] = None
            at = text.find("\n", at)
            at = text.find(form, at) if at >= 0 else -1
    return sorted(starts)


def _lines_back(text: str, start: int, count: int) -> int:
    """The start of the line so many lines above the one that starts here; -1 if there is none."""
    for _ in range(count):
        if start == 0:
            return -1
        start = text.rfind("\n", 0, start - 1) + 1
    return start


UNSAFE = "indentation that differs from line to line"
REINDENTED = "the indentation of its lines, which was adjusted"


def shifted(there: list[str], wanted: list[str], new: str, start: int, end: int) -> Match:
    shifts = {
        _shift(indent_of(line), indent_of(want))
        for line, want in zip(there, wanted, strict=True)
        if want.strip()
    }
    if shifts == {("", "")}:
        return Match(
            start, end, new, "spaces at the ends of lines, or how letters and accents are put together"
        )
    if len(shifts) != 1 or None in shifts:
        placed = _reindented(there, wanted, new)
        return Match(start, end, new, UNSAFE) if placed is None else Match(start, end, placed, REINDENTED)
    more, less = next(iter(shifts)) or ("", "")
    lines = new.split("\n")
    if _first_indent(lines) == _first_indent(there) != _first_indent(wanted):
        return Match(start, end, new, "its indentation; new_string was indented right and put in as it is")
    if any(line.strip() and not line.startswith(less) for line in lines):
        return Match(start, end, new, UNSAFE)
    moved = "\n".join(more + line.removeprefix(less) if line.strip() else line for line in lines)
    return Match(start, end, moved, "the indentation of all its lines, which was adjusted")


def _reindented(there: list[str], wanted: list[str], new: str) -> str | None:
    """The new text with the indentation of the file's lines in the place of that of the wanted ones.

    A line that is indented like none of the wanted ones is placed by the width of a tab, if one text has tabs and the
    other spaces. None where that does not tell, or where one indentation stands for several.
    """
    pairs = [
        (indent_of(line), indent_of(want)) for line, want in zip(there, wanted, strict=True) if want.strip()
    ]
    known: dict[str, str] = {}
    if any(known.setdefault(want, line) != line for line, want in pairs):
        return None
    if width := _tab_width(pairs):
        old, put = "\t", " " * width
    else:
        width = _tab_width([(want, line) for line, want in pairs])
        old, put = " " * width, "\t"
    lines: list[str] = []
    for line in new.split("\n"):
        indent = indent_of(line)
        if not line.strip():
            lines.append(line)
            continue
        if indent not in known:
            placed = indent.replace(old, put) if width and indent.strip(put[0]) else indent
            if not width or placed.strip(put[0]):
                return None
            known[indent] = placed
        lines.append(known[indent] + line[len(indent) :])
    return "\n".join(lines)


def _tab_width(pairs: list[tuple[str, str]]) -> int:
    """How many spaces stand for one tab in pairs of indentation in spaces and in tabs; 0 if that differs."""
    widths: set[int] = set()
    for spaces, tabs in pairs:
        if spaces.strip(" ") or tabs.strip("\t") or bool(spaces) != bool(tabs):
            return 0
        if tabs:
            widths.add(len(spaces) // len(tabs) if len(spaces) % len(tabs) == 0 else 0)
    return widths.pop() if len(widths) == 1 and widths <= TAB_WIDTHS else 0


def _composed(line: str) -> str:
    """A line, stripped, in Unicode's composed form."""
    line = line.strip()
    return line if line.isascii() else unicodedata.normalize("NFC", line)


def _first_indent(lines: list[str]) -> str | None:
    return next((indent_of(line) for line in lines if line.strip()), None)


def _shift(there: str, want: str) -> tuple[str, str] | None:
    """(what the file has before the wanted indentation, what it lacks of that); None if neither ends with the other."""
    if there.endswith(want):
        return there[: len(there) - len(want)], ""
    if want.endswith(there):
        return "", want[: len(want) - len(there)]
    return None


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
