"""Declaring a tool: two ways, one kind of thing; what is wrong is said where it is written."""

import collections.abc as abc
import dataclasses
import typing
import warnings
from typing import Annotated, Any, Literal

import jsonschema_rs
import pytest
import typing_extensions
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import to_json

from tests.cases import each
from toolcrib import Context, Effect, Retry, Tool, Toolbox, ToolCall, ToolFactory, ToolResult
from toolcrib.call import CallKey
from toolcrib.compiling.docstring import parse_docstring
from toolcrib.content import Image, Text
from toolcrib.facts import MaxOutput
from toolcrib.function import tool

READ = Effect.READ


def plain(a: int, b: str = "") -> int:
    return a


class Numbers(BaseModel):
    a: int
    b: str = ""


# -- wrong declarations

FUNCTION_MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "effect"),
    "no secrets": ({"effect": READ}, "secrets"),
    "no effect": ({"secrets": ()}, "effect"),
    "effect is text": ({"effect": "read", "secrets": ()}, "effect"),
    "effect is a number": ({"effect": 1, "secrets": ()}, "effect"),
    "secrets is one string": ({"effect": READ, "secrets": "a"}, "secrets"),
    "secrets is None": ({"effect": READ, "secrets": None}, "must be a collection of names"),
    "secrets names no parameter": ({"effect": READ, "secrets": ["zz"]}, "zz"),
    "a name with a space": ({"effect": READ, "secrets": (), "name": "has space"}, "has space"),
    "a name that is too long": ({"effect": READ, "secrets": (), "name": "x" * 129}, "128"),
    "a fact that does not exist": ({"effect": READ, "secrets": (), "nonsense": 1}, "nonsense"),
    "a retry of what may not run twice": ({"effect": READ, "secrets": (), "retry": Retry()}, "idempotent"),
}


@pytest.mark.parametrize("mistake", FUNCTION_MISTAKES)
@pytest.mark.parametrize("form", ["decorator", "call"])
def test_a_wrong_function_declaration_is_a_type_error_at_once(mistake: str, form: str) -> None:
    named, words = FUNCTION_MISTAKES[mistake]
    with pytest.raises(TypeError, match=words):
        tool(plain, **named) if form == "call" else tool(**named)(plain)


CLASS_MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    **{
        name: ({"name": "t", **named}, words)
        for name, (named, words) in FUNCTION_MISTAKES.items()
        if name != "a name with a space"
    },
    "no name": ({"effect": READ, "secrets": ()}, "name"),
    "a name with a space": ({"name": "has space", "effect": READ, "secrets": ()}, "has space"),
    "an empty name": ({"name": "", "effect": READ, "secrets": ()}, "name"),
}


@pytest.mark.parametrize("mistake", CLASS_MISTAKES)
def test_a_wrong_class_declaration_is_a_type_error_at_once(mistake: str) -> None:
    named, words = CLASS_MISTAKES[mistake]
    with pytest.raises(TypeError, match=words):

        class Made(Tool[Numbers, str], **named):
            def execute(self, params: Numbers, ctx: Context) -> str:
                return ""


def test_a_class_needs_execute_and_its_types() -> None:
    with pytest.raises(TypeError, match="execute"):

        class Empty(Tool[Numbers, str], name="t", effect=READ, secrets=()):
            pass

    with pytest.raises(TypeError, match="Tool\\[MyParams"):

        class Bare(Tool, name="t", effect=READ, secrets=()):  # type: ignore[type-arg]
            def execute(self, params: Any, ctx: Context) -> str:
                return ""


def test_a_subclass_states_its_own_facts() -> None:
    class First(Tool[Numbers, int], name="first", effect=READ, secrets=()):
        "The first."

        def execute(self, params: Numbers, ctx: Context) -> int:
            return params.a

    with pytest.raises(TypeError, match="effect"):

        class Silent(First):  # type: ignore[call-arg]
            pass

    class Second(First, name="second", effect=Effect.WRITE, secrets=()):
        "The second."

    assert (First.definition().spec.name, Second.definition().spec.name) == ("first", "second")
    assert Second.definition().spec.description == "The second."
    assert First.facts.effect is READ


