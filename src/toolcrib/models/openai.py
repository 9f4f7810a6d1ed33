"""OpenAI Chat Completions over the official `openai` SDK, and every server that speaks the format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from toolcrib.codecs.codec import ModelError
from toolcrib.codecs.openai_chat import OpenAIChatCodec
from toolcrib.models.transport import RawResponse, Transport, host_of

# Hosts whose servers have a flavour of their own; others are known by their host and port.
PROVIDERS = {"api.openai.com": "openai", "api.mistral.ai": "mistral", "localhost:11434": "ollama"}
NO_KEY = "none"  # local servers ask for no key, the SDK insists on one


class OpenAIChat(Transport):
    """A model behind Chat Completions: OpenAI's, or any compatible server's by its `base_url`.

    `api_key` is read from OPENAI_API_KEY, and `base_url` from OPENAI_BASE_URL, when they are not given; the
    key from the environment goes nowhere but to OpenAI or OPENAI_BASE_URL. `provider` names who answers
    (default: by the host) and `dialect` the schemas that it takes; `body` is added to every request.
    `timeout` (seconds, for each wait) is the SDK's own (None: its default); `max_retries` (2) and `deadline`
    (seconds for the whole answer) are those of `Transport`.

    >>> OpenAIChat("qwen3", base_url="http://localhost:11434/v1")
    OpenAIChat('qwen3', provider='ollama')
    """

    sdk_name = "openai"
    extra = "openai"

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
        named = os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        self.base_url = base_url or named
        host = host_of(self.base_url)
        if provider is None:
            provider = "openai" if host.endswith(".openai.azure.com") else PROVIDERS.get(host, host)
        codec = OpenAIChatCodec(provider, dialect=dialect)
        super().__init__(model, codec, body, max_retries=max_retries, deadline=deadline)
        trusted = host in (host_of(named), "api.openai.com")
        self._api_key = api_key or (os.environ.get("OPENAI_API_KEY") if trusted else None)
        self._options: dict[str, Any] = {"max_retries": 0}
        if timeout is not None:
            self._options["timeout"] = timeout

    def _make_client(self) -> Any:
        from openai import AsyncOpenAI

        if self._api_key is None and host_of(self.base_url) == "api.openai.com":
            raise ModelError(f"no key for {self.name}: set OPENAI_API_KEY, or pass api_key=")
        return AsyncOpenAI(api_key=self._api_key or NO_KEY, base_url=self.base_url, **self._options)

    def _send(self, client: Any, body: dict[str, Any]) -> AbstractAsyncContextManager[RawResponse]:
        rest = {name: value for name, value in body.items() if name not in ("model", "messages", "stream")}
        send: AbstractAsyncContextManager[RawResponse] = (
            client.chat.completions.with_streaming_response.create(
                model=body["model"],
                messages=body["messages"],
                stream=body.get("stream", False),
                extra_body=rest,
            )
        )
        return send
