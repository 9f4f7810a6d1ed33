"""Every recorded exchange of the Responses interface: its answer, its request, and the way from one to the next."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
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
    thought_of,
)
from tests.conformance.test_cassettes_transports import REQUEST, Handler, Server
from tests.conformance.wire_reader import answering, without
from tests.conformance.wire_responses import NoPart, read_responses
from toolcrib.call import ToolCall
from toolcrib.codecs import Codec, ModelError
from toolcrib.codecs.openai_responses import OpenAIResponsesCodec
from toolcrib.codecs.openai_responses_answer import kept_by
from toolcrib.messages import Message, Request, Response, ResultPart
from toolcrib.models.openai_responses import OpenAIResponses
from toolcrib.models.replay import recorded_events
from toolcrib.result import ToolResult

PER_GROUP = 6  # one socket and client each: enough to meet every provider, not every recording
STOPS = {
    "completed": {"end", "tool_calls", "refusal"},
    "max_output_tokens": {"length"},
    "content_filter": {"filter"},
}
ENDS = ("response.completed", "response.incomplete", "response.failed")

OURS = ("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output")
NOT_YET = ("failed", "cancelled", "queued", "in_progress")
DEFAULTS = (("stream", False), ("tool_choice", "auto"))

# Where we differ from what was noted of a recording or from what a recording client sent, and why.
DIFFERENT = {
    "no answer": "a body without output is not an answer of this interface: a ModelError",
    "broken off": "a stream without its last event was cut: a ModelError that holds what came",
    "not yet": "an answer that is still being made, in the background, is none: a ModelError",
    "thinking from done": "items are taken from the event that ends each, as the API asks, not from the last event",
    "system": "texts that open a conversation go into `instructions`, however the client sent them",
    "text as block": "one text may be sent as a string or as a list of one block; we choose one of them",
    "nothing said": "an assistant's message without text says nothing, so it is left out",
    "include": "where nothing is stored we ask for thinking in a form that can be sent back",
    "ids": "where nothing is stored ids of messages and calls, and bare thinking, mean nothing: they stay away",
    "strict false": "is always said",
    "order of tools": "functions come first, then the provider's own",
    "broken arguments": "several servers fail on them, so they are wrapped",
    "nulls, stream false, tool_choice auto": "are the defaults, we leave them out",
    "lost by the client": "some clients sent calls back without ids, phase, text, marks or thinking before them",
    "incomplete": "the reason why an answer is incomplete says more than that it is",
}


def codec_of(record: dict[str, Any]) -> Codec:
    provider = record["provider"]
    return OpenAIResponsesCodec("openai" if provider == "azure_openai" else provider)


def noted(record: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """What was noted, with the reason in the place of the word "incomplete"."""
    reason = (body.get("incomplete_details") or {}).get("reason")
    return {**record, "finish_reason": reason} if reason else record


def patches(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls of OpenAI's own patch tool, which was not noted as a tool: each is a patch of one file to us."""
    headers = {"create_file": "Add", "update_file": "Update", "delete_file": "Delete"}
    calls = []
    for item in body.get("output") or []:
        if item["type"] == "apply_patch_call":
            did = item["operation"]
            changed = [did["diff"].removesuffix("\n")] if did["type"] != "delete_file" else []
            lines = [
                "*** Begin Patch",
                f"*** {headers[did['type']]} File: {did['path']}",
                *changed,
                "*** End Patch",
            ]
            calls.append({"name": "apply_patch", "id": item["call_id"], "input": "\n".join(lines)})
    return calls


def check(record: dict[str, Any], response: Response, body: dict[str, Any]) -> None:
    check_answer(noted(record, body), response, stops=STOPS, calls=patches(body) or None)
    usage = body.get("usage") or {}
    ours = response.usage
    assert ours.input_tokens == usage.get("input_tokens", 0)
    assert ours.output_tokens == usage.get("output_tokens", 0)
    assert ours.total_tokens == usage.get("total_tokens", ours.total_tokens)
    read, written = usage.get("input_tokens_details") or {}, usage.get("output_tokens_details") or {}
    assert ours.cache_read_tokens == (read.get("cached_tokens") or 0)
    assert ours.reasoning_tokens == (written.get("reasoning_tokens") or 0)