@pytest.mark.parametrize("what", [3, "text", None])
def test_what_cannot_be_called_is_no_tool(what: Any) -> None:
    with pytest.raises(TypeError):
        tool(effect=READ, secrets=())(what)


@pytest.mark.parametrize("what", [plain, Numbers, 3, object(), "name"])
def test_a_box_takes_only_tools(what: Any) -> None:
    with pytest.raises(TypeError, match="expected a Tool"):
        Toolbox([what])


# -- facts


def test_facts_have_safe_defaults_and_map_on_mcp_annotations() -> None:
    facts = tool(plain, effect=READ, secrets=()).facts
    assert (facts.idempotent, facts.open_world, facts.retry, facts.timeout, facts.deferred) == (
        False,
        True,
        None,
        None,
        False,
    )
    made = tool(
        plain,
        effect=Effect.DESTRUCTIVE,
        secrets=("a",),
        name="other",
        title="Other",
        description="Said.",
        version="2",
        open_world=False,
        retry=Retry.idempotent_transport(),
        tags=["x", "y"],
        category="misc",
        examples=[{"a": 1}],
        max_output=100,
        timeout=3,
    )
    spec = made.definition().spec
    assert (spec.name, spec.title, spec.description, spec.version) == ("other", "Other", "Said.", "2")
    assert (spec.category, spec.tags, spec.examples) == ("misc", ("x", "y"), ({"a": 1},))
    assert made.facts.max_output == MaxOutput(bytes=100)
    assert spec.annotations == {
        "title": "Other",
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": True,
        "openWorldHint": False,
    }


def test_a_tool_stays_ordinary_python() -> None:
    @tool(effect=READ, secrets=())
    def twice(a: int, *, ctx: Context) -> int:
        """Double it."""
        ctx.report(tip="working")
        return a * 2

    assert twice(4, ctx=Context()) == 8
    assert (twice.__name__, twice.__doc__) == ("twice", "Double it.")
    assert repr(twice) == "<FunctionTool twice>"

    class Thrice(Tool[Numbers, int], name="thrice", effect=READ, secrets=()):
        def __init__(self) -> None:
            self.password = "hunter2"

        def execute(self, params: Numbers, ctx: Context) -> int:
            return params.a * 3

    assert Thrice().execute(Numbers(a=3), Context()) == 9
    assert repr(Thrice()) == "<Tool thrice>"
    assert "hunter2" not in repr(Toolbox([Thrice()]).__dict__)


# -- all kinds of params are alike


@dataclasses.dataclass
class InnerData:
    z: int | None


@dataclasses.dataclass
class Data:
    """Words about the data.

    Attributes:
        x: The x.
    """

    x: int | None
    inner: InnerData | None
    items: list[InnerData]


class InnerModel(BaseModel):
    z: int | None


class Model(BaseModel):
    x: int | None
    inner: InnerModel | None
    items: list[InnerModel]


class InnerTyped(typing.TypedDict):
    z: int | None


class Typed(typing.TypedDict):
    x: int | None
    inner: InnerTyped | None
    items: list[InnerTyped]


class InnerTypedExtension(typing_extensions.TypedDict):
    z: int | None


class TypedExtension(typing_extensions.TypedDict):
    x: int | None
    inner: InnerTypedExtension | None
    items: list[InnerTypedExtension]


def signature_of_models(x: int | None, inner: InnerModel | None, items: list[InnerModel]) -> Any:
    return {"x": x, "inner": inner, "items": items}


def signature_of_dicts(x: int | None, inner: InnerTyped | None, items: list[InnerTyped]) -> Any:
    return {"x": x, "inner": inner, "items": items}


def echo(params: Any) -> Any:
    return params


