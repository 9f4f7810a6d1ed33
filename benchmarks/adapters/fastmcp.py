"""fastmcp: a server's tools, called on the server and through its in-memory client."""

import json
from collections.abc import Callable
from typing import Any

from fastmcp import Client, FastMCP
from fastmcp.tools import Tool

NAME = "fastmcp"
PACKAGES = ("fastmcp", "mcp")
IMPORTS = {
    "tool and Toolbox": "from fastmcp import FastMCP",
    "agent": "from fastmcp import FastMCP, Client",
}


def define(function: Callable[..., Any]) -> Tool:
    return Tool.from_function(function)


def use(tool: Tool) -> None:
    """Its schema is made with the tool; there is no validator to be had apart from running it."""
    assert tool.parameters


def calls(function: Callable[..., Any], kind: str) -> dict[str, Any]:
    tool = define(function)
    server = FastMCP("bench")
    server.add_tool(tool)
    client = Client(server)
    connected = False

    async def run(raw: str) -> str:
        return (await tool.run(json.loads(raw))).content[0].text

    async def on_server(raw: str) -> str:
        return (await server.call_tool(tool.name, json.loads(raw))).content[0].text

    async def by_client(raw: str) -> str:
        nonlocal connected
        if not connected:
            await client.__aenter__()
            connected = True
        return (await client.call_tool(tool.name, json.loads(raw))).content[0].text

    return {"Tool.run": run, "FastMCP.call_tool": on_server, "Client.call_tool in memory": by_client}


def definitions(functions: list[Callable[..., Any]]) -> list[dict[str, Any]]:
    tools = [define(function) for function in functions]
    return [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools
    ]


class Registry:
    def __init__(self, function: Callable[..., Any], count: int) -> None:
        self.tools = [Tool.from_function(function, name=f"tool_{number}") for number in range(count)]
        self.server: Any = FastMCP("bench")

    def add(self) -> None:
        for tool in self.tools:
            self.server.add_tool(tool)

    def look_up(self, name: str) -> Any:
        return self.server.get_tool(name)

    async def list(self) -> int:
        return len(await self.server.list_tools())


registry = Registry
