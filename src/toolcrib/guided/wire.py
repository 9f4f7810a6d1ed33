"""The fields of each server's request that carry a constraint: a function for each shape."""

from __future__ import annotations

import json
from typing import Any

from toolcrib.dataclass import dataclass

__all__ = ["SentSchema"]

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SentSchema:
    """A schema in a server's dialect, with the name and description that some servers take."""

    schema: dict[str, Any]
    name: str
    description: str

    @property
    def named(self) -> Fields:
        said = {"description": self.description} if self.description else {}
        return {"name": self.name, **said}


# -- schemas of answers -----------------------------------------------------------------------------------


def chat_schema(sent: SentSchema) -> Fields:
    """Chat Completions, strict."""
    held = {**sent.named, "schema": sent.schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": held}}


def chat_schema_plain(sent: SentSchema) -> Fields:
    """Chat Completions of servers that know no `strict`."""
    return {"response_format": {"type": "json_schema", "json_schema": {**sent.named, "schema": sent.schema}}}


def responses_schema(sent: SentSchema) -> Fields:
    held = {"type": "json_schema", **sent.named, "schema": sent.schema, "strict": True}
    return {"text": {"format": held}}


def anthropic_schema(sent: SentSchema) -> Fields:
    return {"output_config": {"format": {"type": "json_schema", "schema": sent.schema}}}


def gemini_schema(sent: SentSchema) -> Fields:
    return {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": sent.schema}}


def bedrock_schema(sent: SentSchema) -> Fields:
    held = {**sent.named, "schema": json.dumps(sent.schema, ensure_ascii=False)}
    return {"outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": held}}}}


def cohere_schema(sent: SentSchema) -> Fields:
    return {"response_format": {"type": "json_object", "json_schema": sent.schema}}


def ollama_schema(sent: SentSchema) -> Fields:
    return {"format": sent.schema}


def vllm_schema(sent: SentSchema) -> Fields:
    return {"structured_outputs": {"json": sent.schema}}


def tgi_schema(sent: SentSchema) -> Fields:
    return {"response_format": {"type": "json_object", "value": sent.schema}}


def trtllm_schema(sent: SentSchema) -> Fields:
    return {"response_format": {"type": "json", "schema": sent.schema}}


def local_schema(sent: SentSchema) -> Fields:
    return {"json_schema": sent.schema}


# -- one tool that must be called -------------------------------------------------------------------------


def _function(sent: SentSchema, strict: bool) -> Fields:
    return {**sent.named, "parameters": sent.schema, **({"strict": True} if strict else {})}


def chat_tool(sent: SentSchema) -> Fields:
    return {
        "tools": [{"type": "function", "function": _function(sent, False)}],
        "tool_choice": {"type": "function", "function": {"name": sent.name}},
    }


def chat_strict_tool(sent: SentSchema) -> Fields:
    return {
        **chat_tool(sent),
        "tools": [{"type": "function", "function": _function(sent, True)}],
        "parallel_tool_calls": False,
    }


def responses_tool(sent: SentSchema) -> Fields:
    return {
        "tools": [{"type": "function", **_function(sent, False), "strict": False}],
        "tool_choice": {"type": "function", "name": sent.name},
    }


def responses_strict_tool(sent: SentSchema) -> Fields:
    return {
        **responses_tool(sent),
        "tools": [{"type": "function", **_function(sent, True)}],
        "parallel_tool_calls": False,
    }


def anthropic_tool(sent: SentSchema) -> Fields:
    return {
        "tools": [{**sent.named, "input_schema": sent.schema}],
        "tool_choice": {"type": "tool", "name": sent.name, "disable_parallel_tool_use": True},
    }


def anthropic_strict_tool(sent: SentSchema) -> Fields:
    return {
        **anthropic_tool(sent),
        "tools": [{**sent.named, "input_schema": sent.schema, "strict": True}],
    }


def gemini_tool(sent: SentSchema) -> Fields:
    function = {**sent.named, "parametersJsonSchema": sent.schema}
    choice = {"mode": "ANY", "allowedFunctionNames": [sent.name]}
    return {
        "tools": [{"functionDeclarations": [function]}],
        "toolConfig": {"functionCallingConfig": choice},
    }


