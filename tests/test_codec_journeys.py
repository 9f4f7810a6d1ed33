"""A conversation that was had with one provider goes on with any other: every body is legal by its rules."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from tests.legal_bodies import CHECKERS
from tests.properties import examples
from toolcrib.call import ToolCall
from toolcrib.codecs.catalog import codec_named
from toolcrib.codecs.codec import Codec
from toolcrib.codecs.left_out import left_out
from toolcrib.codecs.tool_names import wire_names
from toolcrib.codecs.wire_json import encodable
from toolcrib.content import File, Image, Json, Text
from toolcrib.messages import (
    Message,
    Opaque,
    Reasoning,
    Request,
    ResultPart,
    ToolChoice,
    messages_from_json,
    messages_to_json,
)
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec

# Where a conversation may go on: the codec, the model's name, and what else the request says.
ROUTES: dict[str, tuple[Codec, str, dict[str, Any]]] = {
    "openai": (codec_named("openai_chat"), "gpt-5", {}),
    "mistral": (codec_named("openai_chat", "mistral"), "mistral-large", {}),
    "deepseek": (codec_named("openai_chat", "deepseek"), "deepseek-chat", {}),
    "others": (codec_named("openai_chat", "localhost:8000"), "qwen3", {}),
    "responses": (codec_named("openai_responses"), "gpt-5", {}),
    "responses, not stored": (
        codec_named("openai_responses", "xai"),
        "grok-4",
        {"xai": {"store": False}},
    ),
    "anthropic": (codec_named("anthropic_messages"), "claude-sonnet-4-5", {}),
    "gemini": (codec_named("gemini"), "gemini-3-pro", {}),
    "gemini before 3": (codec_named("gemini"), "gemini-2.5-pro", {}),
    "interactions": (codec_named("gemini_interactions"), "gemini-3-pro", {}),
    "bedrock": (codec_named("bedrock_converse"), "us.anthropic.claude-sonnet-4-5-20250929-v1:0", {}),
    "cohere": (codec_named("cohere"), "command-a", {}),
    "ollama": (codec_named("ollama"), "qwen3", {}),
}
ODD_NAMES = ("search", "mcp:files/read.file", "x" * 80, "日本語", "a.b", "a:b", "", "9lives")
ODD_IDS = ("", "null", "call_1", "functions.search:0", "é", "y" * 90, "toolu_01")

DEEP = '{"n": ' + "[" * 600 + "]" * 600 + "}"


def chat(calls: list[dict[str, Any]], mark: str, *, think: bool, speak: bool) -> dict[str, Any]:
    wire = [
        {
            "id": c["id"],
            "type": "function",
            "function": {"name": c["name"], "arguments": json.dumps(c["args"])},
        }
        for c in calls
    ]
    message = {"role": "assistant", "content": f"text {mark}" if speak else None, "tool_calls": wire or None}
    if think:
        message |= {
            "reasoning_content": f"thought {mark}",
            "reasoning_details": [{"type": "reasoning.encrypted", "data": f"secret {mark}", "index": 0}],
        }
    return {"choices": [{"message": message, "finish_reason": "tool_calls" if calls else "stop"}]}


def responses(calls: list[dict[str, Any]], mark: str, *, think: bool, speak: bool) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    if think:
        summary = [{"type": "summary_text", "text": f"thought {mark}"}]
        items.append(
            {
                "type": "reasoning",
                "id": f"rs_{mark}",
                "summary": summary,
                "encrypted_content": f"secret {mark}",
            }
        )
    if speak:
        said = {"type": "output_text", "text": f"text {mark}", "annotations": []}
        items.append({"type": "message", "role": "assistant", "id": f"msg_{mark}", "content": [said]})
        items.append({"type": "web_search_call", "id": f"ws_{mark}", "status": "completed"})
    for n, c in enumerate(calls):
        args = json.dumps(c["args"])
        call = {"call_id": c["id"], "name": c["name"], "arguments": args}
        items.append({"type": "function_call", "id": f"fc_{mark}_{n}", "status": "completed", **call})
    return {"id": f"resp_{mark}", "status": "completed", "output": items}


def messages(calls: list[dict[str, Any]], mark: str, *, think: bool, speak: bool) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    if think:
        blocks.append({"type": "thinking", "thinking": f"thought {mark}", "signature": f"secret {mark}"})
    if speak:
        blocks.append({"type": "text", "text": f"text {mark}\n"})
        search = {"name": "web_search", "input": {}}
        blocks.append({"type": "server_tool_use", "id": f"srvtoolu_{mark}", **search})
        found = {"tool_use_id": f"srvtoolu_{mark}", "content": []}
        blocks.append({"type": "web_search_tool_result", **found})
    blocks += [{"type": "tool_use", "id": c["id"], "name": c["name"], "input": c["args"]} for c in calls]
    return {"type": "message", "content": blocks, "stop_reason": "tool_use" if calls else "end_turn"}


def gemini(calls: list[dict[str, Any]], mark: str, *, think: bool, speak: bool) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": f"thought {mark}", "thought": True}] if think else []
    if speak:
        parts.append({"text": f"text {mark}", "thoughtSignature": f"secret {mark}"})
        parts.append({"executableCode": {"language": "PYTHON", "code": f"secret {mark}"}})
    parts += [{"functionCall": {"name": c["name"], "args": c["args"]}} for c in calls]
    if calls and think:
        parts[-len(calls)]["thoughtSignature"] = f"secret {mark}"
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}


def interactions(calls: list[dict[str, Any]], mark: str, *, think: bool, speak: bool) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"type": "thought", "signature": f"secret {mark}"}] if think else []
    if speak:
        steps.append({"type": "model_output", "content": [{"type": "text", "text": f"text {mark}"}]})
    asked = ({"id": c["id"], "name": c["name"], "arguments": c["args"]} for c in calls)
    steps += [{"type": "function_call", **call} for call in asked]
    return {"id": mark, "status": "completed", "steps": steps}


def converse(calls: list[dict[str, Any]], mark: str, *, think: bool, speak: bool) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    if think:
        said = {"text": f"thought {mark}", "signature": f"secret {mark}"}
        blocks.append({"reasoningContent": {"reasoningText": said}})
    if speak:
        blocks.append({"text": f"text {mark}"})
    blocks += [{"toolUse": {"toolUseId": c["id"], "name": c["name"], "input": c["args"]}} for c in calls]
    return {"output": {"message": {"content": blocks}}, "stopReason": "tool_use" if calls else "end_turn"}


def cohere(calls: list[dict[str, Any]], mark: str, *, think: bool, speak: bool) -> dict[str, Any]:
    message: dict[str, Any] = {"content": [{"type": "text", "text": f"text {mark}"}] if speak else None}
    if think:
        message["tool_plan"] = f"thought {mark}"
    message["tool_calls"] = [
        {
            "id": c["id"],
            "type": "function",
            "function": {"name": c["name"], "arguments": json.dumps(c["args"])},
        }
        for c in calls
    ]
    return {"message": message, "finish_reason": "TOOL_CALL" if calls else "COMPLETE"}


def ollama(calls: list[dict[str, Any]], mark: str, *, think: bool, speak: bool) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": f"text {mark}" if speak else ""}
    if think:
        message["thinking"] = f"thought {mark}"
    message["tool_calls"] = [{"function": {"name": c["name"], "arguments": c["args"]}} for c in calls]
    return {"message": message, "done": True, "done_reason": "stop"}


# How the answers of each route look on its wire.
ANSWERS = {
    "openai": chat,
    "mistral": chat,
    "deepseek": chat,
    "others": chat,
    "responses": responses,
    "responses, not stored": responses,
    "anthropic": messages,
    "gemini": gemini,
    "gemini before 3": gemini,
    "interactions": interactions,
    "bedrock": converse,
    "cohere": cohere,
    "ollama": ollama,
}
SPECS = [ToolSpec(name, "Does it.", {"type": "object", "properties": {}}) for name in ODD_NAMES]


def answered_by(route: str, calls: list[dict[str, Any]], mark: str, **what: bool) -> Message:
    codec = ROUTES[route][0]
    there = wire_names(Request([], SPECS))
    wire = [{**call, "name": there.get(call["name"], call["name"])} for call in calls]
    return codec.response(ANSWERS[route](wire, mark, **what), Request([], SPECS)).message


AUTO = ToolChoice()


def body_for(
    route: str, conversation: list[Message], tools: list[ToolSpec], choice: ToolChoice = AUTO
) -> dict[str, Any]:
    codec, model, extras = ROUTES[route]
    request = Request(conversation, tools, choice, extras=extras)
    body = codec.request(request, model=model, stream=False)
    json.dumps(encodable(body), allow_nan=False)
    return body


PICTURE = Image(data="AAAA", media_type="image/png")


def full_conversation(origin: str) -> list[Message]:
    """Parallel calls of odd names with one id, pictures in a result, a failure, thinking, an unanswered call."""
    calls = [
        {"id": "call_1", "name": "a.b", "args": {"n": 1}},
        {"id": "call_1", "name": "a:b", "args": {"n": 2}},
        {"id": "", "name": "x" * 80, "args": {}},
    ]
    first = answered_by(origin, calls, f"{ORIGIN_MARK}1", think=True, speak=True)
    results = [
        ResultPart(first.calls[0], ToolResult((Text("result 1"), PICTURE))),
        ResultPart(first.calls[1], ToolResult.of("")),
    ]
    second = answered_by(origin, [], f"{ORIGIN_MARK}2", think=True, speak=True)
    cut = answered_by(origin, [], f"{ORIGIN_MARK}3", think=True, speak=False)
    return [
        Message.system("Be brief."),
        Message.user("question 1", PICTURE),
        first,
        Message("tool", [*results]),
        Message.user("question 2"),
        second,
        Message.system("Be briefer."),
        Message.user("question 3"),
        cut,
        Message.user("question 4"),
    ]


ORIGIN_MARK = "k7"


@each("destination", ROUTES)
@each("origin", ROUTES)
def test_a_conversation_moves_between_any_two_providers(origin: str, destination: str) -> None:
    conversation = full_conversation(origin)
    body = body_for(destination, conversation, SPECS)
    CHECKERS[destination](body)
    text = json.dumps(body, ensure_ascii=False)
    for said in ("question 1", "question 2", "question 4", "text k71", "text k72", "result 1", "Be briefer."):
        assert text.count(said) == 1, said
    same = ROUTES[origin][0].provider == ROUTES[destination][0].provider
    alike = ANSWERS[origin] is ANSWERS[destination]
    if not (same and alike):
        assert "secret" not in text, "what only one provider understands was sent to another"
        assert "thought k7" not in text


@pytest.mark.parametrize("route", sorted(set(ROUTES) - {"cohere", "ollama"}))
def test_signatures_go_back_to_whom_they_came_from(route: str) -> None:
    body = body_for(route, full_conversation(route), SPECS)
    assert json.dumps(body).count("secret k71") >= 1


@each("route", ROUTES)
@each(
    "conversation",
    [
        [],
        [Message("user", [])],
        [Message.system("only this")],
        [Message("assistant", [Text("I begin. ")])],
        [Message("assistant", [Text(" \n")]), Message.user(" ")],
        [Message.user("a"), Message.user("b"), Message("assistant", [Text("c")]), Message("assistant", [])],
        [Message("assistant", [Reasoning("only thought")])],
        [Message("tool", [ResultPart(ToolCall("lost", "{}", "call_9"), ToolResult.of("found"))])],
        [Message.user("a"), Message("assistant", [ToolCall("f", "{", "1"), Text("after"), ToolCall("f")])],
        [Message.assistant(ToolCall("f", '{"n": 1e999}'), ToolCall("f", {"n": [float("inf")]}))],
        [Message.assistant(ToolCall("f", DEEP), ToolCall("f", json.loads(DEEP)))],
        [Message.user("a", File(data="AAAA", media_type="application/pdf"), File(url="https://e.org/x.pdf"))],
    ],
    ids=lambda conversation: ",".join(m.role for m in conversation) or "nothing",
)
def test_odd_conversations_are_legal_too(route: str, conversation: list[Message]) -> None:
    CHECKERS[route](body_for(route, conversation, SPECS))
    CHECKERS[route](body_for(route, conversation, []))


@each("route", ROUTES)
def test_words_by_hand_and_a_providers_own_items_are_sent(route: str) -> None:
    codec = ROUTES[route][0]
    own = Opaque(codec.provider, {"type": "own_kind", "own": "mine"})
    foreign = Opaque("somebody", {"type": "their_kind", "own": "theirs"})
    by_hand: list[tuple[Any, Any]] = [
        ("system", ["rules"]),
        ("user", ["asked", own, foreign]),
        ("assistant", "answered"),
        ("assistant", ["more"]),
        ("user", "again"),
    ]
    conversation = [Message(role, parts) for role, parts in by_hand]
    text = json.dumps(body_for(route, conversation, []))
    for words in ("rules", "asked", "answered", "more", "again"):
        assert text.count(f'"{words}"') + text.count(f"\\n{words}") == 1, words
    assert ('"mine"' in text) is codec.features.items
    assert "theirs" not in text
    [told] = left_out(Message.user("asked", foreign).parts, codec)
    assert told == f"an item of somebody (their_kind) is not sent to {codec.provider}"
    assert bool(left_out([own], codec)) is not codec.features.items


@each("route", ROUTES)
def test_a_call_or_a_result_among_the_instructions_is_sent(route: str) -> None:
    call = ToolCall("t0", {"n": 77_777}, "c1")
    for part in (call, ResultPart(call, ToolResult.of("the words"))):
        conversation = [Message("system", ["rules", part]), Message.user("go")]
        body = body_for(route, conversation, SPECS)
        CHECKERS[route](body)
        text = json.dumps(body)
        assert "rules" in text and ("77777" if part is call else "the words") in text


marks = st.integers(0, 10**6).map(lambda number: f"k{number}")
asked = st.fixed_dictionaries(
    {"id": st.sampled_from(ODD_IDS), "name": st.sampled_from(ODD_NAMES), "args": st.just({"n": 1})}
)
results = st.one_of(
    st.sampled_from(["", " ", "done"]).map(ToolResult.of),
    st.just(ToolResult((Json({"a": 1}), PICTURE, Image(url="https://e.org/x.png")))),
    st.just(ToolResult((Text(""),), is_error=True)),
)
users = st.sampled_from(
    [
        Message.user("go"),
        Message.user(""),
        Message.user("see", PICTURE),
        Message.system("mind"),
        Message("user"),
    ]
)


@st.composite
def journeys(draw: st.DrawFn) -> list[Message]:
    """Answers of several providers in one conversation; results go missing, or belong to no call of it."""
    conversation: list[Message] = []
    for number in range(draw(st.integers(0, 4))):
        conversation += draw(st.lists(users, max_size=2))
        answer = answered_by(
            draw(st.sampled_from(sorted(ROUTES))),
            draw(st.lists(asked, max_size=3)),
            f"{draw(marks)}n{number}",
            think=draw(st.booleans()),
            speak=draw(st.booleans()),
        )
        conversation.append(answer)
        told = [ResultPart(call, draw(results)) for call in draw(st.permutations(answer.calls))]
        told = told[: draw(st.integers(0, 3))]
        if draw(st.integers(0, 9)) == 0:
            told.append(
                ResultPart(ToolCall("lost.tool", "{}", draw(st.sampled_from(ODD_IDS))), draw(results))
            )
        conversation += [Message("tool", [*told])] if told else []
    return messages_from_json(messages_to_json(conversation)) if draw(st.booleans()) else conversation


choices = st.sampled_from(
    [ToolChoice(), ToolChoice("none"), ToolChoice("required", ("a.b",)), ToolChoice("auto", ("a.b", "gone"))]
)


@pytest.mark.parametrize("route", ROUTES)
@examples(60)
@given(conversation=journeys(), tools=st.sampled_from([[], SPECS]), choice=choices)
def test_any_journey_is_legal(
    route: str, conversation: list[Message], tools: list[ToolSpec], choice: ToolChoice
) -> None:
    CHECKERS[route](body_for(route, conversation, tools, choice))


@pytest.mark.parametrize(
    ("data", "carried"),
    [
        ("aGVsbG8=", {"type": "text", "media_type": "text/plain", "data": "hello"}),
        ("/w==", None),
        ("?", None),
    ],
)
def test_a_file_of_text_reaches_claude_as_one(data: str, carried: dict[str, Any] | None) -> None:
    note = File(data=data, media_type="text/csv", name="note.csv")
    block = body_for("anthropic", [Message.user(note)], [])["messages"][0]["content"][0]
    assert block.get("source") == carried
    assert block.get("title", block.get("text", "")).count("note.csv") == 1
