"""Names of parameters that Anthropic, and Bedrock for its models, refuse: sent under others, and put back in answers."""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bedrock_wire import END, delta, start, stop
from toolcrib import Effect, Toolbox, tool
from toolcrib.call import ToolCall
from toolcrib.codecs import AnthropicMessagesCodec
from toolcrib.codecs.bedrock_converse import BedrockConverseCodec
from toolcrib.codecs.renamed_keys import StreamedKeys, renamed_keys
from toolcrib.messages import CallChunk, Message, Request
from toolcrib.schema.validator import offline_validator
from toolcrib.spec import ToolSpec

STRANGE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "$top": {"type": "integer", "description": "How many."},
        "城市": {"type": "string"},
        "filter[id]": {"type": "object", "properties": {"$top": {"type": "integer"}}},
        "x" * 70: {"type": "integer"},
        "plain.name-1": {"type": "string"},
        "_top": {"type": "integer"},
        "two\nlines": {"type": "integer"},
        "": {"type": "integer"},
    },
    "required": ["$top", "plain.name-1"],
}
WRITTEN = {
    "$top": 1,
    "城市": "北京",
    "filter[id]": {"$top": 2},
    "x" * 70: 3,
    "plain.name-1": '{"$top": 1}',
    "": 4,
}
CODECS: dict[str, Any] = {"anthropic": AnthropicMessagesCodec, "bedrock": BedrockConverseCodec}


def with_strange_names(*messages: Message) -> Request:
    """A request with a tool whose parameters have names that are refused, and with one that is as it should be."""
    other = ToolSpec("other", "Other.", {"type": "object", "properties": {"a": {}}})
    return Request([Message.user("Go."), *messages], [ToolSpec("list items", "List items.", STRANGE), other])


