"""A run's requests are written from what was written before, and say what a request without a cache says."""

from __future__ import annotations

import copy
import json
import operator
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
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
            change(part.result.extras) if part.result.extras else setattr(
                part.result, "extras", {"openai": {}}
            )
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


CHANGES: dict[str, Callable[[ToolResult], object]] = {
    "parts": lambda result: setattr(result, "parts", (Text("other"),)),
    "parts, as a list": lambda result: setattr(result, "parts", [Text("other")]),
    "an error": lambda result: setattr(result, "is_error", not result.is_error),
    "extras": lambda result: setattr(
        result, "extras", {"anthropic": {"cache_control": {"type": "ephemeral"}}}
    ),
    "in extras": lambda result: operator.setitem(result.extras or {}, "anthropic", {"other": True}),
}


def looked_up(count: int, **fields: Any) -> list[Message]:
    """A conversation with so many results."""
    messages = [Message.user("go")]
    for number in range(count):
        call = ToolCall("look", "{}", f"c{number}")
        result = ToolResult(f"seen {number}", extras={"anthropic": {}}, **fields)
        messages += [Message.assistant(call), Message("tool", [ResultPart(call, result)])]
    return messages


@each("kind", CHANGES)
def test_each_conversation_with_a_result_notices_that_it_changed(kind: str) -> None:
    """Also a second time, and where another conversation has sent the result before."""
    first = looked_up(3)
    second = [*first, *looked_up(2)]
    caches = [(ConversationCache(), first), (ConversationCache(), second), (ConversationCache(), first[:3])]
    texts = list[str]()
    for number in (None, 0, 0, 2):
        if number is not None:
            CHANGES[kind](first[2 * number + 2].results[0])
        for cache, conversation in caches:
            plain = Request(list(conversation), SPECS)
            kept = replace(plain, messages=cache.follow(conversation), cache=cache)
            texts.append(wire("anthropic", kept))
            assert texts[-1] == wire("anthropic", plain)
    assert texts[0] != texts[3]


def test_what_nobody_changed_is_not_written_again() -> None:
    """Fields that no request shows, copies of a result and results of others leave a conversation alone."""
    conversation, cache = looked_up(3), ConversationCache()
    codec, model, _ = CODECS["openai"]

    def entries() -> list[Any]:
        body = codec.request(Request(cache.follow(conversation), cache=cache), model=model, stream=True)
        messages: list[Any] = body["messages"]
        return messages

    before, result = entries(), conversation[2].results[0]
    result.full_output, result.outside, result.edits = "out.txt", True, ()
    for made in (copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result)), result.copy()):
        assert made == result
        made.parts = (Text("other"),)
    ToolResult("another").is_error = True
    assert all(map(operator.is_, before[:-1], entries()))
    result.parts = (Text("other"),)
    assert entries()[2]["content"] == "other" and before[2]["content"] == "seen 0"


def test_parts_that_were_given_as_a_list_are_the_results_own() -> None:
    parts: Any = [Text("seen")]
    call, result = ToolCall("look", "{}", "c"), ToolResult(parts)
    conversation, cache = (
        [Message.assistant(call), Message("tool", [ResultPart(call, result)])],
        ConversationCache(),
    )
    for _ in range(2):
        request = Request(cache.follow(conversation), cache=cache)
        assert "more" not in wire("openai", request)
        parts.append(Text("more"))
    assert result == ToolResult("seen") and result.parts == (Text("seen"),)
    result.parts = "other"  # type: ignore[assignment]
    assert result == ToolResult("other")


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
