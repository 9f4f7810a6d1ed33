"""toolcrib itself, from this checkout."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import workload

import toolcrib
from toolcrib import Effect, Toolbox, ToolCall, tool
from toolcrib.jsonstream import JsonStream

NAME = "toolcrib"
PACKAGES = ("toolcrib",)
SOURCE = Path(toolcrib.__file__).parent
IMPORTS = {
    "import toolcrib": "import toolcrib",
    "tool and Toolbox": "from toolcrib import tool, Toolbox, Effect",
    "agent": "import toolcrib.agent",
}


def define(function: Callable[..., Any]) -> Any:
    return tool(function, effect=Effect.READ, secrets=())


def use(made: Any) -> None:
    made.check()
    assert made.definition().spec.input_schema
    made.definition().params.parse(workload.ARGUMENTS)


def calls(function: Callable[..., Any], kind: str) -> dict[str, Any]:
    paths = {"Toolbox.call": _call(function)}
    if kind == "async":
        paths["Toolbox.call, with a subscriber"] = Subscribed(function)
    return paths


def _call(function: Callable[..., Any]) -> Callable[[str], Awaitable[str]]:
    made = define(function)
    name, call_tool = made.facts.name, Toolbox([made], autonomy="supervised").call

    async def call(raw: str) -> str:
        return (await call_tool(ToolCall(name, raw))).text

    return call


class Subscribed:
    """A box that somebody listens to; `settle` waits until the subscriber has had every event."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.seen = 0
        made = define(function)
        self.name = made.facts.name
        self.box = Toolbox([made], autonomy="supervised", on_event=self.listen)

    def listen(self, event: Any) -> None:
        self.seen += 1

    async def __call__(self, raw: str) -> str:
        return (await self.box.call(ToolCall(self.name, raw))).text

    def settle(self) -> None:
        before = -1
        while self.seen != before:
            before = self.seen
            time.sleep(0.05)


def loop(function: Callable[..., Any], turns: int, mark: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    from toolcrib.agent import Agent
    from toolcrib.messages import Message, Response, Usage

    made = define(function)

    class Fake:
        name = "fake"

        def __init__(self) -> None:
            self.turn = 0

        async def stream(self, request: Any) -> AsyncIterator[Any]:
            mark()
            self.turn += 1
            if self.turn > turns:
                yield Response(Message("assistant", [_text("done")]))
                return
            call = ToolCall(made.facts.name, workload.FLAT, str(self.turn))
            yield Response(Message("assistant", [call]), "tool_calls", Usage(100, 10))

    async def run() -> None:
        outcome = await Agent(Fake(), [made], max_turns=turns + 10).run("go")  # type: ignore[arg-type]
        assert outcome.turns == turns + 1, outcome

    return run


def _text(text: str) -> Any:
    from toolcrib import Text

    return Text(text)


def stream() -> dict[str, Any]:
    def reader(events: bool) -> Callable[[], Callable[[str], Any]]:
        def make() -> Callable[[str], Any]:
            parser = JsonStream(events=events)

            def step(chunk: str) -> Any:
                parser.feed(chunk)
                return parser.value

            return step

        return make

    return {"JsonStream.value": reader(False), "JsonStream.value and its events": reader(True)}


def definitions(functions: list[Callable[..., Any]]) -> list[dict[str, Any]]:
    specs = [define(function).definition().spec for function in functions]
    return [
        {"name": spec.name, "description": spec.description, "parameters": spec.in_dialect("openai")}
        for spec in specs
    ]


class Registry:
    def __init__(self, function: Callable[..., Any], count: int) -> None:
        self.tools = [
            tool(function, name=f"tool_{number}", effect=Effect.READ, secrets=()) for number in range(count)
        ]
        for made in self.tools:
            assert made.definition().spec  # built before, as with every peer
        self.box = Toolbox()

    def add(self) -> None:
        for made in self.tools:
            self.box.add(made)

    def look_up(self, name: str) -> Any:
        return self.box.registry.known(name)

    async def list(self) -> int:
        return len((await self.box.offer()).specs)


registry = Registry
