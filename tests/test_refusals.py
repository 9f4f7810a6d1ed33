"""Refused arguments: the refusal names what would be accepted, in words without Python, and the schema says it before."""

import datetime as dt
import enum
import json
import pathlib
import re
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal

import pydantic as pyd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import BaseModel, Discriminator, Field, Tag

from tests.properties import examples
from toolcrib import Effect, Toolbox, tool
from toolcrib.compiling.failures import WORDS


def taking(kind: Any) -> Any:
    def take(x: Any) -> str:
        return "done"

    take.__annotations__["x"] = kind
    return tool(take, effect=Effect.READ, secrets=())


def refusal(kind: Any, value: Any) -> list[str]:
    """The lines of a refusal that say what is wrong; empty where the call ran."""
    result = Toolbox([taking(kind)]).call_sync("take", {"x": value})
    assert not result.is_error or result.code == "invalid_arguments", result.text
    return [line.removeprefix("- ") for line in result.text.splitlines() if line.startswith("- ")]


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    name: str


class Span(BaseModel):
    start: int
    end: int

    @pyd.model_validator(mode="after")
    def in_order(self) -> "Span":
        if self.start > self.end:
            raise ValueError("start must not be after end")
        return self


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def even(number: int) -> int:
    if number % 2:
        raise ValueError("must be even")
    return number


def tag_of(value: Any) -> str:
    return str(value.get("k")) if isinstance(value, dict) else "a"


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]
Called = Annotated[Annotated[Cat, Tag("a")] | Annotated[Dog, Tag("b")], Discriminator(tag_of)]
PETS = 'x.kind: expected one of "cat", "dog" ("cat" takes lives (optional); "dog" takes name)'
PRICE = Annotated[Decimal, Field(max_digits=5, decimal_places=2, ge=0)]

