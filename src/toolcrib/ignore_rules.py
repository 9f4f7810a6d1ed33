"""Which files of a folder are no work of a person: what `.gitignore` files say, and folders that tools generate.

Searches and checkpoints read the same rules. The lines are matched by `glob_patterns`, in time linear in the path,
because a `.gitignore` comes from strangers: `pathspec` turns such lines into expressions that backtrack, and
`ignore-python` walks by path, without a matcher for folders that are kept open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolcrib.glob_patterns import GlobError, GlobPattern

IGNORE_FILE = ".gitignore"
MAX_IGNORE_FILE = 100_000  # bytes of a .gitignore that are looked at
MAX_RULES = 1_000
VERSION_CONTROL = frozenset([".git", ".hg", ".svn", ".jj"])
GENERATED = frozenset(
    [
        "node_modules",
        "bower_components",
        ".venv",
        "venv",
        "__pycache__",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        ".hypothesis",
        ".gradle",
        ".terraform",
        ".next",
        ".nuxt",
        ".cache",
        ".idea",
    ]
)
SKIPPED = VERSION_CONTROL | GENERATED  # folders of these names are not entered


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One line of a .gitignore."""

    glob: GlobPattern
    keep: bool
    folders_only: bool


class IgnoreFile:
    """One .gitignore file in a folder. As in git, the last line that matches a path decides."""

    __slots__ = ("_any", "_rules", "folder")

    def __init__(self, folder: str, rules: list[IgnoreRule]) -> None:
        self.folder = folder
        self._rules = rules
        self._any = re.compile("|".join(f"(?:{rule.glob.expression})" for rule in rules)).match

    def says(self, path: str, is_folder: bool) -> bool | None:
        """Whether a path is ignored; None where no line matches."""
        inside = path if self.folder == "." else path[len(self.folder) + 1 :]
        if self._any(inside) is None:
            return None
        for rule in reversed(self._rules):
            if (is_folder or not rule.folders_only) and rule.glob.matches(inside):
                return not rule.keep
        return None


def read_ignore_file(folder: str, data: bytes) -> list[IgnoreFile]:
    """The content of a folder's .gitignore; an empty list where it holds no rule. The top folder is "."."""
    rules: list[IgnoreRule] = []
    for line in data.decode("utf-8", "replace").splitlines()[:MAX_RULES]:
        text = line.rstrip()
        if not text or text.startswith("#"):
            continue
        keep = text.startswith("!")
        text = text[1:] if keep else text
        folders_only = text.endswith("/")
        text = text.rstrip("/")
        try:
            rules.append(IgnoreRule(GlobPattern(text, dotfiles=True, braces=False), keep, folders_only))
        except GlobError:
            continue
    return [IgnoreFile(folder, rules)] if rules else []


def is_ignored(files: Sequence[IgnoreFile], path: str, is_folder: bool) -> bool:
    """Whether a path is ignored by the files of the folders that it lies in, outermost first."""
    for file in reversed(files):
        if (said := file.says(path, is_folder)) is not None:
            return said
    return False
