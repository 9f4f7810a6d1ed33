"""Fields of a request body that make a server write only valid calls, for servers that take a constraint."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolcrib.messages import ToolChoice
    from toolcrib.spec import ToolSpec

__all__ = ["Constraint", "json_schema", "merged_schema", "structural_tag"]

# From the tools, the choice among them, and whether an answer may hold several calls, to the fields.
Constraint = Callable[[Sequence["ToolSpec"], "ToolChoice", bool], dict[str, Any]]


def callable_now(specs: Sequence[ToolSpec], choice: ToolChoice) -> list[ToolSpec]:
    """The tools that the next answer may call."""
    if choice.mode == "none":
        return []
    return [spec for spec in specs if not choice.names or spec.name in choice.names]


def structural_tag(
    tag: Callable[[ToolSpec], tuple[str, str]],
    trigger: str,
    specs: Sequence[ToolSpec],
    choice: ToolChoice,
    several: bool,
) -> dict[str, Any]:
    """Free text in which a trigger begins a call of a tool, whose arguments follow its schema (vLLM, SGLang).

    `tag` gives what stands before and after the arguments of a tool's call.
    """
    tags: list[dict[str, Any]] = []
    for spec in callable_now(specs, choice):
        begin, end = tag(spec)
        content = {"type": "json_schema", "json_schema": spec.input_schema}
        tags.append({"begin": begin, "content": content, "end": end})
    if not tags:
        return {}
    form = {
        "type": "triggered_tags",
        "triggers": [trigger],
        "tags": tags,
        "at_least_one": choice.mode == "required",
        "stop_after_first": not several,
    }
    return {"response_format": {"type": "structural_tag", "format": form}}


def merged_schema(specs: Sequence[ToolSpec], choice: ToolChoice, several: bool) -> dict[str, Any]:
    """The schema of a whole answer: `content`, and `tool_calls` of which each item is a call of one tool.

    Definitions of the tools' schemas move to its root, each under its tool's name.
    """
    offered = callable_now(specs, choice)
    definitions: dict[str, Any] = {}
    calls: dict[str, Any] = {"type": "array"}
    if offered:
        calls["items"] = {"anyOf": [_call_schema(spec, definitions) for spec in offered]}
    if not offered or not several:
        calls["maxItems"] = min(len(offered), 1)
    if offered and choice.mode == "required":
        calls["minItems"] = 1
    schema = {
        "type": "object",
        "properties": {"content": {"type": "string"}, "tool_calls": calls},
        "required": ["content", "tool_calls"],
        "additionalProperties": False,
    }
    return {**schema, "$defs": definitions} if definitions else schema


def json_schema(specs: Sequence[ToolSpec], choice: ToolChoice, several: bool) -> dict[str, Any]:
    """The merged schema as Chat Completions takes it."""
    schema = {"name": "answer", "schema": merged_schema(specs, choice, several)}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _call_schema(spec: ToolSpec, definitions: dict[str, Any]) -> dict[str, Any]:
    arguments = dict(spec.input_schema)
    own = arguments.pop("$defs", {})
    text = json.dumps([arguments, own])
    for name in own:
        text = text.replace(json.dumps(f"#/$defs/{name}"), json.dumps(f"#/$defs/{spec.name}.{name}"))
    arguments, own = json.loads(text)
    definitions.update((f"{spec.name}.{name}", node) for name, node in own.items())
    return {
        "type": "object",
        "properties": {"name": {"const": spec.name}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
