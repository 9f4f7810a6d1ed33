"""Wire formats of the providers: pure translations between neutral messages and JSON.

Each name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.codecs.anthropic_messages import AnthropicMessagesCodec
    from toolcrib.codecs.bedrock_converse import BedrockConverseCodec
    from toolcrib.codecs.catalog import codec_named
    from toolcrib.codecs.codec import Codec, Decoder, Features, ModelError
    from toolcrib.codecs.cohere import CohereCodec
    from toolcrib.codecs.gemini import GeminiCodec
    from toolcrib.codecs.gemini_interactions import GeminiInteractionsCodec
    from toolcrib.codecs.ndjson import JSONLines
    from toolcrib.codecs.ollama import OllamaCodec
    from toolcrib.codecs.openai_chat import OpenAIChatCodec
    from toolcrib.codecs.openai_responses import OpenAIResponsesCodec
    from toolcrib.codecs.pairing import IdRule, arrange
    from toolcrib.codecs.sse import JSONEvents, ServerEvent, SSEReader

__all__ = [
    "AnthropicMessagesCodec",
    "BedrockConverseCodec",
    "Codec",
    "CohereCodec",
    "Decoder",
    "Features",
    "GeminiCodec",
    "GeminiInteractionsCodec",
    "IdRule",
    "JSONEvents",
    "JSONLines",
    "ModelError",
    "OllamaCodec",
    "OpenAIChatCodec",
    "OpenAIResponsesCodec",
    "SSEReader",
    "ServerEvent",
    "arrange",
    "codec_named",
]

__getattr__ = lazy_names(
    __name__,
    {
        "anthropic_messages": ("AnthropicMessagesCodec",),
        "bedrock_converse": ("BedrockConverseCodec",),
        "catalog": ("codec_named",),
        "codec": (
            "Codec",
            "Decoder",
            "Features",
            "ModelError",
        ),
        "cohere": ("CohereCodec",),
        "gemini": ("GeminiCodec",),
        "gemini_interactions": ("GeminiInteractionsCodec",),
        "ndjson": ("JSONLines",),
        "ollama": ("OllamaCodec",),
        "openai_chat": ("OpenAIChatCodec",),
        "openai_responses": ("OpenAIResponsesCodec",),
        "pairing": ("IdRule", "arrange"),
        "sse": (
            "JSONEvents",
            "SSEReader",
            "ServerEvent",
        ),
    },
)
