"""Real schemas, lowered for every server: what each takes whole, in part or not at all, and that no wrong value passes.

`python -m tests.conformance.test_guided_corpora` prints the figures of the whole corpus.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from functools import cache
from typing import Any

import pytest

from tests.conformance.conftest import load_cases, shared_dir
from tests.vocabularies import byte_vocabulary
from toolcrib.guided import TARGETS, JsonSchema, lower
from toolcrib.guided.local import GuideError, LocalGuide

pytestmark = pytest.mark.slow

LABELLED = "corpora/jsonschemabench/maskbench_labelled.jsonl"
SAMPLE = 11  # every so many schemas are tried in CI
LONGEST = 2_000  # bytes of an instance that is written token by token


@cache
def tokenizer() -> Any:
    """The tokens of bytes, made ready once."""
    import llguidance

    from toolcrib.guided.local.llguidance_engine import tokenizer_of

    return tokenizer_of(byte_vocabulary(), llguidance)


def schemas(every: int) -> list[Any]:
    folder = shared_dir() / "corpora/jsonschemabench"
    paths = sorted(path for path in folder.glob("*.jsonl") if "labelled" not in path.name)
    found = [record for path in paths for record in load_cases(f"corpora/jsonschemabench/{path.name}")]
    return [record["schema"] for record in found[::every]]


def outcomes(every: int) -> dict[str, Counter[str]]:
    """For each server, how many schemas it takes by which guarantee."""
    found: dict[str, Counter[str]] = {name: Counter() for name in TARGETS}
    for schema in schemas(every):
        try:
            constraint = JsonSchema(schema)
        except ValueError:
            for counter in found.values():
                counter["no schema"] += 1
            continue
        for name, counter in found.items():
            counter[lower(constraint, name).guarantee] += 1
    return found


def accepted(guide: LocalGuide, value: Any) -> bool:
    """Whether the guide lets a value be written, as compact JSON in the order of its keys."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    session = guide.session()
    return all(session.accept(byte) for byte in text) and session.complete


def judged(every: int) -> Counter[str]:
    """Labelled instances: what the schema says, what the engine lets through, and what passes after validation."""
    found: Counter[str] = Counter()
    for record in load_cases(LABELLED)[::every]:
        try:
            constraint = JsonSchema(record["schema"])
        except ValueError:
            found["schemas that no validator takes"] += 1
            continue
        found["schemas"] += 1
        try:
            guide = LocalGuide(constraint, tokenizer())
        except GuideError:
            found["schemas that the engine refuses"] += 1
            guide = None
        for test in record["tests"]:
            if '"uuid"' in json.dumps(record["schema"]) and "draft-04" in str(
                record["schema"].get("$schema")
            ):
                continue  # a format that its draft does not know is none
            fits = constraint.fits(test["data"])
            if not test["valid"]:
                found["wrong instances"] += 1
                found["wrong instances that pass validation"] += fits
            short = len(json.dumps(test["data"])) <= LONGEST
            if guide is None or not short:
                continue
            written = accepted(guide, test["data"])
            if test["valid"]:
                found["right instances tried"] += 1
                found["right instances that the engine refuses"] += not written
            elif written:
                found["wrong instances that the engine lets through"] += 1
                promised = guide.lowered.guarantee == "enforced"
                found["of them where it says enforced"] += promised
                found["of them that pass in the end"] += not guide.lowered.validate(test["data"])
    return found


def test_every_real_schema_goes_to_every_server_and_none_claims_more_than_it_holds() -> None:
    found = outcomes(SAMPLE)
    for name, counter in found.items():
        taken = sum(count for kind, count in counter.items() if kind != "no schema")
        assert taken > 150, name
    assert set(found["text"]) <= {"prompted", "no schema"}
    assert found["llamacpp"]["enforced"] > found["anthropic"]["enforced"]


def test_no_wrong_value_passes_after_validation() -> None:
    found = judged(SAMPLE)
    assert found["schemas"] > 90 and found["wrong instances"] > 100, found
    assert found["wrong instances that pass validation"] == 0, found
    assert found["of them that pass in the end"] == 0, found
    assert found["of them where it says enforced"] == 0, found
    assert found["right instances that the engine refuses"] <= found["right instances tried"] * 0.03, found


SUITE = ("draft7", "draft2019-09", "draft2020-12")


@pytest.mark.parametrize("draft", SUITE)
def test_values_are_judged_as_the_json_schema_test_suite_says(draft: str) -> None:
    wrong: list[str] = []
    tried = 0
    for group in load_cases(f"corpora/json-schema-test-suite/{draft}.jsonl"):
        if group.get("optional"):
            continue
        schema = group["schema"]
        if isinstance(schema, bool) or "http://localhost:1234" in json.dumps(schema):
            continue  # what needs the network is refused, never fetched
        schema = {"$schema": META[draft], **schema}
        try:
            constraint = JsonSchema(schema)
        except ValueError as problem:
            wrong.append(f"{group['description']}: {problem}"[:200])
            continue
        for test in group["tests"]:
            if "annotation by default" in test["description"]:
                continue  # of an answer, a format is a constraint
            tried += 1
            if constraint.fits(test["data"]) is not test["valid"]:
                wrong.append(f"{group['description']}: {test['description']}")
    assert tried > 500
    assert wrong == []


META = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}


if __name__ == "__main__":
    for target, counts in outcomes(1).items():
        sys.stdout.write(f"{target:18} {dict(counts)}\n")
    sys.stdout.write(f"{dict(judged(1))}\n")
