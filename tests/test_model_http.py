"""Models over plain HTTP against a server of our own: connections, errors, keys, and how a stream is left."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.cases import each
from tests.local_server import listening
from toolcrib.codecs.cohere import CohereCodec
from toolcrib.messages import CallChunk, Message, Request, Response, TextChunk
from toolcrib.models import ModelError
from toolcrib.models.cohere import Cohere
from toolcrib.models.http import HttpTransport
from toolcrib.models.ollama import Ollama

KEY = "co-do-not-tell"
REQUEST = Request([Message.user("Grüß")])


@dataclass(frozen=True)
class Answer:
    """What the server sends; with `hold` or `drop` it promises more, and stays silent or hangs up."""

    data: bytes
    kind: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hold: bool = False
    drop: bool = False

    def head(self) -> bytes:
        given = {
            "content-type": self.kind,
            "content-length": str(len(self.data) + 1000 * (self.hold or self.drop)),
            **self.headers,
        }
        lines = [f"HTTP/1.1 {self.status} Words", *(f"{name}: {value}" for name, value in given.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


@dataclass
class Peer:
    """A server that gives its answers in turn, the last one for ever, and says what it saw."""

    answers: list[Answer]
    port: int = 0
    connections: int = 0
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def header(self, name: str) -> str:
        """A header of the last request; empty where it has none."""
        lines = (line.partition(":") for line in self.heads[-1].split("\r\n"))
        return next((value.strip() for found, _, value in lines if found.lower() == name), "")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
                self.bodies.append(await reader.readexactly(int(self.header("content-length"))))
                answer = self.answers[min(len(self.bodies), len(self.answers)) - 1]
                writer.write(answer.head() + answer.data)
                await writer.drain()
                self.asked.set()
                if answer.drop:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            self.closed.set()
        except asyncio.CancelledError:  # the test is over; asyncio would log it as an error
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(*answers: Answer) -> AsyncGenerator[Peer, None]:
    peer = Peer([*answers])
    async with listening(peer.serve) as peer.port:
        yield peer


def as_json(body: Any, **named: Any) -> Answer:
    return Answer(json.dumps(body).encode(), **named)


COHERE_WHOLE = as_json(
    {"message": {"content": [{"type": "text", "text": "Hello."}]}, "finish_reason": "COMPLETE"}
)
COHERE_EVENTS = [
    {"type": "message-start", "delta": {"message": {"role": "assistant"}}},
    {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "Hel"}}}},
    {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "lo."}}}},
    {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
]
OLLAMA_LINES = [
    {"message": {"role": "assistant", "content": "Hel"}, "done": False},
    {"message": {"role": "assistant", "content": "lo."}, "done": False},
    {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"},
]
OLLAMA_WHOLE = as_json({"message": {"content": "Hello."}, "done": True, "done_reason": "stop"})


def sse(events: list[Any], **named: Any) -> Answer:
    data = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Answer(data.encode(), "text/event-stream; charset=utf-8", **named)


def ndjson(lines: list[Any], **named: Any) -> Answer:
    return Answer(
        "".join(f"{json.dumps(line)}\n" for line in lines).encode(), "application/x-ndjson", **named
    )


@dataclass(frozen=True)
class Case:
    make: Callable[..., HttpTransport]
    path: str
    whole: Answer
    streamed: Callable[..., Answer]
    events: list[Any]


CASES = {
    "cohere": Case(
        lambda peer, **named: Cohere("m", base_url=peer.address, api_key=KEY, **named),
        "/v2/chat",
        COHERE_WHOLE,
        sse,
        COHERE_EVENTS,
    ),
    "ollama": Case(
        lambda peer, **named: Ollama("m", base_url=peer.address, api_key=KEY, **named),
        "/api/chat",
        OLLAMA_WHOLE,
        ndjson,
        OLLAMA_LINES,
    ),
}
every = pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])


@every
async def test_one_connection_serves_many_answers(case: Case) -> None:
    failed = as_json({"message": "no", "error": "no"}, status=400)
    async with serving(case.whole, case.streamed(case.events), failed, case.whole) as peer:
        model = case.make(peer)
        assert (await model.respond(REQUEST)).message.text == "Hello."
        items = [item async for item in model.stream(REQUEST)]
        assert items[:2] == [TextChunk("Hel"), TextChunk("lo.")]
        assert isinstance(items[-1], Response)
        with pytest.raises(ModelError):
            await model.respond(REQUEST)
        await model.respond(REQUEST)
        assert peer.connections == 1
        await model.aclose()
        await asyncio.wait_for(peer.closed.wait(), 10)
    expected = [model.codec.request(REQUEST, model="m", stream=number == 1) for number in range(4)]
    assert [json.loads(body) for body in peer.bodies] == expected
    assert all(head.startswith(f"POST {case.path} HTTP/1.1\r\n") for head in peer.heads)
    assert peer.header("authorization") == f"Bearer {KEY}"


@every
async def test_a_server_that_does_not_stream(case: Case) -> None:
    async with serving(case.whole) as peer:
        items = [item async for item in case.make(peer).stream(REQUEST)]
    assert items[0] == TextChunk("Hello.")
    assert isinstance(items[-1], Response)


@every
async def test_closing_the_iterator_closes_the_connection(case: Case) -> None:
    async with serving(case.streamed(case.events[:-2], hold=True)) as peer:
        stream = case.make(peer).stream(REQUEST)
        assert await anext(stream) == TextChunk("Hel")
        await stream.aclose()
        await asyncio.wait_for(peer.closed.wait(), 10)


@every
@pytest.mark.parametrize("streaming", [False, True])
async def test_cancelling_closes_the_connection(case: Case, streaming: bool) -> None:
    async with serving(case.streamed(case.events[:-2], hold=True)) as peer:
        model, begun = case.make(peer), asyncio.Event()

        async def ask() -> None:
            if not streaming:
                await model.respond(REQUEST)
            async for _ in model.stream(REQUEST):
                begun.set()

        task = asyncio.create_task(ask())
        await asyncio.wait_for((begun if streaming else peer.asked).wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(peer.closed.wait(), 10)


@every
async def test_a_connection_that_breaks_keeps_what_came(case: Case) -> None:
    async with serving(case.streamed(case.events[:-2], drop=True)) as peer:
        with pytest.raises(ModelError) as caught:
            _ = [item async for item in case.make(peer, max_retries=0).stream(REQUEST)]
    assert caught.value.retryable
    assert caught.value.partial is not None
    assert caught.value.partial.message.text == "Hel"


STATUSES = {
    400: False,
    401: False,
    404: False,
    422: False,
    301: False,
    408: True,
    429: True,
    500: True,
    529: True,
}


@every
@each("streaming", [False, True])
@each("status", STATUSES)
async def test_errors_of_the_server(case: Case, streaming: bool, status: int) -> None:
    said = {"message": f"no {KEY}", "error": f"no {KEY}"}
    async with serving(as_json(said, status=status, headers={"retry-after": "7", "location": "/"})) as peer:
        model = case.make(peer, max_retries=0)
        with pytest.raises(ModelError) as caught:
            _ = [item async for item in model.stream(REQUEST)] if streaming else await model.respond(REQUEST)
    error = caught.value
    unheeded = " (it asks to wait 7 s, but no attempt is left)" if STATUSES[status] else ""
    assert error.message == f"{model.name} answered {status}: no [key]{unheeded}"
    assert (error.retryable, error.status, error.retry_after) == (STATUSES[status], status, 7.0)
    assert KEY not in repr(error.__cause__)
    assert len(peer.bodies) == 1


@every
async def test_an_error_that_is_no_json_and_never_ends(case: Case) -> None:
    page = Answer(b"<html>" + b"x" * 200_000, "text/html", 503, hold=True)
    async with serving(page) as peer:
        with pytest.raises(ModelError, match="answered 503: <html>xx") as caught:
            await case.make(peer, max_retries=0).respond(REQUEST)
    assert caught.value.retryable
    assert len(caught.value.message) < 1000


@every
async def test_what_may_pass_is_tried_again_on_the_same_connection(case: Case) -> None:
    busy = as_json({"message": "busy", "error": "busy"}, status=503, headers={"retry-after-ms": "1"})
    async with serving(busy, case.whole) as peer:
        assert (await case.make(peer).respond(REQUEST)).message.text == "Hello."
    assert (len(peer.bodies), peer.connections) == (2, 1)


async def test_nobody_listens() -> None:
    with pytest.raises(ModelError, match=r"connection to ollama:m failed: .*, at 127\.0\.0\.1:9$") as caught:
        await Ollama("m", base_url="http://127.0.0.1:9", max_retries=0).respond(REQUEST)
    assert caught.value.retryable


@pytest.mark.parametrize("key", ["co-grüß-1234", "co-1234\n5678", "co-1234\x00"])
async def test_a_key_that_no_header_can_carry(key: str) -> None:
    with pytest.raises(ModelError, match="cannot carry") as caught:
        await Cohere("m", base_url="http://127.0.0.1:9", api_key=key).respond(REQUEST)
    assert not caught.value.retryable
    assert "1234" not in f"{caught.value!r} {caught.value.__context__!r}"


async def test_a_password_in_an_address_is_a_key() -> None:
    async with serving(as_json({"error": "who is secret-word?"}, status=400)) as peer:
        address = peer.address.replace("//", "//user:secret-word@")
        with pytest.raises(ModelError, match=r"who is \[key\]\?"):
            await Cohere("m", base_url=address).respond(REQUEST)


async def test_what_is_signed_is_what_is_sent() -> None:
    class Signed(HttpTransport):
        def _url(self, *, stream: bool) -> str:
            return f"{self.base_url}/model/{self.model}/{'stream' if stream else 'whole'}"

        async def _signed(
            self, method: str, url: str, headers: dict[str, str], body: bytes
        ) -> Mapping[str, str]:
            seen = hashlib.sha256(b"|".join([method.encode(), url.encode(), body])).hexdigest()
            return {**headers, "x-signature": seen}

    async with serving(COHERE_WHOLE) as peer:
        model = Signed("m:1", CohereCodec(), base_url=f"{peer.address}/")
        _ = [item async for item in model.stream(REQUEST)]
        url = f"{peer.address}/model/m:1/stream"
        expected = hashlib.sha256(b"|".join([b"POST", url.encode(), peer.bodies[-1]])).hexdigest()
        assert peer.header("x-signature") == expected
        assert peer.heads[-1].startswith("POST /model/m:1/stream ")


async def test_calls_of_a_stream_of_lines() -> None:
    calls = [{"function": {"name": "f", "arguments": {"a": number}}} for number in range(2)]
    lines = [*({"message": {"tool_calls": [call]}, "done": False} for call in calls), OLLAMA_LINES[-1]]
    async with serving(ndjson(lines)) as peer:
        items = [item async for item in Ollama("m", base_url=peer.address).stream(REQUEST)]
    assert items[:2] == [
        CallChunk(number, "f", arguments=f'{{"a":{number}}}', done=True) for number in range(2)
    ]
    assert isinstance(items[-1], Response)
    assert items[-1].stop_reason == "tool_calls"


@every
def test_one_model_serves_several_loops(case: Case) -> None:
    async def once(model: HttpTransport | None) -> HttpTransport:
        async with serving(case.whole) as peer:
            model = model or case.make(peer)
            model.base_url = peer.address
            assert (await model.respond(REQUEST)).message.text == "Hello."
            await model.aclose()
        return model

    asyncio.run(once(asyncio.run(once(None))))


@pytest.mark.parametrize("model", [Cohere("m", api_key=KEY), Ollama("m", api_key=KEY)])
def test_no_key_in_a_repr(model: HttpTransport) -> None:
    assert KEY not in repr(model)
