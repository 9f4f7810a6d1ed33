"""A run's requests are written from what was written before, and say what a request without a cache says."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from tests.test_codec_journeys import ROUTES, SPECS, answered_by, full_conversation, journeys
from toolcrib import Effect, tool
from toolcrib.agent import Agent
from toolcrib.call import ToolCall
from toolcrib.codecs.text.codec import TextCodec
from toolcrib.codecs.wire_json import encodable
from toolcrib.content import Json, Text
from toolcrib.conversation_cache import ConversationCache, cache_of
from toolcrib.frozen import EMPTY
from toolcrib.mending import mend
from toolcrib.messages import Message, Opaque, Reasoning, Request, ResultPart
from toolcrib.models import Scripted
from toolcrib.result import ToolResult

CODECS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    **ROUTES,
    "anthropic, marked": (type(ROUTES["anthropic"][0])(cache="1h"), "claude-x", {}),
    "bedrock, marked": (type(ROUTES["bedrock"][0])(cache="5m"), "anthropic.claude-x", {}),
    "text over chat": (TextCodec(ROUTES["others"][0], "hermes"), "m", {}),
    "text over messages": (TextCodec(ROUTES["anthropic"][0], "tool_call"), "m", {}),
}


def wire(route: str, request: Request) -> str:
    codec, model, extras = CODECS[route]
    body = codec.request(replace(request, extras=extras), model=model, stream=True)
    return json.dumps(encodable(body))


def changed(conversation: list[Message], number: int, kind: str) -> list[Message]:
    """The conversation after somebody changed it: a message replaced, or something within one, in place."""
    message = conversation[number]
    if kind == "replaced":
        return [*conversation[:number], replace(message, parts=[*message.parts]), *conversation[number + 1 :]]
    if kind == "dropped":
        return conversation[:number] + conversation[number + 1 :]
    if kind == "head":
        return [Message.system(f"It is {len(conversation)}."), *conversation]
    if message.extras is not EMPTY:
        change(message.extras)
    for part in message.parts:
        if isinstance(part, ResultPart):
            part.result.parts, part.result.is_error = (Text("changed"),), not part.result.is_error
        elif isinstance(part, Opaque) and isinstance(part.data, dict):
            part.data["changed"] = "yes"
        elif isinstance(part, ToolCall) and isinstance(part.arguments, dict):
            part.arguments["changed"] = "yes"
        elif isinstance(part, Text | Reasoning | ToolCall) and part.extras is not EMPTY:
            change(part.extras)
    return conversation


def change(extras: Any) -> None:
    for provider in ("openai", "anthropic", "google"):
        extras.setdefault(provider, {})["changed"] = "yes"


def with_own_extras(message: Message) -> Message:
    """The message with empty extras of its own, which somebody may fill later."""
    parts = [
        replace(part, extras={}) if isinstance(part, Text | Reasoning) and not part.extras else part
        for part in message.parts
    ]
    return replace(message, parts=parts, extras=message.extras or {})


kinds = st.sampled_from(["", "", "", "replaced", "dropped", "head", "in place"])


@pytest.mark.parametrize("route", CODECS)
@examples(40)
@given(data=st.data())
def test_a_request_is_what_it_is_without_a_cache(route: str, data: st.DataObject) -> None:
    cache, conversation = ConversationCache(), list[Message]()
    for more in data.draw(st.lists(journeys(), min_size=1, max_size=4)):
        more = mend(more)[0] if data.draw(st.booleans()) else more
        more = list(map(with_own_extras, more)) if data.draw(st.booleans()) else more
        cut = data.draw(st.integers(0, len(more)))
        for piece in (more[:cut], more[cut:]):
            conversation += piece
            if conversation and (kind := data.draw(kinds)):
                conversation = changed(conversation, data.draw(st.integers(0, len(conversation) - 1)), kind)
            for tools in (SPECS, []):
                plain = Request(list(conversation), tools)
                kept = replace(plain, messages=cache.follow(conversation), cache=cache)
                assert wire(route, kept) == wire(route, plain)


@pytest.mark.parametrize("route", CODECS)
def test_a_body_that_was_sent_does_not_change_and_is_the_beginning_of_the_next(route: str) -> None:
    """What follows is added to the wire; nothing of it is written anew."""
    codec, model, extras = CODECS[route]
    conversation, cache = mend(full_conversation("openai"))[0], ConversationCache()
    bodies: list[tuple[dict[str, Any], str]] = []
    for number in range(3):
        call = {"id": f"c{number}", "name": "look", "args": {"n": [number]}}
        asked = answered_by("openai", [call], f"m{number}", think=False, speak=True)
        conversation += [asked, Message("tool", [ResultPart(asked.calls[0], ToolResult((Json({"n": 1}),)))])]
        request = Request(cache.follow(conversation), SPECS, extras=extras, cache=cache)
        body = codec.request(request, model=model, stream=True)
        bodies.append((body, json.dumps(body)))
    assert all(json.dumps(body) == text for body, text in bodies)
    (first, _), (second, _) = bodies[:2]
    field = next(name for name in ("messages", "input", "contents") if name in first)
    whole = list(map(json.dumps, first[field]))
    marked = 2 if "marked" in route else 0
    end = len(whole) - 1 - marked
    assert whole[:end] == [json.dumps(item) for item in second[field]][:end]
    assert all(one is other for one, other in zip(first[field][1:end], second[field][1:end], strict=True))


async def test_a_run_sends_each_request_with_what_was_written_before() -> None:
    """Also where somebody replaces a message of the run, or changes a result, while it runs."""
    bodies: list[tuple[str, str]] = []

    class Sending(Scripted):
        async def stream(self, request: Request) -> Any:
            assert cache_of(request) is not None
            bodies.append((wire("openai", request), wire("openai", replace(request, cache=None))))
            async for item in super().stream(request):
                yield item

    @tool(effect=Effect.READ, secrets=())
    def look(number: int) -> str:
        """Look."""
        if number == 2:
            run.messages[0] = Message.user("another task")
        elif number == 3:
            run.messages[2].results[0].parts = (Text("shorter"),)
        return f"seen {number}"

    turns = [{"calls": [{"name": "look", "arguments": {"number": number}}]} for number in range(5)]
    run = Agent(Sending([*turns, {"text": "done"}]), [look]).start("go")
    await run
    assert len(bodies) == 6 and all(kept == fresh for kept, fresh in bodies)
    assert "another task" in bodies[-1][0] and "shorter" in bodies[-1][0]
