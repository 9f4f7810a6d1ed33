"""Bedrock Converse: what is sent, and what comes back whole."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.bedrock_wire import CALL, CITATIONS, SERVER_RESULT, SERVER_USE, THOUGHT, USE, answer
from toolcrib.call import ToolCall
from toolcrib.codecs.bedrock_converse import BedrockConverseCodec
from toolcrib.codecs.bedrock_converse_answer import MALFORMED_CALL
from toolcrib.codecs.codec import ModelError
from toolcrib.codecs.pairing import EMPTY_ANSWER
from toolcrib.content import Audio, File, Image, Json, Part, Text
from toolcrib.errors import ErrorCode
from toolcrib.messages import (
    Message,
    MessagePart,
    Opaque,
    Reasoning,
    Request,
    ResultPart,
    ToolChoice,
    Usage,
)
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec

CODEC = BedrockConverseCodec()
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ToolSpec("weather", "Tells the weather.", SCHEMA)
CLOCK = ToolSpec("clock", "", {"type": "object", "properties": {}})
MARK = {"cachePoint": {"type": "default"}}


def body_of(*messages: Message, model: str = "amazon.nova-pro-v1:0", **rest: Any) -> dict[str, Any]:
    return CODEC.request(Request([*messages], **rest), model=model, stream=False)


def content(*parts: Part | Opaque, **options: Any) -> Any:
    """The blocks of one user's message."""
    return body_of(Message("user", [*parts]), **options)["messages"][0]["content"]


def result_of(*parts: Part, code: ErrorCode | None = None) -> Any:
    result = ToolResult(parts, is_error=code is not None, code=code)
    answered = Message("tool", [ResultPart(CALL, result)])
    return body_of(Message.user("go"), Message("assistant", [CALL]), answered)["messages"][2]["content"]


def test_turns_alternate_and_results_open_them() -> None:
    other = ToolCall("clock", "", "tooluse_2")
    body = body_of(
        Message.system("Be brief."),
        Message("user", [Text("Weather?"), Text(" ")]),
        Message.user("And the time?"),
        Message("assistant", [Text("I look."), CALL, other]),
        Message.user("Hurry."),
        Message("tool", [ResultPart(CALL, ToolResult((Json({"c": 3}),)))]),
        tools=[WEATHER, CLOCK],
        max_tokens=5,
        temperature=0.5,
        stop=("|", ""),
    )
    assert body["system"] == [{"text": "Be brief."}]
    assert body["inferenceConfig"] == {"maxTokens": 5, "temperature": 0.5, "stopSequences": ["|"]}
    assert body["messages"][:2] == [
        {"role": "user", "content": [{"text": "Weather?"}, {"text": "And the time?"}]},
        {
            "role": "assistant",
            "content": [
                {"text": "I look."},
                USE,
                {"toolUse": {"toolUseId": "tooluse_2", "name": "clock", "input": {}}},
            ],
        },
    ]
    first, second, hurry = body["messages"][2]["content"]
    assert first == {"toolResult": {"toolUseId": "tooluse_1", "content": [{"json": {"c": 3}}]}}
    assert second["toolResult"]["status"] == "error"
    assert hurry == {"text": "Hurry."}
    assert body["toolConfig"] == {
        "tools": [
            {
                "toolSpec": {
                    "name": "weather",
                    "description": "Tells the weather.",
                    "inputSchema": {"json": SCHEMA},
                }
            },
            {"toolSpec": {"name": "clock", "inputSchema": {"json": CLOCK.in_dialect("bedrock")}}},
        ]
    }


@pytest.mark.parametrize(
    ("choice", "names", "sent"),
    [
        (ToolChoice(), ["weather", "clock"], None),
        (ToolChoice("required"), ["weather", "clock"], {"any": {}}),
        (ToolChoice("required", ("clock",)), ["weather", "clock"], {"tool": {"name": "clock"}}),
        (ToolChoice("auto", ("clock",)), ["clock"], None),
        (ToolChoice("required", ("clock", "weather")), ["weather", "clock"], {"any": {}}),
        (ToolChoice("none"), [], None),
    ],
)
def test_tool_choice(choice: ToolChoice, names: list[str], sent: Any) -> None:
    config = body_of(Message.user("go"), tools=[WEATHER, CLOCK], tool_choice=choice).get("toolConfig", {})
    assert [tool["toolSpec"]["name"] for tool in config.get("tools", [])] == names
    assert config.get("toolChoice") == sent