def bedrock_tool(sent: SentSchema, strict: bool = False) -> Fields:
    spec = {**sent.named, "inputSchema": {"json": sent.schema}, **({"strict": True} if strict else {})}
    return {"toolConfig": {"tools": [{"toolSpec": spec}], "toolChoice": {"tool": {"name": sent.name}}}}


def bedrock_strict_tool(sent: SentSchema) -> Fields:
    return bedrock_tool(sent, strict=True)


def cohere_strict_tool(sent: SentSchema) -> Fields:
    return {
        "tools": [{"type": "function", "function": _function(sent, False)}],
        "tool_choice": "REQUIRED",
        "strict_tools": True,
    }


def mistral_tool(sent: SentSchema) -> Fields:
    return {**chat_tool(sent), "parallel_tool_calls": False}


# -- some JSON --------------------------------------------------------------------------------------------


def chat_json() -> Fields:
    return {"response_format": {"type": "json_object"}}


def responses_json() -> Fields:
    return {"text": {"format": {"type": "json_object"}}}


def gemini_json() -> Fields:
    return {"generationConfig": {"responseMimeType": "application/json"}}


def ollama_json() -> Fields:
    return {"format": "json"}


def vllm_json() -> Fields:
    return {"structured_outputs": {"json_object": True}}


# -- texts: one of several, of a regular expression, of a grammar -----------------------------------------


def vllm_choice(options: tuple[str, ...]) -> Fields:
    return {"structured_outputs": {"choice": [*options]}}


def vllm_regex(pattern: str) -> Fields:
    return {"structured_outputs": {"regex": pattern}}


def vllm_grammar(text: str) -> Fields:
    return {"structured_outputs": {"grammar": text}}


def sglang_regex(pattern: str) -> Fields:
    return {"regex": pattern}


def sglang_grammar(text: str) -> Fields:
    return {"ebnf": text}


def llamacpp_grammar(text: str) -> Fields:
    return {"grammar": text}


def tgi_regex(pattern: str) -> Fields:
    return {"response_format": {"type": "regex", "value": pattern}}


def trtllm_regex(pattern: str) -> Fields:
    return {"response_format": {"type": "regex", "regex": pattern}}


def trtllm_grammar(text: str) -> Fields:
    return {"response_format": {"type": "ebnf", "ebnf": text}}


def local_regex(pattern: str) -> Fields:
    return {"regex": pattern}


def local_grammar(text: str) -> Fields:
    return {"lark": text}


def chat_custom_tool(name: str, syntax: str, definition: str) -> Fields:
    """A tool of OpenAI's whose input is text of a grammar ("lark" or "regex")."""
    grammar = {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}}
    return {
        "tools": [{"type": "custom", "custom": {"name": name, "format": grammar}}],
        "tool_choice": {"type": "custom", "custom": {"name": name}},
        "parallel_tool_calls": False,
    }


def responses_custom_tool(name: str, syntax: str, definition: str) -> Fields:
    grammar = {"type": "grammar", "syntax": syntax, "definition": definition}
    return {
        "tools": [{"type": "custom", "name": name, "format": grammar}],
        "tool_choice": {"type": "custom", "name": name},
        "parallel_tool_calls": False,
    }


# -- free text with parts that are held -------------------------------------------------------------------


def structural_tag(tags: Any, triggers: Any, at_least_one: bool, several: bool) -> Fields:
    """Structural tags, as vLLM and SGLang take them; `tags` are (begin, schema, end)."""
    written = [
        {"begin": begin, "content": {"type": "json_schema", "json_schema": schema}, "end": end}
        for begin, schema, end in tags
    ]
    form = {
        "type": "triggered_tags",
        "triggers": [*triggers],
        "tags": written,
        "at_least_one": at_least_one,
        "stop_after_first": not several,
    }
    return {"response_format": {"type": "structural_tag", "format": form}}


def local_tags(tags: Any, triggers: Any, at_least_one: bool, several: bool) -> Fields:
    """Free text with tags, as `LocalGuide` takes it."""
    held = {"tags": [*tags], "triggers": [*triggers], "at_least_one": at_least_one, "several": several}
    return {"tags": held}
