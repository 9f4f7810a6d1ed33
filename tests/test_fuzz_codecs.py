"""Answers of every wire format, spoiled in every way we know: an answer comes out, or our error, and no cut matters.

The rounds are fixed and seeded, so that a fault found once is found again.
"""

from __future__ import annotations

import copy
import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.bedrock_wire import STREAM
from toolcrib.codecs import Codec, Decoder, JSONEvents, ModelError
from toolcrib.codecs.catalog import codec_named
from toolcrib.codecs.codec import last_chunks
from toolcrib.codecs.ndjson import JSONLines
from toolcrib.messages import CallChunk, Chunk, Request, Response, RestartChunk, TextChunk

Event = dict[str, Any]
A, B = '{"city": "Zürich 😀", "days": 3}', '{"q": ["\\"a\\"", {"b": null}]}'


def chat(delta: Event, **choice: Any) -> Event:
    return {
        "id": "c1",
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": None, **choice}],
    }


def chat_call(index: int, arguments: str, **fields: Any) -> Event:
    name = {"name": fields.pop("name")} if "name" in fields else {}
    return chat({"tool_calls": [{"index": index, **fields, "function": {**name, "arguments": arguments}}]})


LOGPROB = {"token": "Hi", "logprob": -0.5, "top_logprobs": [{"token": "Ho", "logprob": -1.5}]}
CHAT_USAGE = {
    "prompt_tokens": 9, "completion_tokens": 5, "cost": 0.01, "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}  # fmt: skip
CHAT = [
    chat({"role": "assistant", "reasoning_content": "I th"}),
    chat({"reasoning_details": [{"type": "reasoning.text", "text": "ink", "signature": "s", "index": 0}]}),
    chat({"content": "Hi"}, logprobs={"content": [LOGPROB]}),
    chat(
        {
            "content": [{"type": "text", "text": "é"}],
            "images": [{"image_url": {"url": "data:image/png;base64,AA=="}}],
        }
    ),
    chat_call(0, "", id="call_1", type="function", name="weather"),
    chat_call(0, A[:9]),
    chat_call(1, B[:3], id="call_2", name="find", extra_content={"google": {"thought_signature": "t"}}),
    chat_call(0, A[9:]),
    chat_call(1, B[3:]),
    chat({"refusal": None, "audio": {"data": "AA==", "transcript": "Hi"}}, finish_reason="tool_calls"),
    {"id": "c1", "choices": [], "usage": CHAT_USAGE},
]


def item(kind: str, index: int, **fields: Any) -> Event:
    return {"type": f"response.{kind}", "output_index": index, **fields}


THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "so"}],
    "encrypted_content": "e",
}
CALLED = [
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": A},
    {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "find", "arguments": B},
]  # fmt: skip
SPOKEN = {"type": "message", "id": "m_1", "role": "assistant", "content": [
    {"type": "output_text", "text": "Hié", "annotations": [{"type": "url_citation"}], "logprobs": [LOGPROB]},
    {"type": "refusal", "refusal": "no"},
]}  # fmt: skip
SEARCHED = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "q"},
}
RESPONSES_ANSWER = {
    "id": "r_1", "object": "response", "status": "completed", "model": "m",
    "output": [THOUGHT, SEARCHED, SPOKEN, *CALLED],
    "usage": {"input_tokens": 9, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 4}},
}  # fmt: skip
RESPONSES = [
    {"type": "response.created", "response": {"id": "r_1", "status": "in_progress", "output": []}},
    item("output_item.added", 0, item={**THOUGHT, "summary": []}),
    item("reasoning_summary_text.delta", 0, item_id="rs_1", summary_index=0, delta="so"),
    item("output_item.done", 0, item=THOUGHT),
    item("output_item.done", 1, item=SEARCHED),
    item("output_item.added", 2, item={**SPOKEN, "content": []}),
    item("output_text.delta", 2, item_id="m_1", content_index=0, delta="Hi"),
    item("output_text.delta", 2, item_id="m_1", content_index=0, delta="é"),
    item("refusal.delta", 2, item_id="m_1", content_index=1, delta="no"),
    item("output_item.done", 2, item=SPOKEN),
    item("output_item.added", 3, item={**CALLED[0], "arguments": ""}),
    item("output_item.added", 4, item={**CALLED[1], "arguments": ""}),
    item("function_call_arguments.delta", 3, item_id="fc_1", delta=A[:9]),
    item("function_call_arguments.delta", 4, item_id="fc_2", delta=B),
    item("function_call_arguments.delta", 3, item_id="fc_1", delta=A[9:]),
    item("function_call_arguments.done", 3, item_id="fc_1", arguments=A),
    item("output_item.done", 3, item=CALLED[0]),
    item("output_item.done", 4, item=CALLED[1]),
    {"type": "response.completed", "response": RESPONSES_ANSWER},
]


