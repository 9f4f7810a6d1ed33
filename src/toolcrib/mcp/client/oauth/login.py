"""What programs and the command line call: the auth of an HTTP client, logging in and out, the state of a login."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, Literal

from toolcrib.dataclass import dataclass
from toolcrib.mcp.client.oauth.browser import Authorizer
from toolcrib.mcp.client.oauth.challenges import Challenge, challenge_of
from toolcrib.mcp.client.oauth.endpoints import HttpFactory
from toolcrib.mcp.client.oauth.http_auth import as_auth
from toolcrib.mcp.client.oauth.logins import Login, LoginStore, login_name
from toolcrib.mcp.client.oauth.settings import OAuthSettings
from toolcrib.mcp.client.oauth.tokens import LoginMemory, Protected, TokenSource
from toolcrib.mcp.config import McpServer
from toolcrib.net.guard import HostResolver, system_resolver

if TYPE_CHECKING:
    import httpx2

__all__ = ["LoginState", "auth_for", "login", "login_state", "logout", "settings_of", "stored_auth"]

PROBE_HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
PROBE = {"jsonrpc": "2.0", "id": 0, "method": "ping"}


def auth_for(
    server: Protected,
    store: LoginStore,
    settings: OAuthSettings | None = None,
    *,
    authorizer: Authorizer | None = None,
    http: HttpFactory | None = None,
    resolver: HostResolver = system_resolver,
    now: Callable[[], float] = time.time,
) -> httpx2.Auth:
    """The auth of an `httpx2.AsyncClient` that talks to one MCP server.

    It adds the stored token, renews it ahead of its end, and answers 401 and 403. It never opens a browser: where a
    person has to log in, the request fails with words that say so. `authorizer` lets a person log in while a request
    waits. Requests that already have an `Authorization` header, and requests to other hosts, are left alone.

    Args:
        server: What has the `name` and `url` of the server.
        store: Where the logins are: `LoginStore.of_user()`.
        settings: What the operator configured; nothing for most servers.
        authorizer: Lets a person log in from within a program.
        http: Makes the clients for the authorization server, in place of guarded ones.
        resolver: Resolves host names for the network guard.
        now: The time in seconds since 1970.
    """
    source = TokenSource(
        server,
        settings or OAuthSettings(),
        store,
        authorizer=authorizer,
        http=http,
        resolver=resolver,
        now=now,
    )
    return as_auth(source)


def stored_auth(
    store: LoginStore | None = None,
    *,
    authorizer: Authorizer | None = None,
    http: HttpFactory | None = None,
    now: Callable[[], float] = time.time,
) -> Callable[[McpServer], httpx2.Auth | None]:
    """What `McpToolset(auth=...)` takes, so that its servers are logged in to with what is stored.

    Args:
        store: Where the logins are; None: the user's file, `LoginStore.of_user()`.
        authorizer: Lets a person log in while a call waits; without it such a call fails with words that say so.
        http: Makes the clients for the authorization servers, in place of guarded ones.
        now: The time in seconds since 1970.

    >>> from toolcrib.mcp import McpServer, McpToolset
    >>> from toolcrib.mcp.client.oauth import stored_auth
    >>> tools = McpToolset([McpServer("crm", url="https://mcp.example.com/mcp")], auth=stored_auth())
    """

    memories: dict[str, LoginMemory] = {}

    def auth_of(server: McpServer) -> httpx2.Auth | None:
        settings = settings_of(server)
        if settings is None:
            return None
        where = store or LoginStore.of_user()
        source = TokenSource(
            server, settings, where, authorizer=authorizer, http=http, now=now, memories=memories
        )
        return as_auth(source)

    return auth_of


def settings_of(server: McpServer) -> OAuthSettings | None:
    """The settings in a server's configuration; None if it is no server to log in to. Raises ValueError."""
    if server.auth != "oauth" or not server.url:
        return None
    known = {one.name for one in fields(OAuthSettings)}
    if unknown := sorted(set(server.oauth) - known):
        raise ValueError(
            f"MCP server {server.name!r}: oauth has no setting {', '.join(map(repr, unknown))}; "
            f"there are {', '.join(sorted(known))}"
        )
    try:
        return OAuthSettings(**server.oauth)
    except (TypeError, ValueError) as problem:
        raise ValueError(f"MCP server {server.name!r}: oauth: {problem}") from None


async def login(
    server: Protected,
    store: LoginStore,
    settings: OAuthSettings | None = None,
    *,
    authorizer: Authorizer | None = None,
    scopes: Iterable[str] = (),
    http: HttpFactory | None = None,
    resolver: HostResolver = system_resolver,
    now: Callable[[], float] = time.time,
) -> Login:
    """Log in to a server, and store the login in place of an earlier one.

    A person logs in through `authorizer`; the grants client_credentials and jwt_bearer need none. `scopes` are asked
    for besides those that the server proposes.

    Raises:
        OAuthError: The login failed; nothing stored has changed. The message says why.
    """
    settings = settings or OAuthSettings()
    if settings.interactive and authorizer is None:
        raise TypeError("login: a person logs in through authorizer, such as LoopbackAuthorizer(print)")
    source = TokenSource(
        server,
        settings or OAuthSettings(),
        store,
        authorizer=authorizer,
        http=http,
        resolver=resolver,
        now=now,
    )
    status, headers = await source.endpoints.probe("POST", server.url, PROBE_HEADERS, PROBE)
    if status in (404, 405):  # as the older protocol over events answers
        status, headers = await source.endpoints.probe("GET", server.url, PROBE_HEADERS)
    challenge = challenge_of(headers) if status == 401 else Challenge(refused=False)
    return await source.log_in(challenge, tuple(scopes))


async def logout(
    server: Protected,
    store: LoginStore,
    settings: OAuthSettings | None = None,
    *,
    http: HttpFactory | None = None,
    resolver: HostResolver = system_resolver,
    now: Callable[[], float] = time.time,
) -> bool | None:
    """Revoke the tokens of a login where its issuer can (RFC 7009), and forget it whatever the issuer says.

    Returns None if there was no login; otherwise whether the issuer confirmed that the tokens are revoked.
    """
    source = TokenSource(server, settings or OAuthSettings(), store, http=http, resolver=resolver, now=now)
    return await source.log_out()


@dataclass(frozen=True, slots=True)
class LoginState:
    """How a login stands, without any token: what `doctor` and lists show.

    `state` is "none" (nobody logged in), "valid", "renewable" (the token ended and is renewed at the next request),
    "ended" (a program logs in anew at the next request) or "needs_login" (a person has to).
    """

    state: Literal["none", "valid", "renewable", "ended", "needs_login"]
    issuer: str = ""
    scopes: tuple[str, ...] = ()
    expires_at: float = 0.0
    problem: str = ""


async def login_state(
    server: Protected,
    store: LoginStore,
    settings: OAuthSettings | None = None,
    *,
    now: Callable[[], float] = time.time,
) -> LoginState:
    """How the login at a server stands, from what is stored. Nothing is sent. Raises OAuthError for a broken store."""
    settings = settings or OAuthSettings()
    found = await store.read(login_name(server.url, settings))
    if found is None:
        return LoginState("none")
    token, issuer = found.token, found.issuer.issuer
    if token is None:
        return LoginState("needs_login" if settings.interactive else "ended", issuer, problem=found.problem)
    if not token.expired(now()):
        state: Literal["valid", "renewable", "ended", "needs_login"] = "valid"
    elif token.refresh_token:
        state = "renewable"
    else:
        state = "needs_login" if settings.interactive else "ended"
    return LoginState(state, issuer, token.scopes, token.expires_at, found.problem)
