"""What each provider refuses of a conversation, by its documentation and its error messages: a checker each."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable
from typing import Any

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
CHAT_ID = re.compile(r"[\x21-\x7e]{1,40}")
MISTRAL_ID = re.compile(r"[A-Za-z0-9]{9}")
CLAUDE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
CONVERSE_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
ANY_ID = re.compile(r"[\x21-\x7e]{1,256}")

# mistralai/mistral-common, `_validate_message_order`: what may follow a role.
AFTER = {
    "system": {"user", "assistant", "system"},
    "user": {"assistant", "system", "user"},
    "assistant": {"assistant", "user", "tool"},
    "tool": {"assistant", "tool"},
}
# The one field of a part of Gemini's that says what it is.
GEMINI_KINDS = {
    "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode",
    "codeExecutionResult", "toolCall", "toolResponse",
}  # fmt: skip


def once(ids: Iterable[str], legal: re.Pattern[str]) -> set[str]:
    """The ids, each legal and used once."""
    listed = list(ids)
    assert len(set(listed)) == len(listed), f"an id is used twice: {listed}"
    assert all(legal.fullmatch(id) for id in listed), listed
    return set(listed)


def check_names(names: Iterable[str]) -> None:
    for name in names:
        assert NAME.fullmatch(name), name


def check_arguments(text: str) -> None:
    """Arguments as text are an object, without numbers that JSON does not have, or that no reader can hold."""
    arguments = json.loads(text)
    assert isinstance(arguments, dict), text
    json.dumps(arguments, allow_nan=False)


def check_content(content: Any) -> None:
    """Content is a text or a list of blocks, and says something."""
    assert content, "empty content"
    if isinstance(content, list):
        assert all(block.get("text", True) for block in content), content


def check_chat(body: dict[str, Any], legal: re.Pattern[str] = CHAT_ID) -> None:
    """platform.openai.com/docs/api-reference/chat: calls are answered at once, each by its id."""
    messages = body["messages"]
    assert messages
    waiting: set[str] = set()
    asked: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert isinstance(message["content"], str | list)
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting, f"unanswered: {waiting}"
        assert message["role"] in ("system", "user", "assistant")
        if message["role"] != "assistant":
            check_content(message["content"])
            continue
        assert "tool_calls" not in message or message["tool_calls"], "tool_calls: []"
        assert message.get("content") or message.get("tool_calls") or message.get("refusal")
        for call in message.get("tool_calls", ()):
            waiting.add(call["id"])
            asked.append(call["id"])
            if call.get("type", "function") == "function":
                check_names([call["function"]["name"]])
                check_arguments(call["function"]["arguments"])
            else:
                check_names([call["custom"]["name"]])
    assert not waiting
    once(asked, legal)
    check_names(tool["function"]["name"] for tool in body.get("tools", ()))


def check_mistral(body: dict[str, Any]) -> None:
    """The order of roles is checked on top, and an answer is only to be gone on with if it says `prefix`."""
    check_chat(body, MISTRAL_ID)
    roles = [message["role"] for message in body["messages"]]
    for before, after in itertools.pairwise(roles):
        assert after in AFTER[before], f"unexpected role {after!r} after role {before!r}"
    assert roles[-1] != "assistant" or body["messages"][-1].get("prefix")


def check_deepseek(body: dict[str, Any]) -> None:
    """A turn with calls needs its thinking."""
    check_chat(body, ANY_ID)
    for message in body["messages"]:
        assert "reasoning_content" in message or not message.get("tool_calls")


def check_cohere(body: dict[str, Any]) -> None:
    check_chat(body, ANY_ID)
    for message in body["messages"]:
        if message["role"] == "tool" and isinstance(message["content"], list):
            assert {block["type"] for block in message["content"]} <= {"text", "document"}


def check_ollama(body: dict[str, Any]) -> None:
    """Results go by order, ids only where both sides have them; arguments are objects."""
    waiting: list[tuple[str, Any]] = []
    assert body["messages"]
    for message in body["messages"]:
        if message["role"] == "tool":
            assert (message["tool_name"], message.get("tool_call_id")) == waiting.pop(0)
            continue
        assert not waiting
        assert isinstance(message["content"], str)
        assert message["content"] or message.keys() - {"role", "content"}
        for call in message.get("tool_calls", ()):
            check_names([call["function"]["name"]])
            assert isinstance(call["function"]["arguments"], dict)
            waiting.append((call["function"]["name"], call.get("id")))
    assert not waiting


def check_responses(body: dict[str, Any]) -> None:
    """A call has its output after it; thinking that the server knows by its id is followed by what it led to."""
    items = body["input"]
    assert items
    asked = [item for item in items if item.get("type") in ("function_call", "custom_tool_call")]
    once((item["call_id"] for item in asked), re.compile(r"[\x21-\x7e]{1,64}"))
    check_names(item["name"] for item in asked)
    waiting: set[str] = set()
    for item, after in zip(items, [*items[1:], None], strict=True):
        kind = item.get("type", "message")
        if kind in ("function_call", "custom_tool_call"):
            waiting.add(item["call_id"])
            assert isinstance(item.get("arguments", item.get("input")), str)
            if kind == "function_call":
                json.dumps(json.loads(item["arguments"]), allow_nan=False)
        elif kind.endswith("call_output"):
            waiting.remove(item["call_id"])
        elif kind == "message":
            assert item["role"] in ("system", "user", "assistant")
            if not item.get("id"):  # one of the server's own may say nothing, and follow its thinking
                check_content(item["content"])
        elif kind == "reasoning" and item.get("id"):
            assert after is not None, "thinking without its following item"
            assert after.get("role") not in ("user", "system")
            assert not str(after.get("type")).endswith("_output")
    assert not waiting
    once((item["id"] for item in items if item.get("id")), ANY_ID)


def check_turns(turns: list[dict[str, Any]], field: str, model: str) -> None:
    """Turns alternate, begin with the user's, and none is empty."""
    assert turns
    assert turns[0]["role"] == "user"
    for before, turn in zip([{}, *turns], turns, strict=False):
        assert turn["role"] in ("user", model)
        assert turn["role"] != before.get("role")
        assert turn[field]


