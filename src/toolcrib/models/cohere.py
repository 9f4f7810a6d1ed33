"""Cohere's chat over plain HTTP, which keeps every field of an answer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from toolcrib.codecs.cohere import CohereCodec
from toolcrib.models.http import HttpTransport
from toolcrib.models.providers import PROVIDERS, Missing, host_of

OFFICIAL = "https://api.cohere.com"


class Cohere(HttpTransport):
    """A model behind Cohere's version 2 API, or a deployment of it by its `base_url`.

    `api_key` is read from CO_API_KEY or COHERE_API_KEY, and `base_url` from CO_API_URL, when they are not
    given; the key from the environment goes nowhere but to Cohere or CO_API_URL. `body` is added to every
    request. `timeout` (seconds, 600) holds for each wait, `deadline` (seconds) for the whole answer with its
    `max_retries` (2).

    >>> Cohere("command-a-03-2025", api_key="never shown")
    Cohere('command-a-03-2025', provider='cohere')
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        provider: str = "cohere",
        dialect: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        deadline: float | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        named = os.environ.get("CO_API_URL") or OFFICIAL
        address = (base_url or named).rstrip("/").removesuffix("/v2")
        trusted = host_of(address) in (host_of(named), host_of(OFFICIAL))
        known = os.environ.get("CO_API_KEY") or os.environ.get("COHERE_API_KEY") if trusted else None
        super().__init__(
            model,
            CohereCodec(provider, dialect=dialect),
            body,
            base_url=address,
            api_key=api_key or known,
            timeout=timeout,
            max_retries=max_retries,
            deadline=deadline,
        )

    def _url(self, *, stream: bool) -> str:
        return f"{self.base_url}/v2/chat"

    def missing(self) -> Missing | None:
        official = host_of(self.base_url) == host_of(OFFICIAL)
        return Missing("key", PROVIDERS["cohere"].keys, "api_key") if official and not self._api_key else None
