"""The pattern in a line of a `.gitignore`, as git reads it, as an expression that takes linear time.

Git compares bytes: `?` matches one byte, so paths and patterns are text here with one character for each byte
(`as_bytes`). `*` and `**` are matched at their first occurrence and never reconsidered, as in `glob_patterns`, whose
patterns are others: they know braces and hidden names, and take what is no valid class as it is written.
"""

from __future__ import annotations

import os
import re

MAX_LENGTH = 1_000
FOLDERS = "(?:[^/]*+/)"
PLAIN = re.compile(r"([^*?\[\\]*[^*?\[\\/])\*{2,}\\?/")
CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \\t\\n\\r\\f\\v",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


def as_bytes(path: str) -> str:
    """A path with a character for each of its bytes."""
    return path if path.isascii() else os.fsencode(path).decode("latin-1")


def expression(pattern: str, *, by_name: bool) -> str | None:
    """The expression that matches a name, or a path from the file's folder; None if the pattern matches nothing."""
    if not pattern or len(pattern) > MAX_LENGTH:
        return None
    if by_name:
        name = _segment(pattern)
        return None if name is None else rf"{name}\Z"
    pattern = pattern.removeprefix("/")
    # git compares the plain text in front by itself, so `**` behind it stands at a beginning: f**/bar is for foo/x/bar.
    if plain := PLAIN.match(pattern):
        behind = expression(pattern[plain.end(1) :], by_name=False)
        return None if behind is None else re.escape(plain[1]) + behind
    if (parts := _parts(pattern)) is None:
        return None
    chunks = [""]  # what stands between the `**`
    for number, part in enumerate(parts, 1):
        if len(part) > 1 and not part.strip("*"):
            if number == len(parts):
                chunks[-1] += ".*/"
            elif chunks[-1] or len(chunks) == 1:
                chunks.append("")
            continue
        segment = _segment(part)
        if not part or segment is None:
            return None
        chunks[-1] += segment + "/"
    first, *rest = chunks
    middle = "".join(f"(?>{FOLDERS}*?{chunk})" for chunk in rest[:-1])
    last = f"{FOLDERS}*{rest[-1]}" if rest else ""
    return f"{first}{middle}{last}".removesuffix("/") + r"\Z"


def _parts(pattern: str) -> list[str] | None:
    """The names of a pattern; None if a class in it never ends. A class may hold a slash, which matches nothing."""
    parts, start, index = [], 0, 0
    while index < len(pattern):
        char = pattern[index]
        index += 1
        escaped_slash = char == "\\" and pattern.startswith("/", index)
        if char == "/" or escaped_slash:
            parts.append(pattern[start : index - 1])
            index += escaped_slash
            start = index
        elif char == "\\":
            index += 1
        elif char == "[":
            _, index = _members(pattern, index)
            if not index:
                return None
    return [*parts, pattern[start:]]


def _segment(glob: str) -> str | None:
    """One name's expression. `(?>.*?x)` takes the first x and never reconsiders, which is enough for such a pattern."""
    chunks = [""]
    index = 0
    while index < len(glob):
        char = glob[index]
        index += 1
        if char == "*":
            if chunks[-1] or len(chunks) == 1:
                chunks.append("")
        elif char == "?":
            chunks[-1] += "[^/]"
        elif char == "[":
            found, index = _members(glob, index)
            if not index:
                return None
            chunks[-1] += found
        elif char == "\\":
            if index == len(glob):
                return None
            chunks[-1] += re.escape(glob[index])
            index += 1
        else:
            chunks[-1] += re.escape(char)
    first, *rest = chunks
    if not rest:
        return first
    return first + "".join(f"(?>[^/]*?{chunk})" for chunk in rest[:-1] if chunk) + "[^/]*" + rest[-1]


def _members(glob: str, index: int) -> tuple[str, int]:
    """The expression of a class that begins before `index`, and where it ends; 0 if it never does."""
    negated = glob[index : index + 1] in ("!", "^")
    index += negated
    start, members, before = index, "", ""
    while index < len(glob) and (glob[index] != "]" or index == start):
        if glob.startswith("[:", index):
            close = glob.find("]", index + 2)
            if close < 0:
                return "", 0
            if glob[close - 1] == ":" and close > index + 2:
                if (known := CLASSES.get(glob[index + 2 : close - 1])) is None:
                    return "", 0
                members, before, index = members + known, "", close + 1
                continue
        if glob[index] == "-" and before and index + 1 < len(glob) and glob[index + 1] != "]":
            last, index = _member(glob, index + 1)
            if not index:
                return "", 0
            if before <= last:
                members += f"{_escaped(before)}-{_escaped(last)}"
            before = ""
            continue
        before, index = _member(glob, index)
        if not index:
            return "", 0
        members += _escaped(before)
    if index >= len(glob):
        return "", 0
    inside = f"[{'^' if negated else ''}{members}]" if members else "[^/]" if negated else "(?!)"
    return f"(?!/){inside}", index + 1


def _member(glob: str, index: int) -> tuple[str, int]:
    if glob[index] != "\\":
        return glob[index], index + 1
    return (glob[index + 1], index + 2) if index + 1 < len(glob) else ("", 0)


def _escaped(char: str) -> str:
    return f"\\x{ord(char):02x}"
