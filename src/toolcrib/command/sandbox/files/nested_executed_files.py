"""Puts back files below the top of a workspace that other programs execute, such as `sub/.vscode`.

No mount can cover what does not exist yet in a folder that may come and go. So these files are recorded before a
command, where they exist, and compared after it. The folders are known from the walk that looks for git repositories.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence

from toolcrib.command.sandbox.files.paths import within, within_any
from toolcrib.command.sandbox.files.protected_files import ProtectedFiles
from toolcrib.command.sandbox.files.protected_links import without_links
from toolcrib.command.sandbox.files.running_records import RunningRecords
from toolcrib.command.sandbox.interface import Launch

__all__ = ["NestedFiles"]

MAX_PLACES = 200  # places that are recorded; of more, the deepest are left as they are
MAX_NAMES = 6
# Packages that were installed bring such files along. Nobody opens these folders as projects.
INSTALLED = {"node_modules", "site-packages", "vendor", ".git", ".venv", "venv"}


class NestedFiles:
    """The state of such files before a command. `folders` are those that exist then.

    `given` are the paths that this command may write all the same, by a person's leave.
    """

    def __init__(
        self,
        workspace: str,
        places: Collection[str],
        folders: Collection[str],
        given: Sequence[str],
        running: RunningRecords,
    ) -> None:
        self._workspace = workspace
        self._folders = folders
        self._given = given
        self._before = set(places)
        recorded = self._counting(places)[:MAX_PLACES]
        links: dict[str, None] = {}
        leads_to = without_links(workspace, recorded, links)
        self._files = ProtectedFiles(workspace, (*links, *leads_to), running)

    def restore(self, places: Iterable[str], launch: Launch) -> None:
        """Puts back what changed, and removes what came into folders that existed; what came with new ones is told.

        In a folder that was removed or moved away nothing is executed, so nothing is put back there.
        """
        came = [path for path in self._counting(places) if path not in self._before]
        added = [path for path in came if os.path.dirname(path) in self._folders]
        self._files.paths = tuple(path for path in (*self._files.paths, *added) if _has_folder(path))
        self._files.restore(launch)
        new = [path for path in came if os.path.dirname(path) not in self._folders]
        if new:
            names = ", ".join(os.path.relpath(path, self._workspace) for path in new[:MAX_NAMES])
            more = f" and {len(new) - MAX_NAMES:,} more" if len(new) > MAX_NAMES else ""
            launch.executed_files.append(f"In new folders, and run by other programs unasked: {names}{more}.")

    def _counting(self, places: Iterable[str]) -> list[str]:
        return [
            path
            for path in places
            if within(path, self._workspace)
            and os.path.dirname(path) != self._workspace
            and INSTALLED.isdisjoint(path.removeprefix(self._workspace).split("/"))
            and not within_any(path, self._given)
        ]


def _has_folder(path: str) -> bool:
    """Whether the folder of a path is there, and is reached through no link."""
    folder = os.path.dirname(path)
    return os.path.isdir(folder) and os.path.realpath(folder) == folder
