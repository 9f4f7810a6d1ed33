"""Going through the files of a workspace as a developer sees them: without what git ignores or tools make."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from toolcrib.errors import ToolError
from toolcrib.tools.globbing import Glob, PatternError
from toolcrib.tools.workspace import Workspace

MAX_IGNORE_FILE = 100_000  # bytes of a .gitignore that are looked at
MAX_RULES = 1_000
SKIPPED = frozenset(
    [
        ".git",
        ".hg",
        ".svn",
        ".jj",
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


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a .gitignore, with the folder that it stands in."""

    folder: str
    glob: Glob
    keep: bool
    folders_only: bool


def walk_files(
    workspace: Workspace, start: str, *, everything: bool, check: Callable[[], None]
) -> Iterator[str]:
    """The regular files below the folder `start`, as paths from there, each folder's in the order of names.

    Symlinks to files inside the workspace are files; linked folders are not entered, so nothing is seen
    twice. Folders that cannot be read are stepped over. `check` is called once a folder.
    """
    os.close(workspace.open_folder(start))
    rules = [] if everything else _rules_above(workspace, start)
    todo: list[tuple[str, list[Rule]]] = [("", rules)]
    while todo:
        check()
        folder, rules = todo.pop()
        where = posixpath.join(start, folder)
        try:
            entries = workspace.entries(where)
        except ToolError:
            continue
        if not everything and any(entry.name == ".gitignore" for entry in entries):
            rules = rules + _read_rules(workspace, posixpath.normpath(where))
        deeper: list[tuple[str, list[Rule]]] = []
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            whole = posixpath.normpath(posixpath.join(where, entry.name))
            is_folder = entry.kind == "folder"
            if not everything and (
                (is_folder and entry.name in SKIPPED) or _ignored(rules, whole, is_folder)
            ):
                continue
            if is_folder:
                deeper.append((path, rules))
            elif entry.kind == "file" or (entry.kind == "link" and is_file(workspace, whole)):
                yield path
        todo += reversed(deeper)


def is_file(workspace: Workspace, path: str) -> bool:
    """Whether a path leads to a regular file inside the workspace."""
    status = workspace.stat(path)
    return status is not None and stat.S_ISREG(status.st_mode)


def _rules_above(workspace: Workspace, start: str) -> list[Rule]:
    """The rules of the folders that `start` lies in, outermost first."""
    rules: list[Rule] = []
    if posixpath.isabs(start):
        return rules
    normal = posixpath.normpath(start)
    parts = [] if normal == "." else normal.split("/")
    for depth in range(len(parts)):
        rules += _read_rules(workspace, "/".join(parts[:depth]) or ".")
    return rules


def _read_rules(workspace: Workspace, folder: str) -> list[Rule]:
    try:
        data, _ = workspace.read(posixpath.join(folder, ".gitignore"), MAX_IGNORE_FILE)
    except ToolError:
        return []
    rules: list[Rule] = []
    for line in data.decode("utf-8", "replace").splitlines()[:MAX_RULES]:
        text = line.rstrip()
        if not text or text.startswith("#"):
            continue
        keep = text.startswith("!")
        text = text[1:] if keep else text
        folders_only = text.endswith("/")
        text = text.rstrip("/")
        try:
            rules.append(Rule(folder, Glob(text, dotfiles=True, braces=False), keep, folders_only))
        except PatternError:
            continue
    return rules


def _ignored(rules: list[Rule], path: str, is_folder: bool) -> bool:
    """What the last rule that fits says, as git does."""
    for rule in reversed(rules):
        if rule.folders_only and not is_folder:
            continue
        inside = path if rule.folder == "." else path[len(rule.folder) + 1 :]
        if rule.glob.matches(inside):
            return not rule.keep
    return False
