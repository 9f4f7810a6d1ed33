"""Every recorded answer of Gemini's Interactions passes through its codec; no requests were recorded."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.cassettes import check_answer, check_chunks, decode, event_feeds, records
from toolcrib.codecs import ModelError
from toolcrib.codecs.gemini_interactions import GeminiInteractionsCodec
from toolcrib.messages import Message, Request, Response, ResultPart
from toolcrib.models.replay import recorded_events
from toolcrib.result import ToolResult

CODEC = GeminiInteractionsCodec()
STOPS = {"completed": {"end", "tool_calls"}, "requires_action": {"tool_calls"}, "incomplete": {"length"}}


def check_usage(response: Response, usage: dict[str, Any]) -> None:
    assert response.usage.total_tokens == usage.get("total_tokens", response.usage.total_tokens)
    assert response.usage.reasoning_tokens == usage.get("total_thought_tokens", 0)


@pytest.mark.parametrize("record", records("interactions", streamed=False))
def test_whole_answers(record: dict[str, Any]) -> None:
    body = record["response"]["body"]
    if "steps" not in body:
        with pytest.raises(ModelError):
            CODEC.response(body)
        return
    response = CODEC.response(body)
    check_answer(record, response, stops=STOPS)
    check_usage(response, body.get("usage") or {})
    assert sent_back(response) == body["steps"]


@pytest.mark.parametrize("record", records("interactions", streamed=True))
def test_streamed_answers(record: dict[str, Any]) -> None:
    feeds = event_feeds(record)
    chunks, response = decode(CODEC, feeds["events"]())
    check_answer(record, response, stops=STOPS)
    check_chunks(chunks, response)
    events = list(recorded_events(record["response"]))
    check_usage(
        response, next((e["interaction"].get("usage") or {} for e in events[::-1] if "interaction" in e), {})
    )
    for name, feed in feeds.items():
        assert decode(CODEC, feed()) == (chunks, response), name
    signatures = [e["delta"]["signature"] for e in events if (e.get("delta") or {}).get("signature")]
    assert [step["signature"] for step in sent_back(response) if step.get("signature")] == signatures


def sent_back(response: Response) -> list[dict[str, Any]]:
    results = [ResultPart(call, ToolResult.of("ok")) for call in response.message.calls]
    request = Request([Message.user("Hi"), response.message, Message("tool", [*results])])
    steps = CODEC.request(request, model="m", stream=False)["input"][1:]
    return [step for step in steps if step["type"] != "function_result"]
