"""All tools merged into one JSON Schema of a whole answer, or into tags of free text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolcrib.dataclass import replace
from toolcrib.guided.constraints import Tag, Tags, ToolCalls
from toolcrib.schema.canonical import Loss, clean
from toolcrib.schema.keywords import KINDS, NAMED, NODE, NODES, types_of

if TYPE_CHECKING:
    from toolcrib.messages import ToolChoice
    from toolcrib.spec import ToolSpec

__all__ = [
    "MakeConstraint",
    "callable_now",
    "merged_calls",
    "merged_schema",
    "tagged_calls",
    "with_any_arguments",
    "without_broken",
]

# Makes the constraint from the tools, the choice among them, and whether an answer may hold several calls.
MakeConstraint = Callable[[Sequence["ToolSpec"], "ToolChoice", bool], ToolCalls | Tags | None]


def callable_now(specs: Sequence[ToolSpec], choice: ToolChoice) -> list[ToolSpec]:
    """The tools that the next answer may call."""
    if choice.mode == "none":
        return []
    return [spec for spec in specs if not choice.names or spec.name in choice.names]


def merged_calls(specs: Sequence[ToolSpec], choice: ToolChoice, several: bool) -> ToolCalls:
    """The whole answer as one object, with calls of these tools."""
    return ToolCalls(tuple(specs), choice, several)


def tagged_calls(
    tag: Callable[[ToolSpec], tuple[str, str]],
    trigger: str,
    specs: Sequence[ToolSpec],
    choice: ToolChoice,
    several: bool,
) -> Tags | None:
    """Free text in which a trigger begins a call of a tool, whose arguments fit its schema; None without tools.

    `tag` gives what stands before and after the arguments of a tool's call.
    """
    tags: list[Tag] = []
    for spec in callable_now(specs, choice):
        begin, end = tag(spec)
        tags.append(Tag(begin, spec.input_schema, end))
    if not tags:
        return None
    return Tags(tuple(tags), (trigger,), at_least_one=choice.mode == "required", several=several)


def merged_schema(constraint: ToolCalls, *, bounded: bool = True) -> dict[str, Any]:
    """The schema of a whole answer: `content`, and `tool_calls` of which each item is a call of one tool.

    The name of a call comes before its arguments. The arguments' schemas and their definitions stand among the root's
    definitions, each under its tool's name, so that equal names of two tools never meet. `bounded` puts the bounds of
    the constraint on arrays and strings without one.
    """
    offered = callable_now(constraint.tools, constraint.choice)
    definitions: dict[str, Any] = {}
    calls: dict[str, Any] = {"type": "array"}
    for spec in offered:
        _define(spec, definitions, constraint if bounded else None)
    if offered:
        calls["items"] = {"anyOf": [_call(spec) for spec in offered]}
    if not offered or not constraint.parallel:
        calls["maxItems"] = min(len(offered), 1)
    elif bounded and constraint.most_items is not None:
        calls["maxItems"] = constraint.most_items
    if offered and constraint.choice.mode == "required":
        calls["minItems"] = 1
    must_call = constraint.both or "minItems" in calls
    schema = {
        "type": "object",
        "properties": {"content": {"type": "string"}, "tool_calls": calls},
        "required": ["content", "tool_calls"] if must_call else ["content"],
        "additionalProperties": False,
    }
    return {**schema, "$defs": definitions} if definitions else schema


def without_broken(constraint: ToolCalls) -> tuple[ToolCalls, list[Loss]]:
    """The constraint with the schemas that no validator takes replaced, so that one tool does not fail the others."""
    from toolcrib.schema.validator import offline_validator

    specs: list[ToolSpec] = []
    losses: list[Loss] = []
    for spec in constraint.tools:
        try:
            offline_validator(spec.input_schema)
            specs.append(spec)
        except ValueError as problem:
            specs.append(with_any_arguments(spec))
            losses.append(Loss(f"/$defs/{spec.name}", "arguments", f"no JSON Schema: {problem}"))
    return (replace(constraint, tools=tuple(specs)) if losses else constraint), losses


def with_any_arguments(spec: ToolSpec) -> ToolSpec:
    """The tool as one that takes any object."""
    return replace(spec, input_schema={"type": "object", "properties": {}}, _dialects={})


def _call(spec: ToolSpec) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"name": {"const": spec.name}, "arguments": {"$ref": f"#/$defs/{spec.name}"}},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _define(spec: ToolSpec, definitions: dict[str, Any], bounds: ToolCalls | None) -> None:
    """Adds the schema of a tool's arguments, and its definitions, to those of the answer."""
    schema = clean(spec.input_schema)  # a spec made by hand may refer to other places than definitions
    own = {word: value for word, value in schema.items() if word != "$defs"}
    definitions[spec.name] = _moved(own, spec.name, bounds)
    for name, node in schema.get("$defs", {}).items():
        definitions[f"{spec.name}.{name}"] = _moved(node, spec.name, bounds)


def _moved(node: Any, tool: str, bounds: ToolCalls | None) -> Any:
    """A node with its references to where the tool's definitions stand now, and with bounds where it has none."""
    if not isinstance(node, Mapping):
        return node
    out = dict(node)
    reference = out.get("$ref")
    if reference == "#":
        out["$ref"] = f"#/$defs/{tool}"
    elif isinstance(reference, str) and reference.startswith("#/$defs/"):
        out["$ref"] = f"#/$defs/{tool}.{reference.removeprefix('#/$defs/')}"
    for word, value in node.items():
        kind = KINDS.get(word)
        if kind == NODE:
            out[word] = _moved(value, tool, bounds)
        elif kind == NODES:
            out[word] = [_moved(item, tool, bounds) for item in value]
        elif kind == NAMED:
            out[word] = {name: _moved(item, tool, bounds) for name, item in value.items()}
    if bounds is not None:
        _bound(out, bounds)
    return out


def _bound(node: dict[str, Any], bounds: ToolCalls) -> None:
    types = types_of(node)
    if "array" in types and "maxItems" not in node and bounds.most_items is not None:
        node["maxItems"] = max(bounds.most_items, node.get("minItems", 0))
    free = "maxLength" not in node and "enum" not in node and "const" not in node and "pattern" not in node
    if "string" in types and free and "format" not in node and bounds.most_characters is not None:
        node["maxLength"] = max(bounds.most_characters, node.get("minLength", 0))
