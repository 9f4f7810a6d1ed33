"""Which client we are to an authorization server, and how we prove it at the token endpoint.

In this order: a client that the operator registered, the client that we registered before at the same issuer, a client
metadata document (where the issuer takes it), a client that we register now (RFC 7591).
"""

from __future__ import annotations

import base64
import secrets
from typing import Any
from urllib.parse import quote

from toolcrib.dataclass import dataclass, field
from toolcrib.mcp.client.oauth.discovery import IssuerMetadata
from toolcrib.mcp.client.oauth.endpoints import Endpoints
from toolcrib.mcp.client.oauth.problems import OAuthError, foreign_words
from toolcrib.mcp.client.oauth.settings import AUTH_METHODS, OAuthSettings

__all__ = ["Client", "authenticate", "choose_client", "configured_client"]

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ASSERTION_SECONDS = 120
MAX_CREDENTIAL = 8_000  # characters of a client's id or secret
NEVER = 1e12  # seconds since 1970


@dataclass(frozen=True, slots=True)
class Client:
    """A client of one issuer. `registered` says that we registered it ourselves."""

    client_id: str
    client_secret: str = field(default="", repr=False)
    auth_method: str = "none"
    redirect_uri: str = ""
    registered: bool = False
    expires_at: float = 0.0  # when the secret ends; 0 for never

    def usable(self, redirect_uri: str, now: float) -> bool:
        """Whether an authorization request may be made with it."""
        return self.redirect_uri == redirect_uri and not 0 < self.expires_at <= now


def configured_client(
    settings: OAuthSettings, issuer: IssuerMetadata, redirect_uri: str = ""
) -> Client | None:
    """The client that the operator registered by hand; None if there is none."""
    if not settings.client_id:
        return None
    method = settings.auth_method or _offered_method(settings, issuer)
    return Client(settings.client_id, settings.client_secret, method, redirect_uri)


async def choose_client(
    endpoints: Endpoints,
    issuer: IssuerMetadata,
    settings: OAuthSettings,
    redirect_uri: str,
    scopes: tuple[str, ...],
    known: Client | None,
    now: float,
) -> Client:
    """The client to log in with; `known` is one that this issuer knows. Raises OAuthError if none can be had."""
    if (configured := configured_client(settings, issuer, redirect_uri)) is not None:
        return configured
    if known is not None and known.registered and known.usable(redirect_uri, now):
        return known
    if settings.client_metadata_url and issuer.client_documents:
        return Client(settings.client_metadata_url, redirect_uri=redirect_uri)
    if not issuer.registration_endpoint:
        raise OAuthError(
            f"the authorization server {issuer.issuer} does not let clients register themselves: register one there "
            f"with a redirect to a loopback address, and put its client_id into the settings of the server"
        )
    return await _register(endpoints, issuer, settings, redirect_uri, scopes)


async def _register(
    endpoints: Endpoints,
    issuer: IssuerMetadata,
    settings: OAuthSettings,
    redirect_uri: str,
    scopes: tuple[str, ...],
) -> Client:
    offered = issuer.auth_methods
    wanted = "none"
    if offered is not None and "none" not in offered:
        wanted = next(
            (method for method in ("client_secret_basic", "client_secret_post") if method in offered), "none"
        )
    data: dict[str, Any] = {
        "client_name": settings.client_name,
        "application_type": "native",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted,
    }
    if scopes:
        data["scope"] = " ".join(scopes)
    reply = await endpoints.post_json(issuer.registration_endpoint, "client registration", data)
    client_id, secret = _short(reply.data.get("client_id")), _short(reply.data.get("client_secret"))
    if reply.status in (404, 405):
        raise OAuthError(
            f"{issuer.issuer} registers no clients. The server may want a key in a header, or a client that you "
            f"registered by hand: its client_id goes into the settings of the server"
        )
    if not reply.ok or not client_id:
        words = foreign_words(reply.data.get("error"), reply.data.get("error_description"))
        raise OAuthError(
            f"{issuer.issuer} did not register toolcrib as a client (HTTP {reply.status}): {words}"
        )
    method = reply.data.get("token_endpoint_auth_method") or wanted
    if method not in AUTH_METHODS[1:4] or (method != "none" and not secret):
        raise OAuthError(
            f"{issuer.issuer} registered toolcrib for {foreign_words(method)}, which cannot be used with what it sent"
        )
    expires = reply.data.get("client_secret_expires_at")
    return Client(
        client_id,
        secret,
        method,
        redirect_uri,
        registered=True,
        expires_at=min(expires, NEVER) if isinstance(expires, int | float) and secret else 0.0,
    )


def _short(value: Any) -> str:
    """A text of a bounded length; "" for anything else."""
    return value if isinstance(value, str) and len(value) <= MAX_CREDENTIAL else ""


def _offered_method(settings: OAuthSettings, issuer: IssuerMetadata) -> str:
    """How a configured client proves itself: the first way that the issuer offers and the settings make possible."""
    if settings.private_key:
        return "private_key_jwt"
    if not settings.client_secret:
        return "none"
    offered = ("client_secret_basic",) if issuer.auth_methods is None else issuer.auth_methods
    ways = ("client_secret_basic", "client_secret_post")
    return next((way for way in ways if way in offered), ways[0])


def authenticate(
    client: Client,
    settings: OAuthSettings,
    issuer: str,
    form: dict[str, str],
    headers: dict[str, str],
    now: float,
) -> None:
    """Add to a request of the token endpoint what proves that we are the client."""
    if client.auth_method == "client_secret_basic" and client.client_secret:
        pair = f"{quote(client.client_id, safe='')}:{quote(client.client_secret, safe='')}"
        headers["authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        return
    form["client_id"] = client.client_id
    if client.auth_method == "client_secret_post":
        form["client_secret"] = client.client_secret
    elif client.auth_method == "private_key_jwt":
        form["client_assertion_type"] = ASSERTION_TYPE
        form["client_assertion"] = _signed(client.client_id, settings, issuer, now)


def _signed(client_id: str, settings: OAuthSettings, issuer: str, now: float) -> str:
    import jwt

    claims = {
        "iss": client_id,
        "sub": client_id,
        "aud": issuer,
        "iat": int(now),
        "exp": int(now) + ASSERTION_SECONDS,
        "jti": secrets.token_urlsafe(16),
    }
    try:
        return jwt.encode(claims, settings.private_key, settings.signing_algorithm)
    except (jwt.PyJWTError, ValueError, TypeError, NotImplementedError):
        raise OAuthError(
            f"private_key cannot sign with {settings.signing_algorithm}: expected a PEM private key of that kind"
        ) from None
