"""The client of MCP: servers in this process, over the protocol's own framing, in both of its eras."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp.server import MCPServer

from tests.cases import each
from tests.mcp_servers.raw import LEGACY, MODERN, RawServer, Refusal, text, tool
from toolcrib import Agent, Effect, Toolbox
from toolcrib.events import ServerChanged
from toolcrib.mcp import McpServer, McpToolset, ServerState
from toolcrib.mcp.client.connection import Connection
from toolcrib.mcp.client.errors import ServerUnavailable
from toolcrib.mcp.client.in_process import InProcessLink
from toolcrib.mcp.names import LONGEST, shown_names
from toolcrib.messages import Request
from toolcrib.models import Scripted
from toolcrib.toolset import prefixed

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


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


# -- servers that come late, crash, or change


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2_000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not happen within ten seconds")


async def test_nobody_waits_for_a_slow_server_whose_tools_join_later() -> None:
    gate = asyncio.Event()
    slow = RawServer(tools=(tool("late"),), gate=gate)
    tools = McpToolset(in_process={"quick": RawServer(tools=(tool("early"),)), "slow": slow}, wait=0.2)
    seen: list[list[str]] = []

    async def script(request: Request) -> Any:
        seen.append([spec.name for spec in request.tools])
        if len(seen) == 1:
            gate.set()
            await until(lambda: tools.server("slow").state is ServerState.STARTED)
            return {"calls": [{"name": "quick__early", "arguments": {}}]}
        return "Done."

    agent = Agent(Scripted(script), [prefixed(tools, "")], autonomy="full")
    run = agent.start("Go.")
    events = [event async for event in run if isinstance(event, ServerChanged)]
    outcome = await run
    assert seen == [
        ["attempt_completion", "quick__early"],
        ["attempt_completion", "quick__early", "slow__late"],
    ]
    assert ("slow", "started", 1) in [(event.server, event.state, event.tools) for event in events]
    told = [message.text for message in outcome.messages if message.role == "user"]
    assert told[1:] == ["[The tools of MCP server 'slow' have changed: 1 added, 0 removed.]"]


async def test_a_server_that_cannot_be_started_costs_nothing_but_itself() -> None:
    servers = [
        McpServer(name="missing", command=("no-such-program-at-all",)),
        McpServer(name="dies", command=(sys.executable, "-c", "import sys; sys.exit('no licence')")),
        McpServer(name="off", command=("whatever",), enabled=False),
    ]
    tools = McpToolset(servers, in_process={"calc": calculator()})
    async with Toolbox([tools], autonomy="full") as box:
        assert await box.names() == ["calc__add"]
        await tools.ready(20)
        missing, dies, _ = tools.servers()
    assert "missing" in missing.problem
    assert "the program was not found on PATH: no-such-program-at-all" in missing.problem
    assert "exit code 1" in dies.problem
    assert "no licence" in dies.problem
    assert (missing.state, dies.state) == (ServerState.FAILED, ServerState.FAILED)


async def test_a_server_that_crashed_is_started_again_and_no_call_is_made_twice() -> None:
    async def never(params: Any) -> Any:
        crashes.set()
        await asyncio.sleep(60)

    crashes = asyncio.Event()
    server = RawServer({"tools/call": never}, tools=(tool("work"),))
    tools = McpToolset(in_process={"s": server})
    async with Toolbox([tools], autonomy="full") as box:
        call = asyncio.ensure_future(box.call("s__work", {}))
        await crashes.wait()
        await server.crash()
        assert (await call).is_error
        [status] = tools.servers()
        assert status.state is ServerState.FAILED
        assert "the connection ended" in status.problem
        assert server.seen.count("tools/call") == 1
        server._answers["tools/call"] = text("better")
        assert (await box.call("s__work", {})).text == "better"
        assert server.starts == 2
        assert tools.servers()[0].state is ServerState.STARTED


async def test_a_server_that_crashes_again_and_again_is_tried_ever_more_rarely() -> None:
    now = 1000.0
    tools = McpToolset([McpServer(name="s", command=("no-such-program-at-all",))], clock=lambda: now)
    handle = tools.server("s")
    waits = []
    for _ in range(12):
        with pytest.raises(ServerUnavailable):
            await handle.connected()
        waits.append(round(handle._not_before - now))
        now += waits[-1]
    now -= waits[-1]
    assert waits == [0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]
    with pytest.raises(ServerUnavailable, match="next attempt to start it is in 60 s"):
        await handle.connected()


@each("protocol", [LEGACY, MODERN])
async def test_a_changed_list_is_listed_again(protocol: str) -> None:
    server = RawServer(tools=(tool("old"),), protocol=protocol)
    subscribed: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def listen(params: Any) -> Any:
        stamp = {"_meta": {SUBSCRIPTION: server.ids["subscriptions/listen"]}}
        asked = params["notifications"]
        await server.notify("notifications/subscriptions/acknowledged", {"notifications": asked, **stamp})
        subscribed.set_result(server.ids["subscriptions/listen"])
        await asyncio.sleep(60)

    server._answers["subscriptions/listen"] = listen
    tools = McpToolset(in_process={"s": server})
    async with Toolbox([tools], autonomy="full") as box:
        assert await box.names() == ["s__old"]
        server.tools = (tool("new"), tool("old", description="other"))
        stamp = {"_meta": {SUBSCRIPTION: await subscribed}} if protocol == MODERN else {}
        for _ in range(50):  # a flood costs one list
            await server.notify("notifications/tools/list_changed", stamp)
        await until(lambda: tools.version == 2)
        assert await box.names() == ["s__new", "s__old"]
        assert server.seen.count("tools/list") == 2


# -- what a sloppy server says


@each(
    "listed, names, warning",
    [
        ([{"name": "t", "inputSchema": {"properties": {"a": {}}}}], ["t"], 'lacks "type": "object"'),
        ([{"name": "t"}], ["t"], "has no inputSchema"),
        ([{"name": "t", "inputSchema": []}], ["t"], "inputSchema is a list, not an object"),
        ([{"name": "t", "inputSchema": {"type": "string"}}, tool("u")], ["u"], "has the type 'string'"),
        ([{"name": "t", "inputSchema": {"type": ["object", "null"]}}], ["t"], ""),
        ([tool("t"), tool("t", description="2")], ["t"], "two tools are named 't'"),
        ([{"inputSchema": {}}, 7, None, tool("u")], ["u"], "it has no name"),
        ([{"name": 5}, tool("u")], ["u"], "it has no name"),
        ("no list", [], "has no list of tools"),
        ([tool("t", outputSchema="x")], ["t"], "outputSchema is a text"),
        ([tool("t", outputSchema={"type": 12})], ["t"], ""),
        ([tool("t", annotations={"readOnlyHint": "yes"})], ["t"], "readOnlyHint is a text"),
        ([tool("t", annotations=[1])], ["t"], "annotations are a list"),
        ([tool("t", title=3, description=["x"], unknown={"a": 1}, _meta=7)], ["t"], "title is a number"),
        ([tool("t", inputSchema={"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}})], [], ""),
        ([tool("t", inputSchema={"type": "object", "required": "a"}), tool("u")], ["u"], ""),
        ([tool("t", inputSchema={"type": "object", "properties": {"a": {"x-mcp-header": "a b"}}})], [], "left out"),
        ([tool("\x1b[2Jx\u202e")], ["_2Jx_"], ""),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:tool 's__t' was set aside")
async def test_what_is_wrong_in_a_definition_costs_that_one_thing(
    listed: Any, names: list[str], warning: str
) -> None:
    tools = McpToolset(in_process={"s": RawServer(tools=listed)})
    async with Toolbox([tools], autonomy="full") as box:
        shown = [spec.name.removeprefix("s__").lstrip("_") for spec in (await box.tool_list()).specs]
        assert [name.lstrip("_") for name in names] == shown
        [status] = tools.servers()
        assert status.state is ServerState.STARTED
        assert warning in " ".join(status.warnings)
        assert (await box.call(f"s__{names[0]}", {})).text == "done" if names == ["t"] else True


@each(
    "answers",
    [
        {"initialize": {"protocolVersion": LEGACY}},
        {"initialize": {"protocolVersion": LEGACY, "capabilities": {"tools": True}, "serverInfo": "x", "instructions": 4}},
        {"initialize": {"protocolVersion": LEGACY, "capabilities": [], "serverInfo": {"name": 1}, "later": {}}},
        {"server/discover": {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}},
        {"server/discover": {"supportedVersions": ["2099-01-01"]}},
        {"server/discover": {"nonsense": True}},
        {"server/discover": Refusal(-32022, "no", {"supported": [LEGACY]})},
        {"server/discover": Refusal(1, "never heard of it")},
    ],
)  # fmt: skip
async def test_a_sloppy_handshake_is_good_enough(answers: dict[str, Any]) -> None:
    protocol = LEGACY if "initialize" in answers else MODERN
    tools = McpToolset(in_process={"s": RawServer(answers, tools=(tool("t"),), protocol=protocol)})
    async with Toolbox([tools], autonomy="full") as box:
        assert (await box.call("s__t", {})).text == "done", tools.servers()
