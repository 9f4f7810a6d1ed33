"""Validation ends in bounded time, whatever a stranger's schema says: what a validator would do is counted before."""

from __future__ import annotations

import random
from typing import Any

import jsonschema_rs
import pytest

from tests.cases import each
from toolcrib.compiling.output import Output
from toolcrib.compiling.schema_params import SchemaParams
from toolcrib.schema import checks
from toolcrib.schema.validator import MOST_EXPLAINED, TooManyChecks, offline_validator

LEVELS = 90
NODE = {"$ref": "#/$defs/node"}


def chain(keyword: str, **leaf: Any) -> dict[str, Any]:
    """Definitions, each of which leads to the next one by two branches."""
    levels = {str(n): {keyword: [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(LEVELS)}
    definitions = {**levels, str(LEVELS): leaf or {"type": "integer"}}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/0"}}, "$defs": definitions}


def branching(*branches: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": NODE}, "$defs": {"node": {"anyOf": [*branches]}}, **more}


def nested(schema: Any, times: int, *, value: Any = None) -> Any:
    for _ in range(times):
        schema = {"a": schema} if value is None else value(schema)
    return schema


def unevaluated(inner: dict[str, Any]) -> dict[str, Any]:
    return {"allOf": [inner], "unevaluatedProperties": {"type": "integer"}}


DEEP = nested("x", LEVELS)
PUBLISHED = "https://json-schema.org/draft/2020-12/schema"

ENDLESS: dict[str, tuple[dict[str, Any], Any]] = {
    "two branches to one definition": (chain("anyOf"), {"a": "x"}),
    "all of them": (chain("allOf"), {"a": 1}),
    "what an `$id` beside a reference hides, which does not count in an older draft": (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "allOf": [{"$id": "http://other/", "$ref": "#/$defs/0", "$defs": {"0": {}}}],
            **chain("allOf"),
        },
        {"a": 1},
    ),
    "one of them": (chain("oneOf"), {"a": 1}),
    "another draft within": (
        {
            **chain("allOf"),
            "properties": {
                "a": {
                    "$schema": "http://json-schema.org/draft-07/schema#",
                    "$id": "http://x/",
                    "allOf": [{"$id": "http://y/", "$ref": "#/$defs/0", "$defs": {"0": {}}}],
                    "$defs": chain("allOf")["$defs"],
                }
            },
        },
        {"a": 1},
    ),
    "unevaluated members": ({"type": "object", **nested({}, LEVELS, value=unevaluated)}, {"a": "x"}),
    "a dynamic anchor": (
        {
            "$dynamicAnchor": "meta",
            "type": "object",
            "properties": {"a": {"anyOf": [{"$dynamicRef": "#meta"}, {"$dynamicRef": "#meta"}]}},
        },
        DEEP,
    ),
    "a published schema that leads back": (
        {"$dynamicAnchor": "meta", "type": "object", "allOf": [{"$ref": PUBLISHED}, {"$ref": PUBLISHED}]},
        {"properties": nested({}, LEVELS, value=lambda inner: {"a": {"properties": inner}})},
    ),
}

# Of a recursive definition the validator remembers what it said, so that only the description of failures has no end.
ENDLESS_TO_DESCRIBE: dict[str, tuple[dict[str, Any], Any]] = {
    "two branches to one member": (branching(*[{"properties": {"a": NODE}}] * 2), DEEP),
    "two branches to all members": (branching(*[{"additionalProperties": NODE}] * 2), DEEP),
    "a name and a pattern": (branching({"properties": {"a": NODE}, "patternProperties": {"^a": NODE}}), DEEP),
    "items in two ways": (
        branching({"items": NODE, "contains": NODE}),
        {"a": nested(1, LEVELS, value=lambda inner: [inner])},
    ),
    "what must not fit": (branching({"not": {"properties": {"a": NODE}}, "properties": {"a": NODE}}), DEEP),
    "what depends on a member": (
        branching({"dependentSchemas": {"a": {"properties": {"a": NODE}}}, "properties": {"a": NODE}}),
        DEEP,
    ),
    "an older draft": (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            **branching({"dependencies": {"a": {"properties": {"a": NODE}}}, "properties": {"a": NODE}}),
        },
        DEEP,
    ),
}


@each("schema, value", ENDLESS.values(), ENDLESS)
def test_a_check_that_would_not_end_is_not_begun(schema: dict[str, Any], value: Any) -> None:
    with pytest.raises(TooManyChecks):
        offline_validator(schema).is_valid(value)
    assert Output(Any, "bad", schema).misfit({}, "{}") is None


@each(
    "schema, value",
    [*ENDLESS.values(), *ENDLESS_TO_DESCRIBE.values()],
    [*ENDLESS, *ENDLESS_TO_DESCRIBE],
)
def test_a_description_of_failures_that_would_not_end_is_not_begun(
    schema: dict[str, Any], value: Any
) -> None:
    [error] = SchemaParams(schema, tool="bad").explain(ValueError(), value)
    assert "nested too deeply" in error.got


@each("schema, value", ENDLESS_TO_DESCRIBE.values(), ENDLESS_TO_DESCRIBE)
def test_of_a_recursive_definition_is_asked_once_for_each_part_of_a_value(
    schema: dict[str, Any], value: Any
) -> None:
    """This ends only because the validator remembers what it said; an older one would be asked for years."""
    offline_validator(schema).is_valid(value)


def test_a_result_that_would_not_end_to_be_checked_is_kept() -> None:
    schema, value = ENDLESS["two branches to one definition"]
    assert value == {"a": "x"}
    assert Output(Any, "bad", schema).misfit(value, '{"a": "x"}') is None


def test_a_large_result_that_does_not_fit_is_not_described_item_by_item() -> None:
    output = Output(Any, "rows", {"type": "array", "items": {"type": "integer"}})
    problem = output.misfit([], "[" + ",".join(['"x"'] * 100_000) + "]")
    assert problem is not None
    assert len(problem) < 200


LIST = {
    "type": "object",
    "properties": {
        "value": {"type": "string"},
        "next": {"anyOf": [{"$ref": "#/$defs/list"}, {"type": "null"}]},
    },
    "required": ["value"],
}
FILTER = {
    "anyOf": [
        {"type": "object", "properties": {word: {"type": "array", "items": {"$ref": "#/$defs/filter"}}}, "required": [word]}
        for word in ("and", "or", "not")
    ]
    + [{"type": "object", "properties": {"field": {"type": "string"}, "equals": {}}, "required": ["field"]}]
}  # fmt: skip
EXPRESSION = {
    "anyOf": [
        {
            "type": "object",
            "properties": {
                "op": {"const": op},
                "left": {"$ref": "#/$defs/e"},
                "right": {"$ref": "#/$defs/e"},
            },
            "required": ["op", "left", "right"],
        }
        for op in ("and", "or", "equal", "less", "more")
    ]
    + [{"type": "object", "properties": {"field": {"type": "string"}}, "required": ["field"]}]
}
FIELD = {"field": "x"}
USUAL: dict[str, tuple[dict[str, Any], Any]] = {
    "a linked list": (
        {"$ref": "#/$defs/list", "$defs": {"list": LIST}},
        nested({"value": "x"}, 100, value=lambda inner: {"value": "x", "next": inner}),
    ),
    "a filter of filters": (
        {"$ref": "#/$defs/filter", "$defs": {"filter": FILTER}},
        nested({"field": "x"}, 20, value=lambda inner: {"and": [{"field": "y"}, inner]}),
    ),
    "an expression, of which each kind has the same members": (
        {"$ref": "#/$defs/e", "$defs": {"e": EXPRESSION}},
        nested(FIELD, 50, value=lambda inner: {"op": "more", "left": FIELD, "right": inner}),
    ),
    "a tree of a megabyte": (
        {"$ref": "#/$defs/e", "$defs": {"e": EXPRESSION}},
        nested(FIELD, 14, value=lambda inner: {"op": "or", "left": inner, "right": inner}),
    ),
    "ten thousand rows": (
        {
            "type": "object",
            "properties": {"rows": {"items": {"$ref": "#/$defs/list"}}},
            "$defs": {"list": LIST},
        },
        {"rows": [{"value": "x"}] * 10_000},
    ),
    "a name that is an anchor, in an older draft": (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$id": "urn:example:root",
            "properties": {"a": {"$ref": "urn:example:root#name"}},
            "definitions": {"name": {"$id": "#name", "type": "string"}},
        },
        {"a": "x"},
    ),
    "a published schema": ({"$ref": PUBLISHED}, {"type": "object", "properties": {"a": {"type": "string"}}}),
}


