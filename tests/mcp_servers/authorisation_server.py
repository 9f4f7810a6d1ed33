"""An authorization server and a server that it protects, both ours: with all the grants, and all that can go wrong.

They are ASGI apps, so that tests talk to them within the process (`Internet`) or on loopback (`serving`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import socket
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
import jwt
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from toolcrib.mcp.client.oauth import Callback

BASIC, POST = "client_secret_basic", "client_secret_post"


@dataclass
class Issued:
    """A token that the server issued, and all that belongs to it."""

    audience: str
    scopes: tuple[str, ...]
    client: str
    ends: float
    family: str
    jkt: str = ""
    spent: bool = False


@dataclass
class AuthorisationServer:
    """Issues tokens. `changes` are merged into its metadata; `answers` replace the answer of a path, once each."""

    issuer: str = "https://auth.test"
    lifetime: float | None = 3600
    rotates: bool = True
    refreshes: bool = True
    clock: Callable[[], float] = lambda: 1_000_000.0
    changes: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, list[Response]] = field(default_factory=dict)
    clients: dict[str, dict[str, Any]] = field(default_factory=dict)
    redirect_changes: dict[str, str | None] = field(default_factory=dict)
    nonce: str = ""
    grants: tuple[str, ...] | None = None  # scopes that are granted at most
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    access: dict[str, Issued] = field(default_factory=dict)
    refresh: dict[str, Issued] = field(default_factory=dict)
    codes: dict[str, tuple[dict[str, str], str]] = field(default_factory=dict)

    def app(self) -> Starlette:
        path = urlsplit(self.issuer).path
        return Starlette(
            routes=[
                Route(f"/.well-known/oauth-authorization-server{path}", self._metadata),
                Route("/register", self._register, methods=["POST"]),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/revoke", self._revoke, methods=["POST"]),
            ]
        )

    def asked(self, path: str, **fields: str) -> int:
        """How many requests of a path had these fields."""
        return sum(where == path and fields.items() <= given.items() for where, given in self.requests)

    def end_all(self) -> None:
        """Let all access tokens end now."""
        for token in self.access.values():
            token.ends = self.clock()

    def revoke_all(self) -> None:
        self.access.clear()
        self.refresh.clear()

    def _answered(self, path: str, given: Mapping[str, str]) -> Response | None:
        self.requests.append((path, dict(given)))
        prepared = self.answers.get(path)
        return prepared.pop(0) if prepared else None

    async def _metadata(self, request: Request) -> Response:
        base = f"{urlsplit(self.issuer).scheme}://{urlsplit(self.issuer).netloc}"
        data = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{base}/authorize",
            "token_endpoint": f"{base}/token",
            "registration_endpoint": f"{base}/register",
            "revocation_endpoint": f"{base}/revoke",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", BASIC, POST],
            "authorization_response_iss_parameter_supported": True,
            "dpop_signing_alg_values_supported": ["ES256"],
            **self.changes,
        }
        prepared = self._answered("metadata", {})
        return prepared or JSONResponse({key: value for key, value in data.items() if value is not None})

    async def _register(self, request: Request) -> Response:
        data = json.loads(await request.body())
        if prepared := self._answered("register", {key: str(value) for key, value in data.items()}):
            return prepared
        client = f"client-{len(self.clients) + 1}"
        self.clients[client] = data
        return JSONResponse({"client_id": client, **data}, 201)

    async def _authorize(self, request: Request) -> Response:
        given = dict(request.query_params)
        if prepared := self._answered("authorize", given):
            return prepared
        client = self.clients.get(given["client_id"], {})
        if client and given["redirect_uri"] not in client.get("redirect_uris", [given["redirect_uri"]]):
            return JSONResponse({"error": "invalid_request"}, 400)
        code = secrets.token_urlsafe(8)
        self.codes[code] = given, given["code_challenge"]
        answer = {"code": code, "state": given["state"], "iss": self.issuer, **self.redirect_changes}
        kept = {key: value for key, value in answer.items() if value is not None}
        return RedirectResponse(f"{given['redirect_uri']}?{urlencode(kept)}", 302)

    async def _token(self, request: Request) -> Response:
        given = dict(parse_qsl((await request.body()).decode()))
        if prepared := self._answered("token", given):
            return prepared
        client = self._client(request, given)
        if client is None:
            return JSONResponse({"error": "invalid_client"}, 401)
        jkt, claims = "", {}
        if proof := request.headers.get("dpop"):
            jkt, claims = read_proof(proof, "POST", str(request.url))
            if self.nonce and claims.get("nonce") != self.nonce:
                return JSONResponse({"error": "use_dpop_nonce"}, 400, {"DPoP-Nonce": self.nonce})
        grant = given["grant_type"]
        if grant == "authorization_code":
            return self._from_code(given, client, jkt)
        if grant == "refresh_token":
            return self._refreshed(given, client, jkt)
        scopes = tuple(given.get("scope", "").split())
        if grant == "client_credentials" and self.clients[client].get("secret_or_key"):
            return self._issue(given["resource"], scopes, client, "", jkt)
        if grant.endswith("jwt-bearer") and given["assertion"].startswith("good"):
            return self._issue(given["resource"], scopes, client, "", jkt)
        return JSONResponse({"error": "invalid_grant", "error_description": "no\x1b[31m"}, 400)

    def _from_code(self, given: dict[str, str], client: str, jkt: str) -> Response:
        asked, challenge = self.codes.pop(given["code"], ({}, ""))
        digest = base64.urlsafe_b64encode(hashlib.sha256(given["code_verifier"].encode()).digest())
        same = all(asked.get(key) == given.get(key) for key in ("redirect_uri", "resource"))
        if not same or asked["client_id"] != client or digest.rstrip(b"=").decode() != challenge:
            return JSONResponse({"error": "invalid_grant"}, 400)
        return self._issue(
            given["resource"], tuple(asked.get("scope", "").split()), client, secrets.token_hex(4), jkt
        )

    def _refreshed(self, given: dict[str, str], client: str, jkt: str) -> Response:
        held = self.refresh.get(given["refresh_token"])
        if held is None or held.client != client or held.jkt != jkt:
            return JSONResponse({"error": "invalid_grant"}, 400)
        if held.spent:  # somebody used it twice: the whole family ends
            self.refresh = {key: one for key, one in self.refresh.items() if one.family != held.family}
            self.access = {key: one for key, one in self.access.items() if one.family != held.family}
            return JSONResponse({"error": "invalid_grant", "error_description": "used twice"}, 400)
        held.spent = self.rotates
        return self._issue(held.audience, held.scopes, client, held.family, jkt, first=False)

    def _issue(
        self,
        audience: str,
        scopes: tuple[str, ...],
        client: str,
        family: str,
        jkt: str,
        *,
        first: bool = True,
    ) -> Response:
        granted = scopes if self.grants is None else tuple(one for one in scopes if one in self.grants)
        ends = self.clock() + (self.lifetime if self.lifetime is not None else 1e9)
        issued = Issued(audience, granted, client, ends, family, jkt)
        access = f"access-{secrets.token_hex(8)}"
        self.access[access] = issued
        answer: dict[str, Any] = {"access_token": access, "token_type": "DPoP" if jkt else "bearer"}
        if self.lifetime is not None:
            answer["expires_in"] = self.lifetime
        if granted:
            answer["scope"] = " ".join(granted)
        if family and self.refreshes and (first or self.rotates):
            answer["refresh_token"] = f"refresh-{secrets.token_hex(8)}"
            self.refresh[answer["refresh_token"]] = Issued(audience, granted, client, ends, family, jkt)
        return JSONResponse(answer)

    async def _revoke(self, request: Request) -> Response:
        given = dict(parse_qsl((await request.body()).decode()))
        if prepared := self._answered("revoke", given):
            return prepared
        self.access.pop(given["token"], None)
        self.refresh.pop(given["token"], None)
        return Response(status_code=200)

    def _client(self, request: Request, given: dict[str, str]) -> str | None:
        """The client that a request is of, if it proved that."""
        if (header := request.headers.get("authorization", "")).startswith("Basic "):
            name, _, secret = base64.b64decode(header[6:]).decode().partition(":")
            used = BASIC
        else:
            name, secret = given.get("client_id", ""), given.get("client_secret", "")
            used = POST if secret else "none"
        client = self.clients.get(name)
        if assertion := given.get("client_assertion"):
            if client is None:
                return None
            try:
                claims = jwt.decode(
                    assertion,
                    client["public_key"],
                    ["ES256"],
                    audience=self.issuer,
                    options={"verify_exp": False, "verify_iat": False},
                )
            except jwt.PyJWTError:
                return None
            return name if claims["sub"] == claims["iss"] == name else None
        if client is None:
            return name if name.startswith("https://") or not name else None
        if client.get("client_secret"):
            wanted = client.get("token_endpoint_auth_method", BASIC)
            return name if secret == client["client_secret"] and used == wanted else None
        return name if used == "none" else None


@dataclass
class ProtectedServer:
    """Serves who holds a valid token of its issuer for its own URL. `tools/call` needs the scope `write`, if asked."""

    url: str
    issuer: AuthorisationServer
    changes: dict[str, Any] = field(default_factory=dict)
    needs: dict[str, str] = field(default_factory=dict)  # method: scope
    proposes: str = ""
    scheme: str = "Bearer"
    nonce: str = ""
    seen: list[str] = field(default_factory=list)  # the Authorization header of each request
    bodies: int = 0
    status_of_metadata: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def app(self) -> Starlette:
        path = urlsplit(self.url).path
        return Starlette(
            routes=[
                Route(f"/.well-known/oauth-protected-resource{path}", self._metadata),
                Route(path, self._serve, methods=["POST", "GET"]),
            ]
        )

    @property
    def metadata_url(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}"

    async def _metadata(self, request: Request) -> Response:
        data = {"resource": self.url, "authorization_servers": [self.issuer.issuer], **self.changes}
        return JSONResponse(data, self.status_of_metadata, self.headers)

    def protecting(self, app: Any) -> Any:
        """An MCP server's app behind the same checks; its requests name their method in a header, or in the body."""

        async def serve(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            request = Request(scope)
            answer: Response | None
            if request.url.path.startswith("/.well-known"):
                answer = await self._metadata(request)
            else:
                answer = self._refusal(request, request.headers.get("mcp-method", ""))
            await (answer or app)(scope, receive, send)

        return serve

    async def _serve(self, request: Request) -> Response:
        body = json.loads(await request.body() or b"{}")
        refusal = self._refusal(request, body.get("method", ""))
        client = self.issuer.access[self.seen[-1].partition(" ")[2]].client if refusal is None else ""
        return refusal or JSONResponse({"jsonrpc": "2.0", "id": body.get("id"), "result": {"client": client}})

    def _refusal(self, request: Request, method: str) -> Response | None:
        """What a request is answered whose token does not do."""
        header = request.headers.get("authorization", "")
        self.seen.append(header)
        kind, _, token = header.partition(" ")
        said = f'resource_metadata="{self.metadata_url}"' + (
            f', scope="{self.proposes}"' if self.proposes else ""
        )
        found = self.issuer.access.get(token)
        if found is None or found.ends <= self.issuer.clock() or found.audience != self.url:
            error = ', error="invalid_token"' if token else ""
            return JSONResponse({}, 401, {"WWW-Authenticate": f"{self.scheme} {said}{error}"})
        if found.jkt or self.scheme == "DPoP":
            jkt, claims = read_proof(request.headers.get("dpop", ""), request.method, self.url)
            bound = claims.get("ath") == _digest(token) and jkt == found.jkt and kind == "DPoP"
            if not bound:
                return JSONResponse({}, 401, {"WWW-Authenticate": f'DPoP {said}, error="invalid_token"'})
            if self.nonce and claims.get("nonce") != self.nonce:
                words = f'DPoP {said}, error="use_dpop_nonce"'
                return JSONResponse({}, 401, {"WWW-Authenticate": words, "DPoP-Nonce": self.nonce})
        needed = self.needs.get(method, "")
        if needed and needed not in found.scopes:
            words = f'Bearer error="insufficient_scope", scope="{needed}", resource_metadata="{self.metadata_url}"'
            return JSONResponse({}, 403, {"WWW-Authenticate": words})
        return None


class Internet(httpx2.AsyncBaseTransport):
    """Connects a client with apps by origin, within the process. Any other host does not exist."""

    def __init__(self, **apps: Any) -> None:
        self.apps: dict[str, httpx2.ASGITransport] = {}

    def add(self, url: str, app: Any) -> None:
        self.apps[_origin(url)] = httpx2.ASGITransport(app)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        found = self.apps.get(_origin(str(request.url)))
        if found is None:
            raise httpx2.ConnectError(f"there is no host {request.url.host}")
        return await found.handle_async_request(request)

    def client(self, **options: Any) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=self, **options)


