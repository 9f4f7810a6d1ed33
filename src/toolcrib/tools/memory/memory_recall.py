"""`memory_recall`: finds what was remembered."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from toolcrib.effect import Effect
from toolcrib.tool import Tool
from toolcrib.tools.memory.memory_store import file_name
from toolcrib.tools.memory.opening import Stores, opened_once
from toolcrib.tools.memory.store import Memory, MemoryStore
from toolcrib.visible import counted

if TYPE_CHECKING:
    from typing import Any

    from toolcrib.context import Context

DEFAULT_LIMIT = 10
MAX_LIMIT = 50
MAX_CHARACTERS = 12_000  # of all texts in one result
DAY = 86_400.0


class RecallParams(BaseModel):
    query: str = Field(
        "", max_length=500, description="Words that the memory is about. Left out, the newest memories."
    )
    category: str = Field("", description='Only this kind, such as "decisions".')
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="How many memories at most.")


class Recall(
    Tool[RecallParams, str],
    name="memory_recall",
    effect=Effect.READ,
    secrets=(),
    title="Recall",
    category="memory",
    idempotent=True,
    open_world=False,
):
    """Find what was remembered in earlier conversations, here or in all projects of this user: the best fits first.

    Use it before you decide something that may have been decided, and when the user speaks of earlier work.
    """

    def __init__(self, store: Stores) -> None:
        self._opened = opened_once(store)

    @property
    def store(self) -> MemoryStore:
        return self._opened()

    def accesses(self, params: RecallParams) -> tuple[()]:
        return ()  # no file of the workspace

    def resources(self, params: RecallParams) -> list[str]:
        return ["memory"]

    def execute(self, params: RecallParams, ctx: Context[Any]) -> str:
        category = "/".join(filter(None, map(file_name, params.category.split("/"))))
        found = self.store.recall(params.query, category=category, limit=params.limit + 1)
        count = min(len(found), params.limit)
        ctx.report(tip=counted(count, "memory", "memories"))
        if not found:
            return self._nothing(params)
        now, room, texts = time.time(), MAX_CHARACTERS, list[str]()
        for memory in found[: params.limit]:
            text = f"{memory.path} ({_age(memory, now)}): {memory.text}"
            room -= len(text)
            if room < 0 and texts:
                break
            texts.append(text if room >= 0 else f"{text[:MAX_CHARACTERS]} ...")
        if len(texts) < len(found):
            texts.append(f"[There are more than these {len(texts)}. Use more telling words, or a category.]")
        return "\n\n".join(texts)

    def _nothing(self, params: RecallParams) -> str:
        known = sorted({one.category for one in self.store.recall("", limit=1_000) if one.category})
        if not known:
            return "[Nothing has been remembered yet.]"
        what = f" about {params.query!r}" if params.query else ""
        return f"[Nothing was found{what}. There are memories of these categories: {', '.join(known[:20])}.]"


def _age(memory: Memory, now: float) -> str:
    days = int((now - memory.modified) // DAY)
    ago = "today" if days <= 0 else f"{counted(days, 'day')} ago"
    if memory.expires is None:
        return ago
    left = int((memory.expires - now) // DAY) + 1
    return f"{ago}, for {counted(left, 'more day')}"
