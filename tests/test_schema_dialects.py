"""Dialects: what each provider takes, written down a second time and independently of the tables."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.cases import each
from tests.properties import examples
from toolcrib.schema import DIALECTS, SchemaError, to_dialect

ALL = tuple(DIALECTS)


def words(text: str) -> set[str]:
    return set(text.split())


REFUSED_ANYWHERE: dict[str, set[str]] = {
    "openai": set(),
    "openai-strict": words(
        "allOf oneOf not if then else default minLength maxLength uniqueItems const patternProperties"
        " dependentRequired dependentSchemas contains prefixItems examples nullable"
    ),
    "anthropic": set(),
    "anthropic-strict": words(
        "allOf oneOf not if then else minLength maxLength maxItems uniqueItems $ref $defs minimum maximum"
        " exclusiveMinimum exclusiveMaximum multipleOf patternProperties"
    ),
    "gemini": words(
        "$ref $defs additionalProperties patternProperties minLength maxLength pattern const oneOf allOf not"
        " if format exclusiveMinimum prefixItems uniqueItems examples"
    ),
    "bedrock": words("$ref $defs not if"),
    "mistral": set(),
    "ollama": words("$ref $defs oneOf allOf default pattern minimum additionalProperties"),
    "conservative": words("$ref $defs additionalProperties not if"),
}
STRICT_FORMATS = words("date-time time date duration email hostname ipv4 ipv6 uuid")
NODE = {"items", "not", "if", "then", "else", "contains", "propertyNames", "additionalProperties"}
NODES = {"anyOf", "oneOf", "allOf", "prefixItems"}
NAMED = {"properties", "patternProperties", "$defs", "dependentSchemas"}


def nodes(schema: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    if not isinstance(schema, dict):
        return []
    found = [(path, schema)]
    for key, value in schema.items():
        if key in NODE:
            found += nodes(value, f"{path}/{key}")
        elif key in NODES:
            for index, item in enumerate(value):
                found += nodes(item, f"{path}/{key}/{index}")
        elif key in NAMED:
            for name, item in value.items():
                found += nodes(item, f"{path}/{key}/{name}")
    return found


def violations(schema: dict[str, Any], dialect: str) -> list[str]:
    """What the provider would answer with a 400, or silently not read."""
    found: list[str] = []
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        found.append("the root is not an object")
    found += [
        f"{key} at the root" for key in ("anyOf", "oneOf", "allOf", "enum", "const", "not") if key in schema
    ]
    if dialect == "bedrock" and not {"type", "properties", "required"}.issuperset(schema):
        found.append("more than type, properties, required at the root")
    for path, node in nodes(schema):
        found += [f"{path}: {key}" for key in node if key in REFUSED_ANYWHERE[dialect]]
        found += [f"{path}: {problem}" for problem in _problems(node, dialect)]
        if "$ref" in node and not _resolves(node["$ref"], schema):
            found.append(f"{path}: dangling {node['$ref']}")
    return found


def _problems(node: dict[str, Any], dialect: str) -> list[str]:
    found: list[str] = []
    types = node.get("type", [])
    types = [types] if isinstance(types, str) else types
    if "object" in types:
        if not isinstance(node.get("properties"), dict):
            found.append("object without properties")
        elif not set(node.get("required", ())) <= set(node["properties"]):
            found.append("required names that are no properties")
    if "array" in types and "items" not in node and dialect not in ("anthropic", "anthropic-strict"):
        found.append("array without items")
    if dialect.endswith("-strict") and "object" in types and node.get("additionalProperties") is not False:
        found.append("open object")
    if dialect == "openai-strict":
        if "object" in types and sorted(node.get("required", ())) != sorted(node.get("properties", {})):
            found.append("optional property")
        if "$ref" in node and len(node) > 1:
            found.append("keywords beside $ref")
    if dialect.endswith("-strict"):
        if "format" in node and node["format"] not in STRICT_FORMATS | {"uri"}:
            found.append(f"format {node['format']}")
        if re.search(r"\(\?<?[=!]", node.get("pattern", "")):
            found.append("look-around")
        if not {"type", "anyOf", "$ref"} & node.keys():
            found.append("no type")
    if dialect == "anthropic-strict" and node.get("minItems", 0) > 1:
        found.append("minItems over 1")
    if dialect == "gemini":
        if isinstance(node.get("type"), list) or node.get("type") == "null":
            found.append("a list of types, or null")
        if not {"type", "anyOf"} & node.keys():
            found.append("no type")
        if any(not isinstance(value, str) for value in node.get("enum", ())):
            found.append("enum of other than strings")
        if "anyOf" in node and not {"anyOf", "description", "nullable", "default"}.issuperset(node):
            found.append("constraints beside anyOf")
    if node.get("enum") == [] and dialect not in ("anthropic", "mistral", "bedrock", "conservative"):
        found.append("empty enum")
    if dialect.startswith("openai") and len(node.get("enum", ())) > 1_000:
        found.append("enum of over 1000 values")
    return found


def _resolves(ref: str, root: dict[str, Any]) -> bool:
    return ref == "#" or ref.removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~") in root.get(
        "$defs", {}
    )


def of(schema: dict[str, Any], dialect: str, required: bool = True) -> dict[str, Any]:
    """The schema as one field `v` of a tool's input, in a dialect."""
    root = {"type": "object", "properties": {"v": schema}, **({"required": ["v"]} if required else {})}
    out = to_dialect(root, dialect)[0]
    assert not violations(out, dialect), (dialect, out)
    return out["properties"]["v"]


