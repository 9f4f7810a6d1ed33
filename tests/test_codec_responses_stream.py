"""OpenAI Responses as a stream: what servers make of the format, and that nothing it may hold breaks the decoder."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import growth
from tests.properties import examples
from toolcrib.codecs import JSONEvents, ModelError
from toolcrib.codecs.openai_responses import OpenAIResponsesCodec
from toolcrib.messages import CallChunk, Chunk, Reasoning, ReasoningChunk, Request, Response, TextChunk
from toolcrib.spec import ToolSpec

CODEC = OpenAIResponsesCodec()
Event = dict[str, Any]
CREATED = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}


def ended(*output: Event, **fields: Any) -> Event:
    answer = {"id": "resp_1", "status": "completed", "output": [*output], **fields}
    return {"type": f"response.{answer['status']}", "response": answer}


def added(item: Event, index: int | None = 0) -> Event:
    place = {} if index is None else {"output_index": index}
    return {"type": "response.output_item.added", "item": item, **place}


def done(item: Event, index: int | None = 0) -> Event:
    return added(item, index) | {"type": "response.output_item.done"}


def piece(what: str, text: str, index: int | None = 0, id: str = "", **fields: Any) -> Event:
    place = {} if index is None else {"output_index": index}
    return {"type": f"response.{what}.delta", "delta": text, "item_id": id, **place, **fields}


def whole(what: str, text: str, index: int | None = 0, id: str = "", field: str = "arguments") -> Event:
    return {"type": f"response.{what}.done", field: text, "item_id": id, "output_index": index}


def call(number: int, arguments: str = "", **fields: Any) -> Event:
    item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": f"f{number}"}
    return {**item, "arguments": arguments, **fields}


def said(text: str, **fields: Any) -> Event:
    blocks = [{"type": "output_text", "text": text, "annotations": []}] if text else []
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": blocks, **fields}


def stream(*events: Event, request: Request | None = None) -> tuple[list[Chunk], Response]:
    decoder = CODEC.decoder(request)
    chunks = [chunk for event in events for chunk in decoder.feed(event)]
    return chunks, decoder.finish()


def outline(chunks: list[Chunk]) -> dict[int, tuple[str, str, str, bool]]:
    """Each call's name, id, arguments and end as its chunks tell them."""
    told: dict[int, tuple[str, str, str, bool]] = {}
    for chunk in chunks:
        if isinstance(chunk, CallChunk):
            name, id, arguments, end = told.get(chunk.index, ("", "", "", False))
            assert not end, "a call that was done goes on"
            told[chunk.index] = (name + chunk.name, id + chunk.id, arguments + chunk.arguments, chunk.done)
    return told


