"""The tools and skills in folders: the user's own, and the project's as far as a person trusted their content."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.cli.console import say
from toolcrib.cli.project_trust import SKILLS, TOOLS, project_folder, tool_folders
from toolcrib.cli.tool_settings import say_not_used, why_not_trusted
from toolcrib.cli.user_files import config_folder
from toolcrib.errors import ToolcribError
from toolcrib.plugin_files import PluginFile, load_files
from toolcrib.plugins import Plugin
from toolcrib.private_files import belongs_to_another_user, others_may
from toolcrib.rules.project_files import ProjectFile
from toolcrib.settings.model import ToolSettings
from toolcrib.visible import on_one_line

if TYPE_CHECKING:
    from toolcrib.tools.skills import SkillFiles

MAX_BYTES = 1_000_000  # of one file of the user
WRITE_BY_OTHERS = 0o022


def folder_plugins(settings: ToolSettings, workspace: Path | str) -> list[Plugin]:
    """The plugins in the user's folders and the project's. What of the latter is not trusted is said on stderr."""
    if not settings.plugins.folders:
        return []
    plugins: list[Plugin] = []
    for name in TOOLS:
        plugins += load_files(_users_files(config_folder() / name))
    for place in tool_folders(settings):
        plugins += load_files(
            PluginFile(
                file.path, file.path.removeprefix(f"{place}/"), f"{file.project}/{file.path}", file.data
            )
            for file in _trusted(workspace, place)
        )
    return plugins


def skill_folders(workspace: Path | str) -> list[Path | SkillFiles]:
    """The skills that count: those in the user's folder, and the project's as they were read, if all are trusted."""
    folders: list[Path | SkillFiles] = [config_folder() / "skills"]
    files: list[ProjectFile] = []
    try:
        files, problems = project_folder(workspace, SKILLS)
        if not files and not problems:
            return folders
        why = next((f"{file.path}: {why}" for file in files if (why := why_not_trusted(file))), "")
        why = why or next(map(str, problems), "")
    except ToolcribError as problem:
        why = str(problem)
    if why:
        say_not_used(SKILLS, on_one_line(why), workspace)
        return folders
    from toolcrib.tools.skills import SkillFiles

    begin = f"{SKILLS}/"
    read = {file.path.removeprefix(begin): file.data for file in files}
    return [*folders, SkillFiles(Path(files[0].project) / SKILLS, read)]


def _trusted(workspace: Path | str, place: str) -> list[ProjectFile]:
    """The files of a folder that a person trusted as they are; the others are named on stderr."""
    try:
        files, problems = project_folder(workspace, place)
        states = [(file, why_not_trusted(file)) for file in files]
    except ToolcribError as problem:
        say(f"{place} of this folder is not used: {on_one_line(str(problem))}")
        return []
    for wrong in problems:
        say(f"not used: {on_one_line(str(wrong))}")
    for why in dict.fromkeys(why for _, why in states if why):
        names = ", ".join(file.path for file, reason in states if reason == why)
        say_not_used(names, why, workspace)
    return [file for file, why in states if not why]


def _users_files(folder: Path) -> Iterator[PluginFile]:
    """The Python files in a folder of the user that nobody else may write."""
    for path in sorted([*folder.glob("*.py"), *folder.glob("*/*.py")]):
        shown = on_one_line(str(path))
        try:
            status = path.stat()
            if belongs_to_another_user(status) or others_may(status, WRITE_BY_OTHERS):
                say(f"{shown} is not used: others may write it")
            elif not path.is_file() or status.st_size > MAX_BYTES:
                say(f"{shown} is not used: it is no ordinary file of at most {MAX_BYTES:,} bytes")
            else:
                inner = path.relative_to(folder).as_posix()
                yield PluginFile(shown, inner, str(path), path.read_bytes())
        except OSError as problem:
            say(f"{shown} is not used: {problem.strerror or problem}")
