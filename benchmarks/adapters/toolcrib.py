"""toolcrib itself, from this checkout."""

import asyncio
import itertools
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import workload

import toolcrib
from toolcrib import Effect, Toolbox, ToolCall, tool
from toolcrib.jsonstream import JsonStream

NAME = "toolcrib"
PACKAGES = ("toolcrib", "openai", "anthropic")
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
    if kind != "sync":
        paths["Toolbox.call of a WRITE tool"] = _call(function, Effect.WRITE)
    if kind == "async":
        paths["Toolbox.call, with a subscriber"] = Subscribed(function)
        paths["Toolbox.call, with a reader of events()"] = Read(function)
    return paths


def _call(
    function: Callable[..., Any], effect: Effect = Effect.READ, **named: Any
) -> Callable[[str], Awaitable[str]]:
    made = tool(function, effect=effect, secrets=())
    autonomy: Any = "supervised" if effect is Effect.READ else "full"
    name, call_tool = made.facts.name, Toolbox([made], autonomy=autonomy, **named).call

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


class Read:
    """A box whose events somebody reads in the same loop; `drained` waits until the reader has had every event."""

    def __init__(self, function: Callable[..., Any]) -> None:
        made = define(function)
        self.name = made.facts.name
        self.box = Toolbox([made], autonomy="supervised")
        self.reading: asyncio.Task[None] | None = None

    async def read(self) -> None:
        async for _ in self.box.events():
            pass

    async def __call__(self, raw: str) -> str:
        if self.reading is None:
            self.reading = asyncio.create_task(self.read())
            await asyncio.sleep(0)
        return (await self.box.call(ToolCall(self.name, raw))).text

    async def drained(self) -> None:
        for _ in range(3):  # the reader is woken, and takes all that waits at once
            await asyncio.sleep(0)


class Secrets:
    """A store of one secret."""

    def names(self) -> tuple[str, ...]:
        return ("API_KEY",)

    def get(self, name: str) -> str | None:
        return "hunter2-hunter3-abc"


def guarded(function: Callable[..., Any]) -> dict[str, Any]:
    from toolcrib.audit import AuditLog

    log = AuditLog(Path(tempfile.mkdtemp()) / "audit.jsonl", key=b"k" * 32)
    return {
        "neither": _call(function),
        "one secret": _call(function, secrets=Secrets()),
        "audit log": _call(function, audit=log),
    }


def bodies() -> dict[str, Any]:
    from toolcrib.conversation_cache import ConversationCache
    from toolcrib.messages import Message, Request, ResultPart
    from toolcrib.models.anthropic import AnthropicMessages
    from toolcrib.models.openai import OpenAIChat
    from toolcrib.result import ToolResult

    def by(model: Any) -> Any:
        def after(turns: int) -> Callable[[], Any]:
            messages = [Message.system("Be brief."), Message.user("go")]

            def add_turn(turn: int) -> None:
                call = ToolCall("get_weather", workload.FLAT, f"call_{turn}")
                messages.append(Message("assistant", [_text(f"I look it up, {turn}."), call]))
                messages.append(Message("tool", [ResultPart(call, ToolResult.of('{"city":"Rio","days":7}'))]))

            for turn in range(turns):
                add_turn(turn)
            cache = ConversationCache()  # as each run of an agent has one
            numbers = itertools.count(turns)

            def body() -> Any:
                body = model._request(Request(cache.follow(messages), cache=cache), stream=True)
                add_turn(next(numbers))
                return body

            return body

        return after

    return {
        "OpenAIChat": by(OpenAIChat("m", api_key="none")),
        "AnthropicMessages": by(AnthropicMessages("m", api_key="none")),
    }


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


def streamed(function: Callable[..., Any], turns: int) -> Callable[[], Awaitable[None]]:
    """The same run, its events read as they come; the model lets other runs go on before each answer."""
    from toolcrib.agent import Agent
    from toolcrib.messages import Message, Response, TextChunk, Usage

    made = define(function)

    class Fake:
        name = "fake"

        def __init__(self) -> None:
            self.turn = 0

        async def stream(self, request: Any) -> AsyncIterator[Any]:
            self.turn += 1
            await asyncio.sleep(0)
            yield TextChunk("done")
            if self.turn > turns:
                yield Response(Message("assistant", [_text("done")]))
                return
            call = ToolCall(made.facts.name, workload.FLAT, str(self.turn))
            yield Response(Message("assistant", [_text("done"), call]), "tool_calls", Usage(100, 10))

    async def run() -> None:
        count = 0
        async for _ in Agent(Fake(), [made], max_turns=turns + 10).stream("go"):  # type: ignore[arg-type]
            count += 1
        assert count > 5 * turns

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


