"""Models: a codec plus a transport to a provider. The providers' SDKs are imported when the first request is sent.

Each name is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolcrib.lazy_names import lazy_names

if TYPE_CHECKING:
    from toolcrib.models.anthropic import AnthropicMessages
    from toolcrib.models.bedrock import BedrockConverse, BedrockMessages
    from toolcrib.models.cohere import Cohere
    from toolcrib.models.fallback import Fallback
    from toolcrib.models.gemini import Gemini, GeminiInteractions
    from toolcrib.models.http import HttpTransport
    from toolcrib.models.model import Model, ModelError
    from toolcrib.models.ollama import Ollama
    from toolcrib.models.openai import OpenAIChat
    from toolcrib.models.openai_responses import OpenAIResponses
    from toolcrib.models.prices import Prices, cost_of
    from toolcrib.models.replay import Replay
    from toolcrib.models.resolve import resolve_model
    from toolcrib.models.scripted import Scripted, Turn

__all__ = [
    "AnthropicMessages",
    "BedrockConverse",
    "BedrockMessages",
    "Cohere",
    "Fallback",
    "Gemini",
    "GeminiInteractions",
    "HttpTransport",
    "Model",
    "ModelError",
    "Ollama",
    "OpenAIChat",
    "OpenAIResponses",
    "Prices",
    "Replay",
    "Scripted",
    "Turn",
    "cost_of",
    "resolve_model",
]

__getattr__ = lazy_names(
    __name__,
    {
        "anthropic": ("AnthropicMessages",),
        "bedrock": (
            "BedrockConverse",
            "BedrockMessages",
        ),
        "cohere": ("Cohere",),
        "fallback": ("Fallback",),
        "gemini": ("Gemini", "GeminiInteractions"),
        "http": ("HttpTransport",),
        "model": (
            "Model",
            "ModelError",
        ),
        "ollama": ("Ollama",),
        "openai": ("OpenAIChat",),
        "openai_responses": ("OpenAIResponses",),
        "prices": (
            "Prices",
            "cost_of",
        ),
        "replay": ("Replay",),
        "resolve": ("resolve_model",),
        "scripted": (
            "Scripted",
            "Turn",
        ),
    },
)
