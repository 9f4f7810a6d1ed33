"""Recorded request bodies as neutral requests: the other direction of the codecs, for tests alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from toolcrib.call import ToolCall
from toolcrib.content import File, Image, Text
from toolcrib.messages import Message, MessagePart, Opaque, Reasoning, Request, ResultPart, ToolChoice
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec

REASONING = ("reasoning_content", "reasoning")


def without(data: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in names}


def extras(provider: str, rest: dict[str, Any]) -> dict[str, Any]:
    return {provider: rest} if rest else {}


def grow(messages: list[Message], *parts: MessagePart) -> None:
    """Add parts to the last message."""
    messages[-1] = replace(messages[-1], parts=[*messages[-1].parts, *parts])


def answering(messages: list[Message], call_of: Callable[[ToolCall], ToolCall]) -> list[Message]:
    """The messages, whose results answer other calls."""
    return [
        replace(
            message,
            parts=[
                replace(part, call=call_of(part.call)) if isinstance(part, ResultPart) else part
                for part in message.parts
            ],
        )
        for message in messages
    ]


def read_chat(body: dict[str, Any], provider: str) -> Request:
    messages: list[Message] = []
    calls: dict[str, ToolCall] = {}
    for wire in body["messages"]:
        if wire["role"] == "tool":
            own = without(wire, "role", "tool_call_id", "content")
            result = ToolResult((Text(plain(wire["content"])),), extras=extras(provider, own))
            if messages[-1].role != "tool":
                messages.append(Message("tool"))
            grow(messages, ResultPart(calls[wire["tool_call_id"]], result))
            continue
        parts: list[MessagePart] = []
        field = next((name for name in REASONING if wire.get(name)), "")
        details = wire.get("reasoning_details")
        if field or details:
            own = ({"field": field} if field else {}) | ({"reasoning_details": details} if details else {})
            parts.append(Reasoning(wire[field] if field else "", {provider: own}))
        parts += chat_content(wire.get("content"))
        for call in wire.get("tool_calls") or ():
            function = call["function"]
            own = without(call, "id", "type", "function")
            calls[call["id"]] = ToolCall(
                function["name"], function["arguments"], call["id"], extras(provider, own)
            )
            parts.append(calls[call["id"]])
        own = without(wire, "role", "content", "tool_calls", "reasoning_details", *REASONING)
        messages.append(Message(wire["role"], parts, extras(provider, own)))
    tools = [
        ToolSpec(
            tool["function"]["name"], tool["function"].get("description", ""), tool["function"]["parameters"]
        )
        for tool in body.get("tools") or ()
    ]
    choice = body.get("tool_choice", "auto")
    named = isinstance(choice, dict)
    rest = without(
        body,
        "model",
        "messages",
        "tools",
        "tool_choice",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "stream",
        "stream_options",
    )
    return Request(
        messages,
        tools,
        ToolChoice("required", (choice["function"]["name"],)) if named else ToolChoice(choice),
        max_tokens=body.get("max_tokens", body.get("max_completion_tokens")),
        temperature=body.get("temperature"),
        extras=extras(provider, rest),
    )


def plain(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content or ())


def chat_content(content: Any) -> list[MessagePart]:
    if isinstance(content, str) or content is None:
        return [Text(content)] if content else []
    parts: list[MessagePart] = []
    for block in content:
        if block["type"] == "text":
            parts.append(Text(block["text"], extras("x", {})))
        else:
            assert block["type"] == "image_url", block
            parts.append(image_of(block["image_url"]["url"]))
    return parts


def image_of(url: str) -> Image:
    if not url.startswith("data:"):
        return Image(url=url)
    kind, _, data = url.removeprefix("data:").partition(";base64,")
    return Image(data=data, media_type=kind)


def read_messages(body: dict[str, Any], provider: str) -> Request:
    messages = [
        Message("system", [anthropic_part(block, provider, {}) for block in blocks(body.get("system"))])
    ]
    calls: dict[str, ToolCall] = {}
    for wire in body["messages"]:
        parts = [anthropic_part(block, provider, calls) for block in blocks(wire["content"])]
        results = [part for part in parts if isinstance(part, ResultPart)]
        if results:
            messages.append(Message("tool", [*results]))
        if others := [part for part in parts if not isinstance(part, ResultPart)]:
            messages.append(Message(wire["role"], others))
    tools = body.get("tools") or []
    ours = all("input_schema" in tool for tool in tools)
    specs = [
        ToolSpec(tool["name"], tool.get("description", ""), tool["input_schema"]) for tool in tools if ours
    ]
    choice = body.get("tool_choice", {"type": "auto"})
    mode = {"any": "required", "tool": "required"}.get(choice["type"], choice["type"])
    parallel = choice.get("disable_parallel_tool_use")
    given = (
        "model",
        "messages",
        "system",
        "max_tokens",
        "temperature",
        "stream",
        *(("tools", "tool_choice") if ours else ()),
    )
    return Request(
        messages,
        specs,
        ToolChoice(mode, (choice["name"],) if "name" in choice else ()),
        parallel_calls=None if parallel is None else not parallel,
        max_tokens=body["max_tokens"],
        temperature=body.get("temperature"),
        extras=extras(provider, without(body, *given)),
    )


def blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def anthropic_part(block: dict[str, Any], provider: str, calls: dict[str, ToolCall]) -> Any:
    kind = block["type"]
    if kind == "text":
        return Text(block["text"], extras(provider, without(block, "type", "text")))
    if kind == "thinking":
        return Reasoning(block["thinking"], {provider: without(block, "thinking")})
    if kind == "tool_use":
        own = without(block, "type", "id", "name", "input")
        calls[block["id"]] = ToolCall(block["name"], block["input"], block["id"], extras(provider, own))
        return calls[block["id"]]
    if kind == "tool_result":
        own = without(block, "type", "tool_use_id", "content", "is_error")
        parts = tuple(anthropic_part(part, provider, calls) for part in blocks(block.get("content")))
        result = ToolResult(parts, is_error=bool(block.get("is_error")), extras=extras(provider, own))
        return ResultPart(calls[block["tool_use_id"]], result)
    source = block.get("source") or {}
    if kind in ("image", "document") and source.get("type") in ("base64", "url"):
        own = extras(provider, without(block, "type", "source", "title"))
        make = Image if kind == "image" else File
        return make(
            source.get("data", ""),
            source.get("url", ""),
            source.get("media_type", ""),
            block.get("title", ""),
            own,
        )
    return Opaque(provider, block)
