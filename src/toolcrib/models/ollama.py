"""Ollama over plain HTTP: its SDK drops calls' ids, and `anyOf` and nested properties of schemas."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from toolcrib.codecs.ndjson import JSONLines
from toolcrib.codecs.ollama import OllamaCodec
from toolcrib.codecs.wire_json import as_dict
from toolcrib.messages import Request
from toolcrib.models.http import HttpTransport
from toolcrib.models.providers import Missing, host_of

PORT = 11434
CLOUD = "ollama.com"
EVERYWHERE = frozenset({"0.0.0.0", "::"})  # a server can listen on these, but nobody can call them


class Ollama(HttpTransport):
    """A model of an Ollama server, in Ollama's own format.

    `base_url` is read from OLLAMA_HOST when it is not given, and is http://localhost:11434 without either.
    Local servers need no key; `api_key` is read from OLLAMA_API_KEY for ollama.com and OLLAMA_HOST alone.
    `body` is added to every request, its `options` to those of the request. `timeout` (seconds, 600) holds for
    each wait, `deadline` (seconds) for the whole answer with its `max_retries` (2). Raises ValueError for an
    invalid address.

    >>> Ollama("qwen3:8b", body={"options": {"num_ctx": 32_768}, "keep_alive": "10m"})
    Ollama('qwen3:8b', provider='ollama')
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        provider: str = "ollama",
        dialect: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        deadline: float | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        named = os.environ.get("OLLAMA_HOST") or ""
        address = _address(base_url or named)
        host = host_of(address)
        trusted = host == CLOUD or (bool(named) and host == host_of(_address(named)))
        given = dict(body or {})
        self._options = as_dict(given.pop("options", None))
        super().__init__(
            model,
            OllamaCodec(provider, dialect=dialect),
            given,
            base_url=address,
            api_key=api_key or (os.environ.get("OLLAMA_API_KEY") if trusted else None),
            timeout=timeout,
            max_retries=max_retries,
            deadline=deadline,
        )

    def missing(self) -> Missing | None:
        cloud = host_of(self.base_url) == CLOUD
        return Missing("key", ("OLLAMA_API_KEY",), "api_key") if cloud and not self._api_key else None

    def _url(self, *, stream: bool) -> str:
        return f"{self.base_url}/api/chat"

    def _events(self) -> JSONLines:
        return JSONLines()

    def _request(self, request: Request, *, stream: bool) -> dict[str, Any]:
        body = super()._request(request, stream=stream)
        if options := self._options | as_dict(body.get("options")):
            body["options"] = options
        return body


def _address(host: str) -> str:
    """The address that OLLAMA_HOST means; scheme, port and even the host may be missing."""
    scheme, given, rest = host.strip().rpartition("://")
    place, slash, path = rest.partition("/")
    try:
        parts = urlsplit(f"//{place}")
        name, port = parts.hostname or "localhost", parts.port
    except ValueError:
        raise ValueError(f"not the address of an Ollama server: {host!r}") from None
    name = "localhost" if name in EVERYWHERE else f"[{name}]" if ":" in name else name
    port = PORT if port is None and not given else port
    return f"{scheme or 'http'}://{name}{'' if port is None else f':{port}'}{slash}{path}".rstrip("/")
