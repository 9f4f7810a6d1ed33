"""Arguments as models send them: what is put right, what is refused, and in which words."""

import datetime as dt
import decimal
import enum
import json
import pathlib
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AliasPath, BaseModel, ConfigDict, Field, create_model
from typing_extensions import TypeAliasType, TypedDict

from tests.cases import each
from tests.properties import examples
from toolcrib import Effect, Toolbox
from toolcrib.codecs.wire_json import wire_value
from toolcrib.compiling.typed_params import TypedParams
from toolcrib.function import tool
from toolcrib.json_text.lenient_reader import reading_loses_nothing
from toolcrib.json_text.values import same_json

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
    assert seen == [(text, value)]


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
        (
            {"type": "string", "format": "date", "pattern": "^2"},
            1,
            'string, a date such as "2024-12-31", matches ^2',
        ),
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


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


def numbers(
    a: Any = None,
    d: decimal.Decimal | None = None,
    f: float | None = None,
    i: int | None = None,
    many: list[float] | None = None,
    prices: dict[str, decimal.Decimal] | None = None,
    one: Literal[1] = 1,
    none: Literal[0, 2] = 0,
    level: Level = Level.LOW,
    length: dt.timedelta | None = None,
    when: dt.datetime | None = None,
) -> str:
    given = locals()
    return repr(next((v for v in given.values() if v not in (None, 0, 1)), None))


def show(arguments: dict[str, Any]) -> str:
    return repr(arguments)


OPEN = {"type": "object", "properties": {"a": {}, "n": {"type": "number"}}}
NUMBERS = Toolbox(
    [
        tool(numbers, effect=READ, secrets=()),
        tool(numbers, effect=Effect.WRITE, secrets=(), name="write"),
        tool(show, effect=READ, secrets=(), name="raw", params=OPEN),
    ],
    autonomy="full",
)
EXACT: list[tuple[str, str]] = [
    ('{"i": 9007199254740993}', "9007199254740993"),
    ('{"a": 12345678901234567890}', "12345678901234567890"),
    ('{"f": 0.1}', "0.1"),
    ('{"f": 1.10}', "1.1"),
    ('{"f": 1E5}', "100000.0"),
    ('{"f": 1e22}', "1e+22"),
    ('{"f": 9007199254740994}', "9007199254740994.0"),
    ('{"d": 1.10}', "Decimal('1.10')"),
    ('{"d": 0.1000000000000000055}', "Decimal('0.1000000000000000055')"),
    ('{"d": 12345678901234567890.5}', "Decimal('12345678901234567890.5')"),
    ('{"d": 12345678901234567890}', "Decimal('12345678901234567890')"),
    ('{"d": 1e400}', "Decimal('1E+400')"),
    ('{"d": "12.50"}', "Decimal('12.50')"),
    ('{"prices": {"x": 1.10, "y": 2}}', "{'x': Decimal('1.10'), 'y': Decimal('2')}"),
    ('{"arguments": {"d": 1.10}}', "Decimal('1.10')"),
    ('{"level": 2}', "<Level.HIGH: 2>"),
    ('{"none": 2}', "2"),
    ('{"length": "P1DT2H30M"}', repr(dt.timedelta(days=1, hours=2, minutes=30))),
    ('{"length": "PT0.5S"}', repr(dt.timedelta(milliseconds=500))),
    ('{"length": "P2W"}', repr(dt.timedelta(weeks=2))),
]


@each(("text", "runs_with"), EXACT, ids=str)
async def test_a_number_keeps_its_digits(text: str, runs_with: str) -> None:
    for name in ("numbers", "write"):
        assert (await NUMBERS.call(name, text)).text == runs_with


LOSSY: list[str] = [
    '{"f": 9007199254740993}',
    '{"f": 9007199254740993.0}',
    '{"f": 12345678901234567e1}',
    '{"a": 9007199254740993.0}',
    '{"many": [1, 12345678901234567891]}',
    '{"a": {"deep": [0.1000000000000000055]}}',
    '{"f": 1e400}',
    '{"a": 1e400}',
    '{"a": 1e-400}',
    '{"a": 1, "a": 2}',
    '{"a": {"k": 1, "k": true}}',
    '{"a": [{"k": 1, "k": 1.5}]}',
    '{"a": {"k": 1, "\\u006b": 2}}',
    '{"i": 1,\n "i": 2}',
]


