"""Every recorded exchange of the Responses interface: its answer, its request, and the way from one to the next."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from tests.conformance.cassettes import check_answer, check_chunks, decode, event_feeds, records
from toolcrib.codecs import Codec, ModelError
from toolcrib.codecs.openai_responses import OpenAIResponsesCodec
from toolcrib.messages import Response
from toolcrib.models.replay import recorded_events

STOPS = {
    "completed": {"end", "tool_calls", "refusal"},
    "max_output_tokens": {"length"},
    "content_filter": {"filter"},
}
# Made anew for every event that holds an item; the ids so behind some proxies alone.
VOLATILE = ("encrypted_content", "fingerprint", "id")
ENDS = ("response.completed", "response.incomplete", "response.failed")

# Where we differ from what was noted of a recording, and why.
DIFFERENT = {
    "no answer": "a body without output is not an answer of this interface: a ModelError",
    "broken off": "a stream without its last event was cut: a ModelError that holds what came",
    "incomplete": "the reason why an answer is incomplete says more than that it is",
}


def codec_of(record: dict[str, Any]) -> Codec:
    provider = record["provider"]
    return OpenAIResponsesCodec("openai" if provider == "azure_openai" else provider)


def noted(record: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """What was noted, with the reason in the place of the word "incomplete"."""
    reason = (body.get("incomplete_details") or {}).get("reason")
    return {**record, "finish_reason": reason} if reason else record


def check(record: dict[str, Any], response: Response, body: dict[str, Any]) -> None:
    check_answer(noted(record, body), response, stops=STOPS)
    usage = body.get("usage") or {}
    ours = response.usage
    assert ours.input_tokens == usage.get("input_tokens", 0)
    assert ours.output_tokens == usage.get("output_tokens", 0)
    assert ours.total_tokens == usage.get("total_tokens", 0)
    read, written = usage.get("input_tokens_details") or {}, usage.get("output_tokens_details") or {}
    assert ours.cache_read_tokens == (read.get("cached_tokens") or 0)
    assert ours.reasoning_tokens == (written.get("reasoning_tokens") or 0)


def lasting(thing: Any) -> Any:
    """A value without what changes from event to event: encrypted thinking, and ids behind some proxies."""
    if isinstance(thing, Response):
        return [lasting(asdict(part)) for part in thing.message.parts]
    if isinstance(thing, dict):
        return {name: lasting(value) for name, value in thing.items() if name not in VOLATILE}
    return [lasting(item) for item in thing] if isinstance(thing, list) else thing


@pytest.mark.parametrize("record", records("responses", streamed=False))
def test_whole_answers(record: dict[str, Any]) -> None:
    codec, body = codec_of(record), record["response"]["body"]
    failed = (
        body.get("error") or body.get("status") == "failed" or (record["response"]["status"] or 200) >= 400
    )
    if failed or "output" not in body:
        with pytest.raises(ModelError):
            codec.response(body)
        if record.get("error"):
            assert codec.error(body).message == record["error"]["message"]
        return
    check(record, codec.response(body), body)


@pytest.mark.parametrize("record", records("responses", streamed=True))
def test_streamed_answers(record: dict[str, Any]) -> None:
    codec, events = codec_of(record), list(recorded_events(record["response"]))
    if any(event.get("type") in ("error", "response.failed") for event in events):
        decoder = codec.decoder()
        with pytest.raises(ModelError, match=record["error"]["message"][:40]) as raised:
            [decoder.feed(event) for event in events]
        assert raised.value.partial is not None
        return
    last = next((event["response"] for event in events if event.get("type") in ENDS), {})
    answers = [decode(codec, feed()) for feed in event_feeds(record).values()]
    chunks, response = answers[0]
    check(record, response, last)
    check_chunks(chunks, response)
    for again in answers[1:]:
        assert again == answers[0]
    if last.get("output"):
        assert lasting(response) == lasting(codec.response(last))
