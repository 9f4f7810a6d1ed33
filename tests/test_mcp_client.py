"""The client of MCP: servers in this process, over the protocol's own framing, in both of its eras."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp.server import MCPServer

from tests.cases import each
from tests.mcp_servers.raw import LEGACY, MODERN, RawServer, Refusal, text, tool
from toolcrib import Agent, Effect, ErrorCode, Question, Toolbox
from toolcrib.events import ServerChanged
from toolcrib.mcp import McpFace, McpServer, McpToolset, ServerState
from toolcrib.mcp.client import connection as connection_module
from toolcrib.mcp.client.connection import Connection
from toolcrib.mcp.client.definitions import read_definitions
from toolcrib.mcp.client.errors import ServerUnavailable
from toolcrib.mcp.client.in_process import InProcessLink
from toolcrib.mcp.client.manifest import Manifest, ManifestCache
from toolcrib.mcp.client.pages import read_list
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


LOOSE: Any = McpToolset
MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: LOOSE(McpServer("calc", command=["calc"])),
        r"servers are a list: write McpToolset\(\[server\]\)",
    ),
    (lambda: LOOSE(["uvx calc"]), "servers are McpServer objects, such as .*; got 'uvx calc'"),
    (lambda: LOOSE([McpServer("calc")]), "MCP server 'calc': give a command or a url"),
    (lambda: McpServer("calc", command="uvx calc"), r"write \['uvx', 'calc'\]"),
    (lambda: LOOSE(in_process={"own": Toolbox()}), r"in_process= takes .*McpFace\(toolbox\).*; got <"),
    (lambda: LOOSE(in_process={"own": McpFace}), "in_process= takes servers of the SDK and faces"),
]


@pytest.mark.parametrize(("mistake", "words"), MISTAKES)
def test_what_is_no_server_is_named_when_the_toolset_is_made(mistake: Callable[[], Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        mistake()


def test_a_server_that_is_switched_off_needs_no_command() -> None:
    """An entry may be kept for later; a project's file may only say that it is off."""
    assert McpToolset([McpServer("calc", enabled=False)]).servers() == []


async def test_a_face_may_be_handed_in_as_the_server_that_it_has() -> None:
    face = McpFace(Toolbox([prefixed(McpToolset(in_process={"calc": calculator()}), "my_")], autonomy="full"))
    async with Toolbox([McpToolset(in_process={"all": face})], autonomy="full") as box:
        assert await box.names() == ["all__my_calc__add"]


async def test_a_server_that_nobody_entered_is_told_to_the_operator(caplog: pytest.LogCaptureFixture) -> None:
    box = Toolbox([McpToolset(in_process={"calc": calculator()})], autonomy="full")
    assert (await box.call("calc__add", {"a": 1, "b": 2})).code is ErrorCode.UNKNOWN_TOOL
    assert "MCP server 'calc' was not started" in caplog.text
    assert "async with box" in caplog.text


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
        listed, _, problems = await read_list(connection, "tools/list", "tools")
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
    assert shown_names([*pairs, ("a", "x_y")]) == {**names, ("a", "x_y"): "a__x_y"}
    posing = [("a", names["a", "x.y"].removeprefix("a__")), ("a", names["a", "x y"].removeprefix("a__"))]
    posing += [("a", name.removeprefix("a__")) for name in shown_names([*pairs, *posing]).values()]
    assert len(set(shown_names([*pairs, *posing]).values())) == len({*pairs, *posing})
    assert shown_names([*pairs, *posing])["a", "x.y"] == names["a", "x.y"], "nobody else gets its name"


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


@pytest.mark.promise("mcp-servers.md", "A slow server holds up nobody.")
@pytest.mark.promise("mcp-servers.md", "A change of state is an event of the run")
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


