"""What is sent is the same from turn to turn, byte for byte, so that providers find it in their cache."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from tests.legal_bodies import CHECKERS
from tests.properties import examples
from tests.test_clear_results import Recording
from tests.test_codec_journeys import (
    PICTURE,
    ROUTES,
    SPECS,
    answered_by,
    asked,
    body_for,
    full_conversation,
    journeys,
    marks,
    results,
)
from toolcrib import Agent, Effect, tool
from toolcrib.call import ToolCall
from toolcrib.codecs.anthropic_messages import AnthropicMessagesCodec
from toolcrib.codecs.bedrock_converse import BedrockConverseCodec
from toolcrib.codecs.cache_breakpoints import CacheLifetime
from toolcrib.codecs.catalog import codec_named
from toolcrib.codecs.codec import Codec
from toolcrib.codecs.text.codec import TextCodec
from toolcrib.codecs.text.formats import BY_NAME
from toolcrib.content import Text
from toolcrib.messages import Message, Request, ResultPart, ToolChoice, messages_from_json, messages_to_json
from toolcrib.models.anthropic import AnthropicMessages
from toolcrib.models.bedrock import BedrockConverse, BedrockMessages
from toolcrib.models.fallback import Fallback
from toolcrib.models.openai_responses import OpenAIResponses
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
CALLS = [
    {"id": "call_1", "name": "a.b", "args": {"b": 1, "a": [2.50, "é"]}},
    {"id": "", "name": "search", "args": {"q": "x"}},
]
SEARCH = ToolSpec("search", "Searches.", {"type": "object", "properties": {"q": {"type": "string"}}})


def turns_of(route: str, turns: int = 4) -> list[Message]:
    """A conversation as an agent has it: thinking, words and parallel calls, whose results follow."""
    conversation = [Message.system("Be brief."), Message.user("go")]
    for number in range(turns):
        answer = answered_by(route, CALLS, f"t{number}", think=True, speak=number % 2 == 0)
        told = [ResultPart(call, ToolResult((Text(f"result {number}"), PICTURE))) for call in answer.calls]
        conversation += [answer, Message("tool", [*told])]
    last = answered_by(route, [], "end", think=True, speak=True)
    return [*conversation, last, Message.user("and now?"), last]


def bodies_of(route: str, conversation: list[Message], tools: list[ToolSpec]) -> list[dict[str, Any]]:
    """The bodies of the requests that the answers of a conversation came from."""
    ends = [index for index, message in enumerate(conversation) if message.role == "assistant"]
    return [body_for(route, conversation[:end], tools) for end in ends if end]


def conversation_in(body: dict[str, Any]) -> Any:
    return body[next(key for key in ("messages", "input", "contents") if key in body)]


def check_prefixes(bodies: list[dict[str, Any]]) -> None:
    """Each body begins with the one before it: the same head, and a longer conversation."""
    for before, after in itertools.pairwise(bodies):
        old, new = conversation_in(before), conversation_in(after)
        assert list(before) == list(after)
        heads = [
            {k: v for k, v in body.items() if v is not conversation_in(body)} for body in (before, after)
        ]
        assert json.dumps(heads[0]) == json.dumps(heads[1])
        # What may come after is the end of a text, a block and a turn.
        assert json.dumps(new).startswith(json.dumps(old).rstrip('"}]'))


@each("route", ROUTES)
def test_each_request_begins_with_the_one_before_it(route: str) -> None:
    bodies = bodies_of(route, turns_of(route), SPECS)
    assert len(bodies) == 6
    check_prefixes(bodies)


@each("route", ROUTES)
@each("origin", ["openai", "responses", "anthropic", "gemini", "bedrock"])
def test_also_where_the_conversation_began_elsewhere(origin: str, route: str) -> None:
    check_prefixes(bodies_of(route, full_conversation(origin) + turns_of(route)[2:], SPECS)[2:])


@each("route", ROUTES)
def test_a_saved_conversation_is_sent_with_the_same_bytes(route: str) -> None:
    conversation = turns_of(route)
    saved = messages_from_json(json.loads(json.dumps(messages_to_json(conversation))))
    assert json.dumps(body_for(route, saved, SPECS)) == json.dumps(body_for(route, conversation, SPECS))


@each("route", ROUTES)
def test_the_last_request_without_calls_keeps_the_tools_where_the_provider_can_be_told(route: str) -> None:
    codec, model, extras = ROUTES[route]
    conversation = turns_of(route)[:-1]
    free, none = (
        codec.request(Request(conversation, SPECS, choice, extras=extras), model=model, stream=False)
        for choice in (ToolChoice(), ToolChoice("none"))
    )
    if "none" in codec.features.tool_choice:
        assert none.get("tools") == free.get("tools")


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Answers of several providers in one conversation, as an agent has it: all calls have results."""
    conversation = [Message.system("Be brief."), Message.user("go")]
    for number in range(draw(st.integers(1, 4))):
        answer = answered_by(
            draw(st.sampled_from(sorted(ROUTES))),
            draw(st.lists(asked, max_size=3)),
            f"{draw(marks)}n{number}",
            think=draw(st.booleans()),
            speak=draw(st.booleans()),
        )
        told = [ResultPart(call, draw(results)) for call in answer.calls]
        conversation += [answer, Message("tool", [*told])] if told else [answer]
        if not told or draw(st.booleans()):
            conversation.append(Message.user("on", *draw(st.sampled_from([[], [PICTURE]]))))
    return [*conversation, Message("assistant", [Text("end")])]