def block(kind: str, index: int, **fields: Any) -> Event:
    return {"type": f"content_block_{kind}", "index": index, **fields}


ANTHROPIC_CONTENT: list[Event] = [
    {"type": "thinking", "thinking": "so", "signature": "sig"},
    {"type": "redacted_thinking", "data": "AA=="},
    {"type": "text", "text": "Hié", "citations": [{"type": "char_location", "cited_text": "x"}]},
    {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "srv_1",
        "content": [{"type": "web_search_result", "url": "u"}],
    },
    {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": json.loads(A)},
    {"type": "tool_use", "id": "toolu_2", "name": "find", "input": json.loads(B)},
]
ANTHROPIC_USAGE = {
    "input_tokens": 9,
    "output_tokens": 5,
    "cache_read_input_tokens": 4,
    "cache_creation_input_tokens": 2,
}
ANTHROPIC = [
    {
        "type": "message_start",
        "message": {"id": "msg_1", "model": "m", "content": [], "usage": ANTHROPIC_USAGE},
    },
    block("start", 0, content_block={"type": "thinking", "thinking": "", "signature": ""}),
    block("delta", 0, delta={"type": "thinking_delta", "thinking": "so"}),
    block("delta", 0, delta={"type": "signature_delta", "signature": "sig"}),
    block("stop", 0),
    block("start", 1, content_block={"type": "text", "text": ""}),
    {"type": "ping"},
    block("delta", 1, delta={"type": "text_delta", "text": "Hi"}),
    block(
        "delta",
        1,
        delta={"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "x"}},
    ),
    block("delta", 1, delta={"type": "text_delta", "text": "é"}),
    block("stop", 1),
    block("start", 2, content_block={**ANTHROPIC_CONTENT[3], "input": {}}),
    block("delta", 2, delta={"type": "input_json_delta", "partial_json": '{"query": "q"}'}),
    block("stop", 2),
    block("start", 3, content_block=ANTHROPIC_CONTENT[4]),
    block("stop", 3),
    block("start", 4, content_block={**ANTHROPIC_CONTENT[5], "input": {}}),
    block("delta", 4, delta={"type": "input_json_delta", "partial_json": A[:9]}),
    block("delta", 4, delta={"type": "input_json_delta", "partial_json": A[9:]}),
    block("stop", 4),
    block("start", 5, content_block={**ANTHROPIC_CONTENT[6], "input": {}}),
    block("delta", 5, delta={"type": "input_json_delta", "partial_json": B}),
    block("stop", 5),
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": ANTHROPIC_USAGE,
    },
    {"type": "message_stop"},
]


def candidate(*parts: Event, **fields: Any) -> Event:
    return {
        "candidates": [{"content": {"role": "model", "parts": [*parts]}, "index": 0, **fields}],
        "modelVersion": "m",
    }


GEMINI: list[Event] = [
    candidate({"text": "so", "thought": True}),
    candidate({"text": "Hi"}, {"text": "é", "thoughtSignature": "AA=="}),
    candidate({"executableCode": {"language": "PYTHON", "code": "1"}}, {"codeExecutionResult": {"output": "1"}}),
    candidate({"inlineData": {"mimeType": "image/png", "data": "AA=="}}, {"fileData": {"fileUri": "u"}}),
    candidate({"functionCall": {"name": "weather", "args": json.loads(A), "id": "c1"}, "thoughtSignature": "AA=="}),
    candidate({"functionCall": {"name": "find", "willContinue": True}}),
    candidate({"functionCall": {"partialArgs": [{"jsonPath": "$.q[0]", "stringValue": '"a', "willContinue": True}],
                                "willContinue": True}}),
    candidate({"functionCall": {"partialArgs": [{"jsonPath": "$.q[0]", "stringValue": '"'},
                                                {"jsonPath": "$.q[1].b", "nullValue": None}], "willContinue": True}}),
    candidate({"functionCall": {}}),
    candidate(
        finishReason="STOP",
        groundingMetadata={"webSearchQueries": ["q"]},
        logprobsResult={"chosenCandidates": [{"token": "Hi", "logProbability": -0.5}],
                        "topCandidates": [{"candidates": [{"token": "Hi", "logProbability": -0.5}]}]},
    ) | {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5, "thoughtsTokenCount": 2}},
]  # fmt: skip


