"""Which files of a folder are ignored: those that ignore files name, and folders that tools generate.

Searches and checkpoints read the same rules: `.gitignore` and `.git/info/exclude`, with git's meaning, and `.ignore`
files, which take precedence, as in ripgrep. Settings outside, such as git's `core.excludesFile`, are not read.
`ignore_patterns` matches a line in time linear in the path, because a `.gitignore` comes from strangers: `pathspec`
turns such lines into expressions that backtrack, and `ignore-python` walks by path, without a matcher for folders that
are kept open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from toolcrib.dataclass import dataclass
from toolcrib.ignore_patterns import as_bytes, expression

IGNORE_FILE = ".gitignore"
OWN_IGNORE_FILE = ".ignore"
REPOSITORY = ".git"
EXCLUDES = f"{REPOSITORY}/info/exclude"
RULES_IN = frozenset([IGNORE_FILE, OWN_IGNORE_FILE, REPOSITORY])  # names whose folder may have rules
MAX_IGNORE_FILE = 10_000_000  # bytes; a larger file has no rules
MAX_LOOKED_AT = 100_000  # bytes at the beginning of such a file
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
    """One line of a .gitignore. `by_name`: it is compared with the name alone, not with the path from the folder."""

    match: re.Pattern[str]
    keep: bool
    folders_only: bool
    by_name: bool


class IgnoreFile:
    """One .gitignore file in a folder. As in git, the last line that matches a path decides."""

    __slots__ = ("_any_name", "_any_path", "_rules", "_skipped", "folder")

    def __init__(self, folder: str, rules: list[IgnoreRule]) -> None:
        self.folder = folder
        self._skipped = 0 if folder == "." else len(folder) + 1
        self._rules = rules[::-1]
        self._any_name = _any([rule for rule in rules if rule.by_name])
        self._any_path = _any([rule for rule in rules if not rule.by_name])

    def says(self, path: str, is_folder: bool) -> bool | None:
        """Whether a path is ignored; None where no line matches."""
        inside = as_bytes(path[self._skipped :])
        name = inside[inside.rfind("/") + 1 :]
        if not (self._any_name and self._any_name(name)) and not (self._any_path and self._any_path(inside)):
            return None
        for rule in self._rules:
            if (is_folder or not rule.folders_only) and rule.match.match(name if rule.by_name else inside):
                return not rule.keep
        return None


def _any(rules: list[IgnoreRule]) -> Callable[[str], object] | None:
    return (
        re.compile("|".join(f"(?:{rule.match.pattern})" for rule in rules), re.DOTALL).match
        if rules
        else None
    )


def read_ignore_file(folder: str, data: bytes) -> list[IgnoreFile]:
    """The content of a folder's .gitignore; an empty list where it holds no rule. The top folder is ".".

    Of a long file only the lines at its beginning count, and the first MAX_RULES rules.
    """
    rules: list[IgnoreRule] = []
    if len(data) > MAX_LOOKED_AT:
        data = data[: data.rfind(b"\n", 0, MAX_LOOKED_AT) + 1]  # a part of a line would mean something else
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        text = _without_spaces(line.removesuffix(b"\r").decode("latin-1"))
        if not text or text.startswith("#"):
            continue
        keep = text.startswith("!")
        text = text.removeprefix("!")
        folders_only = text.endswith("/")
        text = text.removesuffix("/")
        by_name = "/" not in text
        matcher = expression(text, by_name=by_name)
        if matcher is not None:
            rules.append(IgnoreRule(re.compile(matcher, re.DOTALL), keep, folders_only, by_name))
        if len(rules) == MAX_RULES:
            break
    return [IgnoreFile(folder, rules)] if rules else []


def _without_spaces(line: str) -> str:
    """The line without the spaces at its end; one behind a backslash stays."""
    text = line.rstrip(" ")
    backslashes = len(text) - len(text.rstrip("\\"))
    return text + " " if backslashes % 2 and len(text) < len(line) else text


def decision(files: Sequence[IgnoreFile], path: str, is_folder: bool) -> bool | None:
    """Whether the files ignore a path: the innermost one that says anything decides; None if none does."""
    for file in reversed(files):
        if (said := file.says(path, is_folder)) is not None:
            return said
    return None


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """What holds in a folder: the rules of its repository, and those of `.ignore` files, which take precedence."""

    of_git: tuple[IgnoreFile, ...] = ()
    own: tuple[IgnoreFile, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.of_git or self.own)

    def ignores(self, path: str, is_folder: bool) -> bool:
        """Whether a path is ignored."""
        said = decision(self.own, path, is_folder) if self.own else None
        return bool(decision(self.of_git, path, is_folder) if said is None else said)

    def within(
        self,
        names: Collection[str],
        read: Callable[[str], Sequence[IgnoreFile]],
        is_repository: Callable[[], bool],
    ) -> IgnoreRules:
        """The rules of a subfolder, in which there are these `names`, perhaps ignore files among them.

        `read` gives the rules of a file of the folder, none where there is no such file, and `is_repository` says
        whether `.git` is really there: a repository within another one has rules of its own.
        """
        of_git, own = self.of_git, self.own
        if REPOSITORY in names:
            if of_git and is_repository():
                of_git = ()
            of_git += tuple(read(EXCLUDES))
        if IGNORE_FILE in names:
            of_git += tuple(read(IGNORE_FILE))
        if OWN_IGNORE_FILE in names:
            own += tuple(read(OWN_IGNORE_FILE))
        return IgnoreRules(of_git, own)
