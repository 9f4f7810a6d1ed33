"""A server at a URL: streamable HTTP, or the older protocol over server-sent events.

The SDK does the protocol. This module makes sure that a failure costs one request and not the connection with all
others, that it is told with its status, and that an answer is bounded.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from toolcrib.mcp.client.errors import LOST, NOT_SENT, STATUS
from toolcrib.mcp.client.reading import read_message
from toolcrib.mcp.concealment import Conceal, concealing_values, unchanged
from toolcrib.mcp.config import credentials_in
from toolcrib.visible import on_one_line

__all__ = ["HttpLink", "proxy_for"]

MAX_ANSWER = 64 * 1024 * 1024  # bytes of one JSON answer, and of one event
CONNECT = 30.0  # seconds to connect, and to send
SILENCE = 24 * 3600.0  # seconds without a byte: how long a call may take is decided elsewhere
GOODBYE = 2.0  # seconds to tell the server that a session is over
REMEMBERED = 64  # credentials that were sent and are hidden where the server repeats them
SHOWN = 300  # characters of an answer's text in an error


class HttpLink:
    """How a remote server is reached: its URL, what is sent with every request, and who authenticates them.

    `auth` is an `httpx2.Auth`. With `events`, the older protocol is spoken. Without `cookies` none is kept: where
    several users share a connection, a cookie of one would be sent with the calls of the others.
    """

    pid = 0

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        auth: Any = None,
        events: bool = False,
        cookies: bool = True,
        conceal: Conceal = unchanged,
    ) -> None:
        self.url = url
        self.headers = dict(headers)
        self.auth = auth
        self.events = events
        self.cookies = cookies
        self.status: int | None = None  # of the last answer
        self._problem = ""
        self._conceal = conceal
        self._sent: dict[str, str] = {}  # credentials, each with what is shown instead; last sent, last here
        self._conceal_sent: Conceal = unchanged

    def explanation(self) -> str:
        """What the last request failed with; "" if it did not."""
        return self._problem

    def conceal(self, text: str, /, *, words: bool = True) -> str:
        """As `Conceal`: without the credentials of its configuration, and those that were sent last."""
        return self._conceal_sent(self._conceal(text, words=words), words=words)

    def sent(self, headers: Iterable[tuple[str, str]]) -> None:
        """Remember the credentials in the headers of a request: a token that was renewed, or of one caller."""
        for name, secret in credentials_in(headers):
            known = self._sent.pop(secret, None)  # so that those in use are the last to be forgotten
            self._sent[secret] = f"(hidden: {name})"
            if len(self._sent) > REMEMBERED:
                del self._sent[next(iter(self._sent))]
            if known is None:
                self._conceal_sent = concealing_values(self._sent.copy())

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[tuple[Any, Any]]:
        """Give the streams of messages from the server and to it."""
        if self.events:
            from mcp.client.sse import sse_client

            async with sse_client(
                self.url, timeout=CONNECT, sse_read_timeout=SILENCE, httpx_client_factory=self._client
            ) as streams:
                yield streams
            return
        from mcp.client.streamable_http import streamable_http_client

        async with (
            self._client() as client,
            streamable_http_client(self.url, http_client=client, max_sse_event_size=MAX_ANSWER) as streams,
        ):
            yield streams

    def _client(self, headers: Any = None, timeout: Any = None, auth: Any = None) -> Any:
        """The HTTP client; the arguments are what the SDK would give one of its own."""
        import httpx2

        client = httpx2.AsyncClient(
            # A compressed answer could be a thousand times as long as what was received, and is not taken.
            headers={"Accept-Encoding": "identity", **self.headers, **(headers or {})},
            auth=self.auth or auth,
            timeout=httpx2.Timeout(CONNECT, read=SILENCE),
            transport=_failures_as_answers()(self, httpx2.AsyncHTTPTransport(proxy=proxy_for(self.url))),
        )
        if not self.cookies:
            from http.cookiejar import DefaultCookiePolicy

            client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        return client

    def failed(self, problem: str) -> None:
        self._problem = self.conceal(problem)


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for a URL: a client with a transport of its own does not look for one."""
    from urllib.parse import urlsplit
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in ("localhost", "::1") or host.startswith("127.") or proxy_bypass(host):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


_made: Any = None


def _failures_as_answers() -> Any:
    """The class of the HTTP transport; made at first use, because its base is in an optional package."""
    global _made
    if _made is None:
        _made = _make()
    return _made


