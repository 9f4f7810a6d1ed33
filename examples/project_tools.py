"""A module of tools, as a project would keep it, for people and for agents.

    cd examples
    toolcrib tools list --from project_tools
    toolcrib tools call --from project_tools next_version --version 1.4.2 --part minor
    toolcrib run --from project_tools "Write down what is new, as version 1.5.0."

Every tool that a module defines is found. A package that is installed offers its tools without being named, by an
entry point:

    [project.entry-points."toolcrib.tools"]
    mine = "project_tools"
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from toolcrib import Effect, ToolError, tool

CHANGELOG = Path("CHANGELOG.md")

Version = Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$", description='A version, such as "1.4.2".')]


@tool(effect=Effect.READ, secrets=(), category="release", idempotent=True, open_world=False)
def next_version(version: Version, part: Literal["major", "minor", "patch"] = "patch") -> str:
    """Work out the version that follows another one.

    Args:
        part: Which part is raised: major for changes that break, minor for new features, patch for fixes.
    """
    numbers = [int(number) for number in version.split(".")]
    raised = ("major", "minor", "patch").index(part)
    numbers = [*numbers[:raised], numbers[raised] + 1, *[0] * (2 - raised)]
    return ".".join(str(number) for number in numbers)


@tool(effect=Effect.WRITE, secrets=(), category="release", open_world=False)
def add_release(version: Version, notes: Annotated[list[str], Field(min_length=1)]) -> str:
    """Add a release to the top of CHANGELOG.md in the current folder.

    Args:
        notes: What is new for users, one sentence each.
    """
    old = CHANGELOG.read_text(encoding="utf-8") if CHANGELOG.exists() else ""
    if f"## {version} " in old:
        raise ToolError(f"{CHANGELOG} has a release {version} already. Work out the next version first.")
    lines = "\n".join(f"- {note}" for note in notes)
    CHANGELOG.write_text(f"## {version} ({date.today()})\n\n{lines}\n\n{old}", encoding="utf-8")
    return f"Added {version} with {len(notes)} notes."
