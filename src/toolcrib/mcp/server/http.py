"""Serving over HTTP: as an ASGI application to mount, or by a server of its own.

| against                              | what                                                                       |
| ------------------------------------ | -------------------------------------------------------------------------- |
| pages that reach for local servers   | `Host` and `Origin` are checked before anything else                         |
| strangers                            | a token, or OAuth; without either only loopback is served                     |
| slow requests                        | header and body must have come within a time; a client must read its answers |
| floods                               | limits on connections, sessions, sizes, calls, questions, tasks              |
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Route

from toolcrib.mcp.server.auth import OAuthResource
from toolcrib.mcp.server.face import McpFace, require_face
from toolcrib.mcp.server.recent_events import RecentEvents

if TYPE_CHECKING:
    import asyncio
    import socket

    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["asgi_app", "is_loopback", "serve_http"]

MAX_BODY = 4 * 1024 * 1024
SESSION_IDLE = 1800.0
MAX_SESSIONS = 1_000
RETRY_MS = 1_000  # after which a client opens a broken stream again
HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:@/?#\s]+))(?::\d{1,5})?")  # a name or address, and a port
LOOPBACK_ORIGIN = r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?"


def is_loopback(host: str) -> bool:
    """Whether an address or name reaches this machine alone."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def asgi_app(
    face: McpFace,
    *,
    path: str = "/mcp",
    hosts: Sequence[str] | None = ("localhost", "127.0.0.1", "::1"),
    origins: Sequence[str] = (),
    verifier: TokenVerifier | None = None,
    oauth: OAuthResource | None = None,
    max_body: int = MAX_BODY,
    max_sessions: int = MAX_SESSIONS,
    session_idle: float = SESSION_IDLE,
) -> Starlette:
    """A face as an ASGI application, for any server, or mounted in an application of yours.

    An application that mounts it has to run its lifespan: `async with app.router.lifespan_context(app)`.

    Args:
        face: What is served.
        path: Where.
        hosts: The names by which this server is reached; a request for another is refused. None: any name.
        origins: Pages that may call it, such as "https://app.example.com". Pages of this machine may, if it is served
            under a name of this machine.
        verifier: Says who may call: `SharedToken`, `JwtVerifier`, `IntrospectionVerifier`, or your own.
        oauth: Where clients get a token.
        max_body: Bytes of a request.
        max_sessions: Connections (of the protocol) that may be open.
        session_idle: Seconds after which one that nobody uses is closed.

    Raises ValueError for `oauth` without a `verifier`.
    """
    require_face(face)
    if oauth is not None and verifier is None:
        raise ValueError("oauth needs a verifier, which says whether a token is valid: a JwtVerifier, say")
    manager = StreamableHTTPSessionManager(
        face.server,
        event_store=RecentEvents(),
        retry_interval=RETRY_MS,
        session_idle_timeout=session_idle,
        max_request_body_size=max_body,
        max_sessions=max_sessions,
    )
    endpoint: ASGIApp = StreamableHTTPASGIApp(manager)
    loopback = hosts is not None and any(map(is_loopback, hosts))
    middleware = [
        Middleware(_HostAndOriginCheck, hosts=hosts, origins=origins, loopback=loopback),
        Middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_origin_regex=LOOPBACK_ORIGIN if loopback else None,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["mcp-session-id", "www-authenticate"],
        ),
    ]
    routes: list[BaseRoute] = []
    if verifier is not None:
        middleware.append(Middleware(AuthenticationMiddleware, backend=BearerAuthBackend(verifier)))
        middleware.append(Middleware(AuthContextMiddleware))
        metadata = None
        if oauth is not None:
            url = AnyHttpUrl(oauth.url)
            metadata = build_resource_metadata_url(url)
            issuers, scopes = [AnyHttpUrl(one) for one in oauth.issuers], list(oauth.scopes)
            routes += create_protected_resource_routes(url, issuers, scopes or None)
        endpoint = RequireAuthMiddleware(endpoint, list(oauth.scopes) if oauth else [], metadata)
    routes.append(Route(path, endpoint=endpoint))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with manager.run():
            yield

    return Starlette(routes=routes, middleware=middleware, lifespan=lifespan)


class _HostAndOriginCheck:
    """Refuses requests for another host, and from pages that may not call this server.

    A page anywhere can make a browser send requests here, also under a name of its own that it lets point here.
    """

    def __init__(
        self, app: ASGIApp, hosts: Sequence[str] | None, origins: Sequence[str], loopback: bool
    ) -> None:
        self._app = app
        self._hosts = None if hosts is None else {host.lower().strip("[]") for host in hosts}
        self._origins = {origin.rstrip("/").lower() for origin in origins}
        self._loopback = loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = scope["headers"]
        given_hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
        given_origins = [value.decode("latin-1") for name, value in headers if name == b"origin"]
        if self._hosts is not None and not (len(given_hosts) == 1 and self._is_ours(given_hosts[0])):
            await PlainTextResponse("This server is not reached by that name.", 421)(scope, receive, send)
        elif not all(map(self._may_call, given_origins)):
            await PlainTextResponse("Pages of that origin may not call this server.", 403)(
                scope, receive, send
            )
        else:
            await self._app(scope, receive, send)

    def _is_ours(self, host: str) -> bool:
        read = HOST.fullmatch(host.lower())
        return self._hosts is not None and read is not None and (read[1] or read[2]) in self._hosts

    def _may_call(self, origin: str) -> bool:
        origin = origin.lower()
        return origin in self._origins or (
            self._loopback and re.fullmatch(LOOPBACK_ORIGIN, origin) is not None
        )


async def serve_http(
    face: McpFace,
    sock: socket.socket,
    *,
    max_connections: int = 512,
    request_time: float = 20.0,
    read_time: float = 60.0,
    stop: asyncio.Event | None = None,
    **options: Any,
) -> None:
    """Serve a face on a listening socket, until `stop` is set or the task is cancelled.

    Args:
        face: What is served.
        sock: Where. Without a `verifier`, it must be bound to a loopback address: ValueError for any other.
        max_connections: Beyond these, connections are closed at once.
        request_time: Seconds in which a request must have come, with its body.
        read_time: Seconds in which a client must read what was sent.
        stop: Ends it.
        options: Those of `asgi_app`.
    """
    from toolcrib.mcp.server.http_server import run

    host = sock.getsockname()[0]
    if options.get("verifier") is None and not is_loopback(host):
        raise ValueError(
            f"{host} can be reached from other machines, so a verifier is needed: a SharedToken, say"
        )
    app = asgi_app(face, **options)
    await run(app, sock, max_connections, request_time, read_time, stop)