REFUSED: list[tuple[Any, Any, str]] = [
    (Pet, {}, f"{PETS}, got nothing"),
    (Pet, {"kind": "cow"}, f'{PETS}, got string "cow"'),
    (list[Pet], [{"name": "x"}], f"{PETS.replace('x.', 'x[0].')}, got nothing"),
    (Pet, {"kind": "dog"}, "x.name: expected string, got nothing"),
    (Pet, {"kind": "cat", "name": "x"},
     'x.name: expected no parameter of this name, got string "x" (allowed: kind, lives)'),
    (Pet, 3, 'x: expected object with kind "cat" (optional: lives) or (object with kind "dog", name), got integer 3'),
    (Cat | Dog, {"name": 3}, "x.name: expected string, got integer 3"),
    (Cat | Dog, {"kind": "cow"}, f'{PETS}, got string "cow"'),
    (int | list[int], ["x"], 'x[0]: expected integer, got string "x"'),
    (int | dict[str, int], {"a": "x"}, 'x.a: expected integer, got string "x"'),
    (int | Literal["new"], "old", 'x: expected integer or "new", got string "old"'),
    (Literal["new"], "old", 'x: expected "new", got string "old"'),
    (Annotated[int, Field(ge=5)] | bool, 3, "x: expected (integer, at least 5) or boolean, got integer 3"),
    (PRICE, "1.234", "at most 2 digits after the decimal point"),
    (PRICE, 123456, "at most 5 digits in total"),
    (PRICE, -1, "at least 0"),
    (Annotated[dt.date, Field(ge=dt.date(2020, 1, 1))], "2019-01-01", "not before 2020-01-01"),
    (Annotated[dt.timedelta, Field(le=dt.timedelta(hours=1))], "P1D", "at most"),
    (dt.date, "2024-13-40", 'a date such as "2024-12-31" (month value is outside'),
    (pyd.FutureDate, "1999-01-01", "in the future"),
    (pyd.AwareDatetime, "2024-01-01T00:00:00", "with an offset from UTC"),
    (pyd.HttpUrl, "ftp://x/y", "that begins with http:// or https://"),
    (pyd.UUID4, "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "a UUID of version 4"),
    (pyd.FilePath, "/no/such/file", "the path of a file that exists"),
    (dict[int, str], {"a": "b"}, 'x.a: expected a key that is an integer such as "3", got string "a"'),
    (dict[Literal["a"], int], {"c": 1}, 'x.c: expected a key that is "a", got string "c"'),
    (dict[str, int], 3, "x: expected object whose values are integer, got integer 3"),
    (tuple[int, str], [1, "a", 2], "array of integer, string, in this order"),
    (Annotated[int, pyd.AfterValidator(even)], 3, "x: expected integer (must be even), got integer 3"),
    (Span, {"start": 2, "end": 1}, "x: expected object with start, end (start must not be after end), got object"),
    (pyd.Json[list[int]], '["a"]', "string, the JSON text of array of integer"),
    (pyd.Json[list[int]], "[", "valid JSON as text"),
    (complex, "x", 'a complex number such as "1+2j"'),
    (Called, {}, "(which of them cannot be told)"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "words"), REFUSED)
def test_a_refusal_names_what_would_be_accepted(kind: Any, value: Any, words: str) -> None:
    lines = refusal(kind, value)
    assert len(lines) == 1
    assert words in lines[0]
    assert "(allowed: " in words or "(allowed: " not in lines[0]


SAID_BEFORE: list[tuple[Any, str]] = [
    (PRICE, "At least 0. At most 5 digits in total. At most 2 digits after the decimal point."),
    (Annotated[dt.date, Field(gt=dt.date(2020, 1, 1))], "After 2020-01-01."),
    (Annotated[dt.timedelta, Field(le=dt.timedelta(hours=1))], "At most PT1H."),
    (pyd.PastDate, "In the past."),
    (pyd.NaiveDatetime, "Without an offset from UTC."),
    (pyd.HttpUrl, "Begins with http:// or https://."),
    (dict[int, str], 'Each key is an integer such as "3".'),
    (list[PRICE] | None, "At most 5 digits in total."),
]


@pytest.mark.parametrize(("kind", "words"), SAID_BEFORE)
def test_what_no_keyword_says_stands_in_the_description(kind: Any, words: str) -> None:
    schema = json.dumps(taking(kind).spec.input_schema["properties"]["x"], ensure_ascii=False)
    assert words in schema.replace('\\"', '"')


def test_an_authors_description_comes_first() -> None:
    def pay(
        a: PRICE, b: Annotated[Decimal, Field(max_digits=3, description="To b.")], c: pyd.PastDate
    ) -> None:
        """Pay.

        Args:
            a: To a.
        """

    fields = tool(pay, effect=Effect.READ, secrets=()).spec.input_schema["properties"]
    assert fields["a"]["description"].startswith("To a. At least 0. At most 5 digits")
    assert fields["b"]["description"] == "To b. At most 3 digits in total."
    assert fields["c"]["description"] == "In the past."
    day = taking(Annotated[dt.date, Field(description="When.", examples=["2024-01-31"])])
    assert day.spec.input_schema["properties"]["x"]["description"] == "When."


def test_the_tag_of_a_union_is_required_there_and_only_there() -> None:
    def feed(pet: Pet, cat: Cat) -> None:
        """Feed."""

    fields = tool(feed, effect=Effect.READ, secrets=()).spec.input_schema["properties"]
    assert [form["required"] for form in fields["pet"]["oneOf"]] == [["kind"], ["kind", "name"]]
    assert all("default" not in form["properties"]["kind"] for form in fields["pet"]["oneOf"])
    assert "required" not in fields["cat"] and fields["cat"]["properties"]["kind"]["default"] == "cat"


def test_a_secret_is_not_repeated() -> None:
    assert refusal(Annotated[pyd.SecretStr, Field(min_length=9)], "hunter2") == [
        "x: expected string, at least 9 characters, got another string"
    ]


def test_a_foreign_union_is_told_by_its_nearest_variant() -> None:
    variants = [
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"type": "array", "items": {"type": "integer"}},
        {"type": "string", "maxLength": 2},
    ]
    given = tool(
        lambda params: "done",
        name="given",
        effect=Effect.READ,
        secrets=(),
        params={"type": "object", "properties": {"x": {"anyOf": variants}}},
    )
    box = Toolbox([given])
    assert "- x.a: expected integer, got nothing" in box.call_sync("given", {"x": {"b": 1}}).text
    assert '- x[0]: expected integer, got string "n"' in box.call_sync("given", {"x": ["n"]}).text
    assert "at most 2 characters" in box.call_sync("given", {"x": "long"}).text


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        (
            {"oneOf": [{"type": "integer"}, {"type": "number"}]},
            1,
            "x: expected integer or number, that fits one of these alone, not several, got integer 1",
        ),
        (
            {"prefixItems": [{"type": "integer"}], "items": False},
            [1, 2],
            "x[1]: expected nothing at this place",
        ),
        (
            {"type": "string", "not": {"const": "root"}},
            "root",
            'x: expected string, not {"const": "root"}, got',
        ),
        ({"type": "array", "contains": {"const": 1}}, [2], "x: expected array, with an item that is 1, got"),
        (
            {"type": "object", "propertyNames": {"pattern": "^a"}},
            {"b": 1},
            "keys that are string, matches ^a",
        ),
        (
            {"type": "object", "dependentRequired": {"a": ["b"]}},
            {"a": 1},
            "x.b: expected any value, got nothing",
        ),
        (
            {
                "type": "object",
                "properties": {"a": {}, "b": {}},
                "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
            },
            {},
            "x: expected object with a or object with b, got object {}",
        ),
    ],
)
def test_a_foreign_schema_is_told_without_its_keywords(schema: Any, value: Any, words: str) -> None:
    params = {"type": "object", "properties": {"x": schema}}
    given = tool(lambda params: "done", name="given", effect=Effect.READ, secrets=(), params=params)
    assert words in Toolbox([given]).call_sync("given", {"x": value}).text


