"""The scripted and the replaying model, and the names of models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolcrib.call import ToolCall
from toolcrib.messages import (
    CallChunk,
    Message,
    ReasoningChunk,
    Request,
    Response,
    ResultPart,
    TextChunk,
    Usage,
)
from toolcrib.models import AnthropicMessages, ModelError, OpenAIChat, Replay, Scripted, Turn, resolve_model
from toolcrib.result import ToolResult

REQUEST = Request([Message.user("Hi")])


async def test_turns_in_their_forms() -> None:
    model = Scripted(
        ["Hello.", {"text": "Two.", "usage": {"input_tokens": 3}}, Turn("Three.", stop_reason="length")]
    )
    answers = [await model.respond(REQUEST) for _ in range(3)]
    assert [answer.message.text for answer in answers] == ["Hello.", "Two.", "Three."]
    assert [answer.stop_reason for answer in answers] == ["end", "end", "length"]
    assert answers[1].usage == Usage(3)
    with pytest.raises(ModelError, match="run out: it holds 3 turns"):
        await model.respond(REQUEST)


async def test_calls_whole_malformed_and_numbered() -> None:
    calls = [
        {"name": "f", "arguments": {"a": 1}},
        {"name": "g", "arguments": '{"a', "id": "mine"},
        {"name": "h"},
    ]
    response = await Scripted([{"calls": calls}]).respond(REQUEST)
    assert response.stop_reason == "tool_calls"
    assert [(call.id, call.name, call.arguments) for call in response.message.calls] == [
        ("call_1_0", "f", {"a": 1}),
        ("mine", "g", '{"a'),
        ("call_1_2", "h", ""),
    ]


async def test_streaming_in_pieces() -> None:
    turn = Turn("abcde", [ToolCall("f", {"a": 1})], reasoning="hm", chunk_size=3)
    *chunks, last = [item async for item in Scripted([turn]).stream(REQUEST)]
    assert chunks == [
        ReasoningChunk("hm"),
        TextChunk("abc"),
        TextChunk("de"),
        CallChunk(0, "f", "call_1_0"),
        CallChunk(0, arguments='{"a'),
        CallChunk(0, arguments='":1'),
        CallChunk(0, arguments="}"),
        CallChunk(0, done=True),
    ]
    assert isinstance(last, Response)


async def test_functions_sync_and_async() -> None:
    async def later(request: Request) -> Turn:
        return Turn(f"{len(request.messages)} messages")

    assert (await Scripted(lambda request: request.messages[-1].text).respond(REQUEST)).message.text == "Hi"
    assert (await Scripted(later).respond(REQUEST)).message.text == "1 messages"


async def test_when_looks_at_the_last_results() -> None:
    turns = [{"when": "failed", "text": "Oh."}, {"when": "passed", "text": "Good."}, "End."]
    result = ResultPart(ToolCall("t"), ToolResult.of("2 passed"))
    request = Request([Message.user("failed"), Message("assistant"), Message("tool", [result])])
    model = Scripted(turns)
    assert (await model.respond(request)).message.text == "Good."
    assert (await model.respond(REQUEST)).message.text == "End."


SCRIPT = """\
name: demo
chunk_size: 4
turns:
  - text: I run the tests.
    reasoning: First the tests.
    calls:
      - name: shell
        arguments: {command: pytest -q}
      - name: read_file
        arguments: '{"path": '
    usage: {input_tokens: 900, output_tokens: 40}
  - error: overloaded
  - Done.