@pytest.mark.parametrize("route", ROUTES)
@examples(30)
@given(conversation=conversations())
def test_any_request_of_an_agent_begins_with_the_one_before_it(
    route: str, conversation: list[Message]
) -> None:
    check_prefixes(bodies_of(route, conversation, SPECS))


def test_an_agent_sends_the_same_beginning_also_after_repairs_refusals_and_failures() -> None:
    @tool(effect=Effect.READ, secrets=())
    def page(number: int) -> str:
        """Read a page."""
        if number > 5:
            raise ValueError("no such page")
        return f"page {number}"

    written = [
        '{"number": 1}',
        '{"number": "2"}',
        '{"number": 3',
        '{"numbr": 4}',
        '{"number": 9}',
        '{ "number":5 }',
    ]
    turns = [{"calls": [{"name": "page", "arguments": arguments}] * 2} for arguments in written]
    model = Recording([*turns, {"calls": [{"name": "nothing", "arguments": {}}]}, {"text": "done"}])
    Agent(model, [page], instructions=lambda: "Be brief.", max_failures=9).run_sync("go")
    assert len(model.seen) == 8
    for codec, name, extras in ROUTES.values():
        requests = [Request(seen.messages, seen.tools, extras=extras) for seen in model.seen]
        check_prefixes([codec.request(request, model=name, stream=True) for request in requests])


# -- the marks of Anthropic and Bedrock


def marks_in(value: Any) -> list[Any]:
    """All marks of a body, in their order."""
    if isinstance(value, dict):
        own = [value[key] for key in ("cache_control", "cachePoint") if key in value]
        return [*own, *(mark for item in value.values() for mark in marks_in(item))]
    return [mark for item in value for mark in marks_in(item)] if isinstance(value, list) else []


def unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
    if isinstance(value, list):
        return [
            unmarked(item) for item in value if not (isinstance(item, dict) and item.keys() == {"cachePoint"})
        ]
    return value


MARKING: dict[str, tuple[Any, str]] = {
    "anthropic": (AnthropicMessagesCodec, "claude-sonnet-4-5"),
    "bedrock": (BedrockConverseCodec, CLAUDE),
}


def marked_body(
    route: str, messages: list[Message], tools: list[ToolSpec], cache: CacheLifetime | None = "5m"
) -> dict[str, Any]:
    make, model = MARKING[route]
    codec: Codec = make(cache=cache)
    return codec.request(Request(messages, tools), model=model, stream=False)


@each("route", MARKING)
def test_marks_stand_after_the_instructions_and_the_last_two_turns(route: str) -> None:
    body = marked_body(route, turns_of(route)[:-1], SPECS)
    assert len(marks_in(body)) == 3
    assert len(marks_in(body["system"])) == 1
    users = [turn for turn in body["messages"] if turn["role"] == "user"]
    assert [len(marks_in(turn)) for turn in users] == [0] * (len(users) - 2) + [1, 1]
    assert marks_in(users[-1]["content"][-1])
    CHECKERS[route](body)


@each("route", MARKING)
def test_without_instructions_the_tools_are_marked(route: str) -> None:
    body = marked_body(route, [Message.user("go")], [SEARCH])
    declared = body.get("tools") or body["toolConfig"]["tools"]
    assert len(marks_in(declared[-1])) == 1
    assert len(marks_in(body)) == 2


@each("route", MARKING)
def test_a_question_that_nothing_follows_is_not_marked(route: str) -> None:
    assert not marks_in(marked_body(route, [Message.system("Be brief."), Message.user("Hi")], []))


@each("route", MARKING)
def test_an_hour_is_said_in_every_mark(route: str) -> None:
    marks = marks_in(marked_body(route, turns_of(route), SPECS, "1h"))
    assert len(marks) == 3
    assert {mark["ttl"] for mark in marks} == {"1h"}