def said(response: Response) -> Any:
    """What does not change from event to event, as ids and encrypted thinking do."""
    calls = [(call.name, call.arguments) for call in response.message.calls]
    return calls, response.message.text, thought_of(response), response.stop_reason, response.usage


@each("record", lambda: records("responses", streamed=False))
def test_whole_answers(record: dict[str, Any]) -> None:
    codec, body = codec_of(record), record["response"]["body"]
    failed = (
        body.get("error") or body.get("status") == "failed" or (record["response"]["status"] or 200) >= 400
    )
    if failed or "output" not in body:
        with pytest.raises(ModelError):
            codec.response(body)
        if record.get("error"):
            assert codec.error(body).message == record["error"]["message"]
        return
    check(record, codec.response(body), body)


@each("record", lambda: records("responses", streamed=True))
def test_streamed_answers(record: dict[str, Any]) -> None:
    codec, events = codec_of(record), list(recorded_events(record["response"]))
    if any(event.get("type") in ("error", "response.failed") for event in events):
        decoder = codec.decoder()
        with pytest.raises(ModelError) as raised:
            [decoder.feed(event) for event in events]
        assert raised.value.message == (record.get("error") or {}).get("message", raised.value.message)
        assert raised.value.partial is not None
        return
    last = next((event["response"] for event in events if event.get("type") in ENDS), {})
    answers = [decode(codec, feed()) for feed in event_feeds(record).values()]
    chunks, response = answers[0]
    check(record, response, last)
    check_chunks(chunks, response)
    for again in answers[1:]:
        assert again == answers[0]
    if last.get("output"):
        assert said(response) == said(codec.response(last))


def exchanges(recordings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        record
        for record in recordings
        if record["request"]
        and isinstance(record["request"]["body"], dict)
        and "input" in record["request"]["body"]
        and not record.get("error")
    ]


def read(record: dict[str, Any]) -> Request:
    return read_responses(record["request"]["body"], codec_of(record).provider)


def written(record: dict[str, Any], request: Request) -> dict[str, Any]:
    body = record["request"]["body"]
    return codec_of(record).request(request, model=body["model"], stream=bool(body.get("stream")))


def canonical(body: dict[str, Any]) -> dict[str, Any]:
    """A body without the differences that mean nothing."""
    given = body.get("input") or []
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    items = [item for item in map(plain_item, items) if "role" not in item or item["content"]]
    if stateless(body):
        items = [unlinked(item) for item in items if item.get("type") != "reasoning" or has_thoughts(item)]
    opening = [body["instructions"]] if body.get("instructions") else []
    while items and items[0].get("role") == "system" and isinstance(items[0]["content"], str):
        opening.append(items.pop(0)["content"])
    rest = without(body, "input", "instructions", "tools", "include")
    # The defaults, and what we ask for so that thinking can be sent back.
    asked = set(body.get("include") or ()) - ({"reasoning.encrypted_content"} if stateless(body) else set())
    return {
        **{
            name: value for name, value in rest.items() if (name, value) not in DEFAULTS and value is not None
        },
        "system": "\n\n".join(opening),
        "input": items,
        "include": sorted(asked),
        "tools": sorted(map(plain_tool, body.get("tools") or ()), key=in_order),
    }


def stateless(body: dict[str, Any]) -> bool:
    return body.get("store") is False


