"""Expands a word to arguments, as bash does: inserts what substitutions print, and matches patterns against names.

Matches are sorted by their characters, and a pattern that matches nothing stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from toolcrib.command.plan import Glob, LoopName, Substitution, Word

MAX_NAMES = 20_000  # to which one pattern expands
SPLIT = re.compile(r"[ \t\n*?\[\\]")  # what a shell splits, or takes for a pattern, outside of quotes
BLANKS = re.compile(r"[ \t\n]+")


def expand(word: Word, printed: Sequence[str], names: Callable[[str], list[str]]) -> list[str]:
    """The arguments that one word expands to.

    `printed` has one text for each substitution in the word. `names` lists a folder and may raise OSError. Raises
    ValueError for a pattern that matches too many names: a command that got only some of them would answer wrongly.
    """
    if (text := word.literal) is not None:
        return [text]
    if word.is_glob:
        return _matches(word, names)
    return _fields(word, printed)


def named_word(word: Word, names: Mapping[str, str]) -> Word:
    """The word with loop variables replaced by their values in `names`.

    Raises ValueError for an unquoted value that a shell would split or expand again.
    """
    if not word.names_of_loops:
        return word
    parts: list[str | Glob | Substitution] = []
    for part in word.parts:
        text = part
        if isinstance(part, LoopName):
            text = names[part.variable]
            if not part.quoted and text != part.sign and SPLIT.search(text):
                raise ValueError(f'{text!r} would become other words: write "${part.variable}", with quotes')
        if isinstance(text, str) and parts and isinstance(before := parts[-1], str):
            parts[-1] = before + text
        else:
            parts.append(text)
    return Word(tuple(parts))


def _fields(word: Word, printed: Sequence[str]) -> list[str]:
    """Splits unquoted substitutions at blanks; text that touches them stays with their first and last piece."""
    fields: list[str] = []
    current: str | None = None
    texts = iter(printed)
    for part in word.parts:
        if isinstance(part, str):
            current = (current or "") + part
        elif isinstance(part, Substitution):
            text = next(texts)
            if part.quoted:
                current = (current or "") + text
                continue
            for index, piece in enumerate(BLANKS.split(text)):
                if index and current is not None:
                    fields.append(current)
                    current = None
                if piece:
                    current = (current or "") + piece
    return fields if current is None else [*fields, current]


def _matches(word: Word, names: Callable[[str], list[str]]) -> list[str]:
    segments = _segments(word)
    found = [""]
    for index, (pattern, literal) in enumerate(segments):
        last = index + 1 == len(segments)
        matched = (path for base in found for path in _below(base, pattern, literal, last, names))
        found = list(islice(matched, MAX_NAMES + 1))
        if len(found) > MAX_NAMES:
            raise ValueError(
                f"{word.spelled} matches more than {MAX_NAMES:,} names: write a narrower pattern, or find … | xargs …"
            )
    return sorted(found) or [word.spelled]


def _segments(word: Word) -> list[tuple[re.Pattern[str] | None, str]]:
    """The parts between slashes, each a literal or a pattern."""
    segments: list[tuple[re.Pattern[str] | None, str]] = []
    regex, text, is_pattern = "", "", False
    for part in (*word.parts, "/"):
        if isinstance(part, Glob):
            regex += {"*": ".*", "?": "."}.get(part.sign) or part.sign.replace("[!", "[^")
            text += part.sign
            is_pattern = True
            continue
        if not isinstance(part, str):
            continue
        *closed, rest = part.split("/")
        for piece in closed:
            regex, text = regex + re.escape(piece), text + piece
            segments.append((re.compile(regex, re.DOTALL) if is_pattern else None, text))
            regex, text, is_pattern = "", "", False
        regex, text = regex + re.escape(rest), text + rest
    return segments


def _below(
    base: str,
    pattern: re.Pattern[str] | None,
    literal: str,
    last: bool,
    names: Callable[[str], list[str]],
) -> list[str]:
    end = "" if last else "/"
    try:
        if pattern is None:
            # A literal after a pattern has to exist; before the first one it is only the way there.
            if base and last and literal and literal not in names(base):
                return []
            return [base + literal + end]
        found = [
            name
            for name in names(base or ".")
            if pattern.fullmatch(name) and (not name.startswith(".") or literal.startswith("."))
        ]
        return [base + name + end for name in found if last or _is_folder(base + name, names)]
    except OSError:
        return []


def _is_folder(path: str, names: Callable[[str], list[str]]) -> bool:
    try:
        names(path)
    except OSError:
        return False
    return True