@pytest.mark.promise("mcp-servers.md", "A crashed server is started again by the next call")
@pytest.mark.promise("mcp-servers.md", "A call that may have run is not repeated")
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
@pytest.mark.promise("mcp-servers.md", "A server that does not answer any more")
async def test_a_server_that_answers_nothing_any_more_is_started_anew(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(params: Any) -> Any:
        await asyncio.sleep(60)

    monkeypatch.setattr(connection_module, "ALIVE", 0.05)
    server = RawServer(tools=(tool("t"),), protocol=protocol)
    tools = McpToolset(in_process={"s": server})
    async with Toolbox([tools], autonomy="full") as box:
        first = await tools.server("s").connected()
        first.check_alive()  # it answers, and nothing happens
        await until(lambda: server.seen[-1] == ("ping" if protocol == LEGACY else "server/discover"))
        await asyncio.sleep(0.1)
        assert first.alive
        discover, ping = server._answers["server/discover"], server._answers["ping"]
        server._answers |= {"server/discover": never, "ping": never}
        first.check_alive()
        await first.closed
        server._answers |= {"server/discover": discover, "ping": ping}
        [status] = tools.servers()
        assert status.state is ServerState.FAILED
        assert "it has not answered for 0.05 s" in status.problem
        assert (await box.call("s__t", {})).text == "done"
        assert server.starts == 2


@pytest.mark.promise("mcp-servers.md", "all servers start with the toolset, and again after a crash")
async def test_with_start_background_a_crashed_server_comes_back_by_itself() -> None:
    server = RawServer(tools=(tool("t"),))
    tools = McpToolset(in_process={"s": server}, start="background")
    async with tools:
        await until(lambda: tools.servers()[0].state is ServerState.STARTED)
        await server.crash()
        await until(lambda: server.starts == 2 and tools.servers()[0].state is ServerState.STARTED)
        assert tools.servers()[0].problem == ""


def test_a_toolset_serves_several_event_loops() -> None:
    """A second loop uses the server that the first one started; when the first has ended, the second starts it."""
    server = RawServer(tools=(tool("t"),))
    tools = McpToolset(in_process={"s": server})
    box = Toolbox([tools], autonomy="full")
    used, ended = threading.Event(), threading.Event()
    seen: list[Any] = []

    async def second() -> None:
        async with box:
            seen.append((await box.call("s__t", {})).text)
            seen.append(server.starts)
            used.set()
            await asyncio.to_thread(ended.wait, 10)
            seen.append((await box.call("s__t", {})).text)
            seen.append(server.starts)

    async def first() -> None:
        await box.__aenter__()
        assert (await box.call("s__t", {})).text == "done"
        other.start()
        await asyncio.to_thread(used.wait, 10)

    other = threading.Thread(target=asyncio.run, args=(second(),))
    asyncio.run(first())
    ended.set()
    other.join(20)
    assert seen == ["done", 1, "done", 2]


def test_without_the_protocols_package_a_server_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.mcp.client.opening.find_spec", lambda name: None)
    tools = McpToolset(in_process={"s": RawServer()})
    with pytest.raises(ServerUnavailable, match=r'pip install "toolcrib\[mcp\]"'):
        asyncio.run(tools.server("s").connected())


@each("protocol", [LEGACY, MODERN])
@pytest.mark.promise("mcp-servers.md", "A list that changes is listed again")
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


@pytest.mark.promise("mcp-servers.md", "A call is not sent if its tool has changed since it was decided on")
@each("running", [True, False])
@each("after", [(), (tool("t", description="other"),)])
async def test_a_call_is_not_sent_to_a_tool_that_changed_since_it_was_decided_on(
    running: bool, after: tuple[Any, ...]
) -> None:
    server = RawServer(tools=(tool("t"),), protocol=LEGACY)
    tools = McpToolset(in_process={"s": server})
    asked: list[Question] = []
    async with Toolbox(
        [tools], autonomy="full", approver=lambda question: bool(asked.append(question))
    ) as box:
        assert (await box.call("s__t", {})).text == "done"
        if not running:
            await tools.aclose()
        server.tools = after
        if running:
            await server.notify("notifications/tools/list_changed", {})
            await until(lambda: tools.server("s")._relisting)
        late = await box.call("s__t", {})
        assert late.code is ErrorCode.TOOL_CHANGED and 'Tool "s__t"' in late.text
        again = await box.call("s__t", {})
        assert again.code is (ErrorCode.REJECTED if after else ErrorCode.UNKNOWN_TOOL), again
    assert server.seen.count("tools/call") == 1
    assert ["has changed since it was approved" in question.reason for question in asked] == [True] * len(
        after
    )


@each("protocol", [LEGACY, MODERN])
async def test_a_server_without_tools_is_no_broken_one(protocol: str) -> None:
    gone = Refusal(-32601, "Method not found")
    server = RawServer({"tools/list": gone}, protocol=protocol, capabilities={"resources": {}})
    tools = McpToolset(in_process={"s": server})
    async with tools:
        [status] = await tools.ready(10)
        assert (status.state, status.tools, status.problem) == (ServerState.STARTED, 0, "")


async def test_the_event_loop_goes_on_while_many_tools_are_listed() -> None:
    tools = McpToolset(
        in_process={"s": RawServer(tools=tuple(tool(f"t{number}") for number in range(1_000)))}
    )
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0)
            beats += 1

    async with Toolbox([tools]) as box:
        await tools.ready()
        beating = asyncio.ensure_future(beat())
        assert len(await tools.names()) == 1_000
        judged = beats
        assert len((await box.tool_list()).specs) == 1_000
        beating.cancel()
    assert judged > 1 and beats - judged > 15