ARGUMENTS = "function_call_arguments"
A, B = '{"a":1}', '{"b":2}'
TWO_CALLS: dict[str, list[Event]] = {
    "one after the other": [
        added(call(1), 0), piece(ARGUMENTS, '{"a"', 0, "fc_1"), piece(ARGUMENTS, ":1}", 0, "fc_1"),
        whole(ARGUMENTS, A, 0, "fc_1"), done(call(1, A), 0),
        added(call(2), 1), piece(ARGUMENTS, B, 1, "fc_2"), whole(ARGUMENTS, B, 1, "fc_2"), done(call(2, B), 1),
        ended(call(1, A), call(2, B)),
    ],
    "interleaved": [
        added(call(1), 0), added(call(2), 1), piece(ARGUMENTS, '{"b"', 1, "fc_2"), piece(ARGUMENTS, '{"a"', 0, "fc_1"),
        piece(ARGUMENTS, ":2}", 1, "fc_2"), piece(ARGUMENTS, ":1}", 0, "fc_1"),
        done(call(2, B), 1), done(call(1, A), 0), ended(call(1, A), call(2, B)),
    ],
    "no pieces": [
        added(call(1), 0), whole(ARGUMENTS, A, 0, "fc_1"), done(call(1, A), 0),
        added(call(2), 1), whole(ARGUMENTS, B, 1, "fc_2"), done(call(2, B), 1), ended(call(1, A), call(2, B)),
    ],
    "the finished items alone": [done(call(1, A), 0), done(call(2, B), 1), ended()],
    "the last event alone": [ended(call(1, A), call(2, B))],
    "a whole answer as one event": [ended(call(1, A), call(2, B))["response"] | {"object": "response"}],
    "nothing after the pieces": [
        added(call(1), 0), piece(ARGUMENTS, A, 0, "fc_1"), added(call(2), 1), piece(ARGUMENTS, B, 1, "fc_2"), ended(),
    ],
    "the second in the last event": [added(call(1), 0), done(call(1, A), 0), ended(call(1, A), call(2, B))],
    "every place 0": [
        added(call(1), 0), added(call(2), 0), piece(ARGUMENTS, A, 0, "fc_1"), piece(ARGUMENTS, B, 0, "fc_2"),
        done(call(1, A), 0), done(call(2, B), 0), ended(call(1, A), call(2, B)),
    ],
    "no places": [
        added(call(1), None), piece(ARGUMENTS, A, None, "fc_1"), done(call(1, A), None),
        added(call(2), None), piece(ARGUMENTS, B, None, "fc_2"), done(call(2, B), None), ended(),
    ],
    "ids that change": [
        added(call(1, id="x1"), 0), piece(ARGUMENTS, A, 0, "x2"), whole(ARGUMENTS, A, 0, "x3"),
        done(call(1, A, id="x4"), 0),
        added(call(2, id="x5"), 1), piece(ARGUMENTS, B, 1, "x6"), done(call(2, B, id="x7"), 1),
        ended(call(1, A, id="x8"), call(2, B, id="x9")),
    ],
    "call ids that change": [
        added(call(1, call_id="x"), 0), piece(ARGUMENTS, A, 0, "fc_1"), done(call(1, A), 0),
        added(call(2, call_id="y", id=""), 1), piece(ARGUMENTS, B, 1), done(call(2, B, id=""), 1),
        ended(call(1, A), call(2, B)),
    ],
    "no beginnings": [
        piece(ARGUMENTS, '{"a"', 0, "fc_1"), piece(ARGUMENTS, B, 1, "fc_2"), piece(ARGUMENTS, ":1}", 0, "fc_1"),
        done(call(1, A), 0), done(call(2, B), 1), ended(),
    ],
    "told twice": [
        added(call(1), 0), added(call(1), 0), piece(ARGUMENTS, A, 0, "fc_1"), done(call(1, A), 0), done(call(1, A), 0),
        done(call(2, B), 1), done(call(2, B), 1), ended(call(1, A), call(2, B)), ended(call(1, A), call(2, B)),
    ],
    "an end mark in place of the last event": [done(call(1, A), 0), done(call(2, B), 1), {"[DONE]": True}],
}  # fmt: skip


@pytest.mark.parametrize("events", TWO_CALLS.values(), ids=TWO_CALLS)
def test_two_calls(events: list[Event]) -> None:
    chunks, response = stream(CREATED, *events)
    calls = response.message.calls
    assert [(c.name, c.arguments, c.id) for c in calls] == [("f1", A, "call_1"), ("f2", B, "call_2")]
    assert response.stop_reason == "tool_calls"
    told = outline(chunks)
    assert [told[number][0] for number in (0, 1)] == ["f1", "f2"]
    assert [told[number][2:] for number in (0, 1)] == [(A, True), (B, True)]


def test_calls_of_free_text_stream() -> None:
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "sql", "input": ""}
    chunks, response = stream(
        added(item),
        piece("custom_tool_call_input", "SELECT "),
        piece("custom_tool_call_input", "1"),
        whole("custom_tool_call_input", "SELECT 1", field="input"),
        done(item | {"input": "SELECT 1"}),
        ended(),
    )
    assert outline(chunks) == {0: ("sql", "call_1", "SELECT 1", True)}
    assert response.message.calls[0].arguments == "SELECT 1"


