"""Recorded conversations as long ones: what is sent has the same beginning, and stays legal without old results."""

from __future__ import annotations

import json
from functools import cache
from types import SimpleNamespace
from typing import Any

from tests.cases import each
from tests.conformance.test_cassettes_requests import RECORDS, neutral
from tests.legal_bodies import CHECKERS
from tests.test_clear_results import REMOVED, Clock, requests_of
from tests.test_codec_journeys import ROUTES, body_for
from tests.test_prompt_cache import bodies_of, check_prefixes
from toolcrib.agent import ClearOldResults
from toolcrib.agent.read_result import ReadResult, ReadResultParams, handle_of
from toolcrib.content import Text
from toolcrib.messages import Message, ResultPart, messages_from_json, messages_to_json
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec


@cache
def conversations() -> dict[str, list[Message]]:
    """The recorded conversations with results, each once, with an answer at their end."""
    found: dict[str, list[Message]] = {}
    for record in RECORDS:
        messages = neutral(record).messages
        if any(message.results for message in messages):
            found.setdefault(json.dumps(messages_to_json(messages)), messages)
    return {str(number): [*m, Message("assistant", [Text("end")])] for number, m in enumerate(found.values())}


def lengthened(conversation: list[Message], times: int) -> list[Message]:
    """A conversation whose results are long and come again and again."""
    start = next(index for index, message in enumerate(conversation) if message.role == "assistant")
    head, body = conversation[:start], conversation[start:-1]
    longer = [*head, *(message for _ in range(times) for message in [*body, Message.user("go on")])]
    copied = messages_from_json(json.loads(json.dumps(messages_to_json(longer))))
    for message in copied:
        for part in message.parts:
            if isinstance(part, ResultPart):
                part.record(
                    ToolResult((*part.result.parts, Text("word " * 2_000)), extras=part.result.extras)
                )
    return [*copied, conversation[-1]]


def tools_of(conversation: list[Message]) -> list[ToolSpec]:
    names = sorted({call.name for message in conversation for call in message.calls})
    return [ToolSpec(name, "Does it.", {"type": "object", "properties": {}}) for name in names]


def test_there_are_recorded_conversations() -> None:
    assert len(conversations()) > 100


@each("route", ROUTES)
def test_each_recorded_request_begins_with_the_one_before_it(route: str) -> None:
    for name, conversation in conversations().items():
        try:
            check_prefixes(bodies_of(route, conversation, tools_of(conversation)))
        except AssertionError as problem:
            raise AssertionError(f"{name}: {problem}") from problem


@each("route", ROUTES)
def test_recorded_conversations_stay_legal_without_their_old_results(route: str) -> None:
    removed = 0
    for name, conversation in conversations().items():
        sent = requests_of(lengthened(conversation, 3), ClearOldResults(keep=1), Clock(), pause=301.0)
        removed += sum(REMOVED in result.text for message in sent[-1] for result in message.results)
        try:
            CHECKERS[route](body_for(route, sent[-1], tools_of(conversation)))
        except AssertionError as problem:
            raise AssertionError(f"{name}: {problem}") from problem
    assert removed > 100


def test_every_recorded_result_opens_again_word_for_word() -> None:
    opener: Any = ReadResult()
    context = SimpleNamespace(key=SimpleNamespace(run="r"))
    for conversation in conversations().values():
        saved = messages_from_json(json.loads(json.dumps(messages_to_json(conversation))))
        opener.conversations["r"] = saved
        for message in conversation:
            for part in message.parts:
                if isinstance(part, ResultPart):
                    opened = opener.execute(ReadResultParams(handle_of(part)), context)
                    assert opened.text == part.result.text
