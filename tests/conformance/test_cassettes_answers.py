"""Every recorded answer of Chat Completions and Messages passes through its codec, fed in three ways."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import each
from tests.conformance.cassettes import check_answer, check_chunks, decode, event_feeds, records
from toolcrib.codecs import AnthropicMessagesCodec, Codec, ModelError, OpenAIChatCodec
from toolcrib.messages import Response
from toolcrib.models.replay import recorded_events

CODECS: dict[str, Codec] = {"chat": OpenAIChatCodec(), "messages": AnthropicMessagesCodec()}

# Where we differ from what was noted of a recording, and why.
DIFFERENT = {
    "no answer": "a body without choices or content is not an answer of these APIs: a ModelError",
    "broken off": "a stream without stop reason and end mark was cut: a ModelError that holds what came",
    "calls in message_start": (
        "calls made by code come whole in message_start; they are to be run, the notes left them out"
    ),
}


def load(streamed: bool) -> list[Any]:
    return [param for api in CODECS for param in records(api, streamed)]


def differs(record: dict[str, Any]) -> str:
    """Which of our deliberate differences a recording shows."""
    response = record["response"]
    if response["framing"] != "sse":
        answers = response["body"].get("choices" if record["api"] == "chat" else "content")
        return "" if answers or "error" in response["body"] else "no answer"
    events = list(recorded_events(record["response"]))
    if any(
        event.get("message", {}).get("content") for event in events if event.get("type") == "message_start"
    ):
        return "calls in message_start"
    ended = any(
        event.get("type") in ("message_stop", "message_delta") or event.get("[DONE]") for event in events
    )
    stopped = record["finish_reason"] or events[-1].get("usage")
    return "" if ended or stopped else "broken off"


def expected_calls(record: dict[str, Any]) -> list[dict[str, Any]]:
    if differs(record) != "calls in message_start":
        return list(record["expected_tool_calls"])
    message = next(iter(recorded_events(record["response"])))["message"]
    return [
        {"id": block["id"], "name": block["name"], "arguments": block["input"]}
        for block in message["content"]
        if block["type"] == "tool_use"
    ]


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


def check(record: dict[str, Any], response: Response) -> None:
    check_answer(record, response, calls=expected_calls(record))


@each("record", lambda: load(streamed=False))
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


@each("record", lambda: load(streamed=True))
def test_streamed_answers(record: dict[str, Any]) -> None:
    codec, feeds = CODECS[record["api"]], event_feeds(record)
    if differs(record) == "broken off":
        decoder = codec.decoder()
        for event in feeds["events"]():
            decoder.feed(event)
        with pytest.raises(ModelError):
            decoder.finish()
    chunks, response = decode(codec, feeds["events"]())
    check(record, response)
    check_chunks(chunks, response)
    check_usage(record, response, streamed_usage(list(feeds["events"]())))
    for feed in feeds.values():
        again, same = decode(codec, feed())
        assert same == response
        assert again == chunks