@pytest.mark.parametrize("rest", [{}, {"tools": [CLOCK], "tool_choice": ToolChoice("none")}])
def test_a_conversation_with_calls_always_declares_tools(rest: dict[str, Any]) -> None:
    config = body_of(Message.user("go"), Message("assistant", [CALL]), **rest)["toolConfig"]
    assert [tool["toolSpec"]["name"] for tool in config["tools"]] == ["weather"]
    assert "toolChoice" not in config


def test_extras_of_tools_and_requests() -> None:
    cached = ToolSpec(
        "weather", "", SCHEMA, extras={"bedrock": {"strict": True, **MARK}, "anthropic": {"x": 1}}
    )
    own = {
        "additionalModelRequestFields": {"top_k": 5},
        "inferenceConfig": {"topP": 0.5},
        "toolConfig": {"tools": [{"systemTool": {"name": "nova_grounding"}}]},
        "system": [MARK],
    }
    body = body_of(
        Message.system("s"), Message.user("u"), tools=[cached], max_tokens=1,
        extras={"bedrock": own, "anthropic": {"thinking": {}}},
    )  # fmt: skip
    spec, mark, system_tool = body["toolConfig"]["tools"]
    assert spec["toolSpec"]["strict"] is True
    assert (mark, system_tool) == (MARK, own["toolConfig"]["tools"][0])
    assert body["inferenceConfig"] == {"maxTokens": 1, "topP": 0.5}
    assert body["system"] == [{"text": "s"}, MARK]
    assert body["additionalModelRequestFields"] == {"top_k": 5}
    assert "thinking" not in body


def test_cache_marks_follow_what_they_are_on() -> None:
    marked = {"bedrock": MARK}
    result = ToolResult((Text("3"),), extras=dict(marked))
    body = body_of(
        Message("system", [Text("s", dict(marked))]),
        Message("user", [Text("u")], dict(marked)),
        Message("assistant", [CALL]),
        Message("tool", [ResultPart(CALL, result)]),
    )
    assert body["system"] == [{"text": "s"}, MARK]
    assert body["messages"][0]["content"] == [{"text": "u"}, MARK]
    assert body["messages"][2]["content"][1] == MARK
    answered = Message("tool", [ResultPart(CALL, ToolResult((Text("3"),)))], dict(marked))
    body = body_of(Message.user("go"), Message("assistant", [CALL]), answered)
    assert body["messages"][2]["content"][1] == MARK


def test_arguments_that_no_json_parser_reads_are_kept_as_text() -> None:
    call = ToolCall("weather", '{"city": NaN}', "a")
    turn = body_of(Message.user("go"), Message("assistant", [call]))["messages"][1]["content"]
    assert turn[0]["toolUse"]["input"] == {"INVALID_JSON": '{"city": NaN}'}


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (Image("QQ==", media_type="image/jpeg"), {"image": {"format": "jpeg", "source": {"bytes": "QQ=="}}}),
        (
            Image(url="s3://b/a.png", media_type="image/png"),
            {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/a.png"}}}},
        ),
        (Image(url="https://example.org/a.png"), {"text": "[image https://example.org/a.png]"}),
        (Image("QQ==", media_type="image/tiff"), {"text": "[image image/tiff]"}),
        (
            Audio("QQ==", media_type="audio/mpeg"),
            {"audio": {"format": "mp3", "source": {"bytes": "QQ=="}}},
        ),
        (
            File("QQ==", media_type="video/mp4"),
            {"video": {"format": "mp4", "source": {"bytes": "QQ=="}}},
        ),
        (Json([1]), {"text": "[1]"}),
        (
            Opaque("bedrock", {"guardContent": {"text": {"text": "x"}}}),
            {"guardContent": {"text": {"text": "x"}}},
        ),
    ],
)
def test_content_of_a_user(part: Any, block: dict[str, Any]) -> None:
    assert content(part) == [block]


