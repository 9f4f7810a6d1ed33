"""Every recorded answer of Chat Completions and Messages passes through its codec, fed in three ways."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.conftest import shared_dir
from toolcrib.codecs import AnthropicMessagesCodec, Codec, JSONEvents, ModelError, OpenAIChatCodec
from toolcrib.codecs.sse import parse_event
from toolcrib.messages import CallChunk, Chunk, Reasoning, ReasoningChunk, Response, TextChunk

CODECS: dict[str, Codec] = {"chat": OpenAIChatCodec(), "messages": AnthropicMessagesCodec()}
STOPS = {
    "stop": {"end", "tool_calls"},
    "end_turn": {"end", "tool_calls"},
    "stop_sequence": {"end"},
    "tool_calls": {"tool_calls", "end"},
    "function_call": {"tool_calls"},
    "tool_use": {"tool_calls"},
    "length": {"length"},
    "max_tokens": {"length"},
    "content_filter": {"filter"},
    "refusal": {"refusal"},
    "pause_turn": {"pause"},
}

# Where we differ from what was noted of a recording, and why.
DIFFERENT = {
    "no answer": "a body without choices or content is not an answer of these APIs: a ModelError",
    "broken off": "a stream without stop reason and end mark was cut: a ModelError that holds what came",
    "calls in message_start": (
        "calls made by code come whole in message_start; they are to be run, the notes left them out"
    ),
}


def load(streaming: bool) -> list[Any]:
    folder = shared_dir() / "corpora" / "provider-cassettes"
    records = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").split("\n"):
            record = json.loads(line) if line.strip() else {}
            if record.get("api") in CODECS and (record["response"]["framing"] == "sse") is streaming:
                records.append(pytest.param(record, id=record["id"]))
    return records


def wire_bytes(response: dict[str, Any]) -> bytes:
    if "sse_raw" in response:
        return response["sse_raw"].encode()
    lines = []
    for event in response["sse_events"]:
        lines += [f"event: {event['event']}\n"] if event.get("event") else []
        lines += [f"id: {event['id']}\n"] if event.get("id") else []
        lines += [f"data: {part}\n" for part in event["data"].split("\n")] + ["\n"]
    return "".join(lines).encode()


def parsed_events(record: dict[str, Any]) -> list[dict[str, Any]]:
    events = record["response"]["sse_events"]
    parsed = (parse_event(event["data"], event.get("event") or "") for event in events)
    return [event for event in parsed if event is not None]


def by_bytes(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    reader, data = JSONEvents(), wire_bytes(record["response"])
    for position in range(len(data)):
        yield from reader.feed(data[position : position + 1])
    yield from reader.finish()


def whole_bytes(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    reader = JSONEvents()
    yield from reader.feed(wire_bytes(record["response"]))
    yield from reader.finish()


def differs(record: dict[str, Any]) -> str:
    """Which of our deliberate differences a recording shows."""
    response = record["response"]
    if response["framing"] != "sse":
        answers = response["body"].get("choices" if record["api"] == "chat" else "content")
        return "" if answers or "error" in response["body"] else "no answer"
    events = parsed_events(record)
    if any(
        event.get("message", {}).get("content") for event in events if event.get("type") == "message_start"
    ):
        return "calls in message_start"
    ended = any(
        event.get("type") in ("message_stop", "message_delta") or event.get("[DONE]") for event in events
    )
    stopped = record["finish_reason"] or events[-1].get("usage")
    return "" if ended or stopped else "broken off"


def decode(record: dict[str, Any], events: Iterator[dict[str, Any]]) -> tuple[list[Chunk], Response]:
    decoder = CODECS[record["api"]].decoder()
    chunks = [chunk for event in events for chunk in decoder.feed(event)]
    try:
        return chunks, decoder.finish()
    except ModelError as error:
        assert differs(record) == "broken off", str(error)
        assert error.retryable
        assert error.partial is not None
        return chunks, error.partial


def expected_calls(record: dict[str, Any]) -> list[dict[str, Any]]:
    if differs(record) != "calls in message_start":
        return list(record["expected_tool_calls"])
    message = parsed_events(record)[0]["message"]
    return [
        {"id": block["id"], "name": block["name"], "arguments": block["input"]}
        for block in message["content"]
        if block["type"] == "tool_use"
    ]


def check(record: dict[str, Any], response: Response) -> None:
    calls, expected = response.message.calls, expected_calls(record)
    assert [call.name for call in calls] == [call["name"] for call in expected]
    assert [call.id for call in calls] == [call["id"] or "" for call in expected]
    for call, wanted in zip(calls, expected, strict=True):
        if "input" in wanted:
            assert call.arguments == wanted["input"]
        elif wanted.get("malformed_arguments"):
            assert call.arguments == wanted["arguments_raw"]
        else:
            raw = call.arguments
            assert (json.loads(raw or "{}") if isinstance(raw, str) else raw) == wanted["arguments"]
        if isinstance(call.arguments, str) and wanted.get("arguments_raw"):
            assert call.arguments == wanted["arguments_raw"]
    assert response.message.text == (record["expected_text"] or "")
    if record["finish_reason"]:
        assert response.raw_stop_reason == record["finish_reason"]
        assert response.stop_reason in STOPS.get(record["finish_reason"], {"other"})
    if calls and response.stop_reason == "end":
        pytest.fail("an answer with calls must not look finished")
    thought = "".join(part.text for part in response.message.parts if isinstance(part, Reasoning))
    if record.get("expected_reasoning_len"):
        assert len(thought) == record["expected_reasoning_len"]


def check_usage(record: dict[str, Any], response: Response, usage: dict[str, Any]) -> None:
    ours = response.usage
    if record["api"] == "messages":
        cached = (usage.get("cache_read_input_tokens") or 0) + (usage.get("cache_creation_input_tokens") or 0)
        assert ours.input_tokens == usage.get("input_tokens", 0) + cached
        assert ours.output_tokens == usage.get("output_tokens", 0)
        assert ours.cache_read_tokens == (usage.get("cache_read_input_tokens") or 0)
    elif usage:
        assert ours.input_tokens == usage.get("prompt_tokens", 0)
        assert ours.total_tokens == usage.get("total_tokens", ours.total_tokens)
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        assert ours.cache_read_tokens == (cached or ours.cache_read_tokens)
        thought = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
        assert ours.reasoning_tokens == (thought or 0)


def streamed_usage(events: list[dict[str, Any]]) -> dict[str, Any]:
    usage: dict[str, Any] = {}
    for event in events:
        usages = (event.get("message", {}).get("usage"), event.get("usage"))
        for found in usages:
            usage |= {name: value for name, value in (found or {}).items() if value is not None}
    return usage


def check_chunks(chunks: list[Chunk], response: Response) -> None:
    """The pieces that were streamed say the same as the whole."""
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk)) == response.message.text
    thought = "".join(chunk.text for chunk in chunks if isinstance(chunk, ReasoningChunk))
    assert thought == "".join(part.text for part in response.message.parts if isinstance(part, Reasoning))
    for index, call in enumerate(response.message.calls):
        pieces = [chunk for chunk in chunks if isinstance(chunk, CallChunk) and chunk.index == index]
        assert [chunk.name for chunk in pieces if chunk.name] == [call.name]
        assert [chunk.id for chunk in pieces if chunk.id] == ([call.id] if call.id else [])
        streamed = "".join(chunk.arguments for chunk in pieces)
        assert streamed == call.arguments or (not streamed and not call.arguments) or not streamed


@pytest.mark.parametrize("record", load(streaming=False))
def test_whole_answers(record: dict[str, Any]) -> None:
    codec, body = CODECS[record["api"]], record["response"]["body"]
    if differs(record) == "no answer" or (record["response"]["status"] or 200) >= 400:
        with pytest.raises(ModelError):
            codec.response(body)
        if record.get("error"):
            assert codec.error(body).message == record["error"]["message"]
        return
    response = codec.response(body)
    check(record, response)
    check_usage(record, response, body.get("usage") or {})


@pytest.mark.parametrize("record", load(streaming=True))
def test_streamed_answers(record: dict[str, Any]) -> None:
    events = parsed_events(record)
    chunks, response = decode(record, iter(events))
    check(record, response)
    check_chunks(chunks, response)
    check_usage(record, response, streamed_usage(events))
    for feed in (whole_bytes, by_bytes):
        again, same = decode(record, feed(record))
        assert same == response
        assert again == chunks
