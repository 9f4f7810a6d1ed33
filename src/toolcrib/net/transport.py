"""Transports for `httpx2` (or `httpx`) that connect only where a guard allows.

The check is made where the connection is made: the connection pool asks our network back end for a host and port, and
the back end resolves the name, checks the addresses and connects to one of them. TLS still verifies the name. Proxies
and unix sockets are not supported.

    client = httpx2.AsyncClient(transport=async_transport(NetGuard()), follow_redirects=True)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from toolcrib.net.answer_body import AnswerBody
from toolcrib.net.backend import AsyncBackend, SyncBackend
from toolcrib.net.guard import NetGuard
from toolcrib.net.redirects import UNTIL, RedirectChain, redirect_chain
from toolcrib.net.urls import NetworkRefused, parse_url

if TYPE_CHECKING:
    import httpx2

__all__ = ["async_transport", "sync_transport"]

POOL: dict[str, Any] = {"http1": True, "http2": False, "max_connections": 100, "keepalive_expiry": 5.0}


def async_transport(
    guard: NetGuard, *, verify: Any = True, library: ModuleType | None = None, backend: Any = None
) -> httpx2.AsyncBaseTransport:
    """A transport for AsyncClient. Requests raise NetworkRefused besides what the client's library raises.

    `verify` is as for the client: True, or an SSLContext. `library` is `httpx2` unless `httpx` is handed in. `backend`
    is what connects to the checked addresses: a network back end of `httpcore2` (by default its own).
    """
    http, core = _libraries(library)
    inner = http.AsyncHTTPTransport(verify=verify, trust_env=False)
    inner._pool = core.AsyncConnectionPool(
        ssl_context=http.create_ssl_context(verify=verify, trust_env=False),
        network_backend=AsyncBackend(guard, core.AnyIOBackend() if backend is None else backend, core),
        **POOL,
    )
    made: httpx2.AsyncBaseTransport = _with_base(_AsyncGuarded, http.AsyncBaseTransport)(guard, http, inner)
    return made


def sync_transport(
    guard: NetGuard, *, verify: Any = True, library: ModuleType | None = None, backend: Any = None
) -> httpx2.BaseTransport:
    """The same for Client. Resolving a name cannot be interrupted here: it takes what the resolver takes."""
    http, core = _libraries(library)
    inner = http.HTTPTransport(verify=verify, trust_env=False)
    inner._pool = core.ConnectionPool(
        ssl_context=http.create_ssl_context(verify=verify, trust_env=False),
        network_backend=SyncBackend(guard, core.SyncBackend() if backend is None else backend, core),
        **POOL,
    )
    made: httpx2.BaseTransport = _with_base(_SyncGuarded, http.BaseTransport)(guard, http, inner)
    return made


class _AsyncGuarded:
    """Checks each request and decodes each answer. The connections are made by the back end of the pool."""

    def __init__(self, guard: NetGuard, http: Any, inner: Any) -> None:
        self._guard = guard
        self._http = http
        self._inner = inner
        self._stream = _with_base(_AsyncBody, http.AsyncByteStream)

    async def handle_async_request(self, request: Any) -> Any:
        chain = _checked_request(self._guard, request)
        with _within(chain, self._http):
            response = await self._inner.handle_async_request(request)
        try:
            body = _body(response, chain)
        except BaseException:
            await response.stream.aclose()
            raise
        response.stream = self._stream(response.stream, body, chain, self._http)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _AsyncBody:
    def __init__(self, raw: Any, body: AnswerBody, chain: RedirectChain, http: Any) -> None:
        self._raw = raw
        self._body = body
        self._chain = chain
        self._http = http

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = aiter(self._raw)
        while True:
            with _within(self._chain, self._http):
                piece = await anext(pieces, None)
            if piece is None:
                return
            for out in self._body.feed(piece):
                yield out

    async def aclose(self) -> None:
        await self._raw.aclose()


class _SyncGuarded:
    """The same without an event loop."""

    def __init__(self, guard: NetGuard, http: Any, inner: Any) -> None:
        self._guard = guard
        self._http = http
        self._inner = inner
        self._stream = _with_base(_SyncBody, http.SyncByteStream)

    def handle_request(self, request: Any) -> Any:
        chain = _checked_request(self._guard, request)
        with _within(chain, self._http):
            response = self._inner.handle_request(request)
        try:
            body = _body(response, chain)
        except BaseException:
            response.stream.close()
            raise
        response.stream = self._stream(response.stream, body, chain, self._http)
        return response

    def close(self) -> None:
        self._inner.close()


class _SyncBody:
    def __init__(self, raw: Any, body: AnswerBody, chain: RedirectChain, http: Any) -> None:
        self._raw = raw
        self._body = body
        self._chain = chain
        self._http = http

    def __iter__(self) -> Iterator[bytes]:
        pieces = iter(self._raw)
        while True:
            with _within(self._chain, self._http):
                piece = next(pieces, None)
            if piece is None:
                return
            yield from self._body.feed(piece)

    def close(self) -> None:
        self._raw.close()


def _with_base(ours: type[Any], base: Any) -> Any:
    """Our class with a base class of the client's library, which is known only when it is imported."""
    return type(ours.__name__.lstrip("_"), (ours, base), {})


def _libraries(library: ModuleType | None) -> tuple[Any, Any]:
    """The client's library and the one that connects for it. Raises ImportError with what to install."""
    name = library.__name__ if library is not None else "httpx2"
    try:
        return import_module(name), import_module("httpcore" if name == "httpx" else "httpcore2")
    except ImportError:
        raise ImportError(
            f"the network guard's transport needs {name}: pip install 'toolcrib[http]'"
        ) from None


def _checked_request(guard: NetGuard, request: Any) -> RedirectChain:
    """Check a request, and what it takes over from the request that was redirected to it."""
    target = guard.check_url(str(request.url))
    if parse_url(f"{target.scheme}://{request.headers.get('host', target.host.name)}").host != target.host:
        raise NetworkRefused(f"the Host header names another host than the URL ({target.host.name})")
    chain = redirect_chain(request.extensions, guard)
    chain.follow(target, request.headers, body=_has_body(request.headers))
    request.extensions["timeout"] = chain.timeouts(request.extensions.get("timeout", {}))
    return chain


def _has_body(headers: Any) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _body(response: Any, chain: RedirectChain) -> AnswerBody:
    """The decoder of an answer. Its header is removed, so that the client does not decode again."""
    headers = response.headers
    body = AnswerBody(chain, headers.get("content-encoding", ""))
    if headers.pop("content-encoding", None) is not None:
        headers.pop("content-length", None)
    return body


@contextmanager
def _within(chain: RedirectChain, http: Any) -> Generator[None]:
    """Limits all waits to the chain's deadline, and raises NetworkRefused when it has passed."""
    token = UNTIL.set(chain.until)
    try:
        yield
    except http.TimeoutException:
        chain.check()
        raise
    finally:
        UNTIL.reset(token)