KINDS = {
    "model": tool(echo, name="t", effect=READ, secrets=(), params=Model),
    "dataclass": tool(echo, name="t", effect=READ, secrets=(), params=Data),
    "TypedDict": tool(echo, name="t", effect=READ, secrets=(), params=Typed),
    "TypedDict of typing_extensions": tool(echo, name="t", effect=READ, secrets=(), params=TypedExtension),
    "signature": tool(signature_of_models, name="t", effect=READ, secrets=()),
    "signature with TypedDicts": tool(signature_of_dicts, name="t", effect=READ, secrets=()),
}
NONE_NONE = '{"x":null,"inner":null,"items":[{"z":null}]}'


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"items": [{}]}, NONE_NONE),
        ({"x": None, "inner": None, "items": [{"z": None}]}, NONE_NONE),
        ({"x": 1, "inner": {}, "items": []}, '{"x":1,"inner":{"z":null},"items":[]}'),
        ({"x": "", "items": [{"z": ""}]}, NONE_NONE),  # an empty string for what is not required is absent
    ],
)
def test_a_nullable_parameter_without_default_may_be_left_out(
    kind: str, arguments: Any, expected: str
) -> None:
    assert Toolbox([KINDS[kind]]).call_sync("t", arguments).text == expected


def test_all_kinds_show_a_model_the_same_schema() -> None:
    schemas = {kind: made.definition().spec.input_schema for kind, made in KINDS.items()}
    for schema in schemas.values():
        text = to_json(schema)
        assert text.replace(b',"description":"The x."', b"") == to_json(schemas["model"])
    assert schemas["model"]["required"] == ["items"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("TypedDict")])
@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        ({"items": [], "y": 1}, ["y"]),
        ({"items": [{"z": 1, "q": 2}]}, ["items[0].q"]),
        ({"items": [], "inner": {"zz": 1}}, ["inner.zz"]),
        (
            {"items": [{"z": "no"}, {}, {"z": []}], "x": 1.5, "more": 1},
            ["x", "more", "items[0].z", "items[2].z"],
        ),
        ({}, ["items"]),
    ],
)  # fmt: skip
def test_every_field_that_does_not_fit_is_told(kind: str, arguments: Any, fields: list[str]) -> None:
    result = Toolbox([KINDS[kind]]).call_sync("t", arguments)
    assert result.code == "invalid_arguments"
    told = {line.removeprefix("- ").split(":")[0] for line in result.text.splitlines() if line[:2] == "- "}
    assert told == set(fields)


class OpenWithValidator(BaseModel):
    model_config = ConfigDict(extra="allow")
    z: int | None = None

    @model_validator(mode="before")
    @classmethod
    def as_it_is(cls, given: Any) -> Any:
        return given


class Tree(BaseModel):
    kids: "list[Tree]" = []


def many_kinds(
    model: InnerModel,
    data: InnerData,
    typed: InnerTyped,
    either: InnerModel | int,
    listed: list[InnerModel],
    named: dict[str, InnerModel],
    tree: Tree,
    bare: OpenWithValidator,
) -> str:
    return "done"


UNKNOWN_FIELDS = [
    ("", False), ("model", False), ("data", False), ("typed", False), ("either", False), ("listed.0", False),
    ("named.a", False), ("tree", False), ("tree.kids.0", False), ("named", True), ("bare", True),
]  # fmt: skip


@pytest.mark.parametrize(("place", "taken"), UNKNOWN_FIELDS)
def test_the_shown_schema_and_the_parser_agree_about_unknown_fields(place: str, taken: bool) -> None:
    made = tool(many_kinds, effect=READ, secrets=())
    arguments: Any = {name: {} for name in ("model", "data", "typed", "either", "named", "bare")}
    arguments |= {"listed": [{}], "named": {"a": {}}, "tree": {"kids": [{}]}}
    target = arguments
    for step in place.split(".") if place else ():
        target = target[int(step) if step.isdigit() else step]
    target["zz"] = {}
    assert Toolbox([made]).call_sync("many_kinds", arguments).is_error is not taken
    for dialect in ("openai", "anthropic", "mistral"):  # those that take recursion and every keyword
        assert jsonschema_rs.is_valid(made.spec.in_dialect(dialect), arguments) is taken