def _make() -> Any:
    import httpx2

    class FailuresAsAnswers(httpx2.AsyncBaseTransport):
        """Answers a request with an error where it fails, instead of raising: the SDK would end the connection."""

        def __init__(self, link: HttpLink, inner: Any) -> None:
            self._link = link
            self._inner = inner

        async def handle_async_request(self, request: Any) -> Any:
            self._link.sent(request.headers.items())
            if request.method == "DELETE":  # the end of a session, which nobody waits for
                request.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), GOODBYE)
            try:
                response = await self._inner.handle_async_request(request)
            except httpx2.TransportError as problem:
                if request.method != "POST":
                    raise
                return self._unreachable(problem)
            self._link.status = response.status_code
            if response.status_code >= 400:
                return await self._refused(response, in_session="mcp-session-id" in request.headers)
            self._link.failed("")
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                await response.aclose()
                return _in_place(request, "the answer is compressed, which was not asked for")
            kind = response.headers.get("content-type", "").lower()
            if response.status_code == 200 and kind.startswith("application/json"):
                return await self._read(request, response)
            return response

        async def aclose(self) -> None:
            await self._inner.aclose()

        def _unreachable(self, problem: Exception) -> Any:
            words = f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
            self._link.failed(words)
            sent = not isinstance(problem, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
            data = {} if sent else {NOT_SENT: True}
            return httpx2.Response(503, json=_error(LOST, words, data))

        async def _read(self, request: Any, response: Any) -> Any:
            """The same answer, read whole; or an error in its place if it cannot be read."""
            try:
                body = b"".join([piece async for piece in _bounded(response.stream)])
            except httpx2.StreamError as problem:
                return _in_place(request, str(problem))
            finally:
                await response.aclose()
            read = read_message(body)
            if read is None:
                return _in_place(request, "the answer is no message of the protocol")
            headers = [
                (name, value)
                for name, value in response.headers.multi_items()
                if name.lower() not in ("content-length", "transfer-encoding")
            ]
            return httpx2.Response(response.status_code, headers=headers, content=read[1])

        async def _refused(self, response: Any, *, in_session: bool) -> Any:
            """The same answer with an error of the protocol as its body, if it has none itself.

            404 within a session says that the session has ended, whatever error a server puts into the body.
            """
            body = b""
            async for piece in _bounded(response.stream, 65_536, raises=False):
                body += piece
            await response.aclose()
            status = response.status_code
            words = f"HTTP {status} {response.reason_phrase}".strip()
            self._link.failed(words)
            kind = response.headers.get("content-type", "").lower()
            headers = [
                (name, value)
                for name, value in response.headers.multi_items()
                if name.lower() not in ("content-length", "content-encoding", "transfer-encoding")
            ]
            encoded = "content-encoding" in response.headers
            own = kind.startswith("application/json") and not encoded and _is_protocol_error(body)
            if own and not (status == 404 and in_session):
                return httpx2.Response(status, headers=headers, content=body)
            text = "" if encoded or not kind.startswith("text/plain") else body.decode("utf-8", "replace")
            shown = f"{words}: {on_one_line(self._link.conceal(text), SHOWN)}" if text else words
            headers = [(name, value) for name, value in headers if name.lower() != "content-type"]
            answer = _error(LOST, shown, {STATUS: status})
            return httpx2.Response(status, headers=headers, json=answer)

    return FailuresAsAnswers


def _is_protocol_error(body: bytes) -> bool:
    """Whether a body is an error of the protocol; many servers put errors of another form there."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return False
    error = data.get("error") if isinstance(data, dict) else None
    return isinstance(error, dict) and isinstance(error.get("code"), int)


def _error(code: int, message: str, data: dict[str, Any], answered: Any = None) -> dict[str, Any]:
    error = {"code": code, "message": message, "data": data}
    return {"jsonrpc": "2.0", "id": answered, "error": error}


def _in_place(request: Any, words: str) -> Any:
    """An answer with an error to the request that cannot be answered otherwise."""
    import httpx2

    answered = None
    with suppress(ValueError, AttributeError):
        answered = json.loads(request.content).get("id")
    return httpx2.Response(200, json=_error(LOST, words, {}, answered))


def _bounded(stream: Any, limit: int = MAX_ANSWER, *, raises: bool = True) -> Any:
    """A stream of an answer's bytes that ends at a limit, with an error that the SDK takes as one of this request."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            try:
                async for piece in stream:
                    size += len(piece)
                    if size > limit:
                        if raises:
                            raise httpx2.StreamError(f"the answer is longer than {limit} bytes")
                        return
                    yield piece
            except httpx2.TransportError as problem:
                raise httpx2.StreamError(f"the answer broke off: {problem}") from problem

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()
