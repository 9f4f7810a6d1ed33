"""Recorded schema behaviours of other systems, against our canonical form and dialects.

Where we mean to differ, `DELIBERATE` says how and why; the comparison knows those differences as rules, so
that cases which nobody has seen yet are judged in the same way.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.conftest import load_cases
from tests.test_schema_dialects import nodes, violations
from toolcrib.schema import SchemaError, clean, lint, to_dialect, to_markdown

DELIBERATE = {
    "null": "nullability is never lost: `nullable`, or null among the types; upstream drops it",
    "$ref": "inlining wins: a reference stays only where there is recursion, and then with its definition",
    "$defs": "no definitions stay that nothing refers to",
    "recursion": "where upstream ends in {}, we keep a reference or write the type out to a finite depth",
    "type": "what needs a type gets one; a type that the author wrote beside a union stays",
    "siblings": "what stands beside a reference is kept, also beside one that leads nowhere",
    "description": "what had to be dropped is said there",
    "allOf": "members that can be joined are joined where the provider takes no allOf",
    "const": "clean keeps `const` and joins bare constants into one `enum`",
    "bounds": "gemini takes numeric and item bounds today",
    "oneOf": "read as anyOf by providers that know only that",
    "tuples": "draft 7's list in `items` is 2020-12's `prefixItems`",
    "items": "an array of anything stays an array of anything, not of strings",
    "nothing": "keywords that a provider takes stay; upstream's allow-list drops them",
    "null default": "dropped: leaving an optional parameter out means the same",
}
NULL = {"type": "null"}
BARE = {"const", "enum", "type"}


def essence(node: Any) -> Any:
    """A node without what `DELIBERATE` says that we do differently everywhere."""
    if not isinstance(node, dict):
        return node
    out = {k: v for k, v in node.items() if k not in ("$defs", "definitions", "nullable", "title", "$schema")}
    if "oneOf" in out and "anyOf" not in out:
        out["anyOf"] = out.pop("oneOf")
    if "const" in out:
        out["enum"] = [out.pop("const")]
    if isinstance(out.get("type"), list):
        types = [name for name in out["type"] if name != "null"]
        out["type"] = types[0] if len(types) == 1 else types
    if isinstance(out.get("enum"), list):
        out["enum"] = [value for value in out["enum"] if value is not None]
    if isinstance(out.get("anyOf"), list):
        variants = [variant for variant in out["anyOf"] if variant != NULL]
        if len(variants) == 1:
            out = {**variants[0], **{k: v for k, v in out.items() if k != "anyOf"}}
            return essence(out)
        out["anyOf"] = variants
        out.pop("type", None)
        if all(isinstance(v, dict) and v and set(v) <= BARE and v.keys() != {"type"} for v in variants):
            del out["anyOf"]
            out["enum"] = [x for v in variants for x in v.get("enum", [v.get("const")])]
    if isinstance(out.get("items"), list):
        out["prefixItems"] = out.pop("items")
    if out.get("default", 0) is None:
        del out["default"]
    return out


def missing(expected: Any, ours: Any, path: str = "$") -> Iterator[str]:
    """What the recorded result says and ours does not, but for the deliberate differences."""
    expected, ours = essence(expected), essence(ours)
    if not isinstance(expected, dict) or not isinstance(ours, dict):
        if expected != ours:
            yield f"{path}: {expected!r} became {ours!r}"
        return
    if (
        not expected
        or "$ref" in expected
        or "$ref" in ours
        or ours.get("description", "").startswith("Nested ")
    ):
        return
    for key, value in expected.items():
        at = f"{path}.{key}"
        if key == "allOf" and "allOf" not in ours:
            continue
        if key == "description":
            if not ours.get(key, "").startswith(value):
                yield f"{at}: {value!r} became {ours.get(key)!r}"
        elif (key == "items" and value == {"type": "string"} and ours.get(key) == {}) or (
            key == "type" and key not in ours and ("enum" in ours or "anyOf" in ours or path == "$")
        ):
            continue
        elif key not in ours:
            if value not in ({}, []):
                yield f"{at} is missing"
        elif key in ("properties", "patternProperties", "dependentSchemas"):
            for name, child in value.items():
                yield from missing(child, ours[key].get(name), f"{at}.{name}")
        elif key in ("anyOf", "allOf", "prefixItems") and isinstance(value, list):
            for index, child in enumerate(value):
                other = ours[key][index] if index < len(ours[key]) else None
                yield from missing(child, other, f"{at}[{index}]")
        elif key == "default":
            if json.dumps(value) != json.dumps(ours[key]):
                yield f"{at}: data was changed"
        elif isinstance(value, dict):
            yield from missing(value, ours[key], at)
        elif value != ours[key]:
            yield f"{at}: {value!r} became {ours[key]!r}"


def in_dialect(schema: Any, dialect: str) -> tuple[Any, dict[str, Any]]:
    """A case's schema in a dialect; one that is no plain object is tried as a field of one."""
    plain = schema.get("type") == "object" or (
        schema.get("type") is None and not {"anyOf", "oneOf"} & schema.keys()
    )
    plain = plain and not {"anyOf", "oneOf", "not", "enum", "const", "$ref", "allOf"} & schema.keys()
    if plain and ("properties" in schema or schema.get("type") == "object"):
        out = to_dialect(schema, dialect)[0]
        return out, out
    definitions = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    inner = {key: value for key, value in schema.items() if key not in definitions}
    root = {"type": "object", "properties": {"v": inner}, "required": ["v"], **definitions}
    out = to_dialect(root, dialect)[0]
    return out["properties"]["v"], out


