"""Requests to metadata, registration and token endpoints: short, bounded, through the network guard."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from toolcrib.dataclass import dataclass
from toolcrib.mcp.client.http import proxy_for
from toolcrib.mcp.client.oauth.problems import OAuthError
from toolcrib.mcp.client.oauth.settings import is_loopback_host
from toolcrib.net.addresses import parse_address
from toolcrib.net.guard import HostResolver, NetGuard, RequestLimits, system_resolver
from toolcrib.net.urls import NetworkRefused

if TYPE_CHECKING:
    import httpx2

__all__ = ["EndpointReply", "Endpoints", "HttpFactory", "login_guard", "same_origin"]

HttpFactory = Callable[[], "httpx2.AsyncClient"]

MAX_BYTES = 1_000_000  # of an answer
MAX_URL = 4_000  # characters
SECONDS = 30.0  # for one request with its redirects
REDIRECTS = 3
ALL_PORTS = range(1, 65536)
PRIVATE_NETWORKS = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
PRIVATE_NAMES = ("*.internal", "*.local", "*.localdomain", "*.intranet", "*.home.arpa", "*.lan")
LOOPBACK = ("localhost", "*.localhost", "127.0.0.0/8", "::1")


@dataclass(frozen=True, slots=True)
class EndpointReply:
    """An answer of an endpoint. `data` is its JSON object; empty if the answer is none."""

    status: int
    data: Mapping[str, Any]
    nonce: str = ""

    @property
    def ok(self) -> bool:
        return self.status in (200, 201)


class Endpoints:
    """Sends requests about one MCP server's login.

    Endpoints must be https. Plain http is allowed on this machine, and elsewhere where the operator configured the MCP
    server itself with http. Redirects are followed for GET within the origin only. A proxy
    that the environment names is used, as for the server itself.
    """

    def __init__(
        self,
        server_url: str,
        *,
        issuer: str = "",
        http: HttpFactory | None = None,
        resolver: HostResolver = system_resolver,
    ) -> None:
        self._plain_http = urlsplit(server_url).scheme == "http"
        self._http = http
        self._guard = cache(lambda: login_guard(server_url, issuer, resolver))

    def check(self, url: str, what: str) -> str:
        """The URL itself, if requests may go there at all. Raises OAuthError."""
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            raise OAuthError(f"the {what} is no URL: {url[:200]!r}") from None
        if (
            not (host and len(url) <= MAX_URL and url.isascii() and url.isprintable())
            or " " in url
            or parts.username
            or parts.fragment
        ):
            raise OAuthError(f"the {what} is not a plain https URL: {url[:200]!r}")
        loopback_or_configured = is_loopback_host(host) or self._plain_http
        if parts.scheme != "https" and not (parts.scheme == "http" and loopback_or_configured):
            raise OAuthError(f"the {what} must be https, got {url[:200]!r}")
        return url

    async def get(self, url: str, what: str) -> EndpointReply:
        """Fetch a JSON document. Raises OAuthError if the host cannot or must not be reached."""
        return await self._send("GET", url, what, {})

    async def post_form(
        self, url: str, what: str, form: Mapping[str, str], headers: Mapping[str, str] = {}
    ) -> EndpointReply:
        """Send a form. Raises OAuthError."""
        return await self._send("POST", url, what, headers, data=dict(form))

    async def post_json(
        self, url: str, what: str, data: Mapping[str, Any], headers: Mapping[str, str] = {}
    ) -> EndpointReply:
        """Send JSON. Raises OAuthError."""
        return await self._send("POST", url, what, headers, json=dict(data))

    async def probe(
        self, method: str, url: str, headers: Mapping[str, str], data: Mapping[str, Any] | None = None
    ) -> tuple[int, list[str]]:
        """The status of a request to the MCP server itself, and its challenges; the body is not read."""
        import httpx2

        try:
            async with asyncio.timeout(SECONDS), self._client(url) as client:
                request = client.build_request(method, url, json=data, headers=dict(headers))
                response = await client.send(request, stream=True, follow_redirects=False)
                try:
                    return response.status_code, response.headers.get_list("www-authenticate")
                finally:
                    await response.aclose()
        except (httpx2.HTTPError, OSError) as problem:
            raise _unreachable(url, "MCP server", problem) from None

    def _client(self, url: str) -> httpx2.AsyncClient:
        """A client for one request. Raises NetworkRefused."""
        import httpx2

        from toolcrib.net.transport import async_transport

        if self._http is not None:
            return self._http()
        guard = self._guard()
        if (proxy := proxy_for(url)) is not None:
            guard.check_url(url)  # the proxy resolves names, and decides on their addresses
            return httpx2.AsyncClient(proxy=proxy, verify=_tls(), timeout=SECONDS, trust_env=False)
        transport = async_transport(guard, verify=_tls())
        return httpx2.AsyncClient(transport=transport, timeout=SECONDS, trust_env=False)

    async def _send(
        self, method: str, url: str, what: str, headers: Mapping[str, str], **body: Any
    ) -> EndpointReply:
        import httpx2

        self.check(url, what)
        try:
            async with asyncio.timeout(SECONDS), self._client(url) as client:
                # A compressed answer could be a thousand times as long as what was received, and is not taken.
                plain = {"accept": "application/json", "accept-encoding": "identity"}
                request = client.build_request(method, url, headers={**plain, **headers}, **body)
                for _ in range(REDIRECTS + 1):
                    response = await client.send(request, stream=True, follow_redirects=False)
                    try:
                        following = response.next_request
                        if following is None or method != "GET" or not same_origin(url, str(following.url)):
                            return await _reply(response, url, what)
                        request = following
                    finally:
                        await response.aclose()
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as problem:
            raise _unreachable(url, what, problem) from None
        raise OAuthError(f"the {what} at {_origin_words(url)} redirects too often")


async def _reply(response: httpx2.Response, url: str, what: str) -> EndpointReply:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise OAuthError(f"the {what} at {_origin_words(url)} is compressed, which was not asked for")
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > MAX_BYTES:
            raise OAuthError(f"the {what} at {_origin_words(url)} sent more than {MAX_BYTES} bytes")
    try:
        data: Any = json.loads(body)
        json.dumps(data, ensure_ascii=False).encode()  # half a character could not be sent or shown again
    except (ValueError, RecursionError):
        data = None
    nonce = response.headers.get("dpop-nonce", "")
    return EndpointReply(response.status_code, data if isinstance(data, dict) else {}, nonce)


def login_guard(server_url: str, issuer: str = "", resolver: HostResolver = system_resolver) -> NetGuard:
    """Where the requests of a login may go: the open internet, and hosts that the operator named.

    A server on this machine may name an authorization server on this machine, and a server in a private network one
    in private networks. Metadata addresses of clouds stay closed for all.
    """
    opened: list[str] = []
    for url in (server_url, issuer):
        host = urlsplit(url).hostname or ""
        if not host:
            continue
        opened.append(f"[{host}]" if ":" in host else host)
        if is_loopback_host(host):
            opened += LOOPBACK
        elif _is_private(host):
            opened += (*PRIVATE_NETWORKS, *PRIVATE_NAMES)
    return NetGuard(
        allow_private=list(dict.fromkeys(opened)),
        ports=ALL_PORTS,
        limits=RequestLimits(redirects=REDIRECTS, seconds=SECONDS, bytes=MAX_BYTES),
        resolver=resolver,
    )


def same_origin(one: str, other: str) -> bool:
    """Whether two URLs have the same scheme, host and port. What is no URL has the origin of none."""
    try:
        return _origin(one) == _origin(other)
    except ValueError:
        return False


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    default = {"https": 443, "http": 80}.get(parts.scheme.lower())
    return parts.scheme.lower(), (parts.hostname or "").rstrip("."), parts.port or default


def _is_private(host: str) -> bool:
    try:
        address = parse_address(host)
    except ValueError:
        return False
    if address is None:
        return any(host.endswith(name[1:]) for name in PRIVATE_NAMES)
    return address.is_private


@cache
def _tls() -> Any:
    """Certificates that are trusted; reading them takes longer than a whole login otherwise does."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)


def _unreachable(url: str, what: str, problem: Exception) -> OAuthError:
    if isinstance(problem, TimeoutError):
        return OAuthError(f"the {what} at {_origin_words(url)} did not answer within {SECONDS:g} s")
    why = problem.reason if isinstance(problem, NetworkRefused) else (str(problem) or type(problem).__name__)
    return OAuthError(f"the {what} at {_origin_words(url)} cannot be reached: {why[:200]}")


def _origin_words(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"[:200]
