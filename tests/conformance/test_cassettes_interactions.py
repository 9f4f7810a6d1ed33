"""Every recorded answer of Gemini's Interactions passes through its codec; no requests were recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.cassettes import check_answer, check_chunks, decode, event_feeds, records
from tests.conformance.test_cassettes_transports import Server, server
from toolcrib.codecs import ModelError
from toolcrib.codecs.gemini_interactions import GeminiInteractionsCodec
from toolcrib.messages import Message, Request, Response, ResultPart
from toolcrib.models.gemini import GeminiInteractions
from toolcrib.models.replay import recorded_events
from toolcrib.result import ToolResult

__all__ = ["server"]

CODEC = GeminiInteractionsCodec()
STOPS = {"completed": {"end", "tool_calls"}, "requires_action": {"tool_calls"}, "incomplete": {"length"}}


def check_usage(response: Response, usage: dict[str, Any]) -> None:
    assert response.usage.total_tokens == usage.get("total_tokens", response.usage.total_tokens)
    assert response.usage.reasoning_tokens == usage.get("total_thought_tokens", 0)


@each("record", lambda: records("interactions", streamed=False))
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


@each("record", lambda: records("interactions", streamed=True))
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


@pytest.mark.parametrize("streamed", [False, True])
async def test_recorded_answers_through_the_transport(streamed: bool, server: Server) -> None:
    """Each recorded answer over a real socket reads as the codec reads it, and the request is the codec's."""
    address = f"http://127.0.0.1:{server.server_port}"
    model = GeminiInteractions(
        "gemini-3-pro", base_url=address, api_key="a-key-of-ours", provider=CODEC.provider
    )
    request = Request([Message.user("Hi")])
    for param in records("interactions", streamed=streamed):
        record = param.values[0]
        server.answer = record["response"]
        if not streamed and "steps" not in record["response"]["body"]:
            continue
        if streamed:
            items = [item async for item in model.stream(request)]
            assert isinstance(items[-1], Response)
            assert unpriced(items[-1]) == decode(CODEC, event_feeds(record)["events"]())[1]
        else:
            assert unpriced(await model.respond(request)) == CODEC.response(record["response"]["body"])
        assert server.received == CODEC.request(request, model="gemini-3-pro", stream=streamed)
        assert server.headers["x-goog-api-key"] == "a-key-of-ours"
    await model.aclose()


def unpriced(response: Response) -> Response:
    """A model knows what its answer costs, the codec does not."""
    return replace(response, usage=replace(response.usage, cost=None))


def sent_back(response: Response) -> list[dict[str, Any]]:
    results = [ResultPart(call, ToolResult.of("ok")) for call in response.message.calls]
    request = Request([Message.user("Hi"), response.message, Message("tool", [*results])])
    steps = CODEC.request(request, model="m", stream=False)["input"][1:]
    return [step for step in steps if step["type"] != "function_result"]
