"""Recorded answers that were held to a schema: a typed run asks in the same place, and reads the same value."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator
from typing import Any

from tests.cases import each
from tests.conformance.cassettes import all_records
from tests.conformance.conftest import load_cases
from toolcrib import Agent
from toolcrib.agent import OutputType, Reason
from toolcrib.codecs import Codec, GeminiCodec, OpenAIChatCodec, OpenAIResponsesCodec
from toolcrib.content import Text
from toolcrib.json_text.values import same_json
from toolcrib.messages import Chunk, Message, Request, Response
from toolcrib.models.model import chunks_of
from toolcrib.models.replay import STREAMED, recorded_events

# Of each interface: the codec, the target, and where its request has the schema.
WIRES: dict[str, tuple[Codec, str, tuple[str, ...]]] = {
    "chat": (OpenAIChatCodec("openai"), "openai.chat", ("response_format", "json_schema", "schema")),
    "responses": (OpenAIResponsesCodec(), "openai.responses", ("text", "format", "schema")),
    "generateContent": (GeminiCodec(), "gemini", ("generationConfig", "responseJsonSchema")),
}


def at(body: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body


def typed_records() -> list[tuple[str, dict[str, Any]]]:
    return [
        (record["id"], record)
        for api, (_, _, place) in WIRES.items()
        for record in all_records(api)
        if isinstance(at(record, ("request", "body", *place)), dict) and not record["has_tool_calls"]
    ]


class Played:
    """A model that gives a recorded answer, whatever it is asked; the last request is kept as it would be sent."""

    name = "played"

    def __init__(self, record: dict[str, Any]) -> None:
        self.record = record
        self.codec, self.target, _ = WIRES[record["api"]]
        self.body: dict[str, Any] = {}

    async def stream(self, request: Request) -> AsyncIterator[Chunk | Response]:
        self.body = self.codec.request(request, model=self.record["model"], stream=True)
        response = self.record["response"]
        if response["framing"] not in STREAMED:
            whole = self.codec.response(response["body"], request)
            for chunk in chunks_of(whole):
                yield chunk
            yield whole
            return
        decoder = self.codec.decoder(request)
        for event in recorded_events(response):
            for chunk in decoder.feed(event):
                yield chunk
            await asyncio.sleep(0)
        yield decoder.finish()

    async def respond(self, request: Request) -> Response:
        raise NotImplementedError


@each("record", lambda: [record for _, record in typed_records()], ids=lambda record: record["id"])
def test_a_recorded_typed_answer_is_read_and_asked_for_as_it_was(record: dict[str, Any]) -> None:
    place = WIRES[record["api"]][2]
    schema, model = at(record["request"]["body"], place), Played(record)
    shown: list[Any] = []

    async def run() -> Any:
        begun = Agent(model, output=OutputType(schema, retries=0)).start("go")
        shown.extend([copy.deepcopy(partial.value) async for partial in begun.stream_partial()])
        return await begun

    outcome = asyncio.run(run())
    if record["finish_reason"] in ("length", "MAX_TOKENS", "incomplete"):
        assert outcome.reason is Reason.REFUSED
        return
    assert (outcome.reason, outcome.rung) == (Reason.ANSWERED, "native"), outcome.detail
    assert outcome.output == json.loads(record["expected_text"]) == shown[-1]
    sent = at(model.body, place)
    assert set(sent["properties"]) == set(schema["properties"])
    assert set(schema.get("required", ())) <= set(sent["required"])
    other = at(model.body, place[:-1]).keys() ^ at(record["request"]["body"], place[:-1]).keys()
    assert other <= {
        "description",
        "maxOutputTokens",
        "temperature",
        "thinkingConfig",
        "verbosity",
        "strict",
    }, other


def test_there_are_recordings_of_each_interface() -> None:
    found = typed_records()
    assert {record["api"] for _, record in found} == set(WIRES)
    assert len(found) >= 39


class Writes:
    """A model that writes one text, in pieces, whatever it is asked."""

    name = "writes"

    def __init__(self, text: str, size: int) -> None:
        self.text, self.size = text, size

    async def stream(self, request: Request) -> AsyncIterator[Chunk | Response]:
        response = Response(Message("assistant", [Text(self.text)]))
        for chunk in chunks_of(response, self.size):
            yield chunk
            await asyncio.sleep(0)
        yield response

    async def respond(self, request: Request) -> Response:
        raise NotImplementedError


def typed_run(text: str, size: int = 0) -> tuple[Any, list[Any]]:
    async def run() -> tuple[Any, list[Any]]:
        output: OutputType[Any] = OutputType({"type": "object"}, rung="text", retries=0)
        begun = Agent(Writes(text, size), output=output).start("go")
        shown = [copy.deepcopy(partial.value) async for partial in begun.stream_partial()]
        return await begun, shown

    return asyncio.run(run())


@each("case", load_cases("cases/json-repair/wild_tool_args.json"), ids=lambda case: case["name"])
def test_a_broken_answer_has_its_one_reading_or_none(case: dict[str, Any]) -> None:
    outcome, _ = typed_run(case["input"])
    if case["safety"] == "safe" and isinstance(case["expected"], dict):
        assert same_json(outcome.output, case["expected"])
    elif case["safety"] == "refuse":
        assert outcome.reason is Reason.INVALID_OUTPUT
    elif outcome.has_output:
        assert same_json(outcome.output, case["expected"])


@each("case", load_cases("cases/partial-json/stream_vectors.json"), ids=lambda case: case["name"])
def test_a_growing_answer_shows_what_is_stable_at_each_character(case: dict[str, Any]) -> None:
    if not isinstance(case["final"], dict):
        return
    outcome, shown = typed_run(case["input"], 1)
    assert outcome.output == case["final"]
    stable = [value for _, value, has_value, _ in case["steps"] if has_value]
    at_some_step = [json.dumps(value) for value in stable]
    assert all(json.dumps(value) in at_some_step for value in shown)
    assert shown[-1] == stable[-1]
