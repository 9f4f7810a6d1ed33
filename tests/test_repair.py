"""What `repair` puts right, what it leaves alone and what it refuses, as tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases import each
from toolcrib.json_text.lenient_grammar import FIXES
from toolcrib.json_text.lenient_reader import read_json
from toolcrib.repair import EDITS, Edit, Repaired, Unrepairable, repair

POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
    "required": ["x", "y"],
    "additionalProperties": False,
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "n": {"type": "integer"},
        "flag": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "point": {"$ref": "#/$defs/Point"},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "unit": {"type": "string", "enum": ["celsius", "Kelvin"], "default": "celsius"},
        "ratio": {"type": "number"},
        "points": {"type": "array", "items": {"$ref": "#/$defs/Point"}},
        "either": {"anyOf": [{"type": "string"}, {"type": "object"}]},
        "size": {"type": ["integer", "null"]},
    },
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {"Point": POINT},
}


def value_of(raw: Any, schema: Any = SCHEMA) -> Any:
    result = repair(raw, schema)
    assert isinstance(result, Repaired), result
    return result.value


def kinds_of(raw: Any, schema: Any = SCHEMA) -> list[str]:
    result = repair(raw, schema)
    assert isinstance(result, Repaired), result
    return [edit.kind for edit in result.edits]


def one(schema: Any, *, required: bool = True) -> dict[str, Any]:
    """A schema with the one parameter `v`."""
    return {"type": "object", "properties": {"v": schema}, "required": ["v"] if required else []}


IMPERFECT: dict[str, tuple[str, Any]] = {
    "an integer as text": ('{"name": "a", "n": "5"}', {"name": "a", "n": 5}),
    "an integer with a fraction of nothing": ('{"name": "a", "n": 5.0}', {"name": "a", "n": 5}),
    "a boolean as text": ('{"name": "a", "flag": "true"}', {"name": "a", "flag": True}),
    "a list as JSON text": ('{"name": "a", "tags": "[\\"x\\", \\"y\\"]"}', {"name": "a", "tags": ["x", "y"]}),
    "an object as JSON text": (
        '{"name": "a", "point": "{\\"x\\": 1, \\"y\\": 2}"}',
        {"name": "a", "point": {"x": 1, "y": 2}},
    ),
    "a single value for a list": ('{"name": "a", "tags": "x"}', {"name": "a", "tags": ["x"]}),
    "empty text for an optional integer": ('{"name": "a", "limit": ""}', {"name": "a"}),
    "null as text for an optional integer": ('{"name": "a", "limit": "null"}', {"name": "a", "limit": None}),
    "null for a parameter with a default": ('{"name": "a", "unit": null}', {"name": "a"}),
    "an allowed value in another case": ('{"name": "a", "unit": "KELVIN"}', {"name": "a", "unit": "Kelvin"}),
    "an unknown field stays for the validator to name": ('{"name": "a", "zzz": 1}', {"name": "a", "zzz": 1}),
    "wrapped": ('{"arguments": {"name": "a", "n": 1}}', {"name": "a", "n": 1}),
    "a trailing comma": ('{"name": "a", "n": 1,}', {"name": "a", "n": 1}),
    "a Python dict": (
        "{'name': 'a', 'flag': True, 'limit': None}",
        {"name": "a", "flag": True, "limit": None},
    ),
    "truncated": ('{"name": "a", "n": 1', Unrepairable),
    "a code fence": ('```json\n{"name": "a"}\n```', {"name": "a"}),
    "encoded twice": ('"{\\"name\\": \\"a\\"}"', {"name": "a"}),
}


@pytest.mark.parametrize(("raw", "expected"), IMPERFECT.values(), ids=IMPERFECT)
def test_the_seventeen_imperfect_arguments(raw: str, expected: Any) -> None:
    result = repair(raw, SCHEMA)
    if expected is Unrepairable:
        assert isinstance(result, Unrepairable)
    else:
        assert isinstance(result, Repaired)
        assert result.value == expected


TAGGED_A = {
    "type": "object",
    "properties": {"kind": {"const": "a"}, "v": {"type": "integer"}},
    "required": ["kind"],
}
TAGGED_B = {
    "type": "object",
    "properties": {"kind": {"const": "b"}, "v": {"type": "boolean"}},
    "required": ["kind"],
}
VALUES: list[tuple[Any, Any, Any]] = [
    # (schema of the parameter, what came, what it becomes)
    ({"type": "boolean"}, " TRUE ", True),
    ({"type": "boolean"}, "False", False),
    ({"type": "integer"}, "-7", -7),
    ({"type": "integer"}, "3.0", 3),
    ({"type": "number"}, "3", 3),
    ({"type": "number"}, "2.50", 2.5),
    ({"type": "number"}, "1e3", 1000.0),
    ({"type": ["integer", "null"]}, "null", None),
    ({"type": ["integer", "null"]}, "None", None),
    ({"type": "integer", "nullable": True}, "null", None),
    ({"type": "array", "items": {"type": "integer"}}, "3", [3]),
    ({"type": "array", "items": {"type": "integer"}}, 3, [3]),
    ({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}, [3], [[3]]),
    ({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}, [["1"], [2]], [[1], [2]]),
    ({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}, ["1", [2]], [[1], [2]]),
    ({"type": "array", "items": {"type": "integer"}}, ["1", 2, "3"], [1, 2, 3]),
    ({"type": "array", "items": {"type": "integer"}}, "[1, '2',]", [1, 2]),
    ({"type": "array", "items": POINT}, {"x": "1", "y": 2}, [{"x": 1, "y": 2}]),
    ({"type": "array", "items": POINT}, '{"x": "1", "y": 2}', [{"x": 1, "y": 2}]),
    ({"type": "array", "items": POINT}, ['{"x": 1, "y": 2}'], [{"x": 1, "y": 2}]),
    (POINT, "{'x': 1, 'y': '2'}", {"x": 1, "y": 2}),
    ({"anyOf": [POINT, {"type": "null"}]}, {"x": "1", "y": "2"}, {"x": 1, "y": 2}),
    ({"anyOf": [POINT, {"type": "null"}]}, '{"x": 1, "y": 2}', {"x": 1, "y": 2}),
    ({"oneOf": [{"type": "integer"}, {"type": "boolean"}]}, "true", True),
    ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, "3", 3),
    ({"anyOf": [POINT, {"type": "array", "items": POINT}]}, '{"x": 1, "y": 2}', {"x": 1, "y": 2}),
    ({"enum": [1, 2]}, "2", 2),
    ({"enum": ["auto", 1]}, "AUTO", "auto"),
    ({"const": "Yes"}, "yes", "Yes"),
    ({"allOf": [POINT], "description": "where"}, {"x": "1", "y": 2}, {"x": 1, "y": 2}),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": "1"}, {"a": 1}),
    ({"oneOf": [TAGGED_A, TAGGED_B]}, {"kind": "b", "v": "true"}, {"kind": "b", "v": True}),
    (
        {**TAGGED_A, "anyOf": [{"required": ["v"]}, {"required": ["w"]}]},
        {"kind": "a", "v": "1"},
        {"kind": "a", "v": 1},
    ),
]


@each(("schema", "came", "becomes"), VALUES, ids=str)
def test_a_value_with_one_reading_becomes_it(schema: Any, came: Any, becomes: Any) -> None:
    value = value_of({"v": came}, one(schema))["v"]
    assert json.dumps(value) == json.dumps(becomes)


LEFT_ALONE: list[tuple[Any, Any]] = [
    ({"type": "string"}, '{"looks": "like JSON"}'),
    ({"type": "string"}, "true"),
    ({"type": "string"}, "```json\n{}\n```"),
    ({"type": "string"}, 3),
    ({"type": "string"}, True),
    ({"type": ["string", "null"]}, "null"),
    ({"type": "string", "pattern": "^a"}, "[1]"),
    ({"type": "boolean"}, "yes"),
    ({"type": "boolean"}, 1),
    ({"type": "integer"}, True),
    ({"type": "integer"}, "2.5"),
    ({"type": "integer"}, 2.5),
    ({"type": "integer"}, "1,000"),
    ({"type": "integer"}, "1_000"),
    ({"type": "integer"}, "007"),
    ({"type": "integer"}, "٣"),
    ({"type": "integer"}, "3.00000000000000000001"),
    ({"type": "integer"}, "9" * 5000),
    ({"type": "integer"}, 1e30),
    ({"type": "number"}, "12345678901234567890.12"),
    ({"type": "number"}, "1e999"),
    ({"type": "number"}, "1e-999999999999999999999"),
    ({"type": "number"}, "NaN"),
    ({"type": "integer"}, ""),
    ({"type": "integer"}, None),
    ({"type": "array", "items": {"type": "string"}}, "a, b"),
    ({"type": "array", "items": {"type": "string"}}, '["a", "b'),
    ({"type": "array", "items": {"type": "string"}}, ""),
    ({"type": "array", "items": {"type": "string"}}, "null"),
    ({"type": "array", "items": {"type": "string"}}, None),
    ({"type": "array", "items": {"type": "integer"}}, "many"),
    ({"type": "array", "items": {"type": "string"}}, '"a"'),
    ({"type": "array", "items": {"type": "string"}}, "'a'"),
    ({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}, [1, 2]),
    ({"type": "array", "items": {"type": "array", "items": {"type": "string"}}}, ["a", "b"]),
    ({"type": "array", "items": {"type": "string"}, "minItems": 2}, "a"),
    ({"type": "object"}, 'see {"a": 1}'),
    ({"type": "object"}, "[1]"),
    ({"type": "object"}, '{"a": 1, "a": 2}'),
    ({"type": "object"}, '"{\\"a\\": 1}"'),
    ({"anyOf": [{"type": "string"}, {"type": "object"}]}, '{"a": 1}'),
    ({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}, "3"),
    ({"enum": ["a", "A"]}, "á"),
    ({"enum": ["ab", "AB"]}, "Ab"),
    ({"enum": [1, 2]}, "3"),
    ({}, "3"),
    (True, "3"),
    (False, "3"),
]


@each(("schema", "came"), LEFT_ALONE, ids=lambda item: str(item)[:60])
def test_a_value_without_one_reading_stays_for_the_validator(schema: Any, came: Any) -> None:
    result = repair({"v": came}, one(schema))
    assert isinstance(result, Repaired)
    assert result.value == {"v": came}
    assert type(result.value["v"]) is type(came)
    assert result.edits == ()


@pytest.mark.parametrize("came", [None, "", "null", "None"])
@pytest.mark.parametrize("schema", [{"type": "integer"}, {"type": "array"}, POINT, {"enum": ["a"]}], ids=str)
def test_an_optional_parameter_that_says_nothing_is_absent(came: Any, schema: Any) -> None:
    assert value_of({"v": came}, one(schema, required=False)) == {}
    assert value_of({"v": came}, one(schema, required=True)) == {"v": came}


TEXTS: dict[str, tuple[str, Any]] = {
    "trailing_comma": ('{"a": [1, 2,],}', {"a": [1, 2]}),
    "other_literal": ('{"a": True, "b": NULL}', {"a": True, "b": None}),
    "single_quotes": ("{'a': 'say \"hi\"', 'b': \"it's\"}", {"a": 'say "hi"', "b": "it's"}),
    "smart_quotes": ("{“a”: “b”}", {"a": "b"}),
    "unquoted_key": ("{a: 1, b-c: 2}", {"a": 1, "b-c": 2}),
    "comment": ('{"a": 1, // one\n "b": /* two */ 2 # end\n}', {"a": 1, "b": 2}),
    "control_character": ('{"a": "one\ntwo\tthree"}', {"a": "one\ntwo\tthree"}),
    "invalid_escape": (r'{"a": "\d+ \(x\)"}', {"a": r"\d+ \(x\)"}),
    "number_format": ('{"a": .5, "b": +1, "c": 2.}', {"a": 0.5, "b": 1, "c": 2.0}),
    "escaped_whitespace": ('{"a": \\n[1]\\n}', {"a": [1]}),
    "over_escaped": ('{\\n \\"a\\": \\"x\\"\\n}', {"a": "x"}),
    "double_encoded": ('"{\\"a\\": 1}"', {"a": 1}),
    "fullwidth_punctuation": ('{"a"：1，"b"：2}', {"a": 1, "b": 2}),
    "unusual_space": ('{\u00a0"a":\u30001}', {"a": 1}),
    "byte_order_mark": ('\ufeff{"a": 1}', {"a": 1}),
    "code_fence": ('```json\n{"a": 1}', {"a": 1}),
    "special_token": ('<tool_call>{"a": 1}</tool_call><|im_end|>', {"a": 1}),
    "reasoning_block": ('<think>{"a": 0}?</think>{"a": 1}', {"a": 1}),
    "prose": ('Here are the [INFO] arguments for {tool}: {"a": 1} Done.', {"a": 1}),
    "extra_closer": ('{"a": 1}}', {"a": 1}),
    "repeated_value": ('{"a": 1}{"a": 1}', {"a": 1}),
    "duplicate_key": ('{"a": 1, "a": 1}', {"a": 1}),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_a_complete_text_is_read_and_says_what_was_put_right(kind: str) -> None:
    raw, expected = TEXTS[kind]
    result = repair(raw, {"type": "object"})
    assert isinstance(result, Repaired), result
    assert result.value == expected
    assert kind in {edit.kind for edit in result.edits}
    assert all(edit.is_syntax for edit in result.edits)


def test_a_list_of_objects_that_was_escaped_as_a_whole_is_read_too() -> None:
    assert read_json('[{\\"a\\": [{\\"b\\": 1}]}]').value == [{"a": [{"b": 1}]}]


@pytest.mark.parametrize("around", ["[TOOL_CALLS]", "{tool} ", "shell\n", "\u00a0"])
def test_nothing_around_the_object_is_dropped_silently(around: str) -> None:
    result = repair(around + '{"a": 1}', {"type": "object"})
    assert isinstance(result, Repaired)
    assert result.value == {"a": 1}
    assert [edit.is_syntax for edit in result.edits] == [True]


def test_every_kind_of_fix_has_words_and_a_case() -> None:
    assert FIXES.keys() == TEXTS.keys()
    assert not FIXES.keys() & EDITS.keys()


REFUSED: dict[str, str] = {
    "cut in a string": '{"a": "b',
    "cut after a value": '{"a": 1, "b": [1, 2',
    "cut after a colon": '{"a":',
    "cut inside a fence": '```json\n{"a": 1\n```',
    "cut after another object": '{"a": 1}{"a": ',
    "two objects": '{"a": 1} {"a": 2}',
    "a list of the same twice": '{"a": 1}, {"a": 1}',
    "the same twice as two calls": '{"a": 1}; {"a": 1}',
    "an unescaped quote": '{"a": "say "hi" now"}',
    "an unescaped apostrophe": "{'a': 'it's'}",
    "an unescaped quote before what may be a comment": '{"a": "echo "# note"\n}',
    "duplicate keys": '{"a": 1, "a": 2}',
    "duplicate keys that Python deems equal": '{"a": 1, "a": true}',
    "duplicate keys deep in valid JSON": '{"a": [{"b": 1, "b": "1"}]}',
    "not a number": '{"a": NaN}',
    "infinite": '{"a": -Infinity}',
    "overflow": '{"a": 1e999}',
    "underflow": '{"a": 1e-999}',
    "lost digits": '{"a": 3.00000000000000000001}',
    "an endless integer": '{"a": ' + "9" * 5000 + "}",
    "octal or text": '{"a": 007}',
    "hexadecimal": '{"a": 0x1F}',
    "an elided item": '{"a": [1, 2, ...]}',
    "a missing item": '{"a": [1,,2]}',
    "a missing comma": '{"a": 1 "b": 2}',
    "a missing value": '{"a": , "b": 2}',
    "an unquoted value": '{"a": hello}',
    "a set": "{'a', 'b'}",
    "mismatched brackets": '{"a": [1, 2}',
    "half a surrogate pair": '{"a": "\\ud83d"}',
    "half a surrogate pair as it is": '{"a": "\ud83d"}',
    "a path that did not escape its backslashes": r'{"a": "C:\Program Files\temp"}',
    "an escape of another language": r'{"a": "\x41"}',
    "a broken unicode escape": r'{"a": "\u00g1"}',
    "an unclosed reasoning block": '<think>maybe {"a": 1}',
    "a field outside": '"b": 2, "c": {"a": 1}}',
    "a beginning that was lost": 'ptions: {"a": 1}}',
    "a field after the end": '{"a": 1}, "b": 2}',
    "a positional argument": 'call("b", {"a": 1})',
    "a keyword argument": 'call({"a": 1}, b=2)',
    "XML with the arguments inside": '<parameter name="b">{"a": 1}</parameter>',
    "a string that was cut in front": '{"a": 1}"',
    "prose": "I will call the tool now.",
    "an error page": "<html><body>502 Bad Gateway</body></html>",
    "YAML": "a: 1\nb: 2",
    "white space": "  \n",
    "null": "null",
    "a scalar": "3",
    "an array": '[{"a": 1}]',
    "encoded three times": json.dumps(json.dumps(json.dumps({"a": 1}))),
}


@each("raw", REFUSED.values(), ids=REFUSED)
def test_what_has_no_single_reading_is_refused_in_words(raw: str) -> None:
    result = repair(raw, {"type": "object"})
    assert isinstance(result, Unrepairable), result
    assert result.reason.endswith(".")
    assert "Traceback" not in result.reason


@pytest.mark.parametrize(
    "raw", ["path: /tmp\n{'force': true}", "path=/tmp {'force': true}", "<path>{'force': true}</path>"]
)
def test_a_parameter_that_stands_beside_the_object_is_not_dropped(raw: str) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}, "force": {"type": "boolean"}}}
    result = repair(raw, schema)
    assert isinstance(result, Unrepairable)
    assert "path" in result.reason


@pytest.mark.parametrize("raw", ["", b"", None])
def test_no_arguments_at_all_are_an_empty_object(raw: Any) -> None:
    assert repair(raw, SCHEMA) == Repaired({})


def test_raw_may_be_bytes_or_an_already_parsed_value() -> None:
    assert value_of(b'{"n": "1"}') == {"n": 1}
    parsed = {"n": "1", "tags": "a"}
    assert value_of(parsed) == {"n": 1, "tags": ["a"]}
    assert parsed == {"n": "1", "tags": "a"}, "what the provider sent is not changed"
    assert isinstance(repair(b"\xff{}", SCHEMA), Unrepairable)


@pytest.mark.parametrize("raw", [{"a": float("nan")}, {"a": {1, 2}}, {1: 2}, Ellipsis, 3, ["a"]], ids=str)
def test_a_parsed_value_that_is_no_json_object_is_refused(raw: Any) -> None:
    assert isinstance(repair(raw, SCHEMA), Unrepairable)


WRAPPED: list[tuple[Any, Any]] = [
    ({"arguments": {"name": "a"}}, {"name": "a"}),
    ({"name": "tool", "parameters": {"n": "1"}}, None),  # `name` is a parameter here
    ({"input": {"name": "a", "n": "1"}}, {"name": "a", "n": 1}),
    ({"args": '{"name": "a"}'}, {"name": "a"}),
    ({"arguments": {"name": "a"}, "n": 1}, None),
    ({"arguments": {"name": "a", "zzz": 1}}, None),
    ({"arguments": {"arguments": {"name": "a"}}}, None),
    ({"arguments": [1]}, None),
    ({"arguments": '{"name": "a"'}, None),
]


@pytest.mark.parametrize(("came", "becomes"), WRAPPED, ids=str)
def test_one_wrapper_is_taken_off_when_all_inside_is_known(came: Any, becomes: Any) -> None:
    assert value_of(came) == (came if becomes is None else becomes)


def test_a_wrapper_with_the_name_of_the_tool() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    assert value_of({"name": "weather", "arguments": {"city": "Oslo"}}, schema) == {"city": "Oslo"}
    assert kinds_of({"name": "weather", "arguments": {"city": "Oslo"}}, schema) == ["unwrapped"]


def test_a_wrapper_is_data_where_the_schema_knows_it_or_takes_anything() -> None:
    known = {"type": "object", "properties": {"input": {"type": "object"}, "a": {}}}
    assert value_of({"input": {"a": 1}}, known) == {"input": {"a": 1}}
    open_ended = {"type": "object", "properties": {"a": {}}, "additionalProperties": True}
    assert value_of({"params": {"b": 1}}, open_ended) == {"params": {"b": 1}}
    assert value_of({"params": {"a": 1}}, {"type": "object"}) == {"params": {"a": 1}}


def test_edits_name_place_kind_before_and_after() -> None:
    result = repair("""{"name": "a", "points": [{"x": "1", "y": 2}], 'limit': "",}""", SCHEMA)
    assert isinstance(result, Repaired)
    assert result.edits == (
        Edit("", "single_quotes", "'", '"'),
        Edit("", "trailing_comma", ",}", "}"),
        Edit("limit", "omitted", "", None),
        Edit("points[0].x", "number_text", "1", 1),
    )
    assert [edit.is_syntax for edit in result.edits] == [True, True, False, False]
    assert result.edits[2].to_dict() == {"path": "limit", "kind": "omitted", "before": "", "after": None}
    assert str(result.edits[3]) == "points[0].x: read text as a number"


def test_a_lenient_text_inside_a_value_is_an_edit_to_syntax_at_its_place() -> None:
    result = repair({"name": "a", "tags": "['x', 'y']"}, SCHEMA)
    assert isinstance(result, Repaired)
    assert [(edit.path, edit.kind, edit.is_syntax) for edit in result.edits] == [
        ("tags", "json_text", False),
        ("tags", "single_quotes", True),
    ]


def test_what_fits_stays_beside_what_is_repaired() -> None:
    raw = {"name": "3", "either": '{"a": 1}', "n": "3", "ratio": 1, "zzz": "3"}
    assert value_of(raw) == {**raw, "n": 3}


TREE = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    "additionalProperties": False,
}


def test_a_recursive_schema_is_followed_as_deep_as_the_value() -> None:
    raw = {"value": "1", "children": {"value": "2", "children": '[{"value": "3"}]'}}
    assert value_of(raw, TREE) == {"value": 1, "children": [{"value": 2, "children": [{"value": 3}]}]}


def test_escaped_references_are_found() -> None:
    schema = {"properties": {"v": {"$ref": "#/$defs/a~1b%20c"}}, "$defs": {"a/b c": {"type": "integer"}}}
    assert value_of({"v": "1"}, schema) == {"v": 1}


BROKEN: list[Any] = [
    None,
    [],
    "object",
    {"type": 7, "properties": []},
    {"type": [[]], "properties": {"v": 3}, "required": "v", "enum": 5},
    {"properties": {"v": {"$ref": "#/$defs/none"}}},
    {"properties": {"v": {"$ref": "#/allOf/" + "9" * 5_000}}, "allOf": []},
    {"properties": {"v": {"$ref": 5, "anyOf": {}, "allOf": 3, "items": 4, "minItems": "x"}}},
    {"properties": {"v": {"$ref": "https://example.org/schema"}}},
    {"$ref": "#"},
    {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
    {"type": "object", "anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"allOf": [{"$ref": "#"}]}]},
    {"oneOf": [{}, {"anyOf": [{"$ref": "#/oneOf/1"}]}]},
    {"allOf": [{"$ref": "#/allOf/0"}], "properties": {"v": {"$ref": "#/properties/v"}}},
]


@pytest.mark.parametrize("schema", BROKEN, ids=lambda schema: str(schema)[:80])
def test_a_broken_schema_raises_nothing_and_changes_nothing(schema: Any) -> None:
    assert repair('{"v": "1"}', schema) == Repaired({"v": "1"})
    repair({"v": ""}, schema)


NOT_BLANK = {"type": "string", "minLength": 1}
# (schema of an optional parameter, whether an empty text is a value of it)
EMPTY: list[tuple[Any, bool]] = [
    ({"type": "string"}, True),
    ({}, True),
    ({"type": ["string", "null"]}, True),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
    ({"enum": ["", "x"]}, True),
    ({"type": "string", "pattern": "^[a-z]*$"}, True),
    ({"type": "string", "pattern": "(?<broken"}, True),
    ({"type": "string", "format": "uri-reference"}, True),
    ({"$ref": "#/$defs/Text"}, True),
    ({"allOf": [{"type": "string"}, {"maxLength": 3}]}, True),
    (NOT_BLANK, False),
    ({"$ref": "#/$defs/Word"}, False),
    ({"allOf": [{"type": "string"}, {"minLength": 1}]}, False),
    ({"anyOf": [NOT_BLANK, {"type": "null"}]}, False),
    ({"minLength": 1, "anyOf": [{"type": "string"}, {"type": "null"}]}, False),
    ({"type": "string", "pattern": "^[a-z]+$"}, False),
    ({"type": "string", "format": "date"}, False),
    ({"type": ["string", "null"], "format": "path"}, False),
    ({"enum": ["a", "b"]}, False),
    ({"const": "a"}, False),
    ({"type": "integer"}, False),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, False),
    ({"type": ["boolean", "array"]}, False),
]


@each(("schema", "is_value"), EMPTY, ids=str)
def test_an_empty_text_is_absent_only_where_it_cannot_be_a_value(schema: Any, is_value: bool) -> None:
    whole = {**one(schema, required=False), "$defs": {"Text": {"type": "string"}, "Word": NOT_BLANK}}
    for raw in ('{"v": ""}', {"v": ""}):
        result = repair(raw, whole)
        edits = () if is_value else (Edit("v", "omitted", "", None),)
        assert result == Repaired({"v": ""} if is_value else {}, edits)


@pytest.mark.parametrize(
    "came", [{"name": ""}, {"name": "a", "zzz": ""}, {"name": "a", "unit": " "}, {"name": "a", "tags": [""]}]
)
def test_empty_text_elsewhere_stays(came: Any) -> None:
    assert value_of(came) == came


def test_what_one_variant_of_the_parameters_requires_is_kept() -> None:
    schema = {"anyOf": [
        {"properties": {"a": NOT_BLANK, "b": NOT_BLANK}, "required": ["a"]},
        {"properties": {"c": NOT_BLANK}},
    ]}  # fmt: skip
    assert value_of({"a": "", "b": "", "c": ""}, schema) == {"a": ""}