def cohere(kind: str, index: int | None = None, **message: Any) -> Event:
    return {"type": kind, "delta": {"message": message}, **({} if index is None else {"index": index})}


def cohere_call(index: int, name: str) -> Event:
    call = {"id": f"c{index}", "type": "function", "function": {"name": name, "arguments": ""}}
    return cohere("tool-call-start", index, tool_calls=call)


def cohere_piece(index: int, arguments: str) -> Event:
    return cohere("tool-call-delta", index, tool_calls={"function": {"arguments": arguments}})


COHERE_USAGE = {"billed_units": {"input_tokens": 8}, "tokens": {"input_tokens": 9.0, "output_tokens": 5.0}}
CITED = {"start": 0, "end": 2, "text": "Hi", "sources": [{"type": "tool", "id": "x"}]}
COHERE = [
    {"id": "x", **cohere("message-start", role="assistant", content=[], tool_plan="", tool_calls=[], citations=[])},
    cohere("tool-plan-delta", tool_plan="I look."),
    cohere("content-start", 0, content={"type": "thinking", "thinking": ""}),
    cohere("content-delta", 0, content={"thinking": "so"}),
    {"type": "content-end", "index": 0},
    cohere("content-start", 1, content={"type": "text", "text": ""}),
    cohere("content-delta", 1, content={"text": "Hié"}) | {"logprobs": {"text": "Hi", "logprobs": [-0.5]}},
    cohere("citation-start", 0, citations=CITED),
    {"type": "citation-end", "index": 0},
    {"type": "content-end", "index": 1},
    cohere_call(0, "weather"), cohere_piece(0, A[:9]), cohere_call(1, "find"), cohere_piece(0, A[9:]),
    cohere_piece(1, B),
    {"type": "tool-call-end", "index": 0}, {"type": "tool-call-end", "index": 1},
    {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": COHERE_USAGE}},
]  # fmt: skip


def ollama(done: bool = False, **message: Any) -> Event:
    return {"model": "m", "message": {"role": "assistant", "content": "", **message}, "done": done}


OLLAMA = [
    ollama(thinking="so"),
    ollama(content="Hié", logprobs=[LOGPROB]) | {"logprobs": [LOGPROB]},
    ollama(images=["AA=="]),
    ollama(tool_calls=[{"function": {"index": 0, "name": "weather", "arguments": json.loads(A)}}]),
    ollama(tool_calls=[{"id": "c2", "function": {"name": "find", "arguments": B}}]),
    ollama(True) | {"done_reason": "stop", "prompt_eval_count": 9, "eval_count": 5},
]
STREAMS: dict[str, list[Event]] = {
    "openai_chat": CHAT,
    "openai_responses": RESPONSES,
    "anthropic_messages": ANTHROPIC,
    "gemini": GEMINI,
    "bedrock_converse": STREAM,
    "cohere": COHERE,
    "ollama": OLLAMA,
}
GEMINI_PARTS = [part for at in (1, 2, 4) for part in GEMINI[at]["candidates"][0]["content"]["parts"]]
BODIES: dict[str, Event] = {
    "openai_chat": {"id": "c1", "model": "m", "usage": CHAT_USAGE, "choices": [{
        "index": 0, "finish_reason": "tool_calls", "logprobs": {"content": [LOGPROB]}, "message": {
            "role": "assistant", "content": "Hié", "refusal": None, "reasoning_content": "so",
            "annotations": [{"type": "url_citation"}], "audio": {"id": "a", "data": "AA==", "transcript": "x"},
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": A}},
                           {"id": "call_2", "type": "custom", "custom": {"name": "find", "input": "x"}}]}}]},
    "openai_responses": RESPONSES_ANSWER,
    "anthropic_messages": {"type": "message", "id": "msg_1", "role": "assistant", "model": "m",
                           "usage": ANTHROPIC_USAGE, "content": ANTHROPIC_CONTENT, "stop_reason": "tool_use"},
    "gemini": {**GEMINI[-1], **candidate(*GEMINI_PARTS, finishReason="STOP")},
    "bedrock_converse": {"output": {"message": {"role": "assistant", "content": [
        {"reasoningContent": {"reasoningText": {"text": "so", "signature": "c2ln"}}}, {"text": "Hié"},
        {"toolUse": {"toolUseId": "a", "name": "weather", "input": json.loads(A)}},
        {"citationsContent": {"content": [{"text": "x"}], "citations": [{"title": "t"}]}}]}},
        "stopReason": "tool_use", "usage": {"inputTokens": 9, "outputTokens": 5, "cacheReadInputTokens": 4}},
    "cohere": {"id": "x", "finish_reason": "TOOL_CALL", "usage": COHERE_USAGE, "message": {
        "role": "assistant", "tool_plan": "I look.", "citations": [CITED],
        "content": [{"type": "thinking", "thinking": "so"}, {"type": "text", "text": "Hié"}],
        "tool_calls": [{"id": "c0", "type": "function", "function": {"name": "weather", "arguments": A}}]}},
    "ollama": {**OLLAMA[-1], "message": {"role": "assistant", "content": "Hié", "thinking": "so", "images": ["AA=="],
               "tool_calls": [{"function": {"name": "weather", "arguments": json.loads(A)}}]}},
}  # fmt: skip


