"""A toolbox served over HTTP, on real sockets of loopback: who may call, and what slow and greedy clients can do."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.test_mcp_server import both_eras, person, text_of
from toolcrib import Effect, Toolbox, tool
from toolcrib.mcp.server import (
    IntrospectionVerifier,
    JwtVerifier,
    McpFace,
    OAuthResource,
    SharedToken,
    asgi_app,
    http_server,
    serve_http,
)
from toolcrib.mcp.server.recent_events import RecentEvents

TOKEN = "a token of the test's own"
MODERN = "2026-07-28"


@tool(effect=Effect.READ, secrets=())
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(effect=Effect.WRITE, secrets=())
def save(text: str) -> str:
    """Save a text."""
    return f"saved {text}"


@asynccontextmanager
async def served(face: McpFace | None = None, **options: Any) -> AsyncIterator[str]:
    """A face on a port of its own; gives its URL."""
    stop = asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as sock:
        serving = asyncio.create_task(
            serve_http(face or McpFace(Toolbox([add, save])), sock, stop=stop, **options)
        )
        try:
            yield f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
        finally:
            stop.set()
            await serving


@asynccontextmanager
async def client_of(url: str, era: str, token: str = "", **named: Any) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http), mode=era, **named) as client,
    ):
        yield client


def request(**headers: str) -> dict[str, Any]:
    """A request of tools/list as it stands on the wire."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    own = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": "tools/list",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    return {"headers": {**own, **headers}, "json": body}


@both_eras
async def test_tools_are_called_and_questions_asked_over_http(era: str) -> None:
    async with (
        served() as url,
        client_of(url, era, elicitation_callback=person({"decision": "yes"})) as client,
    ):
        assert text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"
        assert text_of(await client.call_tool("save", {"text": "x"})) == "saved x"


async def test_a_call_does_not_wait_for_the_network_to_collect_small_packets() -> None:
    async with served() as url, client_of(url, MODERN) as client:
        spent = []
        for _ in range(10):
            begun = time.monotonic()
            await client.call_tool("add", {"a": 1, "b": 2})
            spent.append(time.monotonic() - begun)
    assert min(spent) < 0.035  # what a delayed acknowledgement alone takes


HEADERS: list[tuple[dict[str, str], int]] = [
    ({}, 200),
    ({"host": "localhost:99"}, 200),
    ({"host": "[::1]"}, 200),
    ({"origin": "http://localhost:3000"}, 200),
    ({"origin": "https://app.example.com"}, 200),
    ({"host": "evil.example.com"}, 421),
    ({"host": "localhost.evil.example.com"}, 421),
    ({"host": "evil.example.com:80@localhost"}, 421),
    ({"host": ""}, 421),
    ({"origin": "https://evil.example.com"}, 403),
    ({"origin": "http://localhost.evil.example.com"}, 403),
    ({"origin": "https://app.example.com.evil.example.com"}, 403),
    ({"origin": "null"}, 403),
]


async def test_only_own_names_and_known_pages_are_answered() -> None:
    async with served(origins=["https://app.example.com"]) as url, httpx2.AsyncClient() as http:
        for headers, status in HEADERS:
            answer = await http.post(url, **request(**headers))
            assert answer.status_code == status, (headers, answer.text)
        allowed = await http.post(url, **request(origin="https://app.example.com"))
        assert allowed.headers["access-control-allow-origin"] == "https://app.example.com"
        asked = {"origin": "https://app.example.com", "access-control-request-method": "POST"}
        assert (await http.options(url, headers=asked)).status_code == 200


@both_eras
async def test_a_token_is_wanted_where_there_is_one(era: str) -> None:
    async with served(verifier=SharedToken(TOKEN)) as url, httpx2.AsyncClient() as http:
        for given in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {TOKEN}"}):
            answer = await http.post(url, **request(**given))
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
        async with client_of(url, era, TOKEN) as client:
            assert text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"


