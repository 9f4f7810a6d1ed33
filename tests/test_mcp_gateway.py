"""Many servers in, one out, with our rules in between: a served toolbox whose tools are those of other servers."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
from mcp import Client

from tests.test_mcp_server import both_eras, person, text_of
from toolcrib import Context, Effect, Toolbox, ToolError, tool
from toolcrib.mcp import McpToolset
from toolcrib.mcp.server import McpFace, peer_of_call


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

        tools = [look, hang, ask, wipe, fail]
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
        assert sorted(listed) == ["up__ask", "up__fail", "up__hang", "up__look", "up__wipe"]
        assert listed["up__look"].title == "Look up"
        assert listed["up__look"].input_schema["properties"] == {"word": {"type": "string"}}
        # a stranger's word that its tool only reads does not count: a person is asked
        found = await client.call_tool("up__look", {"word": "x"}, progress_callback=progress)
        assert found.structured_content == {"found": "x"}
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