def cases(relative: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in load_cases(f"cases/{relative}.json")]


# Keywords that upstream's strategy keeps and the provider does not take today, or takes only as other words.
TOLD_INSTEAD = {
    "gemini": {"format", "oneOf", "not", "if", "exclusiveMinimum", "exclusiveMaximum", "patternProperties"},
    "conservative": {"not", "if", "examples", "patternProperties"},
}


@each("case", cases("zeroclaw/schema_cleaner"))
def test_a_strategy_of_zeroclaw(case: Any) -> None:
    dialect = case["input"]["strategy"]
    ours, root = in_dialect(case["input"]["schema"], dialect)
    assert not violations(root, dialect)
    told = TOLD_INSTEAD.get(dialect, set())
    gaps = [gap for gap in missing(case["expected"], ours) if not any(f".{word}" in gap for word in told)]
    assert not gaps, json.dumps(ours)


# (dialect, keyword): the seed's table of differences, where the provider has moved since.
MOVED = {
    ("anthropic", "minLength"): "taken and read by Anthropic; strict has its own dialect, which strips it",
    ("anthropic", "pattern"): "taken and read by Anthropic; strict has its own dialect, which strips it",
    ("openai", "$ref"): "inlining wins in every dialect",
    ("openai", "$defs"): "inlining wins in every dialect",
    ("gemini", "anyOf"): "taken since 2025; flattening to the first type would lose the others",
    ("gemini", "oneOf"): "written as anyOf, which is taken since 2025",
}


@pytest.mark.parametrize("case", cases("zeroclaw/schema_seed_table"))
def test_the_seeds_table_of_differences(case: Any) -> None:
    dialect, expected = case["input"]["strategy"], case["expected"]
    ours, root = in_dialect(case["input"]["schema"], dialect)
    assert not violations(root, dialect)
    for key in expected.get("must_contain_keys", ()):
        assert key in ours or (dialect, key) in MOVED
    for key in expected.get("must_not_contain_keys", ()):
        assert key not in ours or (dialect, key) in MOVED
    if ("gemini", "anyOf") in MOVED and "anyOf" in ours:
        return
    for path, value in expected.get("path_equals", {}).items():
        assert essence(at(ours, path)) == value
    if expected.get("accepts_null"):
        assert "null" in json.dumps(ours)


def at(node: Any, path: str) -> Any:
    for step in path.split("."):
        node = node[int(step)] if isinstance(node, list) else node[step]
    return node


@pytest.mark.parametrize("case", cases("zeroclaw/schema_needs_cleaning"))
def test_what_needs_no_cleaning_is_left_alone(case: Any) -> None:
    schema, dialect = case["input"]["schema"], case["input"]["strategy"]
    ours, _ = in_dialect(schema, dialect)
    if not case["expected"]["needs_cleaning"]:
        assert ours == schema
    elif "null" not in json.dumps(
        schema
    ):  # null in a list of types is clean with us: nullability is never lost
        assert ours != schema or ("minLength" in schema and dialect != "gemini")


@pytest.mark.parametrize("case", cases("zeroclaw/schema_validate"))
def test_what_is_a_schema(case: Any) -> None:
    if isinstance(case["input"], dict):
        assert clean(case["input"])  # a missing type is no error with us: an object root is made of it
        assert to_dialect(case["input"], "openai")[0]["type"] == "object"
    else:
        with pytest.raises(SchemaError):
            clean(case["input"])


