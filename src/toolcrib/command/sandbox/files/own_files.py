"""Toolcrib's own files: what the command line keeps for a user, and the program itself. No command may change them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from toolcrib.command.sandbox.files.paths import existing

SOURCE = str(Path(__file__).parents[3])


def own_files(home: str | None = None) -> tuple[str, ...]:
    """Where the command line keeps a user's rules, approvals, secrets and logs, existing or not; links resolved."""
    parents = [
        os.path.join(home or os.path.expanduser("~"), folder) for folder in (".config", ".local/state")
    ]
    parents += [os.environ.get(name, "") for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME")]
    found: list[str] = []
    for folder in (os.path.join(parent, "toolcrib") for parent in parents if parent):
        found.append(os.path.realpath(folder))
        try:  # a file in it may be a link into a folder of settings that is kept elsewhere
            with os.scandir(folder) as entries:
                found += [os.path.realpath(entry.path) for entry in entries if entry.is_symlink()]
        except OSError:
            continue
    return tuple(dict.fromkeys(found))


def own_program_in(root: str) -> tuple[str, ...]:
    """The files of this Python and of toolcrib that lie in a workspace; both run outside of every sandbox."""
    places = {*existing((sys.prefix, sys.base_prefix, SOURCE))}
    inside = sorted(path for path in places if path.startswith(f"{root.rstrip('/')}/"))
    return tuple(path for path in inside if not any(path.startswith(f"{other}/") for other in inside))


def python() -> str:
    """The file of our interpreter, found at import: a link of its name may lead elsewhere by now."""
    return _python


_python = os.path.realpath(sys.executable) if sys.executable else ""
