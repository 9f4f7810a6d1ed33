"""Recorded exchanges of every wire format: how they are found, fed, and compared with what was noted of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from tests.conformance.conftest import shared_dir
from toolcrib.codecs import Codec, JSONEvents, ModelError
from toolcrib.messages import CallChunk, Chunk, Reasoning, ReasoningChunk, Response, TextChunk
from toolcrib.models.replay import STREAMED, recorded_events

# What a recorded stop reason may be in our words; a codec's test adds those of its provider.
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


@cache
def _lines() -> list[str]:
    folder = shared_dir() / "corpora" / "provider-cassettes"
    files = (path.read_text(encoding="utf-8").split("\n") for path in sorted(folder.glob("*.jsonl")))
    return [line for lines in files for line in lines]


def all_records(api: str) -> list[dict[str, Any]]:
    """The recorded exchanges of one interface, in the order of their files; read anew, since a test may change them."""
    return [
        record for line in _lines() if f'"{api}"' in line and (record := json.loads(line)).get("api") == api
    ]


def records(api: str, streamed: bool | None = None) -> list[Any]:
    """The same as pytest parameters; `streamed` leaves only those, or only the others."""
    return [
        pytest.param(record, id=record["id"])
        for record in all_records(api)
        if streamed is None or (record["response"]["framing"] in STREAMED) is streamed
    ]


def cassettes(api: str) -> list[list[dict[str, Any]]]:
    """Whole conversations: the exchanges of one recording in order, where more than one was recorded."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in all_records(api):
        source = record["source"]
        if source.get("cassette_complete"):
            groups.setdefault((source["repo"], source["file"]), []).append(record)
    ordered = (sorted(group, key=lambda record: record["source"]["index"]) for group in groups.values())
    return [group for group in ordered if len(group) > 1]


def wire_bytes(response: dict[str, Any]) -> bytes:
    """The bytes of a stream of server-sent events."""
    if "sse_raw" in response:
        return str(response["sse_raw"]).encode()
    lines = []
    for event in response["sse_events"]:
        lines += [f"event: {event['event']}\n"] if event.get("event") else []
        lines += [f"id: {event['id']}\n"] if event.get("id") else []
        lines += [f"data: {part}\n" for part in event["data"].split("\n")] + ["\n"]
    return "".join(lines).encode()


def _by_bytes(data: bytes, step: int) -> Iterator[dict[str, Any]]:
    reader = JSONEvents()
    for position in range(0, len(data), step):
        yield from reader.feed(data[position : position + step])
    yield from reader.finish()


def event_feeds(record: dict[str, Any]) -> dict[str, Callable[[], Iterator[dict[str, Any]]]]:
    """The ways to feed a recorded stream: event by event, and as server-sent events in one piece and by bytes."""
    response = record["response"]
    feeds: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {"events": lambda: recorded_events(response)}
    if response["framing"] == "sse":
        data = wire_bytes(response)
        feeds["whole"] = lambda: _by_bytes(data, max(len(data), 1))
        feeds["bytes"] = lambda: _by_bytes(data, 1)
    return feeds


def decode(codec: Codec, events: Iterator[dict[str, Any]]) -> tuple[list[Chunk], Response]:
    """All chunks and the answer; of a stream that was cut, the part that came."""
    decoder = codec.decoder()
    chunks = [chunk for event in events for chunk in decoder.feed(event)]
    try:
        return chunks, decoder.finish()
    except ModelError as error:
        assert error.retryable
        assert error.partial is not None
        return chunks, error.partial


def check_answer(
    record: dict[str, Any],
    response: Response,
    *,
    calls: list[dict[str, Any]] | None = None,
    stops: dict[str, set[str]] | None = None,
    text: str | None = None,
) -> None:
    """An answer says what was noted of its recording; `calls`, `stops` and `text` replace what was noted."""
    expected = record["expected_tool_calls"] if calls is None else calls
    found = response.message.calls
    assert [call.name for call in found] == [call["name"] for call in expected]
    assert [call.id for call in found] == [call["id"] or "" for call in expected]
    for call, wanted in zip(found, expected, strict=True):
        if "input" in wanted:
            assert call.arguments == wanted["input"]
        elif wanted.get("malformed_arguments"):
            assert call.arguments == wanted["arguments_raw"]
        else:
            raw = call.arguments
            assert (json.loads(raw or "{}") if isinstance(raw, str) else raw) == wanted["arguments"]
        if isinstance(call.arguments, str) and wanted.get("arguments_raw"):
            assert call.arguments == wanted["arguments_raw"]
    assert response.message.text == ((record["expected_text"] or "") if text is None else text)
    if reason := record["finish_reason"]:
        assert response.raw_stop_reason == reason
        assert response.stop_reason in {**STOPS, **(stops or {})}.get(reason, {"other"})
    if found and response.stop_reason == "end":
        pytest.fail("an answer with calls must not look finished")
    if record.get("expected_reasoning_len"):
        assert len(thought_of(response)) == record["expected_reasoning_len"]


def thought_of(response: Response) -> str:
    return "".join(part.text for part in response.message.parts if isinstance(part, Reasoning))


def check_chunks(chunks: list[Chunk], response: Response) -> None:
    """The pieces that were streamed say the same as the whole."""
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk)) == response.message.text
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, ReasoningChunk)) == thought_of(
        response
    )
    for index, call in enumerate(response.message.calls):
        pieces = [chunk for chunk in chunks if isinstance(chunk, CallChunk) and chunk.index == index]
        assert [chunk.name for chunk in pieces if chunk.name] == [call.name]
        assert [chunk.id for chunk in pieces if chunk.id] == ([call.id] if call.id else [])
        streamed = "".join(chunk.arguments for chunk in pieces)
        if isinstance(call.arguments, dict):
            assert not streamed or json.loads(streamed) == call.arguments
        else:
            assert streamed == call.arguments or not streamed