@each("route", MARKING)
def test_marks_of_ones_own_replace_ours(route: str) -> None:
    key, mark = (
        ("cache_control", {"type": "ephemeral"})
        if route == "anthropic"
        else ("cachePoint", {"type": "default"})
    )
    own = Message("user", [Text("a long book", {route: {key: mark}}), Text("go")])
    assert len(marks_in(marked_body(route, [own], [SEARCH]))) == 1


@each("route", MARKING)
def test_marks_change_nothing_but_themselves(route: str) -> None:
    conversation = turns_of(route)
    before = json.dumps(messages_to_json(conversation))
    with_marks, without = (marked_body(route, conversation, SPECS, cache) for cache in ("5m", None))
    assert unmarked(with_marks) == without
    assert json.dumps(messages_to_json(conversation)) == before


@pytest.mark.parametrize("route", MARKING)
@examples(40)
@given(conversation=journeys())
def test_any_marked_request_is_legal(route: str, conversation: list[Message]) -> None:
    body = marked_body(route, conversation, SPECS)
    CHECKERS[route](body)
    assert len(marks_in(body)) <= 4


def test_deferred_tools_take_no_mark() -> None:
    late = ToolSpec("late", "Later.", SEARCH.input_schema, extras={"anthropic": {"defer_loading": True}})
    body = marked_body("anthropic", [Message.user("go")], [SEARCH, late])
    assert [bool(marks_in(tool)) for tool in body["tools"]] == [True, False]


@each(
    ("model", "cache", "seconds"),
    [
        (AnthropicMessages("claude-sonnet-4-5", api_key="k"), "5m", 300.0),
        (AnthropicMessages("claude-sonnet-4-5", api_key="k", cache="1h"), "1h", 3600.0),
        (AnthropicMessages("claude-sonnet-4-5", api_key="k", cache=None), None, 300.0),
        (AnthropicMessages("kimi", api_key="k", base_url="http://localhost:1"), None, 300.0),
        (AnthropicMessages("kimi", api_key="k", base_url="http://localhost:1", cache="5m"), "5m", 300.0),
        (BedrockConverse(CLAUDE, region="us-east-1"), "5m", 300.0),
        (BedrockMessages(CLAUDE, region="us-east-1"), "5m", 300.0),
        (BedrockConverse("anthropic.claude-3-haiku-20240307-v1:0", region="us-east-1"), None, 300.0),
        (BedrockConverse("amazon.nova-pro-v1:0", region="us-east-1"), None, 300.0),
        (BedrockConverse("amazon.nova-pro-v1:0", region="us-east-1", cache="5m"), "5m", 300.0),
    ],
    ids=lambda value: str(value),
)
def test_which_models_mark_by_themselves(model: Any, cache: str | None, seconds: float) -> None:
    assert (model.codec.cache, model.cache_seconds) == (cache, seconds)


def test_how_long_a_prompt_is_kept_is_known_of_openai_and_of_the_first_of_a_list() -> None:
    assert OpenAIResponses("gpt-5.6", api_key="k").cache_seconds == 1800.0
    assert OpenAIResponses("x", api_key="k", base_url="http://localhost:8000/v1").cache_seconds is None
    first = AnthropicMessages("claude-sonnet-4-5", api_key="k", cache="1h")
    assert Fallback([first, OpenAIResponses("gpt-5.6", api_key="k")]).cache_seconds == 3600.0


def test_the_cache_key_of_openai_is_a_field_of_the_body() -> None:
    model = OpenAIResponses("gpt-5", api_key="k", body={"prompt_cache_key": "my agent"})
    assert model._request(Request([Message.user("Hi")]), stream=True)["prompt_cache_key"] == "my agent"


@each("name", sorted(BY_NAME))
def test_models_that_write_text_are_sent_the_same_beginning_too(name: str) -> None:
    codec = TextCodec(codec_named("openai_chat"), name, "qwen3")
    conversation = [Message.system("Be brief."), Message.user("go")]
    for number in range(4):
        call = ToolCall("search", '{"q": "x", "a": 1}', f"call_{number}")
        conversation += [Message("assistant", [Text("I look."), call])]
        conversation += [Message("tool", [ResultPart(call, ToolResult.of(f"result {number}"))])]
    ends = [index for index, message in enumerate(conversation) if message.role == "assistant"]
    requests = [Request(conversation[:end], [SEARCH]) for end in ends]
    check_prefixes([codec.request(request, model="qwen3", stream=True) for request in requests])
