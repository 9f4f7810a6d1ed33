"""The JSON Schema of a Pydantic core schema, without what tells a model nothing."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

from pydantic.json_schema import GenerateJsonSchema

from toolcrib.compiling.slim import DATA
from toolcrib.compiling.unsaid import RULES, UNSAID, unsaid
from toolcrib.json_text.values import DECIMAL_TEXT, DURATION_TEXT

__all__ = ["json_schema_of"]


def json_schema_of(core: Any) -> Any:
    """The raw JSON Schema of a core schema."""
    return with_required_tags(_Generator().generate(core, mode="validation"))


class _Generator(GenerateJsonSchema):
    """Pydantic's generator, with the table that it otherwise makes anew for every schema."""

    _methods: ClassVar[dict[str, str]] = {}

    def build_schema_type_to_method(self) -> Any:
        if not self._methods:
            made = super().build_schema_type_to_method()
            self._methods.update({kind: method.__name__ for kind, method in made.items()})
        table = {kind: getattr(self, name) for kind, name in self._methods.items()}
        return {**table, **{kind: functools.partial(self._with_rules, table[kind]) for kind in RULES}}

    def _with_rules(self, method: Any, schema: Any) -> Any:
        made, said = method(schema), unsaid(schema)
        for member in made.get("anyOf", ()):  # Pydantic writes the bounds of a Decimal as 0.0
            member.update({k: int(n) for k, n in member.items() if isinstance(n, float) and n.is_integer()})
        return {**made, UNSAID: said} if said else made

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

    def encode_default(self, dft: Any) -> Any:
        """A default as JSON data; Pydantic would make an adapter for each, of plain values too."""
        plain = dft.isascii() if type(dft) is str else dft is None or type(dft) in (bool, int)
        return dft if plain else super().encode_default(dft)

    def emit_warning(self, kind: Any, detail: str) -> None:
        """Do nothing: a default that no JSON can show is left out, which needs no warning."""


def _closed(core: Any, schema: Any) -> Any:
    """The schema of named fields, which says that others are refused where validation refuses them.

    Pydantic says so itself for a TypedDict; for a model and a dataclass only where their class forbids them.
    """
    if core.get("extra_behavior") == "forbid":
        schema["additionalProperties"] = False
    return schema


def with_required_tags(schema: dict[str, Any]) -> dict[str, Any]:
    """A raw schema in which the tag of a tagged union has to be given.

    Validation needs it, also where the class has a default for it, which only counts outside of the union. There
    the class is the same definition, so that each variant becomes one of its own.
    """
    defs: dict[str, Any] = dict(schema.get("$defs", {}))
    made: dict[tuple[str, str], str] = {}

    def variant(node: Any, tag: str) -> Any:
        name = str(node.get("$ref", "")).removeprefix("#/$defs/") if isinstance(node, dict) else ""
        if name in defs and "$ref" in node:
            if (name, tag) not in made:
                new = made[name, tag] = f"{name}_{tag}"
                defs[new] = {}  # recursion ends here
                defs[new] = tagged(walk(defs[name]), tag)
            return {**node, "$ref": f"#/$defs/{made[name, tag]}"}
        return tagged(walk(node), tag)

    def walk(node: Any) -> Any:
        if isinstance(node, list):
            return [walk(item) for item in node]
        if not isinstance(node, dict):
            return node
        tag = (
            node["discriminator"].get("propertyName") if isinstance(node.get("discriminator"), dict) else None
        )
        if isinstance(tag, str) and isinstance(node.get("oneOf"), list):
            return {**node, "oneOf": [variant(item, tag) for item in node["oneOf"]]}
        return {key: item if key in DATA else walk(item) for key, item in node.items() if key != "$defs"}

    if "'discriminator'" not in repr(schema):
        return schema
    root = walk(schema)
    plain = {name: walk(node) for name, node in schema.get("$defs", {}).items()}
    return {**root, "$defs": {**defs, **plain}} if defs else root


def tagged(node: Any, tag: str) -> Any:
    """One variant of a tagged union, its tag required."""
    properties = node.get("properties") if isinstance(node, dict) else None
    if not isinstance(properties, dict) or not isinstance(properties.get(tag), dict):
        return node
    field = {key: value for key, value in properties[tag].items() if key != "default"}
    required = dict.fromkeys((tag, *node.get("required", ())))
    return {**node, "properties": {**properties, tag: field}, "required": list(required)}
