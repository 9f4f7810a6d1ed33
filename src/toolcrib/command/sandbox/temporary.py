# ruff: noqa: PTH113, PTH119, PTH120 - paths are text here
"""What lies below the folders for temporary files, which commands have one of their own in the place of."""

from __future__ import annotations

import os

from toolcrib.command.sandbox.interface import Level
from toolcrib.command.sandbox.places import View, within

TEMPORARY = ("/tmp", "/var/tmp")


def rooms_in(temporary: str, level: Level) -> dict[str, list[str]]:
    """Where a level's paths lie below the folder for temporary files: what they are mounted on must not stay in it."""
    below = [path for path in (*level.readable, *level.writable) if within(path, temporary)]
    tops = {"/".join(path.split("/")[: temporary.count("/") + 2]) for path in below}
    return {top: ["--tmpfs", top] for top in tops if top not in below}


def around(temporary: str, view: View, level: Level) -> list[str]:
    """The folder around a workspace that lies below the one for temporary files; not one that others use, too."""
    if not within(view.workspace, temporary):
        return []
    above = between(temporary, view.workspace)[:2]
    opened = (*view.shown, *level.readable, *level.writable)
    return [path for path in above[-1:] if not any(within(path, place) for place in opened)]


def mounted_on(scratch: str, level: Level) -> list[str]:
    """The same for files right in that folder: an empty one each, which goes again."""
    paths = (*level.readable, *level.writable)
    return [
        f"{scratch}/{os.path.basename(path)}"
        for path in paths
        if os.path.dirname(path) in TEMPORARY and os.path.isfile(path)
    ]


def between(root: str, path: str) -> list[str]:
    """The folders between a root and a path below it, without both."""
    parts = path[len(root) + 1 :].split("/")[:-1]
    return [f"{root}/{'/'.join(parts[: count + 1])}" for count in range(len(parts))]
