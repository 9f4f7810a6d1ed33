"""The folder of hooks that git's settings of a workspace name (`core.hooksPath`)."""

from __future__ import annotations

import os

from toolcrib.command.sandbox.files.git_config import lines
from toolcrib.command.sandbox.files.paths import within

MAX_BYTES = 1 << 20


def hooks_folder(root: str) -> list[str]:
    """The folder as an absolute path, if it lies in the workspace."""
    try:
        with open(f"{root}/.git/config", "rb") as file:
            data = file.read(MAX_BYTES)
    except OSError:
        return []
    if b"hookspath" not in data.lower():
        return []
    found = [
        value.strip(b'"')
        for (section, _), _, key, _, value in lines(data)
        if section == b"core." and key == b"hookspath"
    ]
    folders = [os.path.normpath(os.path.join(root, os.fsdecode(value))) for value in found if value]
    return [
        path for path in folders if within(path, root) and path != root and not within(path, f"{root}/.git")
    ]
