"""Ollama's own format: calls that come whole, often without ids, in lines of JSON."""

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
from toolcrib.codecs import ModelError
from toolcrib.codecs.ndjson import JSONLines
from toolcrib.codecs.ollama import OllamaCodec
from toolcrib.content import Image, Json, Text
from toolcrib.messages import (
    CallChunk,
    Chunk,
    Message,
    Reasoning,
    ReasoningChunk,
    Request,
    Response,
    ResultPart,
    TextChunk,
    TokenLogprob,
    ToolChoice,
    Usage,
)
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec

CODEC = OllamaCodec()
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ToolSpec("weather", "The weather.", SCHEMA)
NEWS = ToolSpec("news", "The news.", SCHEMA)
THOUGHT = Reasoning("Hm.", {"ollama": {"field": "thinking"}})


def sent(*messages: Message, **named: Any) -> dict[str, Any]:
    return CODEC.request(Request([*messages], **named), model="m", stream=False)


def wire(*messages: Message) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sent(*messages)["messages"]
    return found


def answered(*parts: Any, result: ToolResult | None = None) -> list[Message]:
    """A turn whose calls are answered in the opposite order."""
    calls = [part for part in parts if isinstance(part, ToolCall)]
    results = [ResultPart(call, result or ToolResult.of(f"r{number}")) for number, call in enumerate(calls)]
    return [Message.user("Hi"), Message("assistant", [*parts]), Message("tool", [*reversed(results)])]


def test_a_turn_without_ids_goes_by_name_and_order() -> None:
    rome, oslo = ToolCall("weather", {"city": "Rome"}), ToolCall("weather", '{"city":"Oslo"}')
    assert wire(Message.system("Be brief."), *answered(THOUGHT, Text("So."), rome, oslo)) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": "So.",
            "thinking": "Hm.",
            "tool_calls": [
                {"function": {"name": "weather", "arguments": {"city": "Rome"}}},
                {"function": {"name": "weather", "arguments": {"city": "Oslo"}}},
            ],
        },
        {"role": "tool", "tool_name": "weather", "content": "r0"},
        {"role": "tool", "tool_name": "weather", "content": "r1"},
    ]


def test_ids_go_back_where_there_are_any() -> None:
    first, second = ToolCall("weather", {}, "call_1"), ToolCall("news", {}, "call_1")
    assistant, *results = wire(*answered(first, second))[1:]
    ids = [call["id"] for call in assistant["tool_calls"]]
    assert ids[0] == "call_1" != ids[1]
    assert [result["tool_call_id"] for result in results] == ids


def test_the_rest_of_a_request() -> None:
    body = sent(
        Message.user("Hi"),
        tools=[WEATHER],
        max_tokens=5,
        temperature=0.5,
        stop=("END",),
        logprobs=True,
        top_logprobs=3,
        logit_bias={"1": 2},
        parallel_calls=True,
        extras={"ollama": {"think": "low", "options": {"num_ctx": 9, "num_predict": 7}}, "openai": {"x": 1}},
    )
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": [
            {
                "type": "function",
                "function": {"name": "weather", "description": "The weather.", "parameters": SCHEMA},
            }
        ],
        "logprobs": True,
        "top_logprobs": 3,
        "think": "low",
        "options": {"num_predict": 7, "temperature": 0.5, "stop": ["END"], "num_ctx": 9},
        "stream": False,
    }


CHOICES: dict[str, tuple[ToolChoice, list[str]]] = {
    "auto": (ToolChoice(), ["weather", "news"]),
    "none": (ToolChoice("none"), []),
    "required": (ToolChoice("required"), ["weather", "news"]),
    "one": (ToolChoice("required", ("news",)), ["news"]),
    "none of some": (ToolChoice("none", ("news",)), []),
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_is_met_by_sending_fewer_tools(name: str) -> None:
    choice, tools = CHOICES[name]
    body = sent(Message.user("Hi"), tools=[WEATHER, NEWS], tool_choice=choice)
    assert [tool["function"]["name"] for tool in body.get("tools", ())] == tools
    assert "tool_choice" not in body


PICTURE = Image("AAAA", media_type="image/png")
PARTS: dict[str, tuple[list[Message], list[dict[str, Any]]]] = {
    "a picture": (
        [Message.user("See", PICTURE, "this")],
        [{"role": "user", "content": "See\nthis", "images": ["AAAA"]}],
    ),
    "an address is no picture": (
        [Message.user(Image(url="https://x/a.png"))],
        [{"role": "user", "content": "[image https://x/a.png]"}],
    ),
    "data": ([Message.user(Json({"a": 1}))], [{"role": "user", "content": '{"a":1}'}]),
    "another provider's thinking stays": (
        [Message("assistant", [Reasoning("No.", {"openai": {"field": "thinking"}}), Text("Yes.")])],
        [{"role": "assistant", "content": "Yes."}],
    ),
    "nothing at all": ([Message("assistant", [])], [{"role": "user", "content": "Continue."}]),
    "arguments that are no object": (
        answered(ToolCall("weather", "{")),
        [
            {"role": "user", "content": "Hi"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"function": {"name": "weather", "arguments": {"INVALID_JSON": "{"}}}],
            },
            {"role": "tool", "tool_name": "weather", "content": "r0"},
        ],
    ),
    "a picture in a result follows as the user's": (
        answered(ToolCall("weather", {}), result=ToolResult((Text("map"), PICTURE)))[1:],
        [
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"function": {"name": "weather", "arguments": {}}}],
            },
            {"role": "tool", "tool_name": "weather", "content": "map\n[image image/png]"},
            {"role": "user", "content": "From the result of weather:", "images": ["AAAA"]},
        ],
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str) -> None:
    messages, expected = PARTS[name]
    assert wire(*messages) == expected


