"""OpenAI Responses over the official `openai` SDK, and every server that speaks the format."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from toolcrib.codecs.codec import Codec
from toolcrib.codecs.openai_responses import OpenAIResponsesCodec
from toolcrib.models.answer_body import RawResponse
from toolcrib.models.openai import OpenAITransport, headers_in


class OpenAIResponses(OpenAITransport):
    """A model behind the Responses interface: OpenAI's, or any compatible server's by its `base_url`.

    Its options are those of `OpenAIChat`. `body` is added to every request: `{"store": False}`, say, for
    conversations of which OpenAI keeps nothing.

    >>> OpenAIResponses("gpt-5", api_key="k")
    OpenAIResponses('gpt-5', provider='openai')
    """

    def _codec(self, provider: str, dialect: str | None) -> Codec:
        return OpenAIResponsesCodec(provider, dialect=dialect)

    def _send(self, client: Any, body: dict[str, Any]) -> AbstractAsyncContextManager[RawResponse]:
        named = ("model", "stream", "extra_headers")  # the SDK would walk through each item of the input
        send: AbstractAsyncContextManager[RawResponse] = client.responses.with_streaming_response.create(
            model=body["model"],
            input=[],
            stream=body.get("stream", False),
            extra_headers=headers_in(body),
            extra_body={name: value for name, value in body.items() if name not in named},
        )
        return send
