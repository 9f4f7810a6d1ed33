"""A tool that shows what it is about to write while the model is still writing it.

    python examples/partial_arguments.py

`on_partial` is called as the arguments stream in, on the object that will execute. It may report, never act:
nothing is written before the arguments are complete, valid and allowed. The model here is scripted and slow.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from toolcrib import Agent, Context, Effect, Tool, ToolFactory
from toolcrib.call import CallState
from toolcrib.events import CallFinished, StatusChanged
from toolcrib.models import Scripted

POEM = """\
In the crib the tools are kept,
counted out and counted in,
none was lost and no one slept,
let the morning's work begin.
"""


class Draft(BaseModel):
    title: str = Field(
        description="What the text is called; also the name of its file.", pattern=r"^[\w -]+$"
    )
    text: str = Field(description="The whole text.")


class WriteText(Tool[Draft, str], name="write_text", effect=Effect.WRITE, secrets=(), open_world=False):
    """Write a text to a file of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told = 0  # characters of the text that were reported already

    def on_partial(self, partial: dict[str, Any], ctx: Context[None]) -> None:
        """Report each line once it is finished; `partial` holds what is known so far, unvalidated."""
        text = partial.get("text", "")
        while (end := text.find("\n", self.told)) >= 0:
            ctx.report(tip=text[self.told : end], params={"title": partial.get("title")})
            self.told = end + 1

    def execute(self, params: Draft, ctx: Context[None]) -> str:
        path = self.folder / f"{params.title}.txt"
        path.write_text(params.text, encoding="utf-8")
        return f"Wrote {path.name}: {len(params.text)} characters."


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = Scripted(
            [{"calls": [{"name": "write_text", "arguments": {"title": "The crib", "text": POEM}}]}, "Done."],
            chunk_size=6,
            delay=0.02,
        )

        def make(ctx: Context[None]) -> WriteText:  # an object for each call, because it keeps state
            return WriteText(Path(folder))

        agent = Agent(model, [ToolFactory("write_text", make)], autonomy="full")
        async for event in agent.stream("Write a poem about a tool crib."):
            match event:
                case CallFinished():
                    print(f"{event.state}: {event.result.text}")
                case StatusChanged(state=CallState.WAIT, tip=str()):
                    print(f"  … {event.tip}", flush=True)
                case StatusChanged(state=CallState.DOING):
                    print("  (complete: now it is written)")
                case _:
                    pass


if __name__ == "__main__":
    asyncio.run(main())
