"""Traps of signatures: where the context stands, what a partial has filled, what is read late."""

import dataclasses
import datetime as dt
import functools
import pathlib
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Generator, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    HttpUrl,
    Json,
    PrivateAttr,
    StringConstraints,
    field_validator,
    model_validator,
)

from toolcrib import Context, Effect, Toolbox, ToolDefinitionError
from toolcrib.function import tool

READ = Effect.READ


def positional_only(ctx: Context, x: int, /) -> str:
    return f"{x} {ctx.tool}"


def before_rest(ctx: Context, x: int, *rest: int) -> str:
    return f"{x} {rest} {ctx.tool}"


def between(x: int, ctx: Context, *rest: int, y: int = 2) -> str:
    return f"{x} {rest} {y} {ctx.tool}"


def twice(one: Context, x: int, other: Context) -> str:
    return f"{one is other} {x}"


@pytest.mark.parametrize(
    ("fn", "arguments", "expected"),
    [
        (positional_only, {"x": 1}, "1 t"),
        (before_rest, {"x": 1, "rest": [2]}, "1 (2,) t"),
        (before_rest, {"x": 1}, "1 () t"),
        (between, {"x": 1, "rest": [2], "y": 3}, "1 (2,) 3 t"),
        (twice, {"x": 1}, "True 1"),
    ],
)
async def test_the_context_may_stand_anywhere(fn: Any, arguments: Any, expected: str) -> None:
    result = await Toolbox([tool(fn, name="t", effect=READ, secrets=())]).call("t", arguments)
    assert result.text == expected


async def test_a_model_cannot_give_the_context_through_keywords() -> None:
    def more(ctx: Context, **rest: Any) -> str:
        return str(sorted(rest))

    box = Toolbox([tool(more, effect=READ, secrets=())])
    result = await box.call("more", {"ctx": 1})
    assert (result.code, "- ctx: " in result.text) == ("invalid_arguments", True)
    assert (await box.call("more", {"b": 1})).text == "['b']"


def test_a_parameter_that_a_partial_has_filled_is_no_parameter() -> None:
    def login(user: str, password: str) -> None: ...

    with pytest.raises(TypeError, match="password"):
        tool(functools.partial(login, password="x"), effect=READ, secrets=("password",))


class Store:
    def count(self, item: str) -> str:
        """Count an item."""
        return item


