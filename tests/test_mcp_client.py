"""The client of MCP: servers in this process, over the protocol's own framing, in both of its eras."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp.server import MCPServer

from tests.cases import each
from toolcrib import Effect, Toolbox
from toolcrib.mcp import McpServer, McpToolset, ServerState
from toolcrib.mcp.client.connection import Connection
from toolcrib.mcp.client.in_process import InProcessLink
from toolcrib.mcp.names import LONGEST, shown_names


def calculator() -> MCPServer[Any]:
    server = MCPServer("calculator")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return server


async def test_tools_of_a_server_are_tools_of_ours() -> None:
    tools = McpToolset(in_process={"calc": calculator()})
    assert [server.state for server in tools.servers()] == [ServerState.CONFIGURED]
    async with Toolbox([tools], autonomy="full") as box:
        assert await box.names() == ["calc__add"]
        result = await box.call("calc__add", {"a": 1, "b": "2"})
        assert result.structured == {"result": 3}
        assert [edit.path for edit in result.edits] == ["b"]
        wrong = await box.call("calc__add", {"a": 1})
        assert "- b: expected integer, got nothing" in wrong.text
        [server] = tools.servers()
        assert (server.state, server.tools, server.problem) == (ServerState.STARTED, 1, "")
    assert [server.state for server in tools.servers()] == [ServerState.KNOWN]


async def test_a_call_of_a_server_that_is_not_known_yet_waits_for_it() -> None:
    """As after a restart of the program: the model, or a saved run, knows the name from before."""
    async with Toolbox([McpToolset(in_process={"calc": calculator()})], autonomy="full") as box:
        assert (await box.call("calc__add", {"a": 1, "b": 2})).structured == {"result": 3}
        assert "Unknown tool" in (await box.call("calc__none", {})).text


@each("era, protocol", [("", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_a_connection_speaks_both_eras(era: str, protocol: str) -> None:
    connection = await Connection.open("calc", InProcessLink(calculator()), era=era, timeout=10)
    try:
        assert connection.protocol == protocol
        listed, _, problems = await connection.listed("tools/list", "tools")
        assert [tool["name"] for tool in listed] == ["add"]
        assert problems == []
        answer = await connection.call_tool("add", {"a": 1, "b": 2})
        assert answer["structuredContent"] == {"result": 3}
    finally:
        await connection.close()
    assert connection.closed.done()
    assert connection.problem == ""


@each(
    "server, tool, shown",
    [
        ("git", "log", "git__log"),
        ("my.server", "read file", "my_server__read_file"),
        ("a__b", "c", "a_b__c"),
        ("7zip", "list", "mcp_7zip__list"),
        ("git", "搜索", "git__tool_"),
        ("s" * 80, "tool", "s" * 24 + "__tool_"),
        ("git", "t" * 80, "git__" + "t" * 50 + "_"),
    ],
)
def test_a_name_is_safe_for_every_provider(server: str, tool: str, shown: str) -> None:
    [name] = shown_names([(server, tool)]).values()
    assert name.startswith(shown)
    assert len(name) <= LONGEST
    assert name.isascii()
    assert name.replace("_", "").replace("-", "").isalnum()


def test_names_that_would_be_the_same_end_in_a_hash_of_the_pair_whatever_their_order() -> None:
    pairs = [("a", "x.y"), ("a", "x y"), ("a", "z")]
    names = shown_names(pairs)
    assert names == shown_names(pairs[::-1])
    assert len(set(names.values())) == 3
    assert names["a", "z"] == "a__z"


def test_what_a_server_says_of_effects_counts_only_if_it_is_trusted() -> None:
    from toolcrib.mcp.client.definitions import RemoteDefinition
    from toolcrib.mcp.client.tool import facts_of

    reads = RemoteDefinition("s", "t", annotations={"readOnlyHint": True, "openWorldHint": False})
    adds = RemoteDefinition("s", "t", annotations={"destructiveHint": False, "idempotentHint": True})
    silent = RemoteDefinition("s", "t")
    stranger, trusted = McpServer(name="s"), McpServer(name="s", trusted=True)
    overruled = McpServer(name="s", trusted=True, effects={"t": Effect.WRITE})

    def told(tool: RemoteDefinition, server: McpServer) -> tuple[Effect, bool, bool]:
        facts = facts_of("s__t", tool, server)
        return facts.effect, facts.open_world, facts.idempotent

    unknown = (Effect.DESTRUCTIVE, True, False)
    assert [told(tool, stranger) for tool in (reads, adds, silent)] == [unknown] * 3
    assert told(reads, trusted) == (Effect.READ, False, True)
    assert told(adds, trusted) == (Effect.WRITE, True, True)
    assert told(silent, trusted) == unknown
    assert told(reads, overruled)[0] is Effect.WRITE
