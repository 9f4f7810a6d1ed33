"""Many users over one toolset: each call is made for its own user, whatever else runs at the same time."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp.server import MCPServer
from mcp.server.mcpserver import Context as ServerContext
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.cases import each
from tests.mcp_servers.authorisation_server import serving
from toolcrib import Context, ErrorCode, Toolbox
from toolcrib.mcp import McpServer, McpToolset
from toolcrib.mcp.client import identity as identity_module

USERS = [f"user-{number}" for number in range(10)]


@dataclass
class User:
    token: str


def bearer(ctx: Context[User]) -> str:
    return ctx.deps.token


async def bearer_of_a_service(ctx: Context[User]) -> Mapping[str, str]:
    await asyncio.sleep(0)
    return {"Authorization": f"Bearer {ctx.deps.token}"}


def modern(requests: Counter[str]) -> Any:
    """A stateless server of the SDK; it also hands out a cookie, and says which one it was sent."""
    server = MCPServer("who")

    @server.tool()
    async def whoami(delay: float, ctx: ServerContext) -> str:
        """Say who calls."""
        await asyncio.sleep(delay)
        headers = ctx.headers or {}
        return f"{headers['authorization']} {headers.get('cookie')}"

    app = server.streamable_http_app()

    async def counting(scope: Any, receive: Any, send: Any) -> None:
        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"set-cookie", b"session=of-somebody; Path=/")]
            await send(message)

        if scope["type"] == "http":
            given = dict(scope["headers"])
            requests[given.get(b"mcp-method", b"").decode()] += 1
        await app(scope, receive, sending)

    return counting


@dataclass
class OlderServer:
    """A stateful server of an older revision: a session belongs to whoever opened it, and counts its calls."""

    owners: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    ended: list[str] = field(default_factory=list)
    knows_nobody: bool = True

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/mcp", self.serve, methods=["POST", "GET", "DELETE"])])

    async def serve(self, request: Request) -> Response:
        who = request.headers.get("authorization", "nobody").removeprefix("Bearer ")
        session = request.headers.get("mcp-session-id", "")
        if request.method != "POST":
            self.ended += [session] if request.method == "DELETE" else []
            return Response(status_code=200 if request.method == "DELETE" else 405)
        if who == "nobody" and not self.knows_nobody:
            return JSONResponse({}, 401)
        body = await request.json()
        method = body["method"]
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": body.get("id")}
        headers = {}
        if method == "initialize":
            session = f"session-{len(self.owners)}"
            self.owners[session], headers = who, {"mcp-session-id": session}
            info = {"name": "older", "version": "1"}
            answer["result"] = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": info,
            }
        elif session not in self.owners:
            return JSONResponse({"error": "there is no such session"}, 404)
        elif self.owners[session] != who:
            return JSONResponse({"error": f"{session} is not of {who}"}, 400)
        elif method.startswith("notifications/"):
            return Response(status_code=202)
        elif method == "tools/list":
            schema = {"type": "object", "properties": {"delay": {"type": "number"}}}
            answer["result"] = {"tools": [{"name": "whoami", "inputSchema": schema}]}
        elif method == "tools/call":
            await asyncio.sleep(body["params"]["arguments"].get("delay", 0))
            self.counts[session] += 1
            answer["result"] = {"content": [{"type": "text", "text": f"Bearer {who} in {session}"}]}
        else:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        return JSONResponse(answer, headers=headers)


@asynccontextmanager
async def toolset(
    make_app: Callable[[str], Any], identify: Any = bearer, **options: Any
) -> AsyncGenerator[McpToolset]:
    async with serving(make_app) as url:
        server = McpServer("who", url=f"{url}/mcp", auth="none", **options)
        yield McpToolset([server], identity={"who": identify})


async def calls_of_all(tools: McpToolset, each_user: int) -> list[tuple[str, str]]:
    """Calls of all users in a random order, at once: each with the user's token and what the server answered."""
    chance = random.Random(7)
    order = USERS * each_user
    chance.shuffle(order)
    async with Toolbox([tools], autonomy="full") as box:
        await box.names()

        async def one(user: str) -> tuple[str, str]:
            deps = User(f"token-of-{user}")
            result = await box.call("who__whoami", {"delay": chance.random() / 100}, deps=deps)
            return deps.token, result.text

        return await asyncio.gather(*(one(user) for user in order))