async def test_what_would_be_open_to_strangers_is_not_served() -> None:
    class Everywhere:
        def getsockname(self) -> tuple[str, int]:
            return ("0.0.0.0", 1)

    with pytest.raises(ValueError, match="a verifier is needed"):
        await serve_http(McpFace(Toolbox([add])), Everywhere())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 16 characters"):
        SharedToken("short")
    with pytest.raises(ValueError, match="needs a verifier"):
        asgi_app(McpFace(Toolbox([add])), oauth=OAuthResource("https://x.example", ("https://i.example",)))


async def raw(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = url.split("/")[2].split(":")
    return await asyncio.open_connection(host, int(port))


HEAD = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize(
    "sent",
    [b"", b"POST /mcp HT", HEAD, HEAD + b"content-length: 100\r\n\r\n{"],
    ids=["nothing", "a line", "headers", "a body"],
)
async def test_a_request_that_does_not_come_is_not_waited_for(sent: bytes) -> None:
    async with served(request_time=0.15) as url:
        _, writer = await raw(url)
        begun = time.monotonic()
        for byte in sent:  # a byte now and then does not help
            writer.write(bytes([byte]))
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            while True:
                await asyncio.sleep(0.05)
                writer.write(b"x")
                await writer.drain()
                assert time.monotonic() - begun < 5
        writer.close()


async def test_connections_beyond_the_limit_are_closed_and_requests_too_large_refused() -> None:
    async with served(max_connections=3, max_body=1000) as url:
        held = [await raw(url) for _ in range(3)]
        await asyncio.sleep(0.05)
        reader, writer = await raw(url)
        with pytest.raises(ConnectionError):
            while await asyncio.wait_for(reader.read(10), 5):
                pass
            raise ConnectionResetError
        for _, other in (*held, (reader, writer)):
            other.close()
        await asyncio.sleep(0.05)
        async with httpx2.AsyncClient() as http:
            large = await http.post(url, headers=request()["headers"], json={"text": "x" * 2000})
            assert large.status_code == 413
            assert (await http.post(url, **request())).status_code == 200


async def test_sessions_are_bounded_and_belong_to_who_opened_them() -> None:
    class Names:
        async def verify_token(self, token: str) -> Any:
            from mcp.server.auth.provider import AccessToken

            return AccessToken(token=token, client_id=token, scopes=[])

    opening = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    accept = {"accept": "application/json, text/event-stream"}
    async with served(verifier=Names(), max_sessions=1) as url, httpx2.AsyncClient() as http:
        one = {**accept, "authorization": "Bearer one"}
        opened = await http.post(url, headers=one, json=opening)
        session = opened.headers["mcp-session-id"]
        assert (await http.post(url, headers=one, json=opening)).status_code == 503
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        other = {**accept, "authorization": "Bearer two", "mcp-session-id": session}
        assert (await http.post(url, headers=other, json=ping)).status_code == 404
        assert (
            await http.post(url, headers={**one, "mcp-session-id": session}, json=ping)
        ).status_code == 200


async def test_a_question_of_one_principal_cannot_be_answered_by_another() -> None:
    import mcp_types as types

    class Names:
        async def verify_token(self, token: str) -> Any:
            from mcp.server.auth.provider import AccessToken

            return AccessToken(token=token, client_id=token, scopes=[])

    yes = {"approval": types.ElicitResult(action="accept", content={"decision": "yes"})}
    decline = person("decline")
    async with (
        served(verifier=Names()) as url,
        client_of(url, MODERN, "one", elicitation_callback=decline) as one,
    ):
        asked = await one.session.call_tool("save", {"text": "x"}, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult)
        answer: dict[str, Any] = {"input_responses": yes, "request_state": asked.request_state}
        async with client_of(url, MODERN, "two", elicitation_callback=decline) as two:
            with pytest.raises(Exception, match="Invalid or expired requestState"):
                await two.session.call_tool("save", {"text": "x"}, **answer)
        done = await one.session.call_tool("save", {"text": "x"}, **answer)
        assert text_of(done) == "saved x"


RESOURCE, ISSUER = "https://tools.example.com/mcp", "https://login.example.com"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PUBLIC = {**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key())), "kid": "k1", "alg": "RS256"}


