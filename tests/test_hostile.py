"""What hostile models, tools, policies and careless developers could make the core do wrong."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.cases import each
from toolcrib import Context, Effect, Toolbox, ToolError, tool
from toolcrib.call import ToolCall
from toolcrib.content import Image, Json, Text
from toolcrib.question import Answer, Verdict
from toolcrib.result import ToolResult
from toolcrib.toolbox.policy import Decision, Verb
from toolcrib.toolset import StaticToolset, ToolFactory, prefixed


def counting(name: str = "act", effect: Effect = Effect.WRITE, **facts: Any) -> tuple[Any, list[int]]:
    """A tool that changes something, and what it was called with."""
    ran: list[int] = []

    def act(x: int = 0) -> str:
        """Act."""
        ran.append(x)
        return "done"

    return tool(act, name=name, effect=effect, secrets=(), **facts), ran


class Says:
    """A policy of the given words, one a decision; the last one stays."""

    def __init__(self, *words: Any) -> None:
        self.words = list(words)

    def decide(self, case: Any) -> Any:
        word = self.words.pop(0) if len(self.words) > 1 else self.words[0]
        if isinstance(word, Exception):
            raise word
        return word

    def shows(self, facts: Any) -> bool:
        return True


RUBBISH: list[Any] = ["deny", "ask", "DENY", "nonsense", None, False, 0, b"allow"]


@pytest.mark.promise("security.md", "No call runs that was not allowed.")
@pytest.mark.parametrize("word", [Verb.ASK, Verb.DENY, *RUBBISH], ids=repr)
@pytest.mark.parametrize("reason", ["", "because"])
def test_only_the_word_allow_lets_a_call_run(word: Any, reason: str) -> None:
    act, ran = counting()
    result = Toolbox([act], policy=Says(Decision(word, reason))).call_sync("act", {})
    assert result.is_error
    assert ran == []


def test_the_word_allow_may_be_given_as_text() -> None:
    act, ran = counting()
    word: Any = "allow"
    assert not Toolbox([act], policy=Says(Decision(word))).call_sync("act", {}).is_error
    assert ran == [0]


# --- what a call is bound to -------------------------------------------------------------------------


async def always(question: Any) -> Answer:
    asked.append(question.tool)
    return Answer("always")  # type: ignore[arg-type]


asked: list[str] = []


async def test_always_for_one_tool_is_not_said_of_its_namesake() -> None:
    """Two servers offer a tool of the same name and schema; a person trusts one of them."""
    asked.clear()
    first, ran = counting("delete")
    second, other = counting("delete")
    box = Toolbox([prefixed([first], "mine_"), prefixed([second], "theirs_")], approver=always)
    await box.call("mine_delete", {"x": 1})
    await box.call("theirs_delete", {"x": 1})
    assert asked == ["mine_delete", "theirs_delete"]
    assert ran == other == [1]


async def test_always_for_a_tool_is_not_said_of_the_one_that_replaces_it() -> None:
    asked.clear()
    box = Toolbox([counting("delete")[0]], approver=always)
    await box.call("delete", {"x": 1})
    box.add(counting("delete")[0], override=True)
    await box.call("delete", {"x": 1})
    assert len(asked) == 2


async def test_a_call_that_is_executed_twice_at_once_runs_once() -> None:
    """An answer that was sent twice: a double click, a web hook that is delivered again."""
    ran: list[int] = []

    async def slow() -> str:
        """Act slowly."""
        ran.append(1)
        await asyncio.sleep(0.02)
        return "done"

    box = Toolbox([tool(slow, effect=Effect.WRITE, secrets=())])
    pending = await box.prepare(ToolCall("slow", "{}"))
    yes = Answer("yes")  # type: ignore[arg-type]
    results = await asyncio.gather(*(box.execute(pending, yes) for _ in range(5)))
    assert ran == [1]
    assert [result.text for result in results] == ["done"] * 5


@pytest.mark.parametrize("autonomy", ["supervised", "full"])  # with a question, and without
@pytest.mark.parametrize(
    "answer", [True, 1, "yes", "no", False, Verdict.YES, Verdict.NO, {"verdict": "yes"}, Verb.ALLOW], ids=repr
)
async def test_with_what_is_no_answer_nothing_runs(answer: Any, autonomy: Any) -> None:
    act, ran = counting()
    box = Toolbox([act], autonomy=autonomy)
    with pytest.raises(TypeError, match=r"expected an Answer, as in Answer\(Verdict.YES\)"):
        await box.execute(await box.prepare(ToolCall("act", "{}")), answer)
    assert ran == []


@pytest.mark.parametrize("said", [False, 0, 0.0, True, None, "read", 99, [], float("nan")], ids=repr)
async def test_only_an_effect_lowers_the_effect_of_a_call(said: Any) -> None:
    act, ran = counting(effect=Effect.DESTRUCTIVE, effect_for=lambda _: said)
    result = await Toolbox([act]).call("act", {})
    assert result.is_error
    assert ran == []


# --- every call ends in one result -------------------------------------------------------------------


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Unshowable:
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def raising(error: BaseException) -> Callable[[], Any]:
    def act() -> Any:
        raise error

    return act


def circle() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


WRONG: dict[str, Callable[[], Any]] = {
    "GeneratorExit": raising(GeneratorExit()),
    "StopIteration": raising(StopIteration(1)),
    "an exception without words": raising(Unspeakable()),
    "ToolError of an exception": raising(ToolError(ValueError("sorry"))),  # type: ignore[arg-type]
    "ToolError of half a character": raising(ToolError("\ud800")),
    "a group of cancellations": raising(BaseExceptionGroup("g", [asyncio.CancelledError()])),
    "Json in a circle": lambda: Json(circle()),
    "Json without words": lambda: Json(Unshowable()),
    "Json of a set": lambda: Json({1}),
    "Json in a list in a circle": lambda: [Json(circle())],
    "Text of None": lambda: Text(None),  # type: ignore[arg-type]
    "Text of a number": lambda: Text(5),  # type: ignore[arg-type]
    "a result of a number": lambda: ToolResult((1,)),  # type: ignore[arg-type]
    "a result of a text": lambda: ToolResult("abc"),  # type: ignore[arg-type]
    "an image of bytes": lambda: Image(data=b"\xff", media_type="image/png"),  # type: ignore[arg-type]
    "half a character": lambda: "a\ud800b",
    "half a character in a list": lambda: ["\ud800"],
    "a circle": circle,
    "no words": Unshowable,
}


@each("act", WRONG.values(), ids=WRONG)
@each("inline", [True, False], ids=["inline", "thread"])
async def test_whatever_a_tool_does_its_call_has_a_result_that_can_be_sent(
    act: Callable[[], Any], inline: bool
) -> None:
    recorded: list[ToolResult] = []
    box = Toolbox([tool(act, name="act", effect=Effect.READ, secrets=(), inline=inline)])
    result = await box.call("act", {}, record=lambda _, result: recorded.append(result))
    assert recorded == [result]
    result.text.encode()
    json.dumps(result.to_dict(), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "value",
    [object(), ValueError("a secret"), len, dict, Says, [object()]],
    ids=["object", "exception", "function", "type", "class", "list"],
)
def test_the_model_is_not_shown_what_python_says_of_an_object(value: Any) -> None:
    text = (
        Toolbox([tool(lambda: value, name="act", effect=Effect.READ, secrets=())]).call_sync("act", {}).text
    )
    for word in ("object at 0x", "<built-in", "<function", "<method", "<class", "a secret"):
        assert word not in text


def test_an_exit_in_a_tool_does_not_leave_its_caller_waiting() -> None:
    """`sys.exit()` is what an argument parser calls; code without a loop waits for the portal's thread."""

    def leave() -> None:
        """Leave."""
        raise SystemExit(2)

    box = Toolbox([tool(leave, effect=Effect.READ, secrets=())])
    over = threading.Event()

    def call() -> None:
        try:
            box.call_sync("leave", {})
        except BaseException:  # the exit itself may come out: it only has to end
            pass
        over.set()

    threading.Thread(target=call, daemon=True).start()
    assert over.wait(5), "the caller waits for ever"