SCALARS_OF_GEMINI = [
    {"type": "string"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "object", "properties": {}},
]
ANY_OF_GEMINI: dict[str, Any] = {
    "nullable": True,
    "anyOf": [
        *SCALARS_OF_GEMINI,
        {"type": "array", "items": {"nullable": True, "anyOf": SCALARS_OF_GEMINI}},
    ],
}

REWRITTEN: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("openai", {"type": "string", "minLength": 3}, {"type": "string", "minLength": 3}),
    ("openai-strict", {"type": "string", "minLength": 3},
     {"type": "string", "description": "At least 3 characters."}),
    ("gemini", {"type": "string", "pattern": "^a+$", "description": "Letters"},
     {"type": "string", "description": "Letters. Matches ^a+$."}),
    ("gemini", {"type": ["string", "null"]}, {"type": "string", "nullable": True}),
    ("gemini", {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
     {"nullable": True, "anyOf": [{"type": "string"}, {"type": "integer"}]}),
    ("gemini", {"type": ["string", "integer"], "minimum": 1},
     {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 1}]}),
    ("gemini", {"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}),
    ("gemini", {"type": "number", "exclusiveMinimum": 0}, {"type": "number", "description": "Greater than 0."}),
    ("gemini", {"type": "integer", "enum": [1, 2]}, {"type": "integer", "description": "One of 1, 2."}),
    ("gemini", {"const": "a"}, {"type": "string", "enum": ["a"]}),
    ("gemini", {"type": "string", "enum": ["a", None], "nullable": True},
     {"type": "string", "nullable": True, "enum": ["a"]}),
    ("gemini", {"type": "object", "additionalProperties": {"type": "integer"}},
     {"type": "object", "description": "Other keys hold: integer.", "properties": {}}),
    ("bedrock", {"type": "object", "patternProperties": {"^n": {"type": "integer"}, "^s": {"type": "string"}},
                 "additionalProperties": False},
     {"type": "object",
      "description": "Keys matching ^n hold: integer. Keys matching ^s hold: string. No other keys.",
      "properties": {}, "additionalProperties": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}),
    ("bedrock", {"type": "object", "patternProperties": {"^n": {"type": "integer"}}},
     {"type": "object", "description": "Keys matching ^n hold: integer.", "properties": {}}),
    ("bedrock", {"oneOf": [{"const": 1}, {"type": "integer", "not": {"const": 2}}]},
     {"anyOf": [{"enum": [1]}, {"type": "integer", "description": "Not {\"const\": 2}."}]}),
    ("openai", {"prefixItems": [{"type": "string"}], "items": False},
     {"type": "array", "prefixItems": [{"type": "string"}], "items": {}, "maxItems": 1}),
    ("gemini", {"type": "string", "items": {"type": "string"}}, {"type": "string"}),
    ("gemini", {"format": "money"}, {**ANY_OF_GEMINI, "description": "Format: money."}),
    ("gemini", {"type": "array", "prefixItems": [{"type": "string"}]},
     {"type": "array", "description": "In this order: string.", "items": ANY_OF_GEMINI}),
    ("gemini", {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "items": False},
     {"type": "array", "description": "In this order: string, number.",
      "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}, "maxItems": 2}),
    ("gemini", {"oneOf": [{"type": "string"}, {"type": "boolean"}]},
     {"anyOf": [{"type": "string"}, {"type": "boolean"}]}),
    ("anthropic", {"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^a"}),
    ("anthropic-strict", {"type": "array", "items": {"type": "string"}, "minItems": 2},
     {"type": "array", "description": "At least 2 items.", "items": {"type": "string"}}),
    ("anthropic-strict", {"type": "integer", "minimum": 1, "maximum": 9},
     {"type": "integer", "description": "At least 1. At most 9."}),
    ("openai-strict", {"type": "string", "pattern": "^(?!x)"},
     {"type": "string", "description": "Matches ^(?!x)."}),
    ("openai-strict", {"type": "string", "format": "uri"}, {"type": "string", "description": "Format: uri."}),
    ("ollama", {"type": "integer", "default": 3}, {"type": "integer", "description": "Default: 3."}),
    ("conservative", {"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^a"}),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "schema", "expected"), REWRITTEN)
def test_what_is_refused_becomes_the_nearest_that_is_taken(
    dialect: str, schema: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert of(schema, dialect) == expected


@pytest.mark.parametrize("dialect", ALL)
def test_what_is_dropped_is_told_and_listed(dialect: str) -> None:
    schema = {"type": "object", "properties": {"v": {"type": "string", "minLength": 3, "pattern": "^a+$"}}}
    out, losses = to_dialect(schema, dialect)
    field = out["properties"]["v"]
    for keyword, words in (("minLength", "At least 3 characters."), ("pattern", "Matches ^a+$.")):
        if keyword not in field:
            assert words in field["description"]
            assert [(loss.path, loss.detail) for loss in losses if loss.keyword == keyword] == [
                ("/properties/v", words)
            ]


@each("dialect", ALL)
@each(
    "schema",
    [
        {"type": ["string", "null"]},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"oneOf": [{"type": "object", "properties": {"a": {"type": "integer"}}}, {"type": "null"}]},
        {"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {}}, {"type": "null"}]},
        {"type": "string", "nullable": True},
        {"type": ["string", "null"], "enum": ["a", None]},
        {"enum": ["a", None]},
        {"allOf": [{"type": ["integer", "null"]}, {"type": ["integer", "null"], "minimum": 1}]},
    ],
)
def test_nullability_is_never_lost(dialect: str, schema: dict[str, Any]) -> None:
    assert "null" in json.dumps(of(schema, dialect))


def test_strict_objects_are_closed_and_optional_fields_become_nullable() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "default": "x"},
            "b": {"type": "integer"},
            "c": {"enum": ["p", "q"]},
        },
        "required": ["b"],
    }
    out, _ = to_dialect(schema, "openai-strict")
    assert out == {
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"], "description": 'Default: "x".'},
            "b": {"type": "integer"},
            "c": {"type": ["string", "null"], "enum": ["p", "q", None]},
        },
        "required": ["a", "b", "c"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("dialect", ["openai-strict", "anthropic-strict"])
def test_a_map_cannot_be_strict_and_says_so(dialect: str) -> None:
    schema = {
        "type": "object",
        "properties": {"m": {"type": "object", "additionalProperties": {"type": "string"}}},
    }
    out, losses = to_dialect(schema, dialect)
    assert "JSON object, written as text" in out["properties"]["m"]["description"]
    assert [loss.path for loss in losses if loss.keyword == "additionalProperties"] == ["/properties/m"]


TEXT = {"type": "string"}
TREE = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/Node", "description": "The tree"}},
    "required": ["tree"],
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            },
            "required": ["name"],
        }
    },
}


