"""An MCP server over stdio: the days on which the supplier delivers."""

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("deliveries")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True, openWorldHint=False))
def next_delivery() -> dict[str, str]:
    """The next day on which the supplier delivers."""
    return {"day": "Thursday", "from": "8:00"}


if __name__ == "__main__":
    server.run()
