"""Servers that cannot read a call of their model, that take no tools, or that do not stream them."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from tests.cases import each
from tests.test_model_retries import HELLO, STREAMED, Answer, model, serving
from toolcrib import Agent, Effect
from toolcrib.agent import Reason
from toolcrib.codecs import BedrockConverseCodec, ModelError, OllamaCodec, OpenAIChatCodec
from toolcrib.codecs.codec import Codec
from toolcrib.codecs.unread_calls import answer_to
from toolcrib.events import Notice
from toolcrib.function import tool
from toolcrib.messages import CallChunk, Message, NoticeChunk, Request, Response, RestartChunk, TextChunk
from toolcrib.models import Ollama
from toolcrib.models.server_limits import lacking_in
from toolcrib.spec import ToolSpec

looked_up: list[str] = []


@tool(effect=Effect.READ, secrets=())
def look_up(words: str) -> str:
    """Look words up."""
    looked_up.append(words)
    return f"found {words}"


SPEC = ToolSpec("look_up", "Look words up.", {"type": "object", "properties": {"words": {"type": "string"}}})
WITH_TOOLS = Request([Message.user("Hi")], [SPEC])
WRITTEN = '<function=look_up>{"words": "a</function>'
GROQ = {
    "message": "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
    "type": "invalid_request_error",
    "code": "tool_use_failed",
}
CHAT, OLLAMA, BEDROCK = OpenAIChatCodec("groq"), OllamaCodec(), BedrockConverseCodec()
VLLM = "1 validation error for list[function-wrap[__log_extra_fields__()]]\n  Invalid JSON: EOF while parsing"
UNREAD: dict[str, tuple[Codec, Any, int | None, str, str]] = {
    "Groq": (CHAT, {"error": {**GROQ, "failed_generation": WRITTEN}}, 400, "look_up", WRITTEN),
    "Groq, in a stream": (
        CHAT, {"error": {**GROQ, "failed_generation": "{}", "status_code": 400}}, None, "", "{}",
    ),
    "Groq, of no tool": (
        CHAT,
        {"error": {"message": "tool call validation failed: attempted to call tool 'web'", "code": "tool_use_failed"}},
        400, "", "",
    ),
    "Groq, of wrong parameters": (
        CHAT,
        {"error": {"message": "tool call validation failed: parameters for tool look_up did not match schema"}},
        400, "look_up", "",
    ),
    "Cerebras": (
        CHAT,
        {"message": "Failed to generate tool_calls. Exception: No valid function calls", "failed_generation": "x"},
        400, "", "x",
    ),
    "Ollama": (
        OLLAMA, {"error": "error parsing tool call: raw='look_up it', err=invalid character 'l'"},
        500, "look_up", "look_up it",
    ),
    "Ollama, in a stream": (OLLAMA, {"error parsing tool call": "invalid character 'c'"}, None, "", ""),
    "Bedrock": (
        BEDROCK,
        {"__type": "ModelErrorException", "message": "Model produced invalid sequence as part of ToolUse."},
        424, "", "",
    ),
    "llama.cpp": (
        CHAT,
        {"error": {"code": 500, "message": f"Failed to parse input at pos 12: {WRITTEN}", "type": "server_error"}},
        500, "look_up", WRITTEN,
    ),
    "vLLM": (CHAT, {"error": {"message": VLLM, "type": "BadRequestError", "code": 400}}, 400, "", ""),
}  # fmt: skip


@pytest.mark.parametrize(("codec", "body", "status", "name", "written"), UNREAD.values(), ids=UNREAD)
def test_a_call_that_the_server_could_not_read_is_a_call(
    codec: Codec, body: Any, status: int | None, name: str, written: str
) -> None:
    answer = answer_to(codec.error(body, status), WITH_TOOLS)
    assert answer is not None
    [call] = answer.message.calls
    assert (call.name, call.arguments, answer.stop_reason) == (name, written, "tool_calls")
    assert "the server says: " in call.problem
    assert "raw='" not in call.problem
    assert answer_to(codec.error(body, status), Request([Message.user("Hi")])) is None


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"error": {"message": "Failed to parse tool call arguments as JSON", "code": 500}}, 500),
        ({"error": {"message": "tool call validation failed", "code": "tool_use_failed"}}, 429),
        ({"error": {"message": "tool_call_id is missing"}}, 400),
        ({"error": {"message": ["odd"], "code": ["tool_use_failed"], "failed_generation": 1}}, 400),
    ],
)
def test_other_errors_are_errors(body: Any, status: int) -> None:
    assert CHAT.error(body, status).unread is None


@pytest.mark.parametrize(
    "stop",
    [
        {"finish_reason": "function_call_filter: MALFORMED_FUNCTION_CALL"},
        {"finish_reason": "error", "native_finish_reason": "MALFORMED_FUNCTION_CALL"},
        {"finish_reason": "stop", "native_finish_reason": "UNEXPECTED_TOOL_CALL"},
    ],
)
def test_a_stop_reason_may_say_it(stop: dict[str, Any]) -> None:
    """Gemini behind Chat Completions."""
    calls = [{"index": 0, "id": "x", "function": {"name": "look_up", "arguments": "{}"}}]
    for written in ({}, {"tool_calls": calls}):
        said = {"content": "Well.", **written}
        whole = CHAT.response({"choices": [{"message": said, **stop}]})
        decoder = CHAT.decoder()
        chunks = decoder.feed({"choices": [{"delta": said, **stop}]})
        for answer in (whole, decoder.finish()):
            [call] = answer.message.calls
            assert call.problem
            assert (answer.message.text, answer.stop_reason) == ("Well.", "tool_calls")
        assert chunks[-1] == CallChunk(0, done=True)


def test_bedrock_stops_without_the_malformed_call() -> None:
    body = {"output": {"message": {"content": [{"text": "Well."}]}}, "stopReason": "malformed_tool_use"}
    with pytest.raises(ModelError) as caught:
        BEDROCK.response(body)
    answer = answer_to(caught.value, WITH_TOOLS)
    assert answer is not None
    assert answer.message.text == "Well."
    assert [call.name for call in answer.message.calls] == [""]


def failed() -> Answer:
    return Answer(json.dumps({"error": {**GROQ, "failed_generation": WRITTEN}}).encode(), 400)


async def test_the_model_is_told_and_goes_on() -> None:
    async with serving(failed(), Answer(STREAMED, kind="text/event-stream")) as peer:
        outcome = await Agent(model(peer), [look_up]).run("Look a up.")
    assert (outcome.reason, outcome.text) == (Reason.ANSWERED, "Hello.")
    call, result = peer.bodies[1]["messages"][-2:]
    assert call["tool_calls"][0]["function"]["name"] == "look_up"
    assert WRITTEN in json.loads(call["tool_calls"][0]["function"]["arguments"])["INVALID_JSON"]
    assert "could not be read" in result["content"]
    assert "Failed to call a function" in result["content"]


async def test_and_not_for_ever() -> None:
    async with serving(failed()) as peer:
        outcome = await Agent(model(peer), [look_up], max_failures=3).run("Look a up.")
    assert outcome.reason is Reason.PAUSED
    assert len(peer.asked) == 3


async def test_an_answer_that_fails_in_the_middle_begins_again_with_the_unreadable_call() -> None:
    events = (
        {"choices": [{"index": 0, "delta": {"content": "Hel"}}]},
        {"error": {**GROQ, "failed_generation": WRITTEN}},
    )
    stream = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    async with serving(Answer(stream, kind="text/event-stream")) as peer:
        items = [item async for item in model(peer).stream(WITH_TOOLS)]
    assert items[0] == TextChunk("Hel")
    assert isinstance(items[1], RestartChunk)
    last = items[-1]
    assert isinstance(last, Response)
    assert (last.message.text, [call.name for call in last.message.calls]) == ("Hel", ["look_up"])


# Servers without tools

NO_TOOLS = [
    "registry.ollama.ai/library/gemma:2b does not support tools",
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    'No endpoints found that support tool use. Try disabling "look_up". To learn more, visit: https://x.y/z',
    "ValidationException: This model doesn't support tool use.",
    "tools is not supported in this model. For a list of supported models, refer to https://x.y/z",
    "Unsupported parameter: 'tools' is not supported with this model.",
    "<400> InternalError.Algo.InvalidParameter: The tool call is not supported.",
    "Function calling is not enabled for this model",
    "Function calling is not enabled for models/gemma-3-27b-it",
    "`tool calling` is not supported with this model",
    "deepseek-reasoner does not support Function Calling",
    "Tool calling is not supported for this model",
    "model features function calling not support",
    "tools param requires --jinja flag",
    "500 Internal server error: Unsupported tool_call_parser: None",
]
OTHERWISE = [
    "the model does not support tool_choice 'required'",
    "this model does not support tool choice",
    "parallel tool calls are not supported with this model",
    "tools are not supported when response_format is set",
    "this model does not support tools with structured output",
    "The computer_use tool is not supported with this model",
    "slow down",
]


@each("words", NO_TOOLS)
def test_what_servers_say_that_take_no_tools(words: str) -> None:
    assert lacking_in(ModelError(f"openai:m answered 400: {words}", status=400)) == "tools"
    assert lacking_in(ModelError(words, status=429)) == ""


@each("words", OTHERWISE)
def test_what_they_say_of_something_else(words: str) -> None:
    assert lacking_in(ModelError(words, status=400)) == ""


NONE = Answer(
    json.dumps({"error": {"message": "m does not support tools", "type": "api_error"}}).encode(), 400
)


def said(text: str) -> Answer:
    event = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
    return Answer(f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n".encode(), kind="text/event-stream")


async def test_a_server_without_tools_is_asked_for_calls_as_text() -> None:
    """The operator is told once; later turns and runs are asked in text at once."""
    looked_up.clear()
    call = said('<tool_call>{"name": "look_up", "arguments": {"words": "a"}}</tool_call>')
    async with serving(NONE, call, said("Found."), said("Again.")) as peer:
        agent = Agent(model(peer), [look_up])
        events = [event async for event in agent.stream("Look a up.")]
        again = await agent.run("And again.")
    assert looked_up == ["a"]
    [notice] = [event.message for event in events if isinstance(event, Notice)]
    assert "takes no tools" in notice
    assert "tool_call" in notice
    assert again.text == "Again."
    assert ["tools" in body for body in peer.bodies] == [True, False, False, False]
    assert "look_up" in json.dumps(peer.bodies[1]["messages"])


async def test_the_format_is_that_of_the_model() -> None:
    async with serving(NONE, said("Hello.")) as peer:
        made = model(peer)
        made.model = "qwen2.5-coder"
        items = [item async for item in made.stream(WITH_TOOLS)]
    [notice] = [item for item in items if isinstance(item, NoticeChunk)]
    assert "in the format hermes" in notice.message


async def test_a_whole_answer_too_and_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    ollama = Answer(b'{"error": "registry.ollama.ai/library/gemma:2b does not support tools"}', 400)
    hello = Answer(b'{"message": {"content": "Hello."}, "done": true, "done_reason": "stop"}')
    with caplog.at_level(logging.WARNING, "toolcrib"):
        async with serving(ollama, hello, hello) as peer:
            made = Ollama("gemma:2b", base_url=peer.address)
            assert (await made.respond(WITH_TOOLS)).message.text == "Hello."
            assert (await made.respond(WITH_TOOLS)).message.text == "Hello."
    assert len(peer.asked) == 3
    assert [record.message for record in caplog.records if "takes no tools" in record.message] == [
        record.message for record in caplog.records
    ]
    assert len(caplog.records) == 1


async def test_a_model_that_streams_no_tools_answers_whole() -> None:
    words = b'{"error": {"message": "This model doesn\'t support tool use in streaming mode."}}'
    async with serving(Answer(words, 400), Answer(HELLO), Answer(HELLO)) as peer:
        made = model(peer)
        first = [item async for item in made.stream(WITH_TOOLS)]
        second = [item async for item in made.stream(WITH_TOOLS)]
    assert [type(item).__name__ for item in first] == ["NoticeChunk", "TextChunk", "Response"]
    assert [type(item).__name__ for item in second] == ["TextChunk", "Response"]
    assert ["stream" in body and body["stream"] for body in peer.bodies] == [True, False, False]
    assert all("tools" in body for body in peer.bodies)


async def test_calls_without_a_name_do_not_go_on_for_ever() -> None:
    nameless = {"index": 0, "id": "x", "function": {"name": "", "arguments": "{}"}}
    event = {"choices": [{"index": 0, "delta": {"tool_calls": [nameless]}, "finish_reason": "tool_calls"}]}
    stream = f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n".encode()
    async with serving(Answer(stream, kind="text/event-stream")) as peer:
        outcome = await Agent(model(peer), [look_up], max_failures=3).run("Look a up.")
    assert outcome.reason is Reason.PAUSED
    assert len(peer.asked) == 3
