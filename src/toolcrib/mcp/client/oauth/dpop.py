"""Tokens that are bound to a key (RFC 9449): whoever steals such a token cannot use it without the key."""

from __future__ import annotations

import base64
import hashlib
import secrets
from typing import Any
from urllib.parse import urlsplit, urlunsplit

__all__ = ["ALGORITHM", "DpopKey"]

ALGORITHM = "ES256"


class DpopKey:
    """A private key of one login, and the nonces that servers asked for."""

    def __init__(self, pem: str) -> None:
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        self.pem = pem
        key: Any = load_pem_private_key(pem.encode(), None)
        self._key = key
        numbers = key.public_key().public_numbers()
        self._jwk = {"kty": "EC", "crv": "P-256", "x": _number(numbers.x), "y": _number(numbers.y)}
        self._nonces: dict[str, str] = {}

    @classmethod
    def new(cls) -> DpopKey:
        """A new key."""
        from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        key = generate_private_key(SECP256R1())
        return cls(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())

    def proof(self, method: str, url: str, now: float, token: str = "") -> str:
        """A proof for one request; `token` is the access token that goes with it."""
        import jwt

        parts = urlsplit(url)
        claims: dict[str, Any] = {
            "jti": secrets.token_urlsafe(16),
            "htm": method.upper(),
            "htu": urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")),
            "iat": int(now),
        }
        if token:
            claims["ath"] = _base64url(hashlib.sha256(token.encode()).digest())
        if nonce := self._nonces.get(_origin(url)):
            claims["nonce"] = nonce
        return jwt.encode(claims, self._key, ALGORITHM, {"typ": "dpop+jwt", "jwk": self._jwk})

    def take_nonce(self, url: str, nonce: str) -> bool:
        """Use this nonce from now on for a server. Returns whether it is a new one."""
        origin = _origin(url)
        if not nonce or len(nonce) > 1_000 or self._nonces.get(origin) == nonce:
            return False
        self._nonces[origin] = nonce
        return True


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _number(number: int) -> str:
    return _base64url(number.to_bytes(32, "big"))


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
