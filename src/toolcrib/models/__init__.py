"""Models: a codec plus a transport to a provider. The providers' SDKs are imported when the first request is sent.

Each name is loaded when it is first used, so that nobody waits for the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolcrib.models.anthropic import AnthropicMessages
    from toolcrib.models.bedrock import BedrockConverse, BedrockMessages
    from toolcrib.models.cohere import Cohere
    from toolcrib.models.fallback import Fallback
    from toolcrib.models.gemini import Gemini, GeminiInteractions
    from toolcrib.models.model import Model, ModelError
    from toolcrib.models.ollama import Ollama
    from toolcrib.models.openai import OpenAIChat
    from toolcrib.models.openai_responses import OpenAIResponses
    from toolcrib.models.prices import Prices, cost_of
    from toolcrib.models.replay import Replay
    from toolcrib.models.resolve import resolve_model
    from toolcrib.models.scripted import Scripted, Turn

_HOMES = {
    "anthropic": ("AnthropicMessages",),
    "bedrock": (
        "BedrockConverse",
        "BedrockMessages",
    ),
    "cohere": ("Cohere",),
    "fallback": ("Fallback",),
    "gemini": ("Gemini", "GeminiInteractions"),
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
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AnthropicMessages",
    "BedrockConverse",
    "BedrockMessages",
    "Cohere",
    "Fallback",
    "Gemini",
    "GeminiInteractions",
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


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
