"""Tools as a section of a prompt, for models that are shown text instead of schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from toolcrib.schema.canonical import clean
from toolcrib.schema.given import listed_specs
from toolcrib.schema.keywords import KINDS, Schema
from toolcrib.schema.words import phrase, quote, sentence

_MAX_DEPTH: Final = 6  # levels of nested fields that are written out
_SAID_ELSEWHERE: Final = frozenset(
    ("type", "description", "properties", "required", "items", "anyOf", "oneOf", "$ref", "$defs", "nullable")
)


class Described(Protocol):
    """What Markdown and lint need of a tool; a `ToolSpec` fits."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str | None: ...
    @property
    def description(self) -> str: ...
    @property
    def category(self) -> str | None: ...
    @property
    def input_schema(self) -> Mapping[str, Any]: ...
    @property
    def examples(self) -> Sequence[Any]: ...


def to_markdown(specs: Iterable[Described]) -> str:
    """The section `# Available Tools` of a prompt: each tool with its fields, a line each.

    A field's line says its name, type, whether it is required, its description, allowed values, bounds and
    default; fields of nested objects are indented below it. The same specs give the same text.
    """
    tools = [_tool(spec) for spec in listed_specs(specs)]
    return "\n".join(
        ["# Available Tools", "", f"You have access to the following {len(tools)} tool(s):", "", *tools]
    )


def _tool(spec: Described) -> str:
    lines = [f"## {spec.name}"]
    if spec.title and spec.title != spec.name:
        lines.append(f"Display Name: {spec.title}")
    lines.append(f"Description: {spec.description.strip()}")
    if spec.category:
        lines.append(f"Category: {spec.category}")
    schema = clean(spec.input_schema)
    fields = _fields(schema, "  ", 0)
    lines += ["", "Parameters:", *(fields or ["  No parameters"])]
    definitions: Mapping[str, Schema] = schema.get("$defs", {})
    for name, node in definitions.items():
        lines += ["", f"{name}:", *(_fields(node, "  ", 0) or [f"  {_field_text(node)}"])]
    if spec.examples:
        lines += ["", "Examples:", *(f"  - {quote(example)}" for example in spec.examples)]
    return "\n".join(lines) + "\n"


def _fields(node: Mapping[str, Any], indent: str, depth: int) -> list[str]:
    """A line for each field of an object, of the items of a list, or of the variants of a union."""
    if depth > _MAX_DEPTH:
        return []
    lines: list[str] = []
    required = node.get("required", ())
    for name, field in node.get("properties", {}).items():
        need = "required" if name in required else "optional"
        said = _field_text(field)
        lines.append(f"{indent}- {name}: {phrase(field)} ({need})" + (f" - {said}" if said else ""))
        lines += _fields(field, indent + "  ", depth + 1)
    extra = node.get("additionalProperties")
    if isinstance(extra, Mapping) and extra:
        lines += _fields(extra, indent + "  ", depth + 1)
    if isinstance(node.get("items"), Mapping):
        lines += _fields(node["items"], indent, depth + 1)
    for keyword in ("anyOf", "oneOf", "allOf"):
        for number, variant in enumerate(node.get(keyword, ()), 1):
            inner = _fields(variant, indent + "  ", depth + 1)
            said = _field_text(variant)
            if inner or said:
                head = "also" if keyword == "allOf" else f"form {number}"
                lines.append(f"{indent}- {head}: {phrase(variant)}" + (f" - {said}" if said else ""))
                lines += inner
    return lines


def _field_text(node: Mapping[str, Any]) -> str:
    """A field's description and constraints, on one line."""
    parts = [" ".join(str(node.get("description", "")).split())]
    inner = node.get("items")
    if isinstance(inner, Mapping) and "properties" not in inner:
        parts += [_item_said(inner)]
    parts += [
        sentence(k, v) for k, v in node.items() if k in KINDS and k not in _SAID_ELSEWHERE and k != "allOf"
    ]
    text = ""
    for part in filter(None, parts):
        if text and text[-1] not in ".!?:;。！？":
            text += "."
        text = f"{text} {part}" if text else part
    return text


def _item_said(node: Mapping[str, Any]) -> str:
    said = _field_text(node)
    return f"Each item: {said}" if said else ""
