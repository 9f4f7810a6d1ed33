"""Reads what a server answers with 401 or 403: the challenges of `WWW-Authenticate` (RFC 9110, 6750, 9449, 9728)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from toolcrib.dataclass import dataclass

__all__ = ["Challenge", "challenge_of", "read_challenges", "scopes_of"]

TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
QUOTED = r'"(?:[^"\\]|\\.)*"'
PARAMETER = re.compile(rf"[\s,]*({TOKEN})\s*=\s*({QUOTED}|{TOKEN})\s*(?:,|$)")
# Servers write unquoted URLs and scopes, although the grammar of a token has no colon or slash.
SLOPPY_PARAMETER = re.compile(rf"[\s,]*({TOKEN})\s*=\s*([^\s,\"]+)\s*(?:,|$)")
SCHEME = re.compile(rf"[\s,]*({TOKEN})(?:\s+|$)")
SCOPE = re.compile(r"[!#-\[\]-~]{1,200}")  # the grammar of RFC 6749; what is no scope is left out
MAX_HEADER = 8_192  # characters
MAX_SCOPES = 50
SCHEMES = ("dpop", "bearer")


@dataclass(frozen=True, slots=True)
class Challenge:
    """What one server wants for one request.

    `dpop` says whether it wants tokens that are bound to a key, `refused` whether it refused a request without a token.
    """

    error: str = ""
    scopes: tuple[str, ...] = ()
    metadata_url: str = ""
    dpop: bool = False
    refused: bool = True

    @property
    def wants_scopes(self) -> bool:
        """Whether the token is good, but may do too little."""
        return self.error == "insufficient_scope"


def challenge_of(headers: Iterable[str]) -> Challenge:
    """The challenge in the values of `WWW-Authenticate`; an empty one where there is none that we know."""
    found = [one for header in headers for one in read_challenges(header) if one[0] in SCHEMES]
    merged: dict[str, str] = {}
    for _, parameters in found:
        merged = {**parameters, **merged}
    return Challenge(
        merged.get("error", ""),
        scopes_of(merged.get("scope", "")),
        merged.get("resource_metadata", ""),
        any(scheme == "dpop" for scheme, _ in found),
    )


def scopes_of(text: str) -> tuple[str, ...]:
    """The scopes in a text; at most so many as an error can name."""
    return tuple(one for one in text.split() if SCOPE.fullmatch(one))[:MAX_SCOPES]


def read_challenges(header: str) -> list[tuple[str, dict[str, str]]]:
    """The challenges of a header, each with its scheme in lower case and its parameters.

    >>> read_challenges('Bearer error="invalid_token", scope="a b", DPoP algs="ES256"')
    [('bearer', {'error': 'invalid_token', 'scope': 'a b'}), ('dpop', {'algs': 'ES256'})]
    """
    rest, found = header[:MAX_HEADER], list[tuple[str, dict[str, str]]]()
    while rest.strip(" ,\t"):
        parameter = PARAMETER.match(rest) or SLOPPY_PARAMETER.match(rest)
        if parameter and found:
            name, value = parameter.groups()
            found[-1][1].setdefault(name.lower(), _unquoted(value))
            rest = rest[parameter.end() :]
            continue
        scheme = SCHEME.match(rest)
        if not scheme:
            break
        found.append((scheme[1].lower(), {}))
        rest = rest[scheme.end() :]
    return found


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value
