"""Every recorded exchange of Ollama's own format passes through its codec: whole, by lines, by bytes, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.cassettes import all_records, check_answer, check_chunks, decode, records
from tests.conformance.wire_reader import grow
from tests.test_model_http import Answer, as_json, serving
from toolcrib.call import ToolCall
from toolcrib.codecs import ModelError
from toolcrib.codecs.ndjson import JSONLines
from toolcrib.codecs.ollama import OllamaCodec
from toolcrib.content import Image, Text
from toolcrib.messages import Message, MessagePart, Reasoning, Request, Response, ResultPart
from toolcrib.models.ollama import Ollama
from toolcrib.models.replay import recorded_events
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec

API = "ollama"
ASKED = Request([Message.user("Hi")])
CODEC = OllamaCodec()

# Where our body differs from the recorded one, and why; `canonical` makes both sides alike.
DIFFERENT = {
    "empty lists": "of tools, images or calls say nothing, we leave them out",
    "stream left out": "means that it streams; we always say it",
    "tool_name": "names the call that a result belongs to; older clients left it out",
    "description": "of a tool stands in its function",
}


def check_usage(response: Response, last: dict[str, Any]) -> None:
    assert response.usage.input_tokens == (last.get("prompt_eval_count") or 0)
    assert response.usage.output_tokens == (last.get("eval_count") or 0)


@each("record", lambda: records(API, streamed=False))
def test_whole_answers(record: dict[str, Any]) -> None:
    body, status = record["response"].get("body"), record["response"]["status"] or 200
    if status >= 400:
        error = CODEC.error(body, status)
        assert error.message == body["error"] if isinstance(body, dict) and "error" in body else True
        return
    if not isinstance(body.get("message"), dict) and "response" not in body:
        with pytest.raises(ModelError):  # of another interface of the server
            CODEC.response(body)
        return
    response = CODEC.response(body)
    check_answer(record, response, stops={"stop": {"end", "tool_calls"}})
    check_usage(response, body)


def lines(record: dict[str, Any]) -> bytes:
    found = record["response"].get("ndjson_lines") or ()
    return "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in found).encode()


def fed(data: bytes, step: int) -> Iterator[dict[str, Any]]:
    reader = JSONLines()
    for position in range(0, len(data), step):
        yield from reader.feed(data[position : position + step])
    yield from reader.finish()


@each("record", lambda: records(API, streamed=True))
def test_streamed_answers(record: dict[str, Any]) -> None:
    events = list(recorded_events(record["response"]))
    chunks, response = decode(CODEC, iter(events))
    if not any(isinstance(event.get("message"), dict) or "response" in event for event in events):
        return  # of another interface of the server: a ModelError, which `decode` met
    check_answer(record, response)
    check_chunks(chunks, response)
    check_usage(response, events[-1])
    data = lines(record)
    for step in (1, 7, max(len(data), 1)) if data else ():
        assert decode(CODEC, fed(data, step)) == (chunks, response)


@each("record", lambda: records(API))
async def test_recorded_bytes_over_a_socket(record: dict[str, Any]) -> None:
    recorded, data = record["response"], lines(record)
    failed = (recorded["status"] or 200) >= 400
    body: Any = recorded.get("body") or recorded.get("body_text") or ""
    answer = Answer(data, "application/x-ndjson") if data else as_json(body, status=recorded["status"] or 200)
    async with serving(answer) as peer:
        model = Ollama("m", base_url=peer.address, max_retries=0)
        if failed or not (b'"message"' in data or (isinstance(body, dict) and "message" in body)):
            with pytest.raises(ModelError):
                await model.respond(ASKED)
        elif data:
            items = [item async for item in model.stream(ASKED)]
            assert items[-1] == decode(CODEC, recorded_events(recorded))[1]
        else:
            assert await model.respond(ASKED) == CODEC.response(body)
        await model.aclose()


REQUESTED = [
    pytest.param(record, id=record["id"])
    for record in all_records(API)
    if record["request"] and isinstance(record["request"]["body"], dict)
    if "messages" in record["request"]["body"]
]


@pytest.mark.parametrize("record", REQUESTED)
def test_requests_are_rebuilt_from_neutral_form(record: dict[str, Any]) -> None:
    body = record["request"]["body"]
    ours = CODEC.request(neutral(body), model=body.get("model") or "", stream=body.get("stream", True))
    assert canonical(ours) == canonical(body)


def neutral(body: dict[str, Any]) -> Request:
    """A recorded body in neutral form: the other direction of the codec. Options stay as they came."""
    messages: list[Message] = []
    waiting: list[ToolCall] = []
    for wire in body["messages"]:
        known = ("role", "content", "images", "thinking", "tool_calls", "tool_name", "tool_call_id", "name")
        own = {name: value for name, value in wire.items() if name not in known}
        if wire["role"] == "tool":
            result = ToolResult((Text(wire.get("content") or ""),), extras={"ollama": own} if own else None)
            if not messages or messages[-1].role != "tool":
                messages.append(Message("tool"))
            grow(messages, ResultPart(waiting.pop(0), result))
            continue
        parts: list[MessagePart] = []
        if wire.get("thinking"):
            parts.append(Reasoning(wire["thinking"], {"ollama": {"field": "thinking"}}))
        if wire.get("content"):
            parts.append(Text(wire["content"]))
        parts.extend(Image(data) for data in wire.get("images") or ())
        waiting = [
            ToolCall(call["function"]["name"], call["function"].get("arguments") or {}, call.get("id") or "")
            for call in wire.get("tool_calls") or ()
        ]
        messages.append(Message(wire["role"], [*parts, *waiting], {"ollama": own} if own else {}))
    tools = [
        ToolSpec(
            tool["function"]["name"],
            tool["function"].get("description") or "",
            tool["function"].get("parameters") or {"type": "object"},
        )
        for tool in body.get("tools") or ()
    ]
    rest = {
        name: value for name, value in body.items() if name not in ("model", "messages", "tools", "stream")
    }
    return Request(messages, tools, extras={"ollama": rest} if rest else {})


def canonical(body: dict[str, Any]) -> dict[str, Any]:
    """A body without the differences that mean nothing."""
    rest = {
        name: value
        for name, value in body.items()
        if name not in ("messages", "tools") and value not in (None, [], {})
    }
    tools = [tool["function"]["name"] for tool in body.get("tools") or ()]
    return {
        "stream": True,
        **rest,
        "tools": tools,
        "messages": [message(item) for item in body["messages"] if said(item)],
    }


def said(wire: dict[str, Any]) -> bool:
    return wire["role"] == "tool" or any(value for name, value in wire.items() if name != "role")


def message(wire: dict[str, Any]) -> dict[str, Any]:
    calls = [
        {"name": call["function"]["name"], "arguments": call["function"].get("arguments") or {}}
        for call in wire.get("tool_calls") or ()
    ]
    kept = {name: value for name, value in wire.items() if name not in ("tool_name", "name", "tool_call_id")}
    both = {**kept, "tool_calls": calls}
    return {name: value for name, value in both.items() if value not in (None, "", [])}
