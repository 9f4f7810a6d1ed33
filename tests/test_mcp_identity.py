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
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.cases import each
from tests.mcp_servers.authorisation_server import serving
from toolcrib import Answer, Context, ErrorCode, Question, Toolbox, Verdict
from toolcrib.events import Event, Notice, StatusChanged
from toolcrib.mcp import McpServer, McpToolset
from toolcrib.mcp.client import http as http_module
from toolcrib.mcp.client import identity as identity_module
from toolcrib.mcp.client.errors import ServerUnavailable

USERS = [f"user-{number}" for number in range(10)]


@dataclass
class User:
    token: str


def spoken(credential: str) -> str:
    """Whose credential it is; what is more of it would be hidden where a server says it."""
    return credential.removeprefix("Bearer ").removeprefix("token-of-")


def bearer(ctx: Context[User]) -> str:
    return ctx.deps.token


async def bearer_of_a_service(ctx: Context[User]) -> Mapping[str, str]:
    await asyncio.sleep(0)
    return {"Authorization": f"Bearer {ctx.deps.token}"}


class Confirmation(BaseModel):
    sure: bool = True


def modern(requests: Counter[str], *, older: bool = False) -> Any:
    """A server of the SDK, stateless unless it is `older`; it hands out a cookie, and says which one it was sent."""
    server = MCPServer("who")

    @server.tool()
    async def whoami(delay: float, ctx: ServerContext) -> str:
        """Say who calls."""
        await asyncio.sleep(delay)
        headers = ctx.headers or {}
        return f"{spoken(headers['authorization'])} {headers.get('cookie')}"

    @server.tool()
    async def confirm(ctx: ServerContext) -> str:
        """Ask the caller whether to go on, and log who that is."""
        who = spoken((ctx.headers or {})["authorization"])
        await asyncio.sleep(0.05)  # until the calls of all others run, too
        await ctx.info(f"asking {who}")
        if not older:
            return f"{who}: accept"
        answer = await ctx.elicit(f"Go on as {who}?", Confirmation)
        return f"{who}: {answer.action}"

    app = server.streamable_http_app()

    async def counting(scope: Any, receive: Any, send: Any) -> None:
        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"set-cookie", b"session=of-somebody; Path=/")]
            await send(message)

        method = ""
        if scope["type"] == "http":
            method = dict(scope["headers"]).get(b"mcp-method", b"").decode()
            requests[method] += 1
        refused = older and method == "server/discover"
        await (Response(status_code=404) if refused else app)(scope, receive, sending)

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
            answer["result"] = {"content": [{"type": "text", "text": f"{spoken(who)} in {session}"}]}
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


@pytest.mark.promise("mcp-login.md", "nothing of one user reaches another")
@each("identify, each_user", [(bearer, 25), (bearer_of_a_service, 1)])
async def test_a_stateless_server_serves_all_users_on_one_connection(identify: Any, each_user: int) -> None:
    requests: Counter[str] = Counter()
    async with toolset(lambda url: modern(requests), identify) as tools:
        answers = await calls_of_all(tools, each_user)
    assert len(answers) == len(USERS) * each_user
    wrong = [text for token, text in answers if f"{spoken(token)} None" not in text]
    assert wrong == [], "and no cookie of somebody else"
    assert (requests["server/discover"], requests["tools/call"], requests["initialize"]) == (
        1,
        len(answers),
        0,
    )


