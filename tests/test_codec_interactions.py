"""Gemini's Interactions: the rules of its format, one a test."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from tests.test_codec_properties import conversations, dialogues
from toolcrib.call import ToolCall
from toolcrib.codecs import ModelError
from toolcrib.codecs.gemini_interactions import GeminiInteractionsCodec
from toolcrib.content import Image, Text
from toolcrib.messages import (
    CallChunk,
    Message,
    Opaque,
    Reasoning,
    Request,
    ResultPart,
    TextChunk,
    ToolChoice,
    Usage,
)
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec

CODEC = GeminiInteractionsCodec()
F = ToolSpec("f", "Does f.", {"type": "object", "properties": {}})
THOUGHT = {"type": "thought", "signature": "s", "summary": [{"type": "text", "text": "hm"}]}
SEARCH = {"type": "google_search_call", "id": "1", "arguments": {"queries": ["x"]}}


def body(*messages: Message, **fields: Any) -> dict[str, Any]:
    return CODEC.request(Request([*messages], **fields), model="m", stream=False)


def test_steps_go_back_as_they_came() -> None:
    steps = [
        THOUGHT,
        SEARCH,
        {"type": "model_output", "content": [{"type": "text", "text": "So."}]},
        {"type": "function_call", "id": "c1", "name": "f", "arguments": {"a": 1}},
    ]
    usage = {
        "total_input_tokens": 5,
        "total_tool_use_tokens": 2,
        "total_output_tokens": 3,
        "total_thought_tokens": 4,
    }
    response = CODEC.response({"status": "requires_action", "steps": steps, "usage": usage, "id": "i"})
    assert list(response.message.parts) == [
        Reasoning("hm", {"gemini_interactions": THOUGHT}),
        Opaque("gemini_interactions", SEARCH),
        Text("So."),
        ToolCall("f", {"a": 1}, "c1"),
    ]
    assert response.usage == Usage(7, 7, reasoning_tokens=4)
    assert (response.stop_reason, response.raw_stop_reason) == ("tool_calls", "requires_action")
    picture = ToolResult((Text("ok"), Image(data="AA", media_type="image/png")))
    answer = Message("tool", [ResultPart(response.message.calls[0], picture)])
    sent = body(Message.system("Be kind."), Message.user("Hi"), response.message, answer)
    assert sent["system_instruction"] == "Be kind."
    assert sent["input"][1:-1] == steps
    assert sent["input"][-1] == {
        "type": "function_result",
        "call_id": "c1",
        "name": "f",
        "result": [
            {"type": "text", "text": "ok"},
            {"type": "image", "data": "AA", "mime_type": "image/png"},
        ],
    }


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice(), None),
        (ToolChoice("none"), "none"),
        (ToolChoice("required"), "any"),
        (ToolChoice("auto", ("f",)), {"allowed_tools": {"mode": "auto", "tools": ["f"]}}),
        (ToolChoice("required", ("f",)), {"allowed_tools": {"mode": "any", "tools": ["f"]}}),
    ],
)
def test_tool_choice(choice: ToolChoice, expected: Any) -> None:
    config = body(Message.user("Hi"), tools=[F], tool_choice=choice).get("generation_config", {})
    assert config.get("tool_choice") == expected


def test_extras_may_have_the_server_remember() -> None:
    extras = {"gemini_interactions": {"store": True, "previous_interaction_id": "i"}, "gemini": {"x": 1}}
    sent = body(Message.user("Hi"), extras=extras)
    assert (sent["store"], sent["previous_interaction_id"]) == (True, "i")
    assert "x" not in sent


def delta(index: int, **fields: Any) -> dict[str, Any]:
    return {"event_type": "step.delta", "index": index, "delta": fields}


def test_steps_stream_in_pieces() -> None:
    decoder = CODEC.decoder()
    events = [
        {"event_type": "step.start", "index": 0, "step": {"type": "function_call", "id": "c", "name": "f"}},
        delta(0, type="arguments_delta", arguments='{"a":'),
        {"event_type": "step.start", "index": 1, "step": {"type": "model_output"}},
        delta(1, type="text", text="He"),
        delta(0, type="arguments_delta", arguments="1}"),
        delta(1, type="text", text="y"),
        delta(1, type="text_annotation_delta", annotations=[{"url": "u"}]),
        {"event_type": "step.stop", "index": 0},
        {"event_type": "interaction.completed", "interaction": {"status": "requires_action"}},
    ]
    chunks = [chunk for event in events for chunk in decoder.feed(event)]
    assert chunks == [
        CallChunk(0, "f", "c"),
        CallChunk(0, arguments='{"a":'),
        TextChunk("He"),
        CallChunk(0, arguments="1}"),
        TextChunk("y"),
        CallChunk(0, done=True),
    ]
    assert list(decoder.finish().message.parts) == [
        ToolCall("f", '{"a":1}', "c"),
        Text("Hey", {"gemini_interactions": {"annotations": [{"url": "u"}]}}),
    ]


def test_a_stream_that_breaks_keeps_what_came() -> None:
    decoder = CODEC.decoder()
    decoder.feed({"event_type": "step.start", "index": 0, "step": {"type": "model_output"}})
    decoder.feed(delta(0, type="text", text="Hel"))
    for fail in (decoder.finish, lambda: decoder.feed({"event_type": "error", "error": {"message": "x"}})):
        with pytest.raises(ModelError) as caught:
            fail()
        assert caught.value.partial is not None
        assert caught.value.partial.message.text == "Hel"


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_an_interaction_that_failed_is_no_answer(status: str) -> None:
    with pytest.raises(ModelError, match="too much"):
        CODEC.response({"status": status, "steps": [], "errors": [{"message": "too much"}]})


@examples(100)
@given(conversation=conversations | dialogues())
def test_any_conversation_gives_a_body_in_which_each_call_has_its_result(conversation: list[Message]) -> None:
    steps = body(*conversation, tools=[F])["input"]
    json.dumps(steps)
    waiting = [step["id"] for step in steps if step["type"] == "function_call"]
    assert waiting == [step["call_id"] for step in steps if step["type"] == "function_result"]
    assert len(waiting) == len(set(waiting))


words = st.sampled_from(
    ["", "x", "text", "thought", "model_output", "function_call", "step.start", "step.delta"]
)
KEYS = [
    "event_type", "type", "index", "step", "delta", "steps", "content", "summary", "text", "arguments", "id",
    "name", "status", "interaction", "usage", "errors", "annotations", "signature", "data", "error",
]  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=10,
)
typed = st.builds(
    lambda kind, more: {**more, "type": kind},
    st.sampled_from(["thought", "model_output", "function_call", "text", "image", "thought_summary", "x"]),
    st.dictionaries(st.sampled_from(KEYS), values, max_size=4),
)
events = st.fixed_dictionaries(
    {"event_type": st.sampled_from(["step.start", "step.delta", "step.stop", "interaction.completed"])},
    optional={
        "index": st.integers(0, 1) | values,
        "step": typed,
        "delta": typed | values,
        "interaction": values,
    },
)


@examples(300)
@given(fed=st.lists(events, max_size=8), steps=st.lists(typed, max_size=3) | values)
def test_no_input_raises_anything_but_a_model_error(fed: list[dict[str, Any]], steps: Any) -> None:
    decoder = CODEC.decoder()
    try:
        for event in fed:
            decoder.feed(event)
    except ModelError:
        pass
    for decode in (decoder.finish, lambda: CODEC.response({"steps": steps})):
        try:
            response = decode()
        except ModelError:
            continue
        CODEC.request(Request([response.message]), model="m", stream=False)
