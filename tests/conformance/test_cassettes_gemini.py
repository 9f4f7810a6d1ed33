"""Every recorded exchange of Gemini's generateContent: answers, requests, and whole conversations."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tests.conformance.cassettes import (
    all_records,
    cassettes,
    check_answer,
    check_chunks,
    decode,
    event_feeds,
    records,
)
from tests.conformance.wire_gemini import camel, contents_of, parts_of, read_body, result_text
from tests.conformance.wire_reader import without
from toolcrib.codecs import ModelError
from toolcrib.codecs.gemini import UNSIGNED, GeminiCodec
from toolcrib.messages import Message, Request, Response, ResultPart
from toolcrib.models.replay import recorded_events
from toolcrib.result import ToolResult

API = "generateContent"
CODEC = GeminiCodec()
STOPS = {
    "STOP": {"end", "tool_calls"},
    "1": {"end", "tool_calls"},
    "MAX_TOKENS": {"length"},
    "2": {"length"},
    **{
        reason: {"filter"}
        for reason in (
            "SAFETY",
            "RECITATION",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "IMAGE_SAFETY",
            "MODEL_ARMOR",
        )
    },
    "MALFORMED_FUNCTION_CALL": {"tool_calls"},
    "UNEXPECTED_TOOL_CALL": {"tool_calls"},
}
REFUSED = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL")

# Where we differ from what was noted of a recording, or sent by its client, and why.
DIFFERENT = {
    "numbered reasons": "Vertex numbers its reasons to stop for old clients; we keep the number as text",
    "refused call": "a call that Gemini's own parser refused is a call with a problem, to be answered",
    "no answer": "a body without candidates is no answer: a ModelError",
    "result key": "clients call a result what they like; we say `output` and `error`, as documented",
    "parametersJsonSchema": "clients also send `parameters`; of either the names of the parameters are compared",
    "mode AUTO": "is the default, we leave it out; VALIDATED without names is asked for by extras alone",
    "role of systemInstruction": "means nothing, we leave it out",
    "empty texts": "say nothing, and are left out",
    "stand-in signature": "of calls whose client lost the signature",
    "turns": "of one role in a row are one turn; what follows a call's results is the user's same turn",
}


def noted(record: dict[str, Any]) -> dict[str, Any]:
    reason = record["finish_reason"]
    return {**record, "finish_reason": str(reason)} if isinstance(reason, int) else record


def check(record: dict[str, Any], response: Response) -> None:
    record = noted(record)
    calls = None
    if record["finish_reason"] in REFUSED:
        assert response.message.calls
        assert all(call.problem for call in response.message.calls)
        calls = [{"name": c.name, "id": c.id, "arguments": c.arguments} for c in response.message.calls]
    check_answer(record, response, calls=calls, stops=STOPS)


def check_usage(response: Response, usage: dict[str, Any]) -> None:
    ours = response.usage
    assert ours.total_tokens == usage.get("totalTokenCount", ours.total_tokens)
    assert ours.reasoning_tokens == usage.get("thoughtsTokenCount", 0)
    assert ours.cache_read_tokens == usage.get("cachedContentTokenCount", 0)
    prompt = usage.get("promptTokenCount", 0) + usage.get("toolUsePromptTokenCount", 0)
    assert ours.input_tokens == prompt


def is_answer(body: Any) -> bool:
    return isinstance(body, dict) and bool(body.get("candidates") or body.get("promptFeedback"))


@pytest.mark.parametrize("record", records(API, streamed=False))
def test_whole_answers(record: dict[str, Any]) -> None:
    body = record["response"].get("body", record["response"].get("body_text"))
    if not is_answer(body):
        if record.get("error"):
            said = CODEC.error(body, record["response"]["status"])
            assert said.message == record["error"]["message"]
        with pytest.raises(ModelError):
            CODEC.response(body if isinstance(body, dict) else {})
        return
    response = CODEC.response(body)
    check(record, response)
    check_usage(response, body.get("usageMetadata") or {})


@pytest.mark.parametrize("record", records(API, streamed=True))
def test_streamed_answers(record: dict[str, Any]) -> None:
    events = list(recorded_events(record["response"]))
    if record.get("error"):
        with pytest.raises(ModelError) as caught:
            decode(CODEC, iter(events))
        assert caught.value.message == record["error"]["message"]
        return
    feeds = event_feeds(record)
    chunks, response = decode(CODEC, feeds["events"]())
    check(record, response)
    check_chunks(chunks, response)
    usage: dict[str, Any] = {}
    for event in events:
        usage |= event.get("usageMetadata") or {}
    check_usage(response, usage)
    for name, feed in feeds.items():
        assert decode(CODEC, feed()) == (chunks, response), name


def body_of(record: dict[str, Any]) -> dict[str, Any] | None:
    body = record["request"] and record["request"]["body"]
    return camel(body) if isinstance(body, dict) and "contents" in body else None


ASKED = [record for record in all_records(API) if body_of(record) is not None and not record.get("error")]


def canonical(body: dict[str, Any]) -> dict[str, Any]:
    """A body without the differences that mean nothing."""
    rest = without(body, "contents", "systemInstruction", "tools", "toolConfig", "model")
    rest["system"] = [part["text"] for part in parts_of(body.get("systemInstruction")) if part["text"]]
    calling = dict((body.get("toolConfig") or {}).get("functionCallingConfig") or {})
    if calling.get("mode") in ("AUTO", "VALIDATED") and not calling.get("allowedFunctionNames"):
        del calling["mode"]
    rest["calling"] = calling
    rest["tools"] = [tool for tool in map(canonical_tool, body.get("tools") or ()) if tool]
    rest["contents"] = turns(body)
    return {name: value for name, value in rest.items() if value not in ({}, [], None)}


def canonical_tool(tool: dict[str, Any]) -> Any:
    declared = [
        (
            item["name"],
            item.get("description", ""),
            sorted(
                (item.get("parameters") or item.get("parametersJsonSchema") or {}).get("properties") or ()
            ),
        )
        for item in tool.get("functionDeclarations") or ()
    ]
    return declared or without(tool, "functionDeclarations")


def turns(body: dict[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    found: list[tuple[str, list[dict[str, Any]]]] = []
    for content in contents_of(body):
        role = "model" if content.get("role") == "model" else "user"
        parts = [canonical_part(part) for part in parts_of(content) if part.get("text", "-") or len(part) > 1]
        if found and found[-1][0] == role:
            found[-1][1].extend(parts)
        elif parts:
            found.append((role, parts))
    return found


def canonical_part(part: dict[str, Any]) -> dict[str, Any]:
    if part.get("thoughtSignature") == UNSIGNED:
        part = without(part, "thoughtSignature")
    if call := part.get("functionCall"):
        return {**part, "functionCall": {**call, "args": call.get("args") or {}}}
    if said := part.get("functionResponse"):
        response = said.get("response") or {}
        wrong = list(response) == ["error"]
        return {"result": {**said, "response": (wrong, result_text(response))}}
    if file := part.get("fileData") or part.get("inlineData"):
        return {**part, ("fileData" if "fileData" in part else "inlineData"): without(file, "displayName")}
    return part


@pytest.mark.parametrize("record", [pytest.param(record, id=record["id"]) for record in ASKED])
def test_requests(record: dict[str, Any]) -> None:
    body = body_of(record)
    assert body is not None
    request = read_body(body)
    ours = CODEC.request(request, model=record["model"] or "", stream=record["streaming"])
    assert canonical(ours) == canonical(body)
    assert json.loads(json.dumps(ours)) == ours


def decoded(record: dict[str, Any]) -> Message:
    response = record["response"]
    if isinstance(response.get("body"), dict):
        return CODEC.response(response["body"]).message
    return decode(CODEC, recorded_events(response))[1].message


def model_turn(answer: Message) -> list[dict[str, Any]]:
    """An answer as it stands in the next request."""
    results = [ResultPart(call, ToolResult.of("ok")) for call in answer.calls]
    request = Request([Message.user("Hi"), answer, Message("tool", [*results])])
    sent = CODEC.request(request, model="gemini-2.5-flash", stream=False)["contents"]
    return next((turn["parts"] for turn in sent if turn["role"] == "model"), [])


ANSWERS = [
    record
    for record in all_records(API)
    if not record.get("error")
    and (record["response"]["framing"] != "json" or is_answer(record["response"]["body"]))
]


@pytest.mark.parametrize("record", [pytest.param(record, id=record["id"]) for record in ANSWERS])
def test_every_part_goes_back_as_it_came(record: dict[str, Any]) -> None:
    """Signatures on exactly their parts, thinking, pictures, and what only Gemini understands."""
    if record["finish_reason"] in REFUSED:
        pytest.skip("the call was refused by Gemini itself")
    body = record["response"].get("body")
    events = [body] if isinstance(body, dict) else list(recorded_events(record["response"]))
    came = [
        part
        for event in events
        for candidate in event.get("candidates") or ()
        if not candidate.get("index")
        for part in parts_of(candidate.get("content"))
    ]
    assert signed(model_turn(decoded(record))) == signed(came)


def signed(parts: list[dict[str, Any]]) -> list[Any]:
    """Signatures and what they stand on; texts without one are joined, arguments in pieces left out."""
    found: list[Any] = []
    for part in parts:
        if "functionCall" in part:
            call = part["functionCall"]
            if call.get("name"):
                found.append(("call", call["name"], call.get("id"), part.get("thoughtSignature")))
        elif isinstance(part.get("text"), str):
            kind = ("text", part.get("thought", False), part.get("thoughtSignature"))
            if found and found[-1][:3] == kind and not kind[2]:
                found[-1] = (*kind, found[-1][3] + part["text"])
            elif part["text"] or kind[2]:
                found.append((*kind, part["text"]))
        elif part:
            found.append(part)
    return found


STEPS = [pair for group in cassettes(API) for pair in itertools.pairwise(group)]


@pytest.mark.parametrize(("before", "after"), [pytest.param(*step, id=step[1]["id"]) for step in STEPS])
def test_the_next_request_is_written_from_the_answer(before: dict[str, Any], after: dict[str, Any]) -> None:
    """The answer that we decoded, sent back with its results, is what the recording client sent back."""
    body = body_of(after)
    if body is None or not is_answer_to(before, body):
        pytest.skip("the recording did not go on from that answer")
    answer, request = decoded(before), read_body(body)
    at = max(i for i, message in enumerate(request.messages) if message.role == "assistant")
    theirs = request.messages[at].calls
    assert [call.name for call in theirs] == [call.name for call in answer.calls]
    ours = {id(call): mine for call, mine in zip(theirs, answer.calls, strict=True)}
    for message in request.messages[at:]:
        for part in message.parts:
            if isinstance(part, ResultPart):
                part.call = ours.get(id(part.call), part.call)
    request.messages[at] = answer
    written = turns(CODEC.request(request, model=after["model"] or "", stream=after["streaming"]))
    for mine, recorded in zip(written, turns(body), strict=True):
        assert essence(mine, recorded) == essence(recorded, recorded)


def is_answer_to(before: dict[str, Any], body: dict[str, Any]) -> bool:
    last = [parts for role, parts in turns(body) if role == "model"][-1:]
    asked = [part["functionCall"]["name"] for parts in last for part in parts if "functionCall" in part]
    return bool(asked) and asked == [call["name"] for call in before["expected_tool_calls"]]


def essence(turn: tuple[str, list[dict[str, Any]]], recorded: tuple[str, list[dict[str, Any]]]) -> Any:
    """A turn without what the recording client lost (text, thinking, signatures) or made up (ids)."""
    role, parts = turn
    signatures = any("thoughtSignature" in part for part in recorded[1])
    words = any("text" in part for part in recorded[1])
    kept = []
    for part in parts:
        if "text" in part and role == "model" and not words:
            continue
        part = part if signatures or role != "model" else without(part, "thoughtSignature")
        kept.append(
            {name: without(value, "id") if name in CARRY_IDS else value for name, value in part.items()}
        )
    return role, kept


CARRY_IDS = ("functionCall", "result")
