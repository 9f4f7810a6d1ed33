"""An MCP server over stdio: what lies on the shelves of a tool crib."""

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

SHELVES = {"saw": 3, "plane": 1, "chisel": 0}

server = MCPServer("stock")


@server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
def count(tool: str) -> int:
    """How many of a tool are on the shelf."""
    return SHELVES.get(tool, 0)


@server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
def list_tools() -> list[str]:
    """The names of all tools."""
    return sorted(SHELVES)


if __name__ == "__main__":
    server.run()
