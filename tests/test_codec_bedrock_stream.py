"""Bedrock ConverseStream: events in any order, whatever they hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bedrock_wire import CITATIONS, END, SERVER_RESULT, SERVER_USE, STREAM, answer, delta, start, stop
from tests.properties import examples
from toolcrib.call import ToolCall
from toolcrib.codecs.bedrock_converse import BedrockConverseCodec
from toolcrib.codecs.codec import ModelError
from toolcrib.content import Image, Text
from toolcrib.messages import (
    CallChunk,
    Message,
    MessagePart,
    Opaque,
    Reasoning,
    ReasoningChunk,
    Request,
    TextChunk,
    Usage,
)

CODEC = BedrockConverseCodec()


def test_a_stream_with_interleaved_calls() -> None:
    decoder = CODEC.decoder()
    chunks = [chunk for event in STREAM for chunk in decoder.feed(event)]
    assert chunks == [
        ReasoningChunk("h"),
        ReasoningChunk("m"),
        TextChunk("He"),
        TextChunk("y"),
        CallChunk(0, "weather", "a"),
        CallChunk(1, "clock", "b"),
        CallChunk(0, arguments='{"city":'),
        CallChunk(0, arguments='"Oslo"}'),
        CallChunk(1, done=True),
        CallChunk(0, done=True),
    ]
    response = decoder.finish()
    assert list(response.message.parts) == [
        Reasoning("hm", {"bedrock": {"reasoningText": {"signature": "c2ln"}}}),
        Text("Hey"),
        ToolCall("weather", '{"city":"Oslo"}', "a"),
        ToolCall("clock", "", "b"),
    ]
    assert (response.stop_reason, response.usage) == ("tool_calls", Usage(3, 4))


@pytest.mark.parametrize(
    ("events", "parts"),
    [
        (
            [delta(0, citation=CITATIONS[0]), delta(0, text="a"), delta(0, text="b")],
            [Text("ab", {"bedrock": {"citationsContent": {"citations": CITATIONS}}})],
        ),
        (
            [delta(0, reasoningContent={"redactedContent": piece}) for piece in ("QQ==", "QkM=")],
            [Reasoning("", {"bedrock": {"redactedContent": "QUJD"}})],
        ),
        (
            [
                start(0, toolUse={**SERVER_USE["toolUse"], "input": None}),
                delta(0, toolUse={"input": '{"q": 1}'}),
            ],
            [Opaque("bedrock", SERVER_USE)],
        ),
        (
            [
                start(0, toolResult={"toolUseId": "s", "type": "nova_grounding_result"}),
                delta(0, toolResult=[{"text": "x"}]),
            ],
            [Opaque("bedrock", SERVER_RESULT)],
        ),
        (
            [start(0, image={"format": "png"}), delta(0, image={"source": {"bytes": "QQ=="}})],
            [Image("QQ==", media_type="image/png")],
        ),
        ([start(0), delta(0, text="Hi")], [Text("Hi")]),
        ([delta(0, toolUse={"input": "{}"})], [ToolCall("", "{}")]),
        (
            [delta(0, brand_new={"a": "x"}), delta(0, brand_new={"a": "y"})],
            [Opaque("bedrock", {"brand_new": {"a": "xy"}})],
        ),
    ],
)
def test_blocks_of_a_stream(events: list[dict[str, Any]], parts: list[MessagePart]) -> None:
    decoder = CODEC.decoder()
    for event in [*events, stop(0), END]:
        decoder.feed(event)
    assert list(decoder.finish().message.parts) == parts


@pytest.mark.parametrize(
    ("name", "retryable"),
    [
        ("internalServerException", True),
        ("modelStreamErrorException", True),
        ("throttlingException", True),
        ("serviceUnavailableException", True),
        ("modelTimeoutException", True),
        ("validationException", False),
    ],
)
def test_an_error_in_the_middle_keeps_what_came(name: str, retryable: bool) -> None:
    decoder = CODEC.decoder()
    decoder.feed(delta(0, text="Hey"))
    with pytest.raises(ModelError, match="it broke") as caught:
        decoder.feed({name: {"message": "it broke"}})
    assert caught.value.retryable is retryable
    assert caught.value.partial is not None
    assert caught.value.partial.message.text == "Hey"


def test_a_stream_that_ends_early_is_no_answer() -> None:
    decoder = CODEC.decoder()
    for event in STREAM[:-2]:
        decoder.feed(event)
    with pytest.raises(ModelError, match="ended before") as caught:
        decoder.finish()
    assert caught.value.retryable
    assert caught.value.partial is not None
    assert len(caught.value.partial.message.calls) == 2


words = st.sampled_from(["", "x", "text", "toolUse", "server_tool_use", "QQ==", "{", "null", "tool_use"])
scalars = st.none() | st.booleans() | st.integers(-2, 3) | words | st.just(10**400)
KEYS = [
    "text", "toolUse", "toolResult", "reasoningContent", "reasoningText", "redactedContent", "signature", "image",
    "name", "source", "bytes", "citation", "citations", "citationsContent", "content", "input", "toolUseId", "type",
    "format", "contentBlockIndex", "delta", "start", "stopReason", "usage", "inputTokens", "message", "output", "trace",
    "error", "promptRouter", "invokedModelId", "__type", "code", "originalStatusCode", "location", "data",
]  # fmt: skip
EVENTS = [
    "messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata", "chunk",
]  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
events = st.dictionaries(st.sampled_from(EVENTS), values, min_size=1, max_size=2) | st.builds(
    lambda index, kind, piece: delta(index, **{kind: piece}),
    st.integers(0, 1),
    st.sampled_from(KEYS[:12]),
    values,
)


@examples(300)
@given(
    fed=st.lists(events, max_size=6),
    body=st.dictionaries(st.sampled_from(KEYS), values, max_size=4),
    blocks=st.lists(st.dictionaries(st.sampled_from(KEYS), values, max_size=2), max_size=3),
)
def test_no_input_raises_anything_but_a_model_error(
    fed: list[dict[str, Any]], body: dict[str, Any], blocks: list[dict[str, Any]]
) -> None:
    decoder = CODEC.decoder()
    try:
        for event in fed:
            decoder.feed(event)
    except ModelError:
        pass
    whole = answer(*blocks)
    for decode in (decoder.finish, lambda: CODEC.response(body), lambda: CODEC.response(whole)):
        try:
            response = decode()
        except ModelError as error:
            if error.partial is None:
                continue
            response = error.partial
        sent = CODEC.request(Request([Message.user("go"), response.message]), model="m", stream=True)
        json.dumps(sent)
    assert isinstance(CODEC.error(body), ModelError)


@examples(100)
@given(st.data())
def test_any_order_of_blocks_gives_the_same_sum(data: st.DataObject) -> None:
    texts = ['{"city":"Oslo"}', '{"a":[1,2]}', ""]
    queues = [
        [start(i, toolUse={"toolUseId": str(i), "name": f"f{i}"})]
        + [delta(i, toolUse={"input": text[at : at + 3]}) for at in range(0, len(text), 3)]
        for i, text in enumerate(texts)
    ]
    decoder = CODEC.decoder()
    while queues := [queue for queue in queues if queue]:
        decoder.feed(data.draw(st.sampled_from(queues)).pop(0))
    decoder.feed(END)
    calls = sorted(decoder.finish().message.calls, key=lambda call: call.id)
    assert [(call.name, call.arguments) for call in calls] == [
        (f"f{i}", text) for i, text in enumerate(texts)
    ]