@pytest.mark.parametrize("dialect", ALL)
def test_recursion_stays_a_reference_or_ends_at_a_finite_depth(dialect: str) -> None:
    out, losses = to_dialect(TREE, dialect)
    assert not violations(out, dialect)
    text = json.dumps(out)
    if "$ref" in text:
        assert list(out["$defs"]) == ["Node"]
    else:
        assert "Nested further in the same way." in text
        assert (
            [loss.keyword for loss in losses] == ["$ref"]
            or "strict" in dialect
            or dialect in ("gemini", "ollama")
        )
    assert "The tree" in text


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [
            {"type": "object", "properties": {"kind": {"const": "a"}, "x": TEXT}, "required": ["kind"]},
            {"type": "object", "properties": {"kind": {"const": "b"}, "y": TEXT}, "required": ["kind"]},
        ]},
        {"allOf": [{"type": "object", "properties": {"kind": {"enum": ["a", "b"]}}, "required": ["kind"]},
                   {"$ref": "#/$defs/X"}],
         "$defs": {"X": {"type": "object", "properties": {"x": {"type": "string"}}}}},
    ],
)  # fmt: skip
def test_a_union_at_the_root_becomes_one_object(dialect: str, schema: dict[str, Any]) -> None:
    out, _ = to_dialect(schema, dialect)
    assert not violations(out, dialect)
    assert out["properties"]["kind"]["enum"] == ["a", "b"]
    assert "x" in out["properties"]
    assert "kind" in out["required"]


