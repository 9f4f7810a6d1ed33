"""An application with many runs at once, whose readers leave when they like: no task stays, each run ends once."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from toolcrib import Agent, Context, Effect, tool
from toolcrib.events import RunFinished, RunStarted
from toolcrib.messages import Request
from toolcrib.models import Scripted
from toolcrib.sink import EventLog

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[1] / "docs" / "web-app.md"
RUNS = 50


def app_of(agent: Agent) -> Any:
    """The application of the page, with another agent."""
    source = re.search(r"```python\n(# webapp\.py\n.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert source is not None
    module = ModuleType("webapp")
    exec(compile(source[1], "webapp.py", "exec"), module.__dict__)
    return module.make_app(agent)


class Reader:
    """One request through ASGI. It leaves after some chunks of the body, or stays to the end."""

    def __init__(self, app: Any, task: str, leaves_after: int | None, version: str) -> None:
        self.app = app
        self.body = json.dumps({"text": task}).encode()
        self.leaves_after = leaves_after
        self.events: list[dict[str, Any]] = []
        self.asked = False
        self.gone = asyncio.Event()
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": version},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/runs",
            "raw_path": b"/runs",
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 1),
        }

    async def receive(self) -> dict[str, Any]:
        if not self.asked:
            self.asked = True
            return {"type": "http.request", "body": self.body, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        if self.gone.is_set():
            raise OSError("the client is gone")
        for line in message.get("body", b"").decode().splitlines():
            if line:
                self.events.append(json.loads(line.removeprefix("data: ")))
        if self.leaves_after is not None and len(self.events) >= self.leaves_after:
            self.gone.set()
        await asyncio.sleep(0)

    async def read(self) -> None:
        try:
            await self.app(self.scope, self.receive, self.send)
        except Exception as error:  # how a framework tells that nobody reads any more
            assert self.gone.is_set(), error


@pytest.mark.parametrize(
    "version", ["2.3", "2.4"]
)  # 2.4: a client that left is met where something is sent to it
async def test_fifty_runs_at_once_end_once_each_also_where_the_reader_leaves(version: str) -> None:
    pytest.importorskip("fastapi")
    running: Counter[str] = Counter()

    @tool(effect=Effect.READ, secrets=())
    async def count(item: str, ctx: Context) -> int:
        """Count."""
        running[ctx.key.run] += 1
        try:
            await asyncio.sleep(0.02)
        finally:
            running[ctx.key.run] -= 1
        return 3

    def script(request: Request) -> Any:
        turns = sum(message.role == "assistant" for message in request.messages)
        if turns == 3:
            return {"text": "There are three of them."}
        calls = [{"name": "count", "arguments": {"item": item}} for item in ("saw", "drill")]
        return {"text": "I count.", "calls": calls}

    agent = Agent(Scripted(script, delay=0.001, chunk_size=8), [count])
    log = EventLog()
    agent.toolbox.sink.add(log)
    app = app_of(agent)
    before = asyncio.all_tasks()
    readers = [Reader(app, f"task {n}", None if n % 2 else 1 + n, version) for n in range(RUNS)]
    async with asyncio.timeout(30):
        await asyncio.gather(*(reader.read() for reader in readers))
        while left := asyncio.all_tasks() - before:
            await asyncio.wait(left)
    started = [event for event in log.events if isinstance(event, RunStarted)]
    ended = [event for event in log.events if isinstance(event, RunFinished)]
    assert len(started) == RUNS
    assert Counter(event.run for event in ended) == Counter(event.run for event in started)
    reasons = {event.run: event.reason for event in ended}
    for reader in readers:
        reason = reasons[reader.events[0]["run"]]
        assert reason == "answered" or (reason == "cancelled" and reader.gone.is_set())
        assert {event["run"] for event in reader.events} == {reader.events[0]["run"]}
    assert Counter(reasons.values())["cancelled"] >= 5  # those that left early
    assert not +running
    assert agent.toolbox.sink.listeners == [log]
    assert agent.toolbox.sink.parents == {}
