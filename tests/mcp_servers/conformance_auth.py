"""How the client of the conformance suite logs in: what an operator would configure, and a person who says yes at once."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2

from toolcrib.mcp import McpServer
from toolcrib.mcp.client.oauth import Callback, LoginStore, OAuthSettings, auth_for
from toolcrib.secrets import SecretFile

__all__ = ["auth_of"]

DOCUMENT = "https://conformance-test.local/client-metadata.json"  # named by the suite; nobody fetches it
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_TOKEN, ID_JAG = (f"urn:ietf:params:oauth:token-type:{kind}" for kind in ("id_token", "id-jag"))


def auth_of(scenario: str, context: Mapping[str, Any]) -> Callable[[McpServer], httpx2.Auth]:
    """What `McpToolset(auth=...)` takes, for a scenario of the suite with its data."""
    folder = Path(tempfile.mkdtemp(prefix="conformance-auth-"))
    store = LoginStore(SecretFile(folder / "logins.json"), locks=folder)
    settings = settings_of(scenario, context)
    return lambda server: auth_for(server, store, settings, authorizer=Browser())


def settings_of(scenario: str, context: Mapping[str, Any]) -> OAuthSettings:
    given: dict[str, Any] = {
        key: context[key] for key in ("client_id", "client_secret", "issuer") if key in context
    }
    match scenario:
        case "auth/pre-registration":
            return OAuthSettings(**given)
        case "auth/client-credentials-basic":
            return OAuthSettings(grant="client_credentials", **given)
        case "auth/client-credentials-jwt":
            return OAuthSettings(
                grant="client_credentials",
                private_key=context["private_key_pem"],
                signing_algorithm=context["signing_algorithm"],
                **given,
            )
        case "auth/wif-jwt-bearer":
            return OAuthSettings(grant="jwt_bearer", assertion=context["valid_jwt"], **given)
        case "auth/enterprise-managed-authorization":
            return OAuthSettings(grant="jwt_bearer", assertion=identity_of(context), **given)
    return OAuthSettings(client_metadata_url=DOCUMENT, redirect_uri="http://localhost:3000/callback")


def identity_of(context: Mapping[str, Any]) -> Callable[[str, str], Any]:
    """Has the company's identity provider vouch for the user at an authorization server (RFC 8693)."""

    async def make(issuer: str, resource: str) -> str:
        form = {
            "grant_type": EXCHANGE,
            "requested_token_type": ID_JAG,
            "subject_token": context["idp_id_token"],
            "subject_token_type": ID_TOKEN,
            "client_id": context["idp_client_id"],
            "audience": issuer,
            "resource": resource,
        }
        async with httpx2.AsyncClient() as client:
            answer = await client.post(context["idp_token_endpoint"], data=form)
        return str(answer.raise_for_status().json()["access_token"])

    return make


class Browser:
    """A person who is logged in at the authorization server, and says yes: it redirects at once."""

    def opened(self, redirect_uri: str, *, fixed: bool) -> AbstractAsyncContextManager[Callback]:
        return self._opened(redirect_uri)

    @asynccontextmanager
    async def _opened(self, uri: str) -> AsyncGenerator[Callback]:
        yield _Page(uri)


class _Page:
    def __init__(self, uri: str) -> None:
        self.uri = uri

    async def answer(self, url: str, state: str) -> Mapping[str, str]:
        async with httpx2.AsyncClient() as client:
            response = await client.get(url, follow_redirects=False)
        return dict(parse_qsl(urlsplit(response.headers["location"]).query))
