"""The flow of one HTTP request to an MCP server: its token, and what is done about 401 and 403.

A request that cannot be authorised is answered with a JSON-RPC error in place of the server's answer. An exception here
would end the connection with all other calls on it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from toolcrib.mcp.client.oauth.challenges import Challenge, challenge_of
from toolcrib.mcp.client.oauth.endpoints import same_origin
from toolcrib.mcp.client.oauth.logins import Login
from toolcrib.mcp.client.oauth.problems import NeedsLogin, OAuthError
from toolcrib.mcp.client.oauth.tokens import TokenSource

if TYPE_CHECKING:
    import httpx2

__all__ = ["as_auth"]

# Code of the JSON-RPC error that takes the place of an answer. -32001 is the SDK's, for an answer that did not come.
ERROR_CODE = -32097
SIGNED = "toolcrib.oauth"  # an extension of requests that got their token here
ROUNDS = 5  # a token, a nonce, a renewed token, a login, more scopes


class _Flow:
    def __init__(self, source: TokenSource) -> None:
        self.source = source

    async def async_auth_flow(self, request: Any) -> AsyncGenerator[Any, Any]:
        if not self._ours(request):
            yield request
            return
        login, problem, renewed = None, None, False
        try:
            login = await self.source.current()
        except OAuthError as found:  # the server may answer without a token
            problem = found
        for left in range(ROUNDS, 0, -1):
            self._sign(request, login)
            response = yield request
            challenge = _challenge(response)
            nonce = response.headers.get("dpop-nonce", "")
            new_nonce = login is not None and self.source.take_nonce(login, str(request.url), nonce)
            if login is not None and response.status_code != 401:
                self.source.accepted(login)
            if challenge is None:
                return
            token = login.token if login is not None else None
            try:
                if problem is not None or left == 1:
                    raise problem or OAuthError(f"{self.source.server.name} refuses every token")
                if new_nonce and challenge.error == "use_dpop_nonce":
                    pass  # the same token, with a proof that has the nonce
                elif response.status_code == 403:
                    login = await self.source.after_403(token, challenge)
                else:
                    login = await self.source.after_401(token, challenge, renewed=renewed)
                    renewed = token is not None
            except OAuthError as found:
                await _explain(response, found)
                return
            await _drop_body(response)

    def _ours(self, request: Any) -> bool:
        """Whether the request goes to the server that the token is for, and has no credentials of its call."""
        if not same_origin(str(request.url), self.source.server.url):
            return False
        return "authorization" not in request.headers or SIGNED in request.extensions

    def _sign(self, request: Any, login: Login | None) -> None:
        for name in ("authorization", "dpop"):
            request.headers.pop(name, None)
        request.extensions[SIGNED] = True
        if login is None or login.token is None:
            return
        request.headers["authorization"] = f"{login.token.kind} {login.token.access_token}"
        if login.token.kind == "DPoP":
            request.headers["dpop"] = self.source.proof(login, request.method, str(request.url))


def as_auth(source: TokenSource) -> httpx2.Auth:
    """A token source as what `httpx2.AsyncClient(auth=...)` takes."""
    import httpx2

    made: httpx2.Auth = type("OAuthOfServer", (_Flow, httpx2.Auth), {})(source)
    return made


def _challenge(response: Any) -> Challenge | None:
    """What the server wants before it serves the request; None if it served it, or refuses it for another reason."""
    if response.status_code not in (401, 403):
        return None
    challenge = challenge_of(response.headers.get_list("www-authenticate"))
    return challenge if response.status_code == 401 or challenge.wants_scopes else None


async def _drop_body(response: Any) -> None:
    """Close the answer that is replaced by another, without reading it."""
    await _replace_body(response, b"")


async def _explain(response: Any, problem: OAuthError) -> None:
    """Put the reason into the answer, as the JSON-RPC error of the request."""
    kind = "needs_login" if isinstance(problem, NeedsLogin) else "oauth"
    error = {"code": ERROR_CODE, "message": str(problem), "data": {"toolcrib": kind}}
    await _replace_body(response, json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode())
    response.headers["content-type"] = "application/json"


async def _replace_body(response: Any, body: bytes) -> None:
    import httpx2

    await response.stream.aclose()
    for name in ("content-encoding", "transfer-encoding"):
        response.headers.pop(name, None)
    response.headers["content-length"] = str(len(body))
    response.stream = httpx2.ByteStream(body)
    if hasattr(response, "_content"):  # its transport has read it, and what was read would count
        response._content = body