def line(done: bool = False, rest: dict[str, Any] | None = None, **message: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": "", **message}
    return {
        "model": "qwen3",
        "created_at": "2026-01-01T00:00:00Z",
        "message": said,
        "done": done,
        **(rest or {}),
    }


def end(reason: str = "stop", **rest: Any) -> dict[str, Any]:
    return line(True, {"done_reason": reason, "prompt_eval_count": 9, "eval_count": 4, **rest})


def called(name: str, arguments: Any, **rest: Any) -> dict[str, Any]:
    return {**rest, "function": {"name": name, "arguments": arguments}}


def decoded(*events: dict[str, Any]) -> tuple[list[Chunk], Response]:
    decoder = CODEC.decoder()
    return [chunk for event in events for chunk in decoder.feed(event)], decoder.finish()


def test_a_stream_with_thinking_text_and_several_calls() -> None:
    rome = {"index": 0, "name": "weather", "arguments": {"city": "Rome"}}
    chunks, response = decoded(
        line(thinking="H"),
        line(thinking="m."),
        line(content="So"),
        line(content="."),
        line(tool_calls=[{"function": rome}]),
        line(tool_calls=[called("weather", {"city": "Oslo"}), called("news", {}, id="call_x")]),
        end(),
    )
    assert chunks == [
        ReasoningChunk("H"),
        ReasoningChunk("m."),
        TextChunk("So"),
        TextChunk("."),
        CallChunk(0, "weather", arguments='{"city":"Rome"}', done=True),
        CallChunk(1, "weather", arguments='{"city":"Oslo"}', done=True),
        CallChunk(2, "news", "call_x", "{}", done=True),
    ]
    parts = [
        THOUGHT,
        Text("So."),
        ToolCall("weather", {"city": "Rome"}),
        ToolCall("weather", {"city": "Oslo"}),
        ToolCall("news", {}, "call_x"),
    ]
    message = Message("assistant", [*parts])
    assert response == Response(message, "tool_calls", Usage(9, 4), "qwen3", "stop")


ARGUMENTS: dict[str, tuple[Any, list[Any]]] = {
    "an object": ({"a": 1}, [{"a": 1}]),
    "text": ('{"a": 1}', ['{"a": 1}']),
    "glued text": ('{"a":1}{"a":2}', ['{"a":1}', '{"a":2}']),
    "nothing": (None, [""]),
    "a list": ([1], ["[1]"]),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name: str) -> None:
    given_, expected = ARGUMENTS[name]
    response = CODEC.response(line(True, tool_calls=[called("weather", given_)]))
    assert [call.arguments for call in response.message.calls] == expected


STOPS = {"stop": "end", "length": "length", "load": "other", "unload": "other", "": "end"}


@pytest.mark.parametrize("reason", STOPS)
def test_stop_reasons(reason: str) -> None:
    assert decoded(line(content="So"), end(reason))[1].stop_reason == STOPS[reason]
    assert CODEC.response(end(reason)).stop_reason == STOPS[reason]


def test_pictures_and_logprobs_of_an_answer() -> None:
    tokens = [
        {"token": "So", "logprob": -0.5, "bytes": [1], "top_logprobs": [{"token": "No", "logprob": -2}]}
    ]
    response = decoded(line(content="So", rest={"logprobs": tokens}), line(images=["/9j/AA", "??"]), end())[1]
    assert list(response.message.parts[1:]) == [Image("/9j/AA", media_type="image/jpeg"), Image("??")]
    assert response.logprobs == (TokenLogprob("So", -0.5, (("No", -2.0),)),)


BROKEN: dict[str, tuple[list[dict[str, Any]], str]] = {
    "the stream ends": ([], "before the answer was complete"),
    "an error line": ([{"error": "an error was encountered"}], "an error was encountered"),
    "its words as the key": (
        [{"error parsing tool call": "unexpected end"}],
        "parsing tool call: unexpected end",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_streams_that_break(name: str) -> None:
    events, words = BROKEN[name]
    with pytest.raises(ModelError, match=words) as caught:
        decoded(line(content="So"), *events)
    assert caught.value.retryable
    assert caught.value.partial is not None
    assert caught.value.partial.message.text == "So"


@pytest.mark.parametrize("body", [{}, {"done": True}, {"error": "no"}, {"message": "no"}])
def test_no_answers(body: dict[str, Any]) -> None:
    with pytest.raises(ModelError):
        CODEC.response(body)
    with pytest.raises(ModelError):
        decoded(body)


def test_an_answer_of_generate_is_read_too() -> None:
    response = CODEC.response({"response": "So.", "thinking": "Hm.", "done": True, "done_reason": "stop"})
    assert [getattr(part, "text", "") for part in response.message.parts] == ["Hm.", "So."]
    streamed = decoded({"response": "S"}, {"response": "o.", "done": True, "done_reason": "stop"})
    assert streamed[1].message.text == "So."


def test_errors() -> None:
    error = CODEC.error({"error": 'model "x" not found, try pulling it first'}, 404)
    assert (error.message, error.retryable) == ('model "x" not found, try pulling it first', False)
    assert CODEC.error({"error": "server busy"}, 503, 2.0).retry_after == 2.0
    assert CODEC.error("<html>", 502).retryable


def test_names_are_mapped_and_mapped_back() -> None:
    request = Request([Message.user("Hi")], [ToolSpec("mcp.get:x", "", SCHEMA)])
    name = CODEC.request(request, model="m", stream=False)["tools"][0]["function"]["name"]
    assert name.isidentifier()
    assert (
        CODEC.response(line(True, tool_calls=[called(name, {})]), request).message.calls[0].name
        == "mcp.get:x"
    )


FIELDS = [
    "message",
    "content",
    "thinking",
    "tool_calls",
    "images",
    "function",
    "name",
    "arguments",
    "id",
    "done",
]
MORE = ["done_reason", "eval_count", "logprobs", "token", "logprob", "top_logprobs", "error", "model"]
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
wild = st.recursive(
    scalars | st.sampled_from(["stop", "length", '{"a":1}{"a":2}']),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS + MORE), inner, max_size=5)
    ),
    max_leaves=12,
)


