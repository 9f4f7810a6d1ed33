"""The formats with parameters in tags and special tokens, and how their tests write and read them."""

from __future__ import annotations

import json
from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.text import Parsed, format_named, parse_text, text_parser
from toolcrib.spec import ToolSpec

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "content": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "point": {"type": "object", "properties": {"x": {"type": "integer"}, "label": {"type": "string"}}},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "note": {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "mode": {"enum": ["none", "all"]},
    },
}
TOOLS = {"write": SCHEMA, "now": {"type": "object"}}
SPECS = [ToolSpec(name, f"Does {name}.", schema) for name, schema in TOOLS.items()]

TAGGED = ("qwen3_coder_xml", "nemotron3", "step3p5", "seed_oss", "invoke", "minimax_m2", "step3")
DSML = ("deepseek_v3.2_dsml", "deepseek_v4_dsml", "deepseek_v4.1_dsml")
KEYED = ("glm4_moe", "glm47", "hunyuan_v3")
NESTED = ("minimax_m3", "functiongemma", "gemma4")
JSON = ("deepseek_v3", "deepseek_v3.1", "deepseek_r1", "kimi_k2", "harmony", "minimax_m1")
ALL = (*TAGGED, *DSML, *KEYED, *NESTED, *JSON)
TEXTUAL = (*TAGGED, *DSML, *KEYED, "minimax_m3")  # a string stands there as it is


def calls(parsed: Parsed) -> list[tuple[str, Any]]:
    assert not [call.problem for call in parsed.calls if call.problem], parsed
    return [(call.name, json.loads(str(call.arguments) or "{}")) for call in parsed.calls]


def read(format: str, text: str) -> Parsed:
    """What a text says, the same in one piece and character by character."""
    whole = parse_text(text, format, TOOLS)
    parser = text_parser(format, TOOLS)
    for character in text:
        parser.feed(character)
    parser.finish()
    assert parser.parsed() == whole
    return whole


def written(format: str, *asked: tuple[str, dict[str, Any]]) -> str:
    made = [
        ToolCall(name, json.dumps(arguments), f"functions.{name}:{index}")
        for index, (name, arguments) in enumerate(asked)
    ]
    return format_named(format).write_calls(made)