def plain_tool(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool without its schema, which is the dialects' business; `strict` is off where it is not said."""
    if tool["type"] != "function":
        return tool
    return {**without(tool, "parameters"), "strict": bool(tool.get("strict"))}


def has_thoughts(item: dict[str, Any]) -> bool:
    return bool(item.get("encrypted_content") or item.get("content"))


def unlinked(item: dict[str, Any]) -> dict[str, Any]:
    ours = "role" in item or item["type"] in ("function_call", "custom_tool_call")
    return without(item, "id", "status") if ours else item


def plain_item(item: dict[str, Any]) -> dict[str, Any]:
    item = {name: value for name, value in item.items() if value is not None}
    if "role" in item:
        return {**without(item, "type", "content"), "content": plain_content(item["content"])}
    if item["type"] == "function_call":
        return {**item, "arguments": plain_arguments(item["arguments"])}
    return {**item, "output": plain_content(item["output"])} if "output" in item else item


def plain_arguments(text: str) -> Any:
    try:
        return json.loads(text.strip() or "{}")
    except ValueError:
        return {"INVALID_JSON": text}


def plain_content(content: Any) -> Any:
    """One text for a list of texts; the marks and probabilities of a text only where there are any."""
    if not isinstance(content, list):
        return content
    blocks = [
        {name: value for name, value in block.items() if value or name not in ("annotations", "logprobs")}
        for block in content
    ]
    plain = all(block.keys() == {"type", "text"} for block in blocks)
    return "\n".join(block["text"] for block in blocks) if plain else blocks


@each("record", lambda: [pytest.param(r, id=r["id"]) for r in exchanges(all_records("responses"))])
def test_requests(record: dict[str, Any]) -> None:
    """A recorded body, read into neutral messages and written again, says the same."""
    try:
        request = read(record)
    except NoPart as block:
        pytest.skip(f"the neutral form has no part for {block}")
    assert canonical(written(record, request)) == canonical(record["request"]["body"])


def decoded(record: dict[str, Any]) -> Message:
    codec, answer = codec_of(record), record["response"]
    if answer["framing"] == "json":
        return codec.response(answer["body"]).message
    return decode(codec, recorded_events(answer))[1].message


def pairs() -> list[Any]:
    """Two exchanges of one conversation: an answer, and the request that goes on from it."""
    return [
        pytest.param(before, after, id=after["id"])
        for cassette in map(exchanges, cassettes("responses"))
        for before, after in pairwise(cassette)
        if after.get("request_has_tool_results") and before["has_tool_calls"]
    ]


@each(("before", "after"), pairs())
def test_an_answer_goes_back_as_it_came(before: dict[str, Any], after: dict[str, Any]) -> None:
    """The answer that we decoded, sent back with its results, is what the recording client sent back."""
    request, answer = read(after), decoded(before)
    key = kept_by(codec_of(after).provider)
    sent = {other.id for m in request.messages for other in m.calls}
    parts = [
        replace(part, id=part.extras[key]["id"])  # this client takes the item's id for the call's
        if isinstance(part, ToolCall) and part.extras[key].get("id") in sent
        else part
        for part in answer.parts
    ]
    answer = replace(answer, parts=parts)
    ids = {call.id: call for call in answer.calls}
    theirs = [m for m in request.messages if m.calls and {call.id for call in m.calls} <= ids.keys()]
    if not theirs:
        pytest.skip("the recording client did not go on from that answer's calls")
    original = canonical(after["request"]["body"])["input"]
    # One answer may have been sent back as several messages, each call before its own result.
    first, *others = theirs
    request.messages[request.messages.index(first)] = answer
    whole = [m for m in request.messages if not any(m is other for other in others)]
    request.messages = answering(whole, lambda call: ids.get(call.id, call))
    ours = canonical(written(after, request))["input"]
    kinds = set(map(kind, original))
    mine = [essence(item) for item in ours if kind(item) in kinds]
    assert sorted(mine, key=in_order) == sorted(map(essence, original), key=in_order)


def in_order(item: dict[str, Any]) -> str:
    return json.dumps(item, sort_keys=True)


def kind(item: dict[str, Any]) -> str:
    return str(item.get("type") or item["role"])


def essence(item: dict[str, Any]) -> dict[str, Any]:
    """An item without what recording clients lose, or take from another event."""
    if item.get("role") == "assistant":
        content = item["content"]
        text = content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content)
        return {"role": "assistant", "text": text}
    if "role" in item or item["type"] in OURS:
        return without(item, "id", "status", "namespace", "caller")
    return {"type": item["type"], "id": item.get("id")}


