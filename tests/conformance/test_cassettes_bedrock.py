"""Every recorded exchange with Bedrock: answers whole, by events and by bytes; requests; real sockets."""

from __future__ import annotations

import base64
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.cassettes import (
    all_records,
    cassettes,
    check_answer,
    check_chunks,
    decode,
    event_feeds,
    records,
)
from tests.conformance.wire_bedrock import read_converse, without
from tests.conformance.wire_reader import answering
from toolcrib.codecs import AnthropicMessagesCodec, Codec, ModelError, OpenAIChatCodec
from toolcrib.codecs.bedrock_converse import BedrockConverseCodec
from toolcrib.codecs.bedrock_media import Documents
from toolcrib.messages import Message, Request, Response
from toolcrib.models.bedrock import BedrockConverse, BedrockMessages
from toolcrib.models.bedrock_frames import ConverseFrames, MessagesFrames
from toolcrib.models.replay import STREAMED
from toolcrib.spec import ToolSpec

CODEC = BedrockConverseCodec()
INNER: dict[str, Codec] = {
    "converse": CODEC,
    "messages": AnthropicMessagesCodec(),
    "chat": OpenAIChatCodec("bedrock"),
}
STOPS = {
    "guardrail_intervened": {"filter"},
    "content_filtered": {"filter"},
    "model_context_window_exceeded": {"length"},
}

# Where we differ from what was noted or recorded, and why.
DIFFERENT = {
    "cited text": (
        "what a whole answer says with its sources is text of the answer, as it is when it streams; the notes"
        " left it out"
    ),
    "status success": "is the default, we leave it out",
    "results first": "and the provider's own tools last, as the service wants it in every place",
    "document name": "holds only what is documented for it; one underscore was let through",
    "nothing said": "no instructions and no settings are left out where the recording client sent them empty",
    "text in pieces": "Nova's own stream ends a block with every piece; its client sent them back as one",
    "lost by the client": "a recording client sent calls back without the text before them",
    "blank text": "is refused and says nothing: we leave it out, a recording client sent a full stop for it",
    "type of a call": "is no field of the request, so a call goes back without it",
}
FILLED = "."


def cited_text(record: dict[str, Any]) -> str | None:
    """The text of an answer with what it cites; None where nothing is cited."""
    body = record["response"].get("body")
    blocks = ((body or {}).get("output") or {}).get("message", {}).get("content", []) if body else []
    if not any("citationsContent" in block for block in blocks):
        return None
    return "".join(
        piece.get("text", "")
        for block in blocks
        for piece in (block.get("citationsContent") or {"content": [block]})["content"]
    )


def check_usage(response: Response, usage: dict[str, Any]) -> None:
    if "inputTokens" not in usage:
        return
    read = usage.get("cacheReadInputTokens", usage.get("cacheReadInputTokenCount")) or 0
    written = usage.get("cacheWriteInputTokens", usage.get("cacheWriteInputTokenCount")) or 0
    assert response.usage.input_tokens == usage["inputTokens"] + read + written
    assert response.usage.output_tokens == usage["outputTokens"]
    assert (response.usage.cache_read_tokens, response.usage.cache_write_tokens) == (read, written)
    if not read and not written:
        assert response.usage.total_tokens == usage.get("totalTokens", response.usage.total_tokens)


