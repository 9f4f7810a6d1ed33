"""StructuredTool.ainvoke."""

import asyncio
import json

from langchain_core.tools import tool


@tool
async def add(a: int, b: int = 0) -> int:
    "Add two numbers."
    return a + b


call = {"name": "add", "args": json.loads('{"a": 1, "b": 2}'), "id": "id", "type": "tool_call"}
assert asyncio.run(add.ainvoke(call)).content == "3"
