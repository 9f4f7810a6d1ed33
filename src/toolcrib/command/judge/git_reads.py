# ruff: noqa: PTH112, PTH118 - paths are text here
"""Finds what git would read outside of a workspace because a repository's own files name it or link to it.

Files inside that may hold secrets count too. Whoever made a project may have written its `.git`, as in an archive that
was unpacked. A repository elsewhere is accepted for a worktree or a submodule only if it names that folder in turn.
"""

from __future__ import annotations

import os
import re

from toolcrib.command.judge import paths
from toolcrib.command.judge.git_filters import (
    MAX_BYTES,
    NotUnderstood,
    WithoutWorktree,
    git_folder,
    path_in,
    pointed,
    read_settings,
    read_small,
)
from toolcrib.command.sandbox.files.paths import within

# Settings that name a file whose lines git shows, at least when they are invalid; `worktree` names a folder to compare.
OPENS = re.compile(
    rb"(?:^|\])[^\n\S]*(worktree|ignoreRevsFile|skipList|attributesFile|signatureFile)[^\n\S]*=([^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
MAX_LENDERS = 20  # folders of objects in a chain, each taking objects from the next
MAX_NAMES = 100_000  # in the folder of a repository
NEVER_READ = ("hooks", "lfs", "annex")  # by a command that only looks


def git_reads_elsewhere(folder: str, workspace: str) -> str:
    """In words, what the repository of a folder makes git read that nobody should read unasked; "" for nothing."""
    try:
        return _reads_elsewhere(folder, os.path.realpath(workspace))
    except WithoutWorktree:
        return "a repository without a worktree"
    except (NotUnderstood, OSError, ValueError):
        return "what settings name that are not understood"


def _reads_elsewhere(folder: str, workspace: str) -> str:
    found = git_folder(folder)
    if found is None:
        return ""
    top, own = found
    # A workspace may be a folder of a repository, which then counts as a whole.
    inside = top if within(workspace, top) else workspace
    own = os.path.realpath(own)
    common = os.path.realpath(pointed(f"{own}/commondir", own) or own)
    if not within(own, inside) and not _names_back(own, top):
        return f"the repository {own}"
    if within(own, inside) and not within(common, inside):
        return f"the repository {common}"
    if within(common, inside):
        if lent := _lent(f"{common}/objects", inside):
            return f"the objects in {lent}"
        if leads := next(filter(None, (_leads_out(at, inside) for at in dict.fromkeys((common, own)))), ""):
            return f"{leads}, to which a link in the repository leads"
    for _, data in read_settings((f"{common}/config", f"{common}/config.worktree", f"{own}/config.worktree")):
        for match in OPENS.finditer(data):
            is_folder = match[1].lower() == b"worktree"
            place = os.path.realpath(path_in(match[2], own if is_folder else top))
            if is_folder and place == top:
                continue
            if not within(place, inside) or (not is_folder and paths.may_hold_secrets(place)):
                return f"{place}, which a setting names ({match[1].decode()})"
    return ""


def _lent(objects: str, inside: str) -> str:
    """A folder outside of `inside` from which git takes objects, directly or through others; "" for none."""
    waiting, seen = [objects], set[str]()
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        if len(seen) > MAX_LENDERS:
            raise NotUnderstood
        for line in read_small(f"{at}/info/alternates", MAX_BYTES).split(b"\n"):
            if line.startswith(b'"'):  # git reads escapes in it
                raise NotUnderstood
            if line and not line.startswith(b"#"):
                waiting.append(os.path.realpath(os.path.join(at, os.fsdecode(line))))
                if not within(waiting[-1], inside):
                    return waiting[-1]
    return ""


def _leads_out(repository: str, inside: str) -> str:
    """Where a link in a repository leads that nobody should read unasked; "" for nowhere.

    Links in place of single objects are not looked for: they show only what somebody knows the digest of.
    """
    waiting, seen, left = [repository], set[str](), MAX_NAMES
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        with os.scandir(at) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    raise NotUnderstood
                if entry.name in NEVER_READ:
                    continue
                if entry.is_symlink():
                    leads = os.path.realpath(entry.path)
                    if not within(leads, inside) or paths.may_hold_secrets(leads):
                        return leads
                    waiting += [leads] if os.path.isdir(leads) else []
                elif entry.is_dir() and not (len(entry.name) == 2 and at.endswith("/objects")):
                    waiting.append(entry.path)
    return ""


def _names_back(own: str, top: str) -> bool:
    """Whether a repository that lies elsewhere names the folder as a worktree or submodule of its own."""
    if pointed(f"{own}/gitdir", own) == f"{top}/.git":
        return True
    for match in OPENS.finditer(read_small(f"{own}/config", MAX_BYTES)):
        if match[1].lower() == b"worktree":
            return os.path.realpath(path_in(match[2], own)) == top
    return False
