"""Gemini generateContent: the rules of its format, one a test."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolcrib.call import ToolCall
from toolcrib.codecs import AnthropicMessagesCodec, OpenAIChatCodec
from toolcrib.codecs.codec import Codec
from toolcrib.codecs.gemini import UNSIGNED, GeminiCodec
from toolcrib.content import Audio, File, Image, Json, Text
from toolcrib.messages import (
    CallChunk,
    Chunk,
    Message,
    Reasoning,
    Request,
    Response,
    ResultPart,
    ToolChoice,
    messages_from_json,
    messages_to_json,
)
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec

CODEC = GeminiCodec()
F = ToolSpec("f", "Does f.", {"type": "object", "properties": {"a": {"type": "string"}}})
G = ToolSpec("g", "", {"type": "object", "properties": {}})
PNG = Image(data="AAAA", media_type="image/png")


def body(*messages: Message, model: str = "gemini-3-pro", **fields: Any) -> dict[str, Any]:
    return CODEC.request(Request([*messages], **fields), model=model, stream=False)


def event(*parts: dict[str, Any], stop: str = "", **fields: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": [*parts]}, **({"finishReason": stop} if stop else {})}
    return {"candidates": [{**candidate, **fields.pop("candidate", {})}], **fields}


def stream(*events: dict[str, Any], request: Request | None = None) -> tuple[list[Chunk], Response]:
    decoder = CODEC.decoder(request)
    chunks = [chunk for event in events for chunk in decoder.feed(event)]
    return chunks, decoder.finish()


def called(name: str, args: Any = None, **rest: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, **({} if args is None else {"args": args}), **rest}}


def answered(*pairs: tuple[ToolCall, str]) -> Message:
    return Message("tool", [ResultPart(call, ToolResult.of(text)) for call, text in pairs])


def test_turns_are_merged_and_a_conversation_opens_with_the_user() -> None:
    wire = body(
        Message.system("Be kind."),
        Message("assistant", [Text("Hello.")]),
        Message.user("Hi", PNG),
        Message.system("Be quick."),
        Message.user(""),
        Message("assistant", [Text("Well,")]),
        Message("assistant", [Text("hello.")]),
    )
    assert wire["systemInstruction"] == {"parts": [{"text": "Be kind."}]}
    assert wire["contents"] == [
        {"role": "user", "parts": [{"text": "Continue."}]},
        {"role": "model", "parts": [{"text": "Hello."}]},
        {
            "role": "user",
            "parts": [
                {"text": "Hi"},
                {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                {"text": "<system>"},
                {"text": "Be quick."},
                {"text": "</system>"},
            ],
        },
        {"role": "model", "parts": [{"text": "Well,"}, {"text": "hello."}]},
    ]


def test_an_empty_conversation_still_asks_something() -> None:
    assert body()["contents"] == [{"role": "user", "parts": [{"text": "Continue."}]}]


def test_results_without_ids_follow_by_name_and_order() -> None:
    one, two, other = ToolCall("f", {"a": "1"}), ToolCall("f", {"a": "2"}), ToolCall("g")
    # Read back from a file, calls and results are no longer the same objects.
    kept = messages_from_json(
        messages_to_json(
            [
                Message.user("Go"),
                Message("assistant", [one, two, other]),
                answered((other, "third"), (one, "first"), (two, "second")),
                Message.user("And?"),
            ]
        )
    )
    turns = body(*kept, model="gemini-2.5-flash")["contents"]
    assert [turn["role"] for turn in turns] == ["user", "model", "user"]
    assert [part["functionCall"] for part in turns[1]["parts"]] == [
        {"name": "f", "args": {"a": "1"}},
        {"name": "f", "args": {"a": "2"}},
        {"name": "g", "args": {}},
    ]
    assert [part.get("functionResponse", part) for part in turns[2]["parts"]] == [
        {"name": "f", "response": {"output": "first"}},
        {"name": "f", "response": {"output": "second"}},
        {"name": "g", "response": {"output": "third"}},
        {"text": "And?"},
    ]


def test_ids_that_came_go_back_and_each_is_used_once() -> None:
    one, two = ToolCall("f", "{}", "x"), ToolCall("f", "{}", "x")
    turns = body(Message("assistant", [one, two]), answered((one, "1"), (two, "2")))["contents"]
    ids = [part["functionCall"]["id"] for part in turns[1]["parts"]]
    assert ids[0] == "x"
    assert len(set(ids)) == 2
    assert [part["functionResponse"]["id"] for part in turns[2]["parts"]] == ids


@pytest.mark.parametrize(
    ("result", "model", "expected", "following"),
    [
        (ToolResult(), "gemini-3-pro", {"response": {"output": ""}}, []),
        (ToolResult((Json([1]),)), "gemini-3-pro", {"response": {"output": "[1]"}}, []),
        (ToolResult((Text("no"),), is_error=True), "gemini-3-pro", {"response": {"error": "no"}}, []),
        (
            ToolResult(is_error=True),
            "gemini-3-pro",
            {"response": {"error": "The tool failed without a message."}},
            [],
        ),
        (
            ToolResult((Text("a"), PNG)),
            "gemini-3-pro",
            {
                "response": {"output": "a"},
                "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}],
            },
            [],
        ),
        (
            ToolResult((Text("a"), PNG)),
            "models/gemini-2.5-flash",
            {"response": {"output": "a\n[image image/png]"}},
            [
                {"text": "From the result of f:"},
                {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
            ],
        ),
        (
            ToolResult((Audio(data="AAAA", media_type="audio/wav"),)),
            "gemini-3-pro",
            {"response": {"output": "[audio audio/wav]"}},
            [
                {"text": "From the result of f:"},
                {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}},
            ],
        ),
        (
            ToolResult((Text("a"),), extras={"gemini": {"scheduling": "SILENT"}, "openai": {"x": 1}}),
            "gemini-3-pro",
            {"response": {"output": "a"}, "scheduling": "SILENT"},
            [],
        ),
    ],
)
def test_results(result: ToolResult, model: str, expected: dict[str, Any], following: list[Any]) -> None:
    call = ToolCall("f")
    turns = body(Message("assistant", [call]), Message("tool", [ResultPart(call, result)]), model=model)
    assert turns["contents"][2]["parts"] == [{"functionResponse": {"name": "f", **expected}}, *following]


def test_a_call_without_a_result_is_answered() -> None:
    said = body(Message("assistant", [ToolCall("f")]))["contents"][2]["parts"][0]["functionResponse"]
    assert "interrupted" in said["response"]["error"]


PDF = {"mimeType": "application/pdf", "fileUri": "https://example.org/a.pdf"}
LOW = {"gemini": {"mediaResolution": {"level": "LOW"}}, "openai": {"detail": "low"}}
PIXELS = {"mimeType": "image/png", "data": "AAAA"}


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (File(url=PDF["fileUri"], media_type=PDF["mimeType"]), {"fileData": PDF}),
        (File(url="gs://b/a"), {"fileData": {"fileUri": "gs://b/a"}}),
        (Audio(data="AA"), {"inlineData": {"mimeType": "audio/wav", "data": "AA"}}),
        (Image(name="lost"), {"text": "[image lost]"}),
        (Image("AAAA", media_type="image/png", extras=LOW), {"inlineData": PIXELS, **LOW["gemini"]}),
    ],
)
def test_media_of_the_user(part: Any, expected: dict[str, Any]) -> None:
    assert body(Message.user(part))["contents"][0]["parts"] == [expected]


def test_tools_are_declared_in_the_dialect_with_their_extras() -> None:
    dotted = ToolSpec(
        "a.b", "", {"type": "object"}, extras={"gemini": {"behavior": "NON_BLOCKING"}, "openai": {"x": 1}}
    )
    [tool] = body(Message.user("Hi"), tools=[F, dotted])["tools"]
    first, second = tool["functionDeclarations"]
    assert first == {"name": "f", "description": "Does f.", "parametersJsonSchema": F.in_dialect("gemini")}
    assert second["behavior"] == "NON_BLOCKING"
    assert "description" not in second
    assert "x" not in second


def test_names_that_are_refused_are_mapped_there_and_back() -> None:
    request = Request([Message.user("Hi")], [ToolSpec("a.b", "", {"type": "object"})])
    wire = CODEC.request(request, model="m", stream=False)["tools"][0]["functionDeclarations"][0]["name"]
    assert "." not in wire
    assert CODEC.response(event(called(wire, {}), stop="STOP"), request).message.calls[0].name == "a.b"
    chunks, response = stream(event(called(wire, {}), stop="STOP"), request=request)
    assert response.message.calls[0].name == "a.b"
    assert [chunk.name for chunk in chunks if isinstance(chunk, CallChunk) and chunk.name] == ["a.b"]


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        (ToolChoice(), None),
        (ToolChoice("none"), {"mode": "NONE"}),
        (ToolChoice("required"), {"mode": "ANY"}),
        (ToolChoice("required", ("g",)), {"mode": "ANY", "allowedFunctionNames": ["g"]}),
        (ToolChoice("auto", ("g", "f", "g")), {"mode": "VALIDATED", "allowedFunctionNames": ["g", "f"]}),
        (ToolChoice("none", ("g",)), {"mode": "NONE"}),
        (ToolChoice("required", ("g", "gone")), {"mode": "ANY", "allowedFunctionNames": ["g"]}),
    ],
)
def test_tool_choice(choice: ToolChoice, config: dict[str, Any] | None) -> None:
    wire = body(Message.user("Hi"), tools=[F, G], tool_choice=choice)
    assert len(wire["tools"][0]["functionDeclarations"]) == 2
    assert wire.get("toolConfig", {}).get("functionCallingConfig") == config


def test_a_choice_among_tools_that_are_not_there_sends_none() -> None:
    assert "tools" not in body(Message.user("Hi"), tools=[F], tool_choice=ToolChoice("required", ("gone",)))


def test_settings_and_extras_are_merged_field_by_field() -> None:
    extras = {
        "gemini": {
            "generationConfig": {"thinkingConfig": {"includeThoughts": True}, "temperature": 1},
            "tools": [{"googleSearch": {}}, {"functionDeclarations": [{"name": "h"}], "codeExecution": {}}],
            "toolConfig": {"functionCallingConfig": {"streamFunctionCallArguments": True}},
            "cachedContent": "cachedContents/1",
        },
        "openai": {"seed": 1},
    }
    wire = body(
        Message.user("Hi"), tools=[F], tool_choice=ToolChoice("required"), max_tokens=5, temperature=0.5,
        stop=("X",), top_logprobs=2, extras=extras,
    )  # fmt: skip
    assert wire["generationConfig"] == {
        "maxOutputTokens": 5,
        "temperature": 1,
        "stopSequences": ["X"],
        "responseLogprobs": True,
        "logprobs": 2,
        "thinkingConfig": {"includeThoughts": True},
    }
    assert wire["toolConfig"]["functionCallingConfig"] == {"mode": "ANY", "streamFunctionCallArguments": True}
    assert [
        [item["name"] for item in tool.get("functionDeclarations", ())] or tool for tool in wire["tools"]
    ] == [
        ["f", "h"],
        {"googleSearch": {}},
        {"codeExecution": {}},
    ]
    assert wire["cachedContent"] == "cachedContents/1"
    assert "seed" not in wire


# Signatures


def test_signatures_go_back_on_exactly_the_parts_they_came_with() -> None:
    parts = [
        {"text": "hm ", "thought": True},
        {"text": "hm", "thought": True, "thoughtSignature": "s0"},
        {"text": "So, "},
        {"text": "go."},
        {"text": "", "thoughtSignature": "s1"},
        {**called("f", {"a": "1"}), "thoughtSignature": "s2"},
        called("f", {"a": "2"}),
    ]
    _, response = stream(*(event(part) for part in parts), event({"text": ""}, stop="STOP"))
    assert response.message.text == "So, go."
    assert response.stop_reason == "tool_calls"
    kept = messages_from_json(messages_to_json([Message.user("Hi"), response.message]))
    assert body(*kept)["contents"][1]["parts"] == [*parts[:2], {"text": "So, go."}, *parts[4:]]


@pytest.mark.parametrize("codec", [OpenAIChatCodec(), AnthropicMessagesCodec(), GeminiCodec("elsewhere")])
def test_signatures_and_thinking_go_to_nobody_else(codec: Codec) -> None:
    thought = {"text": "secret thought", "thought": True, "thoughtSignature": "s0"}
    code = {"executableCode": {"language": "PYTHON", "code": "opaque"}}
    _, response = stream(event(thought, code, {**called("f", {}), "thoughtSignature": "s1"}, stop="STOP"))
    wire = json.dumps(codec.request(Request([Message.user("Hi"), response.message]), model="m", stream=False))
    assert not [word for word in ("secret thought", "s0", "s1", "opaque") if f'"{word}"' in wire]


@pytest.mark.parametrize(
    ("model", "signatures"),
    [
        ("gemini-3-pro-preview", [UNSIGNED, None]),
        ("gemini-flash-latest", [UNSIGNED, None]),
        ("publishers/google/models/gemini-10-pro", [UNSIGNED, None]),
        ("gemini-2.5-flash", [None, None]),
        ("gemma-4-27b", [None, None]),
    ],
)
def test_calls_of_another_model_get_a_stand_in_signature(model: str, signatures: list[str | None]) -> None:
    thought = Reasoning("mine", {"anthropic": {"signature": "theirs"}})
    foreign = Message("assistant", [thought, ToolCall("f", "{}", "toolu_1"), ToolCall("g", "{}", "toolu_2")])
    parts = body(Message.user("Hi"), foreign, model=model)["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == signatures


def test_an_output_schema_that_was_given_is_sent_and_its_results_are_data() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    told = ToolSpec("told", "", {"type": "object"}, output_schema=schema, tells_output=True)
    inferred = ToolSpec("inferred", "", {"type": "object"}, output_schema=schema)
    calls = [ToolCall("told", {}, "1"), ToolCall("told", {}, "2"), ToolCall("inferred", {}, "3")]
    texts = ('{"n":1}', '{"n":1} [cut]', '{"n":1}')
    results = [ResultPart(call, ToolResult.of(text)) for call, text in zip(calls, texts, strict=True)]
    sent = body(
        Message.user("Hi"),
        Message("assistant", [*calls]),
        Message("tool", [*results]),
        tools=[told, inferred],
    )
    first, second = sent["tools"][0]["functionDeclarations"]
    assert first["responseJsonSchema"] == {"type": "object", "properties": {"output": schema}}
    assert "responseJsonSchema" not in second
    answers = [part["functionResponse"]["response"]["output"] for part in sent["contents"][2]["parts"]]
    assert answers == [{"n": 1}, '{"n":1} [cut]', '{"n":1}']