# -- whatever is refused ------------------------------------------------------------------------------------------

WHOLE = st.integers(-5, 5)


def constrained(kind: Any, **limits: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    made = st.fixed_dictionaries({}, optional=limits)
    return made.map(lambda given: Annotated[kind, Field(**given)] if given else kind)


def of(generic: Any, *inner: Any) -> Any:
    return generic[inner if len(inner) > 1 else inner[0]]


DATES = st.dates(dt.date(1990, 1, 1), dt.date(2040, 1, 1))
LEAVES: st.SearchStrategy[Any] = st.one_of(
    constrained(str, min_length=WHOLE.map(abs), max_length=WHOLE.map(abs), pattern=st.just("^[ab]+$")),
    constrained(int, ge=WHOLE, lt=WHOLE, multiple_of=st.just(3)),
    constrained(float, gt=WHOLE, le=WHOLE, multiple_of=st.just(0.5)),
    constrained(Decimal, ge=WHOLE, lt=WHOLE, max_digits=st.just(3), decimal_places=st.just(1)),
    constrained(dt.date, ge=DATES, lt=DATES),
    constrained(dt.timedelta, gt=st.timedeltas(), le=st.timedeltas()),
    constrained(bytes, min_length=WHOLE.map(abs), max_length=WHOLE.map(abs)),
    st.sampled_from(
        [
            *(dt.datetime, dt.time, uuid.UUID, pathlib.Path, bool, type(None), Level, Colour, pyd.HttpUrl),
            *(
                pyd.PastDate,
                pyd.FutureDatetime,
                pyd.AwareDatetime,
                pyd.NaiveDatetime,
                pyd.UUID4,
                pyd.SecretStr,
            ),
            *(Literal["a", 1, True], Literal["x"], Annotated[int, pyd.AfterValidator(even)], Span, Cat, Pet),
            *(
                Cat | Dog,
                list[Pet],
                pyd.FilePath,
                pyd.IPvAnyAddress,
                pyd.Json[list[int]],
                pyd.ByteSize,
                complex,
            ),
        ]
    ),
)
KINDS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(lambda kind: of(list, kind)),
        inner.map(lambda kind: of(dict, str, kind)),
        inner.map(lambda kind: of(dict, int, kind)),
        inner.map(lambda kind: kind | None),
        st.tuples(inner, inner).map(lambda pair: of(tuple, *pair)),
        st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
        st.tuples(inner, inner).map(lambda pair: pyd.create_model("Made", a=pair[0], b=(pair[1], ...))),
        inner.map(lambda kind: of(Annotated, of(list, kind), Field(min_length=1, max_length=2))),
        st.sampled_from([set[int], frozenset[str], Annotated[set[int], Field(min_length=2)]]),
    ),
    max_leaves=4,
)
TEXTS = st.sampled_from(
    [
        *("", "a", "abab", "zzz", "3", "1.25", "x", "red", "2024-13-01", "2019-01-01", "2019-01-01T00:00:00"),
        *("2999-01-01T00:00:00Z", "P1D", "ftp://x/y", "nope", "NaN", "1e99", "noon"),
        "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | WHOLE | st.sampled_from([0.3, 1e30, 2.5, 123456]) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "kind", "name", "start", "end", "1"]), inner, max_size=3)
        | st.fixed_dictionaries({"kind": st.sampled_from(["cat", "dog", "cow"])}, optional={"name": inner})
    ),
    max_leaves=5,
)
TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
PYTHON = re.compile(
    r"pydantic|Decimal|datetime|timedelta|NoneType|function-|\bdict(ionary)?\b|\btuple\b|\bNone\b|\bTrue\b|Input should"
    r"|Level|Colour|Made|\bCat\b|\bDog\b|\bSpan\b|instance of|object at 0x|Traceback|x-unsaid"
)
LINE = re.compile(r"x[^ ]*: expected (?P<wanted>.+?), got (?P<got>\w+)")


