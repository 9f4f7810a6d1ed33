"""OpenAI Chat Completions over the official `openai` SDK, and every server that speaks the format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import urlsplit

from toolcrib.codecs.codec import Codec
from toolcrib.codecs.openai_chat import OpenAIChatCodec
from toolcrib.models.answer_body import RawResponse, refuse_errors
from toolcrib.models.providers import (
    OPENAI_URL,
    PROVIDERS,
    Missing,
    key_for,
    key_variables,
    missing_key,
    provider_at,
)
from toolcrib.models.transport import Transport

NO_KEY = "none"  # local servers ask for no key, the SDK insists on one

CACHE_SECONDS = 1800.0  # OpenAI's own default since gpt-5.6; earlier models keep a prompt for less


class OpenAITransport(Transport):
    """The common part of the classes over the `openai` SDK: address, key and client. A subclass gives codec and
    route.
    """

    sdk_name = "openai"
    extra = "openai"
    cache_seconds: float | None = None  # how long the server keeps a prompt; None: not known
    modules = ("openai", "openai.resources.chat", "openai.resources.responses")

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        provider: str | None = None,
        dialect: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        deadline: float | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        self.base_url = base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
        codec = self._codec(provider or _provider_at(self.base_url), dialect)
        super().__init__(model, codec, body, max_retries=max_retries, deadline=deadline)
        if codec.provider == "openai":
            self.cache_seconds = CACHE_SECONDS
        self._api_key = api_key or key_for(self.base_url)
        self._options: dict[str, Any] = {"max_retries": 0}
        if timeout is not None:
            self._options["timeout"] = timeout

    def _codec(self, provider: str, dialect: str | None) -> Codec:
        raise NotImplementedError

    def missing(self) -> Missing | None:
        return None if self._api_key else missing_key(self.base_url)

    def _make_client(self) -> Any:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        return AsyncOpenAI(
            api_key=self._api_key or NO_KEY,
            base_url=self.base_url,
            http_client=DefaultAsyncHttpxClient(event_hooks={"response": [refuse_errors]}),
            **self._options,
        )

    def _advice(self, status: int) -> str:
        if status == 401 and not self._api_key:
            return "no key was sent: pass api_key="
        elsewhere = not key_variables(self.base_url)
        if status == 404 and elsewhere and not urlsplit(self.base_url).path.strip("/"):
            return "most servers want /v1 at the end of their address"
        return ""


class OpenAIChat(OpenAITransport):
    """A model behind Chat Completions: OpenAI's, or any compatible server's by its `base_url`.

    `base_url` is read from OPENAI_BASE_URL, and `api_key` from the variable of the provider whose address that
    is (OPENAI_API_KEY, GROQ_API_KEY, …: `models/providers.py`), when they are not given; a key from the
    environment goes to no other host. `provider` names the server (default: by the host) and `dialect` its
    schema dialect; `body` is added to every request. `extra_headers` among a request's extras for the provider
    are sent as headers. `timeout` (seconds, for each wait) is the SDK's own (None: its default); `max_retries`
    (2) and `deadline` (seconds for the whole answer) are those of `Transport`.

    >>> OpenAIChat("qwen3", base_url="http://localhost:11434/v1")
    OpenAIChat('qwen3', provider='ollama')
    """

    def _codec(self, provider: str, dialect: str | None) -> Codec:
        return OpenAIChatCodec(provider, dialect=dialect)

    def _send(self, client: Any, body: dict[str, Any]) -> AbstractAsyncContextManager[RawResponse]:
        named = ("model", "stream", "extra_headers")  # the SDK would walk through each of the messages
        rest = {name: value for name, value in body.items() if name not in named}
        send: AbstractAsyncContextManager[RawResponse] = (
            client.chat.completions.with_streaming_response.create(
                model=body["model"],
                messages=[],
                stream=body.get("stream", False),
                extra_headers=headers_in(body),
                extra_body=rest,
            )
        )
        return send


def _provider_at(base_url: str) -> str:
    """The provider's name; suffixed where the provider's own format is another one, whose extras mean other
    things.
    """
    name = provider_at(base_url)
    row = PROVIDERS.get(name)
    return (
        f"{name}-chat" if row is not None and row.cls in ("AnthropicMessages", "Gemini", "Cohere") else name
    )


def headers_in(body: Mapping[str, Any]) -> dict[str, str]:
    """The `extra_headers` of a request's extras."""
    headers = body.get("extra_headers")
    return {str(name): str(value) for name, value in headers.items()} if isinstance(headers, dict) else {}