@each("identify, each_user", [(bearer, 25), (bearer_of_a_service, 1)])
async def test_a_stateless_server_serves_all_users_on_one_connection(identify: Any, each_user: int) -> None:
    requests: Counter[str] = Counter()
    async with toolset(lambda url: modern(requests), identify) as tools:
        answers = await calls_of_all(tools, each_user)
    assert len(answers) == len(USERS) * each_user
    wrong = [text for token, text in answers if f"Bearer {token} None" not in text]
    assert wrong == [], "and no cookie of somebody else"
    assert (requests["server/discover"], requests["tools/call"], requests["initialize"]) == (
        1,
        len(answers),
        0,
    )


@pytest.mark.parametrize("limit", [32, 3])
async def test_a_stateful_server_has_a_session_for_each_user(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(identity_module.Identities.__init__, "__kwdefaults__", {"limit": limit})
    older = OlderServer()
    async with toolset(lambda url: older.app()) as tools:
        answers = await calls_of_all(tools, 5)
    assert len(answers) == 50
    assert all(text.startswith(f"Bearer {token} in ") for token, text in answers)
    assert sum(older.counts.values()) == 50
    sessions = Counter(older.owners.values())
    if limit > len(USERS):
        assert sessions == Counter({"nobody": 1, **{f"token-of-{user}": 1 for user in USERS}})
    else:
        assert len(older.ended) == len(older.owners) and sessions["nobody"] == 1
    assert set(older.ended) == set(older.owners), "every session was ended"


async def test_a_session_that_the_server_forgot_is_begun_anew_for_its_user(tmp_path: Path) -> None:
    """Also where the server serves nobody whom it does not know, once its tools are known."""
    older = OlderServer()
    async with serving(lambda url: older.app()) as url:
        server = McpServer("who", url=f"{url}/mcp", auth="none")

        def tools() -> McpToolset:
            return McpToolset([server], identity={"who": bearer}, cache=tmp_path)

        async with tools() as before:
            await before.ready(10)
        older.knows_nobody = False
        async with Toolbox([tools()], autonomy="full") as box:
            for number in range(3):
                for user in ("a", "b"):
                    result = await box.call("who__whoami", {}, deps=User(user))
                    assert result.text.startswith(f"Bearer {user} in "), result
                if number == 1:
                    older.owners.clear()
    assert Counter(older.owners.values()) == {"a": 1, "b": 1}


async def test_a_call_of_nobody_is_not_made() -> None:
    requests: Counter[str] = Counter()
    async with (
        toolset(lambda url: modern(requests), lambda ctx: None) as tools,
        Toolbox([tools], autonomy="full") as box,
    ):
        result = await box.call("who__whoami", {"delay": 0})
    assert result.is_error and "not known for whom" in result.text
    assert requests["tools/call"] == 0


WRONG: list[Any] = [
    {"Host": "evil"},
    {"Mcp-Session-Id": "of somebody else"},
    {"Authorization": "a\r\nX-Admin: 1"},
    {"X Y": "a"},
    {"X-User": 7},
    7,
]


async def test_headers_that_would_be_something_else_are_refused() -> None:
    requests: Counter[str] = Counter()
    wrong = iter(WRONG)
    async with (
        toolset(lambda url: modern(requests), lambda ctx: next(wrong)) as tools,
        Toolbox([tools], autonomy="full") as box,
    ):
        results = [await box.call("who__whoami", {"delay": 0}) for _ in WRONG]
    assert [result.code for result in results] == [ErrorCode.FAILED] * len(WRONG), results
    assert not any("evil" in result.text or "X-Admin" in result.text for result in results)
    assert requests["tools/call"] == 0


def test_an_identity_is_of_a_server_at_a_url() -> None:
    local = McpServer("git", command=["git-server"])
    for name in ("git", "gti"):
        with pytest.raises(ValueError, match="is no server at a URL"):
            McpToolset([local], identity={name: bearer})