def signed(
    key: Any = KEY, algorithm: str = "RS256", headers: dict[str, str] | None = None, **claims: Any
) -> str:
    now = int(time.time())
    whole = {
        "iss": ISSUER, "aud": RESOURCE, "sub": "ada", "exp": now + 60, "scope": "tools", **claims,
    }  # fmt: skip
    kept = {name: value for name, value in whole.items() if value is not None}
    return jwt.encode(kept, key, algorithm=algorithm, headers=headers or {"kid": "k1"})


async def test_tokens_of_an_issuer_count_if_they_are_for_this_server() -> None:
    verifier = JwtVerifier(ISSUER, RESOURCE, {"keys": [PUBLIC, {"kty": "nonsense"}, 3]})
    granted = await verifier.verify_token(signed(aud=["other", RESOURCE], azp="client"))
    assert granted is not None
    assert (granted.subject, granted.client_id, granted.scopes) == ("ada", "client", ["tools"])
    for wrong in (
        "",
        "a.b.c",
        signed(aud="https://other.example.com"),
        signed(aud=None),
        signed(iss="https://evil.example.com"),
        signed(exp=int(time.time()) - 100),
        signed(exp=None),
        signed(OTHER),
        signed(headers={"kid": "k2"}),
        signed(algorithm="HS256", key=PUBLIC["n"]),  # what everybody knows, as a shared secret
        signed(key=None, algorithm="none"),
        "x" * 20_000,
    ):
        assert await verifier.verify_token(wrong) is None, wrong[:60]
    with pytest.raises(ValueError, match="asymmetric"):
        JwtVerifier(ISSUER, RESOURCE, {}, algorithms=["HS256"])
    with pytest.raises(ValueError, match="https"):
        JwtVerifier(ISSUER, RESOURCE, "http://login.example.com/keys")


async def test_an_issuers_keys_are_found_by_its_metadata_and_asked_for_again_now_and_then() -> None:
    asked: list[str] = []
    now = [0.0]
    document: dict[str, Any] = {"keys": [PUBLIC]}

    async def issuer(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope["path"])
        own = f"http://127.0.0.1:{port}/tenant"
        answers: dict[str, Any] = {
            "/tenant/.well-known/openid-configuration": {"issuer": own, "jwks_uri": f"{own}/keys"},
            "/tenant/keys": document,
        }
        found = scope["path"] in answers
        body = json.dumps(answers.get(scope["path"], {})).encode()
        await send({"type": "http.response.start", "status": 200 if found else 404, "headers": []})
        await send({"type": "http.response.body", "body": body})

    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
        stop = asyncio.Event()
        serving = asyncio.create_task(http_server.run(issuer, sock, 9, 5.0, 5.0, stop, has_lifespan=False))
        own = f"http://127.0.0.1:{port}/tenant"
        verifier = JwtVerifier(own, RESOURCE, clock=lambda: now[0])
        assert await verifier.verify_token(signed(iss=own)) is not None
        for _ in range(3):  # unknown keys are not asked for each time
            assert await verifier.verify_token(signed(iss=own, headers={"kid": "k2"})) is None
        assert asked == [
            "/.well-known/oauth-authorization-server/tenant",
            "/tenant/.well-known/openid-configuration",
            "/tenant/keys",
        ]
        document["keys"] = [{**PUBLIC, "kid": "k2"}]
        now[0] = 100.0
        assert await verifier.verify_token(signed(iss=own, headers={"kid": "k2"})) is not None
        assert await verifier.verify_token(signed(iss=own)) is None  # the old key was withdrawn
        stop.set()
        await serving