def test_native_calls_stream_once_they_are_whole() -> None:
    item = {"type": "apply_patch_call", "id": "apc_1", "call_id": "call_1", "status": "in_progress"}
    operation = {"type": "update_file", "path": "f", "diff": "@@\n-a\n+b"}
    whole_item = {**item, "status": "completed", "operation": operation}
    patch = "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch"
    chunks, response = stream(
        added({**item, "operation": {**operation, "diff": ""}}),
        {"type": "response.apply_patch_call_operation_diff.delta", "item_id": "apc_1", "delta": "@@"},
        done(whole_item),
        ended(),
    )
    assert outline(chunks) == {0: ("apply_patch", "call_1", patch, True)}
    (told,) = response.message.calls
    assert told.arguments == patch and told.extras["openai_responses"]["operation"] == operation
    _, cut = stream(added({**item, "operation": operation}), ended())
    assert not str(cut.message.calls[0].arguments).endswith("End Patch")


def test_names_are_mapped_back() -> None:
    request = Request([], [ToolSpec("mcp:f", "", {"type": "object"})])
    name = CODEC.request(request, model="m", stream=True)["tools"][0]["name"]
    chunks, response = stream(done(call(1, A, name=name)), ended(), request=request)
    assert outline(chunks)[0][0] == response.message.calls[0].name == "mcp:f"


TEXT = {
    "in pieces": [
        added(said("")), piece("output_text", "Hel", id="msg_1", content_index=0),
        piece("output_text", "lo", id="msg_1", content_index=0), whole("output_text", "Hello", field="text"),
        done(said("Hello")), ended(said("Hello")),
    ],
    "at its end": [added(said("")), whole("output_text", "Hello", field="text"), done(said("Hello")), ended()],
    "the rest at its end": [added(said("")), piece("output_text", "Hel"), done(said("Hello")), ended()],
    "in the last event": [ended(said("Hello"))],
    "counted behind its thinking, which the finished message does not hold": [
        added(said("")), piece("output_text", "Hel", content_index=1), piece("output_text", "lo", content_index=1),
        whole("output_text", "Hello", field="text") | {"content_index": 1}, done(said("Hello")), ended(said("Hello")),
    ],
    "counted so, and finished in the last event alone": [
        added(said("")), piece("output_text", "Hel", content_index=1), ended(said("Hello")),
    ],
    "counted otherwise where it ends": [
        added(said("")), piece("output_text", "Hel", content_index=1), whole("output_text", "Hello", field="text"),
        done(said("Hello")), ended(said("Hello")),
    ],
    "counted far off": [
        added(said("")), piece("output_text", "Hello", content_index=3), done(said("Hello")), ended(said("Hello")),
    ],
    "in no finished item": [piece("output_text", "Hel"), piece("output_text", "lo"), done(said("")), ended()],
}  # fmt: skip


@pytest.mark.parametrize("events", TEXT.values(), ids=TEXT)
def test_text(events: list[Event]) -> None:
    chunks, response = stream(CREATED, *events)
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk)) == "Hello"
    assert response.message.text == "Hello"
    assert response.stop_reason == "end"


def test_thinking_comes_as_summaries_and_as_text() -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "begun"}
    summary = [{"type": "summary_text", "text": text} for text in ("One. ", "Two.")]
    finished = item | {"summary": summary, "encrypted_content": "whole"}
    other = {"type": "reasoning", "id": "rs_2", "content": [{"type": "reasoning_text", "text": "Three."}]}
    chunks, response = stream(
        added(item),
        piece("reasoning_summary_text", "One. ", summary_index=0),
        piece("reasoning_summary_text", "Two.", summary_index=1),
        done(finished),
        piece("reasoning_text", "Three.", 1, content_index=0),
        done(other, 1),
        ended(finished | {"encrypted_content": "another"}, other),
    )
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, ReasoningChunk)) == "One. Two.Three."
    first, second = (part for part in response.message.parts if isinstance(part, Reasoning))
    assert (first.text, second.text) == ("One. Two.", "Three.")
    assert first.extras["openai_responses"] == finished


def test_a_refusal_streams() -> None:
    item = said("") | {"content": [{"type": "refusal", "refusal": "No way."}]}
    events = [piece("refusal", "No "), piece("refusal", "way."), whole("refusal", "No way.", field="refusal")]
    chunks, response = stream(added(said("")), *events, done(item), ended(item))
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk)) == "No way."
    assert (response.message.text, response.stop_reason) == ("No way.", "refusal")


