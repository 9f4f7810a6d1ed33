"""Finds out who issues tokens for an MCP server: RFC 9728 for the resource, RFC 8414 and OpenID for the issuer.

Identifiers are compared as they were written, without normalising them: a server that says almost the right issuer is
another server. The one exception is an issuer without path, which may end with "/" or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from toolcrib.dataclass import dataclass
from toolcrib.mcp.client.oauth.challenges import Challenge, scopes_of
from toolcrib.mcp.client.oauth.endpoints import Endpoints, same_origin
from toolcrib.mcp.client.oauth.problems import OAuthError, foreign_words
from toolcrib.mcp.client.oauth.settings import OAuthSettings

__all__ = ["Discovered", "IssuerMetadata", "canonical_url", "discover", "same_issuer"]

RESOURCE = "/.well-known/oauth-protected-resource"
OAUTH = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"
MAX_LIST = 100  # entries that are read of a list
MAX_ITEM = 1_000  # characters of an entry


@dataclass(frozen=True, slots=True)
class IssuerMetadata:
    """What an authorization server says of itself. Lists that it leaves out are None."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    revocation_endpoint: str = ""
    scopes: tuple[str, ...] | None = None
    auth_methods: tuple[str, ...] | None = None
    pkce: tuple[str, ...] | None = None
    client_documents: bool = False
    names_itself: bool = False  # in authorization responses (RFC 9207)
    dpop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Discovered:
    """A resource with its issuer. `scopes` are those that the resource proposes, None if it proposes none."""

    resource: str
    issuer: IssuerMetadata
    scopes: tuple[str, ...] | None = None
    dpop: bool = False


@dataclass(frozen=True, slots=True)
class _Resource:
    resource: str
    issuers: tuple[str, ...]
    scopes: tuple[str, ...] | None
    dpop: bool


async def discover(
    endpoints: Endpoints, server_url: str, challenge: Challenge, settings: OAuthSettings, bound_to: str = ""
) -> Discovered:
    """Who issues tokens for a server. `bound_to` is an issuer that is preferred if the server still names it.

    Raises:
        OAuthError: The metadata cannot be had, contradict each other, or name another issuer than the settings.
    """
    resource = await _resource(endpoints, server_url, challenge)
    if resource is None:
        return await _without_resource_metadata(endpoints, server_url, challenge, settings)
    issuer = _chosen(resource.issuers, settings.issuer, bound_to)
    metadata = await _issuer_metadata(endpoints, issuer)
    if metadata is None:
        raise OAuthError(f"the authorization server {foreign_words(issuer)} publishes no metadata")
    dpop = resource.dpop or challenge.dpop
    return Discovered(resource.resource, metadata, challenge.scopes or resource.scopes, dpop)


def canonical_url(url: str) -> str:
    """The URL of a server as a resource identifier (RFC 8707): no fragment, scheme and host in lower case.

    >>> canonical_url("HTTPS://Example.org/MCP#top")
    'https://example.org/MCP'
    """
    parts = urlsplit(url)
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), parts.path, parts.query, ""))


def same_issuer(one: str, other: str) -> bool:
    """Whether two issuer identifiers are the same; one without a path may end with "/" or not."""
    if one == other:
        return True
    shorter, longer = sorted((one, other), key=len)
    return longer == f"{shorter}/" and urlsplit(longer).path == "/"


async def _resource(endpoints: Endpoints, server_url: str, challenge: Challenge) -> _Resource | None:
    """The metadata of the resource; None if it publishes none."""
    parts = urlsplit(server_url)
    origin = f"{parts.scheme}://{parts.netloc}"
    path = parts.path if parts.path != "/" else ""
    for url in dict.fromkeys(
        filter(None, (challenge.metadata_url, origin + RESOURCE + path, origin + RESOURCE))
    ):
        reply = await endpoints.get(url, "resource metadata")
        if reply.status == 429 or reply.status >= 500:
            raise OAuthError(f"the resource metadata of the MCP server cannot be read: HTTP {reply.status}")
        if not reply.ok:
            continue
        issuers = _strings(reply.data, "authorization_servers")
        resource = reply.data.get("resource")
        if not isinstance(resource, str) or len(resource) > MAX_ITEM or not issuers:
            continue
        _check_resource(resource, server_url)
        required = reply.data.get("dpop_bound_access_tokens_required") is True
        proposed = _strings(reply.data, "scopes_supported")
        scopes = None if proposed is None else scopes_of(" ".join(proposed))
        return _Resource(resource, issuers, scopes, required)
    return None


