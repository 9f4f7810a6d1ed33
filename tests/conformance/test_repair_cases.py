"""Recorded broken arguments of the wild and of other repairers: right, or refused, and never wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.conftest import load_cases
from toolcrib.json_text.values import same_json
from toolcrib.repair import Repaired, Unrepairable, repair

ROOT_TYPES = {
    dict: "object",
    list: "array",
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


def named(cases: list[Any]) -> Any:
    return each("case", cases, ids=[case["name"] for case in cases])


WILD = load_cases("cases/json-repair/wild_tool_args.json")
WILD_DIFFERENCES = {
    "wild/empty": "no text is no arguments: the validator names what is required",
}


@named([case for case in WILD if case["safety"] == "safe"])
def test_what_is_safe_is_repaired(case: dict[str, Any]) -> None:
    result = repair(case["input"], {"type": "object"})
    assert isinstance(result, Repaired), result
    assert same_json(result.value, case["expected"])


@named([case for case in WILD if case["safety"] == "refuse"])
def test_what_is_to_be_refused_gives_no_value(case: dict[str, Any]) -> None:
    result = repair(case["input"], {"type": "object"})
    if case["name"] in WILD_DIFFERENCES:
        assert result == Repaired({})
    else:
        assert isinstance(result, Unrepairable)


@named([case for case in WILD if case["safety"] == "lossy"])
def test_what_must_be_guessed_is_refused_or_right_and_shown(case: dict[str, Any]) -> None:
    result = repair(case["input"], {"type": "object"})
    if isinstance(result, Repaired):
        assert same_json(result.value, case["expected"])
        assert any(edit.is_syntax for edit in result.edits)


FOREIGN = [
    case
    for name in ("hermes_agent_tests", "json_repair_tests", "jsonrepair_js_tests", "langchain_tests")
    for case in load_cases(f"cases/json-repair/{name}.json")
]
FOREIGN_DIFFERENCES: dict[str, Callable[[str, Any, Repaired], bool]] = {
    # why we do not give what the other repairer gives -> where that is so
    "no text is no arguments": lambda text, expected, ours: not text.strip() and ours.value == {},
    "strict JSON means what it says": lambda text, expected, ours: (
        is_strict(text) and ours == Repaired(json.loads(text))
    ),
    "one object sent several times is one call, not a list of them": lambda text, expected, ours: (
        isinstance(expected, list)
        and all(same_json(item, expected[0]) for item in expected)
        and any(edit.kind == "repeated_value" for edit in ours.edits)
        and same_json(ours.value, expected[:1])
    ),
}


def is_strict(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@named(FOREIGN)
def test_a_foreign_case_is_right_or_refused(case: dict[str, Any]) -> None:
    text, expected = case["input"], case["expected"]
    result = repair(text, {"type": ROOT_TYPES[type(expected)]})
    if isinstance(result, Repaired) and not same_json(result.value, expected):
        assert any(applies(text, expected, result) for applies in FOREIGN_DIFFERENCES.values()), result


@named(load_cases("cases/json-repair/vllm_tool_text.json"))
def test_text_with_one_call_is_that_call_and_text_with_more_is_refused(case: dict[str, Any]) -> None:
    result = repair(case["input"], {"type": "object"})
    calls = case["expected"]
    if len(calls) == 1:
        assert isinstance(result, Repaired)
        arguments = result.value.get("arguments", result.value.get("parameters"))
        assert {"name": result.value["name"], "arguments": arguments} == calls[0]
    elif len(calls) > 1 or not is_strict(case["input"]):
        assert isinstance(result, Unrepairable)
    else:
        assert result == Repaired(__import__("json").loads(case["input"])), (
            "no call, but an object all the same"
        )


def outcome_matches(
    result: Repaired | Unrepairable, expected: dict[str, Any], schema: dict[str, Any]
) -> bool:
    if "either" in expected:
        return any(outcome_matches(result, option, schema) for option in expected["either"])
    if expected.get("no_crash"):
        return True
    if isinstance(result, Unrepairable):
        return bool(expected.get("error"))
    valid = is_valid(result.value, schema)
    if expected.get("error"):
        return not valid
    return valid and same_json(result.value, expected["arguments"])


def is_valid(value: Any, schema: dict[str, Any]) -> bool:
    import jsonschema_rs

    return jsonschema_rs.is_valid(schema, value)


DIRECTED = load_cases("cases/beyond/argument_repair.json") + [
    case for case in load_cases("cases/schoober/schema_directed_coercion.json") if "schema" in case["input"]
]


@named(DIRECTED)
def test_repair_follows_the_schema(case: dict[str, Any]) -> None:
    given = case["input"]
    result = repair(given["raw"] if "raw" in given else given["arguments"], given["schema"])
    assert outcome_matches(result, case["expected"], given["schema"]), result


@named(load_cases("cases/schoober/boolean_strings.json"))
def test_boolean_text_where_a_boolean_is_wanted(case: dict[str, Any]) -> None:
    """The recorded function converts by the look of a value; repair does where the schema wants it."""
    came, expected = case["input"], case["expected"]
    if isinstance(came, (dict, list)):
        pytest.skip("no schema is given for the inside")
    schema = {"type": "object", "properties": {"v": {"type": "boolean"}}, "required": ["v"]}
    result = repair({"v": came}, schema)
    assert isinstance(result, Repaired)
    assert same_json(result.value, {"v": expected})


@named(load_cases("cases/loopal/strip_empty_optionals.json"))
def test_empty_optionals_are_absent(case: dict[str, Any]) -> None:
    given = case["input"]
    came = given["arguments"]
    texts = [name for name, value in came.items() if isinstance(value, str)] if isinstance(came, dict) else []
    says_so = {"type": "string", "minLength": 1}  # an empty text is a value of any other text
    schema = {"properties": dict.fromkeys(texts, says_so), "required": given["required"]}
    result = repair(came, schema)
    if isinstance(came, dict):
        assert isinstance(result, Repaired)
        assert result.value == case["expected"]
        assert len(result.edits) == len(came) - len(case["expected"])


@named([case for case in load_cases("cases/loopal/typed_bridge.json") if "schema" in case["input"]])
def test_arguments_of_a_typed_tool_reach_it(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    result = repair(
        given["arguments"], given["schema"], accepts=lambda value: is_valid(value, given["schema"])
    )
    value = result.value if isinstance(result, Repaired) else None
    assert is_valid(value, given["schema"]) == expected["ok"]
    if expected["ok"] and "parsed" in expected:
        absent = dict.fromkeys(given["schema"]["properties"])
        assert same_json({**absent, **value}, expected["parsed"])
