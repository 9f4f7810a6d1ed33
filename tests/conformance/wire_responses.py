"""Recorded request bodies of the Responses interface as neutral requests: the other direction, for tests alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.conformance.wire_reader import extras, grow, image_of, without
from toolcrib.call import ToolCall
from toolcrib.codecs.openai_responses_answer import CALLS, kept_by, parts_of
from toolcrib.content import File, Text
from toolcrib.messages import Message, MessagePart, Request, ResultPart, ToolChoice
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec

OURS = (
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "max_output_tokens",
    "temperature",
    "stream",
)
INPUTS = ("input_text", "input_image", "input_file")
OUTPUTS = ("function_call_output", "custom_tool_call_output")
ROLES = {"user": "user", "system": "system", "developer": "system"}


class NoPart(Exception):
    """A user's message holds a block that the neutral form has no part for."""


def read_responses(body: dict[str, Any], provider: str) -> Request:
    """The neutral request that a recorded body was, or could have been, made from."""
    messages = [Message.system(body["instructions"])] if body.get("instructions") else []
    given = body.get("input") or []
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    calls: dict[str, ToolCall] = {}
    for item in items:
        _read(item, provider, messages, calls)
    tools = body.get("tools") or []
    functions = [tool for tool in tools if tool["type"] == "function"]
    others = [tool for tool in tools if tool["type"] != "function"]
    rest = without(body, *OURS) | ({"tools": others} if others else {})
    choice = body.get("tool_choice") or "auto"
    if not functions or not _is_ours(choice):
        rest |= {"tool_choice": choice} if choice != "auto" else {}
        choice = "auto"
    return Request(
        messages,
        [_spec(tool, provider) for tool in functions],
        _choice(choice),
        max_tokens=body.get("max_output_tokens"),
        temperature=body.get("temperature"),
        extras=extras(provider, rest),
    )


def _read(item: dict[str, Any], provider: str, messages: list[Message], calls: dict[str, ToolCall]) -> None:
    kind, role = item.get("type", "message"), item.get("role", "")
    if kind == "message" and role != "assistant":
        own = without(item, "type", "role", "content") | ({"role": role} if role == "developer" else {})
        content = item["content"]
        parts: list[MessagePart] = (
            [Text(content)] if isinstance(content, str) else [_part(block, provider) for block in content]
        )
        messages.append(Message(ROLES[role], parts, extras(provider, own)))  # type: ignore[arg-type]
    elif kind in OUTPUTS:
        call = calls.get(item["call_id"]) or ToolCall("", "", item["call_id"])
        output = item["output"]
        blocks = [Text(output)] if isinstance(output, str) else [_part(block, provider) for block in output]
        if not messages or messages[-1].role != "tool":
            messages.append(Message("tool"))
        grow(messages, ResultPart(call, ToolResult(tuple(blocks))))
    else:
        if not messages or messages[-1].role != "assistant":
            messages.append(Message("assistant"))
        found = _said(item, provider) if kind == "message" else parts_of(item, provider, {})
        grow(messages, *found)
        if kind in CALLS:
            calls |= {call.id: call for call in found if isinstance(call, ToolCall)}


def _said(item: dict[str, Any], provider: str) -> list[MessagePart]:
    if isinstance(item["content"], list):
        return parts_of(item, provider, {})
    about = without(item, "type", "role", "content")
    return [Text(item["content"], extras(kept_by(provider), {"message": about} if about else {}))]


def _part(block: dict[str, Any], provider: str) -> Any:
    kind = block["type"]
    if kind == "input_text":
        return Text(block["text"], extras(provider, without(block, "type", "text")))
    if kind == "input_image":
        image = image_of(block.get("image_url") or "")
        return replace(image, extras=extras(provider, without(block, "type", "image_url")))
    data = block.get("file_data") or ""
    if kind not in INPUTS or (data and not data.startswith("data:")):
        raise NoPart(kind)
    media, _, content = data.removeprefix("data:").partition(";base64,")
    own = extras(provider, without(block, "type", "filename", "file_data", "file_url"))
    return File(content, block.get("file_url", ""), media if content else "", block.get("filename", ""), own)


def _spec(tool: dict[str, Any], provider: str) -> ToolSpec:
    own = without(tool, "type", "name", "description", "parameters")
    return ToolSpec(
        tool["name"],
        tool.get("description") or "",
        tool.get("parameters") or {"type": "object", "properties": {}},
        extras=extras(provider, {name: value for name, value in own.items() if value is not None}),
    )


def _is_ours(choice: Any) -> bool:
    """Whether a choice is between functions alone."""
    if not isinstance(choice, dict):
        return True
    kinds = (
        {ref["type"] for ref in choice["tools"]} if choice["type"] == "allowed_tools" else {choice["type"]}
    )
    return kinds == {"function"}


def _choice(choice: Any) -> ToolChoice:
    if isinstance(choice, str):
        return ToolChoice(choice)  # type: ignore[arg-type]
    if choice["type"] == "allowed_tools":
        return ToolChoice(choice["mode"], tuple(tool["name"] for tool in choice["tools"]))
    return ToolChoice("required", (choice["name"],))
