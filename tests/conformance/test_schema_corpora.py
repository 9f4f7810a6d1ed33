"""Every recorded schema has a lawful form in each dialect, and a canonical one that means the same."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest

from tests.conformance.conftest import load_cases, shared_dir
from tests.test_schema_dialects import NAMED, NODES, nodes, violations
from toolcrib.schema import DIALECTS, clean, to_dialect
from toolcrib.schema.canonical import clean_and_tell
from toolcrib.schema.share import share

pytestmark = pytest.mark.slow

CORPORA = sorted(
    str(path.relative_to(shared_dir()))
    for path in [
        shared_dir() / "corpora/tool-schemas/tools.jsonl",
        *(shared_dir() / "corpora/jsonschemabench").glob("*.jsonl"),
    ]
)
LABELLED = "corpora/jsonschemabench/maskbench_labelled.jsonl"


@pytest.mark.parametrize("corpus", CORPORA)
def test_every_schema_has_a_lawful_form_in_every_dialect(corpus: str) -> None:
    broken: list[Any] = []
    narrowing, seen = set[str](), set[str]()
    for record in load_cases(corpus):
        schema = record.get("schema", record.get("input_schema"))
        before = json.dumps(schema)
        if before in seen:
            continue
        seen.add(before)
        once = clean(schema)
        if json.dumps(clean(once)) != json.dumps(once):
            broken.append((record["id"], "not done once"))
        for name in DIALECTS:
            out, losses = to_dialect(schema, name)
            narrowing |= {name for loss in losses if loss.narrows and loss.path}
            if found := violations(out, name):
                broken.append((record["id"], name, found[:3]))
            if any(not loss.keyword and not loss.detail for loss in losses):
                broken.append((record["id"], name, "a loss that says nothing"))
        if json.dumps(schema) != before:
            broken.append((record["id"], "changed its input"))
    assert not broken, (len(broken), broken[:5])
    if corpus == LABELLED:  # only dialects that cannot say anything narrow it
        assert narrowing == {"openai-strict", "anthropic-strict", "gemini", "ollama"}


def old_siblings(schema: dict[str, Any]) -> bool:
    """Up to draft 7 a validator ignores what stands beside a `$ref`; we merge it, as its author meant it."""
    old = any(f"draft-0{number}" in str(schema.get("$schema")) for number in (3, 4, 6, 7))
    ignorable = {"$ref", "description", "title", "default", "$id", "id", "$comment", "examples"}
    return old and any("$ref" in node and not ignorable.issuperset(node) for _, node in nodes(schema))


def test_a_clean_schema_accepts_exactly_what_the_schema_did() -> None:
    judged, differing = 0, list[Any]()
    for record in load_cases(LABELLED):
        schema = record["schema"]
        # Widths of integers are no constraint; OpenAPI's `nullable` is one that plain validators do not know.
        if old_siblings(schema) or any("nullable" in node for _, node in nodes(schema)):
            continue
        # Formats are checked up to draft 7 and not in 2020-12 unless asked for; drafts know different ones.
        try:
            original = jsonschema_rs.validator_for(schema, validate_formats=False)
        except ValueError:
            continue
        canonical = jsonschema_rs.validator_for(clean(schema), validate_formats=False)
        for test in record["tests"]:
            judged += 1
            if original.is_valid(test["data"]) != canonical.is_valid(test["data"]):
                differing.append((record["id"], test["valid"]))
    assert judged > 1_000
    assert not differing, (len(differing), differing[:5])


SUITE = ("draft7", "draft2019-09", "draft2020-12")
OF_KIND = {
    "object": {
        *("properties", "required", "additionalProperties", "patternProperties", "propertyNames"),
        *("minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties"),
    },
    "array": {
        *("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains"),
        *("maxContains", "unevaluatedItems"),
    },
    "string": {"pattern", "minLength", "maxLength", "format", "contentEncoding", "contentMediaType"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}
TYPED = {"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "not", "if"}
POSITIVE = {"items", "additionalProperties", "contains", "unevaluatedItems", "unevaluatedProperties"}


def rewritten(node: Any, change: Any) -> Any:
    """A schema with each of its nodes changed, but for those inside of `not` and `if`."""
    if isinstance(node, list):
        return [rewritten(item, change) for item in node]
    if not isinstance(node, dict):
        return node
    out = dict(node)
    for key, value in node.items():
        if key in NAMED:
            out[key] = {name: rewritten(item, change) for name, item in value.items()}
        elif key in NODES or key in POSITIVE:
            out[key] = rewritten(value, change)
    return change(out)


def typed(node: dict[str, Any]) -> dict[str, Any]:
    """A node with the type that its keywords speak of, which its author left out and every provider wants."""
    kind = next((kind for kind, words in OF_KIND.items() if words & node.keys()), None)
    return node if kind is None or TYPED & node.keys() else {**node, "type": kind}


def closed(node: dict[str, Any]) -> dict[str, Any]:
    """A node without fields that it does not name: a strict dialect takes no others."""
    speaks = {"additionalProperties", "patternProperties"} & node.keys()
    return {**node, "additionalProperties": False} if "properties" in node and not speaks else node


def plain(node: dict[str, Any]) -> dict[str, Any]:
    """A node of a dialect in standard words: null beside the type, and no field required only to be null."""
    out = {key: value for key, value in node.items() if key != "nullable"}
    if isinstance(out.get("required"), list):
        fields = out.get("properties", {})
        out["required"] = [name for name in out["required"] if not takes_null(fields[name])]
    return {"anyOf": [out, {"type": "null"}]} if node.get("nullable") else out


def takes_null(node: dict[str, Any]) -> bool:
    return "null" in node.get("type", ()) or any(takes_null(variant) for variant in node.get("anyOf", ()))


def fitting(schema: dict[str, Any]) -> Callable[[Any], bool]:
    """Says of a value whether it is valid for a schema."""
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return jsonschema_rs.validator_for(draft, validate_formats=False).is_valid


def arguments_of(record: Any) -> list[tuple[dict[str, Any], list[Any]]]:
    """A schema as the input of a tool, with valid arguments: as the root, and as a field."""
    schema, losses = clean_and_tell(record["schema"])
    valid = [test["data"] for test in record["tests"] if test["valid"]]
    found = []
    if schema.get("type") == "object":
        found.append((schema, valid))
    if '"$ref": "#"' not in json.dumps(schema):
        inner = {key: value for key, value in schema.items() if key != "$defs"}
        root = {"type": "object", "properties": {"v": inner}, "required": ["v"]}
        root |= {"$defs": schema["$defs"]} if "$defs" in schema else {}
        found.append((root, [{"v": value} for value in valid]))
    return [(each, [*filter(fitting(each), values)]) for each, values in found if not losses]


def test_what_a_dialect_drops_never_makes_the_rest_narrower() -> None:
    judged, refused = 0, list[Any]()
    suites = [f"corpora/json-schema-test-suite/{draft}.jsonl" for draft in SUITE]
    for record in [record for path in [*suites, LABELLED] for record in load_cases(path)]:
        if record.get("optional") or not isinstance(record["schema"], dict):
            continue
        for schema, values in arguments_of(record):
            for name in DIALECTS:
                lowered, losses = to_dialect(schema, name)
                if any(loss.narrows for loss in losses):
                    continue
                strict = name.endswith("-strict")
                meant = rewritten(schema, (lambda node: closed(typed(node))) if strict else typed)
                shown = rewritten(lowered, plain) if strict or name == "gemini" else lowered
                wanted = [*filter(fitting(meant), values)]
                judged += len(wanted)
                if not wanted:
                    continue
                taken = fitting(shown)
                for value in wanted:
                    if not taken(value):
                        refused.append((name, record.get("description", record.get("id")), value))
    assert judged > 25_000
    assert not refused, (len(refused), refused[:5])


def doubled(record: Any) -> tuple[dict[str, Any], list[Any]]:
    """A schema with the recorded one at two places, beside different descriptions, and arguments for it."""
    schema = clean(record["schema"])
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    root = {
        "type": "object",
        "properties": {
            "a": inner,
            "list": {"type": "array", "items": {**inner, "description": "One of them."}},
        },
        **({"$defs": schema["$defs"]} if "$defs" in schema else {}),
    }
    values = [test["data"] for test in record["tests"]]
    return root, [
        {"a": one, "list": [one, other]} for one, other in itertools.pairwise([*values, *values[:1]])
    ]


def test_objects_that_are_written_once_accept_the_same() -> None:
    shared, judged, differing = 0, 0, list[Any]()
    for record in load_cases(LABELLED):
        if '"$ref": "#"' in json.dumps(clean(record["schema"])):
            continue
        schema, values = doubled(record)
        text = json.dumps(schema)
        for siblings in (True, False):
            once = share(schema, siblings=siblings)
            assert len(json.dumps(once)) <= len(text) and json.dumps(schema) == text
            if once is schema:
                continue
            shared += 1
            before, after = fitting(schema), fitting(once)
            for value in values:
                judged += 1
                if before(value) is not after(value):
                    differing.append((record["id"], siblings))
    assert shared > 200
    assert judged > 1_000
    assert differing == []
