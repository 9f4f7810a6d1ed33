"""The repository of a workspace that is a linked worktree of git: its `.git` is a file that leads outside."""

from __future__ import annotations

import os
import stat

from toolcrib.folder_handles import CLOEXEC, NOFOLLOW, NONBLOCK

MAX_BYTES = 8_192


def repository_of_worktree(root: str) -> str:
    """The folder of the repository that a workspace is a worktree of; "" where it is none, or does not prove it.

    Anybody can write a `.git` that leads to a foreign repository. Only git writes, into the repository, where its
    worktrees are, so that has to name this workspace.
    """
    said = _line(f"{root}/.git")
    if not said.startswith("gitdir: "):
        return ""
    folder = os.path.realpath(os.path.join(root, said.removeprefix("gitdir: ")))
    back = _line(f"{folder}/gitdir")
    if not back or os.path.realpath(os.path.join(folder, back)) != f"{root}/.git":
        return ""
    common = os.path.realpath(os.path.join(folder, _line(f"{folder}/commondir") or "."))
    known = os.path.dirname(folder) == f"{common}/worktrees" and os.path.isfile(f"{common}/HEAD")
    return common if known else ""


def _line(path: str) -> str:
    """The only line of a small file; "" if it is none."""
    try:
        fd = os.open(path, os.O_RDONLY | NOFOLLOW | NONBLOCK | CLOEXEC)
        try:  # a folder can be opened, too
            data = os.read(fd, MAX_BYTES) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
        finally:
            os.close(fd)
        text = os.fsdecode(data).rstrip("\n")
    except OSError:
        return ""
    return "" if "\n" in text else text
