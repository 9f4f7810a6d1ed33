"""Gemini over plain HTTP, by a key of the Gemini API or by a Google Cloud project (Vertex).

The official SDK builds bodies from its own types and refuses fields that it does not know; bytes and unknown
fields pass through its private methods alone, so it is not used. Vertex takes its credentials from `google-auth`.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any
from urllib.parse import quote

from toolcrib.codecs.codec import Codec, ModelError
from toolcrib.codecs.gemini import GeminiCodec, joined_tools
from toolcrib.codecs.gemini_interactions import GeminiInteractionsCodec
from toolcrib.codecs.wire_json import encodable, wire_value
from toolcrib.merged_fields import merged
from toolcrib.messages import Request, Response
from toolcrib.models.error_answers import SHORTEST_KEY
from toolcrib.models.http import HttpTransport
from toolcrib.models.prices import priced
from toolcrib.models.providers import Missing, host_of

OFFICIAL = "https://generativelanguage.googleapis.com"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
VERSIONED = re.compile(r"/v\d+\w*\Z")
METHODS = {False: "generateContent", True: "streamGenerateContent?alt=sse"}


class Gemini(HttpTransport):
    """A model behind generateContent: of the Gemini API, of Vertex, or of a compatible server by `base_url`.

    `api_key` is read from GEMINI_API_KEY or GOOGLE_API_KEY, and `base_url` (with or without a version) from
    GOOGLE_GEMINI_BASE_URL, when they are not given; the key from the environment goes nowhere but to Google or
    GOOGLE_GEMINI_BASE_URL. `project` (or a `location` with GOOGLE_CLOUD_PROJECT) means Vertex, where
    `credentials` are those of google-auth (default: those of the environment) and `location` is "global" if
    neither given nor in GOOGLE_CLOUD_LOCATION. `body` is merged into every request.

    >>> Gemini("gemini-3-pro", api_key="never shown")
    Gemini('gemini-3-pro', provider='gemini')
    """

    extra = "gemini"
    _provider = "gemini"
    _make_codec: Callable[..., Codec] = GeminiCodec

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        project: str | None = None,
        location: str | None = None,
        credentials: Any = None,
        provider: str | None = None,
        dialect: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        deadline: float | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        self._vertex = bool(project or location or credentials)
        self._project = project or os.environ.get("GOOGLE_CLOUD_PROJECT") or ""
        self._location = location or os.environ.get("GOOGLE_CLOUD_LOCATION") or "global"
        self._credentials = credentials
        self._token = ""
        named = os.environ.get("GOOGLE_GEMINI_BASE_URL") or OFFICIAL
        address = base_url or (vertex_address(self._location) if self._vertex else named)
        host = host_of(address)
        trusted = not self._vertex and host in (host_of(named), host_of(OFFICIAL))
        if not api_key and trusted:
            api_key = next((key for name in KEYS if (key := os.environ.get(name))), None)
        if provider is None:
            own = host.endswith(".googleapis.com") or self._vertex
            provider = self._provider if own else f"{self._provider}@{host}"
        super().__init__(
            model,
            self._make_codec(provider, dialect=dialect),
            base_url=address,
            api_key=api_key,
            timeout=timeout,
            max_retries=max_retries,
            deadline=deadline,
        )
        self._more: dict[str, Any] = encodable(dict(body or {}))

    @property
    def name(self) -> str:
        own = self._vertex and self.codec.provider == self._provider
        return f"vertex:{self.model}" if own else super().name

    def missing(self) -> Missing | None:
        if self._vertex:
            return None if self._project else Missing("project", ("GOOGLE_CLOUD_PROJECT",), "project")
        official = host_of(self.base_url) == host_of(OFFICIAL)
        return Missing("key", KEYS, "api_key") if official and not self._api_key else None

    def _url(self, *, stream: bool) -> str:
        model = quote(self.model, safe="/:@")
        if not self._vertex:
            version, path = "v1beta", model if "/" in model else f"models/{model}"
        elif model.startswith("projects/"):
            version, path = "v1beta1", model
        else:
            publisher = model if "/" in model else f"publishers/google/models/{model}"
            version, path = "v1beta1", f"projects/{self._project}/locations/{self._location}/{publisher}"
        return f"{self._versioned(version)}/{path}:{METHODS[stream]}"

    def _versioned(self, version: str) -> str:
        """The base URL with a version: the one that it names itself, or else the given one."""
        return self.base_url if VERSIONED.search(self.base_url) else f"{self.base_url}/{version}"

    def _headers(self) -> dict[str, str]:
        return {"x-goog-api-key": self._api_key} if self._api_key else {}

    async def _signed(self, method: str, url: str, headers: dict[str, str], body: bytes) -> Mapping[str, str]:
        if not self._vertex or self._api_key:
            return headers
        return await asyncio.to_thread(self._authorised, method, url, headers)

    def _authorised(self, method: str, url: str, headers: dict[str, str]) -> dict[str, str]:
        """The headers with a token that is valid now; google-auth asks for a new one over the network."""
        try:
            auth, failures = import_module("google.auth"), import_module("google.auth.exceptions")
            asking = import_module("google.auth.transport.requests").Request()
        except ImportError as missing:
            raise ModelError(
                f"model {self.name} needs the google-auth package: pip install 'toolcrib[{self.extra}]'"
            ) from missing
        try:
            if self._credentials is None:
                self._credentials, _ = auth.default(scopes=[SCOPE])
            self._credentials.before_request(asking, method, url, headers)
        except failures.GoogleAuthError as problem:
            retryable = bool(getattr(problem, "retryable", False))
            raise ModelError(f"no credentials for {self.name}: {problem}", retryable) from None
        self._token = str(getattr(self._credentials, "token", None) or "")
        return headers

    def _keys(self) -> set[str]:
        return super()._keys() | {key for key in (self._token,) if len(key) >= SHORTEST_KEY}

    def _request(self, request: Request, *, stream: bool) -> dict[str, Any]:
        body = super()._request(request, stream=stream)
        body.update(merged(body, self._more, joined_tools))
        return body

    def _whole(self, data: bytes, request: Request) -> Response:
        """A server that knows no server-sent events streams one JSON array, and wraps errors into one."""
        if not data.lstrip().startswith(b"["):
            return super()._whole(data, request)
        try:
            events = wire_value(data)
        except (ValueError, RecursionError):
            return super()._whole(data, request)
        decoder = self.codec.decoder(request)
        for event in events:
            if isinstance(event, dict):
                decoder.feed(event)
        return self._priced(decoder.finish())


class GeminiInteractions(Gemini):
    """A model behind the Gemini API's Interactions, the interface beside generateContent.

    Keys, addresses and `body` are those of `Gemini`; a Google Cloud project is not supported. The conversation is
    sent whole with every request, and the server stores nothing.

    >>> GeminiInteractions("gemini-3-pro", api_key="never shown")
    GeminiInteractions('gemini-3-pro', provider='gemini_interactions')
    """

    _provider = "gemini_interactions"
    _make_codec = GeminiInteractionsCodec

    def _url(self, *, stream: bool) -> str:
        if self._vertex:
            raise ModelError(
                f"{self.model}: Interactions are not sent to a Google Cloud project; name the model vertex:NAME"
            )
        return f"{self._versioned('v1beta')}/interactions{'?alt=sse' if stream else ''}"

    def _priced(self, response: Response) -> Response:
        """Both interfaces cost the same."""
        own = self.codec.provider == self._provider
        return priced(response, "gemini" if own else self.codec.provider, self.model, self.prices)


def vertex_address(location: str) -> str:
    """Where Vertex is served for a location: the world, a continent, or one region."""
    if location == "global":
        return "https://aiplatform.googleapis.com"
    if location in ("us", "eu"):
        return f"https://aiplatform.{location}.rep.googleapis.com"
    return f"https://{location}-aiplatform.googleapis.com"
