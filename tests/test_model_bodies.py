"""Bodies that do not end, end early, hold more than the answer, or are too long, from every class of models."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import product
from time import process_time
from typing import Any

import pytest

from tests.bedrock_wire import frame, framed
from tests.cases import each
from tests.local_server import listening
from tests.test_model_classes import CLASSES, FRAMED, KEY, REQUEST
from tests.wire_streams import STREAMS, Event
from toolcrib import Agent, Budget
from toolcrib.codecs import JSONEvents, JSONLines
from toolcrib.messages import Response
from toolcrib.models import Fallback, ModelError, Scripted, answer_body

Send = Callable[[bytes], Awaitable[None]]
Script = Callable[[Send], Awaitable[None]]
FORMATS = {
    "OpenAIChat": "openai_chat",
    "OpenAIResponses": "openai_responses",
    "AnthropicMessages": "anthropic_messages",
    "Gemini": "gemini",
    "GeminiInteractions": "gemini_interactions",
    "BedrockConverse": "bedrock_converse",
    "BedrockMessages": "anthropic_messages",
    "Cohere": "cohere",
    "Ollama": "ollama",
}


def pieces_of(name: str) -> list[bytes]:
    """A whole streamed answer in the bytes of its class, an event each."""
    events: list[Event] = STREAMS[FORMATS[name]]
    if name == "BedrockConverse":
        return [framed(event) for event in events]
    if name == "BedrockMessages":
        inner = [b64encode(json.dumps(event).encode()).decode() for event in events]
        return [frame({"bytes": data}, event_type="chunk", message_type="event") for data in inner]
    if name == "Ollama":
        return [f"{json.dumps(event)}\n".encode() for event in events]
    ended = ["data: [DONE]\n\n"] if name == "OpenAIChat" else []
    return [text.encode() for text in [*(f"data: {json.dumps(event)}\n\n" for event in events), *ended]]


def kind_of(name: str) -> str:
    if name in FRAMED:
        return "application/vnd.amazon.eventstream"
    return "application/x-ndjson" if name == "Ollama" else "text/event-stream"


class Peer:
    """A server that counts the requests, and answers each with a script that writes the bytes after the head."""

    def __init__(self, script: Script, head: str) -> None:
        self.script, self.head, self.address, self.requests, self.connections = script, head, "", 0, 0
        self._answering: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[Peer]:
        async with listening(self._serve) as port:
            self.address = f"http://127.0.0.1:{port}"
            yield self
            for task in self._answering:
                task.cancel()
            await asyncio.gather(*self._answering, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        self.connections += 1

        async def send(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = head.partition("content-length:")[2].partition("\r\n")[0]
                await reader.readexactly(int(length))
                self.requests += 1
                await send(self.head.encode())
                await self.script(send)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


def head(kind: str, status: str = "200 OK", more: str = "transfer-encoding: chunked\r\n") -> str:
    return f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{more}\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def streaming(name: str, then: Script) -> Peer:
    async def script(send: Send) -> None:
        for piece in pieces_of(name):
            await send(chunk(piece))
        await then(send)

    return Peer(script, head(kind_of(name)))


async def stay(send: Send) -> None:
    await asyncio.sleep(60)


async def hang_up(send: Send) -> None:
    raise ConnectionError


async def keep_alive(send: Send) -> None:
    while True:
        await send(chunk(b": keep-alive\n\n"))
        await asyncio.sleep(0.005)


async def say_more(send: Send) -> None:
    await send(chunk(b"<html>\xe2\x82{ no event\n\ndata: {\n\n"))
    await stay(send)


async def end(send: Send) -> None:
    await send(b"0\r\n\r\n")


def made(name: str, address: str, **named: Any) -> Any:
    more = {"region": "us-east-1"} if name in FRAMED else {"provider": "p"}
    return CLASSES[name][0]("m", base_url=address, api_key=KEY, **more, **named)


async def answer_of(model: Any) -> Response:
    last = [item async for item in model.stream(REQUEST)][-1]
    assert isinstance(last, Response)
    return last


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_body, "LAST_WORDS", 0.05)
    monkeypatch.setattr(answer_body, "REST_SECONDS", 0.02)
    monkeypatch.setattr(answer_body, "ERROR_SECONDS", 0.1)


every_class = pytest.mark.parametrize("name", CLASSES)


@pytest.mark.usefixtures("impatient")
@each("name, then", [*product(CLASSES, [stay, hang_up, keep_alive, say_more])], at_once=6)
async def test_an_answer_is_complete_when_its_format_says_so(name: str, then: Script) -> None:
    async with streaming(name, end).serving() as peer:
        expected = await answer_of(made(name, peer.address))
    async with streaming(name, then).serving() as peer, asyncio.timeout(10):
        async with made(name, peer.address) as model:
            answer = await answer_of(model)
        assert peer.requests == 1
    assert answer.message == expected.message
    assert (answer.usage, answer.stop_reason) == (expected.usage, expected.stop_reason)


@every_class
async def test_the_connection_of_a_whole_stream_is_used_again(name: str) -> None:
    async with streaming(name, end).serving() as peer, made(name, peer.address) as model:
        for _ in range(2):
            await answer_of(model)
        assert (peer.requests, peer.connections) == (2, 1)


WHOLE = "application/json"


def whole(name: str, then: Script) -> Peer:
    async def script(send: Send) -> None:
        await send(chunk(json.dumps(CLASSES[name][1]).encode()))
        await then(send)

    return Peer(script, head(WHOLE))


@pytest.mark.usefixtures("impatient")
@each("name, then, stream", [*product(CLASSES, [stay, hang_up], [False, True])], at_once=6)
async def test_a_whole_object_needs_no_end(name: str, then: Script, stream: bool) -> None:
    async with whole(name, then).serving() as peer, made(name, peer.address) as model, asyncio.timeout(10):
        answer = await (answer_of(model) if stream else model.respond(REQUEST))
        assert (answer.message.text, peer.requests) == ("Hello.", 1)


async def failure_of(model: Any, *, stream: bool) -> ModelError:
    async with model, asyncio.timeout(10):
        with pytest.raises(ModelError) as caught:
            await (answer_of(model) if stream else model.respond(REQUEST))
    error = caught.value
    shown = f"{error} {error.args} {error.__cause__}"
    assert KEY[: len(KEY) // 2] not in shown
    assert len(shown) < 8_000
    return error


def flood(data: bytes, status: str = "200 OK", kind: str = WHOLE, more: str = "", pause: float = 0.0) -> Peer:
    async def script(send: Send) -> None:
        while True:
            await send(chunk(data))
            await asyncio.sleep(pause)

    return Peer(script, head(kind, status, f"transfer-encoding: chunked\r\n{more}"))


def fixed(data: bytes, status: str, more: str = "", kind: str = WHOLE) -> Peer:
    async def script(send: Send) -> None:
        await send(data)

    return Peer(script, head(kind, status, f"content-length: {len(data)}\r\n{more}"))


@pytest.mark.usefixtures("impatient")
@each("name, pause, kind", [*product(CLASSES, [0.0, 0.01], [WHOLE, "text/html"])], at_once=6)
async def test_an_error_without_an_end_is_read_up_to_a_limit(name: str, pause: float, kind: str) -> None:
    words = f"<html>no {KEY} ".encode() * (1 if pause else 5_000)
    async with flood(words, "503 Busy", kind, pause=pause).serving() as peer:
        error = await failure_of(made(name, peer.address, max_retries=0), stream=bool(pause))
    assert (error.status, error.retryable) == (503, True)
    assert "answered 503: <html>no [key]" in error.message


@every_class
async def test_an_error_that_expands_is_read_up_to_a_limit(name: str) -> None:
    bomb = gzip.compress(b'{"error": "' + b"x" * 20_000_000)

    async with fixed(bomb, "400 No", "content-encoding: gzip\r\n").serving() as peer:
        error = await failure_of(made(name, peer.address), stream=True)
    assert (error.status, error.retryable) == (400, False)


@pytest.mark.parametrize("cut", range(1985, 2005))
async def test_a_key_is_not_cut_in_two(cut: int) -> None:
    for before in (cut, cut - 1500):  # where a person's words are cut, and where an event's are
        said = f"{'x' * before}{KEY}"
        data = json.dumps({"error": {"message": said, "metadata": {"raw": said}}}).encode()
        async with fixed(data, "400 No").serving() as peer:
            await failure_of(made("OpenAIChat", peer.address), stream=True)


@each("name", CLASSES)
@each("stream", [False, True])
async def test_an_answer_without_an_end_is_read_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch, name: str, stream: bool
) -> None:
    monkeypatch.setattr(answer_body, "LONGEST_BODY", 1024 * 1024)
    monkeypatch.setattr(answer_body, "LONGEST_STREAM", 1024 * 1024)
    first = pieces_of(name)[0]
    async with flood(first * 1_000, kind=kind_of(name) if stream else WHOLE).serving() as peer:
        error = await failure_of(made(name, peer.address), stream=stream)
        assert peer.requests == 1
    assert "answer is longer than 1 MiB" in error.message


ENDLESS = {
    "a line": (JSONEvents, b"x" * 1024 * 1024),
    "data lines": (JSONEvents, b"data: " + b"x" * 1024 * 1024 + b"\n"),
    "a line of objects": (JSONLines, b"x" * 1024 * 1024),
}


@each("reader, piece", ENDLESS.values())
def test_an_event_has_a_limit(reader: Callable[[], Any], piece: bytes) -> None:
    made = reader()
    with pytest.raises(ModelError, match="of more than 24 MiB"):
        for _ in range(30):
            made.feed(piece)


@pytest.mark.parametrize("name", CLASSES)
async def test_a_redirect_says_where_it_points_to(name: str) -> None:
    there = "location: http://user:word@elsewhere.example/v2?key=word\r\n"
    async with fixed(b"", "308 Moved", there, "text/html").serving() as peer:
        error = await failure_of(made(name, peer.address), stream=True)
        assert peer.requests == 1
    assert "it points to http://elsewhere.example, which is not followed" in error.message
    assert "word" not in error.message


@each("name", CLASSES)
@each("stream", [False, True])
async def test_a_wait_of_an_hour_is_not_kept_and_told(name: str, stream: bool) -> None:
    async with fixed(b"{}", "429 Slow down", "retry-after: 3600\r\n").serving() as peer:
        error = await failure_of(made(name, peer.address), stream=stream)
        assert peer.requests == 1
    assert "(it asks to wait 3600 s, but at most 60 s are waited)" in error.message


async def test_a_heavy_answer_does_not_stop_the_loop() -> None:
    logprobs = [{"token": "a", "logprob": -0.1234567}] * 100_000
    choice = {"message": {"content": "Hello."}, "finish_reason": "stop", "logprobs": {"content": logprobs}}
    heavy = json.dumps({"choices": [choice]}).encode()
    longest, over = 0.0, asyncio.Event()

    async def watch() -> None:
        nonlocal longest
        while not over.is_set():
            before = asyncio.get_running_loop().time()
            await asyncio.sleep(0)
            longest = max(longest, asyncio.get_running_loop().time() - before)

    async with fixed(heavy, "200 OK").serving() as peer, made("OpenAIChat", peer.address) as model:
        await model.respond(REQUEST)  # makes the client
        watching = asyncio.create_task(watch())
        start = process_time()
        gc.disable()  # a collection stops every thread
        try:
            answer = await model.respond(REQUEST)
        finally:
            gc.enable()
            over.set()
        spent = process_time() - start
        await watching
    assert len(answer.logprobs) == 100_000
    assert longest < spent / 2


async def test_what_an_agent_and_a_list_of_models_say_is_short() -> None:
    long = [Scripted([{"error": "x" * 1_000_000}]) for _ in range(3)]
    for model in (long[0], Fallback(long)):
        outcome = await Agent(model).run("Hi")
        assert 1_000 < len(outcome.detail) < 5_000


@each("name, kind", [*product(CLASSES, [WHOLE, "stream"])], at_once=6)
async def test_a_body_that_trickles_ends_with_the_budget_of_a_run(name: str, kind: str) -> None:
    piece = b" " if kind == WHOLE else b": still here\n\n"
    async with flood(piece, kind=WHOLE if kind == WHOLE else kind_of(name), pause=0.01).serving() as peer:
        async with made(name, peer.address) as model, asyncio.timeout(10):
            await model._client()  # an import is no part of the answer
            outcome = await Agent(model, budget=Budget(seconds=0.3)).run("Hi")
            assert outcome.reason == "budget"
        assert peer.requests <= 1  # none where the machine is so busy that the budget is used up before


@each("name, status", [*product(CLASSES, ["400 No", "200 OK"])], at_once=6)
async def test_an_error_moves_no_cursor(name: str, status: str) -> None:
    data = json.dumps(
        {"error": {"message": "no \x1b[2J\x9b\u202e", "type": "invalid_request_error"}}
    ).encode()
    async with fixed(data, status).serving() as peer:
        error = await failure_of(made(name, peer.address), stream=True)
    assert error.message.endswith("no \\x1b[2J\\x9b\\u202e")


@each("name, serve", [*product(["OpenAIChat", "AnthropicMessages", "Gemini"], [streaming, whole])], at_once=6)
async def test_an_answer_that_came_in_time_is_not_late(
    name: str, serve: Callable[[str, Script], Peer]
) -> None:
    async with serve(name, stay).serving() as peer, made(name, peer.address) as model:
        await model._client()  # an import is no part of the answer
        model.deadline = 1.0
        await answer_of(model)
        assert peer.requests == 1
