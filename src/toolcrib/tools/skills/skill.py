"""`skill`: gives a model the instructions for a kind of work, when it begins that work."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.tool import Tool
from toolcrib.tools.backends.refusals import near_names
from toolcrib.tools.skills.folders import MANIFEST, Skill, SkillFiles, SkillFolders

if TYPE_CHECKING:
    from toolcrib.context import Context

LISTED_DESCRIPTION = 250  # characters of a description in the list
LISTED = 8_000  # characters of the whole list; skills beyond it are listed by their names


class SkillParams(BaseModel):
    name: str = Field(description="The skill's name, as listed.")
    file: str = Field(MANIFEST, description="The file to read: its instructions, or one that they name.")


class SkillTool(
    Tool[SkillParams, str],
    name="skill",
    effect=Effect.READ,
    secrets=(),
    title="Skill",
    category="knowledge",
    idempotent=True,
    open_world=False,
):
    """Read the instructions for a kind of work, before you begin it.

    Use a skill when the task is what its description says; then follow it. Its scripts are run like any command.
    """

    def __init__(self, folders: Iterable[str | os.PathLike[str] | SkillFiles]) -> None:
        self.folders = SkillFolders(folders)

    def accesses(self, params: SkillParams) -> tuple[()]:
        return ()  # the operator's own folders

    def resources(self, params: SkillParams) -> tuple[()]:
        return ()

    def unavailable(self) -> str | None:
        return None if self.folders.load()[0] else "there are no skills"

    async def dynamic_description(self, ctx: Context[Any]) -> str:
        return f"{type(self).__doc__}\n\nSkills:\n{listed(self.folders.load()[0])}"

    async def dynamic_schema(self, schema: dict[str, Any], ctx: Context[Any]) -> dict[str, Any]:
        schema["properties"]["name"]["enum"] = list(self.folders.load()[0])
        return schema

    def execute(self, params: SkillParams, ctx: Context[Any]) -> str:
        skills, problems = self.folders.load()
        for problem in problems:
            ctx.note(problem)
        if params.name not in skills:
            near = near_names(params.name, skills) or list(skills)[:20]
            raise ToolError(f"There is no skill {params.name!r}. There are: {', '.join(near) or 'none'}.")
        skill = skills[params.name]
        ctx.report(tip=params.name if params.file == MANIFEST else f"{params.name}: {params.file}")
        return _instructions(skill) if params.file == MANIFEST else skill.read(params.file)


def listed(skills: dict[str, Skill]) -> str:
    """The skills with their descriptions, a line each, as far as the list may be long."""
    lines, room = [], LISTED
    for name, skill in skills.items():
        about = skill.text.description
        about = about if len(about) <= LISTED_DESCRIPTION else f"{about[: LISTED_DESCRIPTION - 4]} ..."
        line = f"- {name}: {about}"
        room -= len(line) + 1
        lines.append(line if room >= 0 else f"- {name}")
    return "\n".join(lines)


def _instructions(skill: Skill) -> str:
    files = skill.files()
    if not files:
        return skill.text.body
    note = f"The skill is the folder {skill.path}. Its other files: {', '.join(files)}."
    return f'{skill.text.body}\n\n[{note} Read one with file="{files[0]}".]'