async def test_a_list_that_cannot_be_read_leaves_what_was_known() -> None:
    server = RawServer(tools=(tool("t"),))
    tools = McpToolset(in_process={"s": server})
    async with tools:
        await tools.ready(10)
        server.tools = "nonsense"
        await tools.server("s").refresh()
        assert await tools.names() == ["s__t"]
        assert "has no list of tools" in tools.servers()[0].warnings[0]


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
        ([tool("t")] + [None] * 1_000, ["t"], "950 more problems"),
        ([tool("t", outputSchema="x")], ["t"], "outputSchema is a text"),
        ([tool("t", outputSchema={"type": 12})], ["t"], ""),
        ([tool("t", outputSchema={"enum": ["x" * 100_001]})], ["t"], "results are not checked"),
        ([tool("t", _meta={"a": "x" * 20_001})], ["t"], "_meta has 20,010 characters, more than 20,000"),
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
@pytest.mark.promise("mcp-servers.md", "What is wrong in a server costs that one thing")
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


# -- what is known without starting a server


def stored(folder: Path, server: McpServer, *names: str, ttl: float | None = None, at: float = 0.0) -> Path:
    cache = ManifestCache(folder)
    tools, _ = read_definitions(server.name, [tool(name) for name in names])
    cache.write(
        server.name, server.config_hash(), Manifest(tuple(tools), protocol=MODERN, fetched=at, ttl=ttl)
    )
    return cache.path(server.name, server.config_hash())


def test_listing_known_servers_starts_nothing_and_does_not_import_the_protocol(tmp_path: Path) -> None:
    server = McpServer(name="s", command=("no-such-program-at-all",))
    path = stored(tmp_path / "mcp", server, "t", "u")
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0
    program = f"""
import asyncio, sys, pathlib
from toolcrib import Toolbox
from toolcrib.mcp import McpServer, McpToolset
tools = McpToolset([McpServer(name="s", command=("no-such-program-at-all",))], cache=pathlib.Path({str(path.parent)!r}))
async def main():
    async with Toolbox([tools]) as box:
        print(await box.names(), [spec.name for spec in (await box.tool_list()).specs])
        print([str(server.state) for server in tools.servers()])
asyncio.run(main())
print([name for name in ("mcp", "mcp_types", "httpx2", "starlette") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["['s__t', 's__u'] ['s__t', 's__u']", "['known']", "[]"], done.stderr


def as_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@each(
    "spoil",
    [
        lambda path: path.write_text("{"),
        lambda path: path.write_text("[]"),
        lambda path: path.write_text(path.read_text().replace('"format":1', '"format":99')),
        lambda path: path.write_bytes(b"\xff\xfe" * 10),
        lambda path: path.write_text("[" * 100_000),
        lambda path: path.chmod(0o666),
        lambda path: (path.rename(path.with_suffix(".x")), path.symlink_to(path.with_suffix(".x"))),
        lambda path: (path.unlink(), path.mkdir()),
        as_pipe,
    ],
)  # fmt: skip
def test_a_stored_list_that_cannot_be_trusted_counts_as_none(
    spoil: Callable[[Path], Any], tmp_path: Path
) -> None:
    server = McpServer(name="s", command=("x",))
    path = stored(tmp_path, server, "t")
    assert McpToolset([server], cache=tmp_path).servers()[0].state is ServerState.KNOWN
    spoil(path)
    [status] = McpToolset([server], cache=tmp_path).servers()
    assert (status.state, status.tools) == (ServerState.CONFIGURED, None)


def test_a_stored_list_belongs_to_one_configuration(tmp_path: Path) -> None:
    stored(tmp_path, McpServer(name="s", command=("x",)), "t")
    for other in (
        McpServer(name="s", command=("x", "--all")),
        McpServer(name="s2", command=("x",)),
        McpServer(name="s", command=("x",), env={"A": "1"}),
        McpServer(name="s", url="http://127.0.0.1:1/mcp", transport="http"),
    ):
        assert McpToolset([other], cache=tmp_path).servers()[0].state is ServerState.CONFIGURED
    same = McpServer(name="s", command=("x",), timeout=5, trusted=True)
    assert McpToolset([same], cache=tmp_path).servers()[0].state is ServerState.KNOWN


@each("ttl, lists", [(None, 1), (0.0, 1), (100.0, 0)])
async def test_a_stored_list_is_fetched_anew_when_its_server_starts_unless_it_still_holds(
    ttl: float | None, lists: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = McpServer(name="s", command=("x",))
    stored(tmp_path, config, "t", ttl=ttl, at=1000.0)
    server = RawServer(tools=(tool("t"), tool("new")), capabilities={"tools": {}})
    tools = McpToolset([config], cache=tmp_path, clock=lambda: 1050.0)

    async def link(config: McpServer, warn: Any) -> Any:
        return InProcessLink(server)

    monkeypatch.setattr(tools.server("s"), "_link", link)
    async with Toolbox([tools], autonomy="full") as box:
        assert server.starts == 0
        assert (await box.call("s__t", {})).text == "done"
        await asyncio.sleep(0.05)
        assert server.seen.count("tools/list") == lists
        assert await box.names() == (["s__new", "s__t"] if lists else ["s__t"])
