"""The settings of `toolcrib.toml` that count in a workspace, and the built-in tools that they give."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.cli.console import Problem, say
from toolcrib.cli.user_files import config_folder, trust_store
from toolcrib.dataclass import dataclass, field
from toolcrib.errors import ToolcribError
from toolcrib.private_files import state_folder
from toolcrib.rules.project_files import FOLDER, ProjectFile, read_project_file
from toolcrib.settings.catalogue import CATALOGUE
from toolcrib.settings.file import NAME, SettingsError, SettingsFile, read_settings
from toolcrib.settings.joined import JoinedSettings, join_settings
from toolcrib.text_file import text_of
from toolcrib.visible import on_one_line

if TYPE_CHECKING:
    from toolcrib.agent.delegation import Delegate
    from toolcrib.command.sandbox import Sandbox
    from toolcrib.rules.trust import Trustable
    from toolcrib.tools import Workspace
    from toolcrib.tools.memory import MemoryStore
    from toolcrib.tools.skills import SkillFiles
    from toolcrib.toolset import ToolLike

PLACE = f"{FOLDER}/{NAME}"
MAX_BYTES = 1_000_000  # of the user's own file


@dataclass(frozen=True, slots=True)
class ToolsWanted:
    """For whom tools are assembled: the model's name, and whether somebody can be asked.

    `only` names the one built-in tool that is wanted. Without effect for a tool that is off, or works with others.
    """

    model: str = ""
    asks: bool = True
    agents: Mapping[str, Delegate] = field(default_factory=dict)
    only: str = ""


def settings_path() -> Path:
    """The user's own settings."""
    return config_folder() / NAME


def users_settings() -> SettingsFile | None:
    """The user's own settings, if there is such a file. Raises Problem, which names all that is wrong."""
    return read_file(settings_path())


def read_file(path: Path) -> SettingsFile | None:
    """The settings in a file, if there is one. Raises Problem, which names all that is wrong."""
    text = read_user_text(path)
    try:
        return None if text is None else read_settings(text, str(path))
    except SettingsError as problem:
        raise Problem(str(problem)) from problem


def read_user_text(path: Path) -> str | None:
    """The text of a file of the user's settings; None if there is none. Raises Problem."""
    try:
        if path.exists() and not path.is_file():
            raise Problem(f"{path} is no ordinary file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise Problem(f"{path} cannot be read: {problem.strerror or problem}") from problem
    if len(data) > MAX_BYTES:
        raise Problem(f"{path}: expected at most {MAX_BYTES:,} bytes")
    try:
        return text_of(data)
    except ValueError as problem:
        raise Problem(f"{path}: {problem}") from None


def projects_settings(workspace: str | Path) -> tuple[ProjectFile, SettingsFile] | None:
    """The settings of a project, trusted or not; None if it has none. Raises TrustError or SettingsError."""
    found = read_project_file(workspace, PLACE)
    return None if found is None else (found, read_settings(found.text, PLACE, of_project=True))


def settings_in_workspace(workspace: str | Path) -> JoinedSettings:
    """The settings that count: those of a trusted project, then the user's. Why others do not is said on stderr."""
    files = [users_settings()]
    try:
        found = projects_settings(workspace)
        if found is not None:
            why = why_not_trusted(found[0])
            if why:
                say_not_used(PLACE, why, workspace)
            else:
                files.insert(0, found[1])
    except ToolcribError as problem:
        say(f"{PLACE} of this folder is not used: {on_one_line(str(problem))}")
    return join_settings([file for file in files if file is not None])


def misplaced_settings(workspace: str | Path) -> str:
    """A hint where a `toolcrib.toml` stands at the top of a project, which is not read there; else ""."""
    if (Path(workspace) / NAME).is_file():
        return f"the {NAME} at the top of this folder is not read: move it to {PLACE}"
    return ""


def why_not_trusted(found: Trustable) -> str:
    """Why a file of a project is not used; "" if exactly this content was trusted."""
    trusted = trust_store().find(found.project, found.path)
    if trusted is None:
        return "nobody trusted it"
    return "" if trusted.sha256 == found.sha256 else "it changed since you trusted it"


def say_not_used(path: str, why: str, workspace: str | Path) -> None:
    """Tell the person that a file of a project is not used, and how to read it."""
    folder = on_one_line(str(workspace))
    say(f"{on_one_line(path)} of this folder is not used: {why}; to read it: toolcrib trust {folder}")


def built_in_tools(
    joined: JoinedSettings,
    workspace: Path | Workspace,
    sandbox: Sandbox | None,
    wanted: ToolsWanted,
    skills: Iterable[Path | SkillFiles],
) -> list[ToolLike]:
    """The built-in tools of a command, with the user's memory and folders of skills."""
    from toolcrib.assembly import all_tools

    folder = workspace if isinstance(workspace, Path) else workspace.root.path
    settings = joined.settings
    alone = {row.name for row in CATALOGUE if row.group not in ("batch", "delegation")}
    if wanted.only in alone and settings.switch(wanted.only):
        settings = settings.only(wanted.only)
    return all_tools(
        settings,
        workspace,
        sandbox=sandbox,
        model=wanted.model,
        asks=wanted.asks,
        agents=wanted.agents,
        memory=lambda: memory_of(folder),
        skills=skills,
    )


def memory_of(workspace: str | Path) -> MemoryStore:
    """What the user's agents remember in a project: one database for all, in the folder of what outlasts a run."""
    from toolcrib.tools.memory import MemoryStore

    folder = state_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return MemoryStore(folder / "memory.db", user=getpass.getuser(), project=os.path.realpath(workspace))
