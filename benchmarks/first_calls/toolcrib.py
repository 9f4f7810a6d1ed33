"""Toolbox.call."""

import asyncio

from toolcrib import Effect, Toolbox, ToolCall, tool


@tool(effect=Effect.READ, secrets=())
async def add(a: int, b: int = 0) -> int:
    "Add two numbers."
    return a + b


assert asyncio.run(Toolbox([add]).call(ToolCall("add", '{"a": 1, "b": 2}'))).text == "3"
