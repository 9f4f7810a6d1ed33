"""Extras of a request join what a codec wrote itself, object by object."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.codecs.anthropic_messages import AnthropicMessagesCodec
from toolcrib.codecs.bedrock_converse import BedrockConverseCodec
from toolcrib.codecs.codec import Codec
from toolcrib.codecs.gemini import GeminiCodec
from toolcrib.codecs.ollama import OllamaCodec
from toolcrib.codecs.openai_chat import OpenAIChatCodec
from toolcrib.messages import Message, Request, ToolChoice
from toolcrib.spec import ToolSpec

LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {}})
ONE = ToolChoice("required", ("look",))
CASES: dict[str, tuple[Codec, dict[str, Any], dict[str, Any]]] = {
    "fields of an object are added": (
        OpenAIChatCodec(),
        {"stream_options": {"include_obfuscation": False}, "logit_bias": {"7": 1}},
        {
            "stream_options": {"include_usage": True, "include_obfuscation": False},
            "logit_bias": {"5": -100, "7": 1},
        },
    ),
    "of two values the extras' counts": (
        OpenAIChatCodec(),
        {"stream_options": {"include_usage": False}, "temperature": None, "logit_bias": {"5": 3}},
        {"stream_options": {"include_usage": False}, "temperature": None, "logit_bias": {"5": 3}},
    ),
    "a choice of tools is replaced": (
        OpenAIChatCodec(),
        {"tool_choice": {"type": "custom", "custom": {"name": "grep"}}},
        {"tool_choice": {"type": "custom", "custom": {"name": "grep"}}},
    ),
    "so is Anthropic's": (
        AnthropicMessagesCodec(),
        {"tool_choice": {"type": "any"}, "metadata": {"user_id": "u"}},
        {"tool_choice": {"type": "any"}, "metadata": {"user_id": "u"}},
    ),
    "and Bedrock's, within its object": (
        BedrockConverseCodec(),
        {"toolConfig": {"toolChoice": {"any": {}}}, "inferenceConfig": {"topP": 0.5}},
        {
            "toolConfig.toolChoice": {"any": {}},
            "inferenceConfig": {"maxTokens": 9, "temperature": 0.1, "topP": 0.5},
        },
    ),
    "options of Ollama": (
        OllamaCodec(),
        {"options": {"num_ctx": 4096}, "stream": False},
        {"options": {"num_predict": 9, "temperature": 0.1, "num_ctx": 4096}, "stream": True},
    ),
    "objects within objects": (
        GeminiCodec(),
        {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}},
        {
            "generationConfig": {
                "maxOutputTokens": 9,
                "temperature": 0.1,
                "thinkingConfig": {"thinkingBudget": 0},
            }
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_extras_join_the_body(name: str) -> None:
    codec, extras, expected = CASES[name]
    request = Request(
        [Message.user("Hi")], [LOOK], ONE, max_tokens=9, temperature=0.1, logit_bias={"5": -100}
    )
    request.extras = {codec.provider: extras}
    body = codec.request(request, model="m", stream=True)
    for path, value in expected.items():
        found: Any = body
        for step in path.split("."):
            found = found[step]
        assert found == value