@each("text", LOSSY)
async def test_what_would_lose_something_is_refused_for_every_effect(text: str) -> None:
    # A float cannot hold every integer; the plain data of a foreign tool can.
    foreign = () if re.search("[1-9][0-9]{15}[],}]", text) else ("raw",)
    for name in ("numbers", "write", *foreign):
        result = await NUMBERS.call(name, text)
        assert result.code == "invalid_arguments"
        assert "exactly" in result.text or "twice" in result.text or "15 digits" in result.text


class Part(BaseModel):
    size: float = 0.0
    note: str | None = None
    inner: list["Part"] = []


class Default(BaseModel):
    part: Part = Part(size=1)
    other: Part | None = None


class Side(BaseModel):
    length: float


class Panel(BaseModel):
    left: Side
    right: Side
    weight: float


@tool(effect=READ, secrets=())
def arrange(
    sizes: dict[str, int] | None = None,
    notes: dict[str, str] | None = None,
    parts: list[Part] | None = None,
) -> str:
    """Arrange what has any name."""
    return "done"


@tool(effect=READ, secrets=())
def assemble(
    count: int,
    part: Part | None = None,
    parts: list[Part] | None = None,
    whole: Default | None = None,
    panels: list[Panel] | None = None,
    ratio: float = 1,
) -> str:
    """Assemble parts."""
    return "done"


NUMBER_TEXTS = st.sampled_from(
    [
        "0",
        "1",
        "-1",
        "0.5",
        "1.50",
        "1e3",
        "1e-400",
        "0.1234567890123456789",
        "1234567890.1234567",
        "12345678901234567",
        "12345678901234567e1",
        "123456.78901234567890123456789012345678901234567890",
        "32.989999999999995",
    ]
)
STRING_TEXTS = st.sampled_from(
    [
        '""',
        '"a"',
        '"a:b"',
        '":"',
        '"\\u00e9"',
        '"é"',
        '"1e-4"',
        '"12345678901234567"',
        "null",
        r'"\":"',
        r'"\\"',
        r'"\\\":"',
        r'"{\"a\": 1}"',
        r'"\" : "',
        '" :"',
        '": "',
        r'"\n"',
    ]
)


def written_objects(fields: dict[str, st.SearchStrategy[str]]) -> st.SearchStrategy[str]:
    """Objects of these fields as text, some of them with a key that stands twice."""
    member = st.sampled_from(sorted(fields)).flatmap(
        lambda name: st.tuples(
            st.sampled_from([*[name] * 15, f"\\u{ord(name[0]):04x}{name[1:]}"]), fields[name]
        )
    )
    written = st.lists(member, max_size=4).map(
        lambda members: ", ".join(
            f'"{name}"{("", " ", chr(10) + " ")[len(value) % 3]}: {value}' for name, value in members
        )
    )
    return written.map(lambda text: f"{{{text}}}")


PART_TEXTS = written_objects({"size": NUMBER_TEXTS, "note": STRING_TEXTS})
PART_TEXTS |= written_objects({"size": NUMBER_TEXTS, "inner": PART_TEXTS.map(lambda text: f"[{text}]")})
PART_LISTS = st.lists(PART_TEXTS, max_size=2).map(lambda texts: f"[{', '.join(texts)}]")
SIDE_TEXTS = st.tuples(NUMBER_TEXTS, st.sampled_from(["", "", ', "length": 1'])).map(
    lambda parts: f'{{"length": {parts[0]}{parts[1]}}}'
)
PANEL_TEXTS = st.tuples(SIDE_TEXTS, SIDE_TEXTS, NUMBER_TEXTS, st.sampled_from(["", "", ', "weight": 1'])).map(
    lambda parts: f'{{"left": {parts[0]}, "right": {parts[1]}, "weight": {parts[2]}{parts[3]}}}'
)
WHOLE_TEXTS = written_objects({"part": PART_TEXTS, "other": PART_TEXTS})
ASSEMBLE_TEXTS = written_objects(
    {
        "count": st.just("1"),
        "part": PART_TEXTS,
        "parts": PART_LISTS,
        "whole": WHOLE_TEXTS,
        "panels": PANEL_TEXTS.map(lambda text: f"[{text}]"),
        "ratio": NUMBER_TEXTS,
    }
).filter(lambda text: '"count"' in text)


