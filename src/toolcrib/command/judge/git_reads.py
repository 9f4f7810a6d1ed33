# ruff: noqa: PTH111, PTH118 - paths are text here
"""What git reads because the files in its folder name it: another folder, or a file that may hold secrets.

Whoever made a project may have written its `.git`, as in an archive that was unpacked. A worktree or a submodule whose
repository lies elsewhere is known by that repository, which names the folder in turn.
"""

from __future__ import annotations

import os
import re

from toolcrib.command.judge import paths
from toolcrib.command.judge.git_filters import (
    INCLUDE,
    MAX_BYTES,
    MAX_FILES,
    PATH,
    PLAIN,
    NotUnderstood,
    git_folder,
    included,
    pointed,
    read_small,
)

# Settings that name a file whose lines git shows when they are wrong, or at all; and the folder that it compares.
OPENS = re.compile(
    rb"(?:^|\])[^\n\S]*(worktree|ignoreRevsFile|skipList|attributesFile|signatureFile)[^\n\S]*=([^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)


def git_reads_elsewhere(folder: str, workspace: str) -> str:
    """What git would read in a folder that its own files name and nobody should read unasked; "" for nothing."""
    try:
        return _reads_elsewhere(folder, os.path.realpath(workspace))
    except (NotUnderstood, OSError, ValueError):
        return "what settings name that are not understood"


def _reads_elsewhere(folder: str, workspace: str) -> str:
    found = git_folder(folder)
    if found is None:
        return ""
    top, own = found
    # A workspace may be a folder of a repository, which then counts as a whole.
    inside = top if _lies_in(workspace, top) else workspace
    own = os.path.realpath(own)
    common = os.path.realpath(pointed(f"{own}/commondir", own) or own)
    if not _lies_in(own, inside) and not _names_back(own, top):
        return f"the repository {own}"
    if _lies_in(own, inside) and not _lies_in(common, inside):
        return f"the repository {common}"
    for line in read_small(f"{common}/objects/info/alternates", MAX_BYTES).splitlines():
        lent = os.path.realpath(os.path.join(f"{common}/objects", os.fsdecode(line.strip())))
        if line.strip() and _lies_in(common, inside) and not _lies_in(lent, inside):
            return f"the objects in {lent}"
    waiting, seen = [f"{common}/config", f"{common}/config.worktree", f"{own}/config.worktree"], set[str]()
    while waiting and len(seen) <= MAX_FILES:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        data = read_small(path, MAX_BYTES)
        if INCLUDE.search(data):
            waiting += (included(path, match[1].strip()) for match in PATH.finditer(data))
        for match in OPENS.finditer(data):
            plain = PLAIN.fullmatch(match[2].strip())
            if plain is None:
                raise NotUnderstood
            is_folder = match[1].lower() == b"worktree"
            named = os.path.expanduser(os.fsdecode(plain[1]).strip())
            place = os.path.realpath(os.path.join(own if is_folder else top, named))
            if is_folder and place == top:
                continue
            if not _lies_in(place, inside) or (not is_folder and paths.may_hold_secrets(place)):
                return f"{place}, which a setting names ({match[1].decode()})"
    return ""


def _names_back(own: str, top: str) -> bool:
    """Whether a repository that lies elsewhere names the folder as a worktree or submodule of its own."""
    if pointed(f"{own}/gitdir", own) == f"{top}/.git":
        return True
    for match in OPENS.finditer(read_small(f"{own}/config", MAX_BYTES)):
        if match[1].lower() == b"worktree" and (plain := PLAIN.fullmatch(match[2].strip())) is not None:
            return os.path.realpath(os.path.join(own, os.fsdecode(plain[1]).strip())) == top
    return False


def _lies_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