@pytest.mark.parametrize("dialect", ALL)
def test_a_root_that_is_no_object_is_wrapped(dialect: str) -> None:
    out, losses = to_dialect({"type": "string"}, dialect)
    assert not violations(out, dialect)
    assert out["properties"] == {"value": {"type": "string"}}
    assert "value" in losses[0].detail


def test_alternatives_that_only_demand_fields_are_told() -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "name": {"type": "string"}},
        "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
    }
    out, losses = to_dialect(schema, "anthropic")
    assert out["description"] == "Send at least one of these sets of fields: id; name."
    assert [loss.keyword for loss in losses] == ["anyOf"]


def test_an_unresolvable_reference_is_a_loss() -> None:
    out, losses = to_dialect(
        {"type": "object", "properties": {"a": {"$ref": "#/nowhere", "description": "A"}}}, "openai"
    )
    assert out["properties"]["a"] == {"description": "A"}
    assert [(loss.path, loss.keyword) for loss in losses] == [("/properties/a", "$ref")]


def test_an_unknown_dialect_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'gpt'.*openai-strict.*gemini"):
        to_dialect({}, "gpt")
    with pytest.raises(SchemaError):
        to_dialect([], "openai")  # type: ignore[arg-type]


def test_an_object_that_stands_there_twice_is_written_once_where_references_are_taken() -> None:
    names = ("street", "city", "country")
    address = {
        "type": "object",
        "properties": {name: {"type": "string", "minLength": 2} for name in names},
        "required": list(names),
    }
    schema = {
        "type": "object",
        "properties": {
            "from": {**address, "description": "Where it comes from."},
            "to": {**address, "description": "Where it goes."},
            "stops": {"type": "array", "items": address},
            "address": {"type": "string"},
        },
    }
    for dialect in ("openai", "anthropic", "mistral"):
        out, losses = to_dialect(schema, dialect)
        assert losses == []
        assert out["properties"]["from"] == {"$ref": "#/$defs/from", "description": "Where it comes from."}
        assert out["properties"]["to"] == {"$ref": "#/$defs/from", "description": "Where it goes."}
        assert out["properties"]["stops"]["items"] == {"$ref": "#/$defs/from"}
        assert out["$defs"] == {"from": address}
    for dialect in {*ALL} - {
        "openai",
        "anthropic",
        "mistral",
    }:  # no references, or no description beside them
        assert "$ref" not in json.dumps(to_dialect(schema, dialect)[0]), dialect


