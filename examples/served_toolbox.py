"""A toolbox as an MCP server: a client lists its tools, and a person at the client is asked before anything is deleted.

Run it without a key and without a network:   python examples/served_toolbox.py
Serve it to Claude, Cursor or VS Code:        python examples/served_toolbox.py serve
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from toolcrib import Context, Effect, Toolbox, ToolError, tool
from toolcrib.mcp import McpFace, serve_stdio

NOTES = {"today": "buy nails", "old": "sell the lathe"}


@tool(effect=Effect.READ, secrets=(), open_world=False)
def list_notes() -> list[str]:
    """The names of all notes."""
    return sorted(NOTES)


@tool(effect=Effect.DESTRUCTIVE, secrets=(), open_world=False, title="Delete a note")
def delete_note(name: str) -> str:
    """Delete a note for good."""
    if NOTES.pop(name, None) is None:
        raise ToolError(f"There is no note {name!r}. There are: {', '.join(NOTES)}.")
    return f"{name} is gone."


@tool(effect=Effect.READ, secrets=(), open_world=False)
async def tidy_up(*, ctx: Context) -> str:
    """Ask the user which notes to delete, and delete them."""
    said = await ctx.ask_user("Which notes may go?", sorted(NOTES), several=True)
    for done, name in enumerate(said.chosen, 1):
        await ctx.call("delete_note", name=name)
        ctx.report(progress=done / len(said.chosen), tip=f"deleted {name}")
    return f"Left: {', '.join(sorted(NOTES)) or 'nothing'}."


face = McpFace(Toolbox([list_notes, delete_note, tidy_up]), name="notes")


async def try_it() -> None:
    """What an MCP client sees; the person at it is scripted."""
    from mcp import Client
    from mcp_types import ElicitResult

    async def person(context: Any, params: Any) -> ElicitResult:
        shown = params.message.splitlines()[0]
        fields = params.requested_schema["properties"]
        if "decision" in fields:
            answer: dict[str, Any] = {"decision": "no", "message": "keep that one"}
            if "old" in params.message:
                answer = {"decision": "yes"}
        else:  # one box to tick for each note, and room for words
            answer = {"option_1": True}
        print(f"   the person is asked: {shown}\n   and answers: {answer}")
        return ElicitResult(action="accept", content=answer)

    async with Client(face.server, elicitation_callback=person) as client:
        for listed in (await client.list_tools()).tools:
            hints = listed.annotations
            assert hints is not None
            print(f"{listed.name}: {'reads' if hints.read_only_hint else 'destroys'}")
        for name, arguments in (
            ("list_notes", {}),
            ("delete_note", {"name": "today"}),
            ("tidy_up", {}),
        ):
            print(f"-> {name} {arguments}")
            result = await client.call_tool(name, arguments)
            said = " ".join(block.text for block in result.content if block.type == "text")
            print(f"<- {'error: ' if result.is_error else ''}{said}")


if __name__ == "__main__":
    asyncio.run(serve_stdio(face) if "serve" in sys.argv[1:] else try_it())
