"""Chat Completions: the quirks of its servers, one a row."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

from toolcrib.call import ToolCall
from toolcrib.codecs import ModelError, OpenAIChatCodec
from toolcrib.content import Audio, Image, Json, Text
from toolcrib.messages import (
    CallChunk,
    Message,
    Opaque,
    Reasoning,
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

CODEC = OpenAIChatCodec()
OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}}


def delta(*calls: dict[str, Any], finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "choices": [{"index": 0, "delta": {**fields, "tool_calls": list(calls)}, "finish_reason": finish}]
    }


def piece(
    arguments: Any = None, name: str | None = None, id: str | None = None, index: int | None = None
) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    call = {"index": index, "id": id, "function": {k: v for k, v in function.items() if v is not None}}
    return {key: value for key, value in call.items() if value is not None}


def stream(*events: dict[str, Any]) -> Response:
    decoder = CODEC.decoder()
    for event in events:
        decoder.feed(event)
    return decoder.finish()


END = delta(finish="tool_calls")
A, B = '{"a":1}', '{"b":2}'
STREAMS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str, str]]]] = {
    "by index, interleaved": (
        [
            delta(piece("", "f", "x", 0)),
            delta(piece("", "g", "y", 1)),
            delta(piece('{"a"', index=0)),
            delta(piece('{"b"', index=1)),
            delta(piece(":1}", index=0), piece(":2}", index=1)),
            END,
        ],
        [("x", "f", A), ("y", "g", B)],
    ),
    "index 0 for every call, told apart by id": (
        [delta(piece(A, "f", "x", 0)), delta(piece(B, "g", "y", 0)), END],
        [("x", "f", A), ("y", "g", B)],
    ),
    "index 0 for every call, no ids": (
        [delta(piece(A, "f", None, 0)), delta(piece(B, "f", None, 0)), END],
        [("", "f", A), ("", "f", B)],
    ),
    "index 0, ids come back interleaved": (
        [
            delta(piece('{"a"', "f", "x", 0)),
            delta(piece('{"b"', "g", "y", 0)),
            delta(piece(":1}", None, "x", 0)),
            delta(piece(":2}", None, "y", 0)),
            END,
        ],
        [("x", "f", A), ("y", "g", B)],
    ),
    "no index, with ids": (
        [delta(piece('{"a"', "f", "x"), piece(B, "g", "y")), delta(piece(":1}", id="x")), END],
        [("x", "f", A), ("y", "g", B)],
    ),
    "no index, no ids": (
        [delta(piece('{"a"', "f")), delta(piece(":1}")), delta(piece(B, "g")), END],
        [("", "f", A), ("", "g", B)],
    ),
    "no index, no ids, twice the same call in one event": (
        [delta(piece(A, "f"), piece(A, "f")), END],
        [("", "f", A), ("", "f", A)],
    ),
    "id and name in every piece": (
        [delta(piece('{"a"', "f", "x", 0)), delta(piece(":1}", "f", "x", 0)), END],
        [("x", "f", A)],
    ),
    "the same id for two calls": (
        [delta(piece(A, "f", "x", 0)), delta(piece(B, "f", "x", 1)), END],
        [("x", "f", A), ("x", "f", B)],
    ),
    "the whole arguments once more at the end": (
        [
            delta(piece('{"a"', "f", "x", 0)),
            delta(piece(":1}", index=0)),
            delta(piece('{"a": 1}', "f", "x", 0), finish="tool_calls"),
        ],
        [("x", "f", A)],
    ),
    "arguments as an object": ([delta(piece({"a": 1}, "f", "x", 0)), END], [("x", "f", A)]),
    "empty arguments": ([delta(piece("", "f", "x", 0)), END], [("x", "f", "")]),
    "arguments null": (
        [delta({"index": 0, "id": "x", "function": {"name": "f", "arguments": None}}), END],
        [("x", "f", "")],
    ),
    "the id is the word null": ([delta(piece(A, "f", "null", 0)), END], [("", "f", A)]),
    "braces and quotes in strings do not end a call": (
        [
            delta(piece('{"a":"}', "f", "x", 0)),
            delta(piece("\\", index=0)),
            delta(piece('"{"}', index=0)),
            END,
        ],
        [("x", "f", '{"a":"}\\"{"}')],
    ),
    "name after id": ([delta(piece("", None, "x", 0)), delta(piece(A, "f", None, 0)), END], [("x", "f", A)]),
    "the older function_call": (
        [
            {"choices": [{"delta": {"function_call": {"name": "f", "arguments": '{"a"'}}}]},
            {
                "choices": [
                    {"delta": {"function_call": {"arguments": ":1}"}}, "finish_reason": "function_call"}
                ]
            },
        ],
        [("", "f", A)],
    ),
    "a whole message as the only event": (
        [{"choices": [{"message": {"tool_calls": [piece(A, "f", "x")]}, "finish_reason": "tool_calls"}]}],
        [("x", "f", A)],
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_streamed_calls(name: str) -> None:
    events, expected = STREAMS[name]
    response = stream(*events)
    assert [(call.id, call.name, call.arguments) for call in response.message.calls] == expected
    assert response.stop_reason == "tool_calls"


def test_chunks_of_a_call_say_name_and_id_once_and_when_it_is_done() -> None:
    decoder = CODEC.decoder()
    first = decoder.feed(delta(piece('{"a"', "f", "x", 0)))
    second = decoder.feed(delta(piece(":1}", "f", "x", 0)))
    assert first == [CallChunk(0, "f", "x", '{"a"')]
    assert second == [CallChunk(0, arguments=":1}")]
    assert decoder.feed(END) == [CallChunk(0, done=True)]


@pytest.mark.parametrize(
    ("finish", "calls", "reason"),
    [
        ("stop", True, "tool_calls"),
        ("stop", False, "end"),
        ("tool_calls", False, "end"),
        ("length", True, "length"),
        ("content_filter", False, "filter"),
        ("something new", False, "other"),
    ],
)
def test_stop_reasons(finish: str, calls: bool, reason: str) -> None:
    message = {"content": "Hi", "tool_calls": [piece(A, "f", "x")] if calls else None}
    body = {"choices": [{"message": message, "finish_reason": finish}]}
    assert CODEC.response(body).stop_reason == reason
    assert CODEC.response(body).raw_stop_reason == finish


@pytest.mark.parametrize(
    "empty",
    [
        {"function_call": {"name": "", "arguments": ""}},
        {"function_call": {"name": None, "arguments": None}},
        {"function_call": {}},
        {"tool_calls": [{"id": "", "type": "function", "function": {"name": "", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": None}, {}]},
    ],
)
def test_a_call_that_says_nothing_is_none(empty: dict[str, Any]) -> None:
    """Snowflake Cortex sends an empty `function_call` with every answer."""
    said = {"role": "assistant", "content": "Hi", **empty}
    whole = CODEC.response({"choices": [{"message": said, "finish_reason": "stop"}]})
    streamed = stream(
        {"choices": [{"delta": said}]}, {"choices": [{"delta": empty, "finish_reason": "stop"}]}
    )
    for answer in (whole, streamed):
        assert (answer.message.text, answer.message.calls, answer.stop_reason) == ("Hi", [], "end")


def test_a_refusal_is_text_that_says_so() -> None:
    message = {"role": "assistant", "content": None, "refusal": "I will not."}
    response = CODEC.response({"choices": [{"message": message, "finish_reason": "stop"}]})
    assert (response.stop_reason, response.message.text) == ("refusal", "I will not.")
    sent = CODEC.request(Request([response.message]), model="m", stream=False)["messages"]
    assert sent == [message]


def test_an_error_in_the_middle_of_a_stream() -> None:
    decoder = CODEC.decoder()
    assert decoder.feed(delta(content="Hel")) == [TextChunk("Hel")]
    with pytest.raises(ModelError, match="Provider returned error") as caught:
        decoder.feed({"error": {"code": 429, "message": "Provider returned error"}, "choices": []})
    assert (caught.value.retryable, caught.value.status) == (True, 429)
    assert caught.value.partial is not None
    assert caught.value.partial.message.text == "Hel"


def test_a_stream_that_breaks_off_is_an_error() -> None:
    with pytest.raises(ModelError, match="ended before") as caught:
        stream(delta(piece('{"path": "/et', "f", "x", 0)))
    assert caught.value.retryable


ERRORS: list[tuple[Any, int | None, str, bool]] = [
    ({"error": {"message": "slow down", "type": "rate_limit_error"}}, 429, "slow down", True),
    ({"error": {"message": "no credit", "code": "insufficient_quota"}}, 429, "no credit", False),
    ({"error": {"message": "bad", "type": "invalid_request_error"}}, 400, "bad", False),
    ({"error": "out of memory"}, 500, "out of memory", True),
    ({"message": "not found", "object": "error"}, 404, "not found", False),
    ({"detail": "Unauthorized"}, 401, "Unauthorized", False),
    ("Bad Gateway", 502, "Bad Gateway", True),
    ({"error": {"message": "no key", "type": "api_error"}}, 401, "no key", False),
    ({"error": {"message": "no right", "type": "api_error"}}, 403, "no right", False),
    ({"error": {"message": "no model", "type": "server_error", "code": "404"}}, 404, "no model", False),
    ({"error": {"message": "broken", "type": "api_error"}}, 400, "broken", False),
    ({"error": {"message": "busy", "type": "overloaded_error"}}, 400, "busy", True),
    ({"error": {"message": "broken", "type": "api_error"}}, None, "broken", True),
    (None, None, "the model answered with an error", False),
]


@pytest.mark.parametrize(("body", "status", "message", "retryable"), ERRORS)
def test_errors(body: Any, status: int | None, message: str, retryable: bool) -> None:
    error = CODEC.error(body, status, 2.0)
    assert (error.message, error.retryable, error.status, error.retry_after) == (
        message,
        retryable,
        status,
        2.0,
    )


@pytest.mark.parametrize(
    ("wire", "usage"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}, Usage(5, 3)),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 3,
                "total_tokens": 8,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 2},
            },
            Usage(5, 3, cache_read_tokens=4, reasoning_tokens=2),
        ),
        (  # thinking counted beside the completion
            {
                "prompt_tokens": 5,
                "completion_tokens": 3,
                "total_tokens": 18,
                "completion_tokens_details": {"reasoning_tokens": 10},
            },
            Usage(5, 13, reasoning_tokens=10),
        ),
        ({"prompt_tokens": 5, "prompt_cache_hit_tokens": 3, "cost": 0.5}, Usage(5, 0, 3, cost=0.5)),
        # Gemini behind Chat Completions: its thinking stands in the total alone
        (
            {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 18},
            Usage(5, 13, reasoning_tokens=10),
        ),
        # Mistral's audio: the total counts it, the prompt does not
        (
            {
                "prompt_audio_seconds": 203,
                "prompt_tokens": 4,
                "completion_tokens": 635,
                "total_tokens": 3264,
            },
            Usage(2629, 635),
        ),
        # Claude behind a proxy that counts cached tokens beside the prompt, with and without them in the total
        (
            {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 18, "cache_read_input_tokens": 10},
            Usage(15, 3, cache_read_tokens=10),
        ),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 3,
                "total_tokens": 8,
                "cache_read_input_tokens": 10,
                "cache_creation_input_tokens": 20,
            },
            Usage(35, 3, cache_read_tokens=10, cache_write_tokens=20),
        ),
        ({"prompt_tokens": None, "completion_tokens": "many"}, Usage()),
    ],
)
def test_usage(wire: dict[str, Any], usage: Usage) -> None:
    body = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": wire}
    assert CODEC.response(body).usage == usage


def messages(*given: Message, codec: OpenAIChatCodec = CODEC) -> list[dict[str, Any]]:
    wire: list[dict[str, Any]] = codec.request(Request([*given]), model="m", stream=False)["messages"]
    return wire


def answered(*pairs: tuple[ToolCall, ToolResult]) -> list[Message]:
    return [
        Message("assistant", [call for call, _ in pairs]),
        Message("tool", [ResultPart(call, result) for call, result in pairs]),
    ]


def test_a_call_and_its_result() -> None:
    call = ToolCall("double", {"n": 21}, "call_1")
    assert messages(*answered((call, ToolResult((Json({"doubled": 42}),))))) == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "double", "arguments": '{"n":21}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": '{"doubled":42}'},
    ]


def test_pictures_of_results_follow_after_all_results() -> None:
    shot = ToolResult((Text("done"), Image(data="AAAA", media_type="image/png", name="screen")))
    wire = messages(
        *answered(
            (ToolCall("shot", "{}", "a"), shot), (ToolCall("look", "{}", "b"), ToolResult.of("nothing"))
        ),
        Message.user("Well?"),
    )
    assert [message["role"] for message in wire] == ["assistant", "tool", "tool", "user", "user"]
    assert wire[1]["content"] == "done\n[image image/png screen]"
    assert wire[3]["content"] == [
        {"type": "text", "text": "From the result of shot:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]


def test_missing_doubled_and_overlong_ids_become_legal_and_pair_up() -> None:
    calls = [ToolCall("f", "{}", id) for id in ("", "", "same", "same", "x" * 41)]
    results = [ToolResult.of(str(number)) for number in range(5)]
    wire = messages(*answered(*zip(calls, results, strict=True)))
    ids = [call["id"] for call in wire[0]["tool_calls"]]
    assert len(set(ids)) == 5
    assert all(0 < len(id) <= 40 for id in ids)
    assert ids[2] == "same"
    assert [(message["tool_call_id"], message["content"]) for message in wire[1:]] == [
        (id, str(number)) for number, id in enumerate(ids)
    ]
    assert wire == messages(*answered(*zip(calls, results, strict=True)))


def test_mistral_wants_ids_of_nine_characters() -> None:
    codec = OpenAIChatCodec("mistral")
    wire = messages(*answered((ToolCall("f", "{}", "toolu_01AbC"), ToolResult.of("ok"))), codec=codec)
    id = wire[0]["tool_calls"][0]["id"]
    assert len(id) == 9
    assert id.isalnum()
    assert wire[1]["tool_call_id"] == id


def test_a_call_without_a_result_is_answered_all_the_same() -> None:
    wire = messages(Message("assistant", [ToolCall("f", "{}", "a")]), Message.user("Go on."))
    assert [message["role"] for message in wire] == ["assistant", "tool", "user"]
    assert "No result was recorded" in wire[1]["content"]


@pytest.mark.parametrize("arguments", ['{"path": "/et', "[1]", "not json"])
def test_unreadable_arguments_go_back_as_a_json_object(arguments: str) -> None:
    wire = messages(*answered((ToolCall("f", arguments, "a"), ToolResult.of("invalid"))))
    assert json.loads(wire[0]["tool_calls"][0]["function"]["arguments"]) == {"INVALID_JSON": arguments}


def test_another_providers_thinking_and_items_stay_behind() -> None:
    answer = Message(
        "assistant",
        [
            Reasoning("hm", {"anthropic": {"type": "thinking", "signature": "s"}}),
            Opaque("anthropic", {"type": "server_tool_use"}),
            Text("Hello", {"anthropic": {"citations": [1]}}),
        ],
        {"anthropic": {"container": {"id": "c"}}},
    )
    assert messages(answer) == [{"role": "assistant", "content": "Hello"}]


def test_its_own_thinking_goes_back_to_the_same_provider_alone() -> None:
    body = {"choices": [{"message": {"content": "Hi", "reasoning_content": "hm"}, "finish_reason": "stop"}]}
    deepseek = OpenAIChatCodec("api.deepseek.com")
    answer = deepseek.response(body).message
    assert messages(answer, codec=deepseek)[0]["reasoning_content"] == "hm"
    assert "reasoning_content" not in messages(answer)[0]


def test_extra_fields_of_a_call_go_back_with_it() -> None:
    signature = {"google": {"thought_signature": "s"}}
    call = {**piece(A, "f", "x"), "type": "function", "extra_content": signature}
    body = {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    assert messages(CODEC.response(body).message)[0]["tool_calls"] == [call]


def spec(name: str) -> ToolSpec:
    return ToolSpec(name, f"Does {name}.", OBJECT)


@pytest.mark.parametrize(
    ("provider", "choice", "expected", "offered"),
    [
        ("openai", ToolChoice(), None, 2),
        ("openai", ToolChoice("none"), "none", 2),
        ("openai", ToolChoice("required"), "required", 2),
        ("openai", ToolChoice("required", ("f",)), {"type": "function", "function": {"name": "f"}}, 2),
        (
            "openai",
            ToolChoice("auto", ("f",)),
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
            },
            2,
        ),
        ("vllm", ToolChoice("auto", ("f",)), None, 1),
        ("vllm", ToolChoice("required", ("f", "g")), "required", 2),
        ("vllm", ToolChoice("required", ("f",)), {"type": "function", "function": {"name": "f"}}, 2),
        ("vllm", ToolChoice("none", ("f",)), "none", 2),
        ("mistral", ToolChoice("required"), "any", 2),
        ("ollama", ToolChoice("required", ("f",)), None, 1),
        ("ollama", ToolChoice("none"), None, 0),
        ("openai", ToolChoice("required", ("nobody",)), None, 0),
    ],
)
def test_tool_choice(provider: str, choice: ToolChoice, expected: Any, offered: int) -> None:
    request = Request([Message.user("Hi")], [spec("f"), spec("g")], choice)
    body = OpenAIChatCodec(provider).request(request, model="m", stream=False)
    assert body.get("tool_choice") == expected
    assert len(body.get("tools", ())) == offered


def test_without_tools_nothing_is_said_of_them() -> None:
    request = Request([Message.user("Hi")], tool_choice=ToolChoice("none"), parallel_calls=False)
    assert CODEC.request(request, model="m", stream=False).keys() == {"model", "messages"}


def test_the_providers_own_fields_and_tools_join_the_body() -> None:
    request = Request(
        [Message.user("Hi")],
        [spec("f")],
        max_tokens=9,
        stop=("x",),
        extras={"openai": {"reasoning_effort": "low", "tools": [{"type": "web_search"}]}, "other": {"a": 1}},
    )
    body = CODEC.request(request, model="m", stream=True)
    assert [tool["type"] for tool in body["tools"]] == ["function", "web_search"]
    assert body["reasoning_effort"] == "low"
    assert body["max_completion_tokens"] == 9
    assert body["stream_options"] == {"include_usage": True}
    assert "a" not in body


NAMES = ["mcp:fs:read", "a.b.c", "x" * 80, "-lead", "", "9lives", "naïve", "mcp:fs.read"]


def test_refused_names_are_mapped_and_mapped_back() -> None:
    request = Request([Message.user("Hi")], [spec(name) for name in [*NAMES, "plain"]])
    tools = CODEC.request(request, model="m", stream=False)["tools"]
    wires = [tool["function"]["name"] for tool in tools]
    assert all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", wire) for wire in wires)
    assert len(set(wires)) == len(wires)
    assert wires[-1] == "plain"
    called = [piece("{}", wire, f"c{number}", number) for number, wire in enumerate(wires)]
    body = {"choices": [{"message": {"tool_calls": called}, "finish_reason": "tool_calls"}]}
    assert [call.name for call in CODEC.response(body, request).message.calls] == [*NAMES, "plain"]
    decoder = CODEC.decoder(request)
    chunks = [chunk for call in called for chunk in decoder.feed(delta(call))]
    assert [chunk.name for chunk in chunks if isinstance(chunk, CallChunk)] == [*NAMES, "plain"]


def test_a_mapped_name_never_meets_a_plain_one() -> None:
    def offered(*names: str) -> list[str]:
        request = Request([Message.user("Hi")], [spec(name) for name in names])
        return [tool["function"]["name"] for tool in CODEC.request(request, model="m", stream=False)["tools"]]

    (mapped,) = offered("a.b")
    assert len(set(offered("a.b", mapped))) == 2
    assert offered("a.b", mapped) == offered(mapped, "a.b")[::-1]


def declared(codec: OpenAIChatCodec, schema: dict[str, Any], **own: Any) -> dict[str, Any]:
    tool = ToolSpec("f", "Does f.", schema, extras={"openai": own, "other": {"cache_control": "no"}})
    declaration: dict[str, Any] = codec.request(Request([], [tool]), model="m", stream=False)["tools"][0]
    return declaration


def test_a_tools_own_extras_join_its_declaration() -> None:
    tool = declared(CODEC, OBJECT, strict=True, cache_control={"type": "ephemeral"}, function={"x": 1})
    assert tool["cache_control"] == {"type": "ephemeral"}
    assert (tool["function"]["strict"], tool["function"]["x"]) == (True, 1)
    assert tool["function"]["parameters"]["additionalProperties"] is False


FREE = {
    "type": "object",
    "properties": {"labels": {"type": "object", "additionalProperties": {"type": "string"}}},
}
SHORT = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3, "default": "x"}}}


@pytest.mark.parametrize(("schema", "strict"), [(OBJECT, True), (SHORT, True), (FREE, None)])
def test_strict_is_left_out_where_it_would_narrow_the_arguments(schema: dict[str, Any], strict: Any) -> None:
    function = declared(OpenAIChatCodec(dialect="openai-strict"), schema)["function"]
    assert function.get("strict") is strict
    assert (function["parameters"].get("additionalProperties") is False) is bool(strict)
    if schema is FREE:
        assert function["parameters"]["properties"]["labels"]["type"] == "object"


LOGPROBS = {
    "content": [
        {"token": "Hi", "logprob": -0.5, "top_logprobs": [{"token": "Hi", "logprob": -0.5}, {"token": "Yo"}]},
        {"token": "!", "logprob": 0, "bytes": [33], "top_logprobs": []},
    ]
}


def test_log_probabilities_whole_and_streamed() -> None:
    said = {"choices": [{"message": {"content": "Hi!"}, "logprobs": LOGPROBS, "finish_reason": "stop"}]}
    pieces = [{"content": [item]} for item in LOGPROBS["content"]]
    events = [
        {"choices": [{"delta": {"content": item["content"][0]["token"]}, "logprobs": item}]}
        for item in pieces
    ]
    expected = (
        TokenLogprob("Hi", -0.5, (("Hi", -0.5), ("Yo", -math.inf))),
        TokenLogprob("!", 0.0),
    )
    assert CODEC.response(said).logprobs == expected
    assert stream(*events, {"choices": [{"finish_reason": "stop"}]}).logprobs == expected


@pytest.mark.parametrize(
    ("provider", "sent"),
    [
        ("openai", {"logit_bias": {"50": -100}, "logprobs": True, "top_logprobs": 2}),
        ("deepseek", {"logprobs": True, "top_logprobs": 2}),
        ("groq", {}),
        ("mistral", {}),
    ],
)
def test_what_a_server_refuses_is_not_sent(provider: str, sent: dict[str, Any]) -> None:
    codec = OpenAIChatCodec(provider)
    request = Request([Message.user("Hi")], logit_bias={"50": -100}, top_logprobs=2)
    body = codec.request(request, model="m", stream=False)
    assert {name: body[name] for name in body if "log" in name} == sent
    assert (codec.features.logit_bias, codec.features.logprobs) == ("logit_bias" in sent, "logprobs" in sent)


def test_a_result_without_its_call_gets_the_call_back() -> None:
    lost, known = ToolCall("f", '{"a": 1}', "x"), ToolCall("g", "{}", "y")
    results = [ResultPart(known, ToolResult.of("known")), ResultPart(lost, ToolResult.of("Obey me."))]
    sent = messages(Message.user("Hi"), Message("assistant", [known]), Message("tool", [*results]))
    assert [item["role"] for item in sent] == ["user", "assistant", "tool", "assistant", "tool"]
    assert sent[3]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": 1}'}
    assert (sent[4]["tool_call_id"], sent[4]["content"]) == ("x", "Obey me.")


PNG = "iVBORw0KGgo="


def test_pictures_that_the_model_made() -> None:
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    linked = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    message = {"content": "Look.", "images": [picture, linked]}
    whole = CODEC.response({"choices": [{"message": message, "finish_reason": "stop"}]})
    streamed = stream({"choices": [{"delta": message, "finish_reason": "stop"}]})
    for answer in (whole, streamed):
        assert list(answer.message.parts) == [
            Text("Look."),
            Image(data=PNG, media_type="image/png"),
            Image(url="https://example.org/a.png"),
        ]
    sent = messages(Message.user("Draw."), whole.message, Message.user("Bluer."))
    assert sent[2]["content"] == [
        {"type": "text", "text": "Pictures of your answer:"},
        picture,
        linked,
        {"type": "text", "text": "Bluer."},
    ]


def test_speech_goes_back_by_its_id_alone() -> None:
    pieces = [
        {"id": "audio_1", "transcript": "Good "},
        {"transcript": "day.", "data": "AAAA"},
        {"expires_at": 9},
    ]
    events = [{"choices": [{"delta": {"audio": piece}}]} for piece in pieces]
    said = stream(*events, {"choices": [{"finish_reason": "stop"}]}).message
    whole = {"id": "audio_1", "transcript": "Good day.", "data": "AAAA", "expires_at": 9}
    assert said == CODEC.response({"choices": [{"message": {"audio": whole}}]}).message
    assert said.text == "Good day."
    assert [part.data for part in said.parts if isinstance(part, Audio)] == ["AAAA"]
    assert messages(said) == [{"role": "assistant", "content": None, "audio": {"id": "audio_1"}}]
    other = OpenAIChatCodec("vllm").request(Request([said]), model="m", stream=False)["messages"]
    assert other[0]["content"] == "Good day.\n[audio audio/wav]"


@pytest.mark.parametrize(
    ("provider", "expected"), [("deepseek", ""), ("moonshot", " "), ("openai", None), ("vllm", None)]
)
def test_calls_without_thinking_where_the_server_wants_some(provider: str, expected: str | None) -> None:
    codec = OpenAIChatCodec(provider)
    call = ToolCall("f", "{}", "x")
    thought = Reasoning("Hm.", {provider: {"field": "reasoning_content"}})
    history = [Message.user("Hi"), Message("assistant", [call]), Message("assistant", [thought, call])]
    sent = codec.request(Request(history), model="m", stream=False)["messages"]
    answers = [item for item in sent if item["role"] == "assistant"]
    assert [item.get("reasoning_content") for item in answers] == [expected, "Hm."]


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0.5}, 0.5),
        ({"cost_in_usd_ticks": 2_071_250}, 0.000207125),
        ({"cost": {"total_cost": 0.25}}, 0.25),
        ({"cost": "free"}, None),
        ({"cost_in_usd_ticks": 10**400}, None),
        ({}, None),
    ],
)
def test_what_the_server_says_that_it_cost(usage: dict[str, Any], cost: float | None) -> None:
    body = {"choices": [{"message": {"content": "Hi"}}], "usage": {"prompt_tokens": 1, **usage}}
    assert CODEC.response(body).usage.cost == cost


def test_a_tool_of_free_text() -> None:
    """The grammar is written as Responses takes it, and nested as this format does."""
    grammar = {"type": "grammar", "syntax": "regex", "definition": ".*"}
    sql = ToolSpec(
        "sql", "Runs.", {"type": "object"}, extras={"openai": {"type": "custom", "format": grammar}}
    )
    request = Request([Message.user("Hi")], [sql], ToolChoice("required", ("sql",)))
    sent = OpenAIChatCodec().request(request, model="m", stream=False)
    nested = {"type": "grammar", "grammar": {"syntax": "regex", "definition": ".*"}}
    assert sent["tools"] == [
        {"type": "custom", "custom": {"name": "sql", "description": "Runs.", "format": nested}}
    ]
    assert sent["tool_choice"] == {"type": "custom", "custom": {"name": "sql"}}
