"""Whatever comes: any conversation gives a valid body, and no input makes a decoder raise anything of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import growth
from tests.properties import examples
from toolcrib.call import ToolCall
from toolcrib.codecs import AnthropicMessagesCodec, Codec, ModelError, OpenAIChatCodec
from toolcrib.content import Audio, File, Image, Json, Text
from toolcrib.messages import (
    CallChunk,
    Message,
    Opaque,
    Reasoning,
    Request,
    ResultPart,
    messages_from_json,
    messages_to_json,
)
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec

CODECS: list[Codec] = [
    OpenAIChatCodec(),
    OpenAIChatCodec("mistral"),
    OpenAIChatCodec("vllm:1"),
    AnthropicMessagesCodec(),
]
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")

texts = st.sampled_from(
    ["", " ", "hello", "line\n", "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")]
)
ids = st.sampled_from(["", "null", "call_1", "toolu_1", "functions.f:0", "x" * 70, "é"])
names = st.sampled_from(["f", "g", "mcp:f", "a.b", "", "x" * 70])
arguments = st.sampled_from(["", "{}", '{"a": 1}', '{"a', "[1]", "nonsense"]) | st.just({"a": 1})
extras = st.sampled_from(
    [{}, {"openai": {"field": "reasoning_content"}}, {"anthropic": {"type": "thinking", "signature": "s"}}]
)
calls = st.builds(ToolCall, names, arguments, ids)
media = st.builds(Image, st.sampled_from(["", "AAAA"]), media_type=st.sampled_from(["image/png", "x/y"]))
parts = st.one_of(
    st.builds(Text, texts),
    st.builds(Json, st.just([1])),
    media,
    st.just(Audio(data="AAAA", media_type="audio/wav")),
    st.just(File(url="https://example.org/a.pdf")),
)
results = st.builds(lambda p, e: ToolResult(tuple(p), is_error=e), st.lists(parts, max_size=2), st.booleans())
anything = st.one_of(
    parts,
    calls,
    st.builds(Reasoning, texts, extras),
    st.just(
        Opaque(
            "anthropic", {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
        )
    ),
    st.builds(ResultPart, calls, results),
)
roles = st.sampled_from(["system", "user", "assistant", "tool"])
conversations = st.lists(st.builds(Message, roles, st.lists(anything, max_size=4)), max_size=7)


@st.composite
def dialogues(draw: st.DrawFn) -> list[Message]:
    """Conversations in which most calls are answered, some by a copy that came back from a file."""
    messages: list[Message] = []
    for asked in draw(st.lists(st.lists(calls, max_size=3), max_size=4)):
        messages += [Message.user("go"), Message("assistant", [*asked])]
        answers = [ResultPart(call, draw(results)) for call in draw(st.permutations(asked))]
        messages.append(Message("tool", [*answers[: draw(st.integers(0, 3))]]))
    return messages_from_json(messages_to_json(messages)) if draw(st.booleans()) else messages


def check_chat(body: dict[str, Any]) -> None:
    assert body["messages"]
    waiting: set[str] = set()
    seen: set[str] = set()
    for message in body["messages"]:
        if message["role"] == "tool":
            assert isinstance(message["content"], str)
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting, "a call was left unanswered"
        assert message.get("tool_calls") != []
        assert message["content"] or message.get("tool_calls") or message.get("refusal")
        for call in message.get("tool_calls", ()):
            assert NAME.fullmatch(call["function"]["name"])
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            assert call["id"]
            assert call["id"] not in seen
            seen.add(call["id"])
            waiting.add(call["id"])
    assert not waiting


def check_anthropic(body: dict[str, Any]) -> None:
    turns = body["messages"]
    assert turns
    assert turns[0]["role"] == "user"
    waiting: set[str] = set()
    seen: set[str] = set()
    for before, turn in zip([None, *turns], turns, strict=False):
        assert before is None or before["role"] != turn["role"]
        assert turn["content"]
        kinds = [block["type"] for block in turn["content"]]
        assert kinds == sorted(kinds, key=lambda kind: kind != "tool_result") or turn["role"] == "assistant"
        for block in turn["content"]:
            if block["type"] == "text":
                assert block["text"].strip()
            if block["type"] == "tool_result":
                waiting.remove(block["tool_use_id"])
        assert not waiting, "a call was left unanswered"
        for block in turn["content"]:
            if block["type"] == "tool_use":
                assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", block["id"])
                assert NAME.fullmatch(block["name"])
                assert isinstance(block["input"], dict)
                assert block["id"] not in seen
                seen.add(block["id"])
                waiting.add(block["id"])
    assert not waiting


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.provider)
@examples(150)
@given(conversation=conversations | dialogues())
def test_any_conversation_gives_a_valid_body(codec: Codec, conversation: list[Message]) -> None:
    before = messages_to_json(conversation)
    request = Request(conversation, [ToolSpec("f", "", {"type": "object", "properties": {}})])
    body = codec.request(request, model="m", stream=True)
    json.dumps(body)
    (check_anthropic if codec.name == "anthropic_messages" else check_chat)(body)
    assert body == codec.request(request, model="m", stream=True)
    assert messages_to_json(conversation) == before


words = st.sampled_from(
    ["", "x", "text", "error", "tool_use", "thinking", "message_stop", "stop", "{", "null"]
)
scalars = st.none() | st.booleans() | st.integers(-2, 3) | words | st.just(float("nan")) | st.just(10**400)
KEYS = [
    "type", "choices", "delta", "message", "content", "index", "tool_calls", "function", "name", "arguments", "id",
    "usage", "error", "finish_reason", "reasoning_details", "content_block", "text", "thinking", "input", "code",
    "partial_json", "signature", "citation", "stop_reason", "container", "summary", "prompt_tokens", "cost", "[DONE]",
]  # fmt: skip
KINDS = [
    "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
    "text_delta", "input_json_delta", "thinking_delta", "citations_delta", "tool_use", "thinking", "text",
]  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
tool_deltas = st.fixed_dictionaries(
    {},
    optional={
        "index": values,
        "id": values,
        "function": values | st.fixed_dictionaries({"name": values, "arguments": values}),
    },
)
deltas = st.fixed_dictionaries(
    {},
    optional={
        "content": values,
        "tool_calls": st.lists(tool_deltas, max_size=3),
        "reasoning_details": values,
        "reasoning": values,
    },
)
chat_events = st.fixed_dictionaries(
    {
        "choices": st.lists(
            st.fixed_dictionaries({"delta": deltas}, optional={"finish_reason": values}), max_size=2
        )
    },
    optional={"usage": values},
)
blocks = st.builds(
    lambda kind, more: {**more, "type": kind},
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(KEYS), values, max_size=5),
)
anthropic_events = st.fixed_dictionaries(
    {"type": st.sampled_from(KINDS)},
    optional={
        "index": st.integers(0, 1) | values,
        "content_block": blocks,
        "delta": blocks,
        "message": values,
        "usage": values,
    },
)
events = st.dictionaries(st.sampled_from(KEYS), values, max_size=4) | chat_events | anthropic_events


@pytest.mark.parametrize("codec", CODECS[::3], ids=lambda codec: codec.name)
@examples(300)
@given(fed=st.lists(events, max_size=6), body=st.dictionaries(st.sampled_from(KEYS), values, max_size=5))
def test_no_input_raises_anything_but_a_model_error(
    codec: Codec, fed: list[dict[str, Any]], body: dict[str, Any]
) -> None:
    decoder = codec.decoder()
    try:
        for event in fed:
            decoder.feed(event)
    except ModelError:
        pass
    for decode in (decoder.finish, lambda: codec.response(body)):
        try:
            response = decode()
        except ModelError:
            continue
        codec.request(Request([response.message]), model="m", stream=False)
    assert isinstance(codec.error(body), ModelError)


@examples(100)
@given(
    asked=st.lists(
        st.tuples(
            st.sampled_from(["f", "g"]), st.dictionaries(words, scalars.filter(lambda x: x == x), max_size=3)
        ),
        min_size=1,
        max_size=4,
    ),
    cuts=st.lists(st.integers(1, 5), min_size=1, max_size=8),
    interleave=st.booleans(),
    data=st.data(),
)
def test_calls_survive_any_cut_and_order(
    asked: list[tuple[str, dict[str, Any]]], cuts: list[int], interleave: bool, data: st.DataObject
) -> None:
    queues: list[list[dict[str, Any]]] = []
    for index, (name, value) in enumerate(asked):
        text, pieces, at = json.dumps(value), [], 0
        while at < len(text):
            size = cuts[len(pieces) % len(cuts)]
            pieces.append({"index": index, "function": {"arguments": text[at : at + size]}})
            at += size
        pieces[0] |= {"id": f"id{index}"}
        pieces[0]["function"]["name"] = name
        queues.append(pieces)
    decoder = OpenAIChatCodec().decoder()
    chunks = []
    while queues:
        queue = data.draw(st.sampled_from(queues)) if interleave else queues[0]
        event = {"choices": [{"delta": {"tool_calls": [queue.pop(0)]}}]}
        chunks += decoder.feed(event)
        queues = [queue for queue in queues if queue]
    decoder.feed({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    calls = decoder.finish().message.calls
    got = sorted((call.id, call.name, call.arguments) for call in calls)
    assert got == [(f"id{index}", name, json.dumps(value)) for index, (name, value) in enumerate(asked)]
    for number, call in enumerate(calls):
        mine = [chunk for chunk in chunks if isinstance(chunk, CallChunk) and chunk.index == number]
        assert "".join(chunk.arguments for chunk in mine) == call.arguments


def long_stream(codec: Codec, size: int) -> list[dict[str, Any]]:
    step = '{"a": "\\"' + "x" * 6
    if codec.name == "openai_chat":
        calls = [{"index": 0, "id": "x", "function": {"name": "f", "arguments": step}}]
        again = [{"function": {"name": "f", "arguments": "y" * 16}}]
        return [
            {"choices": [{"delta": {"tool_calls": delta}}]} for delta in (calls, *([again] * (size // 16)))
        ]
    start = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "tool_use", "id": "x", "name": "f"},
    }
    delta = {"type": "input_json_delta", "partial_json": "y" * 16}
    return [start, *([{"type": "content_block_delta", "index": 0, "delta": delta}] * (size // 16))]


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS[::3], ids=lambda codec: codec.name)
def test_decoding_is_linear(codec: Codec) -> None:
    def decoding(size: int) -> Callable[[], object]:
        fed = long_stream(codec, size)

        def work() -> None:
            decoder = codec.decoder()
            for event in fed:
                decoder.feed(event)
            with pytest.raises(ModelError):
                decoder.finish()

        return work

    assert growth(decoding, 50_000, 400_000, 40) < 40