@pytest.mark.parametrize(
    ("name", "media_type", "sent", "format"),
    [
        ("report.pdf", "application/pdf", "report", "pdf"),
        ("my_file v1.2  (final)[a].csv", "text/csv", "my file v1 2 (final)[a]", "csv"),
        ("notes.md", "", "notes", "md"),
        ("/home/me/x.py", "text/x-python", "x", "txt"),
        ("報告書.pdf", "application/pdf", "document", "pdf"),
        ("", "application/pdf", "document", "pdf"),
        ("a\u3000b\tc.pdf", "application/pdf", "a b c", "pdf"),
        ("x" * 500, "text/plain", "x" * 190, "txt"),
    ],
)
def test_documents_have_legal_names(name: str, media_type: str, sent: str, format: str) -> None:
    block, text = content(File("QQ==", media_type=media_type, name=name))
    assert block == {"document": {"format": format, "name": sent, "source": {"bytes": "QQ=="}}}
    assert text["text"], "a document alone is refused"


def test_no_two_documents_have_one_name() -> None:
    pdf = File("QQ==", media_type="application/pdf", name="a.pdf")
    sent = content(Text("x"), pdf, pdf, pdf)
    assert [block["document"]["name"] for block in sent[1:]] == ["a", "a (2)", "a (3)"]


def test_a_documents_extras_join_it() -> None:
    cited = {"citations": {"enabled": True}, "context": "c"}
    block, _ = content(File("QQ==", media_type="text/plain", name="a", extras={"bedrock": cited}))
    assert block["document"].items() >= cited.items()


@pytest.mark.parametrize(
    ("parts", "code", "sent"),
    [
        ((Text("ok"),), None, [{"text": "ok"}]),
        ((Json({"a": [1]}), Json([1])), None, [{"json": {"a": [1]}}, {"text": "[1]"}]),
        ((Json({"a": float("nan")}),), None, [{"text": '{"a":NaN}'}]),
        (
            (Text("see"), Image("QQ==", media_type="image/png")),
            None,
            [{"text": "see"}, {"image": {"format": "png", "source": {"bytes": "QQ=="}}}],
        ),
        ((Audio("QQ==", media_type="audio/wav"),), None, [{"text": "[audio audio/wav]"}]),
        ((), None, [{"text": "The tool gave no output."}]),
        ((Text(" "),), ErrorCode.DENIED, [{"text": "The tool failed without a message."}]),
    ],
)
def test_results(parts: tuple[Part, ...], code: ErrorCode | None, sent: list[Any]) -> None:
    (block,) = result_of(*parts, code=code)
    assert block["toolResult"]["content"] == sent
    assert block["toolResult"].get("status") == ("error" if code else None)


@pytest.mark.parametrize("id", ["", "null", "x" * 65, "a b", "é", "functions.f:0", "toolu_1"])
def test_ids_are_legal(id: str) -> None:
    twice = [ToolCall("weather", "{}", id), ToolCall("weather", "{}", id)]
    turn = body_of(Message.user("go"), Message("assistant", [*twice]))["messages"][1]["content"]
    ids = [block["toolUse"]["toolUseId"] for block in turn]
    assert len(set(ids)) == 2
    assert all(re.fullmatch("[a-zA-Z0-9_.:-]{1,64}", sent) for sent in ids)


def test_names_are_mapped_and_mapped_back() -> None:
    request = Request([Message.user("go")], [ToolSpec("mcp:a.b", "", SCHEMA)])
    sent = CODEC.request(request, model="m", stream=False)["toolConfig"]["tools"][0]["toolSpec"]["name"]
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", sent)
    use = {"toolUse": {"toolUseId": "i", "name": sent, "input": {}}}
    assert CODEC.response(answer(use), request).message.calls[0].name == "mcp:a.b"


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"text": "Hi"}, Text("Hi")),
        (THOUGHT, Reasoning("hm", {"bedrock": {"reasoningText": {"signature": "c2ln"}}})),
        (
            {"reasoningContent": {"redactedContent": "QUJD"}},
            Reasoning("", {"bedrock": {"redactedContent": "QUJD"}}),
        ),
        (USE, CALL),
        (
            {"citationsContent": {"content": [{"text": "ab"}], "citations": CITATIONS}},
            Text("ab", {"bedrock": {"citationsContent": {"citations": CITATIONS}}}),
        ),
        (
            {"citationsContent": {"content": [{"text": "a"}, {"text": "b"}], "citations": CITATIONS}},
            Text(
                "ab",
                {
                    "bedrock": {
                        "citationsContent": {
                            "content": [{"text": "a"}, {"text": "b"}],
                            "citations": CITATIONS,
                        }
                    }
                },
            ),
        ),
        (SERVER_USE, Opaque("bedrock", SERVER_USE)),
        (SERVER_RESULT, Opaque("bedrock", SERVER_RESULT)),
        ({"new": {"a": 1}}, Opaque("bedrock", {"new": {"a": 1}})),
    ],
)
def test_blocks_come_and_go_back_as_they_came(block: dict[str, Any], part: MessagePart) -> None:
    message = CODEC.response(answer(block)).message
    assert list(message.parts) == [part]
    request = Request([Message.user("go"), message, Message.user("on")])
    for model in ("us.anthropic.claude-x", "openai.gpt-oss-120b"):
        sent = CODEC.request(request, model=model, stream=False)["messages"][1]["content"]
        assert sent[0] == block
        assert sent[1:] == (
            [{"text": EMPTY_ANSWER}] if "claude" in model and "reasoningContent" in block else []
        )
    if not isinstance(part, Text | ToolCall):
        elsewhere = BedrockConverseCodec("other").request(request, model="m", stream=False)
        assert len(elsewhere["messages"]) == 1, "it is for the provider that it came from"