def dict_texts(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Objects of any keys as text, with keys that end like another text, and some that stand twice."""
    keys = st.sampled_from([r"\\", r"\"", ":", r"\":", "a", r"\u0061", " :", "a ", r"a\\\""])
    spaces = st.sampled_from(["", "", " ", "\n "])
    member = st.tuples(keys, spaces, values).map(lambda parts: f'"{parts[0]}"{parts[1]}:{parts[2]}')
    return st.lists(member, max_size=4).map(lambda members: f"{{{','.join(members)}}}")


ARRANGE_TEXTS = written_objects(
    {"sizes": dict_texts(NUMBER_TEXTS), "notes": dict_texts(STRING_TEXTS), "parts": PART_LISTS}
)
TEXTS = st.tuples(st.just(assemble), ASSEMBLE_TEXTS) | st.tuples(st.just(arrange), ARRANGE_TEXTS)


@examples(1000)
@given(TEXTS)
def test_what_is_read_without_care_says_no_more_than_was_read(case: tuple[Any, str]) -> None:
    made, text = case
    params = made.definition().params
    try:
        params.parse(text)
    except ValueError:
        return
    assert reading_loses_nothing(text), text


@each(
    "fields",
    [
        '"ratio": 1e-400',
        '"ratio": 0.1234567890123456789',
        '"ratio": 12345678901234567',
        '"part": {"size": 1, "size": 2}',
        '"parts": [{"note": "a"}, {"note": "b", "note": "a"}]',
        '"part": {"inner": [{"inner": [{"size": 1, "size": 2}]}]}',
        '"whole": {"part": {"size": 2, "size": 3}}',
        '"whole": {"other": {"note": null, "note": "a"}}',
        '"part": null, "part": {}',
        '"panels": [{"left": {"length": 1, "length": 2}, "right": {"length": 1}, "weight": 1}]',
        '"panels": [{"left": {"length": 1}, "right": {"length": 1}, "weight": 1, "weight": 2}]',
        '"panels": [{"left": {"length": 12345678901234567e1}, "right": {"length": 1}, "weight": 1}]',
    ],
)
async def test_what_models_of_floats_would_lose_is_refused(fields: str) -> None:
    result = await Toolbox([assemble]).call("assemble", f'{{"count": 1, {fields}}}')
    assert result.code == "invalid_arguments"
    assert "exactly" in result.text or "twice" in result.text or "15 digits" in result.text


# Names of parameters that are also keys of a core schema, whose value is no schema there.
@each(
    "name",
    ["cls", "config", "default", "expected", "function", "metadata", "serialization", "type", "fields"],
)
def test_what_a_parameter_of_any_name_would_lose_is_refused(name: str) -> None:
    for kind, value in (
        (float, "12345678901234567891"),
        (float, "0.12345678901234567891"),
        (float, "1e-400"),
        (dict[str, Any], '{"a": 0.12345678901234567891}'),
        (dict[str, Any], '{"a": 1e400}'),
        (dict[str, Any], '{"a": NaN}'),
    ):
        params = TypedParams.of_fields({name: (kind, True)}, tool="act")
        with pytest.raises(ValueError, match=r"more than was read|15 digits"):
            params.parse(f'{{"{name}": {value}}}')


class OpenModel(BaseModel, extra="allow"):
    a: int = 0


class OpenDict(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    a: int


@dataclass
class OpenClass:
    __pydantic_config__ = ConfigDict(extra="allow")
    a: int = 0


@each("kind", [OpenModel, OpenDict, OpenClass])
def test_what_a_field_that_is_not_named_would_lose_is_refused(kind: Any) -> None:
    for params, text in (
        (TypedParams.of_type(kind, tool="act"), '{{"further": {}}}'),
        (TypedParams.of_fields({"inner": (kind, True)}, tool="act"), '{{"inner": {{"further": {}}}}}'),
    ):
        params.parse(text.format('{"a": 1.5}'))
        for value in ("0.12345678901234567891", "1e400", "1e-400", "NaN", '[{"a": 1, "a": 2}]'):
            with pytest.raises(ValueError, match="more than was read"):
                params.parse(text.format(value))


# The default of a type alias is the default of all fields that have this type.
Usually5 = TypeAliasType("Usually5", Annotated[int, Field(default=5)])


class Ends(BaseModel):
    first: int = Field(validation_alias=AliasPath("pair", 0))
    last: int = Field(validation_alias=AliasPath("pair", 1))


class Same(BaseModel):
    one: int = Field(validation_alias="n")
    other: int = Field(validation_alias="n")


class Swapped(BaseModel, populate_by_name=True):
    one: int = Field(validation_alias="n")
    other: int = Field(validation_alias="one")


class Aliased(TypedDict):
    one: Usually5
    two: Usually5
    n: int


@pytest.mark.filterwarnings("ignore:The 'default' attribute")
async def test_a_key_that_two_fields_are_read_from_must_not_stand_twice() -> None:
    def act(
        ends: Ends | None = None,
        same: Same | None = None,
        swapped: Swapped | None = None,
        aliased: Aliased | None = None,
    ) -> str:
        return "done"

    box = Toolbox([tool(act, effect=READ, secrets=())])
    for text in (
        '{"ends": {"pair": [1, 2], "pair": [3, 4]}}',
        '{"same": {"n": 1, "n": 2}}',
        '{"swapped": {"one": 1, "one": 2}}',
        '{"aliased": {"n": 1, "n": 2}}',
    ):
        result = await box.call("act", text)
        assert result.code == "invalid_arguments", text
        assert "twice" in result.text


async def test_a_key_that_stands_twice_with_one_value_is_an_edit() -> None:
    for name in ("numbers", "raw"):
        result = await NUMBERS.call(name, '{"a": 3, "a": 3}')
        assert not result.is_error
        assert [edit.kind for edit in result.edits] == ["duplicate_key"]


MISSPELT: list[tuple[str, str]] = [
    ('{"one": true}', "expected 1,"),
    ('{"none": false}', "one of 0, 2"),
    ('{"level": true}', "one of 1, 2"),
    ('{"d": true}', '"12.50"'),
    ('{"d": "1_000"}', '"12.50"'),
    ('{"d": " 1"}', '"12.50"'),
    ('{"d": "NaN"}', '"12.50"'),
    ('{"length": 60}', "P1DT2H30M"),
    ('{"length": "1 day"}', "P1DT2H30M"),
    ('{"length": "P1Y"}', "P1DT2H30M"),
    ('{"length": "01:00"}', "P1DT2H30M"),
    ('{"when": "2026-01-02T03:04:05.1234567Z"}', "when"),
]


@each(("text", "words"), MISSPELT, ids=str)
async def test_a_value_of_another_spelling_is_refused_with_the_right_one(text: str, words: str) -> None:
    result = await NUMBERS.call("numbers", text)
    assert result.code == "invalid_arguments"
    assert words in result.text


def test_schema_and_parser_take_the_same_spellings() -> None:
    schema = tool(numbers, effect=READ, secrets=()).spec.input_schema["properties"]
    pattern = next(member for member in schema["d"]["anyOf"] if member["type"] == "string")["pattern"]
    for text in ("1", "-1.50", "1e5", "0", "01", "+1", "1_0", " 1", "1.", ".5", "NaN", ""):
        came = NUMBERS.call_sync("numbers", {"d": text})
        assert bool(re.search(pattern, text)) == (not came.is_error and not came.edits), text
    for text in ("P1D", "PT1H", "PT1M30S", "P1W", "P", "PT", "P1Y", "P1M", "PT1H30S", "-PT1H", "1:00", ""):
        came = NUMBERS.call_sync("numbers", {"length": text})
        assert bool(re.search(schema["length"]["pattern"], text)) == (not came.is_error and not came.edits), (
            text
        )


def replace_text(
    old: str, new: str = "X", path: pathlib.Path = pathlib.Path("p"), label: str | None = "L"
) -> str:
    """Replace a text."""
    return repr((old, new, str(path), label))


Word = Annotated[str, Field(min_length=1)]


def greet(name: Word = "you", mood: Literal["glad", "sad"] = "glad", day: dt.date | None = None) -> str:
    """Greet somebody."""
    return repr((name, mood, day))


DATED = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "day": {"type": "string", "format": "date"}},
}
EMPTIES: list[tuple[str, Any, str, list[str]]] = [
    ("replace_text", {"old": "a", "new": ""}, "('a', '', 'p', 'L')", []),
    ("replace_text", {"old": "a", "label": ""}, "('a', 'X', 'p', '')", []),
    ("replace_text", {"old": "", "path": ""}, "('', 'X', 'p', 'L')", ["path"]),
    ("greet", {"name": "", "mood": "", "day": ""}, "('you', 'glad', None)", ["name", "mood", "day"]),
    ("dated", {"text": "", "day": ""}, "{'text': ''}", ["day"]),
]


@each(("name", "came", "runs_with", "edited"), EMPTIES, ids=str)
async def test_an_empty_text_is_the_value_where_it_can_be_one(
    name: str, came: Any, runs_with: str, edited: list[str]
) -> None:
    dated = tool(lambda given: repr(given), effect=READ, secrets=(), name="dated", params=DATED)
    box = Toolbox([tool(replace_text, effect=READ, secrets=()), tool(greet, effect=READ, secrets=()), dated])
    for arguments in (came, json.dumps(came), json.dumps(came, indent=2)):
        result = await box.call(name, arguments)
        assert result.text == runs_with
        assert [(edit.path, edit.kind) for edit in result.edits] == [(path, "omitted") for path in edited]


def anything(a: int = 0, b: str = "", **rest: Any) -> str:
    return repr((a, b, rest))


WRAPPED_OPEN: list[tuple[Any, str | None]] = [
    # (what came, what the tool runs with; None where it is refused)
    ({"arguments": {"a": 1}}, "1"),
    ({"params": {"a": 1, "b": "x"}}, "1"),
    ({"input": '{"a": 1}'}, "1"),
    ({"parameters": {}}, "0"),
    ({"TOOL": {"a": 1}}, "1"),
    ({"name": "TOOL", "arguments": {"a": 1}}, "1"),
    ({"tool": "TOOL", "tool_input": {"a": 1}}, "1"),
    ({"tool": "other", "tool_input": {"a": 1}}, None),
    ({"arguments": {"a": 1, "zzz": 2}}, None),
    ({"arguments": {"a": 1}, "b": "x"}, None),
    ({"arguments": {"arguments": {"a": 1}}}, None),
    ({"input": '{"a": 1'}, None),
    ({"a": 1, "zzz": 2}, "1"),
]


@each(("came", "runs_with"), WRAPPED_OPEN, ids=str)
async def test_a_wrapper_never_runs_as_an_unknown_field(came: Any, runs_with: str | None) -> None:
    properties = {"a": {"type": "integer"}, "b": {"type": "string"}}
    for effect in (READ, Effect.WRITE):
        raw = tool(
            lambda given: str(given.get("a", 0)),
            name="raw",
            effect=effect,
            secrets=(),
            params={"type": "object", "properties": properties},
        )
        box = Toolbox([raw], autonomy="full")
        text = json.dumps(came).replace("TOOL", "raw")
        for arguments in (text, json.loads(text)):
            result = await box.call("raw", arguments)
            assert result.text == runs_with if runs_with is not None else result.code == "invalid_arguments"
            assert runs_with is None or "zzz" in text or [edit.kind for edit in result.edits] == ["unwrapped"]


async def test_a_wrapper_is_no_extra_argument_of_a_function_that_takes_any() -> None:
    box = Toolbox([tool(anything, effect=READ, secrets=())])
    assert (await box.call("anything", {"arguments": {"a": 1}})).code == "invalid_arguments"
    assert (await box.call("anything", {"params": {"q": 1}})).text == "(0, '', {'params': {'q': 1}})"


async def test_white_space_alone_is_no_call_without_arguments() -> None:
    result = await NUMBERS.call("numbers", " \n")
    assert result.code == "invalid_arguments"
    assert "{}" in result.text


def written(value: Any) -> st.SearchStrategy[str]:
    """JSON texts of a value, with the spaces and escapes that a model may use."""
    return st.sampled_from([
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        json.dumps(value, indent=1),
        json.dumps(value, separators=(",", ":")),
    ])  # fmt: skip


NUMBER_TEXTS = st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][-+]?[0-9]{1,3})?", fullmatch=True)


@examples(200)
@given(number=NUMBER_TEXTS, deep=st.booleans())
def test_a_number_that_runs_is_the_number_that_was_sent(number: str, deep: bool) -> None:
    seen: list[Any] = []

    def keep(f: float = 0, d: decimal.Decimal = decimal.Decimal(0), a: Any = 0) -> str:
        seen.append((f, d, a))
        return ""

    box = Toolbox([tool(keep, effect=READ, secrets=(), inline=True)])
    sent = decimal.Decimal(number)
    assert not box.call_sync("keep", f'{{"d": {number}}}').is_error
    assert seen[-1][1] == sent and seen[-1][1].as_tuple()[1:] == sent.as_tuple()[1:]  # JSON's -0 is 0
    for name, place in (("f", 0), ("a", 2)):
        value = f"[{{}}, {number}]" if deep and name == "a" else number
        if not box.call_sync("keep", f'{{"{name}": {value}}}').is_error:
            got = seen[-1][place][1] if deep and name == "a" else seen[-1][place]
            assert decimal.Decimal(repr(got)) == sent


@examples(150)
@given(data=st.data(), value=st.dictionaries(st.text(max_size=4), JSON_VALUES, max_size=4))
def test_what_runs_is_what_was_sent_or_an_edit_says_so(data: Any, value: dict[str, Any]) -> None:
    seen: list[Any] = []

    def keep(arguments: dict[str, Any]) -> str:
        seen.append(arguments)
        return ""

    raw = tool(
        keep,
        effect=READ,
        secrets=(),
        inline=True,
        name="raw",
        params={"type": "object"},
    )
    text = data.draw(written(value))
    again = data.draw(st.sampled_from(list(value))) if value else ""
    other = data.draw(JSON_VALUES)
    if value and data.draw(st.booleans()):
        text = text.rstrip()[:-1] + f", {json.dumps(again)}: {json.dumps(other)}}}"
        result = Toolbox([raw]).call_sync("raw", text)
        assert result.is_error or (same_json(value[again], other) and result.edits)
    else:
        result = Toolbox([raw]).call_sync("raw", text)
        assert seen == [value] and not result.edits, result.text


@each(("text", "runs_with"), EXACT, ids=str)
async def test_a_number_in_an_object_that_a_provider_sends_keeps_its_digits(
    text: str, runs_with: str
) -> None:
    if "e400" not in text:  # no float, and no provider sends one
        assert (await NUMBERS.call("numbers", wire_value(text))).text == runs_with


WIRE_LOSSY = [
    '{"f": 9007199254740993}',
    '{"f": 9007199254740993.0}',
    '{"a": {"deep": [0.1000000000000000055]}}',
    '{"a": 1e400}',
]


@each("text", WIRE_LOSSY)
async def test_a_number_in_an_object_that_a_provider_sends_is_refused_where_it_loses_digits(
    text: str,
) -> None:
    assert (await NUMBERS.call("numbers", wire_value(text))).code == "invalid_arguments"


KEYS: list[tuple[Any, Any, str | None]] = [
    # (type of the keys, the keys, what the tool runs with; None where they are refused)
    (int, ["1", "-20"], "[1, -20]"),
    (int, ["1", "01"], None),
    (int, ["1", "1.0"], None),
    (int, ["0", "-0"], None),
    (int, [" 1"], None),
    (int, ["9007199254740993"], "[9007199254740993]"),
    (float, ["1", "2.5"], "[1.0, 2.5]"),
    (float, ["1", "1.0"], None),
    (float, ["0.1000000000000000055"], None),
    (float, ["123456789012345.12345678"], None),
    (decimal.Decimal, ["1.05"], "[Decimal('1.05')]"),
    (decimal.Decimal, ["1", "1.00"], None),
    (bool, ["true", "false"], "[True, False]"),
    (bool, ["true", "1"], None),
    (str, ["1", "01"], "['1', '01']"),
]


@each(("kind", "keys", "runs_with"), KEYS, ids=str)
async def test_no_key_takes_the_place_of_another(kind: Any, keys: list[str], runs_with: str | None) -> None:
    def take(given: dict[kind, int]) -> str:
        return repr([*given])

    result = await Toolbox([tool(take, effect=READ, secrets=())]).call(
        "take", {"given": dict.fromkeys(keys, 1)}
    )
    assert result.text == runs_with if runs_with else result.code == "invalid_arguments"
    assert runs_with or "expected a key that is" in result.text


async def test_a_field_may_have_any_name() -> None:
    names = ["type", "metadata", "schema_", "fields", "choices", "default", "ref", "config"]
    model = create_model("Named", **dict.fromkeys(names, (int | None, None)))  # type: ignore[call-overload]

    @tool(effect=Effect.READ, secrets=(), params=model)
    def show(params: Any) -> str:
        """Show."""
        return str(params.model_dump())

    for name in names:
        told = await Toolbox([show]).call("show", {name: 3})
        assert not told.is_error and f"'{name}': 3" in told.text


async def test_a_value_that_is_told_again_is_cut_between_words() -> None:
    """Masking knows a secret as a whole: of one that was cut, the rest would stay."""
    key = "k" * 100

    @tool(effect=Effect.READ, secrets=())
    def count(n: int) -> int:
        """Count."""
        return n

    result = await Toolbox([count]).call("count", {"n": f"the value is {key} and more"})
    assert result.text.splitlines()[1] == '- n: expected integer, got string "the value is …'
    result = await Toolbox([count]).call("count", {"n": key})
    assert result.text.splitlines()[1] == '- n: expected integer, got string "kkkkkkk…'