@pytest.mark.promise("mcp-login.md", "each user has a connection of their own there")
@pytest.mark.parametrize("limit", [32, 3])
async def test_a_stateful_server_has_a_session_for_each_user(
    monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(identity_module.Identities.__init__, "__kwdefaults__", {"limit": limit})
    older = OlderServer()
    async with toolset(lambda url: older.app()) as tools:
        answers = await calls_of_all(tools, 5)
    assert len(answers) == 50
    assert all(text.startswith(f"{spoken(token)} in ") for token, text in answers)
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
                    assert result.text.startswith(f"{user} in "), result
                if number == 1:
                    older.owners.clear()
    assert Counter(older.owners.values()) == {"a": 1, "b": 1}


async def test_connections_in_a_loop_that_stands_still_keep_nobody_waiting() -> None:
    older = OlderServer()
    async with toolset(lambda url: older.app()) as tools:
        box = Toolbox([tools], autonomy="full")
        stopped = asyncio.new_event_loop()

        async def first() -> str:
            await box.__aenter__()
            return (await box.call("who__whoami", {}, deps=User("token-of-a"))).text

        assert (await asyncio.to_thread(stopped.run_until_complete, first())).startswith("a in ")
        try:
            async with asyncio.timeout(5):
                result = await box.call("who__whoami", {}, deps=User("token-of-b"))
                with pytest.raises(ServerUnavailable, match="does not run"):
                    await tools.server("who").refresh()
                await box.__aexit__(None, None, None)
            assert "is not available now; nothing was sent" in result.text
        finally:
            await asyncio.to_thread(stopped.run_until_complete, tools.aclose())
            stopped.close()


@pytest.mark.promise("mcp-login.md", "no token, session, cookie, question or log message")
@pytest.mark.filterwarnings("ignore:The logging capability is deprecated")
@pytest.mark.parametrize("older", [False, True])
async def test_questions_and_log_messages_reach_the_user_whose_call_it_is(older: bool) -> None:
    """Each user has a toolbox of their own, as in a web application; the servers behind them are the same."""
    told: dict[str, list[str]] = {user: [] for user in USERS}

    async def one(user: str, tools: McpToolset) -> str:
        async def approve(question: Question) -> Answer:
            told[user].append(question.action)
            return Answer(Verdict.YES, values={"sure": True})

        def watch(event: Event) -> None:
            if isinstance(event, StatusChanged | Notice):
                told[user].append(f"{event}")

        async with Toolbox([tools], approver=approve, autonomy="full") as box:
            watching = box.subscribe(watch)
            results = [await box.call("who__confirm", {}, deps=User(f"token-of-{user}.")) for _ in range(2)]
            watching.flush(1.0)
        return "\n".join(result.text for result in results)

    async with toolset(lambda url: modern(Counter(), older=older)) as tools:
        texts = await asyncio.gather(*(one(user, tools) for user in USERS))
        [server] = tools.servers()
    assert server.protocol == ("2025-11-25" if older else "2026-07-28")
    for user, text in zip(USERS, texts, strict=True):
        assert text.count(f"{user}.: accept") == 2, text
        if older:
            assert any(f"Go on as {user}.?" in words for words in told[user])
            assert any(f"asking {user}." in words for words in told[user])
        others = [f"{other}." for other in USERS if other != user]
        assert not [words for words in told[user] if any(other in words for other in others)]


@pytest.mark.promise("mcp-login.md", "A call for which `identity` gives nothing is not made.")
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


def repeating() -> Any:
    """A server that tells everybody what it was sent: in results, errors and reports."""
    server = MCPServer("repeats")

    @server.tool()
    async def whoami(ctx: ServerContext) -> dict[str, list[str]]:
        """Say who calls."""
        headers = ctx.headers or {}
        await ctx.report_progress(0.5, 1.0, f"you are {headers['authorization']}")
        return {headers["authorization"]: [headers["x-api-key"], "a\n" + headers["authorization"]]}

    @server.tool()
    async def refuse(ctx: ServerContext) -> str:
        """Refuse."""
        raise ToolError(f"no such token: {(ctx.headers or {})['authorization']}")

    return server.streamable_http_app()


@pytest.mark.promise("mcp-login.md", "are hidden where the server repeats them")
async def test_what_a_server_was_sent_is_hidden_where_it_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "REMEMBERED", 1)  # as with very many users at one time
    seen: list[Event] = []
    async with (
        toolset(lambda url: repeating(), headers={"X-Api-Key": "sk-of-everybody"}) as tools,
        Toolbox([tools], autonomy="full", on_event=seen.append) as box,
    ):
        said = await asyncio.gather(
            *(
                box.call(f"who__{name}", {}, deps=User(f"secret-of-{name}-{n}"))
                for name in ("whoami", "refuse")
                for n in range(5)
            )
        )
        assert '{"Bearer (hidden: authorization)":["(hidden: X-Api-Key)"' in said[0].text
        assert "no such token: Bearer (hidden: authorization)" in said[-1].text
    shown = f"{seen}{said}"
    assert "you are Bearer (hidden: authorization)" in shown
    assert "secret-of" not in shown and "sk-of" not in shown
