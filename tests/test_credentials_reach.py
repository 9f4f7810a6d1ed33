"""Keys of providers lie in transports: no tool, no Context and no child process comes by them."""

from __future__ import annotations

import asyncio
import gc
import sys
import types
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Agent, Answer, Context, Effect, Toolbox, Verdict, tool
from toolcrib.agent.delegation import Delegate, delegation_tools
from toolcrib.assembly import default_tools
from toolcrib.models import Scripted
from toolcrib.rules import Rule, RulePolicy
from toolcrib.toolbox import Verb

KEY = "sk-provider-0123456789abcdef"
ENOUGH = 300_000  # objects; a Context leads to far fewer

# What every object in Python leads to by way of its code: all that is loaded, and all that waits.
EVERYTHING = (
    types.ModuleType,
    type,
    types.FrameType,
    types.CodeType,
    types.CoroutineType,
    types.GeneratorType,
    asyncio.AbstractEventLoop,
)


class Keyed(Scripted):
    """A model that holds a key, as one over a provider's SDK does."""

    def __init__(self, turns: Any) -> None:
        super().__init__(turns)
        self.api_key = KEY
        self.client = {"headers": {"authorization": f"Bearer {KEY}"}}


def leads_to(start: Any, needle: str) -> list[str]:
    """The way from an object to a text, through everything that it holds: attributes, closures, bound selves."""
    seen = {id(start)}
    waiting: deque[tuple[Any, tuple[str, ...]]] = deque([(start, ())])
    while waiting and len(seen) < ENOUGH:
        item, way = waiting.popleft()
        if isinstance(item, str) and needle in item:
            return [*way, "found"]
        if isinstance(item, types.FunctionType):
            inner: list[Any] = [item.__closure__, item.__defaults__, item.__kwdefaults__, item.__dict__]
        elif isinstance(item, EVERYTHING):
            continue
        else:
            inner = gc.get_referents(item)
        for one in inner:
            if id(one) not in seen:
                seen.add(id(one))
                waiting.append((one, (*way, type(item).__name__)))
    assert len(seen) < ENOUGH
    return []


async def yes(question: Any) -> Answer:
    return Answer(Verdict.YES)


@pytest.mark.promise("security.md", "No tool and no context can reach them")
@pytest.mark.parametrize("kind", ["async", "sync", "class-like"])
async def test_no_context_leads_to_the_key_of_a_model(kind: str) -> None:
    ways: list[list[str]] = []
    found_in_deps: list[list[str]] = []

    def look(ctx: Context[Any]) -> str:
        ways.append(leads_to(ctx, KEY))
        found_in_deps.append(leads_to(ctx, "in deps"))
        return "looked"

    async def of_async(ctx: Context[Any]) -> str:
        "Look."
        return look(ctx)

    def of_sync(ctx: Context[Any]) -> str:
        "Look."
        return look(ctx)

    def inline(ctx: Context[Any]) -> str:
        "Look."
        return look(ctx)

    made = tool(
        {"async": of_async, "sync": of_sync, "class-like": inline}[kind],
        name="look",
        effect=Effect.WRITE,
        secrets=(),
        inline=kind == "class-like",
    )
    box = Toolbox([made], approver=yes)
    model = Keyed([{"calls": [{"name": "look", "arguments": {}}]}, {"text": "Done."}])
    outcome = await Agent(model, toolbox=box).run("look around", deps={"key": ["in deps"]})
    assert outcome.finished
    assert ways == [[]]
    assert found_in_deps[0], "the walk finds what a Context holds"


@pytest.mark.parametrize("kind", ["helper", "new_task", "background"])
async def test_no_context_leads_to_the_key_of_an_agent_that_is_a_tool(kind: str) -> None:
    ways: list[list[str]] = []

    @tool(effect=Effect.WRITE, secrets=())
    async def look(ctx: Context[Any]) -> str:
        "Look."
        ways.append(leads_to(ctx, KEY))
        return "looked"

    def model(*names: str) -> Keyed:
        delegated = {"agent": "helper", "task": "look", "background": kind == "background"}
        given: dict[str, Any] = {
            "helper": {"task": "look"},
            "new_task": delegated,
            "task_check": {"task_id": "helper-1"},
        }
        calls = [{"calls": [{"name": name, "arguments": given.get(name, {})}]} for name in names]
        return Keyed([*calls, {"text": "Done."}])

    async def always(question: Any) -> Answer:
        return Answer(Verdict.ALWAYS)

    helper = Agent(model("look"), [look])
    tools = [helper.as_tool("helper", "Looks."), *delegation_tools({"helper": Delegate(helper, "Looks.")})]
    policy = RulePolicy("supervised", [Rule(verb=Verb.ASK, tools=("helper", "new_task"))])
    names = {"helper": ("helper",), "new_task": ("new_task",), "background": ("new_task", "task_check")}[kind]
    agent = Agent(model(*names, "look"), [look, *tools], approver=always, policy=policy)
    assert (await agent.run("look around")).finished
    assert ways == [[], []]


@pytest.mark.promise("security.md", "No tool and no context can reach them")
@pytest.mark.skipif(sys.platform == "win32", reason="there is no shell tool")
async def test_no_child_process_inherits_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = (
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "MY_SECRET_TOKEN",
    )
    for name in names:
        monkeypatch.setenv(name, KEY)
    box = Toolbox(builtin=default_tools(tmp_path), approver=yes)
    commands = ("env", "printenv OPENAI_API_KEY; echo $OPENAI_API_KEY", "cat /proc/self/environ")
    said = [(await box.call("shell", {"command": command})).text for command in commands]
    assert all(KEY not in text for text in said)
    assert "PATH=" in said[0]
