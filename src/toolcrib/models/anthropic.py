"""Anthropic Messages over the official `anthropic` SDK."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal

from toolcrib.codecs.anthropic_messages import MAX_TOKENS, AnthropicMessagesCodec
from toolcrib.codecs.cache_breakpoints import CACHE_SECONDS, CacheLifetime
from toolcrib.codecs.codec import ModelError
from toolcrib.models.answer_body import RawResponse, refuse_errors
from toolcrib.models.openai import headers_in
from toolcrib.models.providers import PROVIDERS, Missing, host_of, key_variables
from toolcrib.models.transport import Transport

OFFICIAL = "https://api.anthropic.com"
NO_KEY = "none"
# Signs that the SDK may find credentials of its own: a profile, or a workload's identity.
OWN_CREDENTIALS = ("ANTHROPIC_PROFILE", "ANTHROPIC_CONFIG_DIR", "ANTHROPIC_FEDERATION_RULE_ID")
BETA_HEADER = "anthropic-beta"
# Named so that the SDK does not refuse whole answers that may take longer than ten minutes.
TIMEOUT = 600.0


class AnthropicMessages(Transport):
    """A model behind the Messages API: Anthropic's, or a compatible server's by its `base_url`.

    `api_key` is read from ANTHROPIC_API_KEY, and `base_url` from ANTHROPIC_BASE_URL, when they are not
    given; credentials from the environment go nowhere but to Anthropic or ANTHROPIC_BASE_URL. `max_tokens`
    is sent where a request names none; `body` is added to every request. `cache` marks where the prompt is
    cached, for five minutes ("5m") or an hour ("1h"), None for no marks; "auto" is "5m" at Anthropic itself and
    None elsewhere. Among a request's extras for the provider, `betas` is a list of names for the header of that
    kind, and `extra_headers` are sent as headers. `timeout` (seconds, for each wait) is the SDK's own;
    `max_retries` (2) and `deadline` (seconds for the whole answer) are those of `Transport`.

    >>> AnthropicMessages("claude-sonnet-4-5", api_key="never shown")
    AnthropicMessages('claude-sonnet-4-5', provider='anthropic')
    """

    sdk_name = "anthropic"
    extra = "anthropic"
    modules = ("anthropic", "anthropic.resources.messages")

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        provider: str | None = None,
        dialect: str = "anthropic",
        max_tokens: int = MAX_TOKENS,
        cache: CacheLifetime | Literal["auto"] | None = "auto",
        timeout: float = TIMEOUT,
        max_retries: int | None = None,
        deadline: float | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        self.base_url = base_url or os.environ.get("ANTHROPIC_BASE_URL") or OFFICIAL
        host = host_of(self.base_url)
        if provider is None:
            own = host in (host_of(OFFICIAL), host_of(os.environ.get("ANTHROPIC_BASE_URL") or OFFICIAL))
            provider = "anthropic" if own else f"anthropic@{host}"
        if cache == "auto":
            cache = "5m" if provider == "anthropic" else None
        self.cache_seconds = CACHE_SECONDS[cache]
        codec = AnthropicMessagesCodec(provider, dialect=dialect, max_tokens=max_tokens, cache=cache)
        super().__init__(model, codec, body, max_retries=max_retries, deadline=deadline)
        # None leaves it to the SDK, which knows more credentials of the environment than the key.
        self._api_key = api_key or (None if key_variables(self.base_url) else NO_KEY)
        self._options: dict[str, Any] = {"timeout": timeout, "max_retries": 0}

    def missing(self) -> Missing | None:
        keys = PROVIDERS["anthropic"].keys
        if self._api_key or any(map(os.environ.get, (*keys, *OWN_CREDENTIALS))) or _profiles().is_dir():
            return None
        return Missing("key", keys, "api_key")

    def _make_client(self) -> Any:
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

        client = AsyncAnthropic(
            api_key=self._api_key,
            base_url=self.base_url,
            http_client=DefaultAsyncHttpxClient(event_hooks={"response": [refuse_errors]}),
            **self._options,
        )
        if not any(getattr(client, name, None) for name in ("api_key", "auth_token", "credentials")):
            raise ModelError(f"no key for {self.name}: set ANTHROPIC_API_KEY, or pass api_key=")
        return client

    def _advice(self, status: int) -> str:
        if status == 401 and self._api_key == NO_KEY:
            return "no key was sent: pass api_key="
        if status == 404 and self.base_url.rstrip("/").endswith("/v1"):
            return "the address is wanted without /v1: the SDK adds it"
        return ""

    def _send(self, client: Any, body: dict[str, Any]) -> AbstractAsyncContextManager[RawResponse]:
        # The SDK would walk through each of the messages.
        named = ("model", "max_tokens", "stream", "betas", "extra_headers")
        send: AbstractAsyncContextManager[RawResponse] = client.messages.with_streaming_response.create(
            model=body["model"],
            messages=[],
            max_tokens=body["max_tokens"],
            stream=body.get("stream", False),
            extra_headers=_headers(body),
            extra_body={name: value for name, value in body.items() if name not in named},
        )
        return send


def _profiles() -> Path:
    """The folder in which the SDK looks for profiles."""
    if os.name == "nt":
        return Path(os.environ.get("APPDATA") or "~") / "Anthropic"
    return Path(os.path.expanduser("~/.config/anthropic"))  # noqa: PTH111 - a home may be unknown


def _headers(body: Mapping[str, Any]) -> dict[str, str]:
    headers, betas = headers_in(body), body.get("betas")
    if isinstance(betas, list) and betas:
        told = headers.pop(BETA_HEADER, "")
        headers[BETA_HEADER] = ",".join([*([told] if told else []), *map(str, betas)])
    return headers
