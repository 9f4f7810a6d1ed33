"""Prepared calls are immutable values, and a policy decides again only where there is a reason."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from toolcrib import Answer, Effect, Toolbox, ToolCall, ToolResult, Verdict, tool
from toolcrib.call import CallKey
from toolcrib.errors import ErrorCode
from toolcrib.prepared import Pending, Ready, Refused
from toolcrib.question import Preview
from toolcrib.toolbox import AutonomyPolicy, Decision, PolicyRequest, ToolboxOptions
from toolcrib.toolset import StaticToolset

ran: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


@tool(effect=Effect.READ, secrets=())
async def look(path: str) -> str:
    "Look at a path."
    ran.append(f"look {path}")
    return path


@tool(effect=Effect.WRITE, secrets=())
async def save(path: str) -> str:
    "Save a path."
    ran.append(f"save {path}")
    return path


class Counting(AutonomyPolicy):
    """Notes each decision."""

    def __init__(self, autonomy: str = "full") -> None:
        super().__init__(autonomy)
        self.decided: list[str] = []

    def decide(self, request: PolicyRequest, /) -> Decision:
        self.decided.append(str(request.arguments["path"]))
        return super().decide(request)


async def test_prepared_calls_cannot_be_changed() -> None:
    box: Toolbox = Toolbox([look, save])
    ready, pending = [await box.prepare(ToolCall(name, {"path": "a"})) for name in ("look", "save")]
    assert isinstance(ready, Ready) and isinstance(pending, Pending)
    refused = Refused(ToolCall("x"), CallKey("", 0, 0), ToolResult.of("no"))
    for value, name in ((ready, "approved"), (pending, "ready"), (pending, "question"), (refused, "result")):
        with pytest.raises(AttributeError):
            setattr(value, name, None)
    with pytest.raises(AttributeError):
        setattr(pending.question, "arguments", {"path": "other"})  # noqa: B010 - it must be refused


async def test_a_value_made_from_another_one_is_the_same_call() -> None:
    made = tool(
        save.fn, name="make", effect=Effect.WRITE, secrets=(), preview=lambda given: Preview("diff", "1")
    )
    box: Toolbox = Toolbox([made])
    pending = await box.prepare(ToolCall("make", {"path": "a"}))
    assert isinstance(pending, Pending)
    shown = await box.preview(pending)
    assert (shown.question.preview, pending.question.preview) == ("diff", "")
    result = await box.execute(shown, Answer(Verdict.YES))
    assert await box.execute(pending, Answer(Verdict.NO)) is result
    assert ran == ["save a"]


async def test_a_policy_decides_once_on_a_call_that_runs_at_once() -> None:
    policy = Counting()
    box: Toolbox = Toolbox([look, save], policy=policy)
    await box.call("look", {"path": "a"})
    await box.call_turn([ToolCall("save", {"path": "b"})])
    await box.call_turn([ToolCall("look", {"path": "c"}), ToolCall("look", {"path": "d"})])
    assert policy.decided == ["a", "b", "c", "d"]


async def test_a_policy_decides_again_where_something_may_have_changed() -> None:
    policy = Counting()
    box: Toolbox = Toolbox([look, save], policy=policy)
    await box.execute(await box.prepare(ToolCall("look", {"path": "kept"})))
    assert policy.decided == ["kept"] * 2
    policy.decided.clear()
    await box.call_turn([ToolCall("save", {"path": "1"}), ToolCall("save", {"path": "2"})])
    assert policy.decided == ["1", "2", "2"], "the second waited for the first"


async def test_a_policy_that_changes_while_a_turn_is_prepared_counts_for_all_of_it() -> None:
    class Changing(StaticToolset):
        async def get(self, name: str) -> Any:
            if name == "save":
                box.policy = AutonomyPolicy("read_only")
            return await super().get(name)

    @tool(effect=Effect.WRITE, secrets=(), resources=lambda given: ["other"])
    async def write(path: str) -> str:
        ran.append(f"write {path}")
        return path

    box: Toolbox = Toolbox([write, Changing([save])], autonomy="full")
    results = await box.call_turn([ToolCall("write", {"path": "a"}), ToolCall("save", {"path": "b"})])
    assert [result.code for result in results] == [ErrorCode.DENIED] * 2
    assert ran == []


async def test_a_kept_call_that_the_policy_would_ask_about_now_is_asked_about() -> None:
    async def no(question: Any) -> Answer:
        return Answer(Verdict.NO)

    box: Toolbox = Toolbox([save], autonomy="full", approver=no)
    first, second = [await box.prepare(ToolCall("save", {"path": path})) for path in "ab"]
    box.policy = AutonomyPolicy("supervised")
    assert (await box.execute(first)).code is ErrorCode.NOBODY_TO_ASK
    assert (await box.settle(second)).code is ErrorCode.REJECTED
    assert ran == []


async def test_arguments_that_a_person_changed_are_prepared_once() -> None:
    checked: list[str] = []

    def precheck(given: dict[str, Any]) -> None:
        checked.append(given["path"])

    async def approver(question: Any) -> Answer:
        return Answer(Verdict.YES, arguments={"path": "theirs"})

    made = tool(save.fn, name="make", effect=Effect.WRITE, secrets=(), precheck=precheck)
    policy = Counting("supervised")
    result = await Toolbox([made], policy=policy, approver=approver).call("make", {"path": "mine"})
    assert ran == ["save theirs"] and "theirs" in result.text
    assert checked == ["mine", "theirs"] and policy.decided == ["mine", "theirs"]


def test_the_options_of_a_toolbox_are_declared_alike() -> None:
    """`Toolbox(...)` and the TypedDict for whoever hands options on name the same ones, of the same types."""
    signature = inspect.signature(Toolbox.__init__)
    keywords = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    declared = {name: hint.__forward_arg__ for name, hint in ToolboxOptions.__annotations__.items()}
    assert declared == keywords
