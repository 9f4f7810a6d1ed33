"""POSIX character classes such as `[[:alpha:]]`, which grep and ripgrep know and Python's `re` does not.

Python reads `[[:alpha:]]` as a set of the characters `[:alph` with a `]` behind it, and only warns.
"""

from __future__ import annotations

import re
from typing import Final

# What stands inside of a set; ASCII, as ripgrep has them.
CLASSES: Final = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ", "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~",
    "space": r"\t-\r ", "upper": "A-Z", "word": "0-9A-Z_a-z", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_CLASS: Final = re.compile(r"\[:(\^?)([a-z]+):\]")
_BARE: Final = re.compile(r"\[:\^?(\w+):\]")
_COMMENTS: Final = re.compile(r"\(\?(?:#|[a-zA-Z]*x)")
_SPECIAL: Final = "[&|~-"  # inside a set, Python warns of them, as they may mean something one day


def without_posix_classes(pattern: str) -> str:
    """A regular expression in Python's syntax alone. Raises re.error for a class that it does not know."""
    if "[" not in pattern or _COMMENTS.search(pattern):  # there, a bracket in a comment begins no set
        return pattern
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        if pattern[position] == "[":
            if (bare := _BARE.match(pattern, position)) and bare[1] in CLASSES:
                raise re.error(f"{bare[0]} stands inside of brackets: [{bare[0]}]", pattern, position)
            text, position = _set(pattern, position)
            parts.append(text)
            continue
        end = position + (2 if pattern[position] == "\\" else 1)
        parts.append(pattern[position:end])
        position = end
    return "".join(parts)


def _set(pattern: str, start: int) -> tuple[str, int]:
    """The set that begins at a bracket, as Python writes it, and where it ends."""
    position = start + 2 if pattern.startswith("[^", start) else start + 1
    parts = [pattern[start:position]]
    first = True
    while position < len(pattern) and (first or pattern[position] != "]"):
        first = False
        if found := _CLASS.match(pattern, position):
            parts.append(_members(found))
            position = found.end()
            continue
        low, position = _member(pattern, position)
        parts.append(low)
        if pattern[position : position + 1] == "-" and pattern[position + 1 : position + 2] not in ("", "]"):
            high, position = _member(pattern, position + 1)
            parts.append(f"-{high}")
    return "".join(parts) + pattern[position : position + 1], position + 1


def _member(pattern: str, position: int) -> tuple[str, int]:
    char = pattern[position]
    if char == "\\":
        return pattern[position : position + 2], position + 2
    return (f"\\{char}" if char in _SPECIAL else char), position + 1


def _members(found: re.Match[str]) -> str:
    written, negated, name = found.group(0, 1, 2)
    if negated:
        raise re.error(f"{written} is not known; write [^[:{name}:]]", found.string, found.start())
    if name not in CLASSES:
        known = ", ".join(f"[:{known}:]" for known in CLASSES)
        raise re.error(f"{written} is not known; known are {known}", found.string, found.start())
    return CLASSES[name]
