"""Every recorded schema has a lawful form in each dialect, and a canonical one that means the same."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from tests.conformance.conftest import load_cases, shared_dir
from tests.test_schema_dialects import nodes, violations
from toolcrib.schema import DIALECTS, clean, to_dialect

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
    for record in load_cases(corpus):
        schema = record.get("schema", record.get("input_schema"))
        before = json.dumps(schema)
        once = clean(schema)
        if json.dumps(clean(once)) != json.dumps(once):
            broken.append((record["id"], "not done once"))
        for name in DIALECTS:
            out, losses = to_dialect(schema, name)
            if found := violations(out, name):
                broken.append((record["id"], name, found[:3]))
            if any(not loss.keyword and not loss.detail for loss in losses):
                broken.append((record["id"], name, "a loss that says nothing"))
        if json.dumps(schema) != before:
            broken.append((record["id"], "changed its input"))
    assert not broken, (len(broken), broken[:5])


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
