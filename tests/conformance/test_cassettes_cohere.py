"""Every recorded exchange of Cohere's chat passes through its codec: whole, by events, by bytes, and back again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.cassettes import (
    all_records,
    check_answer,
    check_chunks,
    decode,
    event_feeds,
    records,
    wire_bytes,
)
from tests.conformance.wire_reader import grow
from tests.test_model_http import Answer, as_json, serving
from toolcrib.call import ToolCall
from toolcrib.codecs import ModelError
from toolcrib.codecs.cohere import CohereCodec
from toolcrib.content import Image, Text
from toolcrib.messages import (
    Message,
    MessagePart,
    Opaque,
    Reasoning,
    Request,
    Response,
    ResultPart,
    ToolChoice,
)
from toolcrib.models.cohere import Cohere
from toolcrib.models.replay import recorded_events
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec

API = "cohere_v2"
ASKED = Request([Message.user("Hi")])
CODEC = CohereCodec()
STOPS = {
    "COMPLETE": {"end", "tool_calls"},
    "STOP_SEQUENCE": {"end"},
    "MAX_TOKENS": {"length"},
    "TOOL_CALL": {"tool_calls", "end"},
}

# Where our body differs from the recorded one, and why; `canonical` makes both sides alike.
DIFFERENT = {
    "text as block": "one text may be sent as a string or as a list of one block; we choose one of them",
    "stream false": "is the default, we leave it out",
    "empty lists": "of tools, calls or documents say nothing, we leave them out",
    "nothing said": "an assistant's message without content and calls says nothing, so it is left out",
    "JSON spacing": "of arguments may differ where they were no sound object",
}
# Of an answer that names them, one is not an answer of this interface.
NOT_CHAT = "an answer without a message (of the embedding interface) is not a chat answer: a ModelError"


def check_usage(response: Response, usage: dict[str, Any]) -> None:
    tokens = usage.get("tokens") or usage.get("billed_units") or {}
    assert response.usage.input_tokens == int(tokens.get("input_tokens") or 0)
    assert response.usage.output_tokens == int(tokens.get("output_tokens") or 0)
    assert response.usage.cache_read_tokens == int(usage.get("cached_tokens") or 0)


@each("record", lambda: records(API, streamed=False))
def test_whole_answers(record: dict[str, Any]) -> None:
    body, status = record["response"].get("body"), record["response"]["status"] or 200
    if status >= 400:
        error = CODEC.error(body, status)
        assert error.message == body["message"] if isinstance(body, dict) and "message" in body else True
        return
    if not isinstance(body.get("message"), dict):
        with pytest.raises(ModelError):  # NOT_CHAT
            CODEC.response(body)
        return
    response = CODEC.response(body)
    check_answer(record, response, stops=STOPS)
    check_usage(response, body.get("usage") or {})


@each("record", lambda: records(API, streamed=True))
def test_streamed_answers(record: dict[str, Any]) -> None:
    feeds = event_feeds(record)
    chunks, response = decode(CODEC, feeds["events"]())
    check_answer(record, response, stops=STOPS)
    check_chunks(chunks, response)
    ends = [event["delta"] for event in feeds["events"]() if event.get("type") == "message-end"]
    if ends:
        check_usage(response, ends[-1].get("usage") or {})
    for feed in feeds.values():
        again, same = decode(CODEC, feed())
        assert same == response
        assert again == chunks


@each("record", lambda: records(API))
async def test_recorded_bytes_over_a_socket(record: dict[str, Any]) -> None:
    recorded, streamed = record["response"], record["streaming"]
    if (recorded["status"] or 200) >= 400:
        body = recorded.get("body") or recorded.get("body_text") or ""
        answer = as_json(body, status=recorded["status"])
    elif streamed:
        answer = Answer(wire_bytes(recorded), "text/event-stream")
    else:
        answer = as_json(recorded["body"])
    async with serving(answer) as peer:
        model = Cohere("m", base_url=peer.address, max_retries=0)
        if answer.status >= 400 or not (streamed or isinstance(recorded["body"].get("message"), dict)):
            with pytest.raises(ModelError):
                await model.respond(ASKED)
        elif streamed:
            items = [item async for item in model.stream(ASKED)]
            assert items[-1] == decode(CODEC, recorded_events(recorded))[1]
        else:
            assert await model.respond(ASKED) == CODEC.response(recorded["body"])
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
    ours = CODEC.request(neutral(body), model=body.get("model") or "", stream=bool(body.get("stream")))
    assert canonical(ours) == canonical(body)


def exchanges() -> list[Any]:
    answers = [record for record in all_records(API) if (record["response"]["status"] or 200) < 400]
    chat = [
        record
        for record in answers
        if record["response"]["framing"] != "json"
        or isinstance(record["response"]["body"].get("message"), dict)
    ]
    return [pytest.param(record, id=record["id"]) for record in chat]


@each("record", exchanges)
def test_an_answer_goes_back_as_it_came(record: dict[str, Any]) -> None:
    """Plan, thinking, text, calls and citations of an answer stand in the next request where they stood."""
    recorded = record["response"]
    if recorded["framing"] == "json":
        said, answer = recorded["body"]["message"], CODEC.response(recorded["body"]).message
    else:
        said, answer = (
            merged(list(recorded_events(recorded))),
            decode(CODEC, recorded_events(recorded))[1].message,
        )
    results = [ResultPart(call, ToolResult.of("ok")) for call in answer.calls]
    request = Request([Message.user("Hi"), answer, Message("tool", [*results]), Message.user("Go on.")])
    sent = CODEC.request(request, model="m", stream=False)["messages"]
    back = next((item for item in sent if item["role"] == "assistant"), {"role": "assistant"})
    assert message(back) == message({"role": "assistant", **said})


def merged(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The message of a stream, put together by the plainest reading of its events."""
    whole: dict[str, Any] = {"tool_plan": "", "content": {}, "tool_calls": {}, "citations": []}
    for event in events:
        part = (event.get("delta") or {}).get("message") or {}
        if event["type"] == "tool-plan-delta":
            whole["tool_plan"] += part["tool_plan"]
        elif event["type"] in ("content-start", "content-delta"):
            block = whole["content"].setdefault(event["index"], {"text": "", "thinking": ""})
            for name in block:
                block[name] += part["content"].get(name) or ""
        elif event["type"] == "tool-call-start":
            whole["tool_calls"][len(whole["tool_calls"])] = json.loads(json.dumps(part["tool_calls"]))
        elif event["type"] == "tool-call-delta":
            call = whole["tool_calls"][len(whole["tool_calls"]) - 1]
            call["function"]["arguments"] += part["tool_calls"]["function"]["arguments"]
        elif event["type"] == "citation-start":
            whole["citations"].append(part["citations"])
    blocks = [
        {"type": name, name: text}
        for block in whole["content"].values()
        for name, text in block.items()
        if text
    ]
    return {**whole, "content": blocks, "tool_calls": list(whole["tool_calls"].values())}


