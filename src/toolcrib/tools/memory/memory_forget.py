"""`memory_forget`: removes a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from toolcrib.effect import Effect
from toolcrib.question import Preview
from toolcrib.tool import Tool
from toolcrib.tools.backends.protocol import Delete
from toolcrib.tools.memory.opening import Stores, opened_once
from toolcrib.tools.memory.store import MemoryStore

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context


class ForgetParams(BaseModel):
    path: str = Field(
        description="The memory's path as memory_recall shows it, such as decisions/database-choice.md."
    )


class Forget(
    Tool[ForgetParams, str],
    name="memory_forget",
    effect=Effect.DESTRUCTIVE,
    secrets=(),
    title="Forget",
    category="memory",
    idempotent=True,
    open_world=False,
):
    """Remove one memory for good: one that is wrong by now, or that the user wants forgotten.

    To change a memory store it anew under the same name and category.
    """

    def __init__(self, store: Stores) -> None:
        self._opened = opened_once(store)

    @property
    def store(self) -> MemoryStore:
        return self._opened()

    def accesses(self, params: ForgetParams) -> tuple[()]:
        return ()  # no file of the workspace

    def resources(self, params: ForgetParams) -> list[str]:
        return ["memory"]

    def preview(self, params: ForgetParams) -> Preview | None:
        """What would be forgotten, for the person who is asked."""
        there = self.store.load(self.store.resource(params.path))
        return None if there is None else Preview(there.data.decode(errors="replace"))

    def execute(self, params: ForgetParams, ctx: Context[Any]) -> str:
        path = self.store.place(params.path).shown
        there = self.store.load(path)
        self.store.apply([Delete(path)])
        assert there is not None  # else `apply` refused
        return f"Forgot {path}, which said: {there.data.decode(errors='replace')}"
