# ruff: noqa: PTH111, PTH118 - paths are text here
"""Toolcrib's own files: what the command line keeps for a user, and the program itself. No command may change them."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def own_places(home: str | None = None) -> tuple[str, ...]:
    """Where the command line keeps a user's rules, approvals, secrets and logs, there or not; resolved."""
    rooms = [os.path.join(home or os.path.expanduser("~"), room) for room in (".config", ".local/state")]
    rooms += [os.environ.get(name, "") for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME")]
    found: list[str] = []
    for folder in (os.path.join(room, "toolcrib") for room in rooms if room):
        found.append(os.path.realpath(folder))
        try:  # a file there may be a link into a folder of settings that is kept elsewhere
            with os.scandir(folder) as entries:
                found += [os.path.realpath(entry.path) for entry in entries if entry.is_symlink()]
        except OSError:
            continue
    return tuple(dict.fromkeys(found))


def runs_us(root: str) -> tuple[str, ...]:
    """What of a workspace runs outside of every sandbox, because toolcrib itself is installed in it."""
    places = {os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, Path(__file__).parents[2])}
    inside = sorted(path for path in places if path.startswith(f"{root.rstrip('/')}/"))
    return tuple(path for path in inside if not any(path.startswith(f"{other}/") for other in inside))


def python() -> str:
    """Our interpreter by the file that it is, wherever a link of its name leads by now."""
    return _python


_python = os.path.realpath(sys.executable) if sys.executable else ""
