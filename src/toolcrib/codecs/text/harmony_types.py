"""Tools as the TypeScript on which gpt-oss was trained."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from toolcrib.codecs.text.escaping import escape_markers
from toolcrib.json_text.values import step_into

if TYPE_CHECKING:
    from toolcrib.spec import ToolSpec

MAX_DEPTH: Final = 8
NAMES: Final = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "null": "null",
    "array": "any[]",
    "object": "object",
}


def namespace(specs: Sequence[ToolSpec]) -> str:
    """`namespace functions {...}` with a type for each tool."""
    types = "\n\n".join(_function(spec) for spec in specs)
    return escape_markers(f"namespace functions {{\n\n{types}\n\n}} // namespace functions")


def _function(spec: ToolSpec) -> str:
    schema = spec.input_schema
    takes = "" if not schema.get("properties") else f"_: {_Types(schema).object(schema, 0)}"
    return f"{_comment(spec.description)}type {spec.name} = ({takes}) => any;"


def _comment(text: Any) -> str:
    return "".join(f"// {line}\n" for line in text.splitlines()) if isinstance(text, str) else ""


class _Types:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def of(self, schema: Any, depth: int) -> str:
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
            return "any"
        if "$ref" in schema:
            return self.of(self._target(schema["$ref"]), depth + 1)
        choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if isinstance(choices, list):
            return " | ".join(json.dumps(one, ensure_ascii=False, default=str) for one in choices) or "any"
        for word in ("anyOf", "oneOf"):
            if isinstance(ways := schema.get(word), list):
                return " | ".join(dict.fromkeys(self.of(way, depth + 1) for way in ways)) or "any"
        kind = schema.get("type")
        if isinstance(kind, list):
            return " | ".join(self.of({**schema, "type": one}, depth + 1) for one in kind) or "any"
        if kind == "array" and isinstance(schema.get("items"), Mapping):
            item = self.of(schema["items"], depth + 1)
            return f"({item})[]" if " | " in item else f"{item}[]"
        if isinstance(schema.get("properties"), Mapping):
            return self.object(schema, depth)
        if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
            return f"Record<string, {self.of(schema['additionalProperties'], depth + 1)}>"
        return NAMES.get(kind, "any") if isinstance(kind, str) else "any"

    def object(self, schema: Mapping[str, Any], depth: int) -> str:
        """An object's members, a line each, with what is said of them."""
        required = schema.get("required")
        needed = required if isinstance(required, list) else []
        members = "".join(
            f"{_comment(_said(inner, 'description'))}{name if name.isidentifier() else json.dumps(name)}"
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


def _said(schema: Any, word: str) -> Any:
    return schema.get(word) if isinstance(schema, Mapping) else None


def _default(schema: Any) -> str:
    value = _said(schema, "default")
    return "" if value is None else f" // default: {json.dumps(value, ensure_ascii=False, default=str)}"
