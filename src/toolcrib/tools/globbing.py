"""Patterns for file names: one contract for `glob`, for grep's `include` and for .gitignore files.

- A pattern without a slash is compared with the name alone, in any folder: `*.py`.
- One with a slash is compared with the path from the folder that is searched: `src/*.py`; a leading slash
  ties a name to that folder: `/*.py`. `**` stands for any number of folders.
- `*`, `?` and `[...]` do not match the dot that a hidden name begins with, and `**` does not go into hidden
  folders; write the dot: `.*`, `.github/**`. `{a,b}` stands for either. `..` is refused.

Matching takes time in proportion to pattern times path, whatever the pattern: every `*` but the last of a
name is matched without going back, and folders are matched by a table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_LENGTH = 1_000
MAX_ALTERNATIVES = 64  # what braces may stand for

Segment = re.Pattern[str] | None  # None: `**`, any number of folders


@dataclass(frozen=True, slots=True)
class Alternative:
    """One pattern without braces. `anywhere`: it is compared with the name alone."""

    anywhere: bool
    segments: tuple[Segment, ...]


class PatternError(ValueError):
    """The pattern is refused; the text says why, for the model."""


class Glob:
    """A compiled pattern; raises PatternError.

    >>> [path for path in ("a.py", "src/b.py", ".x.py") if Glob("*.py").matches(path)]
    ['a.py', 'src/b.py']
    """

    __slots__ = ("_alternatives", "dotfiles", "pattern")

    def __init__(self, pattern: str, *, dotfiles: bool = False, braces: bool = True) -> None:
        if len(pattern) > MAX_LENGTH:
            raise PatternError(f"pattern_too_broad: the pattern is longer than {MAX_LENGTH} characters")
        self.pattern = pattern
        self.dotfiles = dotfiles
        self._alternatives = [
            _compile(text.removeprefix("./"), dotfiles)
            for text in (_expand(pattern) if braces else [pattern])
        ]

    def matches(self, path: str) -> bool:
        """Whether a path relative to the searched folder fits."""
        if path == self.pattern:  # names like [id].tsx, written as they are
            return True
        parts = path.split("/")
        return any(_fits(one, parts, self.dotfiles) for one in self._alternatives)

    def base(self) -> str:
        """The folder that all matches lie below, as far as the pattern writes it out; empty for any."""
        if len(self._alternatives) > 1:
            return ""
        parts = _parts(self.pattern)[:-1]
        plain: list[str] = []
        for part in parts:
            if re.search(r"[*?\[\\{]", part):
                break
            plain.append(part)
        return "/".join(plain)


def _compile(pattern: str, dotfiles: bool) -> Alternative:
    parts = _parts(pattern)
    if ".." in parts:
        raise PatternError('invalid_pattern: ".." is not allowed; give the folder to search as path')
    segments: list[Segment] = []
    for part in parts:
        if part != "**":
            segments.append(_segment(part, dotfiles))
        elif not segments or segments[-1] is not None:
            segments.append(None)
    if segments and segments[-1] is None:
        segments.append(_segment("*", dotfiles))  # something below, not the folder itself
    return Alternative("/" not in pattern and pattern != "**", tuple(segments))


def _parts(pattern: str) -> list[str]:
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if pattern.endswith("/"):
        parts.append("**")
    return parts


def _fits(alternative: Alternative, parts: list[str], dotfiles: bool) -> bool:
    segments = alternative.segments
    if not segments:
        return False
    last = segments[-1]
    if last is None or not last.match(parts[-1]):
        return False
    if alternative.anywhere:
        return True
    # reached[i]: the pattern so far fits the first i parts
    reached = [True] + [False] * len(parts)
    for segment in segments:
        following = [False] * (len(parts) + 1)
        for index, part in enumerate(parts):
            if segment is None:
                following[index] |= reached[index]
                if following[index] and (dotfiles or not part.startswith(".")):
                    following[index + 1] = True
            elif reached[index] and segment.match(part):
                following[index + 1] = True
        if segment is None:
            following[-1] |= reached[-1]
        if True not in following:
            return False
        reached = following
    return reached[-1]


def _segment(glob: str, dotfiles: bool) -> re.Pattern[str]:
    """One name's pattern. `(?>.*?x)` takes the first x and never reconsiders, which is enough for a glob."""
    chunks: list[str] = [""]
    index = 0
    while index < len(glob):
        char = glob[index]
        index += 1
        if char == "*":
            if chunks[-1] or len(chunks) == 1:
                chunks.append("")
        elif char == "?":
            chunks[-1] += "."
        elif char == "[" and (close := _class_end(glob, index)) > 0:
            chunks[-1] += _class(glob[index:close])
            index = close + 1
        elif char == "\\" and index < len(glob):
            chunks[-1] += re.escape(glob[index])
            index += 1
        else:
            chunks[-1] += re.escape(char)
    guard = "" if dotfiles or glob[:1] not in ("*", "?", "[") else r"(?!\.)"
    first, *rest = chunks
    body = first
    if rest:
        body += "".join(f"(?>.*?{chunk})" for chunk in rest[:-1] if chunk) + ".*" + rest[-1]
    try:
        return re.compile(f"(?s:{guard}{body})\\Z")
    except re.error:
        return re.compile(r"(?!)")


def _class_end(glob: str, start: int) -> int:
    """Where a bracket closes; a `]` that comes first is a member. 0 if it never does."""
    search = start
    if glob[search : search + 1] in ("!", "^"):
        search += 1
    return max(glob.find("]", search + 1), 0)


def _class(inner: str) -> str:
    negated = inner[0] in "!^"
    members = inner[1:] if negated else inner
    safe = "".join(char if char.isalnum() or char == "-" else "\\" + char for char in members)
    return f"[{'^' if negated else ''}{safe}]"


def _expand(pattern: str) -> list[str]:
    """What the braces of a pattern stand for, innermost first."""
    done: list[str] = []
    todo = [pattern]
    while todo:
        text = todo.pop()
        found = re.search(r"\{([^{}]*,[^{}]*)\}", text)
        if found is None:
            done.append(text)
        else:
            head, tail = text[: found.start()], text[found.end() :]
            todo += [head + choice + tail for choice in reversed(found[1].split(","))]
        if len(done) + len(todo) > MAX_ALTERNATIVES:
            raise PatternError(
                f"pattern_too_broad: the braces stand for more than {MAX_ALTERNATIVES} patterns"
            )
    return done
