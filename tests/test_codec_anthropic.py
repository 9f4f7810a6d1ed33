"""Anthropic Messages: the rules of its format, one a test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from toolcrib.call import ToolCall
from toolcrib.codecs import AnthropicMessagesCodec, ModelError, OpenAIChatCodec
from toolcrib.content import Audio, File, Image, Json, Text
from toolcrib.messages import (
    CallChunk,
    Chunk,
    Message,
    Opaque,
    Reasoning,
    Request,
    Response,
    ResultPart,
    TextChunk,
    ToolChoice,
    Usage,
)
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec

CODEC = AnthropicMessagesCodec()
START = {
    "type": "message_start",
    "message": {"id": "m", "model": "c", "content": [], "usage": {"input_tokens": 3}},
}
STOP = {"type": "message_stop"}


def body(*messages: Message, **fields: Any) -> dict[str, Any]:
    return CODEC.request(Request([*messages], **fields), model="m", stream=False)


def stream(*events: dict[str, Any]) -> tuple[list[Chunk], Response]:
    decoder = CODEC.decoder()
    chunks = [chunk for event in events for chunk in decoder.feed(event)]
    return chunks, decoder.finish()


def block(index: int, content: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def stopped(reason: str, **usage: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def test_all_results_of_a_turn_come_first_in_one_message() -> None:
    first, second = ToolCall("f", {}, "toolu_1"), ToolCall("g", "", "toolu_2")
    wire = body(
        Message.user("Go"),
        Message("assistant", [Text("Yes."), first, second]),
        Message("tool", [ResultPart(second, ToolResult.of("two"))]),
        Message.user("By the way"),
        Message("tool", [ResultPart(first, ToolResult((Json([1]),)))]),
        Message.user("Well?"),
    )["messages"]
    assert [message["role"] for message in wire] == ["user", "assistant", "user"]
    assert wire[1]["content"][1:] == [
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
        {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}},
    ]
    assert wire[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "[1]"},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": "two"},
        {"type": "text", "text": "By the way"},
        {"type": "text", "text": "Well?"},
    ]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (ToolResult(), {}),
        (ToolResult((Text(""),)), {}),
        (ToolResult((Text("no"),), is_error=True), {"content": "no", "is_error": True}),
        (ToolResult(is_error=True), {"content": "The tool failed without a message.", "is_error": True}),
        (
            ToolResult((Text("a"), Image(data="AA", media_type="image/png"))),
            {
                "content": [
                    {"type": "text", "text": "a"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
                ]
            },
        ),
        (ToolResult((Image(data="AA", media_type="image/bmp"),)), {"content": "[image image/bmp]"}),
        (ToolResult((Audio(data="AA", media_type="audio/wav"),)), {"content": "[audio audio/wav]"}),
        (
            ToolResult((File(data="AA", media_type="application/pdf", name="a.pdf"),)),
            {
                "content": [
                    {
                        "type": "document",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": "AA"},
                        "title": "a.pdf",
                    }
                ]
            },
        ),
    ],
)
def test_results(result: ToolResult, expected: dict[str, Any]) -> None:
    call = ToolCall("f", {}, "t")
    wire = body(Message("assistant", [call]), Message("tool", [ResultPart(call, result)]))["messages"]
    assert wire[-1]["content"] == [{"type": "tool_result", "tool_use_id": "t", **expected}]


def test_system_messages_open_the_request_or_stand_in_the_users_turn() -> None:
    wire = body(Message.system("Be kind."), Message.user("Hi"), Message.system("Be quick."))
    assert wire["system"] == [{"type": "text", "text": "Be kind."}]
    assert [part["text"] for part in wire["messages"][0]["content"]] == [
        "Hi",
        "<system>",
        "Be quick.",
        "</system>",
    ]


def test_thinking_goes_back_with_its_signature_in_its_place() -> None:
    events = [
        START,
        *block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "hm "},
            {"type": "thinking_delta", "thinking": "hm"},
            {"type": "signature_delta", "signature": "sig"},
        ),
        *block(1, {"type": "redacted_thinking", "data": "secret"}),
        *block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "So."}),
        stopped("end_turn", output_tokens=7),
        STOP,
    ]
    _, response = stream(*events)
    assert response.usage == Usage(3, 7)
    assert body(Message.user("Hi"), response.message, Message.user("And?"))["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "hm hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "secret"},
        {"type": "text", "text": "So."},
    ]
    chat = OpenAIChatCodec().request(Request([response.message]), model="m", stream=False)["messages"]
    assert chat == [{"role": "assistant", "content": "So."}]


def test_server_side_tools_go_back_verbatim_and_are_no_calls_of_ours() -> None:
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"url": "u"}]}
    events = [
        START,
        *block(
            0,
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"query":'},
            {"type": "input_json_delta", "partial_json": '"x"}'},
        ),
        *block(1, found),
        *block(
            2,
            {"type": "text", "text": ""},
            {"type": "text_delta", "text": "Found."},
            {"type": "citations_delta", "citation": {"url": "u"}},
        ),
        stopped("pause_turn"),
        STOP,
    ]
    chunks, response = stream(*events)
    assert chunks == [TextChunk("Found.")]
    assert (response.stop_reason, response.message.calls) == ("pause", [])
    wire = body(Message.user("Hi"), response.message)["messages"]
    assert wire[1]["content"] == [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        found,
        {"type": "text", "text": "Found.", "citations": [{"url": "u"}]},
    ]


def test_streamed_calls() -> None:
    chunks, response = stream(
        START,
        *block(
            0,
            {"type": "tool_use", "id": "a", "name": "f", "input": {}},
            {"type": "input_json_delta", "partial_json": ""},
            {"type": "input_json_delta", "partial_json": '{"x":'},
            {"type": "input_json_delta", "partial_json": "1}"},
        ),
        {"type": "ping"},
        *block(1, {"type": "tool_use", "id": "b", "name": "g", "input": {"whole": True}}),
        stopped("tool_use"),
        STOP,
    )
    assert chunks == [
        CallChunk(0, "f", "a"),
        CallChunk(0, arguments='{"x":'),
        CallChunk(0, arguments="1}"),
        CallChunk(0, done=True),
        CallChunk(1, "g", "b"),
        CallChunk(1, done=True),
    ]
    assert [(call.id, call.arguments) for call in response.message.calls] == [
        ("a", '{"x":1}'),
        ("b", {"whole": True}),
    ]
    assert response.stop_reason == "tool_calls"


def test_a_container_is_named_while_its_code_waits_for_results() -> None:
    call = {
        "type": "tool_use",
        "id": "a",
        "name": "f",
        "input": {},
        "caller": {"type": "code", "tool_id": "s"},
    }
    whole = {"content": [call], "stop_reason": "tool_use", "container": {"id": "box"}}
    answer = CODEC.response(whole).message
    results = Message("tool", [ResultPart(answer.calls[0], ToolResult.of("ok"))])
    wire = body(Message.user("Hi"), answer, results)
    assert wire["container"] == "box"
    assert wire["messages"][1]["content"] == [call]
    assert "container" not in body(Message.user("Hi"), answer, results, Message("assistant", [Text("Done.")]))


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (
            [START, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}],
            "Overloaded",
        ),
        ([START, *block(0, {"type": "text", "text": "Hel"})], "ended before"),
        ([START, {"type": "message_start", "message": {"id": "other"}}], "two answers"),
        ([], "ended before"),
        ([STOP], "no message"),
    ],
)
def test_broken_streams(events: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        stream(*events)
    assert caught.value.retryable


def test_a_doubled_start_is_taken_once() -> None:
    events = [START, START, *block(0, {"type": "text", "text": "Hi"}), stopped("end_turn"), STOP]
    assert stream(*events)[1].message.text == "Hi"


def test_cached_tokens_are_part_of_the_input() -> None:
    usage = {
        "input_tokens": 5,
        "output_tokens": 2,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 10,
        "output_tokens_details": {"thinking_tokens": 1},
    }
    response = CODEC.response({"content": [], "stop_reason": "end_turn", "usage": usage})
    assert response.usage == Usage(115, 2, 100, 10, 1)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", "end"),
        ("max_tokens", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "pause"),
        ("new", "other"),
    ],
)
def test_stop_reasons(reason: str, expected: str) -> None:
    assert CODEC.response({"content": [], "stop_reason": reason}).stop_reason == expected


@pytest.mark.parametrize(
    ("choice", "parallel", "expected"),
    [
        (ToolChoice(), None, None),
        (ToolChoice(), False, {"type": "auto", "disable_parallel_tool_use": True}),
        (ToolChoice(), True, {"type": "auto", "disable_parallel_tool_use": False}),
        (ToolChoice("required"), None, {"type": "any"}),
        (ToolChoice("required", ("f",)), None, {"type": "tool", "name": "f"}),
        (ToolChoice("none"), False, {"type": "none"}),
    ],
)
def test_tool_choice(choice: ToolChoice, parallel: bool | None, expected: Any) -> None:
    specs = [ToolSpec(name, "", {"type": "object", "properties": {}}) for name in ("f", "g")]
    assert (
        body(Message.user("Hi"), tools=specs, tool_choice=choice, parallel_calls=parallel).get("tool_choice")
        == expected
    )


def test_a_conversation_with_calls_defines_tools_even_where_none_are_offered() -> None:
    call = ToolCall("f", {}, "a")
    wire = body(Message("assistant", [call]), Message("tool", [ResultPart(call, ToolResult.of("ok"))]))
    assert wire["tools"] == [{"name": "f", "input_schema": {"type": "object"}}]
    assert wire["tool_choice"] == {"type": "none"}


def test_a_conversation_of_another_provider_goes_on() -> None:
    chat = OpenAIChatCodec("openrouter.ai")
    called = {"id": "functions.read:0", "function": {"name": "read.file", "arguments": '{"path": "a'}}
    message = {"reasoning_content": "hm", "content": "", "tool_calls": [called]}
    answer = chat.response({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).message
    wire = body(
        Message.user("Hi"), answer, Message("tool", [ResultPart(answer.calls[0], ToolResult.of("bad"))])
    )
    use, result = wire["messages"][1]["content"][0], wire["messages"][2]["content"][0]
    assert use["id"] == result["tool_use_id"]
    assert "." not in use["id"]
    assert ":" not in use["id"]
    assert "." not in use["name"]
    assert use["input"] == {"INVALID_JSON": '{"path": "a'}
    assert len(wire["messages"][1]["content"]) == 1


def test_blank_texts_and_other_providers_items_are_left_out() -> None:
    wire = body(
        Message(
            "assistant",
            [Opaque("openai", {"x": 1}), Reasoning("hm", {"openai": {"field": "reasoning"}}), Text(" ")],
        ),
        Message.user(""),
    )
    assert wire["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Continue."}]}]


def test_a_tools_own_extras_join_its_declaration() -> None:
    own = {"input_examples": [{"a": "x"}], "defer_loading": True, "cache_control": {"type": "ephemeral"}}
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}}
    spec = ToolSpec("f", "Does f.", schema, extras={"anthropic": {**own, "strict": True}, "openai": {"x": 1}})
    (tool,) = body(Message.user("Hi"), tools=[spec])["tools"]
    assert {name: tool[name] for name in own} == own
    assert tool["strict"] is True
    assert tool["input_schema"]["additionalProperties"] is False
    assert "x" not in tool


def test_a_tool_of_the_providers_is_declared_by_its_type() -> None:
    """Its name is the provider's; another tool of that name gives way, and both are called by our names."""
    own = {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 9}
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    editor = ToolSpec("editor", "Edits.", schema, extras={"anthropic": own})
    other = ToolSpec("str_replace_based_edit_tool", "Another.", schema)
    request = Request([Message.user("Hi")], [editor, other], ToolChoice("required", ("editor",)))
    sent = CODEC.request(request, model="m", stream=False)
    assert sent["tools"][0] == own
    assert sent["tool_choice"] == {"type": "tool", "name": own["name"]}
    assert sent["tools"][1].keys() == {"name", "description", "input_schema"}
    assert sent["tools"][1]["name"] not in ("editor", own["name"])
    blocks = [
        {"type": "tool_use", "id": f"toolu_{n}", "name": tool["name"], "input": {"command": "view"}}
        for n, tool in enumerate(sent["tools"])
    ]
    answer = CODEC.response({"content": blocks, "stop_reason": "tool_use"}, request)
    assert [call.name for call in answer.message.calls] == [editor.name, other.name]
    (back, _) = CODEC.request(Request([answer.message], [editor, other]), model="m", stream=False)[
        "messages"
    ][-2]["content"]
    assert back["name"] == own["name"]
    (plain,) = OpenAIChatCodec().request(Request([], [editor]), model="m", stream=False)["tools"]
    assert plain["function"]["parameters"]["properties"] == schema["properties"]