def stream_usage(events: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for event in events:
        found |= (event.get("metadata") or {}).get("usage") or {}
    return found


def is_error(record: dict[str, Any]) -> bool:
    return (record["response"]["status"] or 200) >= 400


def frames(record: dict[str, Any], reader: type[ConverseFrames], step: int) -> Iterator[dict[str, Any]]:
    data, read = base64.b64decode(record["response"]["body_base64"]), reader()
    for start in range(0, len(data), step):
        yield from read.feed(data[start : start + step])
    yield from read.finish()


@each("record", lambda: records("converse", streamed=False))
def test_whole_answers(record: dict[str, Any]) -> None:
    body = record["response"]["body"]
    if is_error(record):
        with pytest.raises(ModelError):
            CODEC.response(body)
        error = CODEC.error(body, record["response"]["status"])
        noted = record["error"]
        assert error.message == (noted["message"] if isinstance(noted, dict) else noted)
        assert error.retryable is (record["response"]["status"] in (429, 500, 503))
        return
    response = CODEC.response(body)
    check_answer(record, response, stops=STOPS, text=cited_text(record))
    check_usage(response, body.get("usage") or {})


@each("record", lambda: records("converse", streamed=True))
def test_streamed_answers(record: dict[str, Any]) -> None:
    feeds: dict[str, Callable[[], Iterator[dict[str, Any]]]] = dict(event_feeds(record))
    if "body_base64" in record["response"]:
        feeds["whole"] = lambda: frames(record, ConverseFrames, 1 << 30)
        feeds["bytes"] = lambda: frames(record, ConverseFrames, 1)
    chunks, response = decode(CODEC, feeds["events"]())
    check_answer(record, response, stops=STOPS)
    check_chunks(chunks, response)
    check_usage(response, stream_usage(list(feeds["events"]())))
    for feed in feeds.values():
        assert decode(CODEC, feed()) == (chunks, response)


@each("record", lambda: records("invoke", streamed=False))
def test_whole_answers_in_the_models_own_format(record: dict[str, Any]) -> None:
    codec, body = INNER[record["body_dialect"]], record["response"]["body"]
    if is_error(record):
        assert isinstance(codec.error(body, record["response"]["status"]), ModelError)
        return
    response = codec.response(body)
    check_answer(record, response, stops=STOPS)
    check_usage(response, body.get("usage") or {})


@each("record", lambda: records("invoke", streamed=True))
def test_streamed_answers_in_the_models_own_format(record: dict[str, Any]) -> None:
    codec = INNER[record["body_dialect"]]
    inner = [
        event if isinstance(event, dict) else json.loads(event)
        for event in record["response"]["inner_events"]
    ]
    chunks, response = decode(codec, iter(inner))
    check_answer(record, response, stops=STOPS)
    check_chunks(chunks, response)
    check_usage(response, stream_usage(inner))
    for step in (1 << 30, 1):
        assert decode(codec, frames(record, MessagesFrames, step)) == (chunks, response)


def own_body(record: dict[str, Any]) -> bool:
    """Whether the request's body is one of Converse; Nova's own is alike."""
    request = record["request"]
    return (
        bool(request)
        and isinstance(request["body"], dict)
        and (record["api"] == "converse" or record.get("body_dialect") == "converse")
    )


def rebuilt(record: dict[str, Any], request: Request) -> dict[str, Any]:
    return CODEC.request(request, model=record["model"] or "", stream=bool(record["streaming"]))


def canonical(body: dict[str, Any]) -> dict[str, Any]:
    """A body without the differences that mean nothing."""
    said = {name: value for name, value in body.items() if value not in ([], {})}
    config = said.pop("toolConfig", {})
    tools = [
        {"toolSpec": without(tool["toolSpec"], "inputSchema")} if "toolSpec" in tool else tool
        for tool in sorted(config.get("tools", ()), key=lambda tool: "systemTool" in tool)
    ]
    choice = {key: value for key, value in config.get("toolChoice", {}).items() if key != "auto"}
    messages = [{**message, "content": blocks(message["content"])} for message in body["messages"]]
    return {**said, "messages": messages, "tools": tools, "choice": choice}


def blocks(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    said = [block for item in content if (block := plain(item)) is not None]
    answered = any("toolResult" in block for block in said)
    return sorted(said, key=lambda block: answered and "toolResult" not in block)


def plain(block: dict[str, Any]) -> dict[str, Any] | None:
    if "text" in block and not block["text"].strip():
        return None
    if "toolUse" in block and block["toolUse"].get("type") != "server_tool_use":
        return {"toolUse": without(block["toolUse"], "type")}
    if result := block.get("toolResult"):
        status = {} if result.get("status") in ("success", None) else {"status": result["status"]}
        return {"toolResult": {**without(result, "status"), **status, "content": blocks(result["content"])}}
    if document := block.get("document"):
        return {"document": {**document, "name": Documents().name(document["name"])}}
    return block


REQUESTS = [record for api in ("converse", "invoke") for record in all_records(api) if own_body(record)]


@each("record", lambda: [pytest.param(record, id=record["id"]) for record in REQUESTS])
def test_requests(record: dict[str, Any]) -> None:
    """A recorded body, read into the neutral form and written again, says the same."""
    body = record["request"]["body"]
    assert canonical(rebuilt(record, read_converse(body))) == canonical(body)


@each("record", lambda: [pytest.param(record, id=record["id"]) for record in REQUESTS])
def test_tools_are_declared_as_they_were(record: dict[str, Any]) -> None:
    """Recorded schemas lie within the dialect, so that they are sent as they came."""
    body = record["request"]["body"]
    sent, theirs = (
        [tool["toolSpec"]["inputSchema"]["json"] for tool in tools if "toolSpec" in tool]
        for tools in (
            rebuilt(record, read_converse(body)).get("toolConfig", {}).get("tools", []),
            (body.get("toolConfig") or {}).get("tools", []),
        )
    )
    for mine, recorded in zip(sent, theirs, strict=True):
        assert mine.get("properties", {}).keys() == recorded.get("properties", {}).keys()


def decoded(record: dict[str, Any]) -> Response:
    if record["response"]["framing"] in STREAMED:
        inner = record["response"].get("inner_events")
        return decode(CODEC, iter(inner) if inner else event_feeds(record)["events"]())[1]
    return CODEC.response(record["response"]["body"])


def followed() -> list[Any]:
    pairs = []
    for api in ("converse", "invoke"):
        for cassette in cassettes(api):
            for before, after in itertools.pairwise(cassette):
                if own_body(before) and own_body(after) and not is_error(before):
                    pairs.append(pytest.param(before, after, id=after["id"]))
    return pairs


@each(("before", "after"), followed)
def test_an_answer_goes_back_as_it_came(before: dict[str, Any], after: dict[str, Any]) -> None:
    """The answer that we decoded, sent back with its results, is what the recording client sent back."""
    request, answer = read_converse(after["request"]["body"]), decoded(before).message
    at = max(
        (i for i, message in enumerate(request.messages) if message.role == "assistant"),
        default=None,
    )
    if at is None or [call.id for call in request.messages[at].calls] != [call.id for call in answer.calls]:
        pytest.skip("the recording client did not go on from that answer")
    calls = {call.id: call for call in answer.calls}
    request.messages[at:] = answering(request.messages[at:], lambda call: calls.get(call.id, call))
    request.messages[at] = answer
    mine, theirs = canonical(rebuilt(after, request)), canonical(after["request"]["body"])
    for ours, sent in zip(mine["messages"], theirs["messages"], strict=True):
        assert essence(ours, sent) == essence(sent, sent)


def essence(message: dict[str, Any], recorded: dict[str, Any]) -> dict[str, Any]:
    """A message without what the recording client lost or added, its neighbouring texts as one."""
    spoken = any("text" in block for block in recorded["content"]) or recorded["role"] != "assistant"
    content: list[dict[str, Any]] = []
    for block in message["content"]:
        if "text" in block and (not spoken or block["text"] == FILLED):
            continue
        if content and "text" in block and "text" in content[-1]:
            content[-1] = {"text": content[-1]["text"] + block["text"]}
        else:
            content.append(block)
    return {**message, "content": content}


class Server(ThreadingHTTPServer):
    """Answers every request with `answer`, and keeps what it was sent."""

    answer: dict[str, Any]
    received: dict[str, Any]
    path: str
    sent_headers: dict[str, str]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        self.server.received = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.path = self.path
        self.server.sent_headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.answer
        framed = answer["framing"] == "aws-eventstream"
        data = base64.b64decode(answer["body_base64"]) if framed else json.dumps(answer["body"]).encode()
        self.send_response(answer["status"] or 200)
        kind = "application/vnd.amazon.eventstream" if framed else "application/json"
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        for start in range(0, len(data), 100):  # cuts frames wherever they are
            self.wfile.write(data[start : start + 100])
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


def on_the_wire() -> list[Any]:
    found = []
    for param in [*records("converse"), *records("invoke")]:
        record = param.values[0]
        real = record["api"] == "converse" or record["body_dialect"] == "messages"
        if real and record["response"]["framing"] in ("json", "aws-eventstream") and not is_error(record):
            found.append(param)
    return found


REQUEST = Request([Message.user("Hi")], [ToolSpec("f", "Does f.", {"type": "object", "properties": {}})])


@each("record", on_the_wire)
async def test_recorded_bytes_over_a_socket(
    record: dict[str, Any], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"ACCESS_KEY_ID": "AKIDEXAMPLE", "SECRET_ACCESS_KEY": "not-a-real-secret"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    server.answer = record["response"]
    make = BedrockConverse if record["api"] == "converse" else BedrockMessages
    model = make("vendor.model-v1:0", region="us-east-1", base_url=f"http://127.0.0.1:{server.server_port}")
    streamed = record["response"]["framing"] != "json"
    if streamed:
        items = [item async for item in model.stream(REQUEST)]
        response = items[-1]
        assert isinstance(response, Response)
        check_chunks([item for item in items if not isinstance(item, Response)], response)
    else:
        response = await model.respond(REQUEST)
    check_answer(record, response, stops=STOPS, text=cited_text(record))
    action = {"converse": ("converse", "converse-stream")}.get(
        record["api"], ("invoke", "invoke-with-response-stream")
    )[streamed]
    assert server.path == f"/model/vendor.model-v1%3A0/{action}"
    assert "Credential=AKIDEXAMPLE/" in server.sent_headers["authorization"]
    if record["api"] == "converse":
        assert server.received == CODEC.request(REQUEST, model="vendor.model-v1:0", stream=streamed)
    else:
        assert server.received["anthropic_version"]
        assert not {"model", "stream"} & server.received.keys()
    await model.aclose()