"""


async def test_a_yaml_file(tmp_path: Path) -> None:
    path = tmp_path / "demo.yaml"
    path.write_text(SCRIPT)
    model = resolve_model(f"scripted:{path}")
    assert model.name == "demo"
    first = await model.respond(REQUEST)
    assert [call.arguments for call in first.message.calls] == [{"command": "pytest -q"}, '{"path": ']
    assert first.usage == Usage(900, 40)
    with pytest.raises(ModelError, match="overloaded"):
        await model.respond(REQUEST)
    *chunks, _ = [item async for item in model.stream(REQUEST)]
    assert chunks == [TextChunk("Done"), TextChunk(".")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- text: a\n- txt: b\n", r"turn 2 \(line 2\): unknown key txt; a turn has calls"),
        ("turns:\n  - a\n  - calls:\n      - nam: x\n", r"turn 2 \(line 3\), call 1: unknown key nam"),
        ("- calls: [{arguments: {}}]\n", r"turn 1 \(line 1\), call 1: name must be a text"),
        ("- calls: {name: x}\n", r"turn 1 \(line 1\): calls must be a list"),
        ("- calls: [{name: x, arguments: 3}]\n", "arguments must be a mapping or a text, got 3"),
        ("- delay: soon\n", "delay must be a number"),
        ("- stop_reason: tired\n", "stop_reason must be one of"),
        ("- 3\n", r"turn 1 \(line 1\): a turn must be a mapping, got 3"),
        ("turnz: []\n", "unknown key turnz"),
        ("delay: x\nturns: []\n", "delay cannot be 'x'"),
        ("hello\n", "expected a list of turns"),
        ("", "expected a list of turns"),
        ("turns: 3\n", "expected a list of turns"),
        ("- [\n", r'bad.yaml: not YAML: (?s:.*)in "bad.yaml", line 2'),
    ],
)
def test_errors_of_a_yaml_file(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        Scripted.from_yaml(path)


def chat(content: str) -> dict[str, Any]:
    body = {"choices": [{"message": {"content": content}, "finish_reason": "stop"}]}
    return {"api": "chat", "response": {"status": 200, "framing": "json", "body": body}}


STREAMED = {
    "api": "messages",
    "response": {
        "framing": "sse",
        "sse_events": [
            {"event": "message_start", "data": '{"type":"message_start","message":{"id":"m"}}'},
            {"data": '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi"}}'},
            {"data": '{"type":"message_stop"}'},
        ],
    },
}
RAW = {
    "api": "chat",
    "response": {
        "framing": "sse",
        "sse_raw": ': x\r\ndata:{"choices":[{"delta":{"content":"Raw"}}]}\r\n\r\ndata: [DONE]',
    },
}
FAILED = {
    "api": "chat",
    "response": {"status": 503, "framing": "json", "body": {"error": {"message": "busy"}}},
}


async def test_replay_plays_in_order_and_says_when_it_is_over(tmp_path: Path) -> None:
    path = tmp_path / "recorded.jsonl"
    path.write_text("\n".join(json.dumps(exchange) for exchange in (chat("One."), STREAMED, RAW)) + "\n\n")
    model = resolve_model(f"replay:{path}")
    assert (await model.respond(REQUEST)).message.text == "One."
    items = [item async for item in model.stream(REQUEST)]
    assert items[0] == TextChunk("Hi")
    assert (await model.respond(REQUEST)).message.text == "Raw"
    with pytest.raises(ModelError, match="holds 3 exchanges and all of them were played"):
        await model.respond(REQUEST)


async def test_replay_of_errors() -> None:
    model = Replay(
        [FAILED, {"api": "smoke signals", "response": {}}, {"api": "chat", "response": {"framing": "x"}}]
    )
    with pytest.raises(ModelError, match="busy") as caught:
        await model.respond(REQUEST)
    assert (caught.value.status, caught.value.retryable) == (503, True)
    with pytest.raises(ModelError, match="cannot play api 'smoke signals'"):
        await model.respond(REQUEST)
    with pytest.raises(ModelError, match="cannot play framing 'x'"):
        await model.respond(REQUEST)


@pytest.mark.parametrize("line", ["{", "[]", '{"api": "chat"}'])
def test_replay_names_the_line_that_is_wrong(line: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(chat("One.")) + "\n" + line)
    with pytest.raises(ValueError, match="line 2"):
        Replay.from_jsonl(path)


@pytest.mark.parametrize(
    ("name", "kind", "shown"),
    [
        ("openai-chat:gpt-5", OpenAIChat, "openai:gpt-5"),
        ("http://localhost:8000/v1#org/model", OpenAIChat, "localhost:8000:org/model"),
        ("https://api.mistral.ai/v1#large", OpenAIChat, "mistral:large"),
        ("anthropic:claude-x", AnthropicMessages, "anthropic:claude-x"),
    ],
)
def test_names_of_models(name: str, kind: type, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    model = resolve_model(name)
    assert isinstance(model, kind)
    assert model.name == shown
    monkeypatch.setenv("TOOLCRIB_MODEL", name)
    assert resolve_model().name == shown
    assert resolve_model(model) is model


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt-5", "unknown model 'gpt-5'.*Did you mean openai:gpt-5"),
        ("claude-x", "Did you mean anthropic:claude-x"),
        ("openai:", "unknown model 'openai:'"),
        ("nobody:x", "one of openai, anthropic"),
        ("http://localhost:8000/v1", "#NAME"),
        (None, "set TOOLCRIB_MODEL"),
    ],
)
def test_names_that_mean_nothing(name: str | None, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLCRIB_MODEL", raising=False)
    with pytest.raises(ValueError, match=words):
        resolve_model(name)


def test_the_sdks_are_imported_when_first_used() -> None:
    import subprocess
    import sys

    code = (
        "import sys, toolcrib.models as m; m.OpenAIChat('a'); m.AnthropicMessages('b');"
        "print([n for n in ('openai', 'anthropic', 'yaml') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
