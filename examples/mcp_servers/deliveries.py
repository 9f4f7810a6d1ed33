"""An MCP server over stdio: the days on which the supplier delivers."""

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("deliveries")


@server.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
def next_delivery() -> dict[str, str]:
    """The next day on which the supplier delivers."""
    return {"day": "Thursday", "from": "8:00"}


if __name__ == "__main__":
    server.run()