class Failing(StaticToolset):
    broken = False

    async def get(self, name: str) -> Any:
        if self.broken:
            raise OSError("/home/somebody/.secrets is gone")
        return await super().get(name)


@pytest.mark.parametrize("prepared_before", [False, True])
async def test_a_toolset_that_fails_is_a_result(prepared_before: bool) -> None:
    tools = Failing([counting()[0]])
    box = Toolbox([tools], autonomy="full")
    prepared = await box.prepare(ToolCall("act", "{}")) if prepared_before else None
    tools.broken = True
    result = await (box.call("act", {}) if prepared is None else box.execute(prepared))
    assert result.is_error
    assert "secrets" not in result.text


async def test_names_that_clash_are_no_reason_to_raise_at_a_call() -> None:
    box = Toolbox([StaticToolset([counting()[0]]), StaticToolset([counting()[0]])], autonomy="full")
    assert (await box.call("unknown", {})).is_error


async def test_a_policy_that_fails_when_the_answer_is_there_is_a_no() -> None:
    act, ran = counting()
    box = Toolbox([act], policy=Says(Decision(Verb.ASK), ValueError("broken")), approver=always)
    assert (await box.call("act", {})).is_error
    assert ran == []


def test_a_factory_or_precheck_whose_error_has_no_words_is_a_result() -> None:
    def fail(_: Any) -> Any:
        raise Unspeakable

    assert Toolbox([ToolFactory("act", fail)], autonomy="full").call_sync("act", {}).is_error
    act, ran = counting(precheck=fail)
    assert Toolbox([act], autonomy="full").call_sync("act", {}).is_error
    assert ran == []


