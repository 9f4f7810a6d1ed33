"""Recorded generateContent request bodies as neutral requests: the other direction of the codec, for tests alone."""

from __future__ import annotations

import json
from typing import Any, Literal

from tests.conformance.wire_reader import extras, without
from toolcrib.call import ToolCall
from toolcrib.codecs.gemini_parts import read_media
from toolcrib.content import Text
from toolcrib.messages import Message, MessagePart, Opaque, Reasoning, Request, ResultPart, ToolChoice
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec

MODES: dict[Any, Literal["auto", "none", "required"]] = {
    "AUTO": "auto",
    "NONE": "none",
    "ANY": "required",
    "VALIDATED": "auto",
    1: "auto",
    2: "required",
    3: "none",
}
CONFIG = ("maxOutputTokens", "temperature", "stopSequences", "responseLogprobs", "logprobs")


def camel(value: Any) -> Any:
    """The API takes its fields in snake case too; arguments, results and schemas are the user's own."""
    if isinstance(value, list):
        return [camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    renamed: dict[str, Any] = {}
    for name, item in value.items():
        head, *rest = name.split("_")
        key = head + "".join(word.capitalize() for word in rest)
        own = key in (
            "args",
            "response",
            "parameters",
            "parametersJsonSchema",
            "responseSchema",
            "responseJsonSchema",
        )
        renamed[key] = item if own else camel(item)
    return renamed


def parts_of(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"text": content}]
    parts = (content or {}).get("parts") or []
    return [parts] if isinstance(parts, dict) else [{"text": p} if isinstance(p, str) else p for p in parts]


def contents_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    contents = body["contents"]
    given = contents if isinstance(contents, list) else [contents]
    return [item if isinstance(item, dict) else {"role": "user", "parts": [{"text": item}]} for item in given]


def read_body(body: dict[str, Any], provider: str = "gemini") -> Request:
    """What a body asks for; the calls that results belong to are found by id, else by name and order."""
    messages: list[Message] = []
    if system := parts_of(body.get("systemInstruction")):
        messages.append(Message("system", [read_part(part, provider, []) for part in system]))
    waiting: list[ToolCall] = []
    for content in contents_of(body):
        role = content.get("role", "user")
        parts = [read_part(part, provider, waiting) for part in parts_of(content)]
        waiting = [part for part in parts if isinstance(part, ToolCall)] or waiting
        results = [part for part in parts if isinstance(part, ResultPart)]
        others: list[MessagePart] = [part for part in parts if not isinstance(part, ResultPart)]
        messages += [Message("tool", [*results])] if results else []
        messages += [Message("assistant" if role == "model" else "user", others)] if others else []
    tools = body.get("tools") or []
    declared = [item for tool in tools for item in tool.get("functionDeclarations") or ()]
    config = body.get("generationConfig") or {}
    tool_config = body.get("toolConfig") or {}
    calling = tool_config.get("functionCallingConfig") or {}
    rest = without(body, "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "model")
    if own := without(config, *CONFIG):
        rest["generationConfig"] = own
    if of_the_server := [own for tool in tools if (own := without(tool, "functionDeclarations"))]:
        rest["tools"] = of_the_server
    own_calling = without(calling, "mode", "allowedFunctionNames")
    if own := without(tool_config, "functionCallingConfig") | extras("functionCallingConfig", own_calling):
        rest["toolConfig"] = own
    return Request(
        messages,
        [read_tool(item, provider) for item in declared],
        ToolChoice(MODES.get(calling.get("mode"), "auto"), tuple(calling.get("allowedFunctionNames") or ())),
        max_tokens=config.get("maxOutputTokens"),
        temperature=config.get("temperature"),
        stop=tuple(config.get("stopSequences") or ()),
        logprobs=bool(config.get("responseLogprobs")),
        top_logprobs=config.get("logprobs"),
        extras=extras(provider, rest),
    )


def read_tool(item: dict[str, Any], provider: str) -> ToolSpec:
    schema = item.get("parametersJsonSchema") or item.get("parameters") or {}
    own = without(item, "name", "description", "parameters", "parametersJsonSchema")
    return ToolSpec(
        item["name"], item.get("description", ""), neutral_schema(schema), extras=extras(provider, own)
    )


def neutral_schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {} for name in schema.get("properties") or {}}}


def read_part(part: dict[str, Any], provider: str, waiting: list[ToolCall]) -> MessagePart:
    if call := part.get("functionCall"):
        own = extras(provider, without(part, "functionCall"))
        return ToolCall(call["name"], call.get("args") or {}, call.get("id") or "", own)
    if said := part.get("functionResponse"):
        return read_result(said, waiting)
    own = without(part, "text")
    if part.get("thought"):
        return Reasoning(part.get("text", ""), extras(provider, own))
    if "text" in part:
        return Text(part["text"], extras(provider, own))
    return read_media(part, provider) or Opaque(provider, part)


def read_result(said: dict[str, Any], waiting: list[ToolCall]) -> ResultPart:
    named = [call for call in waiting if call.name == said["name"]]
    call = next((call for call in named if said.get("id") and call.id == said["id"]), None) or next(
        iter(named), None
    )
    call = call or next(iter(waiting), None)  # some clients name a result after its call's id
    if call is None:
        return ResultPart(ToolCall(said["name"], {}, said.get("id") or ""), result_of(said))
    waiting[:] = [other for other in waiting if other is not call]
    return ResultPart(call, result_of(said))


def result_of(said: dict[str, Any]) -> ToolResult:
    response = said.get("response") or {}
    media = tuple(read_media(part, "") for part in said.get("parts") or ())
    parts = (Text(result_text(response)), *(part for part in media if part))
    return ToolResult(parts, is_error=list(response) == ["error"])


def result_text(response: Any) -> str:
    """What a result says, whatever key its client put it under."""
    value = next(iter(response.values())) if isinstance(response, dict) and len(response) == 1 else response
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