def without_type(ctx, x: int) -> str:  # type: ignore[no-untyped-def]
    """Look."""
    return str(ctx)


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (Store.count, "it is a method of a class; hand in the method of an object"),
        (without_type, "its parameter ctx has no type; write ctx: Context"),
    ],
)
def test_a_parameter_that_no_model_can_fill_is_refused(fn: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        tool(fn, name="t", effect=READ, secrets=()).definition()


def test_what_is_no_function_is_named_in_few_words() -> None:
    functions: Any = [len] * 10_000
    with pytest.raises(TypeError, match="tool 'all': expected a function") as caught:
        tool(functions, name="all", effect=Effect.READ, secrets=())
    assert len(str(caught.value)) < 500


class Batch(BaseModel):
    numbers: Iterable[int]


@dataclasses.dataclass
class Numbers:
    numbers: Iterable[int]


def give(numbers: Iterable[int]) -> str:
    return repr([numbers, list(numbers), list(numbers)])


def give_more(numbers: Iterable[int] | None, others: list[Iterable[int]] = []) -> str:  # noqa: B006
    return repr([numbers, list(numbers or ()), list(numbers or ())])


@pytest.mark.parametrize("fn", [give, give_more])
@pytest.mark.parametrize("kind", [None, Batch, Numbers])
def test_items_of_an_iterable_are_checked_before_the_tool_runs(fn: Any, kind: Any) -> None:
    """Pydantic hands on an iterator, which checks each item when it is read, takes all that is not one, and ends."""
    function = fn if kind is None else lambda params: fn(params.numbers)
    box = Toolbox([tool(function, name="give", params=kind, effect=Effect.READ, secrets=())])
    assert box.call_sync("give", {"numbers": [1, 2]}).text == "[[1, 2], [1, 2], [1, 2]]"
    assert box.call_sync("give", {"numbers": ["1"]}).text == "[[1], [1], [1]]"
    for wrong in ("many", {"a": 1}, [1, "many"], [[1]]):
        assert box.call_sync("give", {"numbers": wrong}).code == "invalid_arguments", wrong


@pytest.mark.filterwarnings("error::UserWarning")
def test_a_model_with_an_iterable_is_returned_without_a_warning() -> None:
    """Pydantic warns of the list in it wherever such a model is dumped as it stands."""

    def same(batch: Batch) -> Batch:
        return batch

    def several(batch: Batch) -> Any:
        return {"all": [batch]}

    box = Toolbox([tool(fn, effect=READ, secrets=()) for fn in (same, several)])
    assert box.call_sync("same", {"batch": {"numbers": [1]}}).structured == {"numbers": [1]}
    assert box.call_sync("several", {"batch": {"numbers": [1]}}).text == '{"all":[{"numbers":[1]}]}'


async def test_a_model_with_an_iterator_keeps_its_items_when_a_tool_hands_it_on() -> None:
    """Pydantic reads an iterator when it writes the model, for the first time: the second time it is empty."""

    def total(batch: Batch) -> int:
        return sum(batch.numbers)

    async def outer(ctx: Context) -> str:
        return (await ctx.call("total", batch=Batch(numbers=[1, 2]))).text

    box = Toolbox([tool(fn, effect=READ, secrets=()) for fn in (total, outer)])
    assert (await box.call("outer")).text == "3"


class Stepwise(BaseModel):
    numbers: list[Generator[int, None, None]]


def take(x: int, numbers: Generator[int, None, None] | None = None) -> None: ...
def take_more(x: int, **numbers: Generator[int, None, None]) -> None: ...
def take_model(x: int, numbers: list[Stepwise]) -> None: ...
def take_params(params: Stepwise) -> None: ...


@pytest.mark.parametrize("fn", [take, take_more, take_model, take_params])
def test_a_generator_as_a_parameter_is_refused_with_what_to_write(fn: Any) -> None:
    """The tool is given a list, on which next() fails."""
    made = tool(fn, params=Stepwise if fn is take_params else None, effect=READ, secrets=())
    with pytest.raises(
        ToolDefinitionError, match=r"parameter 'numbers': .*Generator.* write Iterable or list"
    ):
        made.check()


class Reader(BaseModel):
    numbers: Iterable[int]
    _steps: Generator[int, None, None] | None = PrivateAttr(default=None)


def take_reader(reader: Reader) -> int:
    return sum(reader.numbers)


async def test_a_generator_that_is_no_field_of_a_parameter_is_no_matter() -> None:
    result = await Toolbox([tool(take_reader, effect=READ, secrets=())]).call(
        "take_reader", {"reader": {"numbers": [1, 2]}}
    )
    assert result.text == "3"


class Node(BaseModel):
    value: int
    next: Optional["Node"] = None


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        *((int, text) for text in ('"5"', "5.0", "true", '"five"', "null")),
        *((Decimal, text) for text in ("1.50", '"1.50"', '"1_000"', "0.12345678901234567890")),
        *((float, text) for text in ("1", "NaN", "1e999", "12345678901234567890123")),
        *((Literal[1, 2], text) for text in ("1", "true")),
        *((dt.date, text) for text in ('"2024-12-31"', '"2024"')),
        *((int | None, text) for text in ("1", "null")),
        *((dict[int, int], text) for text in ('{"1":1}', '{"01":1}')),
        *((Iterable[int], text) for text in ("[1]", '"12"', "[true]")),
        *(
            (Node, text)
            for text in ('{"value":1,"next":{"value":2}}', '{"value":1,"more":2}', '{"value":"x"}')
        ),
    ],
)
def test_further_arguments_of_any_name_are_read_as_strictly_as_named_ones(kind: Any, written: str) -> None:
    def named(first: Node | None, x: kind) -> str:
        return repr(x)

    def unnamed(first: Node | None, **more: kind) -> str:
        return repr(more["x"])

    box = Toolbox([tool(fn, effect=READ, secrets=()) for fn in (named, unnamed)])
    alike, given = (box.call_sync(name, f'{{"x":{written}}}') for name in ("named", "unnamed"))
    assert (given.text.replace("unnamed", "named"), given.code) == (alike.text, alike.code)
    assert [edit.kind for edit in given.edits] == [edit.kind for edit in alike.edits]