def nested(depth: int) -> Any:
    return json.loads('{"a":[' * depth + "]}" * depth)


JUNK: list[Any] = [
    None, True, -1, 10**400, 1e308, float("nan"), "", "x", "null", "\ud83d", "{}{}", '{"a": ', [], {}, [None], [[]],
    {"x": None}, {"type": "text"}, {"": {"": [""]}}, [{"type": 1, "text": 2, "name": 3, "id": 4}],
]  # fmt: skip
SOME = 6  # values that are tried at each path of a stream
BYTES = 150  # rounds with spoiled bytes, for each format


def paths(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value in a value."""
    if here:
        yield here
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield from paths(child, (*here, key))


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of a value with another at one place."""
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return changed


Outcome = tuple[str, Any]


def outcome(work: Callable[[], Response]) -> Outcome:
    try:
        return "answer", work()
    except ModelError as error:
        return "error", error.message


def decoded(decoder: Decoder, events: list[Event], chunks: list[Chunk]) -> Response:
    for event in events:
        chunks += decoder.feed(event)
    chunks += last_chunks(decoder)
    return decoder.finish()


def sent_back(codec: Codec, result: Outcome) -> None:
    """An answer can be sent back, whatever it was made of."""
    if result[0] == "answer":
        codec.request(Request([result[1].message]), model="m", stream=False)


SAID_AGAIN = frozenset(
    {"openai_responses"}
)  # at the end the whole text comes once more, and it is that which counts


def add_up(name: str, chunks: list[Chunk], response: Response, said: Any) -> None:
    """The chunks tell the calls of the answer, and no text that is not in it; a lost piece may come at its end."""
    last = max((at for at, chunk in enumerate(chunks) if isinstance(chunk, RestartChunk)), default=-1)
    told = "".join(chunk.text for chunk in chunks[last + 1 :] if isinstance(chunk, TextChunk))
    names: dict[int, str] = {}
    for chunk in chunks[last + 1 :]:
        if isinstance(chunk, CallChunk):
            names[chunk.index] = names.get(chunk.index, "") + chunk.name
    assert sorted(names) == list(range(len(response.message.calls))), said
    told_names = [names[index] for index in sorted(names)]
    assert name in SAID_AGAIN or told_names == [call.name for call in response.message.calls], said
    assert name in SAID_AGAIN or Counter(whole(told)) <= Counter(response.message.text), said


def whole(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


@pytest.mark.parametrize("name", STREAMS)
def test_the_streams_and_answers_are_whole(name: str) -> None:
    codec, chunks = codec_named(name), list[Chunk]()
    response = decoded(codec.decoder(), STREAMS[name], chunks)
    assert [call.name for call in response.message.calls][:1] == ["weather"]
    assert response.message.text
    add_up(name, chunks, response, name)
    assert codec.response(BODIES[name]).message.calls[0].name == "weather"


@pytest.mark.parametrize("name", STREAMS)
def test_a_wrong_value_anywhere_in_an_answer(name: str) -> None:
    codec = codec_named(name)
    deep = nested(300)
    for path in paths(BODIES[name]):
        for junk in (*JUNK, deep):
            body = put(BODIES[name], path, junk)
            sent_back(codec, outcome(lambda body=body: codec.response(body)))  # type: ignore[misc]


@pytest.mark.parametrize("name", STREAMS)
def test_a_wrong_value_anywhere_in_a_stream(name: str) -> None:
    codec, events = codec_named(name), STREAMS[name]
    wrong = itertools.cycle([*JUNK, nested(300)])
    for path in paths(events):
        for junk in itertools.islice(wrong, SOME):
            spoiled = put(events, path, junk)
            spoiled = [event for event in spoiled if isinstance(event, dict)]
            chunks: list[Chunk] = []
            result = outcome(lambda: decoded(codec.decoder(), spoiled, chunks))  # noqa: B023
            sent_back(codec, result)
            if result[0] == "answer":
                add_up(name, chunks, result[1], (path, junk))


def framed(name: str, events: list[Event]) -> list[bytes]:
    """The events as the server's bytes."""
    if name == "ollama":
        return [json.dumps(event, ensure_ascii=False).encode() + b"\n" for event in events]
    return [
        (f"event: {event['type']}\n" if "type" in event else "").encode()
        + b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n"
        for event in events
    ]  # fmt: skip


def spoiled_bytes(dice: random.Random, frames: list[bytes]) -> bytes:
    """A stream after some of the things that go wrong."""
    frames = [*frames]
    for _ in range(dice.randint(0, 3)):
        at = dice.randrange(len(frames))
        match dice.randrange(4):
            case 0:
                frames.insert(at, dice.choice(frames))
            case 1:
                frames.append(frames.pop(at))
            case 2 if len(frames) > 1:
                del frames[at]
            case _:
                dice.shuffle(frames)
    data = b"".join(frames)
    for _ in range(dice.randint(0, 3)):
        at = dice.randrange(len(data) + 1)
        match dice.randrange(5):
            case 0:
                data = data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :]
            case 1:
                data = data[:at] + data[at + dice.randint(1, 40) :]
            case 2:
                data = data[: at + 30] + data[at:]
            case 3:
                odd = [
                    b"\\ud83d",
                    b"[" * 2000,
                    b"9" * 5000,
                    b"\xff\xfe",
                    b"\r",
                    b"\n\n",
                    b"data:",
                    b"null",
                    b'"',
                    b"1e999",
                ]
                data = data[:at] + dice.choice(odd) + data[at:]
            case _:
                data = data[:at]
    return data


def by_pieces(name: str, data: list[bytes], chunks: list[Chunk]) -> Response:
    """A stream as a transport reads it."""
    reader = JSONLines() if name == "ollama" else JSONEvents()
    decoder = codec_named(name).decoder()
    for piece in data:
        for event in reader.feed(piece):
            chunks += decoder.feed(event)
    return decoded(decoder, reader.finish(), chunks)


@pytest.mark.parametrize("name", STREAMS)
def test_spoiled_bytes_however_they_are_cut(name: str) -> None:
    dice = random.Random(name)
    codec, frames = codec_named(name), framed(name, STREAMS[name])
    for _ in range(BYTES):
        data = spoiled_bytes(dice, frames)
        size = dice.choice([1, 3, 50, 1000])
        chunks: list[list[Chunk]] = [[], []]
        once = outcome(lambda: by_pieces(name, [data], chunks[0]))  # noqa: B023
        cut = [data[at : at + size] for at in range(0, len(data), size)]
        again = outcome(lambda: by_pieces(name, cut, chunks[1]))  # noqa: B023
        assert repr(again) == repr(once), data  # by words, as NaN is not itself
        sent_back(codec, once)
        if once[0] == "answer":
            assert chunks[1] == chunks[0], data
            add_up(name, chunks[1], once[1], data)
