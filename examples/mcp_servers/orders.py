"""An MCP server over stdio: orders at a supplier. It says nothing of its effects, so each call counts as the worst."""

from mcp.server import MCPServer

server = MCPServer("orders")


@server.tool()
def place(tool: str, number: int) -> str:
    """Order tools at the supplier."""
    return f"ordered: {number} x {tool}"


if __name__ == "__main__":
    server.run()