def test_items_stand_in_the_order_of_the_output() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    chunks, response = stream(done(call(1, A), 1), ended(thought, call(1, A)))
    assert [type(part).__name__ for part in response.message.parts] == ["Reasoning", "ToolCall"]
    assert outline(chunks)[0][2] == A


def test_calls_are_counted_as_they_came() -> None:
    chunks, response = stream(
        added(call(2), 1), added(call(1), 0), done(call(1, A), 0), done(call(2, B), 1), ended()
    )
    names = [told[0] for _, told in sorted(outline(chunks).items())]
    assert [call.name for call in response.message.calls] == names


def test_an_answer_that_was_cut_by_its_length() -> None:
    reason = {"reason": "max_output_tokens"}
    last = ended(call(1, '{"a', status="incomplete"), status="incomplete", incomplete_details=reason)
    _, response = stream(added(call(1)), piece(ARGUMENTS, '{"a'), last)
    assert (response.stop_reason, response.raw_stop_reason) == ("length", "max_output_tokens")
    assert response.message.calls[0].arguments == '{"a'


QUOTA = {"code": "insufficient_quota", "message": "Pay first."}
BUSY = {"code": "server_error", "message": "Try again."}
ERRORS = [
    ({"type": "error", "error": QUOTA}, "Pay first.", False),
    ({"type": "error", **BUSY, "param": None}, "Try again.", True),
    ({"error": {"message": "Odd."}}, "Odd.", False),
    (ended(status="failed", error=BUSY), "Try again.", True),
    (ended(status="failed"), "failed", True),
    (ended(status="cancelled"), "cancelled", False),
    (CREATED | {"response": {"id": "resp_2"}}, "two answers", True),
]


@pytest.mark.parametrize(("event", "words", "retryable"), ERRORS)
def test_errors_in_the_middle_keep_what_came(event: Event, words: str, retryable: bool) -> None:
    decoder = CODEC.decoder()
    for before in (CREATED, added(said("")), piece("output_text", "Hel"), added(call(1), 1)):
        decoder.feed(before)
    with pytest.raises(ModelError, match=words) as raised:
        decoder.feed(event)
    assert raised.value.retryable is retryable
    assert raised.value.partial is not None
    assert raised.value.partial.message.text == "Hel"
    assert raised.value.partial.stop_reason == "other"


@pytest.mark.parametrize("last", [[], [{"[DONE]": True}]])
def test_a_stream_without_its_end(last: list[Event]) -> None:
    decoder = CODEC.decoder()
    for event in (CREATED, added(call(1)), piece(ARGUMENTS, '{"a'), *last):
        decoder.feed(event)
    with pytest.raises(ModelError, match="before the answer was complete") as raised:
        decoder.finish()
    assert raised.value.retryable
    assert raised.value.partial is not None
    assert raised.value.partial.message.calls[0].arguments == '{"a'


# Whatever comes.

words = st.sampled_from(
    ["", "x", "rs_1", "fc_1", "call_1", "message", "function_call", "output_text", "{", "null"]
)
scalars = st.none() | st.booleans() | st.integers(-2, 3) | words | st.just(float("nan")) | st.just(10**400)
KEYS = [
    "type", "id", "call_id", "role", "name", "arguments", "input", "content", "summary", "text", "refusal", "result",
    "status", "error", "message", "logprobs", "token", "logprob", "top_logprobs", "annotations", "usage", "output",
    "input_tokens", "input_tokens_details", "incomplete_details", "reason", "encrypted_content", "caller", "object", "operation",
]  # fmt: skip
KINDS = [
    "message", "reasoning", "function_call", "custom_tool_call", "apply_patch_call", "image_generation_call",
    "web_search_call", "output_text", "refusal", "summary_text", "reasoning_text",
]  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
some_items = st.builds(
    lambda kind, more: {**more, "type": kind},
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(KEYS), values, max_size=6),
)
answers = st.fixed_dictionaries(
    {}, optional={"id": words, "status": words, "output": st.lists(some_items, max_size=4), "usage": values}
)
EVENTS = [
    "response.created", "response.completed", "response.incomplete", "response.output_item.added",
    "response.output_item.done", "response.failed", "response.done", "",
    *(f"response.{what}.{step}" for step in ("delta", "done") for what in (
        "output_text", "refusal", "reasoning_text", "reasoning_summary_text", ARGUMENTS, "custom_tool_call_input")),
]  # fmt: skip
events = st.fixed_dictionaries(
    {"type": st.sampled_from(EVENTS) | scalars},
    optional={
        "item": some_items | values,
        "response": answers | values,
        "output_index": st.integers(0, 1) | scalars,
        "content_index": scalars,
        "summary_index": scalars,
        "item_id": scalars,
        "delta": values,
        "text": values,
        "arguments": values,
        "error": values,
        "[DONE]": st.booleans(),
    },
)


