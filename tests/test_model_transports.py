"""The transports against a small server of our own: errors, closing, keys."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from tests.local_server import listening
from toolcrib.messages import Message, Request, Response, TextChunk
from toolcrib.models import AnthropicMessages, ModelError, OpenAIChat, resolve_model
from toolcrib.spec import ToolSpec

REQUEST = Request([Message.user("Hi")])
HELLO = {"choices": [{"index": 0, "message": {"content": "Hello."}, "finish_reason": "stop"}]}
MESSAGE = {"type": "message", "content": [{"type": "text", "text": "Hello."}], "stop_reason": "end_turn"}
PIECE = 'data: {"choices": [{"index": 0, "delta": {"content": "Hel"}}]}\n\n'


@dataclass
class Peer:
    """A server that sends one prepared answer, and says what it saw."""

    port: int = 0
    heads: list[str] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def serving(data: bytes, *, kind: str = "application/json", status: str = "200 OK", hold: bool = False,
                  headers: str = "", length: int | None = None) -> AsyncIterator[Peer]:  # fmt: skip
    peer = Peer()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        size = next(
            int(line.split(":")[1])
            for line in head.lower().split("\r\n")
            if line.startswith("content-length")
        )
        peer.heads.append(head)
        peer.bodies.append(json.loads(await reader.readexactly(size)))
        said = len(data) + 1000 if hold else len(data) if length is None else length
        writer.write(
            f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {said}\r\n{headers}\r\n".encode()
        )
        writer.write(data)
        await writer.drain()
        if hold:
            await reader.read()
            peer.closed.set()
        writer.close()

    async with listening(answer) as peer.port:
        yield peer


async def test_closing_the_iterator_closes_the_connection() -> None:
    async with serving(PIECE.encode(), kind="text/event-stream", hold=True) as peer:
        stream = OpenAIChat("m", base_url=f"{peer.address}/v1").stream(REQUEST)
        assert await anext(stream) == TextChunk("Hel")
        await stream.aclose()
        await asyncio.wait_for(peer.closed.wait(), 10)


async def test_a_connection_that_breaks_keeps_what_came() -> None:
    async with serving(PIECE.encode(), kind="text/event-stream", length=5000) as peer:
        model = OpenAIChat("m", base_url=f"{peer.address}/v1")
        with pytest.raises(ModelError) as caught:
            _ = [item async for item in model.stream(REQUEST)]
    assert caught.value.retryable
    assert caught.value.partial is not None
    assert caught.value.partial.message.text == "Hel"


async def test_what_only_the_end_settles_streams_too() -> None:
    """Text that might have been the beginning of a tag is no chunk before the stream has ended."""
    pieces = [{"delta": {"content": "5 <tool"}}, {"delta": {}, "finish_reason": "stop"}]
    data = "".join(f"data: {json.dumps({'choices': [piece]})}\n\n" for piece in pieces)
    tools = [ToolSpec("add", "Add.", {"type": "object"})]
    async with serving(data.encode(), kind="text/event-stream") as peer:
        model = resolve_model(f"text/hermes:{peer.address}/v1#m")
        items = [item async for item in model.stream(Request([Message.user("Hi")], tools))]
    assert "".join(item.text for item in items if isinstance(item, TextChunk)) == "5 <tool"


async def test_tools_of_the_provider_in_every_body_join_ours() -> None:
    tools = [ToolSpec("add", "Add.", {"type": "object"})]
    search = {"type": "web_search_20250305", "name": "web_search"}
    async with serving(json.dumps(MESSAGE).encode()) as peer:
        model = AnthropicMessages("m", base_url=peer.address, body={"tools": [search]})
        await model.respond(Request([Message.user("Hi")], tools))
    assert [tool["name"] for tool in peer.bodies[0]["tools"]] == ["add", "web_search"]


Make = Callable[[str], OpenAIChat | AnthropicMessages]
MODELS: dict[str, Make] = {
    "openai": lambda address: OpenAIChat("m", base_url=f"{address}/v1", max_retries=0),
    "anthropic": lambda address: AnthropicMessages("m", base_url=address, max_retries=0),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("streaming", [False, True])
async def test_errors_of_the_server(name: str, streaming: bool) -> None:
    body = json.dumps(
        {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down."}}
    ).encode()
    async with serving(body, status="429 Too Many Requests", headers="retry-after: 7\r\n") as peer:
        model = MODELS[name](peer.address)
        with pytest.raises(ModelError, match=r"answered 429: .*Slow down") as caught:
            _ = [item async for item in model.stream(REQUEST)] if streaming else await model.respond(REQUEST)
    error = caught.value
    assert (error.status, error.retryable, error.retry_after) == (429, True, 7.0)


@pytest.mark.parametrize("name", MODELS)
async def test_nobody_listens(name: str) -> None:
    model = MODELS[name]("http://127.0.0.1:9")
    with pytest.raises(ModelError, match="connection to") as caught:
        await model.respond(REQUEST)
    assert caught.value.retryable


async def test_a_server_that_does_not_stream() -> None:
    async with serving(json.dumps(HELLO).encode()) as peer:
        items = [item async for item in OpenAIChat("m", base_url=f"{peer.address}/v1").stream(REQUEST)]
    assert items[0] == TextChunk("Hello.")
    assert isinstance(items[-1], Response)


async def test_an_answer_that_is_no_json() -> None:
    async with serving(b"<html>Welcome</html>", kind="text/html") as peer:
        with pytest.raises(ModelError, match="Welcome"):
            await OpenAIChat("m", base_url=f"{peer.address}/v1").respond(REQUEST)


@pytest.mark.promise("security.md", "a key goes to its own host alone")
async def test_the_environments_key_goes_to_no_other_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, "sk-do-not-tell")
    async with serving(json.dumps(HELLO).encode()) as peer:
        await MODELS["openai"](peer.address).respond(REQUEST)
        assert "sk-do-not-tell" not in peer.heads[0]
    async with serving(json.dumps(MESSAGE).encode()) as peer:
        await MODELS["anthropic"](peer.address).respond(REQUEST)
        assert "sk-do-not-tell" not in peer.heads[0]


async def test_a_key_of_its_own_and_the_environments_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(json.dumps(HELLO).encode()) as peer:
        await OpenAIChat("m", base_url=f"{peer.address}/v1", api_key="sk-mine").respond(REQUEST)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{peer.address}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-theirs")
        await OpenAIChat("m").respond(REQUEST)
    assert ["Bearer sk-mine" in peer.heads[0], "Bearer sk-theirs" in peer.heads[1]] == [True, True]


@pytest.mark.parametrize(
    "model", [OpenAIChat("m", api_key="sk-secret"), AnthropicMessages("m", api_key="sk-secret")]
)
def test_no_key_in_a_repr(model: Any) -> None:
    assert "sk-secret" not in repr(model)


async def test_no_key_at_all_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelError, match="set OPENAI_API_KEY"):
        await OpenAIChat("gpt-5").respond(REQUEST)


@pytest.mark.parametrize(
    ("sdk", "model"),
    [("openai", OpenAIChat("m", api_key="k")), ("anthropic", AnthropicMessages("m", api_key="k"))],
)
async def test_a_missing_extra_is_said_plainly(sdk: str, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, sdk, None)
    with pytest.raises(ModelError, match=rf"pip install 'toolcrib\[{sdk}\]'"):
        await model.respond(REQUEST)


def test_one_model_serves_several_loops() -> None:
    async def once(model: OpenAIChat | None) -> OpenAIChat:
        async with serving(json.dumps(HELLO).encode()) as peer:
            model = model or OpenAIChat("m", base_url=f"{peer.address}/v1")
            model.base_url = f"{peer.address}/v1"
            assert (await model.respond(REQUEST)).message.text == "Hello."
        return model

    asyncio.run(once(asyncio.run(once(None))))


@pytest.mark.parametrize(
    ("cls", "path", "status", "key", "words"),
    [
        (OpenAIChat, "/v1", "401 Unauthorized", None, "no key was sent: pass api_key="),
        (AnthropicMessages, "", "401 Unauthorized", None, "no key was sent: pass api_key="),
        (OpenAIChat, "/v1", "401 Unauthorized", "sk-1234567890", ""),
        (OpenAIChat, "", "404 Not Found", None, "most servers want /v1 at the end of their address"),
        (OpenAIChat, "/v1", "404 Not Found", None, ""),
        (AnthropicMessages, "/v1", "404 Not Found", None, "the address is wanted without /v1"),
        (AnthropicMessages, "", "404 Not Found", None, ""),
    ],
)
async def test_what_was_missed_is_said(cls: Any, path: str, status: str, key: str | None, words: str,
                                       monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """A key of the environment goes nowhere but to its provider, so a server of one's own may have got none."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "sk-of-somebody-else")
    async with serving(b'{"error": {"message": "no"}}', status=status) as peer:
        with pytest.raises(ModelError) as caught:
            await cls("m", base_url=f"{peer.address}{path}", api_key=key).respond(REQUEST)
    assert words in str(caught.value)
    assert str(caught.value).endswith(")") == bool(words)


@pytest.mark.parametrize("cls", [OpenAIChat, AnthropicMessages])
def test_a_model_outlives_its_loops_in_silence(cls: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The client of a loop that ended is forgotten; nothing tries to close it in another."""
    answer = json.dumps(HELLO | MESSAGE).encode()
    reply = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(answer)

    class OneByOne(BaseHTTPRequestHandler):
        def handle(self) -> None:
            while head := self.rfile.readline():  # the connection stays open, as servers keep it
                size = 0
                while head.strip():
                    if head.lower().startswith(b"content-length:"):
                        size = int(head.split(b":")[1])
                    head = self.rfile.readline()
                self.rfile.read(size)
                self.wfile.write(reply + answer)

    with ThreadingHTTPServer(("127.0.0.1", 0), OneByOne) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        model = cls("m", base_url=f"http://127.0.0.1:{server.server_port}/v1")

        async def once() -> str:
            said = (await model.respond(REQUEST)).message.text
            gc.collect()
            await asyncio.sleep(0)
            return said

        assert [asyncio.run(once()) for _ in range(3)] == ["Hello."] * 3
        server.shutdown()
        asyncio.run(model.aclose())
    gc.collect()
    assert caplog.text == ""