INTROSPECTED: list[tuple[dict[str, Any], bool]] = [
    ({"active": True, "aud": RESOURCE, "sub": "ada", "scope": "a b"}, True),
    ({"active": True, "aud": ["other", RESOURCE]}, True),
    ({"active": False, "aud": RESOURCE}, False),
    ({"active": "yes", "aud": RESOURCE}, False),
    ({"active": True}, False),
    ({"active": True, "aud": "other"}, False),
    ({"active": True, "aud": RESOURCE, "iss": "https://evil.example.com"}, False),
    ({"active": True, "aud": RESOURCE, "exp": "soon"}, False),
]


async def test_an_authorisation_server_is_asked_about_tokens() -> None:
    answer: dict[str, Any] = {}
    got: list[bytes] = []

    async def server(scope: Any, receive: Any, send: Any) -> None:
        got.append((await receive())["body"] + dict(scope["headers"])[b"authorization"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    with socket.create_server(("127.0.0.1", 0)) as sock:
        stop = asyncio.Event()
        serving = asyncio.create_task(http_server.run(server, sock, 9, 5.0, 5.0, stop, has_lifespan=False))
        url = f"http://127.0.0.1:{sock.getsockname()[1]}/introspect"
        verifier = IntrospectionVerifier(url, RESOURCE, client_id="me", client_secret="mine", issuer=ISSUER)
        for said, counts in INTROSPECTED:
            answer.clear()
            answer.update(said)
            assert (await verifier.verify_token("t1") is not None) is counts, said
        stop.set()
        await serving
    assert got[0].startswith(b"token=t1Basic ")
    assert await verifier.verify_token("t1") is None  # nobody answers any more


async def test_clients_are_told_where_to_get_a_token_and_which_scope_it_lacks() -> None:
    options: dict[str, Any] = {
        "verifier": JwtVerifier(ISSUER, RESOURCE, {"keys": [PUBLIC]}),
        "oauth": OAuthResource(RESOURCE, (ISSUER,), ("tools",)),
    }
    async with served(**options) as url, httpx2.AsyncClient() as http:
        refused = await http.post(url, **request())
        assert refused.status_code == 401
        where = "https://tools.example.com/.well-known/oauth-protected-resource/mcp"
        assert f'resource_metadata="{where}"' in refused.headers["www-authenticate"]
        told = await http.get(url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp"))
        assert told.json()["resource"] == RESOURCE
        assert told.json()["authorization_servers"] == [f"{ISSUER}/"]
        lacking = await http.post(url, **request(authorization=f"Bearer {signed(scope='other')}"))
        assert (lacking.status_code, "insufficient_scope" in lacking.headers["www-authenticate"]) == (
            403,
            True,
        )
        assert (await http.post(url, **request(authorization=f"Bearer {signed()}"))).status_code == 200


async def test_an_app_of_ones_own_mounts_it() -> None:
    app = asgi_app(McpFace(Toolbox([add])), path="/")

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with app.router.lifespan_context(app):
            yield

    own = Starlette(routes=[Mount("/tools", app=app)], lifespan=lifespan)
    async with (
        own.router.lifespan_context(own),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=own), base_url="http://localhost") as http,
    ):
        answer = await http.post("/tools/", **request())
    assert [one["name"] for one in answer.json()["result"]["tools"]] == ["add"]


async def test_a_client_that_comes_back_gets_what_it_missed_of_its_own_stream() -> None:
    from mcp_types import JSONRPCNotification

    def message(number: int) -> Any:
        return JSONRPCNotification(jsonrpc="2.0", method="n", params={"number": number})

    events = RecentEvents(max_events=4)
    names = [await events.store_event("one" if n % 2 else "two", message(n)) for n in range(6)]
    assert len(set(names)) == 6
    got: list[Any] = []

    async def take(event: Any) -> None:
        got.append(event.message.params["number"])

    assert await events.replay_events_after(names[0], take) is None  # too long ago
    assert await events.replay_events_after(names[3], take) == "one"
    assert got == [5]
    assert await events.replay_events_after("guessed", take) is None