@pytest.mark.parametrize("dialect", ["bedrock", "openai-strict", "anthropic-strict"])
def test_a_dialect_that_takes_few_keywords_says_that_objects_are_closed(dialect: str) -> None:
    def few(model: InnerModel, either: InnerData | int) -> str:
        return "done"

    schema = tool(few, effect=READ, secrets=()).spec.in_dialect(dialect)
    assert schema["properties"]["model"]["additionalProperties"] is False
    assert schema["properties"]["either"]["anyOf"][0]["additionalProperties"] is False


def test_extras_are_taken_where_the_type_says_so() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        a: int

    class Careless(BaseModel):
        model_config = ConfigDict(extra="ignore")
        a: int

    class OpenTyped(typing_extensions.TypedDict):
        __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
        a: int

    def call(kind: Any, arguments: Any) -> str:
        return Toolbox([tool(echo, effect=READ, secrets=(), params=kind)]).call_sync("echo", arguments).text

    assert call(Open, {"a": 1, "b": [2]}) == '{"a":1,"b":[2]}'
    assert call(OpenTyped, {"a": 1, "b": [2]}) == '{"a":1,"b":[2]}'
    assert call(Careless, {"a": 1, "b": [2]}) == '{"a":1}'  # its author said so

    def nested(x: Open, y: Numbers) -> Any:
        return [x, y]

    box = Toolbox([tool(nested, effect=READ, secrets=())])
    assert not box.call_sync("nested", {"x": {"a": 1, "q": 1}, "y": {"a": 1}}).is_error
    assert box.call_sync("nested", {"x": {"a": 1}, "y": {"a": 1, "q": 1}}).code == "invalid_arguments"


# -- a raw JSON Schema

RAW = {
    "type": "object",
    "properties": {
        "q": {"type": "string", "description": "What to look for."},
        "n": {"type": "integer", "minimum": 1},
        "kind": {"enum": ["a", "b"]},
    },
    "required": ["q"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"q": "x"}, '{"q":"x"}'),
        ({"q": "x", "n": "3"}, '{"q":"x","n":3}'),
        ('{"q": "x", "n": 3,}', '{"q":"x","n":3}'),
        ({"q": "x", "n": ""}, '{"q":"x"}'),
        ({"arguments": {"q": "x"}}, '{"q":"x"}'),
        ({"q": '{"n": 1}'}, '{"q":"{\\"n\\": 1}"}'),
    ],
)
def test_a_raw_schema_is_validated_and_repaired_alike(arguments: Any, expected: str) -> None:
    box = Toolbox([tool(echo, name="raw", effect=READ, secrets=(), params=RAW)])
    assert box.call_sync("raw", arguments).text == expected


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "- q: expected string, got nothing"),
        ({"q": 1}, "- q: expected string, got integer 1"),
        ({"q": "x", "n": 0}, "- n: expected integer, at least 1, got integer 0"),
        ({"q": "x", "kind": "c"}, '- kind: expected one of "a", "b", got string "c"'),
        ({"q": "x", "zz": 1}, "- zz: expected no parameter of this name"),
        ({"q": 1, "n": "no", "kind": "c", "zz": 1}, "- n: "),
    ],
)
def test_a_raw_schema_tells_what_does_not_fit(arguments: Any, words: str) -> None:
    box = Toolbox([tool(echo, name="raw", effect=READ, secrets=(), params=RAW)])
    result = box.call_sync("raw", arguments)
    assert result.code == "invalid_arguments"
    assert words in result.text


def test_a_raw_schema_checks_the_names_of_secrets() -> None:
    with pytest.raises(TypeError, match="zz"):
        tool(echo, name="raw", effect=READ, secrets=("zz",), params=RAW)


# -- descriptions


