"""Models: the seam to whoever answers. The providers' SDKs are imported when first used."""

from toolcrib.models.anthropic import AnthropicMessages
from toolcrib.models.fallback import Fallback
from toolcrib.models.model import Model, ModelError
from toolcrib.models.openai import OpenAIChat
from toolcrib.models.prices import Prices, cost_of
from toolcrib.models.replay import Replay
from toolcrib.models.resolve import resolve_model
from toolcrib.models.scripted import Scripted, Turn

__all__ = [
    "AnthropicMessages",
    "Fallback",
    "Model",
    "ModelError",
    "OpenAIChat",
    "Prices",
    "Replay",
    "Scripted",
    "Turn",
    "cost_of",
    "resolve_model",
]
