"""What a newcomer stumbled over: mistakes that should be named at once, and failures that must be results."""

from __future__ import annotations

import asyncio
import functools
import gc
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace, new_class
from typing import Any, Generic, TypedDict, TypeVar

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from toolcrib import (
    Agent,
    Context,
    Effect,
    Message,
    Retry,
    Tool,
    Toolbox,
    ToolCall,
    ToolDefinitionError,
    ToolError,
    ToolResult,
    to_dialect,
    tool,
)
from toolcrib.agent import TranscriptFile, read_transcript
from toolcrib.agent.delegation import Delegate, delegation_tools
from toolcrib.codecs.text import parse_text
from toolcrib.errors import ErrorCode
from toolcrib.guided import Choice, ToolCalls
from toolcrib.hooks import HOOKS
from toolcrib.models import AnthropicMessages, OpenAIChat, OpenAIResponses, Scripted
from toolcrib.models.fallback import Fallback
from toolcrib.rules import Limit, RateLimits, RulePolicy, read_rules
from toolcrib.rules.examples import call_from
from toolcrib.schema import SchemaError, clean, lint, to_markdown
from toolcrib.secrets import Environment
from toolcrib.testing import check_tool
from toolcrib.tools import (
    ApplyPatch,
    DeleteFile,
    EditFile,
    GlobFiles,
    Grep,
    ListDir,
    MoveFile,
    MultiEdit,
    Process,
    ProcessList,
    ProcessWrite,
    Python,
    ReadFile,
    Shell,
    Workspace,
    WriteFile,
)  # fmt: skip
from toolcrib.toolset import StaticToolset, ToolFactory, filtered, prefixed, renamed

READ: dict[str, Any] = {"effect": Effect.READ, "secrets": ()}


class Pair(BaseModel):
    a: int
    b: int


LEAVES = """
from toolcrib import Effect, Toolbox, tool

@tool(effect=Effect.READ, secrets=())
{how} leave() -> str:
    '''Leave.'''
    raise SystemExit(3)

print(Toolbox([leave]).call_sync("leave").code)
"""


@pytest.mark.parametrize("how", ["def", "async def"])
def test_a_tool_that_exits_gives_a_result_and_does_not_hang_the_program(how: str) -> None:
    """argparse and click leave by SystemExit, so a tool that uses them does too."""
    done = subprocess.run(
        [sys.executable, "-c", LEAVES.format(how=how)], capture_output=True, text=True, timeout=20
    )
    assert done.stdout == "failed\n"


async def test_execute_without_a_context_never_raises_through_a_call() -> None:
    with pytest.raises(TypeError, match="ctx"):  # at definition; a result would do as well

        class Multiply(Tool[Pair, int], name="multiply", effect=Effect.READ, secrets=()):
            """Multiply."""

            async def execute(self, params: Pair) -> int:  # type: ignore[override]
                return params.a * params.b

        result = await Toolbox([Multiply]).call("multiply", {"a": 2, "b": 3})
        raise TypeError(f"ctx: {result.code}")


@dataclass
class PairData:
    a: int
    b: int = 1


class PairDict(TypedDict):
    a: int
    b: int


PAIR_SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}


async def with_keywords(a: int, b: int) -> int:
    return a * b


class Service:
    def fields(self, a: int, b: int = 1) -> int:
        return a * b

    def params(self, params: Pair, ctx: Context) -> int:
        return params.a * params.b


OF_FIELDS: list[Any] = [
    with_keywords,
    lambda a, b: a,
    lambda a, b=1: a,
    lambda a: a,
    lambda *, a, b: a,
    lambda a, ctx: a,
    lambda params, a=1: a,
    lambda **fields: fields,
    lambda *fields: fields,
    lambda: 1,
    Service().fields,
    Service.fields,
    functools.partial(with_keywords, b=2),
]


@pytest.mark.parametrize(
    "kind", [Pair, PairData, PairDict, PAIR_SCHEMA], ids=["model", "dataclass", "dict", "raw"]
)
def test_params_beside_a_function_of_their_fields_are_refused_at_definition(kind: Any) -> None:
    """As it is written elsewhere: a model of the arguments, and a function that takes them one by one."""

    def first_is_text(text: str) -> str:
        return text

    def first_is_text_of_several(text: str, ctx: Context) -> str:
        return text

    for fn in (*OF_FIELDS, first_is_text, first_is_text_of_several):
        with pytest.raises(TypeError, match="params come as one object"):
            tool(fn, name="multiply", params=kind, **READ)


def take_late(params: Late) -> int:
    return params.a


TAKES_LATE = tool(take_late, params=Pair, **READ)


class Late(BaseModel):
    a: int


def test_params_beside_a_type_that_is_known_only_later_are_refused_before_a_call() -> None:
    with pytest.raises(TypeError, match="params come as one object"):
        TAKES_LATE.check()
    right = tool(take_late, name="right", params=Late, **READ)
    assert Toolbox([right]).call_sync("right", {"a": 3}).text == "3"


def test_the_execute_of_a_class_does_not_take_the_fields() -> None:
    with pytest.raises(TypeError, match="params come as one object"):

        class OfFields(Tool[Pair, int], name="of_fields", effect=Effect.READ, secrets=()):
            async def execute(self, a: int, b: int) -> int:  # type: ignore[override]
                return a * b

    with pytest.raises(TypeError, match=r"write \(self, params: PairData, ctx: Context\)"):

        class OfNames(Tool[PairData, int], name="of_names", effect=Effect.READ, secrets=()):
            def execute(self, a, b):  # type: ignore[no-untyped-def]
                return a * b


def test_an_object_of_yours_among_the_parameters_is_told_where_it_belongs() -> None:
    def look(shelf: int, service: Service) -> str:
        return service.__class__.__name__

    with pytest.raises(
        ToolDefinitionError, match=r"'service': .*; an object of yours is given as deps=, and read as"
    ):
        tool(look, **READ).check()


async def asks_elsewhere(*args: Any) -> Any: ...


class AsksElsewhere:
    async def __call__(self, *args: Any) -> Any: ...


