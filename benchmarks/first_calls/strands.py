"""DecoratedFunctionTool.stream."""

import asyncio
import json

from strands import tool


@tool
async def add(a: int, b: int = 0) -> int:
    "Add two numbers."
    return a + b


async def main():
    asked = {"toolUseId": "id", "name": "add", "input": json.loads('{"a": 1, "b": 2}')}
    results = [event async for event in add.stream(asked, {})]
    assert results[-1].tool_result["content"][0]["text"] == "3"


asyncio.run(main())
