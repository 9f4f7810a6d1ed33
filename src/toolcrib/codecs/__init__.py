"""Wire formats of the providers: pure translations between neutral messages and JSON."""

from toolcrib.codecs.anthropic_messages import AnthropicMessagesCodec
from toolcrib.codecs.codec import Codec, Decoder, ModelError
from toolcrib.codecs.openai_chat import OpenAIChatCodec
from toolcrib.codecs.sse import JSONEvents, ServerEvent, SSEReader

__all__ = [
    "AnthropicMessagesCodec",
    "Codec",
    "Decoder",
    "JSONEvents",
    "ModelError",
    "OpenAIChatCodec",
    "SSEReader",
    "ServerEvent",
]
