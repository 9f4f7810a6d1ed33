"""OpenAI Responses over the official `openai` SDK, and every server that speaks the format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from toolcrib.codecs.codec import ModelError
from toolcrib.codecs.openai_responses import OpenAIResponsesCodec
from toolcrib.models.transport import RawResponse, Transport, host_of

# Hosts whose servers have a flavour of their own; others are known by their host and port.
PROVIDERS = {"api.openai.com": "openai", "api.x.ai": "xai", "localhost:11434": "ollama"}
AZURE = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
NO_KEY = "none"  # local servers ask for no key, the SDK insists on one


class OpenAIResponses(Transport):
    """A model behind the Responses interface: OpenAI's, or any compatible server's by its `base_url`.

    `api_key` is read from OPENAI_API_KEY, and `base_url` from OPENAI_BASE_URL, when they are not given; the
    key from the environment goes nowhere but to OpenAI or OPENAI_BASE_URL. `provider` names who answers
    (default: by the host) and `dialect` the schemas that it takes; `body` is added to every request
    (`{"store": False}`, say, for conversations that OpenAI keeps nothing of). `timeout` (seconds, one
    attempt) is the SDK's own (None: its default); `max_retries` (None: 2) and `deadline` (seconds, all
    attempts) as in `Transport`.

    >>> OpenAIResponses("gpt-5", api_key="k")
    OpenAIResponses('gpt-5', provider='openai')
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
            provider = "openai" if host.endswith(AZURE) else PROVIDERS.get(host, host)
        codec = OpenAIResponsesCodec(provider, dialect=dialect)
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
        rest = {name: value for name, value in body.items() if name not in ("model", "input", "stream")}
        send: AbstractAsyncContextManager[RawResponse] = client.responses.with_streaming_response.create(
            model=body["model"], input=body["input"], stream=body.get("stream", False), extra_body=rest
        )
        return send