@examples(300)
@given(KINDS, VALUES)
def test_whatever_is_refused_the_refusal_can_be_acted_on(kind: Any, value: Any) -> None:
    try:
        made = taking(kind)
        made.check()
    except Exception:  # constraints that no type can have together
        assume(False)
    shown = json.dumps(made.spec.input_schema)
    assert not PYTHON.search(shown), shown
    for line in refusal(kind, value):
        assert not PYTHON.search(line), line
        read = LINE.match(line)
        assert read is not None, line
        bare = set(read["wanted"].split(" or ")) <= set(TYPES)
        # "expected string, got string" says nothing that could be done.
        assert not (bare and read["got"] in read["wanted"].split(" or ")), line


def test_every_limit_of_pydantic_has_words() -> None:
    from pydantic_core._pydantic_core import list_all_errors  # type: ignore[attr-defined,unused-ignore]

    speaking = {
        error["type"]
        for error in list_all_errors()
        if error.get("example_context") and error["type"] not in WORDS
    }
    without = {
        *(
            "no_such_attribute",
            "needs_python_object",
            "get_attribute_error",
            "iteration_error",
            "mapping_type",
        ),
        *("model_type", "dataclass_type", "dataclass_exact_type", "named_tuple_type", "is_instance_of"),
        *(
            "is_subclass_of",
            "enum",
            "literal_error",
            "union_tag_invalid",
            "union_tag_not_found",
            "value_error",
        ),
        *("assertion_error", "url_parsing", "url_syntax_violation", "uuid_parsing", "bytes_invalid_encoding"),
    }  # the schema says these, or JSON has none of them
    assert speaking <= without