def google(city: str, days: int = 1) -> str:
    """Look up the weather.

    It knows the whole world.

    Args:
        city: City name, such as "Oslo".
        days (int): How many days
            ahead.

    Returns:
        Words about the weather.
    """
    return city


def numpy(city: str, days: int = 1) -> str:
    """Look up the weather.

    It knows the whole world.

    Parameters
    ----------
    city : str
        City name, such as "Oslo".
    days : int, optional
        How many days
        ahead.

    Returns
    -------
    str
        Words about the weather.
    """
    return city


def sphinx(city: str, days: int = 1) -> str:
    """Look up the weather.

    It knows the whole world.

    :param city: City name, such as "Oslo".
    :param int days: How many days
        ahead.
    :returns: Words about the weather.
    """
    return city


@pytest.mark.parametrize("fn", [google, numpy, sphinx])
def test_docstrings_describe_the_tool_and_its_parameters(fn: Any) -> None:
    spec = tool(fn, effect=READ, secrets=()).definition().spec
    properties = spec.input_schema["properties"]
    assert spec.description == "Look up the weather.\n\nIt knows the whole world."
    assert properties["city"]["description"] == 'City name, such as "Oslo".'
    assert properties["days"]["description"] == "How many days ahead."
    assert "Parameters" not in spec.description


@pytest.mark.parametrize(
    "text",
    [
        "One line: no section.",
        "A summary: short.\n\nThen words, with a colon: here.\nAnd a second line.",
        "A summary without\nan empty line: after it.",
        "A summary: spaced. \n\n\n\n  Further in.",
        "A summary.\n\nRaises:\n    ValueError: always.",
        "A summary.\n\n@param city: where.",
        "A summary.\n\n.. note:: new.",
        "A summary.\n\nSee also: --\n--\nno more",
    ],
)
def test_a_docstring_reads_the_same_whether_or_not_its_parser_is_needed(text: str) -> None:
    import docstring_parser

    parsed = docstring_parser.parse(text)
    words = [parsed.short_description or "", parsed.long_description or ""]
    expected = "\n\n".join(part.strip() for part in words if part.strip())
    assert parse_docstring(text) == (expected, {p.arg_name: p.description for p in parsed.params})


def described(
    a: Annotated[int, Field(description="from Field")],
    b: Annotated[int, "from Annotated"],
    c: int = Field(1, description="from the default"),
    d: Annotated[int | None, "nullable"] = None,
    e: int = 0,
) -> None:
    """Do it.

    Args:
        a: from the docstring
        b: from the docstring
        e: from the docstring
    """


def test_the_closest_description_wins() -> None:
    properties = tool(described, effect=READ, secrets=()).definition().spec.input_schema["properties"]
    assert {name: node.get("description") for name, node in properties.items()} == {
        "a": "from Field",
        "b": "from Annotated",
        "c": "from the default",
        "d": "nullable",
        "e": "from the docstring",
    }


def test_descriptions_of_a_class_tool() -> None:
    class Where(BaseModel):
        """Where to look.

        Attributes:
            city: The city.
        """

        city: str
        days: int = Field(1, description="How many.")

    class Weather(Tool[Where, str], name="weather", effect=READ, secrets=()):
        """Look up the weather."""

        def execute(self, params: Where, ctx: Context) -> str:
            return params.city

    spec = Weather.definition().spec
    assert spec.description == "Look up the weather."
    assert spec.input_schema["properties"]["city"]["description"] == "The city."
    assert spec.input_schema["properties"]["days"]["description"] == "How many."
    assert spec.input_schema["properties"]["days"]["default"] == 1


# -- output schemas


class Forecast(BaseModel):
    degrees: float


