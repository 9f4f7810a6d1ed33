"""An agent over three MCP servers, each a process of its own.

    python examples/mcp_agent.py

Without a key: the model is scripted. The servers, the protocol and the questions are real. The same servers can be
configured for the command line: `toolcrib mcp add stock -- python examples/mcp_servers/stock.py`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from toolcrib import Agent, Answer, Question, Toolbox, Verdict
from toolcrib.events import CallFinished, RunFinished, TextDelta
from toolcrib.mcp import McpToolset, read_mcp_servers
from toolcrib.messages import Request
from toolcrib.models import Model, Scripted, Turn, resolve_model

SERVERS = Path(__file__).parent / "mcp_servers"
TASK = "We need two chisels and a saw. Order what is missing, and say when it comes."

# As it stands in a .mcp.json, except for `trusted`: the annotations of these two servers count.
CONFIGURATION = {
    "mcpServers": {
        "stock": {"command": sys.executable, "args": [str(SERVERS / "stock.py")], "trusted": True},
        "deliveries": {"command": sys.executable, "args": [str(SERVERS / "deliveries.py")], "trusted": True},
        "orders": {"command": sys.executable, "args": [str(SERVERS / "orders.py")]},
    }
}


def scripted(request: Request) -> Turn | dict[str, object]:
    """Stands in for a model: looks at the shelves, orders what is missing, and tells of it."""
    said = request.messages[-1]
    if said.role == "user":
        counts = [{"name": "stock__count", "arguments": {"tool": tool}} for tool in ("saw", "chisel")]
        return {"text": "I look at the shelves.", "calls": [*counts, {"name": "deliveries__next_delivery"}]}
    if len(said.results) == 3:
        # Models write numbers as text; the server's schema says what is meant.
        order = {"name": "orders__place", "arguments": {"tool": "chisel", "number": "2"}}
        return {"text": "There are saws, and no chisels.", "calls": [order]}
    return Turn(f"Done ({said.results[0].text}). They come on Thursday.")


async def person(question: Question) -> Answer:
    """Stands in for the person who is asked."""
    print(f"\n? {question.action} {question.arguments}: {question.reason}\n  yes")
    return Answer(Verdict.YES)


async def main() -> None:
    model: Model = resolve_model() if os.environ.get("TOOLCRIB_MODEL") else Scripted(scripted)
    servers = McpToolset(read_mcp_servers(CONFIGURATION), wait=60)
    async with Toolbox([servers], autonomy="supervised", approver=person) as box:
        print("tools:", ", ".join(await box.names()))
        for server in servers.servers():
            print(f"  {server.name}: {server.state}, protocol {server.protocol}, {server.tools} tool(s)")
        agent = Agent(model, toolbox=box, instructions="Use the tools. Answer in one sentence.")
        async for event in agent.stream(TASK):
            match event:
                case TextDelta():
                    print(event.text, end="", flush=True)
                case CallFinished():
                    print(f"\n[{event.tool}: {event.state}]", end="")
                case RunFinished():
                    print(f"\n[{event.reason}]")
                case _:
                    pass


if __name__ == "__main__":
    asyncio.run(main())
