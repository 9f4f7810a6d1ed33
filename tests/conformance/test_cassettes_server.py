"""End to end: a local server plays whole recorded conversations to the real SDKs, and the agent finishes its run."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.cassettes import cassettes, wire_bytes
from tests.conformance.test_cassettes_agent import check_transcript, tools_of
from tests.legal_bodies import CHECKERS
from toolcrib import Agent
from toolcrib.agent import Reason
from toolcrib.messages import Message
from toolcrib.models import AnthropicMessages, OpenAIChat
from toolcrib.models.bedrock import BedrockConverse, BedrockMessages
from toolcrib.models.cohere import Cohere
from toolcrib.models.gemini import Gemini
from toolcrib.models.ollama import Ollama
from toolcrib.models.openai_responses import OpenAIResponses

PER_PROVIDER = 6  # conversations: enough to meet every provider, not every recording
# Each interface: the class that speaks it, and whose rules its bodies have to keep.
APIS: dict[str, tuple[Callable[..., Any], str]] = {
    "chat": (OpenAIChat, "others"),
    "responses": (OpenAIResponses, "responses"),
    "messages": (AnthropicMessages, "anthropic"),
    "generateContent": (Gemini, "gemini"),
    "converse": (BedrockConverse, "bedrock"),
    "invoke": (BedrockMessages, "anthropic"),
    "cohere_v2": (Cohere, "cohere"),
    "ollama": (Ollama, "ollama"),
}
KINDS = {
    "sse": "text/event-stream",
    "json": "application/json",
    "json-array-stream": "application/json",
    "ndjson": "application/x-ndjson",
    "aws-eventstream": "application/vnd.amazon.eventstream",
}


class Server(ThreadingHTTPServer):
    """Answers with the next exchange of `group`, and keeps the bodies that it was sent."""

    group: list[dict[str, Any]]
    bodies: list[dict[str, Any]]


class Handler(BaseHTTPRequestHandler):
    disable_nagle_algorithm = (
        True  # a small piece would wait until the client acknowledges the one before, 40 ms
    )
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = self.server.group[len(self.server.bodies)]["response"]
        self.server.bodies.append(body)
        data = bytes_of(answer)
        self.send_response(answer["status"] or 200)
        self.send_header("content-type", KINDS.get(answer["framing"], "text/plain"))
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        for start in range(0, len(data), 500):  # cuts events wherever they are
            self.wfile.write(data[start : start + 500])
            self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def bytes_of(answer: dict[str, Any]) -> bytes:
    framing = answer["framing"]
    if framing == "sse":
        return wire_bytes(answer)
    if framing == "aws-eventstream":
        return base64.b64decode(answer["body_base64"])
    if framing == "ndjson":
        lines = (line if isinstance(line, str) else json.dumps(line) for line in answer["ndjson_lines"])
        return "".join(f"{line}\n" for line in lines).encode()
    return json.dumps(answer["body"]).encode() if "body" in answer else str(answer["body_text"]).encode()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def playable(group: list[dict[str, Any]]) -> bool:
    """Whether the bytes are known, and are those of this interface's own format."""
    return all(
        record["response"]["framing"] != "decoded-eventstream"
        and record.get("body_dialect", "messages") == "messages"
        for record in group
    )


def sample() -> list[Any]:
    chosen: dict[tuple[str, str], list[Any]] = {}
    for api in APIS:
        # Those with most exchanges first: they say most.
        for group in sorted(cassettes(api), key=len, reverse=True):
            if playable(group):
                same = chosen.setdefault((api, group[0]["provider"]), [])
                same.append(pytest.param(group, id=f"{api}:{group[0]['id']}"))
    return [param for same in chosen.values() for param in same[:PER_PROVIDER]]


def model_for(group: list[dict[str, Any]], server: Server) -> Any:
    address = f"http://127.0.0.1:{server.server_port}"
    api = group[0]["api"]
    more = {"region": "us-east-1"} if api in ("converse", "invoke") else {}
    return APIS[api][0]("m", base_url=address, api_key="a-key-of-ours", max_retries=0, **more)


@each("group", sample)
async def test_the_agent_finishes_its_run(group: list[dict[str, Any]], server: Server) -> None:
    server.group, server.bodies = group, []
    seen: list[str] = []
    model = model_for(group, server)
    agent = Agent(model, tools_of(group, seen), autonomy="full", max_failures=99)
    messages: list[Message] = []
    while len(server.bodies) < len(group):
        before = len(server.bodies)
        run = agent.start("go on", messages=messages)
        kinds = [type(event).__name__ async for event in run]
        outcome = await run
        messages = outcome.messages
        check_transcript(messages)
        assert kinds[-1] == "RunFinished"
        assert len(server.bodies) > before
        last = group[len(server.bodies) - 1]
        if last["expected_tool_calls"] or (last["response"]["status"] or 200) >= 400 or last.get("error"):
            break  # the recording ends before its last answer, or with an error
        assert outcome.reason in (Reason.ANSWERED, Reason.REFUSED), outcome.detail
    await model.aclose()
    asked = [call["name"] for record in group[: len(server.bodies)] for call in record["expected_tool_calls"]]
    assert sorted(seen) == sorted(asked)
    for body in server.bodies:
        CHECKERS[APIS[group[0]["api"]][1]](body)
    sent = json.dumps(server.bodies[-1])
    answered = [
        call["name"] for record in group[: len(server.bodies) - 1] for call in record["expected_tool_calls"]
    ]
    assert all(sent.count(f"the result of {name}") >= answered.count(name) for name in answered)