def typed() -> dict[str, dict[str, Any]]:
    from typed_answers import TEXT, Invoice, Served

    from toolcrib import Agent
    from toolcrib.agent import OutputType
    from toolcrib.extraction import extract
    from toolcrib.models.openai import OpenAIChat

    served = Served()

    class Chat(OpenAIChat):
        def _make_client(self) -> Any:
            return served.client()

    model = Chat("m", api_key="none")
    by_call = OutputType(Invoice, rung="forced tool")
    agent, native = Agent(model, output=by_call), Agent(model, output=Invoice)

    async def once() -> Any:
        return (await agent.run(TEXT)).output

    async def held() -> Any:
        return (await native.run(TEXT)).output

    async def extracted() -> Any:
        return (await extract(model, by_call, TEXT)).output

    async def streamed() -> Any:
        run = agent.start(TEXT)
        async for partial in run.stream_partial():
            assert partial is not None
        return (await run).output

    return {
        "whole": {
            "Agent.run, a call": (once, served),
            "Agent.run, native": (held, served),
            "extract, a call": (extracted, served),
        },
        "streamed": {"stream_partial, a call": (streamed, served)},
    }


def answers() -> dict[str, dict[str, Any]]:
    import answer_streams
    from answer_streams import Calls, Memory

    from toolcrib.codecs import JSONEvents
    from toolcrib.codecs.catalog import codec_named
    from toolcrib.messages import Message, Request, Response
    from toolcrib.models.anthropic import AnthropicMessages
    from toolcrib.models.openai import OpenAIChat

    def told(response: Response) -> Calls:
        return [(call.name, call.arguments) for call in response.message.calls]

    def by_codec(name: str) -> Any:
        def read(frames: list[bytes], step: Callable[[], None]) -> Calls:
            events, decoder = JSONEvents(), codec_named(name).decoder()
            for frame in frames:
                for event in events.feed(frame):
                    decoder.feed(event)
                step()
            for event in events.finish():
                decoder.feed(event)
            return told(decoder.finish())

        return read

    memory, loop = Memory(), asyncio.new_event_loop()

    class Chat(OpenAIChat):
        def _make_client(self) -> Any:
            return answer_streams.openai_client(memory, use_async=True)

    class Messages(AnthropicMessages):
        def _make_client(self) -> Any:
            return answer_streams.anthropic_client(memory, use_async=True)

    def by_model(model: Any) -> Any:
        async def answered(step: Callable[[], None]) -> Calls:
            last: Any = None
            async for item in model.stream(Request([Message.user("go")])):
                last = item
                step()
            assert isinstance(last, Response)
            return told(last)

        def read(frames: list[bytes], step: Callable[[], None]) -> Calls:
            memory.frames = frames
            return loop.run_until_complete(answered(step))

        return read

    return {
        "chat": {
            "JSONEvents and the decoder": by_codec("openai_chat"),
            "OpenAIChat.stream over HTTP": by_model(Chat("m", api_key="none")),
        },
        "messages": {
            "JSONEvents and the decoder": by_codec("anthropic_messages"),
            "AnthropicMessages.stream over HTTP": by_model(Messages("m", api_key="none")),
        },
    }


TEXT_FORMATS = (
    "hermes",
    "tool_call",
    "llama3_json",
    "mistral",
    "pythonic",
    "harmony",
    "deepseek_v3.1",
    "qwen3_coder_xml",
    "glm47",
    "invoke",
    "schoober",
)


def text() -> dict[str, Any]:
    import json

    from measures.text import Calls, Reader

    from toolcrib.codecs.text import format_named, text_parser

    schema = {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}}

    def write(name: str) -> Callable[[Calls], str]:
        return lambda calls: format_named(name).write_calls(
            [ToolCall(called, json.dumps(given), str(number)) for number, (called, given) in enumerate(calls)]
        )

    def read(name: str) -> Callable[[Iterable[str]], Calls]:
        def reading(pieces: Iterable[str]) -> Calls:
            parser = text_parser(name, {"edit_file": schema})
            for piece in pieces:
                parser.feed(piece)
            parser.finish()
            assert not any(call.problem for call in parser.parsed().calls)
            return [(call.name, call.arguments) for call in parser.parsed().calls]

        return reading

    found = {name: Reader(f"{name}, many calls", write(name), read(name)) for name in TEXT_FORMATS}
    for name, row in (("generic_json", "one call as JSON"), ("hermes", "one call in `<tool_call>`")):
        found[f"{name}, in pieces"] = Reader(row, write(name), read(name), many=False)
        found[f"{name}, at once"] = Reader(row, write(name), read(name), many=False, piece=0)
    return found


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
        return len((await self.box.tool_list()).specs)


registry = Registry
