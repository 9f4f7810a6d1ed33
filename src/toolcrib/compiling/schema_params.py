"""Params from a raw JSON Schema, as tools of an MCP server bring it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcrib.errors import FieldError, ToolDefinitionError
from toolcrib.field_errors import field_errors

__all__ = ["SchemaParams"]


class SchemaParams:
    """Params from a raw JSON Schema, validated by jsonschema-rs; the params are the plain JSON data."""

    def __init__(self, raw: Mapping[str, Any], *, tool: str) -> None:
        from toolcrib.schema import clean
        from toolcrib.schema.validator import offline_validator

        try:
            self._validator = offline_validator(raw)
            self.schema = clean(raw)
        except Exception as problem:
            raise ToolDefinitionError(
                f"tool {tool!r}: its JSON Schema cannot be used: {problem}"
            ) from problem
        if self.schema.get("type", "object") != "object":
            raise ToolDefinitionError(
                f"tool {tool!r}: its JSON Schema must describe an object of named parameters, "
                f"got type {self.schema['type']!r}"
            )

    def parse(self, text: str | bytes) -> Any:
        from pydantic_core import from_json, to_json

        value = from_json(text or "{}", allow_inf_nan=False)
        if isinstance(text, str) and text:
            written = to_json(value).translate(None, b" \n\r\t")
            if written != text.encode().translate(None, b" \n\r\t"):
                raise ValueError("the text may say more than was read")
        self.validate(value)
        return value

    def validate(self, value: Any) -> None:
        """Raise ValueError when JSON data does not fit the schema."""
        if not isinstance(value, dict):
            raise ValueError("the arguments must be a JSON object")
        if not self._validator.is_valid(value):
            raise ValueError("the arguments do not fit the schema")

    def explain(self, problem: ValueError, value: Any) -> tuple[FieldError, ...]:
        if not isinstance(value, dict):
            return (FieldError("", "a JSON object", str(problem)),)
        return field_errors(self.schema, value, list(self._failures(value)))

    def _failures(self, value: Any) -> Iterator[tuple[tuple[Any, ...], str, str]]:
        for error in self._validator.iter_errors(value):
            path = tuple(error.instance_path)
            kind = type(error.kind).__name__
            if kind.endswith("Required"):
                yield (*path, getattr(error.kind, "property", "")), "missing", ""
            elif kind.endswith(("AdditionalProperties", "UnevaluatedProperties")):
                for name in getattr(error.kind, "unexpected", ()):
                    yield (*path, name), "extra", ""
            else:
                yield path, "type", error.message
