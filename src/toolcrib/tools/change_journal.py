"""The note of a change set that is being made, so that one that was killed in the middle is finished later.

The note lies in the user's state folder, where no project file and no sandboxed command can write one. At any moment
each file of the set is old or new. The next use of the workspace finishes a set that was killed, or its undoing, if
that had begun; a file that somebody changed in between stays as they left it. Where the state folder cannot be written,
there is no note: then a killed set of several files stays as it is, each file old or new.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toolcrib.dataclass import dataclass
from toolcrib.folder_handles import (
    FolderHandle,
    close_handle,
    remove_in,
    rename_in,
    rename_new_in,
    sync_folder,
)
from toolcrib.private_files import close_locked, open_locked, replace_private_file, state_folder
from toolcrib.tools.workspace_paths import FileVersion, file_version

FORMAT = 2
FORWARD, BACK = "forward", "back"


@dataclass(frozen=True, slots=True)
class JournalStep:
    """The change of one file: its folder and name, the names of its new and its old content, and their versions.

    The old content is kept as a hard link. Where files can have one name only it is a copy, with a version of its own.
    """

    folder: str
    name: str
    prepared: str
    backup: str
    new: FileVersion | None
    old: FileVersion | None
    kept: FileVersion | None


class ChangeJournal:
    """The note of one workspace."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: Path | None = None

    @property
    def _path(self) -> Path:
        if self._known is None:
            name = hashlib.sha256(os.fsencode(self._root)).hexdigest()[:32]
            self._known = state_folder() / "changes" / f"{name}.json"
        return self._known

    @contextmanager
    def exclusively(self) -> Generator[bool]:
        """Held while names are changed, so that no other process of this user does so. False if that is impossible."""
        try:
            fd = open_locked(self._path.with_name("lock"))
        except (OSError, RuntimeError):  # no home, or one that cannot be written
            yield False
            return
        try:
            yield True
        finally:
            close_locked(fd)

    def write(self, direction: str, steps: Sequence[JournalStep]) -> bool:
        """Notes what is being done. Returns False if that fails, as on a full disk; then an earlier note stays."""
        note = {"format": FORMAT, "direction": direction, "steps": [asdict(step) for step in steps]}
        try:
            replace_private_file(self._path, json.dumps(note).encode())
        except OSError:
            return False
        return True

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)

    def exists(self) -> bool:
        try:
            return self._path.exists()
        except (OSError, RuntimeError):
            return False

    def finish(self, open_folder: Callable[[str], FolderHandle]) -> None:
        """Finishes what is noted, whoever was killed; to be called while it is held exclusively."""
        try:
            note = json.loads(self._path.read_bytes())
            steps = [_step(saved) for saved in note["steps"]] if note["format"] == FORMAT else []
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError):  # of another version
            self.remove()
            return
        for step in steps:
            with suppress(OSError):
                folder = open_folder(step.folder)
                try:
                    (_forward if note["direction"] == FORWARD else take_back)(folder, step)
                    for left in filter(None, (step.prepared, step.backup)):
                        with suppress(OSError):
                            remove_in(folder, left)
                    sync_folder(folder)
                finally:
                    close_handle(folder)
        self.remove()


def _forward(folder: FolderHandle, step: JournalStep) -> None:
    if file_version(folder, step.name) != step.old:
        return  # done already, or changed by somebody else
    if not step.prepared:
        remove_in(folder, step.name)
    elif file_version(folder, step.prepared) == step.new:
        (rename_new_in if step.old is None else rename_in)(folder, step.prepared, step.name)


def take_back(folder: FolderHandle, step: JournalStep) -> None:
    """Takes back a step that was made; what somebody changed since then stays. Raises OSError."""
    if file_version(folder, step.name) != step.new:
        return  # taken back already, or changed by somebody else
    if step.old is None:
        remove_in(folder, step.name)
    elif file_version(folder, step.backup) == step.kept:
        (rename_new_in if step.new is None else rename_in)(folder, step.backup, step.name)


def _step(saved: dict[str, Any]) -> JournalStep:
    versions: dict[str, Any] = {
        key: FileVersion(**saved[key]) if saved[key] else None for key in ("new", "old", "kept")
    }
    return JournalStep(**{**saved, **versions})
