"""Params from a raw JSON Schema, as tools of an MCP server bring it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolcrib.errors import FieldError, ToolDefinitionError
from toolcrib.field_errors import Failure, Member, field_errors
from toolcrib.json_text.values import has_decimal_text

__all__ = ["SchemaParams", "schema_failures"]

SPACE = b" \n\r\t"


class SchemaParams:
    """Params from a raw JSON Schema, validated by jsonschema-rs; the params are the plain JSON data."""

    def __init__(self, raw: Mapping[str, Any], *, tool: str) -> None:
        self.raw = raw  # as its author wrote it, for those who take any JSON Schema
        self.unsaid: Mapping[str, Sequence[str]] = {}
        from toolcrib.schema.canonical import clean
        from toolcrib.schema.keywords import KINDS
        from toolcrib.schema.validator import offline_validator, why_unusable

        if raw and all(str(word).isidentifier() and word not in KINDS for word in raw):
            raise ToolDefinitionError(
                f"tool {tool!r}: its JSON Schema has no keyword of JSON Schema: write "
                f'{{"type": "object", "properties": {{"{next(iter(raw))}": ...}}, "required": [...]}}'
            )
        try:
            self._validator = offline_validator(raw)
            self.schema = clean(raw)
            if "type" not in self.schema:  # arguments are an object, even if their schema does not say so
                self.schema = clean({"type": "object", **raw})
            self.written_digits = has_decimal_text(self.schema)
        except Exception as problem:
            raise ToolDefinitionError(
                f"tool {tool!r}: its JSON Schema cannot be used: {why_unusable(problem)}"
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
            from toolcrib.json_text.lenient_reader import reading_loses_nothing

            anew = to_json(value).translate(None, SPACE)
            if anew != text.encode().translate(None, SPACE) and not reading_loses_nothing(
                text, written_digits=self.written_digits
            ):
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
        from toolcrib.schema.validator import TooManyChecks

        if not isinstance(value, dict):
            return (FieldError("", "a JSON object", str(problem)),)
        try:
            errors = self._validator.iter_errors(value)
        except TooManyChecks:
            got = "arguments that are nested too deeply to say where they do not fit"
            return (FieldError("", "what the schema describes", got),)
        return field_errors(self.schema, value, schema_failures(errors))


LIMITS = (
    *("Minimum", "ExclusiveMinimum", "Maximum", "ExclusiveMaximum", "MultipleOf", "MinLength", "MaxLength"),
    *("Pattern", "Format", "MinItems", "MaxItems", "UniqueItems", "MinProperties", "MaxProperties"),
    *("Contains", "Not", "AdditionalItems", "UnevaluatedItems"),
)


WORDS = {  # for errors that no keyword at their place explains
    "OneOfMultipleValid": "that fits one of these alone, not several",
    "FalseSchema": "nothing at this place",
}


def schema_failures(errors: Iterable[Any], above: tuple[Any, ...] = ()) -> Iterator[Failure]:
    """The errors of jsonschema-rs; those inside of a union say which variant they are about."""
    for error in errors:
        path = (*above, *error.instance_path[sum(not isinstance(item, Member) for item in above) :])
        kind = type(error.kind).__name__.rpartition("_")[2]
        if kind == "Required":
            yield Failure((*path, getattr(error.kind, "property", "")), "missing")
        elif kind in ("AdditionalProperties", "UnevaluatedProperties"):
            for name in getattr(error.kind, "unexpected", ()):
                yield Failure((*path, name), "extra")
        elif kind in ("AnyOf", "OneOfNotValid"):
            for number, inner in enumerate(error.kind.context):
                yield from schema_failures(inner, (*path, Member(number)))
        elif kind == "PropertyNames":
            yield Failure(path, "limit")
        else:
            yield Failure(path, "limit" if kind in LIMITS else "type", WORDS.get(kind, ""))