ID = "a2345678-1234-5678-1234-567812345678"


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (uuid.UUID, ID, ID.upper()),
        (HttpUrl, "http://host", "http://HOST/"),
        (Annotated[str, StringConstraints(strip_whitespace=True)], "a", " a"),
        (Annotated[str, AfterValidator(str.lower)], "a", "A"),
        (dt.datetime, "2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00"),
        (dt.timedelta, "PT60S", "PT1M"),
        (dt.time, "10:00", "10:00:00"),
        (pathlib.Path, "a/b", "a//b"),
        (int | None, "1", "01"),
    ],
)
async def test_two_spellings_of_one_key_are_refused(kind: Any, one: str, other: str) -> None:
    """Pydantic keeps the last of the two entries, and drops the other without a word."""

    def count(times: dict[kind, dt.time], parts: OrderedDict[kind, set[int]] | None = None) -> str:
        return str(len(times))

    box = Toolbox([tool(count, effect=READ, secrets=())])
    result = await box.call("count", {"times": {one: "10:00", other: "11:00"}})
    assert result.code == "invalid_arguments"
    assert "times: expected object" in result.text and f'"{one}" and "{other}" are the same' in result.text
    more = {"times": {one: "10:00"}, "parts": {other: [1], one: [1]}}
    assert (await box.call("count", more)).code == "invalid_arguments"
    assert (await box.call("count", {"times": {other: "10:00"}, "parts": {one: [1]}})).text == "1"


KEY = "123e4567-e89b-12d3-a456-426614174000"


@pytest.mark.parametrize(
    ("kind", "given", "read"),
    [
        (defaultdict[uuid.UUID, list[int]], {KEY: [1]}, defaultdict(list, {uuid.UUID(KEY): [1]})),
        (Counter[uuid.UUID], {KEY: 2}, Counter({uuid.UUID(KEY): 2})),
        (OrderedDict[uuid.UUID, int], {KEY: 1}, OrderedDict({uuid.UUID(KEY): 1})),
        (dict[int | str, int], {"1": 1}, {"1": 1}),
        (dict[bool | str, int], {"true": 1, "1": 2}, {"true": 1, "1": 2}),
    ],
)
async def test_a_map_with_keys_of_several_spellings_is_of_its_own_type(
    kind: Any, given: Any, read: Any
) -> None:
    seen: list[Any] = []

    def take(table: Any) -> None:
        seen.append(table)

    take.__annotations__["table"] = kind
    result = await Toolbox([tool(take, effect=READ, secrets=())]).call("take", {"table": given})
    assert (result.text, seen, type(seen[0])) == ("Done.", [read], type(read))


