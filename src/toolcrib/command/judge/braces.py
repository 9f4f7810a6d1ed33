"""Brace expansions as bash makes them: `{a,b}.txt`, `{1..5}`, `{a..e}`. Nested and quoted ones are not read.

Bash makes them before any other expansion, and they depend only on the text of the word.
"""

from __future__ import annotations

import re
from itertools import product

from toolcrib.command.not_proved import NotProved

MAX_WORDS = 100
PLAIN = r"[A-Za-z0-9_./:@%+=*?-]"
LIST = rf"{PLAIN}*(?:,{PLAIN}*)+"
NUMBERS = r"-?[0-9]{1,6}\.\.-?[0-9]{1,6}"
LETTERS = r"[a-z]\.\.[a-z]|[A-Z]\.\.[A-Z]"
INSIDE = f"{LIST}|{NUMBERS}|{LETTERS}"
GROUP = re.compile(rf"\{{({INSIDE})\}}")
BRACED = re.compile(rf"(?:{PLAIN}|,|\{{(?:{INSIDE})\}})+")


def expanded(text: str) -> list[str] | None:
    """The words that bash makes of an unquoted word with brace expansions, in order; None if it has none that we read.

    Raises NotProved where there would be too many words.

    >>> expanded("{a,b}{1..2}.txt"), expanded("{a}.txt")
    (['a1.txt', 'a2.txt', 'b1.txt', 'b2.txt'], None)
    """
    if "{" not in text or not BRACED.fullmatch(text):
        return None
    pieces = GROUP.split(text)  # text and groups in turn
    choices = [_choices(piece) if at % 2 else [piece] for at, piece in enumerate(pieces)]
    count = 1
    for choice in choices:
        count *= len(choice)
        if count > MAX_WORDS:
            raise NotProved(f"a brace expansion to more than {MAX_WORDS} words")
    return [word for parts in product(*choices) if (word := "".join(parts))]


def _choices(inside: str) -> list[str]:
    if "," in inside:
        return inside.split(",")
    first, _, last = inside.partition("..")
    if first.isalpha():
        return [chr(code) for code in _between(ord(first), ord(last))]
    width = max(len(first), len(last)) if _is_padded(first) or _is_padded(last) else 0
    if width and "-" in inside:
        raise NotProved("a brace expansion")
    return [str(number).zfill(width) for number in _between(int(first), int(last))]


def _is_padded(number: str) -> bool:
    digits = number.lstrip("-")
    return len(digits) > 1 and digits[0] == "0"


def _between(first: int, last: int) -> range:
    if abs(last - first) >= MAX_WORDS:
        raise NotProved(f"a brace expansion to more than {MAX_WORDS} words")
    return range(first, last + 1) if first <= last else range(first, last - 1, -1)
