"""Asks the token endpoint for tokens, and revokes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolcrib.dataclass import dataclass, field, replace
from toolcrib.mcp.client.oauth.challenges import scopes_of
from toolcrib.mcp.client.oauth.clients import Client, authenticate
from toolcrib.mcp.client.oauth.discovery import IssuerMetadata
from toolcrib.mcp.client.oauth.dpop import DpopKey
from toolcrib.mcp.client.oauth.endpoints import EndpointReply, Endpoints
from toolcrib.mcp.client.oauth.problems import OAuthError, foreign_words
from toolcrib.mcp.client.oauth.settings import OAuthSettings
from toolcrib.mcp.concealment import concealed, concealing_values
from toolcrib.mcp.config import credentials_in

__all__ = ["TokenEndpoint", "TokenRefused", "TokenSet", "workload_assertion"]

# Fields of a token request that an error must not show.
CREDENTIALS = ("code", "code_verifier", "refresh_token", "token", "assertion", "client_assertion")
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
PASSING = ("temporarily_unavailable", "server_error", "slow_down")  # errors that say nothing about the token
MAX_TOKEN = 60_000  # characters; servers take headers of 8 to 64 KB
MAX_LIFETIME = 10 * 365 * 86400  # seconds; a longer lifetime counts as this one
LONGEST_KIND = 12  # characters of a kind of token; a longer text may be a token, and is not shown
MARGIN = 60.0  # seconds before its end in which a token is renewed; a tenth of its lifetime if that is less


class TokenRefused(OAuthError):
    """The token endpoint said no. `code` is the error of RFC 6749, such as invalid_grant."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class TokenSet:
    """An access token with all that is known of it. `expires_at` is in seconds since 1970; 0 if nothing was said."""

    access_token: str = field(repr=False)
    kind: str = "Bearer"
    issued_at: float = 0.0
    expires_at: float = 0.0
    scopes: tuple[str, ...] = ()
    refresh_token: str = field(default="", repr=False)

    def expired(self, now: float) -> bool:
        """Whether its end has come."""
        return 0 < self.expires_at <= now

    def due(self, now: float) -> bool:
        """Whether it should be renewed: it ends soon, or has ended."""
        if not self.expires_at:
            return False
        return now >= self.expires_at - min(MARGIN, (self.expires_at - self.issued_at) / 10)