def test_a_name_of_any_length_or_kind_is_answered_in_few_words() -> None:
    box = Toolbox([counting()[0]])
    assert len(box.call_sync("x" * 1_000_000, {}).text) < 2_000
    box.call_sync("act\ud800", {}).text.encode()


# --- tools that call tools ---------------------------------------------------------------------------


async def test_many_sync_tools_that_call_sync_tools_do_not_wait_for_each_other_for_ever() -> None:
    """Each waits on a worker thread for a call that needs one: with all taken, nobody could go on."""

    def leaf() -> str:
        """Do a little."""
        return "leaf"

    async def at_once() -> list[str]:
        results = await asyncio.gather(*(box.call("outer", {}) for _ in range(200)))
        return [result.text for result in results]

    def outer(ctx: Context[Any]) -> str:
        """Call the other, when all threads are taken."""
        time.sleep(0.2)
        return ctx.run(ctx.call("leaf")).text

    read: Any = {"effect": Effect.READ, "secrets": ()}
    box = Toolbox([tool(outer, **read), tool(leaf, **read)], timeout=5, grace=0.2)
    assert set(await at_once()) == {"leaf"}


async def test_a_tool_that_calls_itself_without_end_is_stopped_early() -> None:
    calls = [0]

    async def twice(ctx: Context[Any]) -> str:
        """Call itself twice: without a bound on the depth, that doubles a hundred times over."""
        calls[0] += 1
        if calls[0] > 200_000:
            raise ToolError("enough")
        await ctx.call("twice")
        await ctx.call("twice")
        return "done"

    box = Toolbox([tool(twice, effect=Effect.READ, secrets=())], timeout=20)
    await box.call("twice", {})
    assert calls[0] < 200_000
    assert box.sink.parents == {}  # nothing is remembered of the calls that were too deep
