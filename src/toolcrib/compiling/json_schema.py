"""The JSON Schema of a Pydantic core schema, without what tells a model nothing."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic.json_schema import GenerateJsonSchema

from toolcrib.json_text.values import DECIMAL_TEXT, DURATION_TEXT

__all__ = ["json_schema_of", "slim"]

DATA = {"default", "const", "enum", "examples"}  # keys of a JSON Schema that hold data


def json_schema_of(core: Any) -> Any:
    """The raw JSON Schema of a core schema."""
    return _Generator().generate(core, mode="validation")


class _Generator(GenerateJsonSchema):
    """Pydantic's generator, with the table that it otherwise makes anew for every schema."""

    _methods: ClassVar[dict[str, str]] = {}

    def build_schema_type_to_method(self) -> Any:
        if not self._methods:
            made = super().build_schema_type_to_method()
            self._methods.update({kind: method.__name__ for kind, method in made.items()})
            return made
        return {kind: getattr(self, name) for kind, name in self._methods.items()}

    def model_fields_schema(self, schema: Any) -> Any:
        return _closed(schema, super().model_fields_schema(schema))

    def dataclass_args_schema(self, schema: Any) -> Any:
        return _closed(schema, super().dataclass_args_schema(schema))

    def decimal_schema(self, schema: Any) -> Any:
        made = super().decimal_schema(schema)
        for member in made.get("anyOf", ()):
            if member.get("type") == "string":
                member["pattern"] = DECIMAL_TEXT
        return made

    def timedelta_schema(self, schema: Any) -> Any:
        return {**super().timedelta_schema(schema), "pattern": DURATION_TEXT}

    def emit_warning(self, kind: Any, detail: str) -> None:
        """Do nothing: a default that no JSON can show is left out, which needs no warning."""


def _closed(core: Any, schema: Any) -> Any:
    """The schema of named fields, which says that others are refused where validation refuses them.

    Pydantic says so itself for a TypedDict; for a model and a dataclass only where their class forbids them.
    """
    if core.get("extra_behavior") == "forbid":
        schema["additionalProperties"] = False
    return schema


def slim(schema: Any) -> Any:
    """A raw schema without a null that is the default.

    A parameter that may be left out and then is None needs no null beside its type.
    """
    if isinstance(schema, list):
        return [slim(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    new = {key: item if key in DATA else slim(item) for key, item in schema.items()}
    properties = new.get("properties")
    if isinstance(properties, dict):
        required = new.get("required", ())
        for name, node in properties.items():
            if name not in required and isinstance(node, dict) and node.get("default", 0) is None:
                members = node.get("anyOf")
                if isinstance(members, list) and {"type": "null"} in members:
                    rest = [member for member in members if member != {"type": "null"}]
                    node = {key: item for key, item in node.items() if key not in ("anyOf", "default")}
                    properties[name] = {**rest[0], **node} if len(rest) == 1 else {**node, "anyOf": rest}
    return new