@pytest.mark.parametrize(
    ("inner", "words"),
    [
        ('{"a": 1, "a": 2}', 'The key "a" stands twice'),
        ('{"a": 1e999}', "1e999 cannot be held exactly"),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": 0.12345678901234567890}', "cannot be held exactly"),
        ('{"a": "1"}', "expected string, the JSON text of"),
        ("{", "valid JSON as text"),
    ],
)
@pytest.mark.parametrize("kind", [Json[dict[str, float]], Json[dict[str, float]] | None])
def test_json_in_a_text_loses_nothing_either(kind: Any, inner: str, words: str) -> None:
    def show(data: kind) -> str:
        return repr(data)

    box = Toolbox([tool(show, effect=READ, secrets=())])
    result = box.call_sync("show", {"data": inner})
    assert result.code == "invalid_arguments" and words in result.text
    assert box.call_sync("show", {"data": '{"a": 1.5, "b": 2}'}).text == "{'a': 1.5, 'b': 2.0}"


def test_a_field_within_json_in_a_text_is_told_by_its_own_path() -> None:
    """The error said that the parameter itself has a forbidden name."""

    def show(node: Json[Node]) -> str:
        return repr(node)

    box = Toolbox([tool(show, effect=READ, secrets=())])
    more = box.call_sync("show", {"node": '{"value": 1, "next": {"value": 2, "more": 3}}'}).text
    assert (
        "- node.next.more: expected no parameter of this name, got integer 3 (allowed: value, next)" in more
    )
    missing = box.call_sync("show", {"node": '{"next": null}'}).text
    assert "- node.value: expected integer, got nothing" in missing


class Plain(BaseModel):
    tags: set[str] = set()
    frozen: Annotated[frozenset[int], Field(max_length=2)] = frozenset()
    pair: tuple[int, str] | None = None
    at: dt.time | None = None
    data: bytes = b""
    last: deque[int] | None = None
    by_name: OrderedDict[str, tuple[int, ...]] | None = None
    share: Fraction | None = None
    more: list["Plain"] = []


class Before(Plain):
    more: list["Before"] = []

    @model_validator(mode="before")
    @classmethod
    def _before(cls, given: Any) -> Any:
        return {**given, "tags": set(given.get("tags", ()))} if "tags" in given else given


class Wrapped(Plain):
    more: list["Wrapped"] = []

    @model_validator(mode="wrap")
    @classmethod
    def _around(cls, given: Any, read: Any) -> Any:
        return read(given)


class OfFields(Plain):
    more: list["OfFields"] = []

    @field_validator("*", mode="before")
    @classmethod
    def _before(cls, given: Any) -> Any:
        return given


ARGUMENTS: list[dict[str, Any]] = [
    {"tags": ["a"]},
    {"frozen": [1, 2, 2]},
    {"frozen": [1, 2, 3]},
    {"frozen": ["one"]},
    {"frozen": [True]},
    {"pair": [1, "a"]},
    {"pair": [1]},
    {"pair": "ab"},
    {"at": "10:00"},
    {"at": "ten"},
    {"at": 10},
    {"data": "x"},
    {"data": 1},
    {"last": [1, 2]},
    {"by_name": {"a": [1]}},
    {"share": "1/2"},
    {"more": [{"tags": ["a"], "pair": [1, "b"], "more": [{"at": "10:00:01", "by_name": {"a": [1]}}]}]},
    {"more": [{"frozen": [1, 2, 3]}]},
]


@pytest.mark.parametrize("kind", [Before, Wrapped, OfFields])
def test_a_validator_before_or_around_others_changes_nothing_for_json(kind: Any) -> None:
    """Strict validation refuses a list for a set, and a text for a time, where such a validator hands them on."""

    def of(kind: Any) -> Any:
        def give(given: kind) -> Any:
            return repr(given).replace(kind.__name__, "")

        return tool(give, effect=READ, secrets=())

    alike, made = of(Plain), of(kind)
    assert repr(made.spec.input_schema).replace(kind.__name__, "Plain") == repr(alike.spec.input_schema)
    for given in ARGUMENTS:
        wanted, result = (Toolbox([each]).call_sync("give", {"given": given}) for each in (alike, made))
        assert (result.text, result.code) == (wanted.text, wanted.code), given
