"""Every recorded exchange of Gemini's generateContent: answers, requests, and whole conversations."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.cassettes import (
    all_records,
    cassettes,
    check_answer,
    check_chunks,
    decode,
    event_feeds,
    records,
)
from tests.conformance.wire_gemini import MODES, camel, contents_of, parts_of, read_body, result_text
from tests.conformance.wire_reader import answering, without
from toolcrib.codecs import ModelError
from toolcrib.codecs.gemini import UNSIGNED, GeminiCodec
from toolcrib.codecs.pairing import EMPTY_TURN
from toolcrib.mending import NO_RESULT
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
UNANSWERED: dict[str, Any] = {"id": None, "unanswered": True}
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
    "turns": "of one role in a row are one turn, opened by its results in the order of the calls",
    "names of results": "are those of their calls; some clients put an id there",
    "ids used twice": "are told apart by us",
    "unanswered calls": "are answered by us, and a conversation that the model opens is opened by us",
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
    """Thinking is counted beside the candidates, what tools of the server brought beside the prompt."""
    ours, counted = response.usage, {name: value or 0 for name, value in usage.items()}
    assert ours.input_tokens == counted.get("promptTokenCount", 0) + counted.get("toolUsePromptTokenCount", 0)
    assert ours.reasoning_tokens == counted.get("thoughtsTokenCount", 0)
    assert ours.output_tokens == counted.get("candidatesTokenCount", 0) + ours.reasoning_tokens
    assert ours.cache_read_tokens == counted.get("cachedContentTokenCount", 0)


def is_answer(body: Any) -> bool:
    return isinstance(body, dict) and bool(body.get("candidates") or body.get("promptFeedback"))


def check_error(record: dict[str, Any], error: ModelError) -> None:
    noted = record.get("error")
    if isinstance(noted, dict) and noted.get("message"):
        assert error.message == noted["message"]


@each("record", lambda: records(API, streamed=False))
def test_whole_answers(record: dict[str, Any]) -> None:
    body = record["response"].get("body", record["response"].get("body_text"))
    if not is_answer(body):
        check_error(record, CODEC.error(body, record["response"]["status"]))
        with pytest.raises(ModelError):
            CODEC.response(body if isinstance(body, dict) else {})
        return
    response = CODEC.response(body)
    check(record, response)
    check_usage(response, body.get("usageMetadata") or {})


@each("record", lambda: records(API, streamed=True))
def test_streamed_answers(record: dict[str, Any]) -> None:
    events = list(recorded_events(record["response"]))
    if record.get("error"):
        with pytest.raises(ModelError) as caught:
            decode(CODEC, iter(events))
        check_error(record, caught.value)
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
    rest = without(body, "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "model")
    config = body.get("generationConfig") or {}
    rest["config"] = {name: value for name, value in config.items() if value not in (None, [], False)}
    rest["system"] = [part["text"] for part in parts_of(body.get("systemInstruction")) if part.get("text")]
    tools = body.get("tools") or ()
    rest["functions"] = [declared(item) for tool in tools for item in tool.get("functionDeclarations") or ()]
    rest["tools"] = [own for tool in tools if (own := without(tool, "functionDeclarations"))]
    tool_config = dict(body.get("toolConfig") or {})
    calling = dict(tool_config.pop("functionCallingConfig", None) or {})
    mode = MODES.get(calling.pop("mode", None), "auto")
    rest["calling"] = (mode, calling, tool_config) if rest["functions"] or tool_config else None
    rest["contents"] = turns(body)
    return {name: value for name, value in rest.items() if value not in ({}, [], None)}


def declared(item: dict[str, Any]) -> tuple[str, str, list[str]]:
    schema = item.get("parametersJsonSchema") or item.get("parameters") or {}
    return item["name"], item.get("description") or "", sorted(schema.get("properties") or ())


def turns(body: dict[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """What each side said in turn; the results of a turn first, in the order of their names."""
    contents = contents_of(body)
    asked = [
        part["functionCall"] for content in contents for part in parts_of(content) if "functionCall" in part
    ]
    ids = [call["id"] for call in asked if call.get("id")]
    found: list[tuple[str, list[dict[str, Any]]]] = []
    for content in contents:
        role = "model" if content.get("role") == "model" else "user"
        parts = [canonical_part(part, bare=len(ids) > len(set(ids))) for part in parts_of(content)]
        parts = [part for part in parts if part != {"text": ""} and part.get("result") != UNANSWERED]
        if found and found[-1][0] == role:
            found[-1][1].extend(parts)
        elif parts:
            found.append((role, parts))
    if found and found[0] == ("user", [{"text": EMPTY_TURN}]):
        del found[0]
    for _, parts in found:
        parts.sort(key=lambda part: part["result"]["id"] or "" if "result" in part else "\U0010ffff")
    return found


def canonical_part(part: dict[str, Any], *, bare: bool) -> dict[str, Any]:
    """A part whose ids are left out where one is used for several calls (`bare`)."""
    if part.get("thoughtSignature") == UNSIGNED:
        part = without(part, "thoughtSignature")
    if part.keys() <= {"thought", "thoughtSignature"}:
        part = {"text": "", **part}
    if call := part.get("functionCall"):
        id = None if bare else call.get("id")
        return {**part, "functionCall": {"name": call["name"], "args": call.get("args") or {}, "id": id}}
    if said := part.get("functionResponse"):
        response = said.get("response") or {}
        if response.get("error") == NO_RESULT:
            return {"result": UNANSWERED}
        media = [canonical_part(item, bare=bare) for item in said.get("parts") or ()]
        rest = without(said, "id", "name", "response", "parts")
        wrong, id = list(response) == ["error"], None if bare else said.get("id")
        return {
            "result": {**rest, "id": id, "is_error": wrong, "text": result_text(response), "media": media}
        }
    for name in ("fileData", "inlineData"):
        if name in part:
            part = {**part, name: without(part[name], "displayName")}
    return part


@each("record", lambda: [pytest.param(record, id=record["id"]) for record in ASKED])
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


@each("record", lambda: [pytest.param(record, id=record["id"]) for record in ANSWERS])
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
    for item in parts:
        bare = item.keys() <= {"thought", "thoughtSignature"}
        part: dict[str, Any] = {"text": "", **item} if bare else item
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


@each(("before", "after"), [pytest.param(*step, id=step[1]["id"]) for step in STEPS])
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
    request.messages[at:] = answering(request.messages[at:], lambda call: ours.get(id(call), call))
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
    if role == "user":
        return role, [
            {**part, "result": without(part["result"], "id")} if "result" in part else part for part in parts
        ]
    kept = {kind(part) for part in recorded[1]} - {"thought"}
    signed = any("thoughtSignature" in part for part in recorded[1] if "functionCall" in part)
    calls = [
        (without(part["functionCall"], "id"), signature(part) if signed else "")
        for part in parts
        if "functionCall" in part
    ]
    text = "".join(part["text"] for part in parts if kind(part) == "text") if "text" in kept else ""
    others = [
        without(part, "thoughtSignature") for part in parts if kind(part) in kept - {"text", "functionCall"}
    ]
    return role, calls, text.strip(), others


def kind(part: dict[str, Any]) -> str:
    return "thought" if part.get("thought") else next(name for name in part if name != "thoughtSignature")


def signature(part: dict[str, Any]) -> str:
    """Google's own client sends the bytes back in the other alphabet of base64."""
    return part.get("thoughtSignature", "").replace("-", "+").replace("_", "/").rstrip("=")
