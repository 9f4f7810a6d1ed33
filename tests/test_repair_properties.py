"""What holds for every text: repair invents nothing, alters no string, and costs what its input is long."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import growth
from tests.properties import examples
from toolcrib.repair import Repaired, Unrepairable, repair

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
tricky = st.sampled_from(
    [
        "",
        "null",
        "true",
        "3",
        "{}",
        "[",
        '{"a": 1}',
        "```json",
        "it's",
        'say "hi"',
        "\\d",
        "a, b",
        "# x",
        "<s>",
    ]
)
words = texts | tricky
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | words
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(words, values, max_size=5)
names = st.text("abcdef_", min_size=1, max_size=6)


def pair(schema: Any, value: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return st.tuples(st.just(schema), value)


leaves = st.one_of(
    pair({"type": "string"}, words),
    pair({"type": "integer"}, st.integers()),
    pair({"type": "number"}, numbers),
    pair({"type": "boolean"}, st.booleans()),
    pair({"type": "null"}, st.none()),
    pair({"enum": ["a", "B", 3, None]}, st.sampled_from(["a", "B", 3, None])),
    pair({}, values),
)


def lists_of(inner: st.SearchStrategy[tuple[Any, Any]]) -> st.SearchStrategy[tuple[Any, Any]]:
    return inner.map(lambda both: ({"type": "array", "items": both[0]}, [both[1]] * 2))


def objects_of(inner: st.SearchStrategy[tuple[Any, Any]]) -> st.SearchStrategy[tuple[Any, Any]]:
    def build(members: dict[str, tuple[Any, Any]]) -> tuple[Any, Any]:
        properties = {name: schema for name, (schema, _) in members.items()}
        value = {name: value for name, (_, value) in members.items()}
        return {"type": "object", "properties": properties, "required": list(members)[:2]}, value

    return st.dictionaries(names, inner, max_size=4).map(build)


def unions_of(inner: st.SearchStrategy[tuple[Any, Any]]) -> st.SearchStrategy[tuple[Any, Any]]:
    return st.lists(inner, min_size=1, max_size=3).map(
        lambda many: ({"anyOf": [schema for schema, _ in many]}, many[-1][1])
    )


fitting = objects_of(
    st.recursive(leaves, lambda inner: lists_of(inner) | objects_of(inner) | unions_of(inner), max_leaves=8)
)


@given(fitting)
def test_what_fits_its_schema_is_left_as_it_is(both: tuple[Any, Any]) -> None:
    schema, value = both
    assert repair(json.dumps(value), schema) == Repaired(value)
    assert repair(json.dumps(value, ensure_ascii=False), schema) == Repaired(value)
    assert repair(value, schema) == Repaired(value)


@given(objects, st.data())
def test_a_cut_text_is_never_a_value(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    cut = data.draw(st.integers(1, len(text) - 1))
    assert isinstance(repair(text[:cut], {"type": "object"}), Unrepairable)
    assert isinstance(repair(f"```json\n{text[:cut]}", {"type": "object"}), Unrepairable)


@given(objects, st.data())
def test_a_cut_python_dict_is_never_a_value(value: dict[str, Any], data: st.DataObject) -> None:
    text = repr(value)
    assert isinstance(
        repair(text[: data.draw(st.integers(1, len(text) - 1))], {"type": "object"}), Unrepairable
    )


@given(objects)
def test_a_python_dict_is_read_as_python_reads_it_or_not_at_all(value: dict[str, Any]) -> None:
    result = repair(repr(value), {"type": "object"})
    assert isinstance(result, Unrepairable) or result.value == value


def spoiled(value: dict[str, Any]) -> dict[str, str]:
    """The same object in every wrong way that keeps what it says."""
    text = json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, indent=1)
    return {
        "fence": f"```json\n{text}\n```",
        "fence without end": f"Here:\n```\n{text}",
        "prose": f"Sure, here it is.\n{text}\nDone!",
        "token": f"{text}<|im_end|>",
        "comma": re.sub(r"\n *([}\]])", r",\n\1", lines) if value else text,
        "comment": lines.replace("{\n", "{ // note\n", 1),
        "twice": json.dumps(text),
        "encoded": json.dumps(text)[1:-1],
        "repeated": text + text,
        "space": f"\ufeff\u00a0{text}\u3000",
    }


@given(st.dictionaries(names, values, min_size=1, max_size=4))
def test_a_spoiled_text_says_what_it_said_or_nothing(value: dict[str, Any]) -> None:
    for how, text in spoiled(value).items():
        result = repair(text, {"type": "object"})
        assert isinstance(result, Unrepairable) or result.value == value, how


@given(words, words)
def test_the_value_of_a_string_parameter_is_never_altered(content: str, other: str) -> None:
    schema = {
        "type": "object",
        "properties": {"content": {"type": "string"}, "n": {"type": "integer"}, "o": {"type": "object"}},
        "required": ["content"],
    }
    for wrong in ("3", 3.0, other):
        result = repair({"content": content, "n": wrong, "o": "{'a': 1}"}, schema)
        assert isinstance(result, Repaired)
        assert result.value["content"] == content
        text = json.dumps({"content": content, "n": wrong})
        lenient = repair(text[:-1] + ",}", schema)
        assert isinstance(lenient, Repaired)
        assert lenient.value["content"] == content


NOISE = st.text("{}[]\"':,\\/#*`<|>ntrue0123.eE+- \n\t“”‘’，：\ufeff\ud83d", max_size=40)
KEYWORDS = [
    *("type", "properties", "required", "items", "anyOf", "oneOf", "allOf", "$ref", "enum", "const", "a"),
    *("nullable", "additionalProperties", "patternProperties", "prefixItems", "minItems"),
]
schemas = st.recursive(
    st.none() | st.booleans() | st.integers() | names,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYWORDS),
            inner | st.sampled_from(["object", "array", "integer", "#", "#/properties/a", "#/anyOf/0"]),
            max_size=4,
        )
    ),
    max_leaves=10,
)


@examples(300)
@given(NOISE | words | objects | st.binary(max_size=20), schemas)
def test_nothing_raises(raw: Any, schema: Any) -> None:
    result = repair(raw, schema)
    assert isinstance(result, (Repaired, Unrepairable))
    if isinstance(result, Repaired):
        json.dumps([edit.to_dict() for edit in result.edits])


@examples(300)
@given(NOISE)
def test_noise_is_read_as_json_reads_it_or_says_what_was_put_right(text: str) -> None:
    result = repair("{" + text + "}", {"type": "object"})
    try:
        strict = json.loads("{" + text + "}")
    except ValueError:
        assert isinstance(result, Unrepairable) or any(edit.is_syntax for edit in result.edits)
        return
    assert isinstance(result, Unrepairable) or result.value == strict


DEEP: dict[str, Callable[[int], Any]] = {
    "objects": lambda n: '{"a":' * n + "1" + "}" * n,
    "arrays": lambda n: '{"a":' + "[" * n + "]" * n + "}",
    "lenient": lambda n: "{a:" * n + "1" + "}" * n,
    "open": lambda n: "[{" * n,
    "in a string": lambda n: json.dumps({"a": "[" * n + "]" * n}),
}


@pytest.mark.parametrize("build", DEEP.values(), ids=DEEP)
@pytest.mark.parametrize("depth", [150, 1_000, 100_000])
def test_deep_nesting_ends_in_an_answer(build: Callable[[int], Any], depth: int) -> None:
    recursive = {"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#"}, {"type": "array"}]}}}
    assert isinstance(repair(build(depth), recursive), (Repaired, Unrepairable))


def test_a_value_that_holds_itself_is_refused() -> None:
    value: dict[str, Any] = {}
    value["a"] = [value, value]
    assert isinstance(repair(value, {"type": "object"}), Unrepairable)


LINK = {"v": {"type": "integer"}, "next": {"$ref": "#"}}
NODE: dict[str, Any] = {
    "anyOf": [
        {"type": "object", "properties": LINK, "required": ["v"]},
        {"type": "object", "properties": LINK, "required": ["next"]},
        {"type": "null"},
    ]
}
NUMBERS = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
GROWING: dict[str, tuple[Any, Callable[[int], Any]]] = {
    "members": ({"type": "object"}, lambda n: "{" + "".join(f"'k{i}': {i}," for i in range(n)) + "}"),
    "one long string": ({"type": "object"}, lambda n: "{'a': '" + "x\n\\'" * n + "'}"),
    "text to numbers": (NUMBERS, lambda n: {"a": ["1"] * n}),
    "text to a list": (NUMBERS, lambda n: {"a": "[" + "'1'," * n + "]"}),
    "a union of lists": (
        {
            "properties": {
                "a": {"anyOf": [{"type": "array", "items": NODE}, {"type": "array", "items": NUMBERS}]}
            }
        },
        lambda n: {"a": [{"v": "1"}] * n},
    ),
    "placeholders": ({"type": "object"}, lambda n: "{x} [INFO] " * n + "{'a': 1}"),
    "repeated objects": ({"type": "object"}, lambda n: '{"a": [1, 2]} ' * n),
    "open brackets": ({"type": "object"}, lambda n: "{" * n),
    "white space": ({"type": "object"}, lambda n: "{'a'" + " \u00a0" * n + ": 1}"),
    "comments": ({"type": "object"}, lambda n: "{" + "/* x */ # y\n" * n + "}"),
    "quotes in prose": ({"type": "object"}, lambda n: "\" ' ` < </ <| " * n + "{'a': 1}"),
    "backslashes": ({"type": "object"}, lambda n: '{"a": "' + "\\d" * n + '",}'),
    "double encoding": ({"type": "object"}, lambda n: json.dumps("{'a': [" + "1," * n + "]}")),
    "a long number": ({"type": "object"}, lambda n: "{'a': " + "1" * n + "}"),
    "a long number as text": (NUMBERS, lambda n: {"a": ["1" * n + ".5"]}),
    "a long word around an object": ({"type": "object"}, lambda n: "1" * n + " {'a': 1}"),
    "an open reasoning block": ({"type": "object"}, lambda n: "<think>" * n + "{'a': 1}"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("schema", "build"), GROWING.values(), ids=GROWING)
def test_cost_grows_with_the_input(schema: Any, build: Callable[[int], Any]) -> None:
    def repairing(size: int) -> Callable[[], object]:
        raw = build(size)
        return lambda: repair(raw, schema)

    # 16 times the input: quadratic would be 256 times the time.
    assert growth(repairing, 1_000, 16_000, 64) <= 64


@pytest.mark.slow
def test_nested_unions_are_not_multiplied_out() -> None:
    def chain(depth: int) -> dict[str, Any]:
        node: dict[str, Any] = {"v": "1"}
        for _ in range(depth):
            node = {"v": "1", "next": node}
        return node

    def repairing(depth: int) -> Callable[[], object]:
        raw = chain(depth)
        return lambda: repair(raw, NODE)

    # Two readings a level would be 2 ** 70 times.
    assert growth(repairing, 10, 80, 64, floor=0.001) <= 64
