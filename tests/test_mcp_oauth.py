"""Tokens of remote MCP servers: got once, kept over restarts, renewed once, and never given to the wrong server."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.cases import each
from tests.mcp_servers.authorisation_server import (
    POST,
    AuthorisationServer,
    Internet,
    Person,
    ProtectedServer,
)
from tests.test_fuzz_codecs import paths, put
from tests.test_secrets_stores import keyring_of_ours  # noqa: F401 - a fixture
from tests.virtual_time import run_virtually
from toolcrib.mcp import McpServer
from toolcrib.mcp.client.oauth import (
    LoginStore,
    OAuthError,
    OAuthSettings,
    auth_for,
    login,
    login_state,
    logout,
    stored_auth,
)
from toolcrib.mcp.client.oauth.challenges import Challenge, challenge_of
from toolcrib.secrets import SecretError, SecretFile

URL = "https://mcp.test/mcp"


@dataclass
class Server:
    name: str = "crm"
    url: str = URL


class Disk(SecretFile):
    """A place for logins that may be full."""

    def __init__(self, world: World) -> None:
        super().__init__(world.folder / "logins.json")
        self.world = world

    def set(self, name: str, value: str) -> None:
        if self.world.full:
            raise SecretError("no space is left")
        super().set(name, value)


@dataclass
class World:
    """An authorization server, a protected server, and where our logins are."""

    folder: Path
    now: float = 1_000_000.0
    full: bool = False  # the disk
    internet: Internet = field(default_factory=Internet)
    issuer: AuthorisationServer = field(default_factory=AuthorisationServer)

    def __post_init__(self) -> None:
        self.issuer.clock = lambda: self.now
        self.resource = ProtectedServer(URL, self.issuer)
        self.internet.add(self.issuer.issuer, self.issuer.app())
        self.internet.add(URL, self.resource.app())
        self.person = Person(self.internet.client)

    def store(self) -> LoginStore:
        return LoginStore(Disk(self), locks=self.folder / "locks")

    def client(self, settings: OAuthSettings | None = None, *, person: bool = False) -> httpx2.AsyncClient:
        """A new process, as far as the login is concerned: it knows only what is stored."""
        auth = auth_for(
            Server(), self.store(), settings, authorizer=self.person if person else None, **self.options()
        )
        return self.internet.client(auth=auth)

    def options(self) -> dict[str, Any]:
        return {"http": self.internet.client, "now": lambda: self.now}

    async def log_in(self, settings: OAuthSettings | None = None, **options: Any) -> None:
        await login(Server(), self.store(), settings, authorizer=self.person, **options, **self.options())

    async def state(self, settings: OAuthSettings | None = None) -> str:
        return (await login_state(Server(), self.store(), settings, now=lambda: self.now)).state


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def call(client: httpx2.AsyncClient, method: str = "tools/list") -> Any:
    """The result of a request, or its error message."""
    answer = (await client.post(URL, json={"jsonrpc": "2.0", "id": 1, "method": method})).json()
    return answer["result"] if "result" in answer else answer["error"]["message"]


@pytest.mark.promise("mcp-login.md", "it knows when the token ends, and renews it ahead of that")
async def test_a_login_outlasts_its_process_and_its_tokens(world: World) -> None:
    assert await world.state() == "none"
    await world.log_in()
    assert await world.state() == "valid"
    async with world.client() as client:
        assert await call(client) == {"client": "client-1"}
    world.now += 4000
    assert await world.state() == "renewable"
    async with world.client() as client:  # after a restart, the end of the token is known
        assert await call(client) == {"client": "client-1"}
    assert world.resource.seen.count("") == 1, "only the probe of the login had no token"
    assert world.issuer.asked("token", grant_type="refresh_token") == 1
    assert len(world.person.logins) == 1
    asked = next(given for path, given in world.issuer.requests if path == "authorize")
    assert (asked["resource"], asked["code_challenge_method"]) == (URL, "S256")


@pytest.mark.promise("mcp-login.md", "one of them fetches it, the others take it over")
async def test_hundred_tasks_and_two_processes_spend_a_refresh_token_once(world: World) -> None:
    await world.log_in()
    async with world.client() as one, world.client() as other:
        for _ in range(3):
            world.now += 3590  # near the end, so that it is renewed ahead of it
            results = await asyncio.gather(*(call(client) for client in (one, other) for _ in range(50)))
            assert results == [{"client": "client-1"}] * 100
        world.issuer.access.clear()  # revoked, though it has not ended: the 401 says so
        results = await asyncio.gather(*(call(client) for client in (one, other) for _ in range(50)))
        assert results == [{"client": "client-1"}] * 100
    assert world.issuer.asked("token", grant_type="refresh_token") == 4
    assert not any(token.spent for token in list(world.issuer.refresh.values())[-1:])


async def test_calls_run_side_by_side(world: World) -> None:
    """The SDK's flow holds a lock while a request runs; ours does not."""
    await world.log_in()
    both = asyncio.Barrier(2)
    inner = world.internet.apps["https://mcp.test"]

    class Meeting(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            await both.wait()
            return await inner.handle_async_request(request)

    world.internet.apps["https://mcp.test"] = Meeting()  # type: ignore[assignment]
    async with world.client() as client, asyncio.timeout(5):
        assert await asyncio.gather(call(client), call(client)) == [{"client": "client-1"}] * 2


ENDS: dict[str, tuple[str, str]] = {
    # what expires_in is, and how the login stands after a year
    "10": ("10", "renewable"),
    "-5": ("-5", "renewable"),
    '"3600"': ('"3600"', "renewable"),
    "400 digits": ("9" * 400, "valid"),
    "too large for a float": ('"1e999"', "valid"),
    "NaN": ("NaN", "valid"),
    "an object": ("{}", "valid"),
}


@each("seconds, state", list(ENDS.values()), ids=list(ENDS))
async def test_the_end_of_a_token_is_read_however_it_is_written(
    world: World, seconds: str, state: str
) -> None:
    body = f'{{"access_token": "a", "refresh_token": "r", "expires_in": {seconds}}}'
    _answer("token", Response(body))(world)
    registered = {"client_id": "x", "client_secret": "s", "token_endpoint_auth_method": "client_secret_post"}
    endless = json.dumps(registered | {"client_secret_expires_at": 10**400})
    _answer("register", Response(endless, 201))(world)
    await world.log_in()
    world.now += 365 * 86400
    assert await world.state() == state


def test_a_server_that_dribbles_is_not_listened_to_for_ever() -> None:
    from toolcrib.mcp.client.oauth.endpoints import Endpoints

    class Dribble(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while True:
                yield b" "
                await asyncio.sleep(9)

    class Slow(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            if request.url.path == "/mcp":
                await asyncio.sleep(3600)
            return httpx2.Response(200, stream=Dribble())

    endpoints = Endpoints(URL, http=lambda: httpx2.AsyncClient(transport=Slow()))
    for request in (endpoints.get("https://auth.test", "place"), endpoints.probe("GET", URL, {})):
        with pytest.raises(OAuthError, match="did not answer within 30 s"):
            run_virtually(request)


async def test_a_server_that_wants_ever_more_scopes_opens_no_browser_for_each(world: World) -> None:
    world.resource.proposes = "read"
    async with world.client(person=True) as client:
        assert await call(client) == {"client": "client-1"}
        for number in range(20):
            world.resource.needs = {"tools/call": f"write-{number}"}
            said = await call(client, "tools/call")
        assert "wants more scopes again and again" in said
    assert len(world.person.logins) == 1 + 5


async def test_a_program_asks_for_no_scope_beyond_those_of_its_settings(world: World) -> None:
    world.issuer.clients["ours"] = {"client_secret": "hush", "secret_or_key": True}
    world.resource.needs = {"tools/call": "admin"}
    settings = OAuthSettings(
        client_id="ours",
        client_secret="hush",
        issuer=world.issuer.issuer,
        grant="client_credentials",
        scopes=("read",),
    )
    async with world.client(settings) as client:
        assert await call(client) == {"client": "ours"}
        assert "its settings allow only read" in await call(client, "tools/call")
    assert world.issuer.asked("token") == 1


@pytest.mark.promise("mcp-login.md", "nothing is tried again and again, and other calls go on")
async def test_a_revoked_login_needs_a_person_and_nothing_is_tried_again(world: World) -> None:
    await world.log_in()
    world.issuer.revoke_all()
    async with world.client() as client:
        for _ in range(3):
            assert "needs a login (https://auth.test refused a token: invalid_grant)" in await call(client)
    async with world.client() as client:
        assert "run toolcrib mcp login crm" in await call(client)
    assert world.issuer.asked("token", grant_type="refresh_token") == 1
    assert await world.state() == "needs_login"
    await world.log_in()
    async with world.client() as client:
        assert await call(client) == {"client": "client-1"}, "the client stays registered"


async def test_a_token_that_came_from_elsewhere_is_noticed(world: World) -> None:
    """A program that waits for a login goes on when somebody logs in by the command line."""
    async with world.client() as client:
        assert "needs a login: run toolcrib mcp login crm" in await call(client)
        await world.log_in()
        assert await call(client) == {"client": "client-1"}


@pytest.mark.promise("mcp-login.md", "the old token is used until its end; the login is kept")
async def test_an_issuer_that_is_down_ends_no_login(world: World) -> None:
    await world.log_in()
    world.issuer.answers["token"] = [
        JSONResponse({"error": "temporarily_unavailable"}, 400),
        Response("", 503),
    ]
    async with world.client() as client:
        world.now += 3590
        assert await call(client) == {"client": "client-1"}
        assert await call(client) == {"client": "client-1"}
        assert world.issuer.asked("token", grant_type="refresh_token") == 1, "no request for each call"
        world.now += 31
        assert "the token endpoint of https://auth.test failed: HTTP 503" in await call(client)
        assert await world.state() == "renewable"
        world.now += 31
        assert await call(client) == {"client": "client-1"}


@pytest.mark.promise("mcp-login.md", "both are stored before they are used")
async def test_a_new_refresh_token_is_stored_before_its_access_token_is_used(world: World) -> None:
    await world.log_in()
    world.now += 4000
    stored: list[bool] = []
    inner = world.internet.apps["https://mcp.test"]

    class Watching(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            token = request.headers["authorization"].removeprefix("Bearer ")
            stored.append(token in (world.folder / "logins.json").read_text())
            return await inner.handle_async_request(request)

    world.internet.apps["https://mcp.test"] = Watching()  # type: ignore[assignment]
    async with world.client() as client:
        await call(client)
    assert stored == [True]
    assert (world.folder / "logins.json").stat().st_mode & 0o777 == 0o600


async def test_a_refreshed_login_that_cannot_be_stored_lasts_as_long_as_its_process(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await world.log_in()
    async with world.client() as client:
        world.full = True
        for _ in range(2):
            world.now += 4000
            assert await call(client) == {"client": "client-1"}
        assert "ends with this process: logins cannot be read or stored: no space" in caplog.text
        world.full = False
        world.now += 4000
        assert await call(client) == {"client": "client-1"}
    async with world.client() as client:
        assert await call(client) == {"client": "client-1"}, "it is stored as soon as that is possible"


@pytest.mark.promise(
    "mcp-login.md", "that call fails and says so; the next `login` asks for these rights, too"
)
async def test_more_scopes_are_asked_for_once(world: World) -> None:
    world.resource.proposes = "read"
    world.resource.needs = {"tools/call": "write"}
    await world.log_in()
    async with world.client() as client:
        assert await call(client) == {"client": "client-1"}
        for _ in range(2):
            assert "needs a login with the scopes write" in await call(
                client, "tools/call"
            ) or "did not get" in (await call(client, "tools/call"))
        assert await call(client) == {"client": "client-1"}, "what the login may do, it still may"
    await world.log_in()
    assert world.person.logins[-1].count("scope=read+write") == 1, "the next login asks for what was missing"
    async with world.client() as client:
        assert await call(client, "tools/call") == {"client": "client-1"}


@pytest.mark.promise("mcp-login.md", "a login that fails is not asked for again")
async def test_within_a_program_a_person_is_asked_once(world: World) -> None:
    world.resource.proposes = "read"
    world.resource.needs = {"tools/call": "write"}
    world.issuer.grants = ("read",)
    async with world.client(person=True) as client:
        assert await asyncio.gather(*(call(client) for _ in range(20))) == [{"client": "client-1"}] * 20
        assert len(world.person.logins) == 1
        for _ in range(3):
            assert "which the login did not get" in await call(client, "tools/call")
        assert len(world.person.logins) == 2
        assert "scope=read+write" in world.person.logins[-1]
        world.issuer.revoke_all()
        world.issuer.redirect_changes = {"error": "access_denied", "code": None}
        for _ in range(3):
            assert "the login failed: access_denied" in await call(client)
        assert len(world.person.logins) == 3, "no loop of browsers"


@pytest.mark.promise("mcp-login.md", "a login that fails is not asked for again")
async def test_a_new_connection_opens_no_further_browser(world: World) -> None:
    """Each connection of a toolset has an auth of its own, and a server that refuses us gets a new one for each call."""
    auth_of = stored_auth(world.store(), authorizer=world.person, **world.options())

    async def call_anew() -> Any:
        async with world.internet.client(auth=auth_of(McpServer("crm", url=URL))) as client:
            return await call(client)

    world.issuer.answers["register"] = [Response("", 503), Response("", 503)]
    for waited, registrations in ((0, 1), (0, 1), (31, 2)):
        world.now += waited
        assert "did not register toolcrib" in await call_anew()
        assert (world.issuer.asked("register"), world.person.logins) == (registrations, [])
    world.issuer.redirect_changes = {"error": "access_denied", "code": None}
    for _ in range(3):
        world.now += 31
        assert "the login failed: access_denied" in await call_anew()
        assert len(world.person.logins) == 1
    world.issuer.redirect_changes = {}
    await world.log_in()
    assert "client" in await call_anew()
    assert len(world.person.logins) == 2
    (world.folder / "logins.json").unlink()
    assert "client" in await call_anew()
    assert len(world.person.logins) == 3, "the token of before was used"


async def test_logout_revokes_and_forgets(world: World) -> None:
    await world.log_in()
    assert await logout(Server(), world.store(), **world.options()) is True
    assert not world.issuer.access and not world.issuer.refresh
    assert (await world.state(), await logout(Server(), world.store(), **world.options())) == ("none", None)
    await world.log_in()
    world.issuer.answers["revoke"] = [Response("", 503)]
    assert await logout(Server(), world.store(), **world.options()) is False
    assert await world.state() == "none", "forgotten here, whatever the issuer says"


def _changed(**changes: Any) -> Callable[[World], None]:
    return lambda world: world.issuer.changes.update(changes)


def _resource(**changes: Any) -> Callable[[World], None]:
    return lambda world: world.resource.changes.update(changes)


def _redirect(**changes: str | None) -> Callable[[World], None]:
    return lambda world: world.issuer.redirect_changes.update(changes)


def _answer(path: str, *answers: Response) -> Callable[[World], None]:
    return lambda world: world.issuer.answers.update({path: list(answers)})


REFUSED: dict[str, tuple[Callable[[World], None], str]] = {
    "metadata of another issuer": (_changed(issuer="https://evil.test"), "are those of https://evil.test"),
    "an issuer that differs in case": (
        _changed(issuer="https://AUTH.test"),
        "are those of https://AUTH.test",
    ),
    "no PKCE": (_changed(code_challenge_methods_supported=None), "does not say that it supports PKCE"),
    "plain PKCE": (
        _changed(code_challenge_methods_supported=["plain"]),
        "does not say that it supports PKCE",
    ),
    "a token endpoint without TLS": (
        _changed(token_endpoint="http://auth.test/token"),
        "token endpoint must be https",
    ),
    "a page that is no page": (
        _changed(authorization_endpoint="javascript:alert(1)"),
        "is not a plain https URL",
    ),
    "a page that is a file": (
        _changed(authorization_endpoint="file:///etc/passwd"),
        "is not a plain https URL",
    ),
    "a page with terminal codes": (
        _changed(authorization_endpoint="https://auth.test/\x1b[2Ja"),
        "is not a plain https URL",
    ),
    "metadata about another server": (_resource(resource="https://evil.test/mcp"), "no token is asked for"),
    "metadata about a sibling": (_resource(resource="https://mcp.test/mcp2"), "no token is asked for"),
    "an issuer that does not exist": (
        _resource(authorization_servers=["https://nowhere.test"]),
        "cannot be reached: there is no host",
    ),
    "a wrong state": (_redirect(state="guessed"), "its state is wrong"),
    "no state": (_redirect(state=None), "its state is wrong"),
    "an answer of another issuer": (_redirect(iss="https://evil.test"), "comes from https://evil.test"),
    "an issuer that is almost right": (_redirect(iss="https://auth.test/"), "comes from https://auth.test/"),
    "an answer that should name its issuer": (_redirect(iss=None), "does not name its issuer"),
    "a denied login": (_redirect(error="access_denied", code=None), "the login failed: access_denied"),
    "no code": (_redirect(code=None), "contains no code"),
    "no registration": (_changed(registration_endpoint=None), "does not let clients register themselves"),
    "a refused registration": (
        _answer(
            "register", JSONResponse({"error": "invalid_redirect_uri", "error_description": "a\nb"}, 400)
        ),
        r"invalid_redirect_uri: a",
    ),
    "a registration that cannot be used": (
        _answer(
            "register", JSONResponse({"client_id": "x", "token_endpoint_auth_method": "tls_client_auth"}, 201)
        ),
        "registered toolcrib for tls_client_auth",
    ),
    "a token of another kind": (
        _answer("token", JSONResponse({"access_token": "a", "token_type": "mac"})),
        "a token of the kind mac",
    ),
    "a token in the place of its kind": (
        _answer("token", JSONResponse({"access_token": "Bearer", "token_type": "a-token-that-is-real"})),
        "https://auth.test issued a token of an unknown kind",
    ),
    "no token": (_answer("token", JSONResponse({"token_type": "bearer"})), "sent no access token"),
    "a token with a line break": (
        _answer("token", JSONResponse({"access_token": "a\r\nX: y"})),
        "sent no access token",
    ),
    "a token endpoint that redirects": (
        _answer("token", Response("", 307, {"location": "https://evil.test/token"})),
        "failed: HTTP 307",
    ),
    "endless metadata": (_answer("metadata", Response(b" " * 1_000_001)), "sent more than 1000000 bytes"),
    "an endless address": (
        _changed(authorization_endpoint="https://auth.test/" + "x" * 4_000),
        "is not a plain https URL",
    ),
    "an endless client id": (
        _answer("register", JSONResponse({"client_id": "x" * 8_001}, 201)),
        "did not register toolcrib",
    ),
    "an endless token": (
        _answer("token", JSONResponse({"access_token": "x" * 60_001})),
        "sent no access token",
    ),
    "metadata about no address": (_resource(resource="https://[::1"), "no token is asked for"),
    "metadata about no port": (_resource(resource="https://mcp.test:99999999/mcp"), "no token is asked for"),
    "metadata about a word as port": (_resource(resource="https://mcp.test:a/mcp"), "no token is asked for"),
    "a redirect to no port": (
        _answer("metadata", Response("", 302, {"location": "https://a:99999/"})),
        "publishes no metadata",
    ),
    "compressed metadata": (
        _answer("metadata", Response(gzip.compress(b"{}"), 200, {"content-encoding": "gzip"})),
        "is compressed, which was not asked for",
    ),
    "a client id with half a character": (
        _answer("register", Response('{"client_id": "a\\ud800"}', 201)),
        "did not register toolcrib",
    ),
    "a refresh token with half a character": (
        _answer("token", Response('{"access_token": "a", "refresh_token": "\\ud800"}')),
        "sent no access token",
    ),
    "a bound token though no key is there": (
        _answer("token", JSONResponse({"access_token": "a", "token_type": "DPoP"})),
        "a token of the kind DPoP",
    ),
    "metadata that are no JSON": (_answer("metadata", Response("<html>")), "publishes no metadata"),
    "deep metadata": (_answer("metadata", Response("[" * 200_000)), "publishes no metadata"),
}


@each("change, words", list(REFUSED.values()), ids=list(REFUSED))
async def test_a_login_that_is_refused_sends_no_code_and_stores_nothing(
    tmp_path: Path, change: Callable[[World], None], words: str
) -> None:
    world = World(tmp_path)
    change(world)
    with pytest.raises(OAuthError) as caught:
        await world.log_in()
    assert words in str(caught.value), str(caught.value)
    assert str(caught.value).isprintable()
    assert await world.state() == "none"


def key_pair() -> tuple[str, str]:
    key = generate_private_key(SECP256R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return private, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


PRIVATE, PUBLIC = key_pair()
OURS = {"client_id": "ours", "issuer": "https://auth.test"}
# Settings, how the issuer knows the client, and fields of the request for the token.
CLIENTS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, str]]] = {
    "a secret in a header": (
        {**OURS, "client_secret": "s:%/ü"},
        {"client_secret": "s%3A%25%2F%C3%BC"},
        {"grant_type": "authorization_code"},
    ),
    "a secret in the form": (
        {**OURS, "client_secret": "hush!", "auth_method": POST},
        {"client_secret": "hush!", "token_endpoint_auth_method": POST},
        {"client_secret": "hush!"},
    ),
    "a public client": (OURS, {}, {"client_id": "ours"}),
    "a metadata document": (
        {"client_metadata_url": "https://app.test/client.json"},
        {},
        {"client_id": "https://app.test/client.json"},
    ),
    "a program with a secret": (
        {**OURS, "client_secret": "hush!", "grant": "client_credentials", "scopes": ("read",)},
        {"client_secret": "hush!", "secret_or_key": True},
        {"grant_type": "client_credentials", "scope": "read", "resource": URL},
    ),
    "a program with a key": (
        {**OURS, "private_key": PRIVATE, "grant": "client_credentials"},
        {"public_key": PUBLIC, "secret_or_key": True},
        {"grant_type": "client_credentials"},
    ),
    "a workload": (
        {"assertion": "good-identity", "grant": "jwt_bearer"},
        {},
        {"assertion": "good-identity"},
    ),
}


@each("settings, known, fields", list(CLIENTS.values()), ids=list(CLIENTS))
async def test_every_kind_of_client_gets_its_token(
    tmp_path: Path, settings: dict[str, Any], known: dict[str, Any], fields: dict[str, str]
) -> None:
    world, given = World(tmp_path), OAuthSettings(**settings)
    world.issuer.changes["client_id_metadata_document_supported"] = True
    world.issuer.clients["ours"] = known
    if given.interactive:
        await world.log_in(given)
    for _ in range(2):
        async with world.client(given) as client:
            assert "client" in await call(client)
        world.now += 4000
    assert world.issuer.asked("register") == 0
    assert world.issuer.asked("token", **fields) == (1 if given.interactive and "grant_type" in fields else 2)
    if given.client_secret:
        assert given.client_secret not in repr(given)


@pytest.mark.parametrize("nonce", ["", "n-1"])
async def test_a_stolen_token_is_of_no_use_where_it_is_bound_to_a_key(world: World, nonce: str) -> None:
    world.resource.scheme, world.resource.nonce, world.issuer.nonce = "DPoP", nonce, nonce
    await world.log_in()
    for _ in range(2):
        async with world.client() as client:
            for _ in range(2):
                assert await call(client) == {"client": "client-1"}
        world.now += 4000
    token = next(reversed(world.issuer.access))
    async with world.internet.client() as thief:
        stolen = await thief.post(URL, json={}, headers={"authorization": f"Bearer {token}"})
    assert stolen.status_code == 401
    assert all(one.jkt for one in world.issuer.access.values())


@pytest.mark.promise("mcp-login.md", "Afterwards they are sent to no other.")
async def test_credentials_of_a_program_go_to_one_issuer_only(world: World) -> None:
    """A server that names another authorization server, later or at once, does not get the secret sent there."""
    evil = AuthorisationServer("https://evil.test", clock=lambda: world.now)
    world.internet.add(evil.issuer, evil.app())
    world.issuer.clients["ours"] = evil.clients["ours"] = {"client_secret": "s", "secret_or_key": True}
    given = OAuthSettings(client_id="ours", client_secret="s", grant="client_credentials")
    async with world.client(given) as client:
        assert await call(client) == {"client": "ours"}
    world.now += 4000
    world.resource.changes["authorization_servers"] = [evil.issuer]
    async with world.client(given) as client:
        assert "now names the authorization server https://evil.test" in await call(client)
    with pytest.raises(OAuthError, match=r"allow only https://auth\.test"):
        await world.log_in(OAuthSettings(client_id="ours", client_secret="s", issuer="https://auth.test"))
    assert evil.asked("token") == 0
    world.resource.changes["authorization_servers"] = [evil.issuer, world.issuer.issuer]
    async with world.client(given) as client:
        assert await call(client) == {"client": "ours"}, "it still names the right one, too"


async def test_a_client_that_registered_itself_registers_anew_at_a_new_issuer(world: World) -> None:
    await world.log_in()
    other = AuthorisationServer("https://other.test/tenant", clock=lambda: world.now)
    world.internet.add(other.issuer, other.app())
    other.clients["taken"] = {}
    world.resource.changes["authorization_servers"] = [other.issuer]
    world.resource.issuer = other
    async with world.client() as client:
        assert "needs a login" in await call(client)
    assert other.requests == [], "the old tokens were not shown to anybody new"
    await world.log_in()
    assert (other.asked("register"), other.asked("token", client_id="client-1")) == (1, 0)
    async with world.client() as client:
        assert await call(client) == {"client": "client-2"}


async def test_a_failed_workload_identity_is_not_tried_for_each_call(world: World) -> None:
    given = OAuthSettings(assertion_file=str(world.folder / "identity"), grant="jwt_bearer")
    (world.folder / "identity").write_text("bad\n")
    async with world.client(given) as client:
        for _ in range(3):
            assert "refused a token: invalid_grant: no\\x1b[31m" in await call(client)
        assert world.issuer.asked("token") == 1
        (world.folder / "identity").write_text("good\n")  # as a cluster rotates it
        world.now += 31
        assert await call(client) == {"client": ""}


async def test_a_server_of_the_first_revision_is_its_own_issuer(world: World) -> None:
    own = AuthorisationServer(
        "https://mcp.test", clock=lambda: world.now, changes={"scopes_supported": ["x"]}
    )
    world.resource.issuer, world.resource.status_of_metadata = own, 404
    apps = [own.app(), world.resource.app()]
    apps[1].routes.extend(apps[0].routes)
    world.internet.add(URL, apps[1])
    await world.log_in()
    async with world.client() as client:
        assert await call(client) == {"client": "client-1"}
    assert "scope=" not in world.person.logins[0]


@pytest.mark.promise("mcp-login.md", "A token is sent to its own server only")
async def test_a_token_is_shown_to_its_server_alone_and_never_replaces_that_of_a_call(world: World) -> None:
    await world.log_in()
    other = ProtectedServer("https://other.test/mcp", world.issuer)
    world.internet.add(other.url, other.app())
    async with world.client() as client:
        await client.post(other.url, json={})
        assert other.seen == [""]
        answer = await client.post(URL, json={}, headers={"authorization": "Bearer of-a-user"})
        assert (answer.status_code, world.resource.seen[-1]) == (401, "Bearer of-a-user")


async def test_a_login_that_cannot_be_read_is_none(world: World) -> None:
    await world.log_in()
    stored = json.loads((world.folder / "logins.json").read_text())
    (name,) = stored
    for text in (
        "",
        "{",
        "[]",
        "null",
        '{"format": 0}',
        stored[name].replace('"format": ', '"format": 9'),
        "[" * 9999,
    ):
        (world.folder / "logins.json").write_text(json.dumps({name: text}))
        assert await world.state() == "none", text[:20]
        async with world.client() as client:
            assert "needs a login" in await call(client)
    (world.folder / "logins.json").chmod(0o644)
    async with world.client() as client:
        assert "logins cannot be read or stored" in await call(client)


async def test_a_wrong_value_anywhere_in_a_login_is_told_in_words(world: World) -> None:
    world.issuer.changes["dpop_signing_alg_values_supported"] = ["ES256"]
    await world.log_in(OAuthSettings(dpop=True))
    file = world.folder / "logins.json"
    (name, text), *_ = json.loads(file.read_text()).items()
    for path in paths(json.loads(text)):
        for junk in (None, True, 10**400, "\ud800", "x", [None], {}):
            file.write_text(json.dumps({name: json.dumps(put(json.loads(text), path, junk))}))
            for hours in (0, 2):
                world.now = 1_000_000.0 + hours * 3600
                async with world.client(OAuthSettings(dpop=True)) as client:
                    assert await call(client), (path, junk)


GUARDED: dict[str, tuple[str, str, str]] = {
    # the server, what its metadata name, what is said
    "a metadata address": ("https://mcp.test/mcp", "http://169.254.169.254/latest", "must be https"),
    "a metadata address with TLS": (
        "https://mcp.test/mcp",
        "https://169.254.169.254",
        "a cloud metadata address",
    ),
    "the same for a server of this machine": (
        "http://localhost:9/mcp",
        "http://169.254.169.254",
        "a cloud metadata",
    ),
    "a private network": ("https://mcp.test/mcp", "https://10.0.0.1", "a private address"),
    "a name of a private network": ("https://mcp.test/mcp", "https://vault.internal", "a local name"),
    "a name that leads to this machine": (
        "https://mcp.test/mcp",
        "https://rebound.test",
        "a loopback address",
    ),
    "this machine": ("https://mcp.test/mcp", "https://localhost:8200", "a local name"),
    "this machine, for a private server": (
        "http://10.0.0.9:8000/mcp",
        "http://127.0.0.1:8200",
        "a loopback address",
    ),
}


@pytest.mark.promise("mcp-login.md", "a server cannot send requests into your network")
@each("url, issuer, words", list(GUARDED.values()), ids=list(GUARDED))
async def test_a_server_cannot_send_us_into_our_own_network(
    monkeypatch: pytest.MonkeyPatch, url: str, issuer: str, words: str
) -> None:
    from toolcrib.mcp.client.oauth.endpoints import Endpoints, login_guard

    def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"] if host == "rebound.test" else ["93.184.216.34"]

    monkeypatch.setenv("no_proxy", "*")
    guarded = Endpoints(url, resolver=resolve)
    with pytest.raises(OAuthError) as caught:
        await guarded.get(issuer, "place")
    assert words in str(caught.value)
    assert login_guard("https://mcp.corp.internal/mcp").check_host("auth.corp.internal", 8443)
    assert login_guard("http://127.0.0.1:1/mcp").check_host("localhost", 9999)


async def test_metadata_that_redirect_elsewhere_are_not_followed(world: World) -> None:
    world.resource.status_of_metadata = 302
    world.resource.headers = {"location": "https://evil.test/.well-known/oauth-protected-resource"}
    evil = ProtectedServer("https://evil.test/mcp", world.issuer)
    world.internet.add(evil.url, evil.app())
    with pytest.raises(OAuthError, match=r"mcp\.test registers no clients"):
        await world.log_in()
    assert world.issuer.requests == []


SETTINGS: dict[str, dict[str, Any]] = {
    "grant": {"grant": "password"},
    "auth_method": {"auth_method": "magic"},
    "client_secret needs": {"client_secret": "s"},
    "client_credentials needs": {"grant": "client_credentials", "client_id": "x"},
    "jwt_bearer needs": {"grant": "jwt_bearer"},
    "private_key_jwt needs": {"auth_method": "private_key_jwt", "client_id": "x"},
    "client_metadata_url": {"client_metadata_url": "http://app.test/x"},
    "issuer": {"issuer": "auth.test"},
    "redirect_uri: expected http, a": {"redirect_uri": "https://evil.test:1/callback"},
    "redirect_uri: expected http": {"redirect_uri": "http://127.0.0.1/callback"},
}


@each("words, given", list(SETTINGS.items()), ids=list(SETTINGS))
def test_settings_that_contradict_each_other(words: str, given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=words):
        OAuthSettings(**given)


async def test_a_server_that_asks_for_no_login_says_so(world: World) -> None:
    async def open_to_all(scope: Any, receive: Any, send: Any) -> None:
        status = 200 if scope["path"] == "/mcp" else 404
        await Response("{}", status)(scope, receive, send)

    world.internet.add(URL, open_to_all)
    with pytest.raises(OAuthError, match="asks for no login"):
        await world.log_in()


async def test_logins_may_be_in_the_keyring(
    world: World,
    keyring_of_ours: dict[tuple[str, str], str],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(world.folder))
    store = LoginStore.of_user(keyring=True)
    await login(Server(), store, authorizer=world.person, **world.options())
    assert (await login_state(Server(), store, now=lambda: world.now)).state == "valid"
    assert {service for service, _ in keyring_of_ours} == {"toolcrib mcp"}, "apart from the secrets of tools"
    assert await logout(Server(), store, **world.options())
    assert not any("access-" in value for value in keyring_of_ours.values())


CHALLENGES: list[tuple[list[str], Challenge]] = [
    ([], Challenge()),
    (["Basic realm=x"], Challenge()),
    (["Bearer"], Challenge()),
    (['Bearer error="invalid_token", scope="a b"'], Challenge("invalid_token", ("a", "b"))),
    (
        ["Basic realm=x, bearer RESOURCE_METADATA=http://a/b?c=1, scope=a"],
        Challenge("", ("a",), "http://a/b?c=1"),
    ),
    (
        ['Bearer scope="a"', 'DPoP algs="ES256", error="use_dpop_nonce"'],
        Challenge("use_dpop_nonce", ("a",), "", True),
    ),
    (['Bearer scope="say \\"yes\\" \\\\ ä ' + "x" * 201 + '"'], Challenge("", ("say",))),
    (['Bearer error="insufficient_scope" , , scope = "w"'], Challenge("insufficient_scope", ("w",))),
    (['Bearer error="unclosed', '"""', "=", ",,,", "Bearer " + "a" * 100_000], Challenge()),
    (['Bearer scope="' + " ".join(map(str, range(99))) + '"'], Challenge("", tuple(map(str, range(50))))),
]


@each("headers, expected", CHALLENGES)
def test_what_a_server_wants_is_read_however_it_is_written(headers: list[str], expected: Challenge) -> None:
    assert challenge_of(headers) == expected


@each("times", [1, 2])
async def test_a_call_that_is_cancelled_while_its_token_is_renewed_ends_no_login(
    tmp_path: Path, times: int
) -> None:
    """The refresh token is spent by then, and the answer has the only one that is left. Nobody else sends it again."""
    world = World(tmp_path / str(times))
    await world.log_in()
    world.now += 4000
    inner = world.internet.apps["https://auth.test"]

    class Slow(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            response = await inner.handle_async_request(request)
            await asyncio.sleep(0.2)
            return response

    world.internet.apps["https://auth.test"] = Slow()  # type: ignore[assignment]
    async with world.client() as client:
        calling = asyncio.ensure_future(call(client))
        while not world.issuer.asked("token", grant_type="refresh_token"):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
        for _ in range(times):
            calling.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await calling
    async with world.client() as client:
        assert await call(client) == {"client": "client-1"}
    assert world.issuer.asked("token", grant_type="refresh_token") == 1


SECRET = {"client_secret": "hush-4711-hush"}
# Settings, and the field of the request for a token whose value the answer repeats.
REPEATED: dict[str, tuple[dict[str, Any], str]] = {
    "a refresh token": ({}, "refresh_token"),
    "a code": ({}, "code"),
    "a verifier": ({}, "code_verifier"),
    "a secret in a header": ({**OURS, **SECRET}, "authorization"),
    "a secret in the form": ({**OURS, **SECRET, "auth_method": POST}, "client_secret"),
    "an assertion": ({"assertion": "good-identity-4711", "grant": "jwt_bearer"}, "assertion"),
}


class Repeats(AuthorisationServer):
    """Refuses each request for a token with words that repeat the value of a field of it."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.repeats, self.repeated = name, False, list[str]()

    async def _token(self, request: Request) -> Response:
        if not self.repeats:
            return await super()._token(request)
        form = dict(parse_qsl((await request.body()).decode()))
        self.repeated.append({**form, **request.headers}[self.name].removeprefix("Basic "))
        words = f"what you sent is wrong: {self.repeated[-1]}, {self.repeated[-1]}"
        return JSONResponse({"error": "invalid_grant", "error_description": words}, 400)


@each("settings, field", list(REPEATED.values()), ids=list(REPEATED))
async def test_an_issuer_that_repeats_a_credential_has_it_shown_to_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, settings: dict[str, Any], field: str
) -> None:
    """Its words stand in errors, in the stored login, and in what a person is told at the next call."""
    issuer = Repeats(field)
    world, given = World(tmp_path, issuer=issuer), OAuthSettings(**settings)
    if field == "refresh_token":
        await world.log_in(given)
        world.now += 4000
    issuer.repeats = True
    if given.interactive and field != "refresh_token":
        with pytest.raises(OAuthError, match="what you sent is wrong") as caught:
            await world.log_in(given)
        shown = str(caught.value)
    else:
        async with world.client(given) as client:
            shown = await call(client)
    assert "what you sent is wrong" in shown
    assert issuer.repeated
    stored = (tmp_path / "logins.json").read_text() if field == "refresh_token" else ""
    for value in (*issuer.repeated, *SECRET.values()):
        assert value not in shown + caplog.text + stored
