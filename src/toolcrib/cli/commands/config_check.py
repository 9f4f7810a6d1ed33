"""`toolcrib config check`: whether toolcrib.toml can be used, with all that is wrong in it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from toolcrib.cli.console import DONE, NOT_DONE, Problem, out
from toolcrib.cli.named_agents import agents_left_out
from toolcrib.cli.options import WorkspaceFolder
from toolcrib.cli.tool_settings import (
    PLACE,
    misplaced_settings,
    projects_settings,
    read_file,
    settings_path,
    users_settings,
    why_not_trusted,
)
from toolcrib.errors import ToolcribError
from toolcrib.settings.file import SettingsFile
from toolcrib.settings.joined import join_settings
from toolcrib.visible import escape_invisible

FileToCheck = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="A file to check; if left out, yours and the project's."),
]


def command(file: FileToCheck = None, workspace: WorkspaceFolder = Path()) -> int:
    """The exit code is 1 if something is wrong."""
    lines: list[str] = []
    broken = False
    counting: list[SettingsFile] = []
    both = (partial(_users, counting), partial(_projects, counting, workspace))
    checks = both if file is None else (partial(_file, file),)
    for check in checks:
        try:
            lines.append(check())
        except (Problem, ToolcribError) as problem:
            broken = True
            lines.append(problem.message if isinstance(problem, Problem) else str(problem))
    for line, wrong in agents_left_out(join_settings(counting), workspace):
        lines.append(line)
        broken |= wrong
    for line in lines:
        out("\n".join(escape_invisible(part) for part in line.splitlines()))
    return NOT_DONE if broken else DONE


def _file(path: Path) -> str:
    if read_file(path) is None:
        raise Problem(f"{path} does not exist")
    return f"{path}: fine"


def _users(counting: list[SettingsFile]) -> str:
    path, settings = settings_path(), users_settings()
    if settings is None:
        return f"{path}: does not exist"
    counting.append(settings)
    return f"{path}: fine"


def _projects(counting: list[SettingsFile], workspace: Path) -> str:
    found = projects_settings(workspace)
    if found is None:
        misplaced = misplaced_settings(workspace)
        return f"{PLACE} of this folder: does not exist{'; ' if misplaced else ''}{misplaced}"
    why = why_not_trusted(found[0])
    if why:
        return f"{PLACE} of this folder: fine, but not used: {why}"
    counting.insert(0, found[1])
    return f"{PLACE} of this folder: fine"