@examples(400)
@given(fed=st.lists(events, max_size=8), body=answers)
def test_no_input_raises_anything_but_a_model_error(fed: list[Event], body: Event) -> None:
    decoder = CODEC.decoder()
    try:
        for event in fed:
            decoder.feed(event)
    except ModelError:
        pass
    for decode in (decoder.finish, lambda: CODEC.response(body)):
        try:
            response = decode()
        except ModelError:
            continue
        for own in ({}, {"store": False}, {"previous_response_id": "resp_1"}):
            request = Request([response.message], extras={"openai": own})
            json.dumps(CODEC.request(request, model="m", stream=False))
    assert isinstance(CODEC.error(body), ModelError)


@examples(100)
@given(st.lists(st.tuples(words, words), min_size=1, max_size=4), st.data())
def test_any_cut_and_order_gives_the_same_sum(asked: list[tuple[str, str]], data: st.DataObject) -> None:
    finished = [call(number, json.dumps({key: value})) for number, (key, value) in enumerate(asked)]
    queues: list[list[Event]] = []
    for number, item in enumerate(finished):
        text, at = item["arguments"], 0
        pieces = [added(item | {"arguments": ""}, number)]
        while at < len(text):
            size = data.draw(st.integers(1, 6))
            pieces.append(piece(ARGUMENTS, text[at : at + size], number, item["id"]))
            at += size
        queues.append([*pieces, done(item, number)])
    fed = [CREATED]
    while queues:
        queue = data.draw(st.sampled_from(queues))
        fed.append(queue.pop(0))
        queues = [queue for queue in queues if queue]
    fed.append(ended(*finished))
    wire = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in fed).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=6)))
    reader = JSONEvents()
    bounds = zip([0, *cuts], [*cuts, len(wire)], strict=True)
    parsed = [event for start, end in bounds for event in reader.feed(wire[start:end])]
    chunks, response = stream(*parsed)
    assert (chunks, response) == stream(*fed)
    told = outline(chunks)
    for number, made in enumerate(response.message.calls):
        assert told[number] == (made.name, made.id, made.arguments, True)
    wanted = sorted((item["call_id"], item["arguments"]) for item in finished)
    assert sorted((made.id, made.arguments) for made in response.message.calls) == wanted


LONG: dict[str, Callable[[int], list[Event]]] = {
    "pieces": lambda size: [added(call(1)), *([piece(ARGUMENTS, "y" * 16, 0, "fc_1")] * (size // 16))],
    "ends told again": lambda size: [
        piece("output_text", "y" * size),
        *([whole("output_text", "z" * 16, field="text")] * (size // 16)),
    ],
    "items": lambda size: [done(call(n, A), n) for n in range(size // 64)],
    "items in the last event": lambda size: [ended(*(call(n, A) for n in range(size // 64)))],
    "texts of an item": lambda size: [
        piece("output_text", "y", content_index=index) for index in range(size // 64)
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("make", LONG.values(), ids=LONG)
def test_decoding_is_linear(make: Callable[[int], list[Event]]) -> None:
    def decoding(size: int) -> Callable[[], object]:
        fed = make(size)

        def work() -> None:
            decoder = CODEC.decoder()
            for event in fed:
                decoder.feed(event)
            try:
                decoder.finish()
            except ModelError as error:
                assert error.partial is not None

        return work

    assert growth(decoding, 50_000, 400_000, 40) < 40
