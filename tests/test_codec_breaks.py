"""How answers end before their end, format by format; and every reason to stop that the SDKs know of."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from tests.cases import each
from toolcrib.codecs.catalog import codec_named
from toolcrib.codecs.codec import ModelError, last_chunks
from toolcrib.codecs.sse import END
from toolcrib.messages import CallChunk, Response, TextChunk

SAID = "Hel"


def chat(*, finish: str | None = None, **beside: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": SAID}, "finish_reason": finish}], **beside}


USAGE = {"prompt_tokens": 1, "completion_tokens": 1}
BEGUN: dict[str, list[dict[str, Any]]] = {
    "openai_chat": [chat()],
    "openai_responses": [
        {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
        {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": SAID},
    ],
    "anthropic_messages": [
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SAID}},
    ],
    "gemini": [{"candidates": [{"content": {"parts": [{"text": SAID}]}}]}],
    "gemini_interactions": [
        {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
        {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": SAID}},
    ],
    "bedrock_converse": [{"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": SAID}}}],
    "cohere": [{"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": SAID}}}}],
    "ollama": [{"message": {"content": SAID}, "done": False}],
}
# What breaks an answer that has begun: the format, the event, words of the error, whether to try again, status.
BREAKS: list[tuple[str, dict[str, Any], str, bool, int | None]] = [
    ("openai_chat", {"error": {"code": 502, "message": "gone"}, "choices": []}, "gone", True, 502),
    (
        "openai_chat",
        {"choices": [{"finish_reason": "error", "error": {"code": 502, "message": "gone"}}]},
        "gone",
        True,
        502,
    ),
    ("openai_chat", chat(finish="error"), "broke off", True, None),
    ("openai_chat", {"choices": [], "x_groq": {"error": "over capacity"}}, "over capacity", False, None),
    ("openai_chat", {"detail": "too many"}, "too many", False, None),
    ("openai_chat", {"message": "crashed", "code": 500}, "crashed", True, 500),
    ("openai_chat", {"object": "error", "message": "too long", "code": 400}, "too long", False, 400),
    ("openai_responses", {"type": "error", "code": "server_error", "message": "boom"}, "boom", True, None),
    (
        "openai_responses",
        {
            "type": "response.failed",
            "response": {"error": {"code": "rate_limit_exceeded", "message": "slow"}},
        },
        "slow",
        True,
        None,
    ),
    ("openai_responses", {"type": "response.cancelled", "response": {}}, "cancelled", False, None),
    (
        "anthropic_messages",
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        "Overloaded",
        True,
        None,
    ),
    (
        "anthropic_messages",
        {"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}},
        "bad",
        False,
        None,
    ),
    ("gemini", {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}, "busy", True, 503),
    ("gemini_interactions", {"event_type": "error", "error": {"message": "boom"}}, "boom", False, None),
    ("bedrock_converse", {"throttlingException": {"message": "slow"}}, "slow", True, None),
    ("bedrock_converse", {"modelStreamErrorException": {"message": "boom"}}, "boom", True, None),
    ("bedrock_converse", {"validationException": {"message": "bad"}}, "bad", False, None),
    ("cohere", {"type": "message-end", "delta": {"finish_reason": "ERROR"}}, "broke off", True, None),
    ("cohere", {"message": "internal error"}, "internal error", True, None),
    ("ollama", {"error": "the runner has stopped"}, "the runner has stopped", True, None),
]


def read(name: str, events: list[dict[str, Any]]) -> Response:
    decoder = codec_named(name).decoder()
    for event in events:
        decoder.feed(event)
    last_chunks(decoder)
    return decoder.finish()


@pytest.mark.parametrize(("name", "event", "words", "retryable", "status"), BREAKS)
def test_an_error_in_the_middle_is_told_and_what_came_is_kept(
    name: str, event: dict[str, Any], words: str, retryable: bool, status: int | None
) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        read(name, [*BEGUN[name], event])
    assert (caught.value.retryable, caught.value.status) == (retryable, status)
    assert caught.value.partial is not None
    assert caught.value.partial.message.text.startswith(SAID)
    assert caught.value.partial.stop_reason == "other"


@pytest.mark.parametrize("name", BEGUN)
def test_a_stream_that_just_ends_is_no_answer(name: str) -> None:
    with pytest.raises(ModelError, match="ended before") as caught:
        read(name, BEGUN[name])
    assert caught.value.retryable
    assert caught.value.partial is not None
    assert caught.value.partial.message.text == SAID


@pytest.mark.parametrize("name", BEGUN)
def test_a_stream_of_nothing_is_no_answer(name: str) -> None:
    for events in ([], [{}]):
        with pytest.raises(ModelError):
            read(name, events)


def test_a_stream_of_an_end_mark_alone_is_no_answer() -> None:
    with pytest.raises(ModelError, match="no answer"):
        read("openai_chat", [END])


def test_counting_tokens_in_every_event_is_no_end() -> None:
    """vLLM and xAI do; the end is where nothing more is said."""
    call = {"index": 0, "id": "a", "function": {"name": "rm", "arguments": '{"path": "/tm'}}
    cut = {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": None}], "usage": USAGE}
    for events in ([chat(usage=USAGE)], [cut]):
        with pytest.raises(ModelError, match="ended before"):
            read("openai_chat", events)
    assert read("openai_chat", [chat(usage=USAGE), {"choices": [], "usage": USAGE}]).message.text == SAID


def test_usage_that_stands_in_the_choice_is_read() -> None:
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": USAGE}]}
    assert read("openai_chat", [chat(), last]).usage.total_tokens == 2


# Reasons that say nothing which our words have one for.
WITHOUT_A_WORD = {
    "FINISH_REASON_UNSPECIFIED", "LANGUAGE", "OTHER", "IMAGE_OTHER", "NO_IMAGE", "TOO_MANY_TOOL_CALLS",
}  # fmt: skip


# ai.google.dev/api/generate-content, FinishReason; its SDK is not among our packages.
GEMINI = (
    "FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST",
    "PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_OTHER",
    "NO_IMAGE", "IMAGE_RECITATION", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE", "ESCALATION", "PUP_LIMITED_DISABLED", "CONTINUATION", "MODEL_ARMOR",
)  # fmt: skip


def known_reasons() -> list[tuple[str, str]]:
    from anthropic.types.beta import BetaStopReason
    from botocore.session import get_session
    from openai.types.chat.chat_completion import Choice

    stop: Any = get_session().get_service_model("bedrock-runtime").shape_for("StopReason")
    return [
        *(("anthropic_messages", reason) for reason in get_args(BetaStopReason)),
        *(("bedrock_converse", reason) for reason in stop.enum),
        *(("gemini", reason) for reason in GEMINI),
        *(("openai_chat", reason) for reason in get_args(Choice.model_fields["finish_reason"].annotation)),
    ]


@each(("name", "reason"), known_reasons)
def test_every_reason_to_stop_has_a_word(name: str, reason: str) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "anthropic_messages": {"content": [{"type": "text", "text": SAID}], "stop_reason": reason},
        "bedrock_converse": {"output": {"message": {"content": [{"text": SAID}]}}, "stopReason": reason},
        "gemini": {"candidates": [{"content": {"parts": [{"text": SAID}]}, "finishReason": reason}]},
        "openai_chat": {"choices": [{"message": {"content": SAID}, "finish_reason": reason}]},
    }
    try:
        response = codec_named(name).response(bodies[name])
    except ModelError as failed:  # an answer that is none
        assert failed.partial is not None
        assert failed.partial.message.text == SAID
        return
    assert response.raw_stop_reason == reason
    assert (response.stop_reason == "other") is (reason in WITHOUT_A_WORD)


# Streams that say something twice, too late or without its index, as proxies and careless servers do: the calls that
# they mean, and the text.
def start(index: int | None, name: str) -> dict[str, Any]:
    return {
        "contentBlockStart": {
            "contentBlockIndex": index,
            "start": {"toolUse": {"name": name, "toolUseId": "a"}},
        }
    }


def input_(index: int | None, piece: str) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"toolUse": {"input": piece}}}}


def said(index: int | None, text: str) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"text": text}}}


def wrote(index: int | None, text: str) -> dict[str, Any]:
    delta = {"type": "text_delta", "text": text}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def arguments(step: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.function_call_arguments.{step}", "item_id": "i", "output_index": 0, **fields}


def call_of(index: int | None, **function: str) -> dict[str, Any]:
    head = {"id": "c"} if "name" in function else {}
    call = {**head, **({} if index is None else {"index": index}), "function": function}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}


STOP = {"messageStop": {"stopReason": "tool_use"}}
ITEM = {"type": "function_call", "id": "i", "call_id": "c", "name": "f", "arguments": ""}
ADDED = {"type": "response.output_item.added", "output_index": 0, "item": ITEM}
FULL = '{"a":1}'


def finished(**fields: Any) -> list[dict[str, Any]]:
    item = {**ITEM, "arguments": FULL, **fields}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    return [done, {"type": "response.completed", "response": {"status": "completed", "output": [item]}}]


ODD: dict[str, tuple[str, list[dict[str, Any]], list[tuple[str, str]], str]] = {
    "a call that begins behind its first piece": (
        "bedrock_converse", [input_(0, ""), start(0, "f"), input_(0, FULL), STOP], [("f", FULL)], "",
    ),
    "a call whose name comes behind a piece": (
        "bedrock_converse", [input_(0, FULL), start(0, "f"), STOP], [("f", FULL)], "",
    ),
    "a call that begins without its index": (
        "bedrock_converse", [start(None, "f"), input_(0, FULL), STOP], [("f", FULL)], "",
    ),
    "pieces without their index": (
        "bedrock_converse", [said(0, "Hel"), said(None, "lo"), start(1, "f"), input_(None, FULL), STOP],
        [("f", FULL)], "Hello",
    ),
    "pieces of Anthropic without their index": (
        "anthropic_messages", [*BEGUN["anthropic_messages"], wrote(None, "l"), wrote(0, "o"), {"type": "message_stop"}],
        [], "Hello",
    ),
    "a call of Chat that begins without its index": (
        "openai_chat", [call_of(None, name="f", arguments=""), call_of(1, arguments=FULL), chat(finish="tool_calls")],
        [("f", FULL)], SAID,
    ),
    "a last piece of Chat with another id": (
        "openai_chat",
        [
            call_of(0, name="f", arguments=FULL),
            {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": 7, "function": {}}]}}]},
            chat(finish="tool_calls"),
        ],
        [("f", FULL)],
        SAID,
    ),
    "a piece behind the whole arguments": (
        "openai_responses", [ADDED, arguments("done", arguments=FULL), arguments("delta", delta=FULL), *finished()],
        [("f", FULL)], "",
    ),
    "a finished call without its name": (
        "openai_responses", [ADDED, arguments("delta", delta=FULL), *finished(name=True, call_id="")],
        [("f", FULL)], "",
    ),
    "a finished call whose arguments are a number": (
        "openai_responses", [ADDED, arguments("delta", delta=FULL), *finished(arguments=1)], [("f", FULL)], "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("codec", "events", "calls", "text"), ODD.values(), ids=ODD)
def test_what_an_odd_stream_means(
    codec: str, events: list[dict[str, Any]], calls: list[tuple[str, str]], text: str
) -> None:
    decoder = codec_named(codec).decoder()
    chunks = [chunk for event in events for chunk in decoder.feed(event)] + last_chunks(decoder)
    response = decoder.finish()
    assert [(call.name, call.arguments) for call in response.message.calls] == calls
    assert response.message.text == text == "".join(c.text for c in chunks if isinstance(c, TextChunk))
    assert "".join(c.arguments for c in chunks if isinstance(c, CallChunk)) == "".join(a for _, a in calls)
    assert "".join(c.name for c in chunks if isinstance(c, CallChunk)) == "".join(name for name, _ in calls)