def neutral(body: dict[str, Any]) -> Request:
    """A recorded body in neutral form: the other direction of the codec."""
    messages: list[Message] = []
    calls: dict[str, ToolCall] = {}
    for wire in body["messages"]:
        own = without(wire, "role", "content", "tool_plan", "tool_calls", "tool_call_id")
        content = [part(block) for block in blocks(wire.get("content"))]
        if wire["role"] == "tool":
            kept = {"cohere": own} if own else None
            result = ToolResult(tuple(p for p in content if isinstance(p, Text)), extras=kept)
            if not messages or messages[-1].role != "tool":
                messages.append(Message("tool"))
            grow(messages, ResultPart(calls[wire["tool_call_id"]], result))
            continue
        if wire.get("tool_plan"):
            content.insert(0, Reasoning(wire["tool_plan"], {"cohere": {"field": "tool_plan"}}))
        for call in wire.get("tool_calls") or ():
            function = call["function"]
            calls[call["id"]] = ToolCall(function["name"], function["arguments"], call["id"])
            content.append(calls[call["id"]])
        messages.append(Message(wire["role"], content, {"cohere": own} if own else {}))
    tools = [
        ToolSpec(
            tool["function"]["name"],
            tool["function"].get("description") or "",
            tool["function"].get("parameters") or {"type": "object"},
        )
        for tool in body.get("tools") or ()
    ]
    modes = {"NONE": "none", "REQUIRED": "required"}
    choice: Any = modes.get(body.get("tool_choice") or "", "auto")
    fields = (
        "model",
        "messages",
        "tools",
        "tool_choice",
        "stream",
        "max_tokens",
        "temperature",
        "stop_sequences",
    )
    rest = without(body, *fields, "logprobs")
    return Request(
        messages,
        tools,
        ToolChoice(choice),
        max_tokens=body.get("max_tokens"),
        temperature=body.get("temperature"),
        stop=tuple(body.get("stop_sequences") or ()),
        logprobs=bool(body.get("logprobs")),
        extras={"cohere": rest} if rest else {},
    )


def part(block: dict[str, Any]) -> MessagePart:
    if block["type"] == "text":
        own = without(block, "type", "text")
        return Text(block["text"], {"cohere": own} if own else {})
    if block["type"] == "thinking":
        return Reasoning(block["thinking"], {"cohere": {"field": "thinking"}})
    if block["type"] == "document":
        return Text("", {"cohere": without(block, "type")})
    if block["type"] == "image_url":
        address = block["image_url"]["url"]
        kept = {"cohere": {"image_url": without(block["image_url"], "url")}}
        head, comma, data = address.partition(";base64,")
        if comma:
            return Image(data, media_type=head.removeprefix("data:"), extras=kept)
        return Image(url=address, extras=kept)
    return Opaque("cohere", block)


def blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, dict):
        return [content]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def without(data: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in names}


def canonical(body: dict[str, Any]) -> dict[str, Any]:
    """A body without the differences that mean nothing."""
    said = [message(item) for item in body["messages"]]
    tools = [
        {"name": tool["function"]["name"], "description": tool["function"].get("description") or ""}
        for tool in body.get("tools") or ()
    ]
    rest = {
        name: value
        for name, value in without(body, "messages", "tools").items()
        if value not in (None, [], False)
    }
    return {**rest, "tools": tools, "messages": [item for item in said if item.keys() - {"role"}]}


def message(wire: dict[str, Any]) -> dict[str, Any]:
    content = [block for block in blocks(wire.get("content")) if block != {"type": "text", "text": ""}]
    if all(block.keys() == {"type", "text"} for block in content):
        content = [{"type": "text", "text": "\n".join(block["text"] for block in content)}] if content else []
    calls = [
        {**call, "type": "function", "function": {**call["function"], "arguments": arguments(call)}}
        for call in wire.get("tool_calls") or ()
    ]
    said = {**without(wire, "billed_units"), "content": content, "tool_calls": calls}
    return {name: value for name, value in said.items() if value not in (None, "", [])}


def arguments(call: dict[str, Any]) -> Any:
    return json.loads(call["function"].get("arguments") or "{}") or {}
