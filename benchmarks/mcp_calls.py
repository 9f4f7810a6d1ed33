"""What calls of MCP servers cost, beside the bare SDK and FastMCP's client: wall-clock milliseconds on this machine.

    python benchmarks/mcp_calls.py [ROUNDS]              toolcrib and the SDK
    PYTHON_WITH_FASTMCP benchmarks/mcp_calls.py fastmcp  FastMCP's client, in an environment that has it

A call of `add` in memory, over stdio and over HTTP, the median of the rounds; then what only toolcrib has: listing 500
tools that are known from an earlier time, ten servers started at once, and the first list of tools with ten servers of
which nothing is known and that take long to start.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

ADD = """
import sys, time
time.sleep(float(sys.argv[2]))
from mcp.server import MCPServer
server = MCPServer("bench")
for number in range(int(sys.argv[3])):
    def more(a: int = 0) -> int:
        "Do something of which a model is told in one sentence."
        return a
    server.tool(name=f"tool_{number}")(more)
@server.tool()
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
if sys.argv[1] == "stdio":
    server.run()
else:
    server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
"""
ARGUMENTS = {"a": 1, "b": 2}
CALLS = 50  # of one round


async def timed(call: Callable[[], Awaitable[Any]], rounds: int) -> float:
    """Milliseconds of one call: the median of the rounds."""
    await call()
    rows = []
    for _ in range(rounds):
        begun = time.perf_counter()
        for _ in range(CALLS):
            await call()
        rows.append((time.perf_counter() - begun) / CALLS * 1_000)
    return statistics.median(rows)


def in_memory() -> Any:
    from mcp.server import MCPServer

    server: Any = MCPServer("bench")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return server


async def calls(who: str, script: Path, url: str, rounds: int) -> None:
    from mcp import Client, StdioServerParameters, stdio_client

    local = [sys.executable, str(script), "stdio", "0", "0"]
    async with AsyncExitStack() as stack:
        if who == "toolcrib":
            from toolcrib import Toolbox
            from toolcrib.mcp import McpServer, McpToolset

            configs = [
                McpServer(name="stdio", command=tuple(local)),
                McpServer(name="HTTP", url=url, transport="http"),
            ]
            tools = McpToolset(configs, in_process={"memory": in_memory()})
            box = await stack.enter_async_context(Toolbox([tools], autonomy="full"))
            await tools.ready(60)
            for name in ("memory", "stdio", "HTTP"):
                print(
                    f"| {who} | {name} | {await timed(lambda n=name: box.call(f'{n}__add', ARGUMENTS), rounds):.2f} |"
                )
            return
        targets: dict[str, Any] = {"memory": in_memory(), "HTTP": url}
        if who == "fastmcp":
            from fastmcp import Client, FastMCP
            from fastmcp.client.transports import StdioTransport

            targets["memory"] = FastMCP("bench")
            targets["memory"].tool(add)
            targets["stdio"] = StdioTransport(local[0], local[1:])
        else:
            targets["stdio"] = stdio_client(StdioServerParameters(command=local[0], args=local[1:]))
        for name in ("memory", "stdio", "HTTP"):
            client: Any = await stack.enter_async_context(Client(targets[name]))
            print(
                f"| {who} | {name} | {await timed(lambda c=client: c.call_tool('add', ARGUMENTS), rounds):.2f} |"
            )


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def lists(script: Path, folder: Path) -> None:
    """What only toolcrib has: lists that are kept, and servers that nobody waits for."""
    from toolcrib import Toolbox
    from toolcrib.mcp import McpServer, McpToolset

    def ten(seconds: str, more: str) -> list[McpServer]:
        command = (sys.executable, str(script), "stdio", seconds, more)
        return [McpServer(name=f"s{number}", command=command) for number in range(10)]

    begun = time.perf_counter()
    tools = McpToolset(ten("0", "49"), cache=folder)
    async with Toolbox([tools], autonomy="full"):
        await tools.ready(120)
        print(
            f"| toolcrib | ten servers started and listed at once | {(time.perf_counter() - begun) * 1e3:.0f} |"
        )
    begun = time.perf_counter()
    async with Toolbox([McpToolset(ten("0", "49"), cache=folder)], autonomy="full") as box:
        count = len((await box.tool_list()).specs)
        print(f"| toolcrib | {count} kept tools listed | {(time.perf_counter() - begun) * 1e3:.0f} |")
    begun = time.perf_counter()
    async with Toolbox([McpToolset(ten("30", "0"), wait=0.0)], autonomy="full") as box:
        await box.tool_list()
        took = (time.perf_counter() - begun) * 1e3
        print(f"| toolcrib | first list with ten cold servers that take 30 s | {took:.0f} |")


def main() -> None:
    fastmcp = sys.argv[1:] == ["fastmcp"]
    rounds = 5 if fastmcp or not sys.argv[1:] else int(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "served.py"
        script.write_text(ADD, "utf-8")
        import socket

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        serving = subprocess.Popen(
            [sys.executable, str(script), str(port), "0", "0"], stderr=subprocess.DEVNULL
        )
        try:
            for _ in range(300):
                with socket.socket() as trying:
                    if not trying.connect_ex(("127.0.0.1", port)):
                        break
                time.sleep(0.1)
            url = f"http://127.0.0.1:{port}/mcp"
            print("| who | what | ms |\n| --- | --- | --- |")
            for who in ["fastmcp"] if fastmcp else ["mcp", "toolcrib"]:
                asyncio.run(calls(who, script, url, rounds))
        finally:
            serving.terminate()
            serving.wait(10)
        if not fastmcp:
            asyncio.run(lists(script, folder / "cache"))


if __name__ == "__main__":
    main()
