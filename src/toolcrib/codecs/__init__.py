"""Wire formats of the providers: pure translations between neutral messages and JSON.

Each name is loaded when it is first used, so that nobody waits for the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    from toolcrib.codecs.sse import JSONEvents, ServerEvent, SSEReader

_HOMES = {
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
    "sse": (
        "JSONEvents",
        "SSEReader",
        "ServerEvent",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AnthropicMessagesCodec",
    "BedrockConverseCodec",
    "Codec",
    "CohereCodec",
    "Decoder",
    "Features",
    "GeminiCodec",
    "GeminiInteractionsCodec",
    "JSONEvents",
    "JSONLines",
    "ModelError",
    "OllamaCodec",
    "OpenAIChatCodec",
    "OpenAIResponsesCodec",
    "SSEReader",
    "ServerEvent",
    "codec_named",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