class Person:
    """Logs in like a person whose browser is already logged in at the authorization server: at once."""

    def __init__(self, http: Callable[[], httpx2.AsyncClient]) -> None:
        self.http = http
        self.logins: list[str] = []

    def opened(self, redirect_uri: str, *, fixed: bool) -> AbstractAsyncContextManager[Callback]:
        return self._opened(redirect_uri.replace(":0/", ":51234/"))

    @asynccontextmanager
    async def _opened(self, uri: str) -> AsyncGenerator[Callback]:
        yield _Visit(uri, self)


class _Visit:
    def __init__(self, uri: str, person: Person) -> None:
        self.uri = uri
        self._person = person

    async def answer(self, url: str, state: str) -> Mapping[str, str]:
        self._person.logins.append(url)
        async with self._person.http() as client:
            response = await client.get(url, follow_redirects=False)
        return dict(parse_qsl(urlsplit(response.headers["location"]).query))


@asynccontextmanager
async def serving(make_app: Callable[[str], Any]) -> AsyncGenerator[str]:
    """Serve an app at a free port of loopback; `make_app` is handed its URL."""
    import asyncio

    import uvicorn

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(make_app(url), log_level="error", lifespan="auto"))
    running = asyncio.create_task(server.serve([listening]))
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.005)
    try:
        yield url
    finally:
        server.should_exit = True
        await running
        listening.close()


def read_proof(proof: str, method: str, url: str) -> tuple[str, dict[str, Any]]:
    """The thumbprint of the key of a DPoP proof, and its claims. Raises for a proof that is wrong."""
    header = jwt.get_unverified_header(proof)
    assert header["typ"] == "dpop+jwt" and "d" not in header["jwk"]
    key = jwt.PyJWK(header["jwk"], "ES256").key
    claims = jwt.decode(proof, key, ["ES256"], options={"verify_iat": False})
    assert (claims["htm"], claims["htu"]) == (method, url), (claims, url)
    fields = {name: header["jwk"][name] for name in ("crv", "kty", "x", "y")}
    return _digest(json.dumps(fields, separators=(",", ":"), sort_keys=True)), claims


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
