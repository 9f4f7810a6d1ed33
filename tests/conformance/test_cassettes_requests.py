"""Recorded requests, rebuilt from neutral messages: our body says the same as what was sent and accepted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.conftest import shared_dir
from tests.conformance.wire_reader import answering, blocks, plain, read_chat, read_messages, without
from toolcrib.codecs import AnthropicMessagesCodec, Codec, OpenAIChatCodec
from toolcrib.codecs.pairing import EMPTY_ANSWER
from toolcrib.messages import Message, Opaque, Request, ResultPart
from toolcrib.models.replay import recorded_events
from toolcrib.result import ToolResult

# Where our body differs from the recorded one, and why; `canonical` makes both sides alike.
DIFFERENT = {
    "text as block": "one text may be sent as a string or as a list of one block; we choose one of them",
    "is_error false": "is the default, we leave it out",
    "strict false": "is the default, we leave it out",
    "tool_choice auto": "is the default, we leave it out",
    "n 1, stream false": "are the defaults, we leave them out",
    "max_tokens": "is called max_completion_tokens at OpenAI, whatever the recording client called it",
    "stream_options": "we always ask for usage",
    "white space alone": "beside calls says nothing and Anthropic refuses it, so it is left out",
    "nothing said": "an assistant's message without text and calls says nothing, so it is left out",
    "lost by the client": "some recording clients sent calls back without the text or thinking before them",
    "JSON spacing": "of arguments may differ where the wire carries an object",
}


def codec_of(record: dict[str, Any]) -> Codec:
    if record["api"] == "messages":
        return AnthropicMessagesCodec()
    return OpenAIChatCodec("openai" if record["provider"] == "azure_openai" else record["provider"])


def recorded() -> list[dict[str, Any]]:
    folder = shared_dir() / "corpora" / "provider-cassettes"
    lines = (line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text("utf-8").split("\n"))
    records = (json.loads(line) for line in lines if line.strip())
    return [record for record in records if record["api"] in ("chat", "messages")]


def exchanges() -> list[dict[str, Any]]:
    return [
        record
        for record in recorded()
        if record["request"]
        and isinstance(record["request"]["body"], dict)
        and "messages" in record["request"]["body"]
    ]


RECORDS = exchanges()
BY_PLACE = {(record["source"]["file"], record["source"]["index"]): record for record in RECORDS}
AFTER_RESULTS = [
    record
    for record in RECORDS
    if record.get("request_has_tool_results")
    and (record["source"]["file"], record["source"]["index"] - 1) in BY_PLACE
]


def neutral(record: dict[str, Any]) -> Request:
    codec, body = codec_of(record), record["request"]["body"]
    return (
        read_messages(body, codec.provider)
        if record["api"] == "messages"
        else read_chat(body, codec.provider)
    )


def beyond_us(request: Request) -> bool:
    """A user's message holds a block that the neutral form has no part for (a file kept by the provider)."""
    return any(
        isinstance(part, Opaque)
        for message in request.messages
        if message.role == "user"
        for part in message.parts
    )


def rebuilt(record: dict[str, Any], request: Request) -> dict[str, Any]:
    body = record["request"]["body"]
    return codec_of(record).request(request, model=body.get("model", ""), stream=bool(body.get("stream")))


def canonical(body: dict[str, Any], api: str) -> dict[str, Any]:
    """A body without the differences that mean nothing."""
    rest = without(
        body, "messages", "system", "tools", "max_completion_tokens", "stream_options", "tool_choice"
    )
    if "max_completion_tokens" in body:
        rest["max_tokens"] = body["max_completion_tokens"]
    rest = {name: value for name, value in rest.items() if (name, value) not in (("n", 1), ("stream", False))}
    choice = body.get("tool_choice")
    if choice not in ("auto", {"type": "auto"}, None):
        rest["tool_choice"] = choice
    rest["tools"] = [
        {"name": tool["name"], "description": tool.get("description", "")}
        for tool in (tool.get("function", tool) for tool in body.get("tools") or ())
    ]
    rest["system"] = blocks(body.get("system"))
    rest["messages"] = [
        item
        for item in map(chat_message if api == "chat" else anthropic_message, body["messages"])
        if item["role"] != "assistant" or item.get("content") or item.get("calls") or item.get("text")
    ]
    rest.setdefault("model", "")
    return rest


