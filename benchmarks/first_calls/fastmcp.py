"""FastMCP.call_tool."""

import asyncio
import json

from fastmcp import FastMCP

server = FastMCP("bench")


@server.tool
async def add(a: int, b: int = 0) -> int:
    "Add two numbers."
    return a + b


assert asyncio.run(server.call_tool("add", json.loads('{"a": 1, "b": 2}'))).content[0].text == "3"
