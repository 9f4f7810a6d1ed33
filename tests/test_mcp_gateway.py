"""Many servers in, one out, with our rules in between: a served toolbox whose tools are those of other servers."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError

from tests.mcp_calls import toolset_of
from tests.test_mcp_server import both_eras, person, text_of
from toolcrib import Context, Effect, Toolbox, ToolError, tool
from toolcrib.mcp import McpToolset
from toolcrib.mcp.server import McpFace, PassedOnPrompts, PassedOnResources, peer_of_call


class Upstream:
    """A server behind the gateway."""

    def __init__(self) -> None:
        self.begun, self.stopped = asyncio.Event(), asyncio.Event()

        @tool(effect=Effect.READ, secrets=(), title="Look up")
        async def look(word: str, *, ctx: Context) -> dict[str, str]:
            """Look a word up."""
            ctx.report(progress=0.5, tip="half")
            return {"found": word}

        @tool(effect=Effect.READ, secrets=())
        async def hang() -> str:
            """Hang."""
            self.begun.set()
            try:
                await asyncio.sleep(60)
            finally:
                self.stopped.set()
            return ""

        @tool(effect=Effect.READ, secrets=())
        async def ask() -> str:
            """Ask the user."""
            peer = peer_of_call()
            assert peer is not None
            schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
            said = await peer.elicit("How old are you?", schema)
            page = await peer.elicit_url("Sign here.", "https://sign.example.com/1", "e1")
            return f"{said['action']} {said.get('content')} {page['action']}"

        @tool(effect=Effect.DESTRUCTIVE, secrets=())
        def wipe() -> str:
            """Wipe all."""
            return "wiped"

        @tool(effect=Effect.READ, secrets=())
        def fail() -> str:
            """Fail."""
            raise ToolError("not today")

        @tool(effect=Effect.READ, secrets=())
        async def warn(*, ctx: Context) -> str:
            """Report progress, and log an error."""
            peer = peer_of_call()
            assert peer is not None
            ctx.report(progress=0.5, tip="half")
            await peer.log("error", "the disk of ada is full")
            return "warned"

        tools = [look, hang, ask, wipe, fail, warn]
        self.face = McpFace(Toolbox(tools, autonomy="full"), name="upstream")


def gateway(upstream: Upstream, **options: Any) -> McpFace:
    servers = McpToolset(in_process={"up": upstream.face.server})
    return McpFace(Toolbox([servers], **options), name="gateway")


@both_eras
async def test_tools_of_another_server_are_served_under_our_rules(era: str) -> None:
    upstream, told = Upstream(), []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    asked: list[str] = []
    face = gateway(upstream)
    async with Client(
        face.server, mode=era, elicitation_callback=person({"decision": "yes"}, "decline", asked=asked)
    ) as client:
        listed = {one.name: one for one in (await client.list_tools()).tools}
        assert sorted(listed) == ["up__ask", "up__fail", "up__hang", "up__look", "up__warn", "up__wipe"]
        assert listed["up__look"].title == "Look up"
        assert listed["up__look"].input_schema["properties"] == {"word": {"type": "string"}}
        # a stranger's word that its tool only reads does not count: a person is asked
        found = await client.call_tool("up__look", {"word": "x"}, progress_callback=progress)
        assert found.structured_content == {"found": "x"}
        named = (found.meta or {}).get("io.modelcontextprotocol/serverInfo", {"name": "gateway"})
        assert named["name"] == "gateway"  # not what the server behind calls itself
        assert told == [(0.5, 1.0, "half")]
        assert "up__look" in asked[0]
        refused = await client.call_tool("up__wipe", {})
        assert refused.is_error and "rejected" in text_of(refused)


@both_eras
async def test_what_a_server_behind_asks_reaches_the_person_in_front(era: str) -> None:
    asked: list[Any] = []

    async def elicit(ctx: Any, params: Any) -> types.ElicitResult:
        asked.append(params)
        page = isinstance(params, types.ElicitRequestURLParams)
        return types.ElicitResult(action="accept", content=None if page else {"age": 42})

    face = gateway(Upstream(), autonomy="full")
    async with Client(face.server, mode=era, elicitation_callback=elicit) as client:
        said = await client.call_tool("up__ask", {})
        failed = await client.call_tool("up__fail", {})
    assert text_of(said) == "accept {'age': 42} accept"
    assert failed.is_error and "not today" in text_of(failed)
    form, page = asked
    assert "How old are you?" in form.message and "'up'" in form.message
    assert form.requested_schema["properties"]["age"]["type"] == "integer"
    assert page.url == "https://sign.example.com/1"


@both_eras
async def test_who_cancels_in_front_stops_what_runs_behind(era: str) -> None:
    upstream = Upstream()
    async with Client(gateway(upstream, autonomy="full").server, mode=era) as client:
        asking = asyncio.create_task(client.call_tool("up__hang", {}))
        await asyncio.wait_for(upstream.begun.wait(), 5)
        asking.cancel()
        await asyncio.wait_for(upstream.stopped.wait(), 5)


class Library:
    """Resources of a server behind the gateway."""

    async def list(self) -> list[dict[str, Any]]:
        return [{"uri": "book://one", "name": "One"}]

    async def templates(self) -> list[dict[str, Any]]:
        return [{"uriTemplate": "book://{name}", "name": "Books"}]

    async def read(self, uri: str) -> list[dict[str, Any]] | None:
        return [{"uri": uri, "text": f"the text of {uri}"}] if uri != "book://none" else None


class Letters:
    """Prompts of a server behind the gateway."""

    async def list(self) -> list[dict[str, Any]]:
        return [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]

    async def get(self, name: str, arguments: Any) -> dict[str, Any] | None:
        if name != "greet":
            return None
        content = {"type": "text", "text": f"Greet {arguments['who']}."}
        return {"messages": [{"role": "user", "content": content}]}


@both_eras
async def test_resources_and_prompts_of_servers_behind_are_passed_on(era: str) -> None:
    behind = McpFace(Toolbox([]), resources=Library(), prompts=Letters()).server
    bare = McpFace(Toolbox([])).server
    toolset = McpToolset(in_process={"up": behind, "bare": bare})
    face = McpFace(Toolbox([toolset]), resources=PassedOnResources(toolset), prompts=PassedOnPrompts(toolset))
    async with Client(face.server, mode=era) as client:
        assert [str(one.uri) for one in (await client.list_resources()).resources] == ["book://one"]
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == ["book://{name}"]
        for uri in ("book://one", "book://two"):
            [content] = (await client.read_resource(uri)).contents
            assert getattr(content, "text", "") == f"the text of {uri}"
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("book://none")
        assert [one.name for one in (await client.list_prompts()).prompts] == ["up__greet"]
        got = await client.get_prompt("up__greet", {"who": "Ada"})
        assert getattr(got.messages[0].content, "text", "") == "Greet Ada."
        for name in ("up__other", "greet"):
            with pytest.raises(MCPError):
                await client.get_prompt(name, {})


async def test_what_an_older_server_says_and_asks_reaches_only_the_client_whose_call_it_serves() -> None:
    servers = toolset_of(Upstream().face.server, "2025")
    opened, answered = asyncio.Event(), asyncio.Event()

    @tool(effect=Effect.READ, secrets=())
    async def look_and_stay(*, ctx: Context) -> str:
        """Open the connection, and go on while others use it."""
        await ctx.call("srv__look", word="x")
        opened.set()
        await answered.wait()
        return "stayed"

    asked: dict[str, list[str]] = {"ada": [], "eve": []}
    logged: dict[str, list[Any]] = {"ada": [], "eve": []}
    told: list[Any] = []

    def client_of(face: McpFace, who: str) -> Client:
        async def elicit(ctx: Any, params: Any) -> types.ElicitResult:
            asked[who].append(params.message)
            page = isinstance(params, types.ElicitRequestURLParams)
            return types.ElicitResult(action="accept", content=None if page else {"age": 42})

        async def log(params: Any) -> None:
            logged[who].append(params.data)

        return Client(face.server, mode="legacy", elicitation_callback=elicit, logging_callback=log)

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append(message)

    face = McpFace(Toolbox([servers, look_and_stay], autonomy="full"), name="gateway")
    async with client_of(face, "eve") as eve, client_of(face, "ada") as ada:
        staying = asyncio.create_task(eve.call_tool("look_and_stay", {}))
        await asyncio.wait_for(opened.wait(), 5)
        assert text_of(await ada.call_tool("srv__ask", {})) == "accept {'age': 42} accept"
        await ada.call_tool("srv__warn", {}, progress_callback=progress)
        answered.set()
        assert text_of(await staying) == "stayed"
    assert (len(asked["eve"]), len(asked["ada"])) == (0, 2)
    assert logged["eve"] == [] and "the disk of ada is full" in str(logged["ada"])
    assert told == ["half"]


class OtherLetters(Letters):
    async def get(self, name: str, arguments: Any) -> dict[str, Any] | None:
        return await super().get(name, {"who": "everybody"})


async def test_a_prompt_is_asked_of_the_server_whose_whole_name_it_begins_with() -> None:
    first = McpFace(Toolbox([]), prompts=Letters()).server
    second = McpFace(Toolbox([]), prompts=OtherLetters()).server
    toolset = McpToolset(in_process={"up": first, "up__more": second})
    async with Client(McpFace(Toolbox([toolset]), prompts=PassedOnPrompts(toolset)).server) as client:
        got = await client.get_prompt("up__more__greet", {"who": "Ada"})
    assert getattr(got.messages[0].content, "text", "") == "Greet everybody."
