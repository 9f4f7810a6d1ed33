"""How the tools are declared in a prompt: as JSON, Markdown or TypeScript, as the model families were trained."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from toolcrib.codecs.text.escaping import escape_json, escape_markers
from toolcrib.json_text.values import step_into

if TYPE_CHECKING:
    from toolcrib.spec import ToolSpec

__all__ = [
    "bare_json_list",
    "bare_json_tools",
    "json_list",
    "json_tools",
    "markdown_tools",
    "schema_sections",
    "typescript_namespace",
]

MAX_DEPTH: Final = 8
TYPESCRIPT: Final = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "null": "null",
    "array": "any[]",
    "object": "object",
}


def _declaration(spec: ToolSpec) -> dict[str, Any]:
    return {"name": spec.name, "description": spec.description, "parameters": spec.input_schema}


def json_tools(specs: Iterable[ToolSpec]) -> str:
    """The tools as JSON, a line each: `{"type": "function", "function": {...}}`."""
    return "\n".join(escape_json({"type": "function", "function": _declaration(spec)}) for spec in specs)


def bare_json_tools(specs: Iterable[ToolSpec]) -> str:
    """The tools as JSON, a line each: `{"name": ..., "description": ..., "parameters": ...}`."""
    return "\n".join(escape_json(_declaration(spec)) for spec in specs)


def json_list(specs: Iterable[ToolSpec]) -> str:
    """The tools as one JSON list of `{"type": "function", "function": {...}}`."""
    return f"[{json_tools(specs)}]".replace("\n", ", ")


def bare_json_list(specs: Iterable[ToolSpec]) -> str:
    """The tools as one JSON list of `{"name": ..., "description": ..., "parameters": ...}`."""
    return f"[{bare_json_tools(specs)}]".replace("\n", ", ")


def markdown_tools(specs: Sequence[ToolSpec]) -> str:
    """The tools as a Markdown list, for families that were not trained on JSON."""
    from toolcrib.schema.markdown import to_markdown

    return escape_markers(to_markdown(specs)).rstrip("\n")


def schema_sections(specs: Iterable[ToolSpec]) -> str:
    """A section of Markdown for each tool, with its JSON Schema."""
    return "\n\n".join(
        f"### {spec.name}\nDescription: {escape_markers(spec.description)}\n\n"
        f"Parameters: {escape_json(spec.input_schema)}"
        for spec in specs
    )


def typescript_namespace(specs: Iterable[ToolSpec]) -> str:
    """The tools as TypeScript: `namespace functions {...}` with a type for each tool."""
    types = "\n\n".join(map(_function_type, specs))
    return escape_markers(f"namespace functions {{\n\n{types}\n\n}} // namespace functions")


def _function_type(spec: ToolSpec) -> str:
    schema = spec.input_schema
    takes = "" if not schema.get("properties") else f"_: {_Types(schema).object(schema, 0)}"
    return f"{_comment(spec.description)}type {spec.name} = ({takes}) => any;"


def _comment(text: Any) -> str:
    return "".join(f"// {line}\n" for line in text.splitlines()) if isinstance(text, str) else ""


class _Types:
    """Writes JSON Schemas as TypeScript types; `root` is where `$ref` points into."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def of(self, schema: Any, depth: int) -> str:
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
            return "any"
        if "$ref" in schema:
            return self.of(self._target(schema["$ref"]), depth + 1)
        choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if isinstance(choices, list):
            return (
                " | ".join(json.dumps(value, ensure_ascii=False, default=str) for value in choices) or "any"
            )
        for word in ("anyOf", "oneOf"):
            if isinstance(ways := schema.get(word), list):
                return " | ".join(dict.fromkeys(self.of(way, depth + 1) for way in ways)) or "any"
        kind = schema.get("type")
        if isinstance(kind, list):
            return " | ".join(self.of({**schema, "type": item}, depth + 1) for item in kind) or "any"
        if kind == "array" and isinstance(schema.get("items"), Mapping):
            item = self.of(schema["items"], depth + 1)
            return f"({item})[]" if " | " in item else f"{item}[]"
        if isinstance(schema.get("properties"), Mapping):
            return self.object(schema, depth)
        if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
            return f"Record<string, {self.of(schema['additionalProperties'], depth + 1)}>"
        return TYPESCRIPT.get(kind, "any") if isinstance(kind, str) else "any"

    def object(self, schema: Mapping[str, Any], depth: int) -> str:
        """The members of an object, a line each, with their descriptions."""
        required = schema.get("required")
        needed = required if isinstance(required, list) else []
        members = "".join(
            f"{_comment(_keyword(inner, 'description'))}{name if name.isidentifier() else json.dumps(name)}"
            f"{'' if name in needed else '?'}: {self.of(inner, depth + 1)},{_default(inner)}\n"
            for name, inner in schema["properties"].items()
        )
        return f"{{\n{members}}}"

    def _target(self, pointer: Any) -> Any:
        if not isinstance(pointer, str) or not pointer.startswith("#/"):
            return None
        place: Any = self._root
        for token in pointer[2:].split("/"):
            try:
                place = step_into(place, token)
            except LookupError:
                return None
        return place


def _keyword(schema: Any, word: str) -> Any:
    return schema.get(word) if isinstance(schema, Mapping) else None


def _default(schema: Any) -> str:
    value = _keyword(schema, "default")
    return "" if value is None else f" // default: {json.dumps(value, ensure_ascii=False, default=str)}"