@pytest.mark.parametrize("case", cases("entelix/llm_facing_schema"))
def test_the_model_facing_schema_of_entelix(case: Any) -> None:
    ours = clean(case["input"]["schema"])
    if isinstance(case["expected"], dict):
        assert not list(missing(case["expected"], ours)), json.dumps(ours)
    assert not {"$schema", "title"} & {key for _, node in nodes(ours) for key in node}


@pytest.mark.parametrize("case", cases("entelix/strict_schema_preflight"))
def test_strict_schemas_pass_the_preflight(case: Any) -> None:
    schema = case["input"]["schema"]
    ours, _ = to_dialect(schema, "openai-strict")
    assert not violations(ours, "openai-strict")
    if case["expected"]["ok"] and case["input"]["strict"]:
        assert sorted(ours["required"]) == sorted(schema.get("required", ()))
        assert not list(missing(schema, ours))


@pytest.mark.parametrize("case", cases("loopal/normalize_schema"))
def test_normalising_of_loopal(case: Any) -> None:
    expected, ours = case["expected"], clean(case["input"]["schema"])
    if "type" in expected or "properties" in expected:
        assert not list(missing(expected, ours)), json.dumps(ours)
        assert not list(missing(ours, expected)), json.dumps(ours)
    assert clean(ours) == ours


@pytest.mark.parametrize("case", cases("codex/json_schema_normalise"))
def test_normalising_of_codex(case: Any) -> None:
    schema, expected = case["input"]["schema"], case["expected"]
    ours, root = in_dialect(schema, "openai") if isinstance(schema, dict) else ({}, None)
    if root is not None:
        assert not violations(root, "openai")
    if "error_contains" not in expected:  # no schema fails a whole turn with us
        assert not list(missing(expected, ours)), json.dumps(ours)


def every_object(node: Any) -> Iterator[dict[str, Any]]:
    return (child for _, child in nodes(node) if "object" in child.get("type", ""))


@each("case", cases("beyond/schema_adversarial"))
def test_hostile_schemas(case: Any) -> None:
    schema, dialect, expected = case["input"]["schema"], case["input"]["strategy"], case["expected"]
    before = copy.deepcopy(schema)
    out, losses = to_dialect(schema, dialect)
    assert schema == before
    assert not violations(out, dialect)
    assert to_dialect(schema, dialect) == (out, losses)
    assert clean(clean(schema)) == clean(schema)
    for path, value in expected.get("path_equals", {}).items():
        found = at(out, path)
        assert found == value or (isinstance(value, str) and str(found).startswith(value))
    for key in expected.get("no_key_anywhere", ()):
        assert not [path for path, node in nodes(out) if key in node]
    if expected.get("same_property_names"):
        assert list(out["properties"]) == list(schema["properties"])
    if expected.get("no_type_arrays"):
        assert not [path for path, node in nodes(out) if isinstance(node.get("type"), list)]
    if "optional_becomes_nullable" in expected:
        for path in expected["optional_becomes_nullable"]:
            assert "null" in json.dumps(at(out, "properties." + path.replace(".", ".properties.")))
    for key in expected.get("no_root_key", ()):
        assert key not in out
    if "falls_back" in expected or "warning" in expected:
        assert losses


@pytest.mark.parametrize("case", cases("schoober/prompt_text"))
def test_tools_in_a_prompt(case: Any) -> None:
    tools = case["input"]["tools"]
    specs = [
        SimpleNamespace(
            name=tool["name"],
            title=tool.get("displayName") or tool.get("display_name") or tool.get("title"),
            description=tool.get("description", ""),
            category=tool.get("category"),
            input_schema=tool.get("schema") or {"type": "object"},
            examples=(),
        )
        for tool in tools
    ]
    text = to_markdown(specs)
    assert f"the following {len(tools)} tool(s)" in text
    for tool, spec in zip(tools, specs, strict=True):
        assert f"## {tool['name']}\n" in text
        for name in clean(spec.input_schema).get("properties", {}):
            assert f"  - {name}: " in text
        lint(spec)
    if all(not clean(spec.input_schema).get("properties") for spec in specs):
        assert text == case["expected"].get("text", text)


@pytest.mark.parametrize("case", cases("zeroclaw/seed_behaviours"))
def test_parameters_promised_by_the_seed(case: Any) -> None:
    tool = case["input"].get("tool")
    if tool is None:
        pytest.skip("not about schemas")
    assert clean(tool["parameters_schema"]) == {"properties": {}, **case["expected"]["parameters"]}
