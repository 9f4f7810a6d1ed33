"""Every class of models over a real socket: redirects, compression, failures said with status 200, leaving early."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.cases import each
from tests.local_server import listening
from toolcrib.messages import Message, Request
from toolcrib.models import AnthropicMessages, ModelError, OpenAIChat
from toolcrib.models.bedrock import BedrockConverse, BedrockMessages
from toolcrib.models.cohere import Cohere
from toolcrib.models.gemini import Gemini, GeminiInteractions
from toolcrib.models.ollama import Ollama
from toolcrib.models.openai_responses import OpenAIResponses

KEY = "sk-never-shown-0123456789"
REQUEST = Request([Message.user("Hi")])
SAID = {"type": "text", "text": "Hello."}
CHAT = {"choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}]}
MESSAGE = {"type": "message", "content": [SAID], "stop_reason": "end_turn"}
ITEM = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]}
# Each class, and a whole answer in its format.
CLASSES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "OpenAIChat": (OpenAIChat, CHAT),
    "OpenAIResponses": (OpenAIResponses, {"status": "completed", "output": [ITEM]}),
    "AnthropicMessages": (AnthropicMessages, MESSAGE),
    "Gemini": (
        Gemini,
        {"candidates": [{"content": {"parts": [{"text": "Hello."}]}, "finishReason": "STOP"}]},
    ),
    "GeminiInteractions": (
        GeminiInteractions,
        {
            "status": "completed",
            "steps": [{"type": "model_output", "content": [{"type": "text", "text": "Hello."}]}],
        },
    ),
    "BedrockConverse": (
        BedrockConverse,
        {"output": {"message": {"content": [{"text": "Hello."}]}}, "stopReason": "end_turn"},
    ),
    "BedrockMessages": (BedrockMessages, MESSAGE),
    "Cohere": (Cohere, {"message": {"content": [SAID]}, "finish_reason": "COMPLETE"}),
    "Ollama": (Ollama, {"message": {"content": "Hello."}, "done": True, "done_reason": "stop"}),
}
FRAMED = {"BedrockConverse", "BedrockMessages"}  # whose streams are no text


def made(name: str, address: str) -> Any:
    more = {"region": "us-east-1"} if name in FRAMED else {}
    return CLASSES[name][0]("m", base_url=address, api_key=KEY, max_retries=0, **more)


@dataclass
class Peer:
    """A server that gives one answer to everybody, and keeps the heads of what it was sent."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    data: bytes = b""
    hangs: bool = False  # sends its headers, and then waits for the other side to leave
    port: int = 0
    heads: list[str] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[Peer]:
        async with listening(self._answer) as self.port:
            yield self

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = head.lower().split("\r\n")
        await reader.readexactly(next(int(line[15:]) for line in lines if line.startswith("content-length:")))
        self.heads.append(head)
        size = {} if self.hangs else {"content-length": str(len(self.data))}
        named = {**self.headers, "connection": "close", **size}
        said = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        writer.write(f"HTTP/1.1 {self.status} X\r\n{said}\r\n".encode() + self.data)
        self.asked.set()
        if self.hangs:
            await reader.read()
            self.left.set()
        writer.close()


async def asked(model: Any, *, stream: bool) -> Any:
    if not stream:
        return await model.respond(REQUEST)
    return [item async for item in model.stream(REQUEST)][-1]


@pytest.mark.promise("security.md", "a key goes to its own host alone")
@pytest.mark.parametrize("name", CLASSES)
async def test_a_redirect_takes_no_key_to_another_host(name: str) -> None:
    async with Peer(data=json.dumps(CLASSES[name][1]).encode()).serving() as other:
        there = {"location": f"{other.address}/elsewhere", "content-type": "text/plain"}
        async with Peer(307, there).serving() as first:
            try:
                await asked(made(name, first.address), stream=False)
            except ModelError as refused:
                assert KEY not in str(refused)
        assert KEY in first.heads[0]
        assert all(KEY not in head for head in other.heads)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_compressed_answer_is_read(name: str, stream: bool) -> None:
    data = gzip.compress(json.dumps(CLASSES[name][1]).encode())
    headers = {"content-type": "application/json; charset=utf-8", "content-encoding": "gzip"}
    async with Peer(headers=headers, data=data).serving() as peer:
        response = await asked(made(name, peer.address), stream=stream)
    assert response.message.text == "Hello."


@each("name", CLASSES)
@each("stream", [False, True])
@each("kind", ["application/json", "text/plain", "text/event-stream"])
async def test_a_failure_that_is_said_with_status_200(name: str, stream: bool, kind: str) -> None:
    if name in FRAMED and stream and kind != "application/json":
        pytest.skip("what is no frame is told as that")
    data = json.dumps({"error": {"message": "no such model", "type": "invalid_request_error"}}).encode()
    async with Peer(headers={"content-type": kind}, data=data).serving() as peer:
        with pytest.raises(ModelError, match="no such model"):
            await asked(made(name, peer.address), stream=stream)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_page_instead_of_an_answer(name: str, stream: bool) -> None:
    page = b"<html><body>Please sign in.</body></html>"
    async with Peer(headers={"content-type": "text/html"}, data=page).serving() as peer:
        words = "not an AWS event stream" if name in FRAMED and stream else "Please sign in"
        with pytest.raises(ModelError, match=words):
            await asked(made(name, peer.address), stream=stream)


@pytest.mark.parametrize("name", CLASSES)
async def test_an_error_in_a_shape_that_nobody_knows_is_shown(name: str) -> None:
    data = json.dumps({"detail": [{"loc": ["body", "tools"], "msg": "field required"}]}).encode()
    async with Peer(422, data=data).serving() as peer:
        with pytest.raises(ModelError, match="field required") as caught:
            await asked(made(name, peer.address), stream=True)
    assert caught.value.status == 422
    assert not caught.value.retryable


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("stream", [False, True])
async def test_who_is_cancelled_leaves_the_connection(name: str, stream: bool) -> None:
    kind = "application/x-ndjson" if name == "Ollama" else "text/event-stream"
    async with Peer(headers={"content-type": kind}, hangs=True).serving() as peer:
        task = asyncio.create_task(asked(made(name, peer.address), stream=stream))
        await peer.asked.wait()
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(peer.left.wait(), 5)


@each("name", CLASSES)
@each(
    ("headers", "wait"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:07 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 7.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "1e400"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
async def test_how_long_to_wait_is_read_in_every_form(
    name: str, headers: dict[str, str], wait: float | None
) -> None:
    data = b'{"error": {"message": "slow down"}}'
    async with Peer(429, {"content-type": "application/json", **headers}, data).serving() as peer:
        with pytest.raises(ModelError) as caught:
            await asked(made(name, peer.address), stream=False)
    assert caught.value.retryable
    assert caught.value.retry_after == wait


@pytest.mark.parametrize("name", CLASSES)
def test_a_loop_that_ended_is_not_kept(name: str) -> None:
    model = made(name, "http://127.0.0.1:9")
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def ask() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        with pytest.raises(ModelError):
            await model.respond(REQUEST)

    for _ in range(4):
        asyncio.run(ask())
    gc.collect()
    assert [loop() for loop in loops[:-1]] == [None] * 3
