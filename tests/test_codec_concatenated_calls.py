"""Several calls whose arguments a model wrote into one, `{…}{…}`: each is a call, whole or streamed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from tests.growth import growth
from tests.properties import examples
from toolcrib.codecs import Codec
from toolcrib.codecs.catalog import codec_named
from toolcrib.codecs.concatenated_calls import concatenated_objects
from toolcrib.messages import CallChunk, Chunk, Response

A, B, C = '{"a":1}', '{"b":"}{"}', "{}"
CODECS: dict[str, Codec] = {
    "chat": codec_named("openai_chat"),
    "messages": codec_named("anthropic_messages"),
    "responses": codec_named("openai_responses"),
    "converse": codec_named("bedrock_converse"),
    "cohere": codec_named("cohere"),
}


@pytest.mark.parametrize(
    ("text", "objects"),
    [
        (A + B, [A, B]),
        (f" {A}\n\t{B} {C} ", [A, B, C]),
        (A + A, [A, A]),
        (A, []),
        (f"{A} ", []),
        (f'{A}{{"b":', []),
        (f"{A}{B} and more", []),
        (f"{A},{B}", []),
        (f"{A}[1]", []),
        ("[{}{}]", []),
        ('{"a":"{}{}"}', []),
        ("", []),
        ("{" * 100_000 + "}{", []),
    ],
)
def test_what_is_several_objects(text: str, objects: list[str]) -> None:
    assert concatenated_objects(text) == objects


def chat_events(pieces: list[str]) -> list[dict[str, Any]]:
    first = {"index": 0, "id": "x", "function": {"name": "f", "arguments": ""}}
    deltas = [first, *({"index": 0, "function": {"arguments": piece}} for piece in pieces)]
    events: list[dict[str, Any]] = [{"choices": [{"delta": {"tool_calls": [delta]}}]} for delta in deltas]
    return [*events, {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}]


def messages_events(pieces: list[str]) -> list[dict[str, Any]]:
    start = {"type": "tool_use", "id": "x", "name": "f", "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return [
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]


def responses_events(pieces: list[str]) -> list[dict[str, Any]]:
    item = {"type": "function_call", "id": "fc", "call_id": "x", "name": "f"}
    place = {"item_id": "fc", "output_index": 0}
    kind = "response.function_call_arguments.delta"
    last = {**item, "arguments": "".join(pieces)}
    return [
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}},
        *({"type": kind, **place, "delta": piece} for piece in pieces),
        {"type": "response.output_item.done", "output_index": 0, "item": last},
        {"type": "response.completed", "response": {"status": "completed", "output": [last]}},
    ]


def converse_events(pieces: list[str]) -> list[dict[str, Any]]:
    place = {"contentBlockIndex": 0}
    deltas = ({**place, "delta": {"toolUse": {"input": piece}}} for piece in pieces)
    return [
        {"contentBlockStart": {**place, "start": {"toolUse": {"toolUseId": "x", "name": "f"}}}},
        *({"contentBlockDelta": delta} for delta in deltas),
        {"contentBlockStop": place},
        {"messageStop": {"stopReason": "tool_use"}},
    ]


def cohere_events(pieces: list[str]) -> list[dict[str, Any]]:
    first = {"id": "x", "function": {"name": "f", "arguments": ""}}
    calls = [("start", first), *(("delta", {"function": {"arguments": piece}}) for piece in pieces)]
    return [
        *(
            {"type": f"tool-call-{kind}", "index": 0, "delta": {"message": {"tool_calls": call}}}
            for kind, call in calls
        ),
        {"type": "tool-call-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
    ]


EVENTS = {
    "chat": chat_events,
    "messages": messages_events,
    "responses": responses_events,
    "converse": converse_events,
    "cohere": cohere_events,
}


def chat_answer(arguments: str) -> dict[str, Any]:
    call = {"id": "x", "function": {"name": "f", "arguments": arguments}}
    return {"choices": [{"message": {"tool_calls": [call]}}]}


def messages_answer(arguments: str) -> dict[str, Any]:
    block = {"type": "tool_use", "id": "x", "name": "f", "input": arguments}
    return {"content": [block], "stop_reason": "tool_use"}


def responses_answer(arguments: str) -> dict[str, Any]:
    call = {"type": "function_call", "call_id": "x", "name": "f", "arguments": arguments}
    return {"status": "completed", "output": [call]}


def converse_answer(arguments: str) -> dict[str, Any]:
    block = {"toolUse": {"toolUseId": "x", "name": "f", "input": arguments}}
    return {"output": {"message": {"content": [block]}}, "stopReason": "tool_use"}


def cohere_answer(arguments: str) -> dict[str, Any]:
    call = {"id": "x", "function": {"name": "f", "arguments": arguments}}
    return {"message": {"tool_calls": [call]}, "finish_reason": "TOOL_CALL"}


ANSWERS = {
    "chat": chat_answer,
    "messages": messages_answer,
    "responses": responses_answer,
    "converse": converse_answer,
    "cohere": cohere_answer,
}


def streamed(name: str, pieces: list[str]) -> tuple[list[Chunk], Response]:
    decoder = CODECS[name].decoder()
    chunks = [chunk for event in EVENTS[name](pieces) for chunk in decoder.feed(event)]
    return chunks, decoder.finish()


def whole(name: str, arguments: str) -> Response:
    return CODECS[name].response(ANSWERS[name](arguments))


@each("name", CODECS)
@each(
    ("text", "expected"),
    [
        (A + B + C, [A, B, C]),
        (f"{A}\n{B}", [A, B]),
        (f'{A}{{"b":', [f'{A}{{"b":']),
        (f"{A}}}", [f"{A}}}"]),
        (f"{A}\n", [f"{A}\n"]),
        ("[1]{}", ["[1]{}"]),
    ],
)
def test_calls_are_the_same_whole_and_cut_anywhere(name: str, text: str, expected: list[str]) -> None:
    cuts = [[text], list(text), *([text[:at], text[at:]] for at in range(1, len(text)))]
    answers = [whole(name, text), *(streamed(name, pieces)[1] for pieces in cuts)]
    for answer in answers:
        assert [call.arguments for call in answer.message.calls] == expected
        assert [call.id for call in answer.message.calls] == ["x", *[""] * (len(expected) - 1)]
        assert {call.name for call in answer.message.calls} == {"f"}


objects = st.dictionaries(
    st.text(max_size=3), st.text(max_size=4) | st.none() | st.lists(st.integers()), max_size=3
)


@examples(100)
@given(
    st.lists(objects, min_size=1, max_size=5),
    st.sampled_from(["", " ", "\n"]),
    st.integers(1, 9),
    st.sampled_from(["", "}", '{"', "\n"]),
)
def test_chunks_say_in_sum_what_the_answer_says(
    given_objects: list[dict[str, Any]], seam: str, size: int, tail: str
) -> None:
    text = seam.join(map(json.dumps, given_objects)) + tail
    for name in CODECS:
        chunks, answer = streamed(name, [text[at : at + size] for at in range(0, len(text), size)])
        calls = answer.message.calls
        if not tail.strip():
            assert [json.loads(str(call.arguments)) for call in calls] == given_objects
        else:
            assert [call.arguments for call in calls] == [text]
        for number, call in enumerate(calls):
            mine = [chunk for chunk in chunks if isinstance(chunk, CallChunk) and chunk.index == number]
            assert "".join(chunk.arguments for chunk in mine) == call.arguments
            assert [chunk.done for chunk in mine].count(True) == 1
            assert mine[0].name == "f"


def test_other_calls_of_the_answer_keep_their_place() -> None:
    decoder = CODECS["chat"].decoder()
    for call in (
        {"index": 0, "id": "x", "function": {"name": "f", "arguments": A}},
        {"index": 0, "function": {"arguments": B}},
        {"index": 1, "id": "y", "function": {"name": "g", "arguments": C}},
    ):
        decoder.feed({"choices": [{"delta": {"tool_calls": [call]}}]})
    decoder.feed({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    calls = decoder.finish().message.calls
    assert [(call.name, call.arguments, call.id) for call in calls] == [
        ("f", A, "x"),
        ("f", B, ""),
        ("g", C, "y"),
    ]


def test_plain_text_of_a_custom_tool_is_no_json() -> None:
    call = {"index": 0, "id": "x", "type": "custom", "custom": {"name": "f", "input": A + B}}
    decoder = CODECS["chat"].decoder()
    decoder.feed({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]})
    answers = [
        CODECS["chat"].response({"choices": [{"message": {"tool_calls": [call]}}]}),
        decoder.finish(),
    ]
    assert [[call.arguments for call in answer.message.calls] for answer in answers] == [[A + B], [A + B]]


@pytest.mark.slow
@pytest.mark.parametrize("name", CODECS)
def test_many_glued_calls_are_read_in_linear_time(name: str) -> None:
    def reading(size: int) -> Callable[[], object]:
        return lambda: streamed(name, [A] * size)

    assert growth(reading, 500, 4_000, at_most=16) < 16