def test_a_schema_that_is_fine_already_is_left_alone() -> None:
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "File path"}, "deep": {"type": "boolean"}},
        "required": ["path"],
    }
    for dialect in ("openai", "anthropic", "gemini", "bedrock", "mistral", "ollama", "conservative"):
        assert to_dialect(schema, dialect) == (schema, [])


# -- anything at all ------------------------------------------------------------------------------------

SCALARS = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["a", "object", "#/$defs/A", "#", ""])
)
WORDS = st.sampled_from(
    sorted(
        words(
            "type properties required items anyOf oneOf allOf $ref $defs enum const default nullable not if"
            " then minLength minimum exclusiveMinimum pattern format additionalProperties prefixItems"
            " description title definitions examples dependencies $id $anchor A b"
        )
    )
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=20,
)
LIKELY = st.deferred(
    lambda: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(
                ["object", "array", "string", "integer", "null", ["string", "null"], ["object", "array"]]
            ),
            "properties": st.dictionaries(st.sampled_from(["a", "b", "title"]), LIKELY, max_size=2),
            "required": st.lists(st.sampled_from(["a", "b", "c"]), max_size=2),
            "items": LIKELY,
            "anyOf": st.lists(LIKELY, min_size=1, max_size=2),
            "oneOf": st.lists(LIKELY, min_size=1, max_size=2),
            "allOf": st.lists(LIKELY, min_size=1, max_size=2),
            "enum": st.lists(SCALARS, max_size=3),
            "const": SCALARS,
            "minLength": st.integers(0, 3),
            "additionalProperties": st.booleans() | LIKELY,
            "$ref": st.sampled_from(["#", "#/$defs/A", "#/properties/a", "#/nowhere"]),
            "$defs": st.dictionaries(st.just("A"), LIKELY, max_size=1),
        },
    )
)  # fmt: skip


@examples(200)
@given(st.dictionaries(WORDS, ANYTHING, max_size=6) | LIKELY)
@example({"type": "null", "$ref": "#"})
@example({"type": "object", "anyOf": [{"type": "array"}]})
@example({"properties": {}, "oneOf": [{"const": True}, {"const": True}]})
@example({"type": ["string", "null"], "required": ["a"], "anyOf": [{"minLength": 1}, {"maxLength": 1}]})
@example({"prefixItems": [None], "enum": [False, 0]})
def test_any_object_at_all_has_a_lawful_form_in_every_dialect(schema: dict[str, Any]) -> None:
    before = copy.deepcopy(schema)
    for dialect in ALL:
        out, losses = to_dialect(schema, dialect)
        assert not violations(out, dialect), (dialect, out)
        assert to_dialect(schema, dialect) == (out, losses)
        json.dumps(out)
    assert schema == before


def test_every_process_says_the_same_in_the_same_order() -> None:
    link = {
        "$ref": "#",
        "minProperties": 1,
        "maxProperties": 9,
        "patternProperties": {"x": {}},
        "propertyNames": {},
    }
    schema = {"type": "object", "properties": {"next": {**link, "deprecated": True, "readOnly": True}}}
    program = (
        "import json, sys; from toolcrib.schema import DIALECTS, to_dialect\n"
        "for name in DIALECTS: print(json.dumps(to_dialect(json.loads(sys.argv[1]), name), default=str))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program, json.dumps(schema)],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in range(4)
    }
    assert len(said) == 1