INTEGERS: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}
OUTPUTS: list[tuple[Any, dict[str, Any] | None]] = [
    (str, None),
    (None, None),
    (Any, None),
    (bytes, None),
    (Text, None),
    (list[Image], None),
    (str | Image, None),
    (int, {"type": "integer"}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (Forecast, {"type": "object", "properties": {"degrees": {"type": "number"}}, "required": ["degrees"]}),
    (dict[str, int], {"type": "object", "properties": {}, "additionalProperties": {"type": "integer"}}),
    (typing.NoReturn, None),  # it always raises
    (typing.Awaitable[typing.Never], None),
    (typing.LiteralString, None),
    (abc.Iterator, None),
    (abc.AsyncGenerator, None),
    (typing.Awaitable, None),
    (Annotated[abc.Iterator[str], "the lines"], None),
    (Annotated[abc.AsyncGenerator[int, None], Field(description="one by one")], {**INTEGERS, "description": "one by one"}),
    (abc.Iterator[int], INTEGERS),
    (abc.AsyncIterator[int], INTEGERS),
    (abc.Generator[int, None, None], INTEGERS),
    (abc.Generator[Any, None, int], {"type": "integer"}),
    (abc.Generator[Any, None, int | None], None),
    (abc.Generator[int, None, Any], None),
    (abc.Iterator[int | str], None),
    (abc.Iterator[Literal["a", "b"]], None),
    (abc.Iterator[bytes], None),
    (abc.Iterator[Any], None),
    (abc.Iterable[int], INTEGERS),
    (abc.Iterable[str], {"type": "array", "items": {"type": "string"}}),
    (abc.Iterable[Text], None),
    (abc.Coroutine[Any, Any, Annotated[abc.AsyncIterator[str], "lines"]], None),
    (abc.Iterator[str] | None, None),
    (Annotated[str, "the text"], None),
    (Annotated[None, "nothing"], None),
    (Annotated[ToolResult, "as it is"], None),
    (Annotated[list[Text | Image], "parts"], None),
    (str | abc.Awaitable[str], None),
    (abc.Awaitable[Annotated[int, Field(description="how many")]], {"type": "integer", "description": "how many"}),
    (int | abc.Awaitable[int], {"type": "integer"}),
]  # fmt: skip


@pytest.mark.parametrize(("returns", "schema"), OUTPUTS, ids=lambda item: str(item)[:40])
def test_the_output_schema_follows_the_return_annotation(returns: Any, schema: Any) -> None:
    def give() -> Any: ...

    give.__annotations__["return"] = returns
    assert tool(give, effect=READ, secrets=()).definition().spec.output_schema == schema


def test_async_and_generators_have_the_schema_of_what_they_give() -> None:
    async def slowly() -> Forecast: ...  # type: ignore[empty-body]
    async def parts() -> typing.AsyncIterator[str]:
        yield ""

    def lines() -> abc.Iterable[str]:  # joined to one text
        yield ""

    def numbers() -> abc.Iterable[int]:
        yield 1

    schemas = [
        tool(fn, effect=READ, secrets=()).definition().spec.output_schema
        for fn in (slowly, parts, lines, numbers)
    ]
    assert [schema and schema["type"] for schema in schemas] == ["object", None, None, "array"]


# -- three moments


async def test_a_broken_tool_is_set_aside_and_the_rest_go_on() -> None:
    class Unknown:
        pass

    def broken(fine: int, culprit: Unknown) -> None: ...
    def also_broken(culprit: Unknown) -> None: ...

    box = Toolbox([tool(f, effect=READ, secrets=()) for f in (plain, broken, also_broken)])
    with pytest.warns(UserWarning) as caught:
        tool_list = await box.tool_list()
    assert [spec.name for spec in tool_list.specs] == ["plain"]
    said = [str(w.message) for w in caught if w.category is UserWarning]
    assert len(said) == 2
    assert any("broken" in words and "culprit" in words for words in said)
    lines = {broken.__code__.co_firstlineno, also_broken.__code__.co_firstlineno}
    assert {(w.filename, w.lineno) for w in caught} == {(__file__, line) for line in lines}
    assert (await box.call("plain", {"a": 1})).text == "1"
    assert "cannot be used" in (await box.call("broken", {"fine": 1}, tool_list=tool_list)).text
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        assert (await box.call("also_broken", {})).is_error


def test_defining_compiles_nothing() -> None:
    calls: list[str] = []

    class Loud:
        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
            calls.append("compiled")
            return handler(int)

    def fn(x: Loud) -> str:
        return "ok"

    made = tool(fn, effect=READ, secrets=())
    box = Toolbox([made])
    assert calls == []
    for _ in range(3):
        assert box.call_sync("fn", {"x": 1}).text == "ok"
    after_first = len(calls)
    made.check()
    assert len(calls) == after_first > 0


async def test_the_same_tools_give_byte_identical_specs() -> None:
    def specs(order: list[Any]) -> Any:
        return Toolbox([tool(f, effect=READ, secrets=()) for f in order]).tool_list()

    one, two = await specs([plain, google, numpy]), await specs([numpy, google, plain])
    as_bytes = [
        to_json([(s.name, s.description, s.input_schema, s.output_schema) for s in tool_list.specs])
        for tool_list in (one, two)
    ]
    assert as_bytes[0] == as_bytes[1]


# -- descriptions and schemas of the world as it is


async def test_dynamic_description_and_schema_follow_the_world_once_a_turn() -> None:
    tables = ["users"]
    asked: list[str] = []

    async def describe(ctx: Context) -> str:
        asked.append("description")
        return f"Query one of {', '.join(tables)}."

    async def narrow(schema: dict[str, Any], ctx: Context) -> dict[str, Any]:
        schema["properties"]["table"]["enum"] = list(tables)
        return schema

    @tool(effect=READ, secrets=(), dynamic_description=describe, dynamic_schema=narrow)
    def query(table: str) -> str:
        return f"rows of {table}"

    box = Toolbox([query])
    first = await box.tool_list()
    assert first.specs[0].description == "Query one of users."
    tables.append("orders")
    second = await box.tool_list()
    assert second.specs[0].input_schema["properties"]["table"]["enum"] == ["users", "orders"]
    assert len(asked) == 2
    assert query.definition().spec.description == ""  # never baked in

    refused = await box.call("query", {"table": "orders"}, tool_list=first)
    assert refused.code == "invalid_arguments"
    assert "users" in refused.text
    assert (await box.call("query", {"table": "orders"}, tool_list=second)).text == "rows of orders"
    assert len(asked) == 2


async def test_a_dynamic_hook_that_raises_sets_its_tool_aside() -> None:
    async def describe(ctx: Context) -> str:
        raise RuntimeError("no database")

    box = Toolbox(
        [
            tool(plain, name="bad", effect=READ, secrets=(), dynamic_description=describe),
            tool(plain, name="good", effect=READ, secrets=()),
        ]
    )
    with pytest.warns(UserWarning, match="bad"):
        tool_list = await box.tool_list()
    assert [spec.name for spec in tool_list.specs] == ["good"]


async def test_a_factory_is_described_by_the_tool_it_makes_and_closes_it() -> None:
    closed: list[str] = []

    class Made(Tool[Numbers, int], name="inner", effect=READ, secrets=()):
        "Made for the occasion."

        def execute(self, params: Numbers, ctx: Context) -> int:
            return params.a

        async def aclose(self) -> None:
            closed.append("closed")

    box = Toolbox([ToolFactory("outer", lambda ctx: Made())])
    tool_list = await box.tool_list()
    assert [(spec.name, spec.description) for spec in tool_list.specs] == [
        ("outer", "Made for the occasion.")
    ]
    assert closed == ["closed"]


async def test_a_factory_is_called_once_in_a_run_to_be_described_and_then_for_calls_only() -> None:
    made: list[str] = []

    def build(ctx: Context[str]) -> Any:
        made.append(ctx.deps)

        @tool(name="look", effect=READ, secrets=(), description=f"Look at what {ctx.deps} has.")
        def look() -> str:
            return ctx.deps

        return look

    box = Toolbox([ToolFactory("look", build)])
    for _ in range(3):
        ann, bob = await box.tool_list(run="a", deps="Ann"), await box.tool_list(run="b", deps="Bob")
        assert [ann.specs[0].description, bob.specs[0].description] == [
            "Look at what Ann has.",
            "Look at what Bob has.",
        ]
    assert made == ["Ann", "Bob"]
    assert (
        await box.call(ToolCall("look", {}), key=CallKey("a", 1, 0), deps="Ann", tool_list=ann)
    ).text == "Ann"
    assert made == ["Ann", "Bob", "Ann"]
    box.forget("a")
    assert (await box.tool_list(run="a", deps="Cyd")).specs[0].description == "Look at what Cyd has."


WIDER: list[tuple[str, Any, str]] = [
    (
        "a value that the type does not take",
        {"properties": {"unit": {"enum": ["km", "ly"]}}},
        "does not take 'ly'",
    ),
    (
        "a type that is not declared",
        {"properties": {"count": {"type": ["integer", "null"]}}},
        "the type null",
    ),
    (
        "a wider bound",
        {"properties": {"count": {"type": "integer", "minimum": 0}}},
        "declared with minimum 1",
    ),
    ("a bound that is gone", {"properties": {"count": {"type": "integer"}}}, "declared with minimum 1"),
    ("a required parameter that may be left out", {"required": []}, "parameter 'unit' is required"),
    (
        "values within a list",
        {"properties": {"tags": {"type": "array", "items": {"type": "integer"}}}},
        "'tags[]'",
    ),
]
NARROWER: list[tuple[str, Any]] = [
    ("fewer values", {"properties": {"unit": {"enum": ["km"]}}}),
    ("one value", {"properties": {"unit": {"const": "km"}}}),
    ("a narrower bound", {"properties": {"count": {"type": "integer", "minimum": 1, "maximum": 3}}}),
    ("values instead of a bound", {"properties": {"count": {"enum": [1, 2]}}}),
    ("no null", {"properties": {"note": {"type": "string"}}}),
    ("a pattern", {"properties": {"note": {"type": "string", "pattern": "^a"}}}),
    ("one more required", {"required": ["unit", "count", "tags"]}),
]


def shaped(change: dict[str, Any]) -> Toolbox:
    def shape(schema: dict[str, Any], ctx: Context) -> dict[str, Any]:
        for key, value in change.items():
            schema[key] = {**schema[key], **value} if key == "properties" else value
        return schema

    @tool(effect=READ, secrets=(), dynamic_schema=shape)
    def measure(
        unit: Literal["km", "mi"], count: Annotated[int, Field(ge=1)], tags: tuple[str, ...] = (), note: str | None = None
    ) -> str:  # fmt: skip
        return "measured"

    return Toolbox([measure])


@each("name, change, words", WIDER, ids=[case[0] for case in WIDER])
async def test_a_dynamic_schema_that_takes_more_than_the_declared_one_is_refused_when_it_is_shown(
    name: str, change: dict[str, Any], words: str
) -> None:
    with pytest.warns(UserWarning, match="dynamic_schema may only narrow"):
        shown = await shaped(change).tool_list()
    assert shown.specs == []
    assert words in shown.broken["measure"]


@each("name, change", NARROWER, ids=[case[0] for case in NARROWER])
async def test_a_dynamic_schema_may_narrow(name: str, change: dict[str, Any]) -> None:
    assert (await shaped(change).tool_list()).broken == {}


@pytest.mark.parametrize("below", [True, False])
def test_a_decorated_classmethod_is_refused_with_what_to_write(below: bool) -> None:
    make = tool(effect=READ, secrets=())

    def name(cls: type) -> str:
        return cls.__name__

    with pytest.raises(TypeError, match=r"after the class, write tool\(Class.method"):
        method: Any = classmethod(make(name)) if below else make(classmethod(name))
        Toolbox([type("Shop", (), {"name": method}).name])  # type: ignore[attr-defined] # made here

    plain: Any = type("Shop", (), {"name": classmethod(name)})
    assert Toolbox([tool(plain.name, effect=READ, secrets=())]).call_sync("name", {}).text == "Shop"