def chat_message(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    pictures = [part for part in content if part["type"] != "text"] if isinstance(content, list) else []
    text = plain([part for part in content if part["type"] == "text"]) if pictures else plain(content)
    calls = [
        {
            **call,
            "function": {**call["function"], "arguments": json.loads(call["function"]["arguments"] or "{}")},
        }
        for call in message.get("tool_calls") or ()
    ]
    kept = without(message, "content", "tool_calls")
    return {**kept, "text": text if text.strip() or not calls else "", "pictures": pictures, "calls": calls}


def anthropic_message(message: dict[str, Any]) -> dict[str, Any]:
    kept = [block for block in blocks(message["content"]) if block["type"] != "text" or block["text"].strip()]
    return {"role": message["role"], "content": [anthropic_block(block) for block in kept]}


def anthropic_block(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] != "tool_result":
        return block
    content = [
        anthropic_block(part) for part in blocks(block.get("content")) if part.get("text", "-").strip()
    ]
    block = without(block, "is_error") if not block.get("is_error") else block
    return {**block, "content": content}


@each("record", lambda: [pytest.param(record, id=record["id"]) for record in RECORDS])
def test_requests(record: dict[str, Any]) -> None:
    request = neutral(record)
    if beyond_us(request):
        pytest.skip("the neutral form has no part for a file that the provider keeps")
    ours = canonical(rebuilt(record, request), record["api"])
    assert ours == canonical(record["request"]["body"], record["api"])


@each("record", lambda: [pytest.param(record, id=record["id"]) for record in AFTER_RESULTS])
def test_an_answer_goes_back_as_it_came(record: dict[str, Any]) -> None:
    """The answer that we decoded, sent back with its results, is what the recording client sent back."""
    request = neutral(record)
    answer = decoded(BY_PLACE[record["source"]["file"], record["source"]["index"] - 1])
    at = max(i for i, message in enumerate(request.messages) if message.role == "assistant")
    theirs = request.messages[at]
    if [call.id for call in theirs.calls] != [call.id for call in answer.calls] or not answer.calls:
        pytest.skip("the recording client did not go on from that answer's calls")
    calls = {call.id: call for call in answer.calls}
    request.messages[at:] = answering(request.messages[at:], lambda call: calls.get(call.id, call))
    original = canonical(record["request"]["body"], record["api"])["messages"]
    request.messages[at] = answer
    ours = canonical(rebuilt(record, request), record["api"])["messages"]
    assert [essence(mine, item) for mine, item in zip(ours, original, strict=True)] == [
        essence(item, item) for item in original
    ]


def essence(message: dict[str, Any], recorded: dict[str, Any]) -> dict[str, Any]:
    """A message without what the recording client added or lost: cache marks, text, thinking."""
    if "calls" in message:
        text = message["text"].strip() if recorded["text"].strip() or recorded["role"] != "assistant" else ""
        return {
            "role": message["role"],
            "text": text,
            "calls": [without(call, "cache_control") for call in message["calls"]],
        }
    kept = {"tool_use", "tool_result", *(block["type"] for block in recorded["content"])}
    content = [
        without(block, "cache_control", "caller") for block in message["content"] if block["type"] in kept
    ]
    return {**message, "content": content}


def decoded(record: dict[str, Any]) -> Message:
    codec, response = codec_of(record), record["response"]
    if response["framing"] == "json":
        return codec.response(response["body"]).message
    decoder = codec.decoder()
    for event in recorded_events(response):
        decoder.feed(event)
    return decoder.finish().message


def sent_back(record: dict[str, Any]) -> dict[str, Any]:
    """A recorded answer as it stands in the next request."""
    answer = decoded(record)
    results = [ResultPart(call, ToolResult.of("ok")) for call in answer.calls]
    request = Request([Message.user("Hi"), answer, Message("tool", [*results]), Message.user("Go on.")])
    messages = codec_of(record).request(request, model="m", stream=False)["messages"]
    return next((item for item in messages if item["role"] == "assistant"), {"content": []})


ANSWERS = [record for record in recorded() if not record.get("error")]
WHOLE = [record for record in ANSWERS if record["response"]["framing"] == "json"]


@each("record", lambda: [pytest.param(r, id=r["id"]) for r in WHOLE if r["api"] == "messages"])
def test_every_block_goes_back_as_it_came(record: dict[str, Any]) -> None:
    """Thinking with its signature, calls with their caller, server-side tools and what they found."""
    blocks = [
        {name: value for name, value in block.items() if value or block["type"] not in ("text", "tool_use")}
        for block in record["response"]["body"]["content"]
        if block["type"] != "text" or block["text"].strip()
    ]
    ours = [
        {name: value for name, value in block.items() if value or block["type"] not in ("text", "tool_use")}
        for block in sent_back(record)["content"]
    ]
    only_thought = bool(blocks) and blocks[-1]["type"] == "thinking"  # such a turn is refused as it came
    assert ours == [*blocks, *([{"type": "text", "text": EMPTY_ANSWER}] if only_thought else [])]


@each("record", lambda: [pytest.param(r, id=r["id"]) for r in WHOLE if r["api"] == "chat"])
def test_thinking_goes_back_in_the_fields_it_came_in(record: dict[str, Any]) -> None:
    choices = record["response"]["body"].get("choices")
    if not choices or isinstance(choices[0]["message"].get("content"), list):
        pytest.skip("no answer, or one whose thinking stands in its content")
    said, back = choices[0]["message"], sent_back(record)
    if not back["content"] and "tool_calls" not in back:
        pytest.skip("an answer that said nothing is not sent back")
    field = next((name for name in ("reasoning_content", "reasoning") if said.get(name)), "reasoning_content")
    # A server that refuses calls without thinking is sent a blank one for those that came without.
    assert back.get(field, "").strip() == (said.get(field) or "").strip()
    assert back.get("reasoning_details", []) == (said.get("reasoning_details") or [])


@each(
    "record",
    [
        pytest.param(r, id=r["id"])
        for r in ANSWERS
        if r["response"]["framing"] == "sse" and r["api"] == "chat"
    ],
)
def test_streamed_thinking_is_put_together(record: dict[str, Any]) -> None:
    deltas = [
        choice.get("delta") or {}
        for event in recorded_events(record["response"])
        for choice in event.get("choices") or ()
        if not choice.get("index")
    ]
    pieces = [detail for delta in deltas for detail in delta.get("reasoning_details") or ()]
    back = sent_back(record)
    for name in ("text", "summary", "data", "signature"):
        wanted = "".join(piece.get(name) or "" for piece in pieces)
        assert "".join(item.get(name) or "" for item in back.get("reasoning_details", ())) == wanted