class TokenEndpoint:
    """The token endpoint of one issuer, as one client uses it for one resource."""

    def __init__(
        self,
        endpoints: Endpoints,
        issuer: IssuerMetadata,
        client: Client,
        settings: OAuthSettings,
        resource: str,
        dpop: DpopKey | None = None,
    ) -> None:
        self._endpoints = endpoints
        self._issuer = issuer
        self._client = client
        self._settings = settings
        self._resource = resource
        self._dpop = dpop

    async def exchange_code(
        self, code: str, verifier: str, redirect_uri: str, scopes: tuple[str, ...], now: float
    ) -> TokenSet:
        """Tokens for an authorization code."""
        form = {"code": code, "code_verifier": verifier, "redirect_uri": redirect_uri}
        return await self._token("authorization_code", form, scopes, now)

    async def refresh(self, token: TokenSet, now: float) -> TokenSet:
        """New tokens for a refresh token. What the answer leaves out stays as it was."""
        fresh = await self._token("refresh_token", {"refresh_token": token.refresh_token}, token.scopes, now)
        return replace(fresh, refresh_token=fresh.refresh_token or token.refresh_token)

    async def client_credentials(self, scopes: tuple[str, ...], now: float) -> TokenSet:
        """A token for a program that proves its own identity."""
        return await self._token("client_credentials", _scope(scopes), scopes, now)

    async def jwt_bearer(self, assertion: str, scopes: tuple[str, ...], now: float) -> TokenSet:
        """A token for an assertion that somebody else signed (RFC 7523)."""
        return await self._token(JWT_BEARER, {"assertion": assertion, **_scope(scopes)}, scopes, now)

    async def revoke(self, token: TokenSet, now: float) -> bool:
        """Revoke both tokens (RFC 7009). Returns whether the issuer took it; False if it has no such endpoint."""
        url = self._issuer.revocation_endpoint
        if not url:
            return False
        given = {"refresh_token": token.refresh_token, "access_token": token.access_token}
        taken = True
        for hint, value in given.items():
            if value:
                reply = await self._post(
                    url, "revocation endpoint", {"token": value, "token_type_hint": hint}, now
                )
                taken = taken and reply.status == 200
        return taken

    async def _token(
        self, grant: str, fields: Mapping[str, str], scopes: tuple[str, ...], now: float
    ) -> TokenSet:
        form = {"grant_type": grant, **fields, "resource": self._resource}
        reply = await self._post(self._issuer.token_endpoint, "token endpoint", form, now)
        token = _read_token(reply, self._issuer.issuer, scopes, now)
        bound = self._dpop is not None
        if (token.kind == "DPoP" and not bound) or (token.kind != "DPoP" and self._settings.dpop is True):
            raise _wrong_kind(self._issuer.issuer, token.kind)
        return token

    async def _post(self, url: str, what: str, fields: Mapping[str, str], now: float) -> EndpointReply:
        reply = await self._send(url, what, fields, now)
        new_nonce = self._dpop is not None and self._dpop.take_nonce(url, reply.nonce)
        if new_nonce and reply.data.get("error") == "use_dpop_nonce":
            return await self._send(url, what, fields, now)
        return reply

    async def _send(self, url: str, what: str, fields: Mapping[str, str], now: float) -> EndpointReply:
        form, headers = dict(fields), dict[str, str]()
        authenticate(self._client, self._settings, self._issuer.issuer, form, headers, now)
        if self._dpop is not None:
            headers["DPoP"] = self._dpop.proof("POST", url, now)
        reply = await self._endpoints.post_form(url, what, form, headers)
        return self._concealed(reply, form, headers) if "error" in reply.data else reply

    def _concealed(
        self, reply: EndpointReply, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> EndpointReply:
        """An error reply without the credentials that were sent in its request: some servers repeat them."""
        sent = {name: value for name, value in form.items() if name in CREDENTIALS}
        sent |= {"client_secret": self._client.client_secret, **dict(credentials_in(headers.items()))}
        conceal = concealing_values({value: f"(hidden: {name})" for name, value in sent.items() if value})
        return replace(reply, data=concealed(reply.data, conceal))


async def workload_assertion(settings: OAuthSettings, issuer: str, resource: str) -> str:
    """The assertion that the settings give, read or made anew. Raises OAuthError."""
    if settings.assertion_file:
        return _read_assertion(settings.assertion_file)
    if isinstance(settings.assertion, str):
        return settings.assertion
    return await settings.assertion(issuer, resource)


def _read_assertion(path: str) -> str:
    try:
        return Path(path).read_text("ascii").strip()
    except (OSError, UnicodeError) as problem:
        raise OAuthError(f"the assertion in {path} cannot be read: {problem}") from None


def _scope(scopes: tuple[str, ...]) -> dict[str, str]:
    return {"scope": " ".join(scopes)} if scopes else {}


def _wrong_kind(issuer: str, kind: str) -> OAuthError:
    shown = f"the kind {foreign_words(kind)}" if len(kind) <= LONGEST_KIND else "an unknown kind"
    return OAuthError(f"{issuer} issued a token of {shown}, which is not what was asked for")


def _read_token(reply: EndpointReply, issuer: str, scopes: tuple[str, ...], now: float) -> TokenSet:
    data = reply.data
    if "error" in data or not reply.ok:
        if data.get("error") in (None, *PASSING) or reply.status == 429 or reply.status >= 500:
            raise OAuthError(f"the token endpoint of {issuer} failed: HTTP {reply.status}")
        words = foreign_words(data["error"], data.get("error_description"))
        raise TokenRefused(f"{issuer} refused a token: {words}", str(data["error"]))
    access, kind = data.get("access_token"), str(data.get("token_type", "Bearer")).lower()
    if not isinstance(access, str) or not access or not _sendable(access):
        raise OAuthError(f"the token endpoint of {issuer} sent no access token")
    if kind not in ("bearer", "dpop"):
        raise _wrong_kind(issuer, kind)
    granted, refresh = data.get("scope"), data.get("refresh_token")
    return TokenSet(
        access,
        "DPoP" if kind == "dpop" else "Bearer",
        now,
        _end(data.get("expires_in"), now),
        scopes_of(granted) if isinstance(granted, str) else scopes,
        refresh if isinstance(refresh, str) and len(refresh) <= MAX_TOKEN else "",
    )


def _end(seconds: Any, now: float) -> float:
    """When a token ends: absolute, because a number of seconds means nothing after a restart."""
    try:
        lifetime = float(seconds)
    except (TypeError, ValueError):
        return 0.0
    except OverflowError:
        return now + MAX_LIFETIME
    return now + min(lifetime, MAX_LIFETIME) if lifetime > 0 else now if lifetime <= 0 else 0.0


def _sendable(token: str) -> bool:
    """Whether a token can stand in a header."""
    return len(token) <= MAX_TOKEN and token.isascii() and token.isprintable() and " " not in token
