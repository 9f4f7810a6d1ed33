"""Recorded Converse requests as neutral requests: the other direction of the codec, for tests alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from toolcrib.call import ToolCall
from toolcrib.codecs.bedrock_media import FORMATS
from toolcrib.content import Audio, File, Image, Json, Media, Text
from toolcrib.messages import Message, MessagePart, Opaque, Reasoning, Request, ResultPart, ToolChoice
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec

MEDIA: dict[str, type[Media]] = {"image": Image, "document": File, "video": File, "audio": Audio}
MEDIA_TYPES = {found: media_type for media_type, found in reversed(FORMATS.items())}
PROVIDER = "bedrock"


def without(data: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in names}


def own(rest: dict[str, Any]) -> dict[str, Any]:
    return {PROVIDER: rest} if rest else {}


def read_converse(body: dict[str, Any]) -> Request:
    calls: dict[str, ToolCall] = {}
    messages = [Message("system", [part(block, calls) for block in body.get("system") or ()])]
    for wire in body["messages"]:
        parts = [part(block, calls) for block in wire["content"]]
        results = [item for item in parts if isinstance(item, ResultPart)]
        if results:
            messages.append(Message("tool", [*results]))
        if others := [item for item in parts if not isinstance(item, ResultPart)]:
            messages.append(Message(wire["role"], others))
    config = body.get("toolConfig") or {}
    declared = config.get("tools") or []
    ours, others_tools = declared_tools(declared)
    inference = body.get("inferenceConfig") or {}
    rest = without(body, "messages", "system", "toolConfig", "inferenceConfig")
    if more := without(inference, "maxTokens", "temperature", "stopSequences"):
        rest["inferenceConfig"] = more
    if others_tools:
        rest["toolConfig"] = {"tools": others_tools}
    return Request(
        messages,
        ours,
        choice_of(config.get("toolChoice") or {}),
        max_tokens=inference.get("maxTokens"),
        temperature=inference.get("temperature"),
        stop=tuple(inference.get("stopSequences") or ()),
        extras=own(rest),
    )


def declared_tools(declared: list[dict[str, Any]]) -> tuple[list[ToolSpec], list[dict[str, Any]]]:
    """Our kind of tools, a cache mark with the tool before it, and the provider's own kinds."""
    ours: list[ToolSpec] = []
    others: list[dict[str, Any]] = []
    for tool in declared:
        if wire := tool.get("toolSpec"):
            rest = own(without(wire, "name", "description", "inputSchema"))
            schema = wire["inputSchema"]["json"]
            ours.append(ToolSpec(wire["name"], wire.get("description", ""), schema, extras=rest))
        elif "cachePoint" in tool and ours and not others:
            extras = {**ours[-1].extras.get(PROVIDER, {}), **tool}
            ours[-1] = replace(ours[-1], extras={PROVIDER: extras})
        else:
            others.append(tool)
    return ours, others


def choice_of(choice: dict[str, Any]) -> ToolChoice:
    if "tool" in choice:
        return ToolChoice("required", (choice["tool"]["name"],))
    return ToolChoice("required" if "any" in choice else "auto")


def part(block: dict[str, Any], calls: dict[str, ToolCall]) -> Any:
    if "text" in block:
        return Text(block["text"])
    if cited := block.get("citationsContent"):
        text = "".join(piece["text"] for piece in cited["content"])
        return Text(text, own({"citationsContent": cited}))
    if thought := block.get("reasoningContent"):
        if said := thought.get("reasoningText"):
            return Reasoning(said["text"], own({"reasoningText": without(said, "text")}))
        return Reasoning("", own(thought))
    if (use := block.get("toolUse")) and use.get("type") != "server_tool_use":
        calls[use["toolUseId"]] = ToolCall(use["name"], use["input"], use["toolUseId"])
        return calls[use["toolUseId"]]
    if (result := block.get("toolResult")) and result["toolUseId"] in calls:
        rest = own(without(result, "toolUseId", "content", "status"))
        parts = tuple(result_part(item) for item in result["content"])
        given = ToolResult(parts, is_error=result.get("status") == "error", extras=rest)
        return ResultPart(calls[result["toolUseId"]], given)
    return media(block) or Opaque(PROVIDER, block)


def result_part(block: dict[str, Any]) -> Any:
    found: MessagePart | None = Json(block["json"]) if "json" in block else media(block)
    return found or (Text(block["text"]) if "text" in block else Opaque(PROVIDER, block))


def media(block: dict[str, Any]) -> Media | None:
    """A picture or a document by its bytes or its place; None for what has no neutral part."""
    kind = next(iter(block))
    inner = block[kind] if isinstance(block[kind], dict) else {}
    source = inner.get("source") or {}
    if kind not in MEDIA or not (source.get("bytes") or source.get("s3Location")):
        return None
    return MEDIA[kind](
        source.get("bytes", ""),
        (source.get("s3Location") or {}).get("uri", ""),
        MEDIA_TYPES[kind, inner["format"]],
        inner.get("name", ""),
        own(without(inner, "format", "name", "source")),
    )
