"""The wire formats by name; each is imported when first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from toolcrib.codecs.codec import Codec

# name: module, class, and the provider that is meant where none is named
CODECS: dict[str, tuple[str, str, str]] = {
    "openai_chat": ("openai_chat", "OpenAIChatCodec", "openai"),
    "openai_responses": ("openai_responses", "OpenAIResponsesCodec", "openai"),
    "anthropic_messages": ("anthropic_messages", "AnthropicMessagesCodec", "anthropic"),
    "gemini": ("gemini", "GeminiCodec", "gemini"),
    "gemini_interactions": ("gemini_interactions", "GeminiInteractionsCodec", "gemini_interactions"),
    "bedrock_converse": ("bedrock_converse", "BedrockConverseCodec", "bedrock"),
    "cohere": ("cohere", "CohereCodec", "cohere"),
    "ollama": ("ollama", "OllamaCodec", "ollama"),
}


def codec_named(name: str, provider: str = "", **options: Any) -> Codec:
    """The codec of a wire format; raises ValueError, with the known names, for an unknown one.

    >>> codec_named("openai_chat", "mistral").provider
    'mistral'
    """
    if name not in CODECS:
        raise ValueError(f"unknown wire format {name!r}; known are {', '.join(CODECS)}")
    module, cls, usual = CODECS[name]
    made: Codec = getattr(import_module(f"toolcrib.codecs.{module}"), cls)(provider or usual, **options)
    return made
