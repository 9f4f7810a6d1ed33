"""Cohere's chat: what is sent."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.call import ToolCall
from toolcrib.codecs.cohere import CohereCodec
from toolcrib.content import Audio, File, Image, Json, Text
from toolcrib.messages import Message, Reasoning, Request, ResultPart, ToolChoice
from toolcrib.result import ToolResult
from toolcrib.spec import ToolSpec

CODEC = CohereCodec()
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ToolSpec("weather", "The weather.", SCHEMA)
NEWS = ToolSpec("news", "The news.", SCHEMA)
CALL = ToolCall("weather", '{"city":"Rome"}', "weather_1")
PLAN = Reasoning("I will look.", {"cohere": {"field": "tool_plan"}})
THOUGHT = Reasoning("Hm.", {"cohere": {"field": "thinking"}})


def sent(*messages: Message, **named: Any) -> dict[str, Any]:
    return CODEC.request(Request([*messages], **named), model="m", stream=False)


def wire(*messages: Message) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sent(*messages)["messages"]
    return found


def answered(
    *parts: Any, calls: tuple[ToolCall, ...] = (CALL,), result: ToolResult | None = None
) -> list[Message]:
    results = [ResultPart(call, result or ToolResult.of("20 C")) for call in calls]
    return [Message.user("Hi"), Message("assistant", [*parts, *calls]), Message("tool", [*results])]


def test_a_turn_with_tools() -> None:
    assert wire(Message.system("Be brief."), *answered(PLAN)) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "tool_plan": "I will look.",
            "tool_calls": [
                {
                    "id": "weather_1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"city":"Rome"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "weather_1", "content": "20 C"},
    ]


CHOICES: dict[str, tuple[ToolChoice, list[str], str | None]] = {
    "auto": (ToolChoice(), ["weather", "news"], None),
    "none": (ToolChoice("none"), ["weather", "news"], "NONE"),
    "required": (ToolChoice("required"), ["weather", "news"], "REQUIRED"),
    "one": (ToolChoice("required", ("news",)), ["news"], "REQUIRED"),
    "set": (ToolChoice("auto", ("news",)), ["news"], None),
    "no such tool": (ToolChoice("required", ("nothing",)), [], None),
}


@pytest.mark.parametrize("name", CHOICES)
def test_tool_choice(name: str) -> None:
    choice, tools, word = CHOICES[name]
    body = sent(Message.user("Hi"), tools=[WEATHER, NEWS], tool_choice=choice)
    assert [tool["function"]["name"] for tool in body.get("tools", ())] == tools
    assert body.get("tool_choice") == word


def test_the_rest_of_a_request() -> None:
    body = sent(
        Message.user("Hi"),
        tools=[
            ToolSpec(
                "weather", "The weather.", SCHEMA, extras={"cohere": {"function": {"x": 1}}, "other": {}}
            )
        ],
        max_tokens=5,
        temperature=0.5,
        stop=("END",),
        logprobs=True,
        top_logprobs=3,
        logit_bias={"1": 2},
        parallel_calls=False,
        extras={"cohere": {"documents": ["d"], "citation_options": {"mode": "OFF"}}, "openai": {"x": 1}},
    )
    assert body["tools"] == [
        {
            "type": "function",
            "function": {"name": "weather", "description": "The weather.", "parameters": SCHEMA, "x": 1},
        }
    ]
    del body["messages"], body["tools"]
    assert body == {
        "model": "m",
        "max_tokens": 5,
        "temperature": 0.5,
        "stop_sequences": ["END"],
        "logprobs": True,
        "documents": ["d"],
        "citation_options": {"mode": "OFF"},
    }


MAP = ToolSpec("store", "", {"type": "object", "additionalProperties": {"type": "string"}})
STRICT: dict[str, tuple[str, list[ToolSpec], bool | None]] = {
    "not asked for": ("openai", [WEATHER], None),
    "every tool fits": ("openai-strict", [WEATHER, NEWS], True),
    "a free map fits no strict dialect": ("openai-strict", [WEATHER, MAP], None),
}


@pytest.mark.parametrize("name", STRICT)
def test_strictness_is_said_once_for_all_tools(name: str) -> None:
    dialect, tools, expected = STRICT[name]
    body = CohereCodec(dialect=dialect).request(Request([Message.user("Hi")], tools), model="m", stream=False)
    assert body.get("strict_tools") is expected


PARTS: dict[str, tuple[list[Message], list[dict[str, Any]]]] = {
    "a picture as data": (
        [Message.user("See", Image("AAAA", media_type="image/png"))],
        [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "See"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                ],
            }
        ],
    ),
    "a picture by its address, with detail": (
        [Message.user(Image(url="https://x/a.png", extras={"cohere": {"image_url": {"detail": "low"}}}))],
        [
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "https://x/a.png", "detail": "low"}}],
            }
        ],
    ),
    "what the format cannot carry is named": (
        [Message.user(File("AAAA", name="a.pdf"), Audio("AAAA", media_type="audio/wav"))],
        [{"role": "user", "content": "[file a.pdf]\n[audio audio/wav]"}],
    ),
    "thinking goes back, another provider's does not": (
        [Message("assistant", [THOUGHT, Reasoning("No.", {"openai": {"field": "x"}}), Text("Yes.")])],
        [
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Yes."}],
            }
        ],
    ),
    "a plan without its calls is none": (
        [Message("assistant", [PLAN, Text("Done.")])],
        [{"role": "assistant", "content": "Done."}],
    ),
    "nothing at all": ([Message("assistant", [PLAN])], [{"role": "user", "content": "Continue."}]),
    "extras": (
        [
            Message(
                "assistant", [Text("A")], {"cohere": {"citations": [{"start": 0}], "billed_units": {"x": 1}}}
            ),
            Message("assistant", [Text("B")], {"openai": {"x": 1}}),
        ],
        [
            {"role": "assistant", "citations": [{"start": 0}], "content": "A"},
            {"role": "assistant", "content": "B"},
        ],
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str) -> None:
    messages, expected = PARTS[name]
    assert wire(*messages) == expected


RESULTS: dict[str, tuple[ToolResult, Any]] = {
    "text": (ToolResult.of("20 C"), "20 C"),
    "data": (ToolResult((Json({"a": 1}),)), '{"a":1}'),
    "a document of text": (
        ToolResult((Text("20 C", {"cohere": {"document": {"id": "d1"}}}),)),
        [{"type": "document", "document": {"data": {"text": "20 C"}, "id": "d1"}}],
    ),
    "a document of data": (
        ToolResult((Json({"a": 1}, {"cohere": {"document": {"id": "d1"}}}), Text("so"))),
        [{"type": "document", "document": {"data": {"a": 1}, "id": "d1"}}, {"type": "text", "text": "so"}],
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results(name: str) -> None:
    result, content = RESULTS[name]
    assert wire(*answered(result=result))[-1]["content"] == content


def test_pictures_of_results_follow_as_the_users() -> None:
    result = ToolResult((Text("a map"), Image("AAAA", media_type="image/png")))
    assert wire(*answered(result=result))[-2:] == [
        {"role": "tool", "tool_call_id": "weather_1", "content": "a map\n[image image/png]"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "From the result of weather:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ],
        },
    ]


ARGUMENTS = {
    "": "{}",
    "null": "{}",
    '{"a": 1}': '{"a": 1}',
    "{": '{"INVALID_JSON":"{"}',
    "[1]": '{"INVALID_JSON":"[1]"}',
}


@pytest.mark.parametrize("written", ARGUMENTS)
def test_arguments_go_back_as_an_object(written: str) -> None:
    call = ToolCall("weather", written, "weather_1")
    assert wire(*answered(calls=(call,)))[1]["tool_calls"][0]["function"]["arguments"] == ARGUMENTS[written]
