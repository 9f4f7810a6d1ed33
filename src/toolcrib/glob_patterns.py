"""Patterns for file names: one contract for `glob` and for grep's `include`.

- A pattern without a slash is compared with the name alone, in any folder: `*.py`.
- One with a slash is compared with the path from the folder that is searched: `src/*.py`; a leading slash
  ties a name to that folder: `/*.py`. `**` stands for any number of folders.
- `*`, `?` and `[...]` do not match the dot that a hidden name begins with, and `**` does not go into hidden
  folders; write the dot: `.*`, `.github/**`. With `dotfiles` they match it. `{a,b}` stands for either. `..` is refused.

A pattern is compiled to one expression over the whole path, and matching takes time proportional to pattern
times path, whatever the pattern: the text before the last `*` of a name, and before the last `**`, is matched
at its first occurrence and never reconsidered. By hand, because the libraries for such patterns backtrack
exponentially. The lines of a .gitignore are read by git's rules instead, in `ignore_patterns`.
"""

from __future__ import annotations

import re

MAX_LENGTH = 1_000
MAX_ALTERNATIVES = 64  # patterns that the braces of one may expand to
ANY_FOLDERS = "**"


class GlobError(ValueError):
    """The pattern is refused. The text is an error code for programs, a colon, and the reason for the model."""


class GlobPattern:
    """A compiled pattern; raises GlobError.

    >>> [path for path in ("a.py", "src/b.py", ".x.py") if GlobPattern("*.py").matches(path)]
    ['a.py', 'src/b.py']
    """

    __slots__ = ("_match", "expression", "pattern")

    def __init__(self, pattern: str, *, dotfiles: bool = False) -> None:
        if len(pattern) > MAX_LENGTH:
            raise GlobError(f"pattern_too_broad: it is longer than {MAX_LENGTH} characters")
        self.pattern = pattern
        # Names like [id].tsx fit as they are written, too.
        self.expression = "|".join(
            [
                *(_compile(text.removeprefix("./"), dotfiles) for text in expand_lists(pattern)),
                re.escape(pattern) + r"\Z",
            ]
        )
        self._match = re.compile(self.expression).match

    def matches(self, path: str) -> bool:
        """Whether a path relative to the searched folder matches."""
        return self._match(path) is not None

    def base(self) -> str:
        """The literal folder at the start of the pattern, below which all matches lie; empty without one."""
        parts = _parts(self.pattern)[:-1]
        plain: list[str] = []
        for part in parts:
            if re.search(r"[*?\[\\{]", part):
                break
            plain.append(part)
        return "/".join(plain)


def _compile(pattern: str, dotfiles: bool) -> str:
    """The expression of one pattern without braces."""
    parts = _parts(pattern)
    if ".." in parts:
        raise GlobError('invalid_pattern: ".." is not allowed; give the folder to search as path')
    if not parts:
        return "(?!)"
    if parts[-1] == ANY_FOLDERS:
        parts.append("*")  # something below, not the folder itself
    if "/" not in pattern and pattern != ANY_FOLDERS:  # the name alone
        return rf"(?:[^/]*+/)*+{_segment(parts[0], dotfiles)}\Z"
    chunks = [""]  # what stands between the `**`
    for part in parts:
        if part == ANY_FOLDERS:
            chunks.append("")
        else:
            chunks[-1] += _segment(part, dotfiles) + "/"
    folder = "[^/]++/" if dotfiles else r"(?!\.)[^/]++/"
    first, *rest = chunks
    middle = "".join(f"(?>(?:{folder})*?{chunk})" for chunk in rest[:-1] if chunk)
    last = f"(?:{folder})*{rest[-1]}" if rest else ""
    return f"{first}{middle}{last}".removesuffix("/") + r"\Z"


def _parts(pattern: str) -> list[str]:
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if pattern.endswith("/"):
        parts.append("**")
    return parts


def _segment(glob: str, dotfiles: bool) -> str:
    """One name's expression. `(?>.*?x)` takes the first x and never reconsiders, which is enough for a glob."""
    chunks: list[str] = [""]
    index = 0
    while index < len(glob):
        char = glob[index]
        index += 1
        if char == "*":
            if chunks[-1] or len(chunks) == 1:
                chunks.append("")
        elif char == "?":
            chunks[-1] += "[^/]"
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
        body += "".join(f"(?>[^/]*?{chunk})" for chunk in rest[:-1] if chunk) + "[^/]*" + rest[-1]
    try:
        re.compile(body)
    except re.error:
        return "(?!)"
    return guard + body


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
    safe = safe[:1] + safe[1:].replace("--", r"-\-")  # a range that ends with "-", of which Python warns
    return f"(?!/)[{'^' if negated else ''}{safe}]"  # a range may hold a slash, too


def expand_lists(pattern: str) -> list[str]:
    """Expands the braces of a pattern, innermost first. Raises GlobError for too many."""
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
            raise GlobError(f"pattern_too_broad: its braces stand for more than {MAX_ALTERNATIVES} patterns")
    return done
