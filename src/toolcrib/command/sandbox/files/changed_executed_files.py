"""Tells which files a command changed that other programs execute without being asked: one sentence a command."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import partial

from toolcrib.command.sandbox.files.executed_files import EXECUTED
from toolcrib.command.sandbox.files.protected_files import SavedFile, recorded
from toolcrib.command.sandbox.interface import Launch

TOLD = {path: row.ecosystem for row in EXECUTED if row.holds == "told" for path in row.paths}
PACKAGE = "package.json"
# Scripts that npm, pnpm, yarn and bun run at an install or a publish, though nobody names them.
LIFECYCLE = (
    "preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare", "prepack", "postpack",
    "prepublishOnly", "publish", "postpublish", "dependencies", "pnpm:devPreinstall",
)  # fmt: skip
ENVIRONMENTS = (".venv/", "venv/")  # whoever creates one writes these files
MAX_NAMES = 6

State = dict[str, dict[str, SavedFile]]


def watch_executed_files(roots: Sequence[str], workspace: str) -> list[Callable[[Launch], None]]:
    """Reads the files now; returns the step that compares them after the command, for `launch.executed_files`."""
    if workspace not in roots:
        return []
    return [partial(_compare, workspace, recorded(workspace, TOLD))]


def _compare(workspace: str, before: State, launch: Launch) -> None:
    after = recorded(workspace, TOLD)
    changed = [path for path in TOLD if _changed(path, before.get(path, {}), after.get(path, {}))]
    if changed:
        names = ", ".join(f"{path} ({TOLD[path]})" for path in changed[:MAX_NAMES])
        more = f" and {len(changed) - MAX_NAMES} more" if len(changed) > MAX_NAMES else ""
        launch.executed_files.append(
            f"Changed by this command, and run by other programs unasked: {names}{more}."
        )


def _changed(path: str, before: dict[str, SavedFile], after: dict[str, SavedFile]) -> bool:
    """Whether what a program would run has changed. A removal does not count, since nothing is left to run."""
    if before == after or not after or (path.startswith(ENVIRONMENTS) and not before):
        return False
    if os.path.basename(path) == PACKAGE:
        return _lifecycle(before) != (scripts := _lifecycle(after)) and bool(scripts)
    return True


def _lifecycle(state: dict[str, SavedFile]) -> dict[str, object]:
    saved = next(iter(state.values()), None)
    try:
        scripts = json.loads(saved.data or b"")["scripts"] if saved is not None else {}
        return {name: scripts[name] for name in LIFECYCLE if name in scripts}
    except (ValueError, LookupError, TypeError, RecursionError):
        return {}
