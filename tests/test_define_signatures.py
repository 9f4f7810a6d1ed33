"""Ordinary Python works: whatever can be called can be a tool, and is called as it was written."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import functools
import pathlib
import threading
import typing
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar, Union

import pytest
from pydantic import BaseModel, Field

from tests.cases import each
from toolcrib import Context, Effect, Toolbox, ToolDefinitionError
from toolcrib.function import tool

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Street(BaseModel):
    name: str = Field(description="Street name")
    number: Optional[str] = None  # noqa: UP045 - the old spelling is what is tested


class Person(BaseModel):
    name: str
    home: Street
    tags: list[str] = Field(default_factory=list)


class Branch(BaseModel):
    value: int
    twigs: list[Branch] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    bark: str


class Pair(BaseModel, Generic[T]):
    first: T
    second: T


class Job(typing.TypedDict):
    id: int
    note: typing.NotRequired[str]


@dataclasses.dataclass
class Point:
    x: int
    y: float = 1.0


def optional_by_future_annotations(x: Optional[int], y: "int | None" = None):  # noqa: UP037, UP045
    return f"{x!r} {y!r}"


def nested_model(x: Person):
    return f"{type(x).__name__} {type(x.home).__name__} {x.tags}"


def recursive_model(x: Branch):
    return f"{type(x.twigs[0]).__name__} {x.twigs[0].value}"


def discriminated(x: Annotated[Union[Cat, Dog], Field(discriminator="kind")]):  # noqa: UP007
    return type(x).__name__


def enumeration(x: Colour):
    return repr(x)


def int_enumeration(x: Level):
    return repr(x)


def mixed_literal(x: Literal["a", 1, True] = "a"):
    return repr(x)


def a_dataclass(x: Point):
    return f"{type(x).__name__} {x.x} {x.y}"


def a_typed_dict(x: Job):
    return repr(x)


def dates(
    x: dt.datetime, y: dt.timedelta = dt.timedelta(1), z: dt.date | None = None, t: dt.time = dt.time(1)
):
    return f"{x.isoformat()} {y} {z} {t}"


def a_decimal(x: decimal.Decimal):
    return repr(x)


def uuid_and_path(x: uuid.UUID, y: pathlib.Path = pathlib.Path()):
    return f"{type(x).__name__} {y}"


def set_and_tuple(x: set[int], y: tuple[int, str] = (1, "a"), z: frozenset[str] = frozenset()):
    return f"{sorted(x)} {y!r} {z!r}"


def dict_of_models(x: dict[str, Street]):
    return type(next(iter(x.values()))).__name__


def list_of_models(x: list[Person | None]):
    return [type(item).__name__ for item in x]


def annotated_text(x: Annotated[int, "how many"]):
    return repr(x)


def annotated_field(x: Annotated[int, Field(ge=1, le=5, description="how many")]):
    return repr(x)


def anything(x: Any):
    return repr(x)


def untyped(x):
    return repr(x)


def keywords(x: int, **more: int):
    return f"{x} {more}"


def rest(x: int, *others: int):
    return f"{x} {others}"


def rest_after_defaults(x: int, y: int = 2, *others: int, z: int = 3):
    return f"{x} {y} {others} {z}"


def positional_only(x: int, /, y: int = 2):
    return f"{x} {y}"


def positional_only_defaults(a: int = 1, b: int = 2, /, *, c: int = 3):
    return f"{a} {b} {c}"


def keyword_only(*, x: int, y: int = 2):
    return f"{x} {y}"


def awkward_names(
    x: int, schema: str = "s", copy: str = "c", model_config: str = "m", json: str = "j", fields: str = "f"
):
    return f"{x} {schema} {copy} {model_config} {json} {fields}"


def more_awkward_names(
    name: str, effect: int, params: int, fn: int, ctx: int, values: int, args: int, kwargs: int
):
    return f"{name} {effect} {params} {fn} {ctx} {values} {args} {kwargs}"


def underscore(x: int, _private: int = 1, __dunderish: int = 2):
    return f"{x} {_private} {__dunderish}"


def first_is_self(self: int, x: int = 1):
    return f"{self} {x}"


def first_is_cls(cls: int, x: int = 1):
    return f"{cls} {x}"


def some_bytes(x: bytes):
    return repr(x)


def nothing():
    return "ok"


def a_generic(x: Pair[int]):
    return f"{type(x.second).__name__} {x.second}"


def field_default(x: int = Field(3, ge=1), y: list[int] = Field(default_factory=list)):  # noqa: B008
    y.append(x)  # a shared default would grow from call to call
    return f"{x} {y}"


def required_field(x: int = Field(ge=1)):
    return repr(x)


def mutable_default(x: list[int] = []):  # noqa: B006 - what people write
    return repr(x)


def unions(x: int | str | list[int]):
    return repr(x)


def context_anywhere(ctx: Context, x: int):
    return f"{type(ctx).__name__} {x}"


def context_typed(x: int, *, env: Context[dict[str, int]] | None = None):
    return f"{type(env).__name__} {x}"


class Adder:
    def __init__(self, k: int) -> None:
        self.k = k

    def add(self, x: int) -> int:
        return self.k + x

    def __call__(self, x: int) -> int:
        return self.k + x

    @classmethod
    def from_class(cls, x: int) -> str:
        return f"{cls.__name__} {x}"

    @staticmethod
    def static(x: int) -> int:
        return x + 1

    async def slowly(self, x: int, ctx: Context) -> int:
        return self.k + x


def base(x: int, k: int) -> int:
    return x + k


@functools.wraps(base)
def wrapped(*args: Any, **kwargs: Any) -> Any:
    return base(*args, **kwargs)


class Collector:
    def __call__(self, *items: str, sep: str = ",") -> str:
        return sep.join(items)


CALLS: list[tuple[str, Callable[..., Any], dict[str, Any], Any]] = [
    ("optional, future annotations", optional_by_future_annotations, {"x": 1}, "1 None"),
    ("optional left out", optional_by_future_annotations, {}, "None None"),
    ("nested model", nested_model, {"x": {"name": "n", "home": {"name": "s"}}}, "Person Street []"),
    ("recursive model", recursive_model, {"x": {"value": 1, "twigs": [{"value": 2}]}}, "Branch 2"),
    ("discriminated union", discriminated, {"x": {"kind": "dog", "bark": "w"}}, "Dog"),
    ("enum", enumeration, {"x": "red"}, "<Colour.RED: 'red'>"),
    ("int enum", int_enumeration, {"x": 2}, "<Level.HIGH: 2>"),
    ("mixed literal", mixed_literal, {"x": 1}, "1"),
    ("mixed literal, default", mixed_literal, {}, "'a'"),
    ("dataclass", a_dataclass, {"x": {"x": 1}}, "Point 1 1.0"),
    ("TypedDict, NotRequired", a_typed_dict, {"x": {"id": 1}}, "{'id': 1}"),
    ("dates", dates, {"x": "2026-01-02T03:04:05Z", "z": "2026-01-02"}, "2026-01-02T03:04:05+00:00 1 day, 0:00:00 2026-01-02 01:00:00"),
    ("duration", dates, {"x": "2026-01-02T03:04:05", "y": "PT1H"}, "2026-01-02T03:04:05 1:00:00 None 01:00:00"),
    ("decimal from text", a_decimal, {"x": "1.10"}, "Decimal('1.10')"),
    ("uuid, path", uuid_and_path, {"x": "12345678-1234-5678-1234-567812345678"}, "UUID ."),
    ("set, tuple", set_and_tuple, {"x": [2, 1, 2], "y": [1, "b"]}, "[1, 2] (1, 'b') frozenset()"),
    ("dict of models", dict_of_models, {"x": {"k": {"name": "s"}}}, "Street"),
    ("list of optional models", list_of_models, {"x": [None, {"name": "n", "home": {"name": "s"}}]}, ["NoneType", "Person"]),
    ("Annotated text", annotated_text, {"x": 3}, "3"),
    ("Annotated Field", annotated_field, {"x": 3}, "3"),
    ("Any", anything, {"x": {"z": 1}}, "{'z': 1}"),
    ("untyped", untyped, {"x": 1}, "1"),
    ("**kwargs", keywords, {"x": 1, "z": 2}, "1 {'z': 2}"),
    ("**kwargs, none", keywords, {"x": 1}, "1 {}"),
    ("*args, none", rest, {"x": 1}, "1 ()"),
    ("*args", rest, {"x": 1, "others": [2, 3]}, "1 (2, 3)"),
    ("*args after a default left out", rest_after_defaults, {"x": 1, "others": [9], "z": 4}, "1 2 (9,) 4"),
    ("*args after a default given", rest_after_defaults, {"x": 1, "y": 5, "others": [9]}, "1 5 (9,) 3"),
    ("positional only", positional_only, {"x": 1}, "1 2"),
    ("positional only, second default", positional_only_defaults, {"b": 5}, "1 5 3"),
    ("keyword only", keyword_only, {"x": 1}, "1 2"),
    ("names schema, copy, …", awkward_names, {"x": 1, "schema": "S", "copy": "C", "model_config": "M", "json": "J", "fields": "F"}, "1 S C M J F"),
    ("names of our own insides", more_awkward_names, {"name": "n", "effect": 1, "params": 2, "fn": 3, "ctx": 4, "values": 5, "args": 6, "kwargs": 7}, "n 1 2 3 4 5 6 7"),
    ("underscores", underscore, {"x": 1, "_private": 5, "__dunderish": 6}, "1 5 6"),
    ("first parameter self", first_is_self, {"self": 3}, "3 1"),
    ("first parameter cls", first_is_cls, {"cls": 3}, "3 1"),
    ("no parameters", nothing, {}, "ok"),
    ("generic model", a_generic, {"x": {"first": 1, "second": 2}}, "int 2"),
    ("Field default", field_default, {}, "3 [3]"),
    ("Field default given", field_default, {"x": 4, "y": [1]}, "4 [1, 4]"),
    ("Field without default", required_field, {"x": 4}, "4"),
    ("mutable default", mutable_default, {}, "[]"),
    ("union member 1", unions, {"x": 1}, "1"),
    ("union member 2", unions, {"x": "1"}, "'1'"),
    ("union member 3", unions, {"x": [1]}, "[1]"),
    ("context first", context_anywhere, {"x": 1}, "Context 1"),
    ("typed optional context", context_typed, {"x": 1}, "Context 1"),
    ("bound method", Adder(10).add, {"x": 1}, 11),
    ("bound async method with context", Adder(10).slowly, {"x": 1}, 11),
    ("class method", Adder.from_class, {"x": 1}, "Adder 1"),
    ("static method", Adder.static, {"x": 1}, 2),
    ("callable object", Adder(10), {"x": 1}, 11),
    ("callable object with *args", Collector(), {"items": ["a", "b"]}, "a,b"),
    ("partial by keyword", functools.partial(base, k=10), {"x": 1}, 11),
    ("partial by position", functools.partial(base, 10), {"k": 1}, 11),
    ("partial of a partial", functools.partial(functools.partial(base, k=10), x=1), {}, 11),
    ("partial of a method", functools.partial(Adder(1).add, 2), {}, 3),
    ("functools.wraps", wrapped, {"x": 1, "k": 2}, 3),
]  # fmt: skip


@each(("fn", "arguments", "expected"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
async def test_any_callable_is_called_as_it_was_written(
    fn: Any, arguments: dict[str, Any], expected: Any
) -> None:
    made = tool(fn, name="t", effect=Effect.READ, secrets=())
    box = Toolbox([made])
    for _ in range(2):  # nothing of a call stays behind for the next one
        result = await box.call("t", arguments)
        assert not result.is_error, result.text
        assert result.text == (expected if isinstance(expected, str) else _compact(expected))


def _compact(value: Any) -> str:
    from pydantic_core import to_json

    return to_json(value).decode()


@pytest.mark.parametrize(
    ("fn", "arguments", "field"),
    [
        (nested_model, {"x": {"name": "n", "home": {}}}, "x.home.name"),
        (annotated_field, {"x": 9}, "x"),
        (field_default, {"x": 0}, "x"),
        (required_field, {}, "x"),
        (keywords, {"x": 1, "z": "no number"}, "z"),
        (rest, {"x": 1, "others": [1, "b"]}, "others[1]"),
        (discriminated, {"x": {"kind": "cow"}}, "x.kind"),
        (set_and_tuple, {"x": [1], "y": [1]}, "y[1]"),
        (enumeration, {"x": "green"}, "x"),
        (nothing, {"x": 1}, "x"),
        (functools.partial(base, k=10), {"x": 1, "k": 99}, "k"),
        (context_anywhere, {"x": 1, "ctx": {}}, "ctx"),
        (a_generic, {"x": {"first": 1, "second": "b"}}, "x.second"),
    ],
)
async def test_what_does_not_fit_is_refused_by_field(fn: Any, arguments: dict[str, Any], field: str) -> None:
    result = await Toolbox([tool(fn, name="t", effect=Effect.READ, secrets=())]).call("t", arguments)
    assert result.code == "invalid_arguments"
    assert f"- {field}: " in result.text


def test_bytes_arrive_as_bytes() -> None:
    result = Toolbox([tool(some_bytes, effect=Effect.READ, secrets=())]).call_sync(
        "some_bytes", {"x": "aGk="}
    )
    assert result.text in ("b'aGk='", "b'hi'")  # text as UTF-8, or base64 where the schema says so


def test_a_local_class_in_a_future_annotation() -> None:
    class Here(BaseModel):
        n: int

    @tool(effect=Effect.READ, secrets=())
    def local(x: Here, more: list[Here] | None = None) -> str:
        return type(x).__name__

    made = tool(lambda_like(Here), name="later", effect=Effect.READ, secrets=())
    box = Toolbox([local, made])
    assert box.call_sync("local", {"x": {"n": 1}}).text == "Here"
    assert box.call_sync("later", {"x": {"n": 1}}).text == "Here"


def lambda_like(kind: Any) -> Callable[..., str]:
    def named(x: Any) -> str:
        return type(x).__name__

    named.__annotations__ = {"x": kind, "return": str}
    return named


def test_a_decorated_method_is_a_tool_of_its_object() -> None:
    class Shop:
        def __init__(self, owner: str) -> None:
            self.owner = owner

        @tool(effect=Effect.READ, secrets=())
        def whose(self, greeting: str = "hi") -> str:
            return f"{greeting} {self.owner}"

    ann, bob = Shop("ann"), Shop("bob")
    assert Toolbox([ann.whose]).call_sync("whose", {}).text == "hi ann"
    assert Toolbox([bob.whose]).call_sync("whose", {"greeting": "yo"}).text == "yo bob"
    assert ann.whose("hey") == "hey ann"
    assert "self" not in ann.whose.definition().spec.input_schema["properties"]


def with_a_lock(fine: int, culprit: threading.Lock) -> None: ...


class WithACallable(BaseModel):
    fine: int
    culprit: Callable[[int], int]


@dataclasses.dataclass
class WithAThread:
    fine: int
    culprit: threading.Thread


class WithAThreadTyped(typing.TypedDict):
    fine: int
    culprit: threading.Thread


def handler(params: Any) -> None: ...


@pytest.mark.parametrize("kind", [None, WithACallable, WithAThread, WithAThreadTyped])
def test_a_broken_annotation_is_found_by_check_and_named(kind: Any) -> None:
    fn = with_a_lock if kind is None else handler
    made = tool(fn, effect=Effect.READ, secrets=(), params=kind)  # types are looked at when they are needed
    with pytest.raises(
        ToolDefinitionError, match=r"'culprit': .* cannot be written as JSON: use .*models(; .*ctx.deps)?$"
    ):
        made.check()


def unresolved(fine: int, culprit: NoSuchType) -> None:  # type: ignore[name-defined]  # noqa: F821
    ...


def test_a_name_that_does_not_exist_is_named() -> None:
    with pytest.raises(ToolDefinitionError, match=r"culprit.*NoSuchType"):
        tool(unresolved, effect=Effect.READ, secrets=()).check()
