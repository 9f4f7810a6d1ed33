"""FunctionTool.on_invoke_tool."""

import asyncio

from agents import function_tool
from agents.tool_context import ToolContext


@function_tool
async def add(a: int, b: int = 0) -> int:
    "Add two numbers."
    return a + b


raw = '{"a": 1, "b": 2}'
context = ToolContext(None, tool_name="add", tool_call_id="id", tool_arguments=raw)
assert asyncio.run(add.on_invoke_tool(context, raw)) == 3