ASYNC = [asks_elsewhere, AsksElsewhere(), functools.partial(AsksElsewhere(), 1)]


SYNC_HOOKS = [hook for hook in HOOKS if not hook.startswith("dynamic_")]


@pytest.mark.parametrize("hook", SYNC_HOOKS)
@pytest.mark.parametrize("given", ASYNC)
def test_an_async_hook_that_nobody_awaits_is_named(given: Any, hook: str) -> None:
    """A coroutine is true, and no Effect: such a tool was never available, failed in each call, or always asked."""
    words = f"{hook} is not awaited: write it as a plain function"
    with pytest.raises(TypeError, match=words):
        tool(lambda a: a, name="x", **READ, **{hook: given})
    methods: dict[str, Any] = {"execute": lambda self, params, ctx: "", hook: given}
    with pytest.raises(TypeError, match=words):
        new_class("X", (Tool[Pair, str],), {"name": "x", **READ}, lambda body: body.update(methods))
    mixin = type("Mixin", (), methods)
    with pytest.raises(TypeError, match=words):
        new_class("X", (mixin, Tool[Pair, str]), {"name": "x", **READ})


WRONG_VALUES: list[tuple[str, Any, str]] = [
    ("effect_for", "read", "effect_for gives Effect.READ, WRITE or DESTRUCTIVE, got 'read'"),
    ("preview", "It writes.", "preview gives a Preview or None, got str 'It writes.'"),
    ("would_fail", True, "would_fail gives a str or None, got bool 'True'"),
]


