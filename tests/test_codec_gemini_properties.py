"""Gemini: any conversation gives a legal body, any events raise nothing of their own, any cut gives the same sum."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from tests.test_codec_properties import conversations, dialogues
from toolcrib.codecs import JSONEvents, ModelError
from toolcrib.codecs.gemini import GeminiCodec
from toolcrib.codecs.gemini_partial import PartialArguments
from toolcrib.messages import (
    CallChunk,
    Chunk,
    Message,
    Request,
    Response,
    TextChunk,
    messages_from_json,
    messages_to_json,
)
from toolcrib.spec import ToolSpec

CODEC = GeminiCodec()
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
TOOL = ToolSpec("f", "", {"type": "object", "properties": {}})


def check(turns: list[dict[str, Any]]) -> None:
    """Roles take turns, the user begins, and each turn with calls is followed by exactly their results."""
    assert turns[0]["role"] == "user"
    waiting: list[tuple[str, str | None]] = []
    for before, turn in zip([None, *turns], turns, strict=False):
        assert before is None or before["role"] != turn["role"]
        assert turn["parts"]
        said = [part["functionResponse"] for part in turn["parts"] if "functionResponse" in part]
        assert [(item["name"], item.get("id")) for item in said] == waiting
        assert all(isinstance(item["response"], dict) for item in said)
        calls = [part["functionCall"] for part in turn["parts"] if "functionCall" in part]
        assert turn["role"] == "model" or not calls
        assert all(NAME.fullmatch(call["name"]) and isinstance(call["args"], dict) for call in calls)
        waiting = [(call["name"], call.get("id")) for call in calls]
    assert not waiting


@examples(150)
@given(
    conversation=conversations | dialogues(),
    model=st.sampled_from(["gemini-3-pro", "gemini-2.5-flash"]),
)
def test_any_conversation_gives_a_legal_body(conversation: list[Message], model: str) -> None:
    before = messages_to_json(conversation)
    request = Request(conversation, [TOOL])
    body = CODEC.request(request, model=model, stream=True)
    json.dumps(body)
    check(body["contents"])
    assert body == CODEC.request(request, model=model, stream=True)
    assert messages_to_json(conversation) == before


words = st.sampled_from(
    ["", "x", "f", "STOP", "MAX_TOKENS", "MALFORMED_FUNCTION_CALL", "null", "$.a", "$.a[0]", "{"]
)
scalars = st.none() | st.booleans() | st.integers(-2, 12) | words | st.just(float("nan")) | st.just(10**400)
KEYS = [
    "candidates", "content", "parts", "text", "thought", "thoughtSignature", "functionCall", "name", "args", "id",
    "partialArgs", "willContinue", "jsonPath", "stringValue", "numberValue", "inlineData", "fileData", "mimeType",
    "data", "fileUri", "finishReason", "finishMessage", "index", "usageMetadata", "promptTokenCount", "error",
    "code", "message", "details", "retryDelay", "violations", "quotaId", "promptFeedback", "blockReason", "[DONE]",
    "logprobsResult", "chosenCandidates", "topCandidates", "token", "logProbability", "modelVersion",
    "groundingMetadata",
]  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=10,
)
paths = st.sampled_from(["$.a", "$.b", "$.a[0]", "$.a[1]", "$.a[0].x", "$['k']", "$", "", "$.a.b"])
entries = st.fixed_dictionaries(
    {},
    optional={
        "jsonPath": paths | values,
        "stringValue": words | values,
        "numberValue": values,
        "boolValue": values,
        "nullValue": values,
        "willContinue": st.booleans() | values,
    },
)
calls = st.fixed_dictionaries(
    {},
    optional={
        "name": words | values,
        "id": words | values,
        "args": values,
        "partialArgs": st.lists(entries, max_size=3) | values,
        "willContinue": st.booleans() | values,
        "more": values,
    },
)
parts = st.fixed_dictionaries(
    {},
    optional={
        "text": words | values,
        "thought": st.booleans() | values,
        "thoughtSignature": words | values,
        "functionCall": calls | values,
        "inlineData": values,
        "fileData": values,
    },
)
candidates = st.fixed_dictionaries(
    {"content": st.fixed_dictionaries({"parts": st.lists(parts, max_size=3)}) | values},
    optional={
        "finishReason": words | values,
        "finishMessage": values,
        "index": values,
        "logprobsResult": values,
    },
)
events = st.dictionaries(st.sampled_from(KEYS), values, max_size=4) | st.fixed_dictionaries(
    {"candidates": st.lists(candidates, max_size=2) | values},
    optional={"usageMetadata": values, "promptFeedback": values, "modelVersion": values},
)


@examples(400)
@given(fed=st.lists(events, max_size=6), status=st.none() | st.integers(100, 599))
def test_no_input_raises_anything_but_a_model_error(fed: list[dict[str, Any]], status: int | None) -> None:
    decoder = CODEC.decoder(Request([], [TOOL]))
    try:
        for event in fed:
            decoder.feed(event)
    except ModelError:
        pass
    for decode in (decoder.finish, lambda: CODEC.response(fed[0] if fed else {})):
        try:
            response = decode()
        except ModelError as error:
            if error.partial is None:
                continue
            response = error.partial
        CODEC.request(Request([response.message]), model="m", stream=False)
        messages_to_json([response.message])
    assert isinstance(CODEC.error(fed, status), ModelError)
    assert isinstance(CODEC.error(fed[0] if fed else None, status), ModelError)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(st.text(max_size=4), inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=4), json_values, min_size=1, max_size=4)


def pieces_of(path: str, value: Any, size: int) -> list[dict[str, Any]]:
    """A value as the entries that Vertex would stream for it; strings whole where `size` is 0."""
    if isinstance(value, dict):
        return [entry for k, v in value.items() for entry in pieces_of(f"{path}[{json.dumps(k)}]", v, size)]
    if isinstance(value, list):
        return [entry for i, v in enumerate(value) for entry in pieces_of(f"{path}[{i}]", v, size)]
    if isinstance(value, str):
        cuts = [value[at : at + size] for at in range(0, len(value), size)] if size else []
        pieces = [{"jsonPath": path, "stringValue": cut, "willContinue": True} for cut in cuts]
        return [*pieces, {"jsonPath": path, "stringValue": "" if size else value}]
    kind = "boolValue" if isinstance(value, bool) else "nullValue" if value is None else "numberValue"
    return [{"jsonPath": path, kind: value}]


@examples(200)
@given(value=objects, size=st.integers(1, 3))
def test_arguments_in_order_are_said_as_they_come(value: dict[str, Any], size: int) -> None:
    arguments = PartialArguments()
    said = "".join([*map(arguments.take, pieces_of("$", value, size)), arguments.close()])
    assert arguments.whole() == (said, "")
    assert json.loads(said) == value


@examples(200)
@given(value=objects, data=st.data())
def test_arguments_in_any_order_give_the_object(value: dict[str, Any], data: st.DataObject) -> None:
    arguments = PartialArguments()
    for entry in data.draw(st.permutations(pieces_of("$", value, 0))):
        arguments.take(entry)
    arguments.close()
    whole, problem = arguments.whole()
    assert not problem
    assert (json.loads(whole) if isinstance(whole, str) else whole) == value


def streamed(events: list[dict[str, Any]]) -> tuple[list[Chunk], Response]:
    decoder = CODEC.decoder()
    chunks = [chunk for event in events for chunk in decoder.feed(event)]
    return chunks, decoder.finish()


@examples(100)
@given(
    said=st.lists(st.tuples(st.sampled_from(["text", "thought", "call"]), st.text(max_size=4)), max_size=6),
    cuts=st.lists(st.integers(1, 40), min_size=1, max_size=8),
)
def test_any_cut_of_the_bytes_gives_the_same(said: list[tuple[str, str]], cuts: list[int]) -> None:
    parts: dict[str, Any] = {
        "text": lambda word: {"text": word},
        "thought": lambda word: {"text": word, "thought": True},
        "call": lambda word: {"functionCall": {"name": "f", "args": {"a": word}}},
    }
    events: list[dict[str, Any]] = [
        {"candidates": [{"content": {"parts": [parts[kind](word)]}}]} for kind, word in said
    ]
    events.append({"candidates": [{"finishReason": "STOP"}]})
    data = "".join(f"data: {json.dumps(event, ensure_ascii=False)}\r\n\r\n" for event in events).encode()
    reader, fed, at = JSONEvents(), [], 0
    while at < len(data):
        size = cuts[at % len(cuts)]
        fed += reader.feed(data[at : at + size])
        at += size
    fed += reader.finish()
    chunks, response = streamed(fed)
    assert (chunks, response) == streamed(events)
    assert "".join(c.text for c in chunks if isinstance(c, TextChunk)) == response.message.text
    assert [call.arguments for call in response.message.calls] == [
        {"a": w} for kind, w in said if kind == "call"
    ]
    assert sum(isinstance(chunk, CallChunk) and chunk.done for chunk in chunks) == len(response.message.calls)
    back = messages_from_json(messages_to_json([response.message]))[0]
    assert back == response.message