def check_messages(body: dict[str, Any]) -> None:
    """docs.anthropic.com/en/api/messages: results open the turn after their calls, thinking closes none."""
    turns = body["messages"]
    check_turns(turns, "content", "assistant")
    waiting: set[str] = set()
    asked: list[str] = []
    for turn in turns:
        blocks, user = turn["content"], turn["role"] == "user"
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert set(answered) == (waiting if user else set())
        assert len(answered) == len(set(answered))
        assert [block["type"] for block in blocks[: len(answered)]] == ["tool_result"] * len(answered)
        uses = [block for block in blocks if block["type"] == "tool_use"]
        waiting = {block["id"] for block in uses}
        asked += [block["id"] for block in uses]
        check_names(block["name"] for block in uses)
        assert not (user and uses)
        for block in blocks:
            if block["type"] == "text":
                assert block["text"].strip(), "blank text"
            elif block["type"] == "thinking":
                assert block["signature"]
            elif block["type"] == "tool_result" and block.get("is_error"):
                assert block["content"]
            elif block["type"] == "tool_use":
                assert isinstance(block["input"], dict)
        assert blocks[-1]["type"] not in ("thinking", "redacted_thinking"), "thinking closes a turn"
    assert not waiting
    once(asked, CLAUDE_ID)
    assert body.get("tools") or not asked, "calls without tools"
    check_names(tool["name"] for tool in body.get("tools", ()) if "input_schema" in tool)
    if turns[-1]["role"] == "assistant" and turns[-1]["content"][-1]["type"] == "text":
        assert not turns[-1]["content"][-1]["text"][-1].isspace()


