"""The canonical form: what is stripped, resolved, shortened, and what passes untouched."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.growth import growth
from tests.properties import examples
from toolcrib.schema import SchemaError, clean

OBJECT = {"type": "object", "properties": {}}
INTEGER = {"type": "integer"}


def field(schema: Any, **root: Any) -> dict[str, Any]:
    """The canonical form of a schema that stands as the optional field `v` of an object."""
    return clean({"type": "object", "properties": {"v": schema}, **root})["properties"]["v"]


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "noise": (
        {"$schema": "x", "title": "T", "type": "integer", "format": "int64", "description": "d"},
        {"type": "integer", "description": "d"},
    ),
    "objects have properties": ({"type": ["object", "null"]}, {"type": ["object", "null"], "properties": {}}),
    "keywords in one order": ({"minLength": 1, "description": "d", "type": "string"},
                              {"type": "string", "description": "d", "minLength": 1}),
    "optional": ({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "description": "d"},
                 {"type": ["string", "null"], "description": "d"}),
    "optional choice": ({"anyOf": [{"enum": ["a", "b"], "type": "string"}, {"type": "null"}]},
                        {"type": ["string", "null"], "enum": ["a", "b", None]}),
    "constants": ({"anyOf": [{"const": "a"}, {"const": "b"}, {"type": "null"}]}, {"enum": ["a", "b", None]}),
    "single variant": ({"oneOf": [{"type": "string"}], "description": "d"},
                       {"type": "string", "description": "d"}),
    "single allOf": ({"allOf": [{"type": "string", "description": "inner"}], "description": "outer"},
                     {"type": "string", "description": "outer"}),
    "anything or null": ({"anyOf": [{}, {"type": "null"}], "description": "d"}, {"description": "d"}),
    "discriminator": (
        {"oneOf": [OBJECT, {"type": "array"}], "discriminator": {"propertyName": "k"}},
        {"oneOf": [OBJECT, {"type": "array"}]},
    ),
    "empty required": ({"type": "object", "required": []}, OBJECT),
    "OpenAPI null": ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    "boolean schemas": ({"type": "array", "items": True}, {"type": "array", "items": {}}),
    "draft 4 bounds": ({"type": "integer", "minimum": 1, "exclusiveMinimum": True},
                       {"type": "integer", "exclusiveMinimum": 1}),
    "draft 7 tuples": ({"type": "array", "items": [INTEGER], "additionalItems": False},
                       {"type": "array", "prefixItems": [INTEGER], "items": False}),
    "draft 7 dependencies": ({"dependencies": {"a": ["b"], "c": {"type": "object"}}},
                             {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": OBJECT}}),
    "Python's type names": ({"type": "dict"}, OBJECT),
    "lengths without end": ({"type": "string", "minLength": float("inf"), "maxLength": float("nan")},
                            {"type": "string"}),
    "nonsense": ({"type": 5, "properties": [], "enum": "x", "minLength": -1, "anyOf": []}, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_node_is_brought_to_its_canonical_form(name: str) -> None:
    schema, expected = CASES[name]
    assert json.dumps(field(schema)) == json.dumps(expected)


UNTOUCHED: list[dict[str, Any]] = [
    {"default": {"$ref": "#/x", "title": "t", "anyOf": [{"type": "null"}]}},
    {"enum": [{"title": "a", "$ref": "#"}, "format"]},
    {"const": {"title": "a", "required": []}},
    {"examples": [{"$ref": "#/$defs/A", "title": 1}]},
]


@pytest.mark.parametrize("schema", UNTOUCHED)
def test_data_is_not_schema(schema: dict[str, Any]) -> None:
    assert field(schema) == schema


@pytest.mark.parametrize(
    "name", ["title", "format", "$ref", "properties", "required", "$defs", "definitions", "id"]
)
def test_a_parameter_may_be_named_like_a_keyword(name: str) -> None:
    schema = {"type": "object", "properties": {name: {"type": "string", "title": "T"}}, "required": [name]}
    assert clean(schema) == {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


REFERENCES: dict[str, tuple[dict[str, Any], str]] = {
    "root $defs": ({"$defs": {"A": INTEGER}}, "#/$defs/A"),
    "definitions": ({"definitions": {"A": INTEGER}}, "#/definitions/A"),
    "escaped": ({"$defs": {"a/b~c": INTEGER}}, "#/$defs/a~1b~0c"),
    "percent encoded": ({"$defs": {"a b": INTEGER}}, "#/%24defs/a%20b"),
    "through properties": ({"$defs": {"A": {"properties": {"x": INTEGER}}}}, "#/$defs/A/properties/x"),
    "nested $defs": ({"$defs": {"A": {"$defs": {"B": INTEGER}}}}, "#/$defs/A/$defs/B"),
    "into a list": ({"$defs": {"A": {"anyOf": [{"type": "string"}, INTEGER]}}}, "#/$defs/A/anyOf/1"),
    "anchor": ({"$defs": {"A": {"$anchor": "here", "type": "integer"}}}, "#here"),
    "draft 7 anchor": ({"definitions": {"A": {"$id": "#here", "type": "integer"}}}, "#here"),
    "$id": (
        {"$id": "https://a.example/root.json", "$defs": {"A": {"$id": "int.json", "type": "integer"}}},
        "int.json",
    ),
    "OpenAPI": ({"components": {"schemas": {"A": INTEGER}}}, "#/components/schemas/A"),
    "two steps": ({"$defs": {"A": {"$ref": "#/$defs/B"}, "B": INTEGER}}, "#/$defs/A"),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_a_reference_is_inlined_wherever_it_points(name: str) -> None:
    root, ref = REFERENCES[name]
    assert field({"$ref": ref, "description": "d"}, **root) == {"type": "integer", "description": "d"}


def test_siblings_of_a_reference_are_merged() -> None:
    definition = {"type": "string", "enum": ["a", "b", "c"], "description": "type text", "minLength": 1}
    beside = {
        "$ref": "#/$defs/M",
        "description": "field text",
        "default": "a",
        "minLength": 2,
        "enum": ["a", "b"],
    }
    assert field(beside, **{"$defs": {"M": definition}}) == {
        "type": "string", "description": "field text", "enum": ["a", "b"], "default": "a", "minLength": 2,
    }  # fmt: skip


def test_siblings_that_cannot_be_merged_stay_beside() -> None:
    closed = {"type": "object", "properties": {"a": INTEGER}, "additionalProperties": False}
    beside = {"$ref": "#/$defs/C", "properties": {"b": INTEGER}}
    assert field(beside, **{"$defs": {"C": closed}}) == {"properties": {"b": INTEGER}, "allOf": [closed]}


@pytest.mark.parametrize("ref", ["https://example.com/x.json", "#/$defs/no", "#/allOf/" + "9" * 5_000])
def test_an_unresolvable_reference_leaves_its_siblings(ref: str) -> None:
    assert field({"$ref": ref, "description": "d", "minLength": 2}, allOf=[{}]) == {
        "description": "d", "minLength": 2,
    }  # fmt: skip


def test_only_recursive_definitions_stay() -> None:
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/Node"}, "tag": {"$ref": "#/$defs/Tag"}},
    }
    defs = {"Node": node, "Tag": {"type": "string"}, "Unused": INTEGER}
    assert clean({"type": "object", "properties": {"a": {"$ref": "#/$defs/Node"}}, "$defs": defs}) == {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/Node"}},
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {"next": {"$ref": "#/$defs/Node"}, "tag": {"type": "string"}},
            }
        },
    }


def test_a_recursive_root_is_an_object_that_refers_to_itself() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    assert clean({"$ref": "#/$defs/Node", "$defs": {"Node": node}}) == {
        "type": "object",
        "properties": {"next": {"$ref": "#"}},
    }


@pytest.mark.parametrize("ref", ["#/$defs/A", "#/properties/v"])
def test_a_definition_of_nothing_but_itself_says_nothing(ref: str) -> None:
    defs = {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}
    assert clean({"type": "object", "properties": {"v": {"$ref": ref}}, "$defs": defs}) == {
        "type": "object",
        "properties": {"v": {}},
    }


@pytest.mark.parametrize("root", [[], "x", None, True, 3])
def test_a_schema_is_an_object(root: Any) -> None:
    with pytest.raises(SchemaError, match="must be an object"):
        clean(root)


# -- size -----------------------------------------------------------------------------------------------


def doubling(levels: int) -> dict[str, Any]:
    """Each level refers twice to the next: 2 to the power of `levels` when written out."""
    level = {
        f"L{n}": {
            "type": "object",
            "properties": {side: {"$ref": f"#/$defs/L{n + 1}"} for side in ("l", "r")},
        }
        for n in range(levels)
    }
    defs = {**level, f"L{levels}": {"type": "string"}}
    return {"type": "object", "properties": {"top": {"$ref": "#/$defs/L0"}}, "$defs": defs}


def test_small_shared_graphs_are_written_out() -> None:
    assert "$ref" not in json.dumps(clean(doubling(6)))


def test_large_shared_graphs_stay_bounded() -> None:
    out = clean(doubling(60))
    assert len(json.dumps(out)) < 500_000
    assert clean(out) == out


def chain(length: int) -> dict[str, Any]:
    defs = {f"L{n}": {"type": "array", "items": {"$ref": f"#/$defs/L{n + 1}"}} for n in range(length)}
    every = {f"p{n}": {"$ref": f"#/$defs/L{length - n}"} for n in range(length)}
    return {"type": "object", "properties": every, "$defs": {**defs, f"L{length}": {"type": "string"}}}


def test_long_chains_of_references_are_handled() -> None:
    out = clean(chain(500))
    assert clean(out) == out


def test_very_deep_nesting_ends_somewhere() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"type": "array", "items": deep}
    out = clean(deep)
    assert json.dumps(out).count("items") < 200


def wide(fields: int) -> dict[str, Any]:
    row = {
        "type": "object",
        "title": "Row",
        "properties": {"a": {"type": "string", "title": "A"}, "b": {"anyOf": [INTEGER, {"type": "null"}]}},
    }
    return {"type": "object", "properties": {f"f{n}": copy.deepcopy(row) for n in range(fields)}}


@pytest.mark.slow
def test_time_grows_with_the_schema_and_no_faster() -> None:
    def cleaning(fields: int) -> Callable[[], object]:
        schema = wide(fields)
        return lambda: clean(schema)

    assert growth(cleaning, 200, 2_000, 40) < 40


# -- any schema -----------------------------------------------------------------------------------------

KEYWORDS = (
    "type properties items anyOf oneOf allOf $ref $defs A enum const required default nullable"
    " additionalProperties not dependencies $id"
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["a", "null", "object", "#", "#/$defs/A"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS.split()), inner, max_size=4)
    ),
    max_leaves=25,
)


@examples(200)
@given(
    st.dictionaries(st.sampled_from(["type", "properties", "$defs", "anyOf", "allOf", "$ref", "items"]), JSON)
)
@example(
    {"properties": {"x": {"$ref": "#a"}, "y": True}}
)  # an anchor is looked for, also where no object stands
def test_cleaning_never_fails_never_changes_its_input_and_is_done_once(schema: dict[str, Any]) -> None:
    before = copy.deepcopy(schema)
    once = clean(schema)
    assert schema == before
    assert json.dumps(clean(once)) == json.dumps(once)


def test_a_nullable_reference_is_resolved_and_stays_nullable() -> None:
    out = field(
        {"$ref": "#/components/A", "nullable": True}, components={"A": {"type": "string", "title": "A"}}
    )
    assert out == {"type": ["string", "null"]}


@pytest.mark.parametrize("ref", ["", "#", "//[", "http://[", "#/%", "a b", "#/$defs/~", "#//", "0"])
def test_a_strange_reference_is_no_reason_to_fail(ref: str) -> None:
    assert isinstance(clean({"$id": "//[", "properties": {"a": {"$ref": ref}}, "$defs": {"": {}}}), dict)


def test_an_optional_union_is_one_union() -> None:
    tagged = [
        {"type": "object", "properties": {"k": {"const": name}}, "required": ["k"]} for name in ("a", "b")
    ]
    null = {"type": "null"}
    assert field({"anyOf": [{"oneOf": tagged, "discriminator": {"propertyName": "k"}}, null]}) == {
        "oneOf": [*tagged, null]
    }
    assert field({"anyOf": [{"anyOf": tagged}, null]}) == {"anyOf": [*tagged, null]}
