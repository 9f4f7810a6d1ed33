"""`memory_store`: keeps a short text for later runs."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.tool import Tool
from toolcrib.tools.memory.opening import Stores, opened_once
from toolcrib.tools.memory.store import USER_FOLDER, MemoryStore
from toolcrib.visible import counted

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context

MAX_CHARACTERS = 4_000
MAX_NAME = 60
MAX_DAYS = 3_650
DAY = 86_400.0
UNUSABLE = re.compile(r"[^\w.-]+")


class RememberParams(BaseModel):
    name: str = Field(
        max_length=MAX_NAME,
        description='What it is about, in a few words, such as "database choice". The same name and category '
        "replace what was stored under them.",
    )
    content: str = Field(
        max_length=MAX_CHARACTERS,
        description="What to remember, in sentences that are clear without this conversation.",
    )
    category: str = Field(
        "notes", max_length=MAX_NAME, description='The kind, such as "decisions", "preferences" or "people".'
    )
    scope: Literal["project", "user"] = Field(
        "project", description='"project": holds here. "user": holds in all projects of this user.'
    )
    days: int | None = Field(
        None, ge=1, le=MAX_DAYS, description="After how many days to forget it; left out, it stays."
    )


class Remember(
    Tool[RememberParams, str],
    name="memory_store",
    effect=Effect.WRITE,
    secrets=(),
    title="Remember",
    category="memory",
    idempotent=True,
    open_world=False,
):
    """Remember a short text for later conversations: a decision and its reason, a preference, a fact hard to find.

    Do not store what the workspace's files say already, whole files, or passwords and keys.
    """

    def __init__(self, store: Stores) -> None:
        self._opened = opened_once(store)

    @property
    def store(self) -> MemoryStore:
        return self._opened()

    def accesses(self, params: RememberParams) -> tuple[()]:
        return ()  # no file of the workspace

    def resources(self, params: RememberParams) -> list[str]:
        return ["memory"]

    def precheck(self, params: RememberParams) -> str | None:
        if not params.content.strip():
            return "content is empty. Say what to remember, or use memory_forget to remove a memory."
        if not file_name(params.name):
            return f"name {params.name!r} has no letters or digits. Give a few words."
        return None

    def execute(self, params: RememberParams, ctx: Context[Any]) -> str:
        if problem := self.precheck(params):
            raise ToolError(problem)
        path = memory_path(params.name, params.category, params.scope)
        expires = None if params.days is None else time.time() + params.days * DAY
        before = self.store.load(path)
        self.store.remember(path, params.content, expires=expires)
        ctx.report(tip=path, result={"path": path, "content": params.content})
        until = f" for {counted(params.days, 'day')}" if params.days else ""
        if before is None:
            return f"Remembered as {path}{until}."
        old = before.data.decode(errors="replace")
        if old == params.content:
            return f"{path} says so already{until}."
        return f"Remembered as {path}{until}, in place of: {old}"


def file_name(text: str) -> str:
    """A text as a name of a file or folder: its letters, digits, dots and hyphens."""
    return UNUSABLE.sub("-", text.strip().casefold()).strip("-.")


def memory_path(name: str, category: str, scope: str) -> str:
    """The path of a memory in the store.

    >>> memory_path("Database choice", "decisions", "project")
    'decisions/database-choice.md'
    """
    folder = file_name(category) or "notes"
    top = [USER_FOLDER] if scope == USER_FOLDER or folder == USER_FOLDER else []
    return "/".join([*top, folder, f"{file_name(name).removesuffix('.md')}.md"])
