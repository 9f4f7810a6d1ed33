"""Who may call a server over HTTP: a shared token, or an OAuth 2.1 authorisation server's access tokens.

Each verifier has the one method of the SDK's `TokenVerifier`: `verify_token(token)` gives what the token grants, or
None. Your own class with that method does as well.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from mcp.server.auth.provider import AccessToken

from toolcrib.dataclass import dataclass

__all__ = ["IntrospectionVerifier", "JwtVerifier", "OAuthResource", "SharedToken"]

LEAST_TOKEN = 16  # characters of a shared token
MAX_TOKEN = 16_384  # characters of a token that is looked at
MAX_ANSWER = 1_000_000  # bytes of an authorisation server's answer
ANSWER_TIME = 10.0  # seconds that it has to answer
KEYS_AGAIN = 60.0  # seconds between requests for its keys, however many unknown keys are named
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class OAuthResource:
    """What clients are told of how to get a token: served as protected resource metadata (RFC 9728).

    Attributes:
        url: The address of this server, as clients write it: tokens have to be issued for it.
        issuers: The authorisation servers that issue tokens.
        scopes: The scopes that a token must have.
    """

    url: str
    issuers: tuple[str, ...]
    scopes: tuple[str, ...] = ()


class SharedToken:
    """One token that all clients share. It is compared in constant time.

    Raises ValueError for a token of less than 16 characters.
    """

    def __init__(self, token: str) -> None:
        if len(token) < LEAST_TOKEN:
            raise ValueError(f"the token must have at least {LEAST_TOKEN} characters, got {len(token)}")
        self._digest = hashlib.sha256(token.encode()).digest()

    async def verify_token(self, token: str) -> AccessToken | None:
        """The grant of the shared token; None for any other."""
        given = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        right = hmac.compare_digest(given, self._digest)
        return AccessToken(token=token, client_id="shared token", scopes=[]) if right else None


class JwtVerifier:
    """Takes JSON Web Tokens that an issuer signed for this server.

    Args:
        issuer: The `iss` that a token must have.
        resource: The address of this server, which must be the `aud` of a token, or one of them.
        keys: The issuer's keys: the address of its JWKS document, or the document itself. Without, its metadata say
            where they are (RFC 8414, or OpenID Connect's).
        algorithms: The signatures that are taken; none that uses a shared secret.
    """

    def __init__(
        self,
        issuer: str,
        resource: str,
        keys: str | Mapping[str, Any] | None = None,
        *,
        algorithms: Sequence[str] = ("RS256", "ES256", "EdDSA"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if any(name.startswith("HS") or name == "none" for name in algorithms):
            raise ValueError("algorithms must be asymmetric: a key that anybody can read must not sign")
        if not isinstance(keys, Mapping):
            _check_address(keys or issuer)
        self._issuer, self._resource, self._algorithms = issuer, resource, list(algorithms)
        self._address = keys if isinstance(keys, str) else ""
        self._keys: dict[str, Any] = _keys_of(keys) if isinstance(keys, Mapping) else {}
        self._fixed = isinstance(keys, Mapping)
        self._clock = clock
        self._asked: float | None = None
        self._lock = asyncio.Lock()

    async def verify_token(self, token: str) -> AccessToken | None:
        """The grant of a token; None if it is not valid here and now."""
        import jwt

        if len(token) > MAX_TOKEN:
            return None
        try:
            key = await self._key(str(jwt.get_unverified_header(token).get("kid", "")))
            if key is None:
                return None
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=self._algorithms,
                audience=self._resource,
                issuer=self._issuer,
                leeway=30,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWTError:
            return None
        return _granted(token, claims, self._resource)

    async def _key(self, name: str) -> Any:
        """The issuer's key of that name. The keys are asked for again when a token names another one."""
        if name not in self._keys and not self._fixed:
            async with self._lock:
                due = self._asked is None or self._clock() - self._asked >= KEYS_AGAIN
                if name not in self._keys and due:
                    self._asked = self._clock()
                    self._address = self._address or await self._keys_address()
                    document = await _fetched("GET", self._address) if self._address else None
                    if document is not None:
                        self._keys = _keys_of(document)
        return self._keys.get(name)

    async def _keys_address(self) -> str:
        """Where the issuer's keys are, as its metadata say; "" if they cannot be read."""
        parts = urlsplit(self._issuer)
        path = parts.path.rstrip("/")
        for place in (
            f"/.well-known/oauth-authorization-server{path}",
            f"{path}/.well-known/openid-configuration",
        ):
            found = await _fetched("GET", f"{parts.scheme}://{parts.netloc}{place}")
            address = found.get("jwks_uri") if found and found.get("issuer") == self._issuer else None
            if isinstance(address, str):
                try:
                    _check_address(address)
                except ValueError:
                    return ""
                return address
        return ""


class IntrospectionVerifier:
    """Asks the authorisation server about each token (RFC 7662).

    Args:
        url: Its introspection endpoint.
        resource: The address of this server, which must be the `aud` of a token, or one of them.
        client_id: Who we are to it.
        client_secret: Proves that.
        issuer: The `iss` that is told of tokens that do not say their own.
    """

    def __init__(
        self, url: str, resource: str, *, client_id: str, client_secret: str, issuer: str = ""
    ) -> None:
        _check_address(url)
        self._url, self._resource, self._issuer = url, resource, issuer
        self._auth = (client_id, client_secret)

    async def verify_token(self, token: str) -> AccessToken | None:
        """The grant of a token; None if it is not active, is for another server, or nobody could be asked."""
        if len(token) > MAX_TOKEN:
            return None
        claims = await _fetched("POST", self._url, data={"token": token}, auth=self._auth)
        if claims is None or claims.get("active") is not True:
            return None
        audience = claims.get("aud")
        if self._resource not in ([audience] if isinstance(audience, str) else audience or []):
            return None
        if self._issuer and claims.setdefault("iss", self._issuer) != self._issuer:
            return None
        return _granted(token, claims, self._resource)


def _granted(token: str, claims: Mapping[str, Any], resource: str) -> AccessToken | None:
    scope = claims.get("scope", claims.get("scp", ""))
    scopes = (
        scope.split() if isinstance(scope, str) else list(map(str, scope)) if isinstance(scope, list) else []
    )
    expires, subject = claims.get("exp"), claims.get("sub")
    if expires is not None and not isinstance(expires, int | float):
        return None
    return AccessToken(
        token=token,
        client_id=str(claims.get("client_id") or claims.get("azp") or subject or "unknown"),
        scopes=scopes,
        expires_at=None if expires is None else int(expires),
        resource=resource,
        subject=None if subject is None else str(subject),
        claims=dict(claims),
    )


def _keys_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a JWKS document by their names; what cannot be read is left out."""
    import jwt

    found: dict[str, Any] = {}
    given = document.get("keys")
    for data in given if isinstance(given, list) else []:
        try:
            key = jwt.PyJWK(data)
        except (jwt.PyJWTError, TypeError, ValueError, AttributeError):
            continue
        found[str(data.get("kid", ""))] = key
    return found


async def _fetched(method: str, url: str, **named: Any) -> dict[str, Any] | None:
    """The JSON object that an authorisation server answers with; None where it does not."""
    import json

    import httpx2

    try:
        async with (
            httpx2.AsyncClient(timeout=ANSWER_TIME, follow_redirects=False) as client,
            client.stream(method, url, headers={"accept": "application/json"}, **named) as answer,
        ):
            if answer.status_code != 200:
                return None
            body = b""
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > MAX_ANSWER:
                    return None
        data = json.loads(body)
    except (httpx2.HTTPError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def _check_address(url: str) -> None:
    """Raise ValueError for an address that tokens or keys must not travel to."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise ValueError(f"expected an https address, got {url!r}")
