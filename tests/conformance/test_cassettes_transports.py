"""Recorded bytes over a real socket, through the real SDKs and our transports."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.cassettes import check_chunks, wire_bytes
from tests.conformance.test_cassettes_answers import check, load
from toolcrib.messages import Message, Request, Response
from toolcrib.models import AnthropicMessages, OpenAIChat
from toolcrib.spec import ToolSpec

PER_FILE = 12  # one socket and client each: enough to meet every provider, not every recording


class Server(ThreadingHTTPServer):
    """Answers every request with `answer`, and keeps what it was sent."""

    answer: dict[str, Any]
    received: dict[str, Any]
    headers: dict[str, str]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        self.server.received = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.answer
        streamed = answer["framing"] == "sse"
        data = wire_bytes(answer) if streamed else json.dumps(answer["body"]).encode()
        self.send_response(answer["status"] or 200)
        self.send_header("content-type", "text/event-stream" if streamed else "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        for start in range(0, len(data), 1000):  # cuts events wherever they are
            self.wfile.write(data[start : start + 1000])
            self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def model_for(record: dict[str, Any], server: Server) -> Any:
    address = f"http://127.0.0.1:{server.server_port}"
    if record["api"] == "messages":
        return AnthropicMessages("m", base_url=address, max_retries=0)
    return OpenAIChat("m", base_url=f"{address}/v1", max_retries=0)


def sample() -> list[Any]:
    chosen: dict[tuple[str, bool], list[Any]] = {}
    for param in [*load(streamed=False), *load(streamed=True)]:
        record = param.values[0]
        answer = record["response"]
        if (answer["status"] or 200) == 200 and record["finish_reason"]:
            group = chosen.setdefault((record["provider"], answer["framing"] == "sse"), [])
            if len(group) < (PER_FILE if record["provider"] in ("openai", "anthropic") else 2):
                group.append(param)
    return [param for group in chosen.values() for param in group]


REQUEST = Request([Message.user("Hi")], [ToolSpec("f", "Does f.", {"type": "object", "properties": {}})])


@each("record", sample)
async def test_recorded_bytes_through_the_sdks(record: dict[str, Any], server: Server) -> None:
    server.answer = record["response"]
    model = model_for(record, server)
    streamed = record["response"]["framing"] == "sse"
    if streamed:
        items = [item async for item in model.stream(REQUEST)]
        assert [item for item in items if isinstance(item, Response)] == items[-1:]
        response = items[-1]
        check_chunks(items[:-1], response)
    else:
        response = await model.respond(REQUEST)
    check(record, response)
    expected = model.codec.request(REQUEST, model="m", stream=streamed)
    assert {name: value for name, value in server.received.items() if value is not False} == expected
    await model.aclose()
