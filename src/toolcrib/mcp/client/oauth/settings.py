"""What an operator may say about the OAuth of one MCP server. Most servers say all of it themselves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

from toolcrib.dataclass import dataclass, field
from toolcrib.errors import as_tuple

__all__ = ["AUTH_METHODS", "AssertionMaker", "AuthMethod", "Grant", "OAuthSettings", "is_loopback_host"]

Grant = Literal["authorization_code", "client_credentials", "jwt_bearer"]
AuthMethod = Literal["", "none", "client_secret_basic", "client_secret_post", "private_key_jwt"]
AUTH_METHODS: tuple[AuthMethod, ...] = (
    "", "none", "client_secret_basic", "client_secret_post", "private_key_jwt",
)  # fmt: skip

AssertionMaker = Callable[[str, str], Awaitable[str]]
"""Makes a signed assertion for an authorization server's issuer and a resource: `await make(issuer, resource)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSettings:
    """How toolcrib logs in to one MCP server. With no settings at all, it registers itself and a person logs in.

    `grant` is "authorization_code" (a person logs in once, in a browser), "client_credentials" (a program logs in with
    its own id, and a secret or private key) or "jwt_bearer" (a program shows an assertion that somebody else signed: a
    workload's identity, or a company's identity provider).

    `client_id` and `client_secret` are those of a client that was registered by hand. `client_metadata_url` is an https
    URL of a client's metadata document, used as the client id where the authorization server takes it. `auth_method` is
    how the client proves itself to the token endpoint; "" is the first that the server offers. `private_key` is a PEM
    key for private_key_jwt, signed with `signing_algorithm`.

    `issuer` is the only authorization server that may see these credentials; "" takes the first that the MCP server
    names, and afterwards no other. `scopes` are asked for in place of those that the server proposes. `assertion` is a
    signed JWT, or an async function of issuer and resource that returns one; `assertion_file` is read for each login.
    `redirect_uri` is where the browser comes back to: http, a loopback host, port 0 for any free port. `dpop` binds
    tokens to a key: None where the server asks for it. `assume_pkce` logs in at a server that does not say that it
    supports PKCE, which the specification forbids.

    Raises ValueError where the values contradict each other.

    >>> OAuthSettings(client_id="crm-agent", client_secret="s3cret", grant="client_credentials").grant
    'client_credentials'
    """

    grant: Grant = "authorization_code"
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    client_metadata_url: str = ""
    client_name: str = "toolcrib"
    auth_method: AuthMethod = ""
    private_key: str = field(default="", repr=False)
    signing_algorithm: str = "ES256"
    issuer: str = ""
    scopes: tuple[str, ...] = ()
    assertion: str | AssertionMaker = field(default="", repr=False)
    assertion_file: str = ""
    redirect_uri: str = "http://127.0.0.1:0/callback"
    dpop: bool | None = None
    assume_pkce: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "scopes", tuple(as_tuple("scopes", self.scopes)))
        for problem in _problems(self):
            raise ValueError(problem)

    @property
    def interactive(self) -> bool:
        """Whether a person has to log in."""
        return self.grant == "authorization_code"


def _problems(given: OAuthSettings) -> list[str]:
    found: list[str] = []
    if given.grant not in ("authorization_code", "client_credentials", "jwt_bearer"):
        found.append(
            f"grant: expected authorization_code, client_credentials or jwt_bearer, got {given.grant!r}"
        )
    if given.auth_method not in AUTH_METHODS:
        found.append(f"auth_method: expected one of {', '.join(AUTH_METHODS[1:])}, got {given.auth_method!r}")
    if given.client_secret and not given.client_id:
        found.append("client_secret needs the client_id that it belongs to")
    if given.grant == "client_credentials" and not (
        given.client_id and (given.client_secret or given.private_key)
    ):
        found.append("grant client_credentials needs client_id, and client_secret or private_key")
    if given.grant == "jwt_bearer" and not (given.assertion or given.assertion_file):
        found.append("grant jwt_bearer needs assertion or assertion_file")
    if given.auth_method == "private_key_jwt" and not given.private_key:
        found.append("auth_method private_key_jwt needs private_key")
    if given.client_metadata_url:
        url = urlsplit(given.client_metadata_url)
        if url.scheme != "https" or url.path in ("", "/"):
            found.append("client_metadata_url: expected an https URL with a path")
    if given.issuer and urlsplit(given.issuer).scheme not in ("http", "https"):
        found.append(f"issuer: expected an https URL, got {given.issuer!r}")
    return found + _redirect_problems(given.redirect_uri)


def _redirect_problems(uri: str) -> list[str]:
    try:
        url = urlsplit(uri)
        port = url.port
    except ValueError:
        return [f"redirect_uri: expected a URL such as http://127.0.0.1:0/callback, got {uri!r}"]
    if url.scheme != "http" or port is None or not is_loopback_host(url.hostname or ""):
        return [
            f"redirect_uri: expected http, a loopback host and a port, such as http://127.0.0.1:0/callback; got {uri!r}"
        ]
    return []


def is_loopback_host(host: str) -> bool:
    """Whether a host of a URL is this machine: localhost, a name below it, or a loopback address."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
