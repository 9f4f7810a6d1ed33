"""Names that come up when a plan runs: a pattern's matches, or what a listing printed.

Nobody saw them when the command was judged, so each is looked at before a program gets it.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolcrib.shell import paths
from toolcrib.shell.gate import Stopped
from toolcrib.shell.programs.table import find_form


def unwelcome(argv: Sequence[str], names: Sequence[str], root: str) -> str | None:
    """Why a command should not get these names, or None. `root` is the workspace's absolute path."""
    contents = True
    try:
        _, form, _ = find_form(argv)
        contents = form.contents
        if form.inert:
            return None
    except Stopped:  # behind a wrapper
        pass
    for name in names:
        if name.startswith("-"):
            return f"{argv[0]}: not run, for {name} would be an option to it"
        for path in (name, name.partition(":")[2] or name):
            if (wrong := paths.trouble(paths.relative(path, root), contents=contents)) is not None:
                return f"{argv[0]}: not run, for {wrong}"
    return None
