"""Arguments as models send them: what is put right, what is refused, and in which words."""

import datetime as dt
import decimal
import enum
import json
import pathlib
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from tests.properties import examples
from toolcrib import Effect, Toolbox
from toolcrib.function import tool

READ = Effect.READ


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int
    y: int = 0


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


def take(
    n: int = 0,
    flag: bool = False,
    items: list[int] | None = None,
    names: list[str] | None = None,
    point: Point | None = None,
    points: list[Point] | None = None,
    maybe: int | None = None,
    colour: Colour = Colour.RED,
    text: str = "",
    ratio: float = 0.0,
) -> Any:
    given = locals()
    return {k: v for k, v in given.items() if v not in (None, 0, False, "", Colour.RED)}


BOX = Toolbox([tool(take, effect=READ, secrets=())])

IMPERFECT: list[tuple[str, Any, str]] = [
    ("int as text", {"n": "5"}, '{"n":5}'),
    ("int as 5.0", {"n": 5.0}, '{"n":5}'),
    ("bool as text", {"flag": "true"}, '{"flag":true}'),
    ("bool as Text", {"flag": "True"}, '{"flag":true}'),
    ("list as JSON text", {"items": "[1, 2]"}, '{"items":[1,2]}'),
    ("object as JSON text", {"point": '{"x": 1}'}, '{"point":{"x":1,"y":0}}'),
    ("scalar for a list", {"items": 3}, '{"items":[3]}'),
    ("text for a list of text", {"names": "ann"}, '{"names":["ann"]}'),
    ("object for a list of objects", {"points": {"x": 1}}, '{"points":[{"x":1,"y":0}]}'),
    ("empty text for an optional number", {"maybe": ""}, "{}"),
    ("null as text", {"maybe": "null"}, "{}"),
    ("null for a defaulted enum", {"colour": None}, "{}"),
    ("enum in the wrong case", {"colour": "BLUE"}, '{"colour":"blue"}'),
    ("wrapper", {"arguments": {"n": 5}}, '{"n":5}'),
    ("trailing comma", '{"n": 5,}', '{"n":5}'),
    ("Python dict", "{'n': 5, 'flag': True, 'maybe': None}", '{"n":5,"flag":true}'),
    ("fence", '```json\n{"n": 5}\n```', '{"n":5}'),
    ("encoded twice", json.dumps(json.dumps({"n": 5})), '{"n":5}'),
    ("number as text with a fraction", {"ratio": "2.5"}, '{"ratio":2.5}'),
    (
        "all at once",
        {"n": "5", "flag": "false", "items": "[1]", "maybe": "7"},
        '{"n":5,"items":[1],"maybe":7}',
    ),
]


@pytest.mark.parametrize(("arguments", "expected"), [c[1:] for c in IMPERFECT], ids=[c[0] for c in IMPERFECT])
async def test_imperfect_arguments_arrive_right(arguments: Any, expected: str) -> None:
    result = await BOX.call("take", arguments)
    assert (result.is_error, result.text) == (False, expected)


HOPELESS: list[tuple[Any, list[str]]] = [
    ({"n": "many"}, ['- n: expected integer, got string "many"']),
    ({"n": 5.5}, ["- n: expected integer, got number 5.5"]),
    ({"n": True}, ["- n: expected integer, got boolean true"]),
    ({"n": [5]}, ["- n: expected integer, got array [5]"]),
    ({"colour": "green"}, ["- colour: ", '"red"', '"blue"', '"green"']),
    ({"items": [1, "b", "c"]}, ["- items[1]: expected integer", "- items[2]: expected integer"]),
    ({"points": [{"x": 1}, {"y": 2}]}, ["- points[1].x: expected integer, got nothing"]),
    ({"point": {"x": 1, "z": 2}}, ["- point.z: expected no parameter of this name", "x, y"]),
    ({"N": 5}, ["- N: expected no parameter of this name"]),
    ({"n": "5", "text": 3}, ["- text: expected string, got integer 3"]),
    ("{", ["could not be read"]),
    ('{"n": 5', ["could not be read"]),
    ('{"text": "abc', ["could not be read"]),
    ("please set n to 5", ["could not be read"]),
    ('{"n": 5}{"n": 6}', ["could not be read"]),
    ("[]", ["object"]),
    ("5", ["object"]),
    ("null", ["object"]),
]


@pytest.mark.parametrize(("arguments", "words"), HOPELESS, ids=lambda item: str(item)[:40])
async def test_hopeless_arguments_are_answered_in_words_to_act_on(arguments: Any, words: list[str]) -> None:
    result = await BOX.call("take", arguments)
    assert result.code == "invalid_arguments"
    for word in words:
        assert word in result.text
    assert "pydantic" not in result.text.lower() and "http" not in result.text


