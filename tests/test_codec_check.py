"""`toolcrib.testing.check_codec`: our own codecs pass it, and codecs that are wrong in one way do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from toolcrib.codecs import Codec, Decoder, ModelError, OpenAIChatCodec
from toolcrib.codecs.catalog import CODECS, codec_named
from toolcrib.codecs.text import Form, TextCodec
from toolcrib.codecs.text.delimiters import Delimiters
from toolcrib.messages import Chunk, Request, Response, TextChunk
from toolcrib.testing import Scripted, check_codec

PROVIDERS = [
    *((name, "") for name in CODECS),
    ("openai_chat", "mistral"),
    ("openai_chat", "some-server:8000"),
]


@pytest.mark.parametrize(("name", "provider"), PROVIDERS)
def test_our_own(name: str, provider: str) -> None:
    check_codec(codec_named(name, provider), count=60).raise_for_findings(warnings=True)


def test_an_unknown_format_names_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="openai_chat, openai_responses"):
        codec_named("soap")


class Faulty(OpenAIChatCodec):
    """A codec whose body is spoiled."""

    def __init__(self, spoil: Callable[[dict[str, Any], Request], None]) -> None:
        super().__init__()
        self._spoil = spoil

    def request(self, request: Request, *, model: str, stream: bool) -> dict[str, Any]:
        body = super().request(request, model=model, stream=stream)
        self._spoil(body, request)
        return body


def without_results(body: dict[str, Any], _: Request) -> None:
    body["messages"] = [message for message in body["messages"] if message["role"] != "tool"]


def in_disorder(body: dict[str, Any], _: Request) -> None:
    body["messages"] = body["messages"][::-1]


def empty_list(body: dict[str, Any], _: Request) -> None:
    body["messages"].append({"role": "assistant", "content": "x", "tool_calls": []})


def twice(body: dict[str, Any], _: Request) -> None:
    body["messages"] = body["messages"] * 2


def changes_its_input(_: dict[str, Any], request: Request) -> None:
    if request.messages:
        request.messages.pop()


def breaks(body: dict[str, Any], _: Request) -> None:
    body["first"] = body["messages"][0]["tool_calls"][0]


def no_choice(body: dict[str, Any], _: Request) -> None:
    body.pop("tool_choice", None)


def no_stop(body: dict[str, Any], _: Request) -> None:
    body.pop("stop", None)


FAULTS: dict[str, tuple[Callable[[dict[str, Any], Request], None], str]] = {
    "loses results": (without_results, "were lost"),
    "turns them round": (in_disorder, "another order"),
    "sends an empty list": (empty_list, "an empty list of tool calls"),
    "sends everything twice": (twice, "sent twice"),
    "changes its input": (changes_its_input, "changed the messages"),
    "raises": (breaks, "KeyError"),
    "drops the choice": (no_choice, "makes no difference"),
    "drops the stop words": (no_stop, "stop is claimed"),
}


@pytest.mark.parametrize(("spoil", "words"), FAULTS.values(), ids=FAULTS)
def test_a_faulty_request_is_found(spoil: Callable[[dict[str, Any], Request], None], words: str) -> None:
    report = check_codec(Faulty(spoil), count=30)
    assert not report.ok
    assert any(words in finding.message for finding in report.findings), report.findings


def test_a_false_claim_is_found() -> None:
    codec = OpenAIChatCodec()
    codec.features = replace(codec.features, images=False)  # type: ignore[misc]
    assert any(
        "images: sent, not claimed" in finding.message for finding in check_codec(codec, count=5).findings
    )


class Fragile(OpenAIChatCodec):
    """A codec that trusts what comes."""

    def response(self, body: dict[str, Any], request: Request | None = None) -> Response:
        if not isinstance(body.get("choices"), list):
            raise KeyError("choices")
        return super().response(body, request)


def test_a_fragile_reader_is_found() -> None:
    assert any("response() raises KeyError" in f.message for f in check_codec(Fragile(), count=30).findings)


class Doubled:
    """A decoder that says each text twice."""

    def __init__(self, inner: Decoder) -> None:
        self._inner = inner

    def feed(self, event: dict[str, Any]) -> list[Chunk]:
        chunks = self._inner.feed(event)
        return [*chunks, *(chunk for chunk in chunks if isinstance(chunk, TextChunk))]

    def finish(self) -> Response:
        return self._inner.finish()


class Echo(OpenAIChatCodec):
    def decoder(self, request: Request | None = None) -> Any:
        return Doubled(super().decoder(request))


EXCHANGE = {
    "id": "hello",
    "api": "chat",
    "response": {
        "framing": "sse",
        "sse_events": [
            {"data": '{"choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}]}'},
            {"data": "[DONE]"},
        ],
    },
}


def test_recorded_exchanges_are_read() -> None:
    good: Codec = OpenAIChatCodec()
    assert check_codec(good, exchanges=[EXCHANGE], count=1).ok
    report = check_codec(Echo(), exchanges=[EXCHANGE], count=1)
    assert any("hello: the streamed text is not" in finding.message for finding in report.findings)


def test_a_recorded_error_is_no_finding() -> None:
    exchange = {**EXCHANGE, "response": {"framing": "json", "body": {"error": {"message": "no"}}}}
    with pytest.raises(ModelError):
        OpenAIChatCodec().response({"error": {"message": "no"}})
    assert check_codec(OpenAIChatCodec(), exchanges=[exchange], count=1).ok


@pytest.mark.parametrize(
    ("begin", "end", "words"),
    [
        ("<call>", "</call>", ""),
        ("<kall>", "</call>", "calls, 0 are read as they were written"),
        ("<call>", "</kall>", "'</call>' is left over"),
    ],
)
def test_a_text_format_that_does_not_read_what_it_teaches(begin: str, end: str, words: str) -> None:
    looked_for = Delimiters(sections={begin: end}, section_ends=(end,))
    mine = Form(name="mine", call="<call>{call}</call>", own_delimiters=looked_for)
    codec = TextCodec(OpenAIChatCodec("s"))
    codec.format = mine  # put in place afterwards: the codec itself refuses most of these
    said = " ".join(map(str, check_codec(codec, count=3).findings))
    assert words in said
    assert bool(said) == bool(words)


@pytest.mark.parametrize("thing", [OpenAIChatCodec, "openai_chat", Scripted([])])
def test_what_is_no_codec_is_refused(thing: Any) -> None:
    with pytest.raises(TypeError, match="expected a codec, such as"):
        check_codec(thing)
