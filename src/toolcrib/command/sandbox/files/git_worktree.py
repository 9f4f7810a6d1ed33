"""The repository of a workspace that is a linked worktree of git: its `.git` is a file that leads outside."""

from __future__ import annotations

import os

from toolcrib.command.sandbox.files.git_files import common_folder, content, place_named, repository_led_to


def repository_of_worktree(root: str) -> str:
    """The folder of the repository that a workspace is a worktree of; "" if it is none, or that cannot be proved.

    Anybody can write a `.git` that leads to a foreign repository. Only git writes, into the repository, where its
    worktrees are, so that has to name this workspace.
    """
    own = repository_led_to(f"{root}/.git", behind_links=False)
    if not own or place_named(own, content(f"{own}/gitdir") or b"") != f"{root}/.git":
        return ""
    common = common_folder(own)
    known = os.path.dirname(own) == f"{common}/worktrees" and os.path.isfile(f"{common}/HEAD")
    return common if known else ""