@each("schema, value", USUAL.values(), USUAL)
def test_recursive_schemas_of_everyday_are_checked(schema: dict[str, Any], value: Any) -> None:
    assert offline_validator(schema).is_valid(value)


def test_no_less_is_counted_than_a_validator_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random schemas: an extra keyword, which each part has, counts how often the validator applies it."""
    monkeypatch.setattr(checks, "HARMLESS", 0)
    applied = 0

    class Counting:
        def __init__(self, *given: Any) -> None: ...

        def validate(self, value: Any) -> None:
            nonlocal applied
            applied += 1

    compared = 0
    for seed in range(400):
        chance = random.Random(seed)
        definitions = {name: _schema(chance, 2) for name in "xyz"}
        schema = {"allOf": [_schema(chance, 3), {"$ref": "#/$defs/x"}], "$defs": definitions}
        value, counted = _value(chance, 4), checks.Checks(schema)
        if counted.more_than(MOST_EXPLAINED, value):
            continue
        validator = jsonschema_rs.validator_for(schema, keywords={"counted": Counting})
        applied = 0
        validator.is_valid(value)
        assert not applied or counted.more_than(applied - 1, value), seed
        compared += applied > 2
    assert compared > 50


def _schema(chance: random.Random, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"counted": True}
    if depth <= 0 or chance.random() < 0.2:
        return schema | chance.choice([{"type": "integer"}, {"type": "object"}, {"type": "string"}, {}])
    for _ in range(chance.randint(1, 2)):
        keyword = chance.choice(KEYWORDS)
        if keyword in ("allOf", "anyOf", "oneOf", "prefixItems"):
            schema[keyword] = [_schema(chance, depth - 1) for _ in range(chance.randint(1, 3))]
        elif keyword in ("properties", "dependentSchemas", "patternProperties"):
            schema[keyword] = {name: _schema(chance, depth - 1) for name in chance.sample("abc", 2)}
        elif keyword == "if":
            schema |= {word: _schema(chance, depth - 1) for word in ("if", "then", "else")}
        elif keyword == "$ref":
            schema[keyword] = "#/$defs/" + chance.choice("xyz")
        else:
            schema[keyword] = _schema(chance, depth - 1)
    return schema


KEYWORDS = (
    *(
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "$ref",
        "$ref",
        "properties",
        "patternProperties",
        "propertyNames",
    ),
    *("additionalProperties", "unevaluatedProperties", "dependentSchemas"),
    *("items", "prefixItems", "contains", "unevaluatedItems"),
)


def _value(chance: random.Random, depth: int) -> Any:
    kind = chance.random()
    if depth <= 0 or kind < 0.3:
        return chance.choice([1, "s", None])
    if kind < 0.75:
        return {name: _value(chance, depth - 1) for name in chance.sample("abc", chance.randint(1, 3))}
    return [_value(chance, depth - 1) for _ in range(chance.randint(0, 3))]
