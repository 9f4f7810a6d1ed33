"""The client of MCP over HTTP: what fails costs one request, and what a server forgets is begun anew."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp.server import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from tests.cases import each
from tests.mcp_servers.authorisation_server import serving
from tests.mcp_servers.raw import LEGACY, MODERN, text, tool
from toolcrib import ErrorCode, Toolbox
from toolcrib.mcp import McpServer, McpToolset, ServerState
from toolcrib.mcp.client import http as http_module
from toolcrib.mcp.client.http import HttpLink

Answer = Callable[[dict[str, Any], Request], Any]


class Wire:
    """A server that answers as a test says; by itself it does the handshake, and lists `tools`."""

    def __init__(self, call: Answer, *, tools: Any = None, protocol: str = MODERN) -> None:
        self.call = call
        self.tools = tools or [tool("t")]
        self.protocol = protocol
        self.sessions: list[str] = []
        self.seen: list[str] = []

    def app(self, url: str = "") -> Starlette:
        return Starlette(routes=[Route("/mcp", self.serve, methods=["POST", "GET", "DELETE"])])

    async def serve(self, request: Request) -> Response:
        if request.method != "POST":
            return Response(status_code=405)
        message = await request.json()
        method, number = message["method"], message.get("id")
        self.seen.append(method)
        if number is None:
            return Response(status_code=202)
        headers = {}
        capabilities = {"tools": {}}
        if method == "server/discover" and self.protocol == MODERN:
            answer: Any = {
                "supportedVersions": [MODERN],
                "capabilities": capabilities,
                "resultType": "complete",
                "ttlMs": 0,
                "cacheScope": "private",
            }
        elif method == "initialize" and self.protocol == LEGACY:
            info = {"name": "raw", "version": "1"}
            answer = {"protocolVersion": LEGACY, "capabilities": capabilities, "serverInfo": info}
            self.sessions.append(f"session-{len(self.sessions)}")
            headers["mcp-session-id"] = self.sessions[-1]
        elif method in ("server/discover", "initialize"):
            return JSONResponse({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no"}})
        elif method == "tools/list":
            listed = {"tools": self.tools, "resultType": "complete"}
            answer = self.tools if isinstance(self.tools, Response) else listed
        else:
            answer = self.call(message["params"], request)
            if asyncio.iscoroutine(answer):
                answer = await answer
        if isinstance(answer, Response):
            return answer
        return JSONResponse({"jsonrpc": "2.0", "id": number, "result": answer}, headers=headers)


def refused(number: int, code: int, message: str) -> Response:
    error = {"code": code, "message": message}
    return JSONResponse({"jsonrpc": "2.0", "id": number, "error": error}, status_code=400)


@each(
    "answer, code, words",
    [
        (PlainTextResponse("overloaded", 502), ErrorCode.OUTCOME_UNKNOWN, "lost the connection"),
        (PlainTextResponse("who are you", 403), ErrorCode.TOOL_ERROR, "HTTP 403 Forbidden: who are you"),
        (Response(b"<html>", 400, media_type="text/html"), ErrorCode.TOOL_ERROR, "HTTP 400 Bad Request"),
        (
            Response(b'{"a":' + b"1" * 3_000 + b"}", media_type="application/json"),
            ErrorCode.OUTCOME_UNKNOWN,
            "lost the connection",
        ),
        (
            Response(b"{not json", media_type="application/json"),
            ErrorCode.OUTCOME_UNKNOWN,
            "lost the connection",
        ),
        (Response(b"x", media_type="image/png"), ErrorCode.TOOL_ERROR, "content type"),
        (Response(status_code=202), ErrorCode.TOOL_ERROR, "202"),
    ],
)
async def test_a_request_that_fails_costs_itself_and_not_the_others(
    answer: Response, code: ErrorCode, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = asyncio.Event()
    monkeypatch.setattr(http_module, "MAX_ANSWER", 2_000)
    monkeypatch.setattr(http_module._bounded, "__defaults__", (2_000,))

    async def call(params: Any, request: Request) -> Any:
        if params["arguments"].get("fails"):
            return answer
        await release.wait()
        return text("fine")

    async with serving(Wire(call).app) as url:
        servers = [McpServer(name="s", url=f"{url}/mcp", transport="http")]
        async with Toolbox([McpToolset(servers)], autonomy="full") as box:
            other = asyncio.ensure_future(_awaited(box.call("s__t", {})))
            failed = await box.call("s__t", {"fails": True})
            release.set()
            assert failed.code is code, failed
            assert words in failed.text
            assert (await other).text == "fine"


async def _awaited(call: Any) -> Any:
    return await call


@pytest.mark.promise("mcp-servers.md", "One that was never sent is sent once more")
async def test_a_session_that_the_server_has_forgotten_is_begun_anew() -> None:
    def call(params: Any, request: Request) -> Any:
        if request.headers["mcp-session-id"] != wire.sessions[-1] or len(wire.sessions) == 1:
            return PlainTextResponse("no such session", 404)
        return text("fine")

    wire = Wire(call, protocol=LEGACY)
    async with serving(wire.app) as url:
        tools = McpToolset([McpServer(name="s", url=f"{url}/mcp", transport="http")])
        async with Toolbox([tools], autonomy="full") as box:
            assert (await box.call("s__t", {})).text == "fine"
            assert len(wire.sessions) == 2
            assert tools.servers()[0].state is ServerState.STARTED


@pytest.mark.promise("mcp-servers.md", "parameters that a schema wants in headers")
async def test_arguments_stand_in_headers_where_the_schema_says_so() -> None:
    def call(params: Any, request: Request) -> Any:
        given = {name: value for name, value in request.headers.items() if name.startswith("mcp-")}
        seen.append(given)
        if "mcp-param-zone" not in given:  # the schema has changed since it was listed
            wire.tools = [tool("t", inputSchema=schema("Zone"))]
            return refused(wire.seen.count("x"), -32020, "header mismatch")
        return text("fine")

    def schema(header: str) -> dict[str, Any]:
        region = {"type": "string", "x-mcp-header": header}
        return {"type": "object", "properties": {"where": region}, "required": ["where"]}

    seen: list[dict[str, str]] = []
    wire = Wire(call, tools=[tool("t", inputSchema=schema("Region"))])
    async with serving(wire.app) as url:
        tools = McpToolset([McpServer(name="s", url=f"{url}/mcp", transport="http")])
        async with Toolbox([tools], autonomy="full") as box:
            assert (await box.call("s__t", {"where": "eu"})).text == "fine"
    assert [given.get("mcp-param-region") for given in seen] == ["eu", None]
    assert [given.get("mcp-param-zone") for given in seen] == [None, "eu"]
    assert {(given["mcp-method"], given["mcp-name"], given["mcp-protocol-version"]) for given in seen} == {
        ("tools/call", "t", MODERN)
    }


@pytest.mark.promise("mcp-servers.md", "which of them is found out")
async def test_a_server_of_the_older_protocol_over_events_is_found_out() -> None:
    server = MCPServer("older")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    async with serving(lambda url: server.sse_app()) as url:
        for transport in ("sse", "http"):
            tools = McpToolset([McpServer(name="s", url=f"{url}/sse", transport=transport)])  # type: ignore[arg-type]
            async with Toolbox([tools], autonomy="full") as box:
                assert (await box.call("s__add", {"a": 1, "b": 2})).structured == {"result": 3}


async def test_a_server_that_is_not_there_is_told_and_found_when_it_is() -> None:
    async with serving(Wire(lambda params, request: text("fine")).app) as url:
        pass
    now = 0.0
    tools = McpToolset([McpServer(name="s", url=f"{url}/mcp", transport="http")], clock=lambda: now)
    async with Toolbox([tools], autonomy="full") as box:
        assert (await box.call("s__t", {})).code is ErrorCode.UNKNOWN_TOOL
        [status] = tools.servers()
        assert status.state is ServerState.FAILED
        assert "Connect" in status.problem


async def test_a_server_that_does_not_let_go_of_a_session_keeps_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_module, "GOODBYE", 0.2)
    wire, ended = Wire(lambda params, request: text("fine"), protocol=LEGACY), asyncio.Event()

    async def hanging(request: Request) -> Response:
        if request.method == "DELETE":
            await ended.wait()
        return await wire.serve(request)

    app = Starlette(routes=[Route("/mcp", hanging, methods=["POST", "GET", "DELETE"])])
    async with serving(lambda url: app) as url:
        async with Toolbox([McpToolset([McpServer(name="s", url=f"{url}/mcp", transport="http")])]) as box:
            assert await box.names() == ["s__t"]
            leaving = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - leaving < 2
        ended.set()


@each(
    "url, variables, proxy",
    [
        ("https://a.example/mcp", {"https_proxy": "http://proxy:1"}, "http://proxy:1"),
        ("http://a.example/mcp", {"https_proxy": "http://proxy:1"}, None),
        ("http://a.example/mcp", {"all_proxy": "http://proxy:2"}, "http://proxy:2"),
        ("https://a.example/mcp", {"https_proxy": "http://proxy:1", "no_proxy": ".example"}, None),
        ("http://127.0.0.1:3/mcp", {"http_proxy": "http://proxy:1"}, None),
    ],
)
@pytest.mark.promise(
    "mcp-servers.md", "The proxy of your environment is used, but not for addresses of this machine."
)
def test_the_proxy_of_the_environment_is_used_but_not_for_this_machine(
    url: str, variables: dict[str, str], proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert http_module.proxy_for(url) == proxy


def link() -> HttpLink:
    return HttpLink("http://127.0.0.1:9/mcp", headers={})


@each("fails_at, status", [(at, status) for at in ("tools/list", "tools/call") for status in (403, 500)])
async def test_no_answer_and_no_address_that_is_logged_shows_a_credential(
    fails_at: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    key = "hunter2-hunter3-xyz"
    refusal = PlainTextResponse(f"{'no such token: ':_>292}{key}", status)
    wire = Wire(lambda params, request: refusal, tools=refusal if fails_at == "tools/list" else None)
    seen: list[Any] = []
    async with serving(wire.app) as url:
        server = McpServer("s", url=f"{url}/mcp?api_key={key}", headers={"X-Api-Key": key})
        tools = McpToolset([server])
        with caplog.at_level(logging.DEBUG):
            async with Toolbox([tools], autonomy="full", on_event=seen.append) as box:
                seen += [await tools.ready(), (await box.call("s__t", {})).text, tools.servers()]
    sent = [one.getMessage() for one in caplog.records if one.name == "httpx2"]
    assert any(" POST " in one and "(hidden: api_key)" in one for one in sent)
    shown = "\n".join(
        map(str, [*seen, *(one.getMessage() for one in caplog.records if one.name != "asyncio")])
    )
    assert "no such token: (h" in shown
    assert key[:6] not in shown.replace(repr(server.url), "")


def test_a_credential_that_is_used_again_and_again_stays_hidden() -> None:
    there = link()
    for number in range(10 * http_module.REMEMBERED):
        if number % (http_module.REMEMBERED // 2) == 0:
            there.sent([("authorization", "Bearer of-a-busy-user"), ("accept", "application/json")])
        there.sent([("authorization", f"Bearer of-user-{number:04}")])
        assert there.conceal("for of-a-busy-user") == "for (hidden: authorization)"


def test_a_credential_that_another_one_begins_with_leaves_no_rest() -> None:
    there = link()
    there.sent([("x-api-key", "sk-abcdef"), ("authorization", "Bearer sk-abcdef-and-more")])
    assert there.conceal("sk-abcdef-and-more") == "(hidden: authorization)"


def test_texts_are_read_while_another_thread_sends(request: pytest.FixtureRequest) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    request.addfinalizer(lambda: sys.setswitchinterval(before))
    there, problems = link(), list[BaseException]()

    def read() -> None:
        try:
            for _ in range(3_000):
                there.conceal("no credential")
        except RuntimeError as problem:
            problems.append(problem)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    number = 0
    while any(reader.is_alive() for reader in readers):
        there.sent([("authorization", f"Bearer of-user-{(number := number + 1):06}")])
    assert problems == []
