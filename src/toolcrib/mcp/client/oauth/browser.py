"""A person logs in: the authorization request with PKCE, and how its answer comes back.

`LoopbackAuthorizer` shows an address, may open a browser, and waits for the browser at a port of this machine.
`PasteAuthorizer` is for machines without a browser: the person pastes the address that the browser ended at.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from toolcrib.event_loops import on_own_thread
from toolcrib.mcp.client.oauth.clients import Client
from toolcrib.mcp.client.oauth.discovery import IssuerMetadata
from toolcrib.mcp.client.oauth.problems import OAuthError, foreign_words

__all__ = ["Authorizer", "Callback", "LoopbackAuthorizer", "PasteAuthorizer", "authorization_code"]

MAX_REQUEST = 16_384  # bytes of a browser's request
READ_SECONDS = 5.0
PASTES = 3  # how often a person may paste something wrong
PAGE = """<!doctype html><meta charset="utf-8"><title>toolcrib</title>\
<p style="font: 1.2em sans-serif; margin: 3em">{words}</p>"""
HEADERS = (
    "Content-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\nConnection: close\r\n"
)


class Callback(Protocol):
    """A place that one authorization response comes back to."""

    @property
    def uri(self) -> str: ...
    async def answer(self, url: str, state: str) -> Mapping[str, str]:
        """Send a person to `url`, and give the parameters of the response with this state. Raises OAuthError."""
        ...


class Authorizer(Protocol):
    """Lets a person log in."""

    def opened(self, redirect_uri: str, *, fixed: bool) -> AbstractAsyncContextManager[Callback]:
        """A place for the response. Unless it is `fixed`, another port than that of `redirect_uri` will do."""
        ...


async def authorization_code(
    redirect: Callback,
    issuer: IssuerMetadata,
    client: Client,
    resource: str,
    scopes: tuple[str, ...],
    *,
    assume_pkce: bool = False,
) -> tuple[str, str]:
    """A code, and the verifier that proves that we asked for it. Raises OAuthError.

    The response must have the state of this request, and where it names an issuer, or the issuer announced that it
    would, the issuer must be the one that was asked, character by character (RFC 9207).
    """
    if not issuer.authorization_endpoint:
        raise OAuthError(f"{issuer.issuer} has no page where a person could log in")
    if not assume_pkce and "S256" not in (issuer.pkce or ()):
        raise OAuthError(
            f"{issuer.issuer} does not say that it supports PKCE with S256, without which a login is unsafe"
        )
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(64)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    asked = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect.uri,
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "resource": resource,
    }
    if scopes:
        asked["scope"] = " ".join(scopes)
    if "offline_access" in scopes:
        asked["prompt"] = "consent"  # OpenID Connect gives no refresh token without it
    answer = await redirect.answer(_with_query(issuer.authorization_endpoint, asked), state)
    if not secrets.compare_digest(answer.get("state", "").encode(), state.encode()):
        raise OAuthError("the answer of the login belongs to another request: its state is wrong")
    named = answer.get("iss")
    if named is None and issuer.names_itself:
        raise OAuthError(
            f"the answer of the login does not name its issuer, as {issuer.issuer} announced: it is not used"
        )
    if named is not None and named != issuer.issuer:
        raise OAuthError(
            f"the answer of the login comes from {foreign_words(named)}, not from {issuer.issuer}: it is not used"
        )
    if "error" in answer:
        raise OAuthError(
            f"the login failed: {foreign_words(answer['error'], answer.get('error_description'))}"
        )
    if not answer.get("code"):
        raise OAuthError("the answer of the login contains no code")
    return answer["code"], verifier


def _with_query(url: str, more: Mapping[str, str]) -> str:
    parts = urlsplit(url)
    query = "&".join(filter(None, (parts.query, urlencode(more))))
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))


class LoopbackAuthorizer:
    """Waits for the browser at a port of this machine.

    `show` is handed the address to log in at; `open_url` opens it in a browser, and is left out where there is none.
    """

    def __init__(
        self,
        show: Callable[[str], None],
        *,
        open_url: Callable[[str], object] | None = None,
        timeout: float = 300.0,
    ) -> None:
        self._show = show
        self._open = open_url
        self._timeout = timeout

    @asynccontextmanager
    async def opened(self, redirect_uri: str, *, fixed: bool) -> AsyncGenerator[Callback]:
        parts = urlsplit(redirect_uri)
        waiting = _Listener(parts.path or "/", self._show, self._open, self._timeout)
        async with AsyncExitStack() as stack:
            port = await waiting.listen(stack, parts.hostname or "127.0.0.1", parts.port or 0, fixed=fixed)
            host = parts.netloc.rpartition(":")[0]
            waiting.uri = urlunsplit((parts.scheme, f"{host}:{port}", parts.path, "", ""))
            yield waiting


class _Listener:
    def __init__(
        self, path: str, show: Callable[[str], None], open_url: Callable[[str], object] | None, timeout: float
    ) -> None:
        self.uri = ""
        self._path = path
        self._show = show
        self._open = open_url
        self._timeout = timeout
        self._state = ""
        self._answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()

    async def listen(self, stack: AsyncExitStack, host: str, port: int, *, fixed: bool) -> int:
        """Listen at a port of this machine, and give its number."""
        name = "127.0.0.1" if host == "localhost" else host
        try:
            server = await asyncio.start_server(self._serve, name, port, limit=MAX_REQUEST)
        except OSError as problem:
            if fixed or not port:
                raise OAuthError(
                    f"the browser cannot come back to {host}:{port}: {problem.strerror}"
                ) from None
            server = await asyncio.start_server(self._serve, name, 0, limit=MAX_REQUEST)
        stack.callback(server.close)
        found: int = server.sockets[0].getsockname()[1]
        if host == "localhost" and socket.has_ipv6:  # where a browser looks first
            try:
                other = await asyncio.start_server(self._serve, "::1", found, limit=MAX_REQUEST)
                stack.callback(other.close)
            except OSError:
                pass
        return found

    async def answer(self, url: str, state: str) -> Mapping[str, str]:
        self._state = state
        self._show(url)
        if self._open is not None:  # a browser may stay in the foreground until the person closes it
            threading.Thread(target=self._open, args=(url,), name="toolcrib browser", daemon=True).start()
        try:
            async with asyncio.timeout(self._timeout):
                return await self._answer
        except TimeoutError:
            raise OAuthError(f"nobody logged in within {self._timeout:g} s") from None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request. Only the right path and state end the wait; anybody could send the rest."""
        try:
            async with asyncio.timeout(READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            status, words = self._take(head.split(b"\r\n", 1)[0])
            page = PAGE.format(words=words).encode()
            writer.write(f"HTTP/1.1 {status}\r\n{HEADERS}Content-Length: {len(page)}\r\n\r\n".encode() + page)
            async with asyncio.timeout(READ_SECONDS):
                await writer.drain()
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        except asyncio.CancelledError:  # the program ends; before Python 3.13, asyncio logs it as an error
            pass
        finally:
            writer.close()

    def _take(self, line: bytes) -> tuple[str, str]:
        method, target, _ = line.decode("ascii").split(" ")
        parts = urlsplit(target)
        if method != "GET" or parts.path != self._path:
            return "404 Not Found", "There is nothing here."
        found = _parameters(parts.query)
        if not self._state or not secrets.compare_digest(
            found.get("state", "").encode(), self._state.encode()
        ):
            return "400 Bad Request", "This is not the login that toolcrib waits for."
        if not self._answer.done():
            self._answer.set_result(found)
        if "error" in found:
            return "200 OK", "The login was refused. The terminal says more."
        return "200 OK", "toolcrib has the answer. You can close this page and go back to the terminal."


class PasteAuthorizer:
    """For machines without a browser: `show` is handed the address, `ask` waits for what the person pastes."""

    def __init__(self, show: Callable[[str], None], ask: Callable[[], str]) -> None:
        self._show = show
        self._ask = ask

    @asynccontextmanager
    async def opened(self, redirect_uri: str, *, fixed: bool) -> AsyncGenerator[Callback]:
        parts = urlsplit(redirect_uri)
        # Nothing listens there: the browser shows an error page, and the address of that page is what is pasted.
        port = parts.port or 49152 + secrets.randbelow(16384)
        uri = urlunsplit((parts.scheme, f"{parts.netloc.rpartition(':')[0]}:{port}", parts.path, "", ""))
        yield _Pasted(uri, self._show, self._ask)


class _Pasted:
    def __init__(self, uri: str, show: Callable[[str], None], ask: Callable[[], str]) -> None:
        self.uri = uri
        self._show = show
        self._ask = ask

    async def answer(self, url: str, state: str) -> Mapping[str, str]:
        self._show(url)
        for _ in range(PASTES):
            try:
                pasted = (await on_own_thread(self._ask, "toolcrib paste")).strip()
            except EOFError:
                break
            with suppress(ValueError):  # no address at all
                found = _parameters(urlsplit(pasted).query)
                if secrets.compare_digest(found.get("state", "").encode(), state.encode()):
                    return found
        raise OAuthError("the address that this login ends at was not pasted")


def _parameters(query: str) -> dict[str, str]:
    """The parameters of a response; nothing if one of them occurs twice."""
    pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=50)
    return dict(pairs) if len({name for name, _ in pairs}) == len(pairs) else {}
