"""The constraint of a JSON value: a JSON Schema, or a Python type whose schema it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolcrib.dataclass import dataclass, field

if TYPE_CHECKING:
    from toolcrib.errors import FieldError

__all__ = ["JsonSchema"]


@dataclass(frozen=True, slots=True, eq=False)
class JsonSchema:
    """A JSON value that fits a schema, which is given as a mapping or as a type (a Pydantic model, a dataclass,
    `list[int]`, whatever a tool's parameter may be).

    A `format` is a constraint, as far as the schema's draft knows it. `name` and `description` are sent to servers that
    take them, with a name's other characters than letters, digits, `_` and `-` replaced. ValueError where there is no
    schema.

    >>> JsonSchema(list[int]).schema
    {'type': 'array', 'items': {'type': 'integer'}}
    """

    source: Any
    name: str = "answer"
    description: str = ""
    schema: dict[str, Any] = field(init=False, repr=False)
    """The canonical schema: what every rewritten form is made from."""
    _checks: Any = field(init=False, repr=False)
    _core: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        from toolcrib.schema.canonical import clean
        from toolcrib.schema.validator import offline_validator

        if isinstance(self.source, str | bytes | list | bool | int | float):
            raise TypeError(
                "JsonSchema: expected a type, or a JSON Schema as a mapping; "
                f"got {type(self.source).__name__} {self.source!r:.60}. Texts are given as Choice('yes', 'no')"
            )
        core, raw = (None, self.source) if isinstance(self.source, Mapping) else _of_type(self.source)
        try:
            checks = offline_validator(raw, formats=True)
        except Exception as problem:
            raise ValueError(
                f"JsonSchema: this is no JSON Schema that can be used: {_first_line(problem)}"
            ) from problem
        object.__setattr__(self, "schema", clean(raw))
        object.__setattr__(self, "_checks", checks)
        object.__setattr__(self, "_core", core)

    def fits(self, value: Any) -> bool:
        """Whether a JSON value fits the schema as it was given."""
        try:
            return bool(self._checks.is_valid(value))
        except ValueError:  # a number that the validator cannot hold
            return False

    def validate(self, value: Any) -> tuple[FieldError, ...]:
        """What is wrong with a JSON value, field by field; empty if it fits."""
        from toolcrib.compiling.schema_params import schema_failures
        from toolcrib.errors import FieldError
        from toolcrib.field_errors import field_errors

        try:
            found = field_errors(self.schema, value, schema_failures(self._checks.iter_errors(value)))
        except ValueError as problem:
            return (FieldError("", "a JSON value", str(problem)),)
        return found if found or self.fits(value) else (FieldError("", "a value of the schema", "another"),)

    def to_python(self, value: Any) -> Any:
        """The JSON value as the type that was given; as it is where a schema was. A `pydantic.ValidationError` where
        it does not fit.
        """
        if self._core is None:
            return value
        from pydantic_core import to_json

        return self._core.validate_json(to_json(value), strict=True)


def _of_type(kind: Any) -> tuple[Any, Any]:
    """The validator of a type, and its JSON Schema."""
    from pydantic_core import SchemaValidator

    from toolcrib.compiling.core_schema import core_schema_of, strict
    from toolcrib.compiling.json_schema import json_schema_of
    from toolcrib.compiling.slim import slim
    from toolcrib.compiling.typed_dicts import modern
    from toolcrib.compiling.unsaid import UNSAID, tell

    try:
        core = strict(core_schema_of(modern(kind)))
        raw = slim(json_schema_of(core))
    except Exception as problem:
        raise ValueError(f"JsonSchema: {kind!r} gives no JSON Schema: {_first_line(problem)}") from problem
    return SchemaValidator(core, None, False), tell(raw) if UNSAID in repr(raw) else raw


def _first_line(problem: Exception) -> str:
    return str(problem).strip().partition("\n")[0]