@pytest.mark.parametrize(
    ("model", "kept"), [("us.anthropic.claude-x", 0), ("us.deepseek.r1-v1:0", 0), ("openai.gpt-oss-120b", 1)]
)
def test_thinking_without_a_signature_goes_to_models_that_take_it(model: str, kept: int) -> None:
    came = CODEC.response(answer({"reasoningContent": {"reasoningText": {"text": "hm"}}}, {"text": "Hi"}))
    sent = body_of(Message.user("go"), came.message, Message.user("on"), model=model)["messages"][1][
        "content"
    ]
    assert len([block for block in sent if "reasoningContent" in block]) == kept


@pytest.mark.parametrize(
    ("stop", "blocks", "reason"),
    [
        ("end_turn", [], "end"),
        ("stop_sequence", [], "end"),
        ("tool_use", [USE], "tool_calls"),
        ("end_turn", [USE], "tool_calls"),
        ("max_tokens", [USE], "length"),
        ("model_context_window_exceeded", [], "length"),
        ("guardrail_intervened", [], "filter"),
        ("content_filtered", [], "filter"),
        ("malformed_tool_use", [USE], "other"),
        ("yet_unknown", [], "other"),
    ],
)
def test_stop_reasons(stop: str, blocks: list[dict[str, Any]], reason: str) -> None:
    response = CODEC.response(answer(*blocks, stop=stop))
    assert (response.stop_reason, response.raw_stop_reason) == (reason, stop)
    problems = {call.problem for call in response.message.calls}
    assert problems <= ({MALFORMED_CALL} if stop == "malformed_tool_use" else {""})


@pytest.mark.parametrize("stop", ["malformed_model_output", "malformed_tool_use"])
def test_an_answer_that_the_model_failed_to_write_is_asked_for_again(stop: str) -> None:
    with pytest.raises(ModelError) as caught:
        CODEC.response(answer({"text": "Hi"}, stop=stop))
    assert caught.value.retryable
    decoder = CODEC.decoder()
    decoder.feed({"messageStop": {"stopReason": stop}})
    with pytest.raises(ModelError) as caught:
        decoder.finish()
    assert caught.value.partial is not None


def test_usage_counts_the_cache_as_input() -> None:
    usage = {"inputTokens": 5, "outputTokens": 2, "cacheReadInputTokens": 10, "cacheWriteInputTokens": 3}
    assert CODEC.response(answer(usage=usage)).usage == Usage(18, 2, 10, 3)


@pytest.mark.parametrize(
    ("body", "status", "retryable", "message"),
    [
        ({"message": "Too many"}, 429, True, "Too many"),
        ({"__type": "com.amazon#ThrottlingException", "message": "Slow"}, 400, True, "ThrottlingException: Slow"),
        ({"message": "bad field"}, 400, False, "bad field"),
        ({"Message": "no access"}, 403, False, "no access"),
        ({"__type": "ModelErrorException", "message": "m", "originalStatusCode": 500}, 424, True, "ModelError"),
        ({"__type": "ModelErrorException", "message": "m", "originalStatusCode": 400}, 424, False, "ModelError"),
        ("<html>", 503, True, "<html>"),
        (None, 500, True, "an error"),
    ],
)  # fmt: skip
def test_errors(body: Any, status: int, retryable: bool, message: str) -> None:
    error = CODEC.error(body, status, 7.0)
    assert (error.retryable, error.status, error.retry_after) == (retryable, status, 7.0)
    assert message in error.message