def last_items(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The output items of a recorded answer as they were when each was finished."""
    answer = record["response"]
    if answer["framing"] == "json":
        return list(answer["body"].get("output") or ())
    steps = {"response.output_item.added": 0, "response.output_item.done": 1}
    events = [event for event in recorded_events(answer) if event.get("type") in steps]
    done = [event for event in events if steps[event["type"]]]
    if 2 * len(done) != len(events):
        return []  # cut, or a server that leaves events out
    return [event["item"] for event in sorted(done, key=lambda event: event["output_index"])]


ANSWERED = [record for record in all_records("responses") if last_items(record) and not record.get("error")]


def sent_back(record: dict[str, Any], **own: Any) -> list[dict[str, Any]]:
    codec, answer = codec_of(record), decoded(record)
    results = [ResultPart(call, ToolResult.of("ok")) for call in answer.calls]
    messages = [Message.user("Hi"), answer, Message("tool", [*results]), Message.user("Go on.")]
    request = Request(messages, extras={codec.provider: own})
    items = list(codec.request(request, model="m", stream=False)["input"])
    return items[1 : len(items) - 1 - len(results)]


@each("record", lambda: [pytest.param(r, id=r["id"]) for r in ANSWERED])
def test_every_item_goes_back_as_it_came(record: dict[str, Any]) -> None:
    """Thinking, calls with their namespace and caller, server-side tools, pictures, texts with their marks."""
    expected = [
        {**item, "content": [{"annotations": [], **without(block, "logprobs")} for block in item["content"]]}
        if item["type"] == "message"
        else item
        for item in last_items(record)
    ]
    assert sent_back(record) == expected


@each("record", lambda: [pytest.param(r, id=r["id"]) for r in ANSWERED])
def test_nothing_is_looked_up_where_nothing_is_stored(record: dict[str, Any]) -> None:
    for item in sent_back(record, store=False):
        if item.get("type") in ("function_call", "custom_tool_call") or "role" in item:
            assert "id" not in item
        if item.get("type") == "reasoning":
            assert item.get("encrypted_content") or item.get("content")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def sample() -> list[Any]:
    chosen: dict[tuple[str, bool], list[Any]] = {}
    for record in ANSWERED:
        streamed = record["response"]["framing"] == "sse"
        group = chosen.setdefault((record["provider"], streamed), [])
        if len(group) < PER_GROUP:
            group.append(pytest.param(record, id=record["id"]))
    return [param for group in chosen.values() for param in group]


@each("record", sample)
async def test_recorded_bytes_through_the_sdk(record: dict[str, Any], server: Server) -> None:
    server.answer = record["response"]
    address, provider = f"http://127.0.0.1:{server.server_port}/v1", codec_of(record).provider
    model = OpenAIResponses("m", base_url=address, provider=provider, max_retries=0)
    streamed = record["response"]["framing"] == "sse"
    if streamed:
        *chunks, response = [item async for item in model.stream(REQUEST)]
        assert isinstance(response, Response)
        check_chunks([chunk for chunk in chunks if not isinstance(chunk, Response)], response)
    else:
        response = await model.respond(REQUEST)
    assert response.message == decoded(record)
    expected = model.codec.request(REQUEST, model="m", stream=streamed)
    assert {"stream": False, **server.received} == {"stream": False, **expected}
    await model.aclose()


async def test_what_goes_into_every_body_decides_how_the_input_is_written(server: Server) -> None:
    """`store` is the codec's business, and tools of the provider join those of the request."""
    whole = [r for r in ANSWERED if r["response"]["framing"] == "json" and r["has_tool_calls"]]
    answer = decoded(whole[0])
    server.answer = whole[0]["response"]
    address = f"http://127.0.0.1:{server.server_port}/v1"
    always = {"store": False, "tools": [{"type": "web_search"}]}
    model = OpenAIResponses("gpt-5", base_url=address, provider="openai", max_retries=0, body=always)
    await model.respond(Request([Message.user("Hi"), answer], REQUEST.tools))
    received = server.received
    assert received["include"] == ["reasoning.encrypted_content"]
    assert [tool["type"] for tool in received["tools"]] == ["function", "web_search"]
    assert not any("id" in item for item in received["input"] if item.get("type") == "function_call")
    await model.aclose()