@pytest.mark.parametrize(("hook", "value", "words"), WRONG_VALUES)
def test_what_a_hook_gives_in_place_of_the_right_value_is_told_to_the_operator(
    hook: str, value: Any, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    put = tool(
        lambda item: "put",
        name="put",
        effect=Effect.WRITE,
        secrets=(),
        **{hook: lambda *args: value},  # type: ignore[arg-type]
    )
    asked = Toolbox([put], approver=lambda question: True)
    assert asked.call_sync("put", {"item": "saw"}).text == "put"
    assert words in caplog.text


@pytest.mark.parametrize(("hook", "value"), [("dynamic_description", 5), ("dynamic_schema", None)])
async def test_a_description_and_a_schema_of_a_wrong_type_are_named(hook: str, value: Any) -> None:
    box = Toolbox([tool(lambda item: "put", name="put", **READ, **{hook: lambda *args: value})])
    with pytest.warns(UserWarning, match=f"{hook} gives .*, got {value}"):
        assert "put" in (await box.tool_list()).broken


@pytest.mark.parametrize("how", ["async", "sync", "sync with a result"])
def test_a_permission_that_is_asked_for_without_await_fails_the_call(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody was asked, and the call succeeded."""

    async def wipe(shelf: int, ctx: Context) -> str:
        ctx.ask("wipe the shelf")  # type: ignore[unused-coroutine]
        return "wiped"

    def wipe_sync(shelf: int, ctx: Context) -> Any:
        ctx.ask("wipe the shelf")  # type: ignore[unused-coroutine]
        return ToolResult("wiped") if how == "sync with a result" else "wiped"

    fn: Any = wipe if how == "async" else wipe_sync
    box = Toolbox([tool(fn, name="wipe", **READ)], approver=lambda question: True)
    assert box.call_sync("wipe", {"shelf": 2}).code == "failed"
    assert "ctx.ask(...) was not awaited" in caplog.text


async def one_after_the_other(ctx: Context) -> str:
    asked = [ctx.ask(name) for name in ("refused", "second")]
    try:
        for each in asked:
            await each
    except ToolError:
        return "not allowed"
    return "allowed"


async def as_tasks(ctx: Context) -> str:
    task = asyncio.create_task(ctx.ask("not needed"))
    task.cancel()
    await asyncio.gather(ctx.ask("a"), ctx.ask("b"))
    asyncio.create_task(ctx.ask("not needed")).cancel()
    return "allowed"


async def at_the_second_attempt(ctx: Context) -> str:
    asked = ctx.ask("begin"), ctx.ask("end")
    await asked[0]
    if not ATTEMPTS:
        ATTEMPTS.append(1)
        raise OSError
    await asked[1]
    return "allowed"


ATTEMPTS: list[int] = []


@pytest.mark.filterwarnings("ignore:coroutine 'ContextHost.ask'")  # Python's, as of any coroutine
@pytest.mark.parametrize(
    ("fn", "text"),
    [(one_after_the_other, "not allowed"), (as_tasks, "allowed"), (at_the_second_attempt, "allowed")],
)
async def test_a_permission_that_is_not_needed_any_more_fails_no_call(fn: Any, text: str) -> None:
    ATTEMPTS.clear()
    retry = Retry(attempts=2, delay=0, on=(OSError,))
    made = tool(fn, name="fn", effect=Effect.READ, secrets=(), idempotent=True, retry=retry)
    box = Toolbox([made], approver=lambda question: "refused" not in repr(question))
    assert (await box.call("fn")).text == text
    gc.collect()  # here, where Python's warning is expected: not in a later test


@pytest.mark.parametrize("given", ASYNC)
def test_an_async_listener_is_named_since_nobody_would_await_it(given: Any) -> None:
    for make in (lambda: Toolbox(on_event=given), lambda: Toolbox().subscribe(given)):
        with pytest.raises(
            TypeError, match=r"a listener is a plain function.*async for event in box.events\(\)"
        ):
            make()


async def test_a_listener_that_gives_a_coroutine_is_told(caplog: pytest.LogCaptureFixture) -> None:
    box = Toolbox([tool(lambda: "", name="look", **READ)])
    listener = box.subscribe(lambda event: asyncio.sleep(0))  # known to be async only when it was called
    await box.call("look", {})
    assert listener.flush(5)
    assert "a listener is a plain function" in caplog.text


def test_what_check_tool_cannot_check_is_named() -> None:
    with pytest.raises(TypeError, match=r"is no tool, so it was called with a folder"):
        check_tool(lambda text: text)
    look: Any = tool(lambda shelf: shelf, name="look", **READ)
    with pytest.raises(TypeError, match=r"write arguments=\[\{'shelf': 1\}\]"):
        check_tool(look, arguments={"shelf": 1})  # type: ignore[arg-type]


def test_what_a_precheck_raises_for_the_model_reaches_the_model() -> None:
    def refuse(params: Any) -> None:
        raise ToolError("Shelf 9 is locked. Take another.")

    box = Toolbox([tool(lambda item: "put", name="put", **READ, precheck=refuse)])
    result = box.call_sync("put", {"item": "saw"})
    assert (result.code, result.text) == (
        "precheck",
        'Tool "put" was not run: Shelf 9 is locked. Take another.',
    )


def logged(fn: Any) -> Any:
    """A decorator as many write it."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


@pytest.mark.parametrize("decorate", [logged, functools.lru_cache])
def test_a_decorator_above_the_one_that_makes_the_tool_is_named(decorate: Any) -> None:
    """The wrapper has the facts of the tool, and nothing else of it: every call failed."""

    @decorate
    @tool(**READ)
    def look(shelf: int) -> str:
        return str(shelf)

    with pytest.raises(TypeError, match="put @tool above the other decorators"):
        Toolbox([look])

    @tool(**READ)
    @decorate
    def below(shelf: int) -> str:
        return str(shelf)

    assert Toolbox([below]).call_sync("below", {"shelf": 2}).text == "2"


class Multiplied(Tool[Pair, int], name="multiplied", effect=Effect.READ, secrets=()):
    def execute(self, params: Pair, ctx: Context) -> int:
        return params.a * params.b


class WithExecute:
    def execute(self, a: int) -> int:
        return a


class WithCall:
    def __call__(self, a: int) -> int:
        return a


@pytest.mark.parametrize(
    ("given", "instead"),
    [
        (Multiplied, "a tool without @tool"),
        (WithExecute, r"derive it from Tool\[Params, Result\]"),
        (WithCall, r"tool\(WithCall\(\), effect="),
        ("multiply", r"@tool\(name='multiply', effect="),
    ],
)
def test_what_is_no_function_is_told_what_to_write_instead(given: Any, instead: str) -> None:
    with pytest.raises(TypeError, match=instead):
        tool(given, **READ)
    with pytest.raises(TypeError, match=instead):
        tool(**READ)(given)


def test_a_class_that_makes_an_object_of_its_arguments_may_be_a_tool() -> None:
    assert Toolbox([tool(PairData, **READ)]).call_sync("PairData", {"a": 2}).text == '{"a":2,"b":1}'


P = TypeVar("P")
R = TypeVar("R")


class Shown(Tool[P, str], name="shown", effect=Effect.READ, secrets=()):
    """A base of several tools, whose params are those of each."""

    def execute(self, params: P, ctx: Context) -> str:
        return repr(params)


class Both(Tool[R, list[P]], Generic[P, R], name="both", effect=Effect.READ, secrets=()):
    def execute(self, params: R, ctx: Context) -> list[P]:
        return []


class OfPairs(Both[P, PairData], name="of_pairs", effect=Effect.READ, secrets=()):
    """The params are known, the items are not."""


class ShownPair(Shown[PairData], name="shown_pair", effect=Effect.READ, secrets=()): ...


class PairsOfPairs(OfPairs[Pair], name="pairs_of_pairs", effect=Effect.READ, secrets=()): ...


class Below(PairsOfPairs, name="below", effect=Effect.READ, secrets=()): ...


def test_a_generic_base_of_tools_may_be_given_the_types() -> None:
    """Such a tool took no arguments, as the type variable was its params."""
    box = Toolbox([ShownPair])
    assert box.call_sync("shown_pair", {"a": 2}).text == "PairData(a=2, b=1)"
    assert box.call_sync("shown_pair", {}).code == "invalid_arguments"
    for made in (PairsOfPairs, Below):
        assert list(made.spec.input_schema["properties"]) == ["a", "b"]
        assert (made.spec.output_schema or {})["items"]["required"] == ["a", "b"]


class Renamed(Below, Tool[PairData, str], name="renamed", effect=Effect.READ, secrets=()):
    """A tool with params of its own, which shares the code of another."""

    def execute(self, params: PairData, ctx: Context) -> str:  # type: ignore[override] # that of Below takes others
        return repr(params)


NOT_YET: Any = "Later"
Unknown = TypeVar("Unknown", bound="Later")  # type: ignore[name-defined] # noqa: F821 - which is the mistake


@pytest.mark.parametrize("given", [NOT_YET, Unknown])
def test_params_that_are_no_type_yet_are_a_broken_definition(given: Any) -> None:
    """Before, the call failed with an error about something else."""

    class OfLater(Shown[given], name="of_later", effect=Effect.READ, secrets=()): ...

    with pytest.raises(ToolDefinitionError, match="tool 'of_later': name 'Later' is not defined"):
        OfLater.check()


def test_what_a_class_gives_tool_itself_counts_before_what_another_base_gave() -> None:
    assert Toolbox([Renamed]).call_sync("renamed", {"a": 2}).text == "PairData(a=2, b=1)"
    assert Renamed.spec.output_schema is None


def test_a_function_takes_params_and_context_in_any_order_and_under_any_name() -> None:
    def swapped(ctx: Context, pair: Pair) -> int:
        return pair.a * pair.b

    def by_name(pair: Pair, *, ctx: Context) -> int:
        return pair.a * pair.b

    def all_by_name(*, pair: Pair, times: int = 1, ctx: Context) -> int:
        return pair.a * pair.b * times

    async def base(anything: BaseModel, context: Any) -> int:
        return int(anything.a * anything.b)  # type: ignore[attr-defined]

    def with_a_default(pair: Pair | None, times: int = 1) -> int:
        return 0 if pair is None else pair.a * pair.b * times

    class Decorated:
        @tool(params=Pair, **READ)
        def method(self, params: Pair) -> int:
            return params.a * params.b

    made = [tool(fn, params=Pair, **READ) for fn in (swapped, by_name, all_by_name, base, with_a_default)]
    made.append(tool(Service().params, params=Pair, **READ))
    made.append(Decorated().method)
    for each in made:
        assert Toolbox([each]).call_sync(each.facts.name, {"a": 2, "b": 3}).text == "6", each


def test_a_raw_schema_that_is_no_object_is_named() -> None:
    with pytest.raises((TypeError, ToolDefinitionError), match="object"):
        tool(lambda value: "", name="x", params={"type": "string"}, **READ).check()


def test_a_call_and_arguments_beside_it_are_not_silently_one() -> None:
    @tool(**READ)
    def look(shelf: int = 0) -> str:
        """Look."""
        return str(shelf)

    with pytest.raises(TypeError):
        Toolbox([look]).call_sync(ToolCall("look"), {"shelf": 2})


@pytest.mark.parametrize("model", [None, lambda request: "hi"])
def test_what_is_no_model_is_named_when_the_agent_is_made(model: Any) -> None:
    with pytest.raises(TypeError, match="model"):
        Agent(model, [])


@pytest.mark.parametrize("task", [3, None, ["look"]])
def test_what_is_no_task_is_named(task: Any) -> None:
    with pytest.raises(TypeError, match="task"):
        Agent(Scripted(["hi"]), []).run_sync(task)


def test_a_message_holds_parts_only() -> None:
    with pytest.raises(TypeError):
        Message.user("Look:", 3)  # type: ignore[arg-type]


def test_an_option_that_an_agent_does_not_have_is_told_as_the_agents() -> None:
    options: dict[str, Any] = {"max_turn": 3}
    with pytest.raises(TypeError, match="Agent"):
        Agent(Scripted(["hi"]), [], **options)


async def test_a_class_may_take_no_params() -> None:
    class Now(Tool[None, str], name="now", effect=Effect.READ, secrets=()):
        """Say what time it is."""

        async def execute(self, params: None, ctx: Context) -> str:
            return "noon"

    assert Now.spec.input_schema["properties"] == {}
    box = Toolbox([Now])
    assert (await box.call("now")).text == "noon"
    assert (await box.call("now", {"x": 1})).code is ErrorCode.INVALID_ARGUMENTS


@pytest.mark.parametrize("messages", [[{"role": "user", "content": "Hi"}], [{}], "Hi"])
def test_messages_as_other_libraries_take_them_are_answered_with_ours(messages: Any) -> None:
    with pytest.raises(TypeError, match="are Message objects"):
        Agent(Scripted([])).start("x", messages=messages)


def test_a_budget_that_is_a_number_is_answered_with_what_it_is() -> None:
    spend: Any = 5
    with pytest.raises(TypeError, match=r"budget must be a Budget, as in Budget\(cost=0.50"):
        Agent(Scripted([]), budget=spend)


def test_the_word_of_an_autonomy_may_stand_where_a_policy_is_taken() -> None:
    assert repr(Toolbox(policy="full").policy) == "AutonomyPolicy('full')"  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="read_only, supervised, sandboxed, full; got 'yolo'"):
        Toolbox(policy="yolo")  # type: ignore[arg-type]


def test_a_file_of_rules_is_no_policy_yet() -> None:
    rules: Any = read_rules("[[rule]]\ndeny = true\ntool = 'x'")
    box = Toolbox(policy=RulePolicy("full", rules.rules))
    for hand_in in (lambda: Toolbox(policy=rules), lambda: setattr(box, "policy", rules)):
        with pytest.raises(
            TypeError, match=r"policy must have decide\(request\), as RulePolicy.* has; got RuleFile"
        ):
            hand_in()


MAKERS: list[Any] = [
    *(ApplyPatch, DeleteFile, EditFile, GlobFiles, Grep, ListDir, MoveFile, MultiEdit, ReadFile, WriteFile),
    *(Process, ProcessList, ProcessWrite, Shell, Python),
]


@pytest.mark.parametrize("make", MAKERS)
def test_the_path_of_a_folder_is_no_backend(make: Any) -> None:
    for given in (".", Path()):
        with pytest.raises(TypeError, match="takes a backend, such as Workspace"):
            make(given)


@pytest.mark.parametrize("output", ["Invoice 3", "Invoice", [int, "Invoice"]])
def test_a_text_is_no_type_of_an_output(output: Any) -> None:
    with pytest.raises(TypeError, match=r"an output is a type, such as .*; got the text 'Invoice"):
        Agent(Scripted([]), output=output)


@pytest.mark.parametrize("value", ["60", 0, -1, float("nan"), True])
def test_a_limit_of_time_that_is_none_is_named(value: Any) -> None:
    def look() -> str:
        """Look."""
        return ""

    for limits in ({"timeout": value}, {"answer_timeout": value}, {"grace": value or -1}):
        with pytest.raises(TypeError, match=f"^{next(iter(limits))} must be more than 0 seconds, got"):
            Toolbox([], **limits)
    with pytest.raises(TypeError, match="tool 'look': timeout must be"):
        tool(timeout=value, **READ)(look)
    assert Toolbox([], timeout=1, answer_timeout=None, grace=0)
    box = Toolbox([tool(**READ)(look)])
    with pytest.raises(TypeError, match="timeout must be more than 0 seconds"):
        box.call_sync("look", timeout=value)
    with pytest.raises(TypeError, match="timeout must be more than 0 seconds"):
        box.run_sync(box.call_turn([], timeout=value))


class Needy(Tool[Pair, str], name="needy", effect=Effect.READ, secrets=()):
    """Needs a place and a key."""

    def __init__(self, place: str, times: int = 1, *, key: str) -> None:
        self.place = place

    def execute(self, params: Pair, ctx: Context) -> str:
        return self.place


class Made(Tool[Pair, str], name="made", effect=Effect.READ, secrets=()):
    """Needs a place and a key where it is made, before `__init__`."""

    place: str

    def __new__(cls, place: str, times: int = 1, *, key: str) -> Made:
        made = super().__new__(cls)
        made.place = place
        return made

    def execute(self, params: Pair, ctx: Context) -> str:
        return self.place


class MadeAlone(Made, name="made_alone", effect=Effect.READ, secrets=()):
    """Needs nothing."""

    def __new__(cls) -> MadeAlone:
        return super().__new__(cls, "here", key="k")  # type: ignore[return-value]


def filled(init: Any) -> Any:
    @functools.wraps(init)
    def with_arguments(self: Any, *given: Any, **named: Any) -> None:
        init(self, "here", *given, key="k", **named)

    return with_arguments


class Filled(Needy, name="filled", effect=Effect.READ, secrets=()):
    """Its constructor is handed its arguments by a decorator."""

    __init__ = filled(Needy.__init__)


class Fills(type(Tool)):  # type: ignore[misc]
    """Hands a class of tools its arguments."""

    def __call__(cls, *given: Any, **named: Any) -> Any:
        return super().__call__("here", key="k")


class Injected(Needy, name="injected", effect=Effect.READ, secrets=(), metaclass=Fills):
    """Its constructor is handed its arguments by its metaclass."""


@pytest.mark.parametrize(
    "add",
    [
        lambda: Toolbox([Needy]),
        lambda: Toolbox(builtin=[Needy]),
        lambda: Toolbox().add(Needy),
        lambda: Toolbox([filtered([Needy], bool)]),
        lambda: Toolbox([renamed([Needy], {"needy": "other"})]),
        lambda: Agent(Scripted([]), [Needy]),
    ],
)
def test_a_class_that_cannot_be_made_without_arguments_is_refused_when_it_is_added(add: Any) -> None:
    words = r"class Needy cannot be made without place, key: supply an instance, as in Needy\(place=..., key=...\)"
    with pytest.raises(ToolDefinitionError, match=words):
        add()
    with pytest.raises(ToolDefinitionError, match=words.replace("Needy", "Made")):
        Toolbox([Made])
    with pytest.raises(TypeError, match="class ReadFile cannot be made without backend"):
        Toolbox([ReadFile])


def test_a_class_that_is_made_without_arguments_or_by_an_instance_is_accepted() -> None:
    for tool_of in (Filled, Injected, MadeAlone, Made("here", key="k"), Needy("here", key="k")):
        name = tool_of.facts.name
        assert Toolbox([tool_of]).call_sync(name, {"a": 1, "b": 2}).text == "here"


async def test_a_class_of_a_toolset_that_cannot_be_made_is_set_aside() -> None:
    class Lends(StaticToolset):
        async def names(self) -> list[str]:
            return ["needy"]

        async def get(self, name: str) -> Any:
            return Needy

    async with Toolbox([Lends([])]) as box:
        with pytest.warns(UserWarning, match="class Needy cannot be made without place, key"):
            assert (await box.tool_list()).specs == []
        assert (await box.call("needy", {"a": 1, "b": 2})).code == ErrorCode.FAILED


@tool(**READ)
def nothing_to_do() -> str:
    """Do nothing."""
    return ""


def box_of(**options: Any) -> Any:
    return Toolbox([nothing_to_do], **options)


def call_of(make: Any, *given: Any, **named: Any) -> Any:
    """A call with arguments that a type checker would refuse."""
    return functools.partial(make, *given, **named)


async def wait_a_bit() -> str:
    return ""


not_awaited = wait_a_bit()
not_awaited.close()
HI: Any = Scripted(["Hi."])
OBJECTS: dict[str, tuple[Any, str]] = {
    "secrets in a dict": (call_of(box_of, secrets={"KEY": "value"}), "secrets must be an object with names"),
    "a class of secrets": (call_of(box_of, secrets=Environment), "secrets must be an object with names"),
    "secrets with a list of names": (
        call_of(box_of, secrets=SimpleNamespace(names=["KEY"], get=str)),
        "secrets must be an object with names",
    ),
    "the path of a log": (call_of(box_of, audit="audit.jsonl"), r"such as AuditLog\(path, key=key\); got 'audit.jsonl'"),
    "the path of approvals": (call_of(box_of, approvals="a.json"), r"such as ApprovalStore\(path\); got 'a.json'"),
    "a class of a policy": (call_of(box_of, policy=RulePolicy), "policy must have decide"),
    "a number of calls": (call_of(box_of, limits=5), r"limits are a list of Limit, such as \[Limit\(5\)\]; got 5"),
    "a class of limits": (call_of(box_of, limits=RateLimits), "limits are a list of Limit"),
    "a size": (call_of(box_of, max_output=100), r"max_output must be a MaxOutput, such as MaxOutput\(bytes=50_000\); got 100"),
    "a folder as text": (call_of(box_of, overflow="outputs"), r"such as Path\('outputs'\); got 'outputs'"),
    "no listener": (call_of(box_of, on_event=5), "a listener must be a function of an event, or an EventLog; got 5"),
    "a class of a model": (call_of(Agent, Scripted), "model must be a Model or a string"),
    "a call in place of its function": (call_of(Toolbox, [not_awaited]), "hand in the function itself"),
    "a toolbox among tools": (call_of(Agent, HI, box_of()), "a toolbox is handed in as toolbox="),
    "a toolbox in a list": (call_of(Agent, HI, [box_of()]), "a toolbox is handed in as toolbox="),
    "the path of a transcript": (call_of(Agent(HI).run_sync, "x", transcript="run.jsonl"), r"as in TranscriptFile\('run.jsonl'\)"),
    "a class of a fallback": (call_of(Fallback, [Scripted]), "models must be a list of Models"),
    "names of fallbacks": (call_of(Fallback, ["openai:gpt-5"]), "resolve_model"),
    "a script of one text": (call_of(Scripted, "hello"), r"turns are a list, such as \['Hi.'\], or a function; got 'hello'"),
    "rules as data": (call_of(RulePolicy, "full", [{"deny": True}]), "rules must be Rule objects"),
    "rules as text": (call_of(RulePolicy, "full", "rules.toml"), "rules must be Rule objects"),
    "a limit as text": (call_of(Limit, "5"), "a limit is a number of calls"),
    "attempts as text": (call_of(Retry, attempts="3"), "attempts must be a whole number"),
    "a class of a backend": (call_of(ReadFile, Workspace), "takes a backend, such as Workspace"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "words"), OBJECTS.values(), ids=OBJECTS)
def test_what_is_no_object_of_its_kind_is_refused_when_it_is_handed_in(make: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        make()


def test_paths_of_transcripts_may_be_texts(tmp_path: Path) -> None:
    path = str(tmp_path / "run.jsonl")
    with closing(TranscriptFile(path)) as file:
        Agent(Scripted(["Hi."])).run_sync("x", transcript=file)
    assert [message.text for message in read_transcript(path)] == ["x", "Hi."]


def test_a_builtin_function_may_be_a_tool_or_is_named() -> None:
    tool(**READ, description="Say the length of a text.", name="length")(len).check()
    with pytest.raises(ToolDefinitionError, match="tool 'max': its signature cannot be read"):
        tool(**READ)(max).check()


class Plain:
    """A class that has no JSON."""


NO_RESULTS: list[Any] = [
    {"returns": Plain},
    {"returns": list[Plain]},
    {"returns": dict[str, Plain]},
    {"returns": 5},
    {"output_schema": Plain},
    {"output_schema": {"type": "objct"}},
    {"output_schema": {"type": "object", "required": "a"}},
    {"output_schema": {"type": "object", "properties": {"a": {"$ref": "#/definitions/A"}}}},
    {"output_schema": {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}},
]


@pytest.mark.parametrize("how", NO_RESULTS, ids=repr)
def test_a_result_that_no_schema_describes_is_found_before_the_tool_runs(how: dict[str, Any]) -> None:
    """It would be found out only when the work is done, and its result be lost."""
    ran = []

    def give() -> Any:
        """Give it."""
        ran.append(1)
        return "it"

    give.__annotations__["return"] = how.get("returns", Any)
    made = tool(give, effect=Effect.WRITE, secrets=(), **{k: how[k] for k in how if k == "output_schema"})
    with pytest.raises(
        ToolDefinitionError, match=r"tool 'give': its (return annotation|output_schema)"
    ) as found:
        made.check()
    assert "\n" not in str(found.value)
    with pytest.warns(UserWarning, match="'give' was set aside"):
        result = Toolbox([made], autonomy="full").call_sync("give")
    assert "definition is broken" in result.text and not ran

    class Give(
        Tool[None, Any], name="give", effect=Effect.WRITE, secrets=(), output_schema=how.get("output_schema")
    ):
        def execute(self, params: None, ctx: Context) -> Any:
            """Give it."""

    if "output_schema" in how:
        with pytest.raises(ToolDefinitionError, match="its output_schema"):
            Give.check()


OF_A_PROVIDER: Any = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


@pytest.mark.parametrize(
    "given", [OF_A_PROVIDER, {"name": "look", "input": {}}, ("look", {}), None, 3, "look"], ids=repr
)
async def test_what_is_no_call_is_answered_with_what_one_is(given: Any) -> None:
    """A loop over a provider's SDK has its dicts at hand, and a script has names."""

    def look() -> str:
        """Look."""
        return "seen"

    box = Toolbox([tool(look, **READ)])
    words = r"expected a ToolCall, as in ToolCall\('look', .*got "
    for hand_in in (box.prepare(given), box.call_turn([given])):
        with pytest.raises(TypeError, match=words):
            await hand_in
    if given == "look":
        assert (await box.call(given)).text == "seen"
    else:
        with pytest.raises(TypeError, match=words):
            await box.call(given)
    ready = await box.prepare(ToolCall("look"))
    for not_prepared in (given, ToolCall("look")):
        for hand_in in (box.execute(not_prepared), box.settle(not_prepared), box.preview(not_prepared)):
            with pytest.raises(TypeError, match=r"expected what prepare returns, .*got "):
                await hand_in
    assert (await box.settle(ready)).text == "seen"


async def test_calls_of_a_turn_may_come_from_a_generator() -> None:
    def look() -> str:
        """Look."""
        return "seen"

    results = await Toolbox([tool(look, **READ)]).call_turn(ToolCall("look", id=i) for i in "ab")
    assert [result.text for result in results] == ["seen", "seen"]


async def test_one_call_is_no_list_of_calls() -> None:
    for given in (ToolCall("look"), OF_A_PROVIDER, "look", None):
        with pytest.raises(TypeError, match="calls are a list of ToolCalls"):
            await Toolbox([]).call_turn(given)  # type: ignore[arg-type]


def test_a_tool_that_is_declared_as_elsewhere_is_told_what_has_to_be_written() -> None:
    """In most libraries `@tool` alone is enough."""

    def look() -> str:
        """Look."""
        return ""

    declare: Any = tool
    ways: dict[str, Any] = {
        "effect and secrets": (
            lambda: declare(look),
            lambda: declare()(look),
            lambda: declare(name="look")(look),
        ),
        "effect": (lambda: declare(look, secrets=()), lambda: declare(secrets=())(look)),
        "secrets": (lambda: declare(look, effect=Effect.READ), lambda: declare(effect=Effect.READ)(look)),
    }
    for missing, makes in ways.items():
        for make in makes:
            words = (
                rf"^tool 'look': {missing} must be written, as in @tool\(effect=Effect.READ, secrets=\(\)\): "
            )
            with pytest.raises(TypeError, match=words):
                make()


@pytest.mark.parametrize(
    "given", [[Pair], (Pair,), '{"type": "object"}', "Pair", 5, True, Pair(a=1, b=2), PairData(1)], ids=repr
)
def test_params_that_are_no_type_and_no_schema_are_named(given: Any) -> None:
    with pytest.raises(
        TypeError, match=r"^tool 'take': params must be a type, such as a Pydantic model, or a JSON Schema"
    ):
        tool(lambda params: "", name="take", params=given, **READ)


@pytest.mark.parametrize("given", [{"city": {"type": "string"}}, {"city": "string"}, {"city": str}], ids=repr)
def test_parameters_alone_are_no_schema(given: Any) -> None:
    """As smolagents takes `inputs`: a JSON Schema with none of its words allows everything and tells a model nothing."""
    made = tool(lambda params: "", name="take", params=given, **READ)
    with pytest.raises(
        ToolDefinitionError,
        match=r'its JSON Schema has no keyword of JSON Schema: write {"type": "object", "properties": {"city":',
    ):
        made.check()


A_NUMBER = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("raw", "fits", "fits_not"),
    [
        ({}, {"x": 1}, None),
        ({"description": "Nothing."}, {}, None),
        ({"additionalProperties": False}, {}, {"x": 1}),
        ({"properties": {"a": {"type": "integer"}}}, {"a": 1}, {"a": "x"}),
        ({"anyOf": [A_NUMBER, {"type": "object", "required": ["b"]}]}, {"b": 1}, {"c": 1}),
        ({"$ref": "#/$defs/A", "$defs": {"A": A_NUMBER}}, {"a": 1}, {}),
        ({"allOf": [{"$ref": "#/$defs/A"}, {"required": ["b"]}], "$defs": {"A": A_NUMBER}}, {"a": 1, "b": 1}, {"a": 1}),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": {"$ref": "#/$defs/A"}}}}}, {"a": {}}, None),
    ],
    ids=repr,
)  # fmt: skip
async def test_a_raw_schema_need_not_say_that_arguments_are_an_object(
    raw: Any, fits: Any, fits_not: Any
) -> None:
    made = tool(lambda params: params, name="take", description="Take it.", params=raw, **READ)
    box = Toolbox([made])
    (spec,) = (await box.tool_list()).specs
    assert spec.input_schema["type"] == "object" and isinstance(spec.input_schema["properties"], dict)
    for dialect in ("openai-strict", "gemini", "anthropic-strict", "conservative"):
        assert spec.in_dialect(dialect)["type"] == "object"
    assert not (await box.call("take", fits)).is_error
    if fits_not is not None:
        assert (await box.call("take", fits_not)).code is ErrorCode.INVALID_ARGUMENTS


def look_at(shelf: int) -> str:
    """Look at a shelf."""
    return str(shelf)


LOOK = tool(look_at, **READ)


@pytest.mark.parametrize("given", [LOOK, [LOOK], LOOK.spec, "look_at", ["look_at"], None], ids=repr)
@pytest.mark.parametrize(
    "take", [to_markdown, ToolCalls, lambda given: parse_text("x", "hermes", given)], ids=["markdown", "calls", "text"]
)  # fmt: skip
def test_tools_and_single_specs_are_no_list_of_specs(take: Any, given: Any) -> None:
    with pytest.raises(TypeError, match=r"expected a (list of specs|spec), as in .*; got "):
        take(given)
    assert take([LOOK.spec])


def test_lint_wants_a_spec() -> None:
    for given in (LOOK, [LOOK.spec], None):
        with pytest.raises(TypeError, match=r"expected a spec, as in search\.spec; got "):
            lint(given)  # type: ignore[arg-type]


NO_SCHEMAS: list[tuple[Any, str]] = [
    (Pair, r"not the type Pair: write Pair\.model_json_schema\(\)"),
    (PairData, "not the type PairData$"),
    (LOOK, r"not a tool: write tool\.spec\.input_schema"),
    (LOOK.spec, r"not ToolSpec: write spec\.input_schema"),
    ('{"type": "object"}', "not str$"),
    (None, "not NoneType$"),
]


@pytest.mark.parametrize(("given", "words"), NO_SCHEMAS, ids=repr)
@pytest.mark.parametrize("take", [clean, lambda schema: to_dialect(schema, "gemini")])
def test_what_is_no_json_schema_is_named(take: Any, given: Any, words: str) -> None:
    with pytest.raises(SchemaError, match="a JSON Schema must be an object, " + words):
        take(given)


def plain_area(width: int, height: int) -> int:
    return width * height


A_TOOLSET: Any = "expected a list of tools or a toolset; "
WRONG_KINDS: dict[str, tuple[Any, str]] = {
    "a tool alone, filtered": (lambda: filtered(LOOK, bool), A_TOOLSET + r"got .*: write \[.*\]"),  # type: ignore[arg-type]
    "a toolbox, prefixed": (lambda: prefixed(Toolbox([]), "a_"), A_TOOLSET + "got"),  # type: ignore[arg-type]
    "names in the place of a function": (
        lambda: filtered([LOOK], ["look_at"]),  # type: ignore[arg-type]
        r"keep must be a function of one name, such as \['look_at'\].__contains__",
    ),
    "pairs in the place of a mapping": (
        lambda: renamed([LOOK], [("look_at", "look")]),  # type: ignore[arg-type, list-item]
        "names must map old names to new ones, got",
    ),
    "no text": (lambda: prefixed([LOOK], None), "prefix must be a text, got None"),  # type: ignore[arg-type]
    "a list within": (lambda: Toolbox([[LOOK]]), r"\(put \* before a list of tools: \[\*tools, other\]\)"),  # type: ignore[list-item]
    "none": (lambda: Toolbox(None), r"tools must be a list of tools; got None: write \[\] for none"),  # type: ignore[arg-type]
    "an agent without tools": (lambda: Agent(Scripted([]), None), r"write \[\] for none"),  # type: ignore[arg-type]
    "a function that is no tool": (lambda: check_tool(plain_area), r"decorate it with @tool\(effect="),
    "a built-in function": (lambda: check_tool(len), r"decorate it with @tool\(effect="),
    "a list of agents": (
        lambda: delegation_tools([Agent(Scripted([]))]),  # type: ignore[arg-type]
        r"agents must map names to Delegates, as in \{'keeper': Delegate\(agent, description\)\}; got",
    ),
    "an agent without a name": (
        lambda: delegation_tools({"": Delegate(Agent(Scripted([])), "Helps.")}),
        "the name of an agent must be a non-empty text, got ''",
    ),
    "a list of choices": (lambda: Choice(["yes", "no"]), r"got \['yes', 'no'\]: write Choice\(\*options\)"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("make", "words"), WRONG_KINDS.values(), ids=WRONG_KINDS)
def test_what_is_of_another_kind_is_answered_with_what_to_write(make: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        make()


async def test_a_factory_that_gives_a_class_or_nothing_is_a_broken_definition() -> None:
    class Lazy(Tool[None, str], name="lazy", effect=Effect.READ, secrets=()):
        def execute(self, params: None, ctx: Context) -> str:
            return "done"

    for given in (Lazy, None, "lazy"):
        with pytest.warns(
            UserWarning,
            match="its factory gave .*, which is not a tool: give a Tool object or a @tool function",
        ):
            result = await Toolbox([ToolFactory("lazy", lambda ctx, given=given: given)]).call("lazy")  # type: ignore[misc]
        assert "definition is broken" in result.text
    assert (await Toolbox([ToolFactory("lazy", lambda ctx: Lazy())]).call("lazy")).text == "done"


def test_a_call_of_a_rule_is_not_written_as_one_object() -> None:
    for text in (
        '{"name":"read_file","arguments":{"path":"a"}}',
        '{"name": "read_file", "arguments": {}}',
        "{}",
    ):
        with pytest.raises(ValueError, match="a call is written as a name and a JSON object"):
            call_from(text)


@pytest.mark.parametrize(
    ("written", "hook"),
    [
        ("pre_check", "precheck"),
        ("onPartial", "on_partial"),
        ("effectFor", "effect_for"),
        ("preCheck", "precheck"),
    ],
)
def test_a_hook_in_another_spelling_is_refused_because_it_would_never_be_called(
    written: str, hook: str
) -> None:
    with pytest.raises(TypeError, match=rf"tool 'look': {written} is no hook; do you mean {hook}\?"):
        type(
            "Look", (Look,), {written: lambda self, params: None}, name="look", effect=Effect.READ, secrets=()
        )


def test_what_only_looks_like_a_hook_is_the_users_own() -> None:
    class Own(Look, name="look", effect=Effect.READ, secrets=()):
        class Preview:
            """A class of the tool's own."""

        Resources = ("a", "b")

        def _pre_check(self) -> None:
            """A helper."""

        def precheck(self, params: Pair) -> str | None:
            return "No."

    assert Toolbox([Own]).call_sync("look", {"a": 1, "b": 2}).code is ErrorCode.PRECHECK


class Look(Tool[Pair, str], name="look", effect=Effect.READ, secrets=()):
    """Look."""

    def execute(self, params: Pair, ctx: Context) -> str:
        return "seen"


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


class ByAlias(BaseModel):
    api_token: str = Field(alias="apiToken")
    note: str = Field("", alias="theNote")


class ByGenerator(BaseModel):
    model_config = ConfigDict(alias_generator=camel, populate_by_name=True)
    api_token: str
    note: str = ""


class BySeveral(BaseModel):
    api_token: str = Field(validation_alias=AliasChoices("apiToken", "token"))
    note: str = ""


@pytest.mark.parametrize("kind", [ByAlias, ByGenerator, BySeveral])
@pytest.mark.parametrize("declared", ["api_token", "apiToken"])
def test_a_parameter_with_an_alias_takes_secrets_by_either_name(kind: Any, declared: str) -> None:
    seen = []

    def log_in(params: Any) -> str:
        seen.append(params.api_token)
        return "in"

    made = tool(log_in, params=kind, effect=Effect.READ, secrets=(declared,), approval_ignores=(declared,))
    box = Toolbox([made], secrets=Environment(["KEY"], environ={"KEY": "correct-horse"}))
    assert box.call_sync("log_in", {"apiToken": "<secret_ref:KEY>"}).text == "in"
    assert seen == ["correct-horse"]
    other = box.call_sync(
        "log_in",
        {
            "apiToken": "x",
            next(n for n in kind.model_json_schema()["properties"] if "ote" in n): "<secret_ref:KEY>",
        },
    )
    assert other.code is ErrorCode.INVALID_ARGUMENTS and "only in: apiToken" in other.text
    with pytest.raises(TypeError, match=r"secrets names \['apitoken'\], but its parameters are"):
        tool(log_in, params=kind, effect=Effect.READ, secrets=("apitoken",))

    class LogIn(Tool[kind, str], name="log_in", effect=Effect.READ, secrets=(declared,)):  # type: ignore[valid-type]
        def execute(self, params: Any, ctx: Context) -> str:
            return str(params.api_token)

    assert LogIn.facts.secrets == made.facts.secrets


def test_a_list_of_tools_is_no_toolbox() -> None:
    for given in ([LOOK], LOOK, "box"):
        with pytest.raises(
            TypeError,
            match=r"toolbox must be a Toolbox, got .*; tools are handed in as Agent\(model, \[\.\.\.\]\)",
        ):
            Agent(Scripted([]), toolbox=given)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [lambda ctx: "Be short.", lambda ctx, agent: "Be short."])
def test_instructions_that_want_a_context_are_named_when_the_agent_is_made(wrong: Any) -> None:
    """As the OpenAI Agents SDK and pydantic-ai call them."""
    with pytest.raises(TypeError, match="instructions must be a function without parameters"):
        Agent(Scripted(["hi"]), [], instructions=wrong)
    for right in (
        lambda: "Be short.",
        lambda ctx=None: "Be short.",
        functools.partial(wrong, *"ab"[: wrong.__code__.co_argcount]),
        Scribe().write,
        str,
    ):
        assert Agent(Scripted(["hi"]), [], instructions=right).run_sync("Hello.").text == "hi"


class Scribe:
    async def write(self) -> str:
        return "Be short."


def test_a_dialect_that_does_not_exist_is_named_when_the_model_is_made() -> None:
    for make in (OpenAIChat, OpenAIResponses, AnthropicMessages):
        with pytest.raises(
            ValueError, match="no schema dialect is called 'openai_strict'; there are openai, openai-strict"
        ):
            make("some-model", api_key="k", dialect="openai_strict")
