"""Cohere's chat: what is understood of what comes back, and that nothing makes it stumble."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import growth
from tests.properties import examples
from toolcrib.call import ToolCall
from toolcrib.codecs import JSONEvents, ModelError
from toolcrib.codecs.codec import last_chunks
from toolcrib.codecs.cohere import CohereCodec
from toolcrib.content import Text
from toolcrib.messages import (
    CallChunk,
    Chunk,
    Message,
    Reasoning,
    ReasoningChunk,
    Request,
    Response,
    TextChunk,
    TokenLogprob,
    Usage,
)
from toolcrib.spec import ToolSpec

CODEC = CohereCodec()
PLAN = Reasoning("I will look.", {"cohere": {"field": "tool_plan"}})
THOUGHT = Reasoning("Hm.", {"cohere": {"field": "thinking"}})


def event(kind: str, index: int | None = None, **message: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"type": kind, "delta": {"message": message}}
    return found if index is None else {**found, "index": index}


def call_start(index: int, id: str, name: str, arguments: Any = "") -> dict[str, Any]:
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return event("tool-call-start", index, tool_calls=call)


def call_delta(index: int, arguments: str) -> dict[str, Any]:
    return event("tool-call-delta", index, tool_calls={"function": {"arguments": arguments}})


def end(reason: str = "COMPLETE", **rest: Any) -> dict[str, Any]:
    return {"type": "message-end", "delta": {"finish_reason": reason, **rest}}


START = event("message-start", role="assistant", content=[], tool_plan="", tool_calls=[], citations=[])
USAGE = {
    "billed_units": {"input_tokens": 8, "output_tokens": 3},
    "tokens": {"input_tokens": 100.0, "output_tokens": 5.0},
    "cached_tokens": 64.0,
}


def decoded(*events: dict[str, Any]) -> tuple[list[Chunk], Response]:
    decoder = CODEC.decoder()
    return [chunk for event in events for chunk in decoder.feed(event)], decoder.finish()


def test_a_stream_with_plan_and_calls() -> None:
    chunks, response = decoded(
        START,
        event("tool-plan-delta", tool_plan="I will"),
        event("tool-plan-delta", tool_plan=" look."),
        call_start(0, "w_1", "weather"),
        call_delta(0, '{"city":'),
        call_delta(0, '"Rome"}'),
        {"type": "tool-call-end", "index": 0},
        call_start(1, "n_1", "news", None),
        {"type": "tool-call-end", "index": 1},
        end("TOOL_CALL", usage=USAGE),
    )
    assert chunks == [
        ReasoningChunk("I will"),
        ReasoningChunk(" look."),
        CallChunk(0, "weather", "w_1"),
        CallChunk(0, arguments='{"city":'),
        CallChunk(0, arguments='"Rome"}'),
        CallChunk(0, done=True),
        CallChunk(1, "news", "n_1"),
        CallChunk(1, done=True),
    ]
    assert response == Response(
        Message(
            "assistant",
            [
                PLAN,
                ToolCall("weather", '{"city":"Rome"}', "w_1"),
                ToolCall("news", "", "n_1"),
            ],
            {"cohere": {"billed_units": USAGE["billed_units"]}},
        ),
        "tool_calls",
        Usage(100, 5, 64),
        raw_stop_reason="TOOL_CALL",
    )


def test_calls_that_interleave() -> None:
    chunks, response = decoded(
        START,
        call_start(0, "a", "weather"),
        call_start(1, "b", "news"),
        call_delta(1, '{"b":1}'),
        call_delta(0, '{"a":1}'),
        {"type": "tool-call-end", "index": 1},
        {"type": "tool-call-end", "index": 0},
        end("TOOL_CALL"),
    )
    assert [(call.id, call.arguments) for call in response.message.calls] == [
        ("a", '{"a":1}'),
        ("b", '{"b":1}'),
    ]
    assert chunks[-2:] == [CallChunk(0, done=True), CallChunk(1, done=True)]


def test_thinking_text_and_citations() -> None:
    cited = {"start": 0, "end": 2, "text": "So", "sources": [{"type": "tool", "id": "w_1:0"}]}
    chunks, response = decoded(
        START,
        event("content-start", 0, content={"type": "thinking", "thinking": ""}),
        event("content-delta", 0, content={"thinking": "Hm."}),
        {"type": "content-end", "index": 0},
        event("content-start", 1, content={"type": "text", "text": ""}),
        {
            **event("content-delta", 1, content={"text": "So"}),
            "logprobs": {"text": "So", "token_ids": [1, 2], "logprobs": [-0.5, -0.25]},
        },
        event("citation-start", 0, citations=cited),
        {"type": "citation-end", "index": 0},
        event("content-delta", 1, content={"text": " be it"}),
        {"type": "content-end", "index": 1},
        {"type": "debug", "prompt": "…"},
        end("MAX_TOKENS"),
    )
    assert chunks == [ReasoningChunk("Hm."), TextChunk("So"), TextChunk(" be it")]
    assert response.message == Message(
        "assistant", [THOUGHT, Text("So be it")], {"cohere": {"citations": [cited]}}
    )
    assert response.logprobs == (TokenLogprob("So", -0.75),)
    assert response.stop_reason == "length"


STOPS = {
    "COMPLETE": "end",
    "STOP_SEQUENCE": "end",
    "TOOL_CALL": "end",
    "MAX_TOKENS": "length",
    "ERROR_TOXIC": "filter",
    "SOMETHING_NEW": "other",
}


@pytest.mark.parametrize("reason", STOPS)
def test_stop_reasons(reason: str) -> None:
    whole = {
        "message": {"role": "assistant", "content": [{"type": "text", "text": "So"}]},
        "finish_reason": reason,
    }
    streamed = decoded(START, event("content-delta", 0, content={"text": "So"}), end(reason))[1]
    assert CODEC.response(whole) == streamed
    assert (streamed.stop_reason, streamed.raw_stop_reason) == (STOPS[reason], reason)


BROKEN: dict[str, tuple[list[dict[str, Any]], str]] = {
    "the stream ends": ([], "before the answer was complete"),
    "ERROR": ([end("ERROR")], "broke off"),
    "ERROR with words": ([end("ERROR", error="the GPU melted")], "the GPU melted"),
    "TIMEOUT": ([end("TIMEOUT")], "took too long"),
    "an error event": ([{"type": "error", "message": "internal"}], "internal"),
    "a bare message": ([{"id": "1", "message": "internal"}], "internal"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_streams_that_break(name: str) -> None:
    events, words = BROKEN[name]
    with pytest.raises(ModelError, match=words) as caught:
        decoded(
            START, event("content-delta", 0, content={"text": "So"}), call_start(0, "a", "weather"), *events
        )
    assert caught.value.retryable
    assert caught.value.partial is not None
    assert caught.value.partial.message.text == "So"
    assert caught.value.partial.stop_reason == "other"


def test_a_whole_answer_that_broke_off() -> None:
    with pytest.raises(ModelError) as caught:
        CODEC.response({"message": {"content": [{"type": "text", "text": "So"}]}, "finish_reason": "ERROR"})
    assert caught.value.partial is not None
    assert caught.value.partial.message.text == "So"


NO_ANSWERS: list[dict[str, Any]] = [
    {},
    {"message": "invalid api token"},
    {"embeddings": []},
    {"error": {"message": "x"}},
]


@pytest.mark.parametrize("body", NO_ANSWERS)
def test_no_answers(body: dict[str, Any]) -> None:
    with pytest.raises(ModelError):
        CODEC.response(body)


def test_errors() -> None:
    error = CODEC.error({"id": "1", "message": "too many"}, 429, 3.0)
    assert (error.message, error.retryable, error.status, error.retry_after) == ("too many", True, 429, 3.0)
    assert not CODEC.error({"message": "invalid request"}, 400).retryable
    assert CODEC.error("<html>", 502).message == "<html>"


def test_glued_arguments_are_two_calls() -> None:
    glued = '{"city":"Rome"}{"city":"Oslo"}'
    call = {"id": "w_1", "type": "function", "function": {"name": "weather", "arguments": glued}}
    whole = CODEC.response({"message": {"tool_calls": [call]}, "finish_reason": "TOOL_CALL"})
    streamed = decoded(START, call_start(0, "w_1", "weather"), call_delta(0, glued), end("TOOL_CALL"))[1]
    expected = ['{"city":"Rome"}', '{"city":"Oslo"}']
    assert [call.arguments for call in whole.message.calls] == expected
    assert [call.arguments for call in streamed.message.calls] == expected


def test_a_call_that_comes_after_the_end_of_the_message_is_told() -> None:
    decoder = CODEC.decoder()
    chunks = [
        chunk
        for event in (
            START,
            call_start(0, "a", "weather"),
            call_delta(0, "{}"),
            end(),
            call_delta(0, '{"b":1}'),
        )
        for chunk in decoder.feed(event)
    ]
    told = [chunk for chunk in [*chunks, *last_chunks(decoder)] if isinstance(chunk, CallChunk)]
    assert [call.arguments for call in decoder.finish().message.calls] == ["{}", '{"b":1}']
    assert told[-3:] == [CallChunk(1, "weather"), CallChunk(1, arguments='{"b":1}'), CallChunk(1, done=True)]


def test_names_are_mapped_and_mapped_back() -> None:
    spec = ToolSpec("mcp.get:x", "", {"type": "object"})
    request = Request([Message.user("Hi")], [spec])
    name = CODEC.request(request, model="m", stream=False)["tools"][0]["function"]["name"]
    assert name.isidentifier()
    decoder = CODEC.decoder(request)
    assert decoder.feed(call_start(0, "a", name)) == [CallChunk(0, "mcp.get:x", "a")]


FIELDS = [
    "type",
    "index",
    "delta",
    "message",
    "content",
    "text",
    "thinking",
    "tool_plan",
    "tool_calls",
    "citations",
    "function",
    "name",
    "arguments",
    "id",
    "usage",
    "tokens",
    "billed_units",
    "input_tokens",
    "finish_reason",
    "logprobs",
    "error",
]
KINDS = [
    "message-start",
    "content-start",
    "content-delta",
    "content-end",
    "tool-plan-delta",
    "tool-call-start",
    "tool-call-delta",
    "tool-call-end",
    "citation-start",
    "citation-end",
    "message-end",
    "debug",
    "error",
    "new",
]
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
wild = st.recursive(
    scalars | st.sampled_from(["text", "thinking", "{", "}{", '{"a":1}{', "ERROR", "TOOL_CALL"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)
events = st.builds(
    lambda kind, index, delta, rest: {**rest, "type": kind, "index": index, "delta": delta},
    st.sampled_from(KINDS) | scalars,
    st.sampled_from([0, 0, 1]) | scalars,
    wild,
    st.dictionaries(st.sampled_from(["logprobs", "message", "error", "id"]), wild, max_size=1),
)


@examples(300)
@given(st.lists(events | st.dictionaries(st.text(max_size=8), wild, max_size=3), max_size=8))
def test_no_event_raises_anything_but_our_error(found: list[dict[str, Any]]) -> None:
    decoder = CODEC.decoder()
    try:
        for item in found:
            decoder.feed(item)
        assert isinstance(decoder.finish(), Response)
    except ModelError:
        pass


@examples(300)
@given(
    st.dictionaries(st.sampled_from(["message", "finish_reason", "usage", "logprobs", "error", "id"]), wild)
)
def test_no_body_raises_anything_but_our_error(body: dict[str, Any]) -> None:
    CODEC.error(body)
    try:
        assert isinstance(CODEC.response(body), Response)
    except ModelError:
        pass


STREAM = [
    START,
    event("tool-plan-delta", tool_plan="Plan — 😀"),
    event("content-start", 0, content={"type": "text", "text": ""}),
    event("content-delta", 0, content={"text": "Grüß"}),
    call_start(0, "a", "weather", '{"city":'),
    call_delta(0, '"Zürich"}'),
    {"type": "tool-call-end", "index": 0},
    end("TOOL_CALL", usage=USAGE),
]
BYTES = "".join(
    f"event: {item['type']}\ndata: {json.dumps(item, ensure_ascii=False)}\n\n" for item in STREAM
).encode()


@given(st.sets(st.integers(0, len(BYTES))))
def test_any_split_gives_the_same_sum(cuts: set[int]) -> None:
    reader, places = JSONEvents(), [0, *sorted(cuts), len(BYTES)]
    found = [event for start, stop in itertools.pairwise(places) for event in reader.feed(BYTES[start:stop])]
    assert decoded(*found, *reader.finish()) == decoded(*STREAM)


@pytest.mark.slow
def test_the_time_is_linear_in_the_stream() -> None:
    def decode(count: int) -> Callable[[], object]:
        pieces = [call_delta(0, f'"k{number}":1,') for number in range(count)]
        spoken = [event("content-delta", 0, content={"text": "so "}) for _ in range(count)]
        cited = [event("citation-start", number, citations={"start": number}) for number in range(count)]
        return lambda: decoded(START, call_start(0, "a", "weather", "{"), *pieces, *spoken, *cited, end())

    assert growth(decode, 1000, 8000, at_most=16) < 16