def check_gemini(body: dict[str, Any], *, since_3: bool = True) -> None:
    """ai.google.dev/api: as many responses as calls, in the next turn; since Gemini 3 the first call is signed."""
    turns = body["contents"]
    check_turns(turns, "parts", "model")
    waiting: list[tuple[str, Any]] = []
    for turn in turns:
        calls, results = [], []
        for part in turn["parts"]:
            assert len(part.keys() & GEMINI_KINDS) <= 1, part
            if "text" in part:
                assert part["text"] or part.get("thoughtSignature"), part
            if call := part.get("functionCall"):
                check_names([call["name"]])
                assert isinstance(call["args"], dict)
                if since_3 and not calls:
                    assert part.get("thoughtSignature"), "an unsigned call"
                calls.append((call["name"], call.get("id")))
            if result := part.get("functionResponse"):
                assert isinstance(result["response"], dict)
                results.append((result["name"], result.get("id")))
                assert since_3 or "parts" not in result
        assert results == waiting
        assert not (calls and turn["role"] == "user")
        waiting = calls
    assert not waiting
    for tool in body.get("tools", ()):
        check_names(entry["name"] for entry in tool.get("functionDeclarations", ()))


def check_interactions(body: dict[str, Any]) -> None:
    steps = body["input"]
    assert steps
    waiting: list[str] = []
    asked: list[str] = []
    for step in steps:
        if step["type"] == "function_call":
            check_names([step["name"]])
            waiting.append(step["id"])
            asked.append(step["id"])
            assert isinstance(step["arguments"], dict)
        elif step["type"] == "function_result":
            waiting.remove(step["call_id"])
        elif step["type"] == "user_input":
            assert not waiting
            check_content(step["content"])
    assert not waiting
    once(asked, re.compile(r"[A-Za-z0-9_.:-]{1,128}"))


def check_converse(body: dict[str, Any]) -> None:
    """docs.aws.amazon.com/bedrock/latest/APIReference: as Anthropic's; calls need a toolConfig, results content."""
    turns = body["messages"]
    check_turns(turns, "content", "assistant")
    waiting: set[str] = set()
    asked: list[str] = []
    for turn in turns:
        blocks = [block for block in turn["content"] if "cachePoint" not in block]
        results = [block["toolResult"] for block in blocks if "toolResult" in block]
        answered = [result["toolUseId"] for result in results]
        assert set(answered) == (waiting if turn["role"] == "user" else set())
        assert len(answered) == len(set(answered))
        assert all(result["content"] for result in results)
        uses = [block["toolUse"] for block in blocks if "toolUse" in block]
        assert not (uses and turn["role"] == "user")
        waiting = {use["toolUseId"] for use in uses}
        asked += [use["toolUseId"] for use in uses]
        check_names(use["name"] for use in uses)
        for block in blocks:
            if "text" in block:
                assert block["text"].strip(), "blank text"
            if "reasoningText" in block.get("reasoningContent", {}):
                assert block["reasoningContent"]["reasoningText"]["signature"]
            if "toolUse" in block:
                assert isinstance(block["toolUse"]["input"], dict)
        assert "reasoningContent" not in blocks[-1], "thinking closes a turn"
        kinds = {kind for block in blocks for kind in block}
        assert "document" not in kinds or "text" in kinds
    assert not waiting
    once(asked, CONVERSE_ID)
    assert body.get("toolConfig", {}).get("tools") or not asked, "calls without tools"


CHECKERS: dict[str, Callable[[dict[str, Any]], None]] = {
    "openai": check_chat,
    "mistral": check_mistral,
    "deepseek": check_deepseek,
    "others": lambda body: check_chat(body, ANY_ID),
    "responses": check_responses,
    "responses, not stored": check_responses,
    "anthropic": check_messages,
    "gemini": check_gemini,
    "gemini before 3": lambda body: check_gemini(body, since_3=False),
    "interactions": check_interactions,
    "bedrock": check_converse,
    "cohere": check_cohere,
    "ollama": check_ollama,
}