def sent_tools(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The names and schemas of the tools in a body of either format."""
    if "tools" in body:
        return [(tool["name"], tool["input_schema"]) for tool in body["tools"]]
    specs = [tool["toolSpec"] for tool in body["toolConfig"]["tools"]]
    return [(spec["name"], spec["inputSchema"]["json"]) for spec in specs]


def whole_answer(kind: str, name: str, given: Any) -> dict[str, Any]:
    if kind == "anthropic":
        block = {"type": "tool_use", "id": "t1", "name": name, "input": given}
        return {"content": [block], "stop_reason": "tool_use"}
    use = {"toolUse": {"toolUseId": "t1", "name": name, "input": given}}
    return {"output": {"message": {"role": "assistant", "content": [use]}}, "stopReason": "tool_use"}


def streamed_answer(kind: str, name: str, pieces: list[str]) -> list[dict[str, Any]]:
    if kind == "bedrock":
        deltas = [delta(0, toolUse={"input": piece}) for piece in pieces]
        return [start(0, toolUse={"toolUseId": "t1", "name": name}), *deltas, stop(0), END]
    block = {"type": "tool_use", "id": "t1", "name": name, "input": {}}
    wrapped = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return [
        {"type": "message_start", "message": {"id": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": piece} for piece in wrapped),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]


@pytest.mark.parametrize("kind", CODECS)
@pytest.mark.parametrize("strict", ["", "-strict"])
def test_names_that_are_refused_are_replaced_and_told(kind: str, strict: str) -> None:
    codec = CODECS[kind](dialect=("anthropic" if strict else kind) + strict)
    (_, schema), (_, other) = sent_tools(codec.request(with_strange_names(), model="m", stream=False))
    names = list(schema["properties"])
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in names), names
    assert len(set(names)) == len(STRANGE["properties"])
    assert {"plain.name-1", "_top"} <= set(names)
    assert {names[0], "plain.name-1"} <= set(schema["required"]) <= set(names)
    assert schema["properties"][names[0]]["description"] == '"$top". How many.'
    assert schema["properties"][names[1]]["description"] == '"城市".'
    assert list(schema["properties"][names[2]]["properties"]) == [
        "$top"
    ]  # only the names of parameters are looked at
    assert list(other["properties"]) == ["a"]


@pytest.mark.parametrize("kind", CODECS)
@pytest.mark.parametrize("length", [1, 7, 10_000])
def test_they_come_back_as_the_tool_knows_them(kind: str, length: int) -> None:
    codec, request = CODECS[kind](), with_strange_names()
    name, schema = sent_tools(codec.request(request, model="m", stream=False))[0]
    wire = dict(zip(STRANGE["properties"], schema["properties"], strict=True))
    given = {wire[key]: value for key, value in WRITTEN.items()}
    (call,) = codec.response(whole_answer(kind, name, given), request).message.calls
    assert (call.name, call.arguments) == ("list items", WRITTEN)

    text = json.dumps(given) + json.dumps(
        {wire["$top"]: 1.50}
    )  # two calls in one, as models write them at times
    decoder, chunks = codec.decoder(request), []
    for event in streamed_answer(kind, name, [text[at : at + length] for at in range(0, len(text), length)]):
        chunks += decoder.feed(event)
    calls = decoder.finish().message.calls
    assert [json.loads(call.arguments) for call in calls] == [WRITTEN, {"$top": 1.5}]
    for number, call in enumerate(calls):
        shown = [chunk for chunk in chunks if isinstance(chunk, CallChunk) and chunk.index == number]
        assert "".join(chunk.arguments for chunk in shown) == call.arguments
    # what was called before goes back as it was sent
    again = codec.request(with_strange_names(Message("assistant", [calls[0]])), model="m", stream=False)
    assert json.dumps(given) in json.dumps(again["messages"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"$top"',
        '{"\\q": 1}',
        "[]",
        '{"$top: 1',
        "null",
        '{"a": 1}}}',
        '{"a": "$top", "b": ["$top", "$top: 1"], "c": "\\"$top\\": 1"}',
    ],
)
def test_what_cannot_be_read_or_is_no_parameter_stays_as_it_was_written(text: str) -> None:
    assert renamed_keys(text, {"$top": "top"}) == text


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('{"top_1": 1}', '{"$top": 1}'),
        ('{"arguments": {"top_1" : 1}}', '{"arguments": {"$top" : 1}}'),
        ('{"input": [{"top_1": 1}], "top_1": "top_1: 1"}', '{"input": [{"$top": 1}], "$top": "top_1: 1"}'),
        ("{'top_1': 1, \"b\": 'top_1'}", '{"$top": 1, "b": \'top_1\'}'),
        ('{b: "top_1", top_1: 1,}', '{b: "top_1", "$top": 1,}'),
        ('```json\n{"top_1": 1}\n```', '```json\n{"$top": 1}\n```'),
        ('{"top_1": "cut', '{"$top": "cut'),
        ("It's the users' call: {\"top_1\": 1}", "It's the users' call: {\"$top\": 1}"),
        ('A 5" call: {"top_1": 1}', 'A 5" call: {"$top": 1}'),
        ('{/* don\'t */ "top_1": "it\'s"}', '{/* don\'t */ "$top": "it\'s"}'),
    ],
)
def test_a_name_is_put_back_wherever_repair_reads_one(written: str, read: str) -> None:
    assert renamed_keys(written, {"top_1": "$top"}) == read
    with suppress(ValueError):
        assert renamed_keys(json.loads(written), {"top_1": "$top"}) == json.loads(read)


TEXTS = st.lists(
    st.sampled_from(
        ["top_1", "top", "_1", '"top_1"', "'top_1'", '"', "'", "\\", ":", " ", "{", "}", ",", "é", "\n" * 201]
    )
).map("".join)


@given(TEXTS, st.data())
def test_names_are_put_back_the_same_wherever_a_stream_is_cut(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    keys = StreamedKeys({"top_1": "$top"})
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert "".join([*map(keys.add, pieces), keys.add("", final=True)]) == renamed_keys(
        text, {"top_1": "$top"}
    )


@pytest.mark.parametrize("kind", CODECS)
def test_arguments_with_other_names_grow(kind: str) -> None:
    codec, request = CODECS[kind](), with_strange_names()
    name, schema = sent_tools(codec.request(request, model="m", stream=False))[0]
    text = json.dumps(
        {list(schema["properties"])[1]: "a long text " * 5, "plain.name-1": "b"}, ensure_ascii=False
    )
    decoder, shown = codec.decoder(request), ""
    for at, event in enumerate(streamed_answer(kind, name, list(text))):
        shown += "".join(chunk.arguments for chunk in decoder.feed(event) if isinstance(chunk, CallChunk))
        if at == len(text) // 2:
            assert shown.startswith('{"城市": "a long text ')


@pytest.mark.parametrize("kind", CODECS)
async def test_arguments_with_other_names_are_repaired_like_any(kind: str) -> None:
    @tool(
        effect=Effect.READ,
        secrets=(),
        params={"properties": {"$top": {"type": "integer"}}, "required": ["$top"]},
    )
    def items(params: dict[str, Any]) -> str:
        """List items."""
        return str(params["$top"])

    box = Toolbox([items])
    request = Request([Message.user("Go.")], (await box.tool_list()).specs)
    ((_, schema),) = sent_tools(CODECS[kind]().request(request, model="m", stream=False))
    (wire,) = schema["properties"]
    for text in (f'{{"arguments": {{"{wire}": 1}}}}', f"{{'{wire}': '1',}}"):
        decoder = CODECS[kind]().decoder(request)
        for event in streamed_answer(kind, "items", [text]):
            decoder.feed(event)
        (call,) = decoder.finish().message.calls
        assert (await box.call(call)).text == "1"
    (call,) = (
        CODECS[kind]().response(whole_answer(kind, "items", {"input": {wire: 1}}), request).message.calls
    )
    assert (await box.call(call)).text == "1"


@pytest.mark.parametrize("name", ["", "a\nb", "a\n", "$a", "é"])
def test_one_name_is_enough(name: str) -> None:
    spec = ToolSpec("t", "T.", {"type": "object", "properties": {"a": {}, name: {}}})
    body = AnthropicMessagesCodec().request(Request([Message.user("Go.")], [spec]), model="m", stream=False)
    ((_, schema),) = sent_tools(body)
    assert name not in schema["properties"]


def test_a_parameter_that_refers_to_a_type_is_told_by_its_name() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    schema = {"type": "object", "properties": {"城市": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    request = Request([Message.user("Go.")], [ToolSpec("t", "T.", schema)])
    ((_, sent),) = sent_tools(AnthropicMessagesCodec().request(request, model="m", stream=False))
    (parameter,) = sent["properties"].values()
    assert parameter["description"] == '"城市".'


ROOTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # keywords of a root, and arguments that fit it
    "a reference to the root": (
        {
            "properties": {"名": {"type": "string"}, "子": {"type": "array", "items": {"$ref": "#"}}},
            "required": ["名"],
        },
        {"名": "a", "子": [{"名": "b", "子": [{"名": "c"}]}]},
    ),
    "a reference to the root, beside a definition of its name": (
        {
            "properties": {"子": {"$ref": "#"}, "$n": {"$ref": "#/$defs/Root"}},
            "$defs": {
                "Root": {"type": "object", "properties": {"r": {"$ref": "#/$defs/Root"}}, "required": ["r"]}
            },
        },
        {"子": {"子": {}}},
    ),
    "a root that is a reference": (
        {
            "$ref": "#/$defs/Root",
            "$defs": {
                "Root": {
                    "type": "object",
                    "properties": {"子": {"$ref": "#/$defs/Root"}, "$n": {}},
                    "required": ["$n"],
                }
            },
        },
        {"子": {"$n": 1}, "$n": 2},
    ),
    "names that are listed": ({"propertyNames": {"enum": ["$a", "b"]}}, {"$a": 1, "b": 2}),
    "dependentRequired": ({"dependentRequired": {"b": ["$a"]}}, {"$a": 1, "b": 2}),
    "dependentSchemas": ({"dependentSchemas": {"b": {"required": ["$a"]}}}, {"$a": 1, "b": 2}),
    "if": ({"if": {"required": ["b"]}, "then": {"required": ["$a"]}}, {"$a": 1, "b": 2}),
    "patternProperties": (
        {"patternProperties": {"^_a": {"type": "string"}}, "unevaluatedProperties": False},
        {"$a": 1, "_a": "c"},
    ),
    "default and examples": ({"default": {"$a": 1}, "examples": [{"$a": 2}]}, {"$a": 3}),
    "alternatives": ({"anyOf": [{"required": ["$a"]}, {"required": ["b"]}]}, {"$a": 1}),
}


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("dialect", ["anthropic", "anthropic-strict", "openai"])
def test_a_schema_with_other_names_takes_the_same_arguments(root: str, dialect: str) -> None:
    keywords, fitting = ROOTS[root]
    schema = {
        "type": "object",
        "properties": {"$a": {"type": "integer"}, "b": {"type": "integer"}},
        **keywords,
    }
    codec = AnthropicMessagesCodec(dialect=dialect)
    messages = [Message.user("Go."), Message.assistant(ToolCall("t", fitting, "t1"))]
    request = Request(messages, [ToolSpec("t", "T.", schema)])
    body = codec.request(request, model="m", stream=False)
    ((_, sent),) = sent_tools(body)
    (block,) = body["messages"][1]["content"]
    assert offline_validator(schema).is_valid(fitting)
    assert offline_validator(sent).is_valid(block["input"])
    (answered,) = codec.response(whole_answer("anthropic", "t", block["input"]), request).message.calls
    assert answered.arguments == fitting
    # nothing else at the root speaks of names: the description says it, with the parameters' own names
    assert sent.keys() <= {"type", "description", "properties", "required", "additionalProperties", "$defs"}


def test_examples_of_a_tool_have_the_names_of_its_schema() -> None:
    extras = {"anthropic": {"input_examples": [{"$top": 1, "plain.name-1": "a"}]}}
    request = Request([Message.user("Go.")], [ToolSpec("t", "T.", STRANGE, extras=extras)])
    (tool,) = AnthropicMessagesCodec().request(request, model="m", stream=False)["tools"]
    (example,) = tool["input_examples"]
    assert set(example) == set(tool["input_schema"]["required"])
    assert extras["anthropic"]["input_examples"][0]["$top"] == 1  # the author's own stay as they are


def test_a_long_text_that_was_cut_is_read_once() -> None:
    text = '{"content": "' + 'say(\\"hello\\")\\n' * 20_000
    started = time.process_time()
    assert renamed_keys(text, {"_top": "$top"}) == text
    assert time.process_time() - started < 5  # it took minutes