def _check_resource(resource: str, server_url: str) -> None:
    """The metadata must be about this server, or about a path above it. Raises OAuthError."""
    if not same_origin(resource, server_url) or not _is_at_or_above(resource, server_url):
        raise OAuthError(
            f"the resource metadata are about {foreign_words(resource)}, not about {server_url}: no token is asked for"
        )


def _is_at_or_above(resource: str, server_url: str) -> bool:
    own, named = urlsplit(server_url), urlsplit(resource)
    return not named.fragment and f"{own.path.rstrip('/')}/".startswith(f"{named.path.rstrip('/')}/")


def _chosen(issuers: tuple[str, ...], wanted: str, bound_to: str) -> str:
    """The issuer to use: the configured one or none, else the one we are logged in at, else the first."""
    if wanted:
        found = next((one for one in issuers if same_issuer(one, wanted)), None)
        if found is None:
            raise OAuthError(
                f"the MCP server names the authorization server {foreign_words(issuers[0])}, but the settings allow "
                f"only {wanted}: no credentials are sent"
            )
        return found
    return next((one for one in issuers if bound_to and same_issuer(one, bound_to)), issuers[0])


async def _issuer_metadata(endpoints: Endpoints, issuer: str) -> IssuerMetadata | None:
    """The metadata of an issuer; None if it publishes none. Raises OAuthError if they are about another issuer."""
    endpoints.check(issuer, "authorization server")
    parts = urlsplit(issuer)
    if parts.query:
        raise OAuthError(f"the authorization server {foreign_words(issuer)} is no issuer: it has a query")
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    places = [origin + OAUTH + path, origin + OPENID + path]
    if path:
        places.append(origin + path + OPENID)
    for url in places:
        reply = await endpoints.get(url, "authorization server's metadata")
        if reply.status == 429 or reply.status >= 500:
            raise OAuthError(f"the metadata of {foreign_words(issuer)} cannot be read: HTTP {reply.status}")
        if reply.ok and reply.data:
            return _read_issuer(endpoints, reply.data, issuer)
    return None


async def _without_resource_metadata(
    endpoints: Endpoints, server_url: str, challenge: Challenge, settings: OAuthSettings
) -> Discovered:
    """As in the revision 2025-03-26: the server is its own issuer, with metadata or at the usual paths."""
    parts = urlsplit(server_url)
    origin = f"{parts.scheme}://{parts.netloc}"
    if settings.issuer:
        metadata = await _issuer_metadata(endpoints, settings.issuer)
        if metadata is None:
            raise OAuthError(f"the authorization server {settings.issuer} publishes no metadata")
    else:
        found = await _issuer_metadata(endpoints, origin)
        if found is None and not challenge.refused:
            raise OAuthError(
                "the MCP server asks for no login: it answered without, and names no issuer of tokens"
            )
        metadata = found or IssuerMetadata(
            origin, f"{origin}/authorize", f"{origin}/token", f"{origin}/register", pkce=("S256",)
        )
    return Discovered(canonical_url(server_url), metadata, challenge.scopes or None, challenge.dpop)


def _read_issuer(endpoints: Endpoints, data: Mapping[str, Any], expected: str) -> IssuerMetadata:
    named = data.get("issuer")
    if not isinstance(named, str) or not same_issuer(named, expected):
        raise OAuthError(
            f"the metadata of {foreign_words(expected)} are those of {foreign_words(named)}: they are not used"
        )
    urls = {
        key: endpoints.check(value, key.replace("_", " "))
        if isinstance(value := data.get(key), str) and value
        else ""
        for key in (
            "authorization_endpoint",
            "token_endpoint",
            "registration_endpoint",
            "revocation_endpoint",
        )
    }
    if not urls["token_endpoint"]:
        raise OAuthError(f"the authorization server {foreign_words(expected)} names no token endpoint")
    return IssuerMetadata(
        named,
        scopes=_strings(data, "scopes_supported"),
        auth_methods=_strings(data, "token_endpoint_auth_methods_supported"),
        pkce=_strings(data, "code_challenge_methods_supported"),
        client_documents=data.get("client_id_metadata_document_supported") is True,
        names_itself=data.get("authorization_response_iss_parameter_supported") is True,
        dpop=_strings(data, "dpop_signing_alg_values_supported") or (),
        **urls,
    )


def _strings(data: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    """A list of texts; None if there is none."""
    value = data.get(key)
    if not isinstance(value, list):
        return None
    return tuple(one for one in value[:MAX_LIST] if isinstance(one, str) and len(one) <= MAX_ITEM)
