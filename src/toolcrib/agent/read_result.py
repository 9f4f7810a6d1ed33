"""The built-in tool that opens an old result again, which the model is sent as one line.

The conversation itself is the store: a handle is made of the content of a result, so that it means the same result
after the conversation was saved and is continued by another process.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toolcrib.content import Media, Text, part_to_dict
from toolcrib.context import Context
from toolcrib.dataclass import dataclass
from toolcrib.effect import Effect
from toolcrib.errors import ToolError
from toolcrib.facts import MaxOutput
from toolcrib.messages import Message, ResultPart
from toolcrib.result import ToolResult
from toolcrib.tool import Tool
from toolcrib.visible import counted

if TYPE_CHECKING:
    from toolcrib.toolbox import Toolbox

__all__ = ["READ_RESULT", "ReadResult", "handle_of", "read_result_in"]

READ_RESULT = "read_result"
PAGE = 80_000  # characters of a result that are shown at once; results are cut at 50,000 bytes by default


@dataclass
class ReadResultParams:
    """The arguments of read_result.

    Args:
        handle: The handle that stands in place of the result.
        offset: Character to begin at, for a result that is shown in pages.
    """

    handle: str
    offset: int = 0


class ReadResult(
    Tool[ReadResultParams, ToolResult],
    name=READ_RESULT,
    effect=Effect.READ,
    secrets=(),
    title="Read an old result",
    idempotent=True,
    open_world=False,
    inline=True,
    max_output=MaxOutput(bytes=PAGE * 4 + 1_000, lines=PAGE * 4),
):
    """Show an earlier result of this conversation again that was removed to keep the conversation small.

    Call it only when the content of that result is needed again.
    """

    def __init__(self) -> None:
        self.conversations: dict[str, Sequence[Message]] = {}  # by run, while it lasts

    def accesses(self, params: ReadResultParams) -> tuple[()]:
        return ()

    def resources(self, params: ReadResultParams) -> tuple[()]:
        return ()

    def execute(self, params: ReadResultParams, ctx: Context[Any]) -> ToolResult:
        run = ctx.key.run
        while run not in self.conversations and "/" in run:  # a call that another call makes
            run = run.rpartition("/")[0]
        for message in self.conversations.get(run, ()):
            for part in message.parts:
                if isinstance(part, ResultPart) and handle_of(part) == params.handle.strip():
                    return _page(part.result, params)
        raise ToolError(
            f"This conversation has no result with the handle {params.handle!r}. "
            "Copy the handle from the line that stands in place of the result."
        )


def read_result_in(box: Toolbox[Any]) -> ReadResult | None:
    """The tool read_result of a toolbox."""
    known = box.registry.builtin(READ_RESULT)
    return known if isinstance(known, ReadResult) else None


def handle_of(part: ResultPart) -> str:
    """The handle of a result: the same for the same content of the same tool."""
    content = json.dumps([part.call.name, *map(part_to_dict, part.result.parts)], sort_keys=True, default=str)
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:10]


def _page(result: ToolResult, params: ReadResultParams) -> ToolResult:
    text = result.text
    if len(text) <= PAGE and params.offset <= 0:
        return ToolResult(result.parts, outside=result.outside)
    start = max(params.offset, 0)
    if start >= len(text):
        raise ToolError(f"offset is {start:,}, but the result has {counted(len(text), 'character')}.")
    page, end = text[start : start + PAGE], min(start + PAGE, len(text))
    parts: list[Any] = [Text(page)]
    if end < len(text):
        again = f"{READ_RESULT}(handle={params.handle.strip()!r}, offset={end})"
        parts.append(Text(f"[Characters {start:,} to {end:,} of {len(text):,}. {again} shows what follows.]"))
    elif start == 0:
        parts += [part for part in result.parts if isinstance(part, Media)]
    return ToolResult(tuple(parts), outside=result.outside)