def bounded(
    port: Annotated[int, Field(ge=1, le=65535)],
    name: Annotated[str, Field(min_length=2, max_length=5, pattern="^[a-z]+$")],
    day: dt.date,
    price: Annotated[decimal.Decimal, Field(gt=0)],
    tags: Annotated[list[str], Field(min_length=1, max_length=2)],
    pet: Annotated[Cat | Dog, Field(discriminator="kind")],
    mode: Literal["fast", "safe"],
    path: pathlib.Path,
    data: bytes,
) -> str:
    return "fine"


GOOD: dict[str, Any] = {
    "port": 80, "name": "ann", "day": "2026-01-02", "price": "1.5", "tags": ["a"],
    "pet": {"kind": "cat"}, "mode": "fast", "path": "a/b", "data": "aGk=",
}  # fmt: skip
BOUNDED = Toolbox([tool(bounded, effect=READ, secrets=())])


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("port", 0, "at least 1"),
        ("port", 70_000, "at most 65535"),
        ("name", "a", "at least 2 characters"),
        ("name", "abcdef", "at most 5"),
        ("name", "A1", "[a-z]"),
        ("day", "tomorrow", "date"),
        ("price", "-1", "0"),
        ("price", "cheap", '"cheap"'),
        ("tags", [], "at least 1 item"),
        ("tags", ["a", "b", "c"], "at most 2 items"),
        ("pet", {"kind": "cow"}, "cow"),
        ("mode", "careful", '"fast", "safe"'),
        ("path", 3, "string"),
    ],
)
async def test_rules_are_told_with_what_came(field: str, value: Any, words: str) -> None:
    assert (await BOUNDED.call("bounded", GOOD)).text == "fine"
    result = await BOUNDED.call("bounded", {**GOOD, field: value})
    assert result.code == "invalid_arguments"
    line = next(line for line in result.text.splitlines() if line.startswith(f"- {field}"))
    assert words in line


async def test_every_failing_field_is_told_and_very_many_are_counted() -> None:
    result = await BOUNDED.call("bounded", {})
    assert [line.split(":")[0] for line in result.text.splitlines() if line[:2] == "- "] == [
        f"- {name}" for name in GOOD
    ]
    many = await BOX.call("take", {f"p{n}": n for n in range(50)})
    assert "and 30 more" in many.text


async def test_a_long_value_is_not_echoed_whole() -> None:
    result = await BOX.call("take", {"n": "x" * 100_000})
    assert len(result.text) < 500


@pytest.mark.parametrize(
    "arguments",
    ["[" * 100_000, '{"n":' * 50_000, {1: 2}, [1], 5, True, b'{"n": 1}', {"text": "\ud800"}, {"text": object()},
     "\ud800", '{"text": "\ud800"}', '{"a\ud800": 1}',
     '{"text": "\\ud800"}', "\x00", {"n": 10**400}, '{"n": 1' + "0" * 5_000 + "}", '{"n": 1e999}', {"n": float("nan")}],
    ids=lambda item: repr(item)[:20],
)  # fmt: skip
async def test_whatever_comes_is_answered(arguments: Any) -> None:
    raw = tool(
        lambda p: "ok",
        name="raw",
        effect=READ,
        secrets=(),
        params={"type": "object", "properties": {"n": {}}},
    )
    box = Toolbox([tool(take, effect=READ, secrets=()), raw])
    for name in ("take", "raw"):
        result = await box.call(name, arguments)
        result.text.encode("utf-8", "surrogatepass")
        assert result.code in ("invalid_arguments", None)


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@examples(150)
@given(value=JSON_VALUES, text=st.text(max_size=20))
def test_what_fits_arrives_as_it_was_sent(value: Any, text: str) -> None:
    seen: list[Any] = []

    def keep(text: str, value: Any = None) -> str:
        seen.append((text, value))
        return ""

    box = Toolbox([tool(keep, effect=READ, secrets=(), inline=True)])
    result = box.call_sync("keep", json.dumps({"text": text, "value": value}))
    assert not result.is_error and not result.edits
    # An empty string for what is not required means that it is absent.
    assert seen == [(text, None if value == "" else value)]


@examples(150)
@given(text=st.text(alphabet="{}[]\",:ntrue 015\\\n'", max_size=30))
def test_no_text_at_all_breaks_the_path(text: str) -> None:
    result = BOX.call_sync("take", text)
    assert result.code in (None, "invalid_arguments")


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ({"type": "array", "uniqueItems": True}, [1, 1], "array, no item twice"),
        ({"type": "object", "minProperties": 1}, {}, "object, at least 1 key"),
        ({"type": "string", "format": "date", "pattern": "^2"}, 1, "string, format: date, matches ^2"),
    ],
)
async def test_rules_of_a_foreign_schema_are_told_alike(schema: Any, value: Any, words: str) -> None:
    given = tool(
        lambda params: "fine",
        name="given",
        effect=READ,
        secrets=(),
        params={"type": "object", "properties": {"v": schema}},
    )
    result = await Toolbox([given]).call("given", {"v": value})
    assert f"- v: expected {words}, got " in result.text
