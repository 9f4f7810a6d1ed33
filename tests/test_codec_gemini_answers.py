"""Gemini generateContent: what comes back, one rule a test."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.growth import growth
from toolcrib.call import ToolCall
from toolcrib.codecs import ModelError
from toolcrib.codecs.gemini import GeminiCodec
from toolcrib.codecs.gemini_partial import read_path
from toolcrib.content import Audio, File, Image, Text
from toolcrib.messages import (
    CallChunk,
    Chunk,
    Message,
    Opaque,
    Reasoning,
    ReasoningChunk,
    Request,
    Response,
    ResultPart,
    TextChunk,
    TokenLogprob,
    Usage,
)
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec

CODEC = GeminiCodec()
F = ToolSpec("f", "Does f.", {"type": "object", "properties": {"a": {"type": "string"}}})
G = ToolSpec("g", "", {"type": "object", "properties": {}})


def body(*messages: Message, model: str = "gemini-3-pro", **fields: Any) -> dict[str, Any]:
    return CODEC.request(Request([*messages], **fields), model=model, stream=False)


def event(*parts: dict[str, Any], stop: str = "", **fields: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": [*parts]}, **({"finishReason": stop} if stop else {})}
    return {"candidates": [{**candidate, **fields.pop("candidate", {})}], **fields}


def stream(*events: dict[str, Any], request: Request | None = None) -> tuple[list[Chunk], Response]:
    decoder = CODEC.decoder(request)
    chunks = [chunk for event in events for chunk in decoder.feed(event)]
    return chunks, decoder.finish()


def called(name: str, args: Any = None, **rest: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, **({} if args is None else {"args": args}), **rest}}


def answered(*pairs: tuple[ToolCall, str]) -> Message:
    return Message("tool", [ResultPart(call, ToolResult.of(text)) for call, text in pairs])


def test_a_whole_answer() -> None:
    response = CODEC.response(
        event(
            {"text": "Look: "},
            {"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thoughtSignature": "s"},
            {"inlineData": {"mimeType": "audio/L16;rate=24000", "data": "BBBB"}},
            {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://b/a.pdf", "displayName": "a"}},
            stop="MAX_TOKENS",
            candidate={"groundingMetadata": {"webSearchQueries": ["x"]}, "index": 0},
            modelVersion="gemini-3-pro",
            usageMetadata={
                "promptTokenCount": 10,
                "cachedContentTokenCount": 4,
                "toolUsePromptTokenCount": 3,
                "candidatesTokenCount": 5,
                "thoughtsTokenCount": 7,
                "totalTokenCount": 25,
            },
        )
    )
    assert list(response.message.parts) == [
        Text("Look: "),
        Image("AAAA", "", "image/png", "", {"gemini": {"thoughtSignature": "s"}}),
        Audio("BBBB", "", "audio/L16;rate=24000"),
        File("", "gs://b/a.pdf", "application/pdf", "a"),
    ]
    assert response.usage == Usage(13, 12, 4, 0, 7)
    assert response.usage.total_tokens == 25
    assert (response.stop_reason, response.raw_stop_reason, response.model) == (
        "length",
        "MAX_TOKENS",
        "gemini-3-pro",
    )
    assert response.message.extras == {"gemini": {"groundingMetadata": {"webSearchQueries": ["x"]}}}
    assert "groundingMetadata" not in json.dumps(body(Message.user("Hi"), response.message))


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (called("f"), {}),
        ({"functionCall": {"name": "f", "args": None}}, {}),
        (called("f", {}), {}),
        (called("f", {"a": [1]}), {"a": [1]}),
        (called("f", '{"a": 1}'), '{"a": 1}'),
        (called("f", [1]), "[1]"),
    ],
)
def test_arguments_of_any_kind(call: dict[str, Any], arguments: Any) -> None:
    chunks, response = stream(event(call, stop="STOP"))
    assert response.message.calls == [ToolCall("f", arguments)]
    assert response == CODEC.response(event(call, stop="STOP"))
    said = "".join(chunk.arguments for chunk in chunks if isinstance(chunk, CallChunk))
    assert said == arguments or json.loads(said) == arguments
    assert [chunk.done for chunk in chunks if isinstance(chunk, CallChunk)][-1]


def test_items_of_the_server_are_kept_verbatim_in_their_place() -> None:
    parts = [
        {"executableCode": {"language": "PYTHON", "code": "1+1"}, "thoughtSignature": "s"},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
        {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "1"}},
        {"toolResponse": {"id": "1", "response": {}}},
        {"inlineData": {"mimeType": "image/png", "data": "AA"}, "thought": True},
        {"text": "2"},
    ]
    response = CODEC.response(event(*parts, stop="STOP"))
    assert list(response.message.parts[:5]) == [Opaque("gemini", part) for part in parts[:5]]
    assert response.message.text == "2"
    assert body(Message.user("Hi"), response.message)["contents"][1]["parts"] == parts


def test_logprobs_are_read_from_every_piece() -> None:
    first = {
        "chosenCandidates": [{"token": "He", "logProbability": -0.5}],
        "topCandidates": [
            {"candidates": [{"token": "He", "logProbability": -0.5}, {"token": "Ha", "logProbability": -2}]}
        ],
    }
    second = {"chosenCandidates": [{"token": "y", "logProbability": None}]}
    _, response = stream(
        event({"text": "He"}, candidate={"logprobsResult": first}),
        event({"text": "y"}, stop="STOP", candidate={"logprobsResult": second}),
    )
    assert response.logprobs == (
        TokenLogprob("He", -0.5, (("He", -0.5), ("Ha", -2.0))),
        TokenLogprob("y", 0.0),
    )


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("STOP", "end"), ("MAX_TOKENS", "length"), ("SAFETY", "filter"), ("RECITATION", "filter"),
        ("PROHIBITED_CONTENT", "filter"), ("BLOCKLIST", "filter"), ("SPII", "filter"), ("OTHER", "other"),
        ("LANGUAGE", "other"), ("TOO_MANY_TOOL_CALLS", "other"), ("A_NEW_ONE", "other"), (1, "end"), (3, "filter"),
    ],
)  # fmt: skip
def test_reasons_to_stop(reason: Any, stop: str) -> None:
    response = CODEC.response(event({"text": "x"}, candidate={"finishReason": reason}))
    assert (response.stop_reason, response.raw_stop_reason) == (stop, str(reason))


def test_a_prompt_that_was_blocked_is_a_filtered_answer() -> None:
    blocked = {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
        "usageMetadata": {"promptTokenCount": 2},
    }
    for response in (CODEC.response(blocked), stream(blocked)[1]):
        assert (response.stop_reason, response.raw_stop_reason) == ("filter", "PROHIBITED_CONTENT")
        assert response.message.extras["gemini"]["promptFeedback"] == blocked["promptFeedback"]


def test_a_call_that_gemini_refused_is_a_call_to_be_answered() -> None:
    said = "Malformed function call: print(default_api.g(a=1)) for f"
    request = Request([Message.user("Hi")], [F, G])
    refused = event(stop="MALFORMED_FUNCTION_CALL", candidate={"finishMessage": said})
    chunks, response = stream(event({"text": "Well."}), refused, request=request)
    [call] = response.message.calls
    assert call.name == "g"
    assert said in call.problem
    assert response.stop_reason == "tool_calls"
    assert call.arguments == said
    assert chunks == [TextChunk("Well."), CallChunk(0, "g", arguments=said, done=True)]
    unnamed = CODEC.response(event(stop="UNEXPECTED_TOOL_CALL")).message.calls
    assert [(call.name, bool(call.problem)) for call in unnamed] == [("", True)]
    # It goes back as a call with its answer, like any other.
    turns = body(Message.user("Hi"), response.message, answered((call, call.problem)))["contents"]
    assert turns[1]["parts"][1]["functionCall"] == {"name": "g", "args": {"INVALID_JSON": said}}
    assert turns[2]["parts"][0]["functionResponse"]["name"] == "g"


def test_calls_beside_a_refused_one_do_not_run() -> None:
    _, response = stream(event(called("f", {}), called("g", {}), stop="MALFORMED_FUNCTION_CALL"))
    assert [bool(call.problem) for call in response.message.calls] == [True, True]


@pytest.mark.parametrize(
    ("answer", "retryable"),
    [
        ({}, True),
        ({"candidates": [], "usageMetadata": {}}, True),
        (event(stop="MALFORMED_RESPONSE"), True),
        (event(stop="MISSING_THOUGHT_SIGNATURE"), False),
        ({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}, True),
        ({"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}}, False),
    ],
)
def test_answers_that_are_none(answer: dict[str, Any], retryable: bool) -> None:
    with pytest.raises(ModelError) as caught:
        CODEC.response(answer)
    assert caught.value.retryable is retryable


def test_an_error_in_the_middle_keeps_what_came() -> None:
    decoder = CODEC.decoder()
    decoder.feed(event({"text": "Hel"}))
    with pytest.raises(ModelError, match="Deadline") as caught:
        decoder.feed({"error": {"code": 504, "message": "Deadline expired", "status": "DEADLINE_EXCEEDED"}})
    assert caught.value.retryable
    assert caught.value.partial is not None
    assert caught.value.partial.message.text == "Hel"


def test_a_stream_that_was_cut_is_no_answer() -> None:
    with pytest.raises(ModelError, match="ended before") as caught:
        stream(event({"text": "Hel"}), event(called("f", {})))
    assert caught.value.retryable
    assert caught.value.partial is not None
    assert caught.value.partial.message.text == "Hel"


PER_DAY = {"violations": [{"quotaId": "RequestsPerDay"}]}


@pytest.mark.parametrize(
    ("body", "status", "retryable", "after"),
    [
        ({"error": {"code": 429, "message": "quota", "details": [{"retryDelay": "34.4s"}]}}, None, True, 34.4),
        ({"error": {"message": "quota", "details": [PER_DAY]}}, 429, False, None),
        ([{"error": {"code": 503, "message": "quota"}}], None, True, None),
        ({"error": {"message": "quota", "status": "RESOURCE_EXHAUSTED"}}, None, True, None),
        ({"error": "quota"}, 403, False, None),
        ("quota", 500, True, None),
    ],
)  # fmt: skip
def test_errors(body: Any, status: int | None, retryable: bool, after: float | None) -> None:
    error = CODEC.error(body, status)
    assert (error.message, error.retryable, error.retry_after) == ("quota", retryable, after)


# Arguments by path


def piece(path: str, **value: Any) -> dict[str, Any]:
    return {"functionCall": {"partialArgs": [{"jsonPath": path, **value}], "willContinue": True}}


OPEN = {"functionCall": {"name": "f", "willContinue": True}, "thoughtSignature": "s"}
CLOSE: dict[str, Any] = {"functionCall": {}}


def test_arguments_by_path_stream_as_text() -> None:
    parts = [
        OPEN,
        piece("$.items[0].name", stringValue='a "', willContinue=True),
        piece("$.items[0].name", stringValue="é\n"),
        piece("$.items[0].price", numberValue=0.5),
        {"functionCall": {"willContinue": True}},
        piece("$.items[1].name", stringValue=""),
        piece("$['odd key']", boolValue=True),
        piece("$.none", nullValue="NULL_VALUE"),
        CLOSE,
        called("g"),
        {"text": "", "thoughtSignature": "t"},
    ]
    chunks, response = stream(*(event(part) for part in parts), event(stop="STOP"))
    first, second = response.message.calls
    assert isinstance(first.arguments, str)
    assert json.loads(first.arguments) == {
        "items": [{"name": 'a "é\n', "price": 0.5}, {"name": ""}],
        "odd key": True,
        "none": None,
    }
    assert second.arguments == {}
    mine = [chunk for chunk in chunks if isinstance(chunk, CallChunk) and chunk.index == 0]
    assert [chunk.arguments for chunk in mine[:4]] == [
        "",
        '{"items":[{"name":"a \\"',
        'é\\n"',
        ',"price":0.5',
    ]
    assert "".join(chunk.arguments for chunk in mine) == first.arguments
    assert mine[-1].done
    back = body(Message.user("Hi"), response.message)["contents"][1]["parts"]
    assert back[0] == {
        "functionCall": {"name": "f", "args": json.loads(first.arguments)},
        "thoughtSignature": "s",
    }


def test_a_call_that_lacks_its_end_mark_is_complete_when_the_answer_is() -> None:
    again = {"functionCall": {"name": "f", "willContinue": True}}
    chunks, response = stream(
        event(OPEN), event(piece("$.a", stringValue="1", willContinue=True)), event(again), event(stop="STOP")
    )
    assert [(call.arguments, call.problem) for call in response.message.calls] == [
        ('{"a":"1"}', ""),
        ("{}", ""),
    ]
    assert [chunk.index for chunk in chunks if isinstance(chunk, CallChunk) and chunk.done] == [0, 1]


def test_a_call_that_was_cut_off_is_never_complete() -> None:
    chunks, response = stream(
        event(OPEN), event(piece("$.a", stringValue="1")), event({"text": ""}, stop="MAX_TOKENS")
    )
    assert response.message.calls[0].problem
    assert response.stop_reason == "length"
    assert not [chunk for chunk in chunks if isinstance(chunk, CallChunk) and chunk.done]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([("$.a", "1"), ("$.b", "2"), ("$.a", "3")], {"a": "13", "b": "2"}),
        ([("$.a[1]", "1"), ("$.a[0]", "0")], {"a": ["0", "1"]}),
        ([("$.a.x", "1"), ("$.b", "2"), ("$.a.y", "3")], {"a": {"x": "1", "y": "3"}, "b": "2"}),
        ([("$.a[0][0]", "1"), ("$.a[0][1]", "2"), ("$.a[1][0]", "3")], {"a": [["1", "2"], ["3"]]}),
        ([("$.a", "1"), ("$.a.b", "2")], None),
        ([("$.a[2]", "1")], None),
        ([("$.a[0]", "1"), ("$.a.b", "1")], None),
        ([("$", "1")], None),
        ([("$[0]", "1")], None),
        ([("a.b", "1")], None),
        ([("$" + ".a" * 100, "1")], None),
    ],
)
def test_pieces_in_any_order_or_none(pieces: list[tuple[str, str]], expected: Any) -> None:
    events = [event(piece(path, stringValue=value)) for path, value in pieces]
    _, response = stream(event(OPEN), *events, event(CLOSE, stop="STOP"))
    [call] = response.message.calls
    if expected is None:
        assert "cannot be put together" in call.problem
    else:
        assert not call.problem
        assert (json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments) == expected


@pytest.mark.parametrize(
    ("path", "segments"),
    [
        ("$.a", ("a",)),
        ("$.a-b[10].ü", ("a-b", 10, "ü")),
        ("$['a.b']", ("a.b",)),
        ("$['it\\'s \"so\" \\\\']", ('it\'s "so" \\',)),
        ('$["a]"][0]', ("a]", 0)),
        ("$.a.", ()),
        ("$.a[", ()),
        ("$['a", ()),
        ("", ()),
    ],
)
def test_paths(path: str, segments: tuple[str | int, ...]) -> None:
    assert read_path(path) == segments


def test_thinking_streams_as_reasoning() -> None:
    chunks, response = stream(
        event({"text": "h", "thought": True}),
        event({"text": "m", "thought": True}),
        event({"text": "ok"}, stop="STOP"),
    )
    assert chunks == [ReasoningChunk("h"), ReasoningChunk("m"), TextChunk("ok")]
    assert list(response.message.parts) == [Reasoning("hm", {"gemini": {"thought": True}}), Text("ok")]


@pytest.mark.slow
def test_decoding_is_linear() -> None:
    def decoding(size: int) -> Any:
        text = [event({"text": "x" * 16})] * (size // 32)
        args = [event(piece("$.a[0].b", stringValue="y" * 16, willContinue=True))] * (size // 32)

        def work() -> None:
            stream(*text, event(OPEN), *args, event(CLOSE, stop="STOP"))

        return work

    assert growth(decoding, 50_000, 400_000, 40) < 40