@examples(300)
@given(
    st.lists(
        st.dictionaries(st.sampled_from(FIELDS + MORE) | st.text(max_size=3), wild, max_size=5), max_size=5
    )
)
def test_no_line_raises_anything_but_our_error(found: list[dict[str, Any]]) -> None:
    decoder = CODEC.decoder()
    try:
        for item in found:
            CODEC.error(item)
            decoder.feed(item)
        decoder.finish()
    except ModelError:
        pass


STREAM = [
    line(thinking="Hm — 😀"),
    line(content="Grüß"),
    line(tool_calls=[called("f", {"a": "Zürich"})]),
    end(),
]
BYTES = b"\xef\xbb\xbf" + "\r\n".join(json.dumps(item, ensure_ascii=False) for item in STREAM).encode()


@given(st.sets(st.integers(0, len(BYTES))))
def test_any_split_gives_the_same_sum(cuts: set[int]) -> None:
    reader, places = JSONLines(), [0, *sorted(cuts), len(BYTES)]
    found = [item for start, stop in itertools.pairwise(places) for item in reader.feed(BYTES[start:stop])]
    assert decoded(*found, *reader.finish()) == decoded(*STREAM)


@pytest.mark.slow
def test_the_time_is_linear_in_the_stream() -> None:
    def read(count: int) -> Callable[[], object]:
        data = b"\n".join(json.dumps(line(content="so ")).encode() for _ in range(count // 8))
        data += b"\n" + json.dumps(line(content="so " * count)).encode() + b"\n" + json.dumps(end()).encode()

        def work() -> None:
            reader = JSONLines()
            pieces = [reader.feed(data[start : start + 16]) for start in range(0, len(data), 16)]
            decoded(*(item for piece in pieces for item in piece), *reader.finish())

        return work

    assert growth(read, 2000, 16_000, at_most=16) < 16
