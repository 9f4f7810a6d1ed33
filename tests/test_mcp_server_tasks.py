"""Long calls of a served toolbox as tasks of the protocol's extension, on the wire."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from toolcrib import Context, Effect, Toolbox, ToolError, tool
from toolcrib.mcp.server import McpFace, asgi_app

TASKS = "io.modelcontextprotocol/tasks"
MODERN = "2026-07-28"
Ask = Callable[..., Awaitable[dict[str, Any]]]


class Names:
    """Takes every token, as the name of who calls."""

    async def verify_token(self, token: str) -> Any:
        from mcp.server.auth.provider import AccessToken

        return AccessToken(token=token, client_id=token, scopes=[])


@asynccontextmanager
async def wire(face: McpFace) -> AsyncIterator[Ask]:
    """Sends a request as somebody; gives what came as the answer, a result or an error."""
    app, ids = asgi_app(face, verifier=Names()), itertools.count()

    async def ask(
        method: str, /, who: str = "ada", able: tuple[str, ...] = (TASKS,), **params: Any
    ) -> dict[str, Any]:
        capabilities = {"extensions": {name: {} for name in able}, "elicitation": {"form": {}}}
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": MODERN,
            "mcp-method": method,
            "mcp-name": str(params.get("name", params.get("taskId", ""))),
            "authorization": f"Bearer {who}",
        }
        body = {"jsonrpc": "2.0", "id": next(ids), "method": method, "params": {**params, "_meta": meta}}
        answer = await http.post("/mcp", headers=headers, json=body)
        text = answer.text
        if "event-stream" in answer.headers.get("content-type", ""):
            text = [line[len("data: ") :] for line in text.splitlines() if line.startswith("data: ")][-1]
        whole: dict[str, Any] = json.loads(text)
        found: dict[str, Any] = whole.get("result", whole.get("error", {}))
        return found

    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http,
    ):
        yield ask


async def settled(ask: Ask, task: dict[str, Any]) -> dict[str, Any]:
    """The task when it neither works nor waits any more."""
    for _ in range(200):
        found = await ask("tasks/get", taskId=task["taskId"])
        if found.get("status") != "working":
            return found
        await asyncio.sleep(0.01)
    raise AssertionError("the task does not end")


class Tools:
    """Tools that wait for the test."""

    def __init__(self) -> None:
        self.begun, self.go, self.stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()

        @tool(effect=Effect.READ, secrets=())
        async def work(*, ctx: Context) -> str:
            """Work until told."""
            ctx.report(tip="half of it")
            self.begun.set()
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.stopped.set()
                raise
            return "done"

        @tool(effect=Effect.READ, secrets=())
        async def refuse() -> str:
            """Refuse."""
            raise ToolError("not today")

        @tool(effect=Effect.READ, secrets=())
        async def crash() -> str:
            """Crash."""
            raise RuntimeError("secret details")

        @tool(effect=Effect.WRITE, secrets=())
        async def save(text: str) -> str:
            """Save a text."""
            return f"saved {text}"

        self.all = [work, refuse, crash, save]


async def test_a_long_call_becomes_a_task_and_ends_as_one() -> None:
    tools = Tools()
    async with wire(McpFace(Toolbox(tools.all), task_after=0.3)) as ask:  # a busy machine answers within that
        made = await ask("tools/call", name="work", arguments={})
        assert (made["resultType"], made["status"]) == ("task", "working")
        assert (await ask("tasks/get", taskId=made["taskId"]))["statusMessage"] == "half of it"
        tools.go.set()
        done = await settled(ask, made)
        assert done["status"] == "completed"
        assert done["result"]["content"] == [{"type": "text", "text": "done"}]
        again = await ask("tools/call", name="work", arguments={})  # it ends at once by now
        assert again["resultType"] == "complete"
        plain = await ask("tools/call", able=(), name="work", arguments={})
        assert plain["resultType"] == "complete"
        assert (await ask("tasks/get", able=(), taskId=made["taskId"]))["code"] == -32021


async def test_a_refusal_is_a_result_and_a_crash_a_failure_without_its_details() -> None:
    face = McpFace(
        Toolbox(Tools().all), tasks={"refuse": "optional", "crash": "required", "save": "optional"}
    )
    async with wire(face) as ask:
        refused = await settled(ask, await ask("tools/call", name="refuse", arguments={}))
        assert (refused["status"], refused["result"]["isError"]) == ("completed", True)
        crashed = await settled(ask, await ask("tools/call", name="crash", arguments={}))
        assert crashed["status"] == "failed" and "result" not in crashed
        assert "secret details" not in json.dumps(crashed)
        assert (await ask("tools/call", able=(), name="crash", arguments={}))["code"] == -32021


async def test_a_task_asks_and_goes_on_with_the_answer() -> None:
    async with wire(McpFace(Toolbox(Tools().all), tasks={"save": "optional"})) as ask:
        made = await ask("tools/call", name="save", arguments={"text": "x"})
        waiting = await settled(ask, made)
        assert waiting["status"] == "input_required"
        assert "save" in waiting["inputRequests"]["approval"]["params"]["message"]
        for wrong in (
            {"other": {"action": "accept"}},
            {"approval": "yes"},
            {"approval": {"action": "maybe"}},
        ):
            answered = await ask("tasks/update", taskId=made["taskId"], inputResponses=wrong)
            assert answered["resultType"] == "complete"
            assert (await settled(ask, made))["status"] == "input_required"
        yes = {"approval": {"action": "accept", "content": {"decision": "yes"}}}
        await ask("tasks/update", taskId=made["taskId"], inputResponses=yes)
        done = await settled(ask, made)
        assert done["result"]["content"][0]["text"] == "saved x"


async def test_a_cancelled_task_really_stops() -> None:
    tools = Tools()
    async with wire(McpFace(Toolbox(tools.all), tasks={"work": "optional"})) as ask:
        made = await ask("tools/call", name="work", arguments={})
        await asyncio.wait_for(tools.begun.wait(), 5)
        assert await ask("tasks/cancel", taskId=made["taskId"]) == await ask(
            "tasks/cancel", taskId=made["taskId"]
        )
        assert (await settled(ask, made))["status"] == "cancelled"
        assert tools.stopped.is_set()


async def test_tasks_are_their_owners_alone_and_bounded_in_time_and_number() -> None:
    tools = Tools()
    face = McpFace(
        Toolbox(tools.all), tasks={"work": "optional", "crash": "required"}, max_tasks=1, task_ttl=0.2
    )
    async with wire(face) as ask:
        made = await ask("tools/call", name="work", arguments={})
        for method, more in (
            ("tasks/get", {}),
            ("tasks/cancel", {}),
            ("tasks/update", {"inputResponses": {}}),
        ):
            assert (await ask(method, who="eve", taskId=made["taskId"], **more))["code"] == -32602
        assert (await ask("tasks/get", taskId="guessed"))["code"] == -32602
        assert (await ask("tools/call", name="crash", arguments={}))["code"] == -32603  # no room
        await asyncio.wait_for(tools.stopped.wait(), 5)  # its time is up
        assert (await ask("tasks/get", taskId=made["taskId"]))["code"] == -32602


async def test_calls_that_become_tasks_at_one_moment_are_no_more_than_there_may_be() -> None:
    tools = Tools()
    async with wire(McpFace(Toolbox(tools.all), task_after=0.05, max_tasks=2)) as ask:
        calls = [asyncio.create_task(ask("tools/call", name="work", arguments={})) for _ in range(5)]
        done, _ = await asyncio.wait(calls, timeout=0.5)
        assert [call.result()["resultType"] for call in done] == ["task"] * 2
        tools.go.set()
        kinds = [(await call)["resultType"] for call in calls]
        assert sorted(kinds) == ["complete"] * 3 + ["task"] * 2


async def test_tasks_end_with_the_server() -> None:
    tools = Tools()
    async with wire(McpFace(Toolbox(tools.all), task_after=0.01)) as ask:
        await ask("tools/call", name="work", arguments={})
    assert tools.stopped.is_set()