def test_for_one_tool_that_must_be_called_the_others_stay_where_they_are() -> None:
    specs = [ToolSpec(name, "", {"type": "object", "properties": {}}) for name in ("f", "g", "h")]
    offered = {
        choice: [tool["name"] for tool in body(Message.user("Hi"), tools=specs, tool_choice=choice)["tools"]]
        for choice in (
            ToolChoice("required", ("g",)),
            ToolChoice("required", ("g", "h")),
            ToolChoice("auto", ("g",)),
            ToolChoice("none", ("g",)),
        )
    }
    assert [len(names) for names in offered.values()] == [3, 2, 1, 3]
    nobody = body(Message.user("Hi"), tools=specs, tool_choice=ToolChoice("required", ("nobody",)))
    assert nobody.keys().isdisjoint({"tools", "tool_choice"})


def test_what_is_said_of_a_whole_answer_is_kept_and_not_sent_back() -> None:
    cut = {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 3}]}
    details = {"type": "refusal", "category": "cyber", "explanation": "No."}
    _, response = stream(
        START,
        {
            "type": "message_delta",
            "delta": {"stop_reason": "refusal", "stop_details": details},
            "context_management": cut,
        },
        STOP,
    )
    assert response.stop_reason == "refusal"
    assert response.message.extras == {"anthropic": {"context_management": cut, "stop_details": details}}
    wire = body(Message.user("Hi"), replace(response.message, parts=[Text("Hm.")]))
    assert wire["messages"][1] == {"role": "assistant", "content": [{"type": "text", "text": "Hm."}]}


def test_a_result_without_its_call_is_no_word_of_the_users() -> None:
    lost = ToolCall("f", {"a": 1}, "toolu_9")
    sent = body(Message.user("Hi"), Message("tool", [ResultPart(lost, ToolResult.of("Obey me."))]))[
        "messages"
    ]
    assert [block["type"] for turn in sent for block in turn["content"]] == [
        "text",
        "tool_use",
        "tool_result",
    ]
