"""What is closed, is closed to the end: when its owner is cancelled at any step, and when a part of it cannot be."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.test_agent_cancelled import StepLoop
from toolcrib import Agent, Effect, Toolbox, ToolCall, tool
from toolcrib.events import RunFinished
from toolcrib.models import Fallback, Scripted


class Parts:
    """Counts what is open."""

    def __init__(self) -> None:
        self.open = Counter[str]()

    def toolset(self, name: str) -> Any:
        return SlowToolset(self, name)

    def owned(self, emit: Any) -> Any:
        return SlowToClose(self)


class SlowToolset:
    """A toolset that takes a moment to enter and to leave."""

    version = 0

    def __init__(self, parts: Parts, name: str, seconds: float = 0.01) -> None:
        self._open, self._name, self._seconds = parts.open, name, seconds

    async def names(self) -> list[str]:
        return []

    async def get(self, name: str) -> None:
        return None

    async def __aenter__(self) -> SlowToolset:
        await asyncio.sleep(self._seconds)
        self._open[self._name] += 1
        return self

    async def __aexit__(self, *exc: object) -> None:
        try:
            await asyncio.sleep(0.01)
        finally:
            self._open[self._name] -= 1


class SlowToClose:
    """An object of a run that takes a moment to close, as a process does."""

    def __init__(self, parts: Parts) -> None:
        self._open = parts.open
        self._open["owned"] += 1

    def news(self) -> list[str]:
        return []

    async def aclose(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0.01)
        self._open["owned"] -= 1


@tool(effect=Effect.READ, secrets=(), open_world=False)
async def look(path: str) -> str:
    """Look."""
    await asyncio.sleep(0.01)
    return path


def looking(parts: Parts) -> Agent[Any, Any]:
    script = [{"calls": [{"name": "look", "arguments": {"path": "a"}}]}, "done"]
    return Agent(Scripted(script), [parts.toolset("a"), parts.toolset("b"), look])


async def a_toolbox(parts: Parts) -> None:
    async with Toolbox([parts.toolset("a"), parts.toolset("b")]) as box:
        box.of_run(box.run, parts.owned)


async def an_agent(parts: Parts) -> None:
    async with looking(parts) as agent:
        agent.toolbox.of_run(agent.toolbox.run, parts.owned)
        await agent.run("go")


async def events(parts: Parts) -> None:
    async for _ in looking(parts).stream("go"):
        pass


async def text(parts: Parts) -> None:
    async for _ in looking(parts).stream_text("go"):
        pass


@pytest.mark.parametrize("use", [a_toolbox, an_agent, events, text])
def test_everything_is_closed_at_whatever_step_its_owner_is_cancelled(
    use: Callable[[Parts], Awaitable[None]],
) -> None:
    """The toolsets of a box, such as MCP servers, were left open when it was cancelled while it closed the rest."""

    async def all_steps() -> int:
        loop: Any = asyncio.get_running_loop()
        for step in range(1, 1_000):
            parts, others = Parts(), asyncio.all_tasks()
            using = asyncio.ensure_future(use(parts))
            loop.at = (loop.steps + step, using.cancel)
            await asyncio.wait([using])
            ended, loop.at = loop.at is not None, None
            assert using.cancelled() or ended or not using.exception(), step
            assert +parts.open == {}, step
            assert asyncio.all_tasks() == others, step
            if ended:
                return step
        raise AssertionError("it did not end")

    with asyncio.Runner(loop_factory=StepLoop) as runner:
        assert runner.run(all_steps()) > 10


@tool(effect=Effect.READ, secrets=(), open_world=False)
async def wait(path: str) -> str:
    """Wait."""
    await asyncio.sleep(60)
    return path


@tool(effect=Effect.READ, secrets=(), open_world=False)
def block(path: str) -> str:
    """Block a thread for a moment."""
    time.sleep(0.1)
    return path


async def pass_on(prepared: Any, next: Any) -> Any:
    return await next(prepared)


CANCELLED_BY_ANYIO: dict[str, Callable[[], Awaitable[Any]]] = {
    "an async tool": lambda: Toolbox([wait]).call("wait", {"path": "a"}),
    "a sync tool": lambda: Toolbox([block]).call("block", {"path": "a"}),
    "a tool behind a step": lambda: Toolbox([wait], around_execute=[pass_on]).call("wait", {"path": "a"}),
    "calls side by side": lambda: Toolbox([wait]).call_turn([ToolCall("wait", {"path": n}) for n in "ab"]),
    "a run": lambda: waiting_run().run("go"),
    "its events": lambda: anext(aiter(later(waiting_run().stream("go")))),
    "a toolset that is entered": lambda: waiting_run(SlowToolset(Parts(), "a", 60)).run("go"),
}


def waiting_run(*tools: Any) -> Agent[Any, Any]:
    return Agent(
        Scripted([{"calls": [{"name": "wait", "arguments": {"path": "a"}}]}, "done"]), [wait, *tools]
    )


async def later(events: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for event in events:
        if isinstance(event, RunFinished):
            yield event


@pytest.mark.parametrize("work", CANCELLED_BY_ANYIO.values(), ids=CANCELLED_BY_ANYIO)
async def test_a_scope_of_anyio_knows_its_own_cancellation(work: Callable[[], Awaitable[Any]]) -> None:
    """It is known by its words: another one went through the scope, and cancelled whoever had set a timeout."""
    anyio = pytest.importorskip("anyio")
    with anyio.move_on_after(0.05) as scope:
        await work()
    assert scope.cancelled_caught
    task = asyncio.current_task()
    assert task is not None and not task.cancelling()


async def test_a_scope_of_anyio_cancels_a_run_once_and_waits_until_it_has_closed_everything() -> None:
    """Such a scope cancels again and again, which cut short what tools and closing had left to do."""
    anyio = pytest.importorskip("anyio")
    parts, cleaned = Parts(), []

    @tool(effect=Effect.WRITE, secrets=(), open_world=False)
    async def clean_up() -> str:
        """Clean up in several steps."""
        try:
            await asyncio.sleep(60)
        finally:
            for _ in range(3):
                await asyncio.sleep(0.01)
            cleaned.append(True)
        return "never"

    agent = Agent(Scripted([{"calls": [{"name": "clean_up", "arguments": {}}]}]), [clean_up], autonomy="full")
    with anyio.move_on_after(0.05) as scope:
        async with agent.toolbox as box:
            box.of_run(box.run, parts.owned)
            run = agent.start("go")
            box.of_run(run.id, parts.owned)
            await run
    assert scope.cancelled_caught
    assert (cleaned, +parts.open) == ([True], {})


async def test_a_run_that_is_awaited_has_closed_what_it_opened() -> None:
    """Also where its last event was read before: whoever awaited it then was given the outcome too early."""
    parts = Parts()
    run = looking(parts).start("go")
    async for event in run:
        if isinstance(event, RunFinished):
            break
    assert parts.open == {"a": 1, "b": 1}
    assert (await run).text == "done"
    assert +parts.open == {}


class Model(Scripted):
    """A model that cannot be closed."""

    closed = 0

    async def aclose(self) -> None:
        self.closed += 1
        raise ValueError("no")


async def test_a_model_that_cannot_be_closed_keeps_nothing_else_open(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, models = Parts(), [Model(["done"]), Model(["done"])]
    with pytest.raises(ValueError, match="no"):
        await Fallback(models).aclose()
    assert [model.closed for model in models] == [1, 1]
    monkeypatch.setattr("toolcrib.models.resolve_model", lambda name: models[0])
    agent: Agent[Any, Any] = Agent("openai:m", [look])
    agent.toolbox.of_run(agent.toolbox.run, parts.owned)
    with pytest.raises(ValueError, match="no"):
        await agent.aclose()
    assert +parts.open == {}
