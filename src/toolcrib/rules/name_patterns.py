"""Patterns of one name, such as a tool's name, a word of a command or a piece of a path.

`*` stands for any characters, `?` for one, `[abc]`, `[a-z]` and `[!abc]` for one of a set. Case counts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

__all__ = [
    "ANYTHING",
    "WILDCARD",
    "PatternError",
    "any_name_matches",
    "name_expression",
    "name_matches",
    "selected",
]

ANYTHING = re.compile(r"[*?]+")  # a word or name that stands for any other
WILDCARD = re.compile(r"[*?\[]")


class PatternError(ValueError):
    """A pattern that cannot mean what its author thinks; the text says why."""


def any_name_matches(patterns: Iterable[str], name: str) -> bool:
    """Whether at least one of several patterns matches a name."""
    return any(name_matches(pattern, name) for pattern in patterns)


def selected(patterns: Iterable[str], name: str) -> bool:
    """Whether a selection has a name: a pattern matches it, or there are only "!" ones, and no "!pattern" matches.

    >>> [selected(patterns, "grep") for patterns in ((), ("g*",), ("g*", "!grep"), ("!glob",))]
    [True, True, False, True]
    """
    given = tuple(patterns)
    wanted = [pattern for pattern in given if not pattern.startswith("!")]
    left_out = [pattern[1:] for pattern in given if pattern.startswith("!")]
    return (not wanted or any_name_matches(wanted, name)) and not any_name_matches(left_out, name)


def name_matches(pattern: str, name: str) -> bool:
    """Whether a pattern matches a whole name.

    >>> name_matches("mcp_*", "mcp_search"), name_matches("mcp_*", "MCP_search"), name_matches("[!a]?", "bc")
    (True, False, True)
    """
    expression = _compiled(pattern)
    return pattern == name if expression is None else expression.fullmatch(name) is not None


@functools.lru_cache(4096)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """The regular expression of a pattern; None for a pattern without wildcards."""
    try:
        return re.compile(name_expression(pattern), re.DOTALL) if WILDCARD.search(pattern) else None
    except re.error as problem:
        raise PatternError(f"{pattern!r} cannot be read: {problem}") from None


def name_expression(pattern: str, char: str = ".") -> str:
    """A pattern as a regular expression, in which `char` matches any character.

    Each text between two stars is matched where it first occurs and never looked for again (`(?>...)`), so that the
    time grows with pattern times name.
    """
    chunks = [""]  # the texts between the stars
    position = 0
    while position < len(pattern):
        mark = pattern[position]
        position += 1
        if mark == "*":
            chunks.append("")
        elif mark == "?":
            chunks[-1] += char
        elif mark == "[" and (end := _set_end(pattern, position)) > 0:
            inner = pattern[position:end]
            negated = "^" if inner[:1] in ("!", "^") else ""
            members = inner[1:] if negated else inner
            no_slash = "(?!/)" if negated or char != "." else ""  # a range may hold a slash
            safe = "".join(one if one.isalnum() or one == "-" else re.escape(one) for one in members)
            chunks[-1] += f"{no_slash}[{negated}{safe}]"
            position = end + 1
        else:
            chunks[-1] += re.escape(mark)
    first, *rest = chunks
    if not rest:
        return first
    return first + "".join(f"(?>{char}*?{chunk})" for chunk in rest[:-1] if chunk) + f"{char}*{rest[-1]}"


def _set_end(pattern: str, start: int) -> int:
    """Where a set closes; a `]` that comes first is a member. -1 if it never does."""
    first = start + 1 if pattern[start : start + 1] in ("!", "^") else start
    return pattern.find("]", first + 1)
