"""Recorded cases of tolerant parsers: the same calls, and nothing runs that is only shown or cut off."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.cases import each
from tests.conformance.conftest import load_cases
from toolcrib.codecs.text import Parsed, ResultText, format_named, formats, parse_text, text_parser
from toolcrib.codecs.text.escaping import escape_markers
from toolcrib.codecs.tool_names import inverse, wire_names
from toolcrib.json_text.values import kind_of
from toolcrib.messages import Request, TextChunk
from toolcrib.spec import ToolSpec

NAMES = (
    "names are matched exactly: the call keeps the name as written, and the box answers it with suggestions"
)
NO_GUESS = "a string with unescaped quotes has no single reading; the model is told"
# What we read otherwise, and why.
CALLS_OTHERWISE = {
    "parse_tool_calls_handles_tool_call_inline_attributes_with_send_message_alias": NAMES,
    "t:zeroclaw:zeroclaw_mixed:38": NAMES,
    "parse_glm_style_tool_call_integration": "a line of prose without any tag is no call",
    "parse_tool_calls_recovers_malformed_file_write_content_quotes": NO_GUESS,
    "parse_tool_calls_recovers_malformed_file_write_tool_name_fence": NO_GUESS,
    "parse_tool_calls_recovers_malformed_file_write_non_ascii_safely": NO_GUESS,
    "t:zeroclaw:zeroclaw_mixed:50": NO_GUESS,
    "unclosed_tool_finalised": "a call without its end may lack parameters: it is told and not run",
}
SHOWN = "what stands in `<tools>` is shown as it is, tags included"
TEXT_OTHERWISE = {
    "parse_tool_calls_nested_xml_tags_handled": "both closing tags belong to the call",
    "parse_glm_style_tool_call_integration": "what is no call is text",
}
KNOWN = {
    "shell": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    "file_write": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    },
}


def tools_of(expected: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Tools that take what is expected, beside those that the cases try to forge calls of."""
    tools: dict[str, dict[str, Any]] = json.loads(json.dumps(KNOWN))
    for call in expected:
        if call["name"]:
            schema = tools.setdefault(call["name"], {"type": "object", "properties": {}})
            for name, value in arguments_of(call).items():
                schema["properties"][name] = {"type": kind_of(value)}
    return tools


def arguments_of(call: dict[str, Any]) -> dict[str, Any]:
    return call.get("arguments", call.get("arguments_subset")) or {}


def in_pieces(text: str, format: str, tools: dict[str, Any], *cuts: int) -> Parsed:
    parser = text_parser(format, tools)
    start = 0
    for cut in (*cuts, len(text)):
        parser.feed(text[start:cut])
        start = cut
    parser.finish()
    return parser.parsed()


def runnable(parsed: Parsed) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(str(call.arguments))) for call in parsed.calls if not call.problem]


def words(text: str) -> str:
    """A text without the tags of declarations and the white space between its words."""
    return "".join(re.sub(r"</?(?:tools|tool_call|invoke)>", "", text).split())


def check(
    name: str, text: str, expected: list[dict[str, Any]], said: str | None, *, inert: bool = False
) -> None:
    tools = tools_of(expected)
    parsed = parse_text(text, "tool_call", tools)
    calls = runnable(parsed)
    if name in CALLS_OTHERWISE:
        assert [(call["name"], arguments_of(call)) for call in expected] != calls
        return
    assert len(calls) == len(expected)
    for (called, arguments), call in zip(calls, expected, strict=True):
        assert called == (call["name"] or called)
        assert {key: arguments.get(key) for key in arguments_of(call)} == arguments_of(call)
    if inert:
        assert parsed.calls == []
    if said is not None and name not in TEXT_OTHERWISE:
        assert words(parsed.text) == words(said)
    for cut in range(1, len(text), max(1, len(text) // 60)):
        assert in_pieces(text, "tool_call", tools, cut).parts == parsed.parts
    assert in_pieces(text, "tool_call", tools, *range(1, len(text))).parts == parsed.parts


ZEROCLAW = load_cases("cases/zeroclaw/tool_call_parsing.json")
MIXED = [
    case
    for file in ("complete", "streaming")
    for case in load_cases(f"corpora/text-tool-calls/{file}.jsonl")
    if case["format"] == "zeroclaw_mixed"
]
INERT = [
    case
    for file in ("complete", "streaming")
    for case in load_cases(f"corpora/text-tool-calls/{file}.jsonl")
    if case.get("inert")
]


@each("case", ZEROCLAW, ids=lambda case: case["name"])
def test_recorded_replies(case: dict[str, Any]) -> None:
    expected = case["expected"]
    check(case["name"], case["input"], expected["calls"], expected.get("text"))


@each("case", MIXED, ids=lambda case: case["id"])
def test_recorded_mixed_forms(case: dict[str, Any]) -> None:
    check(case["id"], case["text"], case["expected"], case["expected_content"], inert=bool(case["inert"]))
    shown = parse_text(case["text"], "tool_call", tools_of(case["expected"])).text
    for word in case.get("content_contains") or ():
        assert word in shown
    for word in case.get("content_not_contains") or ():
        assert word not in shown


@each("format", sorted(formats()))
@each("case", INERT, ids=lambda case: case["id"])
def test_what_must_stay_inert_runs_in_no_format(case: dict[str, Any], format: str) -> None:
    assert runnable(parse_text(case["text"], format, KNOWN)) == []


HELPERS = {
    name: [
        case
        for case in load_cases("cases/zeroclaw/tool_call_parsing_helpers.json")
        if case["input"]["fn"] == name
    ]
    for name in (
        "classify_tool_protocol_envelope",
        "detect_tool_call_parse_issue",
        "parse_glm_shortened_body",
        "strip_think_tags",
    )
}


@pytest.mark.parametrize("case", HELPERS["classify_tool_protocol_envelope"], ids=lambda case: case["name"])
def test_what_is_content_is_no_call(case: dict[str, Any]) -> None:
    if case["expected"] is None and case["name"] != "envelope_array_name_args":
        assert parse_text(case["input"]["arg"], "tool_call", KNOWN).calls == []


def test_a_list_of_calls_and_nothing_else_is_calls() -> None:
    assert len(parse_text('[{"name":"shell","arguments":{}}]', "tool_call", KNOWN).calls) == 1


@pytest.mark.parametrize("case", HELPERS["detect_tool_call_parse_issue"], ids=lambda case: case["name"])
def test_what_has_no_issue_is_not_reported_as_one(case: dict[str, Any]) -> None:
    if not case["expected"]:
        parsed = parse_text(case["input"]["arg"], "tool_call", KNOWN)
        assert [call.problem for call in parsed.calls if call.problem] == []


@pytest.mark.parametrize("case", HELPERS["parse_glm_shortened_body"], ids=lambda case: case["name"])
def test_shortened_bodies(case: dict[str, Any]) -> None:
    expected, body = case["expected"], case["input"]["arg"]
    name = re.split(r"\W", body)[0]
    known = tools_of([{**expected, "name": name}]) if expected else KNOWN
    calls = runnable(parse_text(f"<tool_call>{body}</tool_call>", "tool_call", known))
    if expected is None:
        assert calls == []
    elif expected["name"] == name:
        assert calls == [(name, expected["arguments"])]
    else:  # upstream renames the tool, and rewrites an address to a command
        assert [called for called, _ in calls] == [name]


@pytest.mark.parametrize("case", HELPERS["strip_think_tags"], ids=lambda case: case["name"])
def test_thinking_is_not_text(case: dict[str, Any]) -> None:
    assert parse_text(case["input"]["arg"], "tool_call", KNOWN).text.strip() == case["expected"].strip()


# Tools as tags


def tag_tools(case: dict[str, Any]) -> dict[str, Any]:
    return {
        tool: {"type": "object", "properties": {name: {"type": "string"} for name in names}}
        for tool, names in case["input"]["tools"].items()
    }


def tag_calls(blocks: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(block["name"], block["params"]) for block in blocks if block["type"] == "tool_use"]


@pytest.mark.parametrize(
    "case", load_cases("cases/schoober/xml_tool_parsing.json"), ids=lambda case: case["name"]
)
def test_recorded_tags(case: dict[str, Any]) -> None:
    text, tools = case["input"]["text"], tag_tools(case)
    parsed = parse_text(text, "schoober", tools)
    blocks = case["expected"]["blocks"]
    if case["name"] in CALLS_OTHERWISE:
        assert runnable(parsed) == []
        return
    assert runnable(parsed) == tag_calls(blocks)
    before = blocks[0]["text"] if blocks and blocks[0]["type"] == "text" else ""
    assert parsed.text.strip().startswith(before.strip())  # text after a call is kept, not dropped
    for cut in range(1, len(text)):
        assert in_pieces(text, "schoober", tools, cut).parts == parsed.parts


@pytest.mark.parametrize(
    "case", load_cases("cases/schoober/xml_tool_streaming.json"), ids=lambda case: case["name"]
)
def test_recorded_streams_of_tags(case: dict[str, Any]) -> None:
    parser = text_parser("schoober", tag_tools(case))
    shown = ""
    for chunk, after in zip(case["input"]["chunks"], case["expected"]["after_each_chunk"], strict=True):
        shown += "".join(piece.text for piece in parser.feed(chunk) if isinstance(piece, TextChunk))
        texts = "".join(block["text"] for block in after if block["type"] == "text")
        assert shown.strip().startswith(texts.strip())  # at least what upstream shows, and no half tag
        assert "<" not in shown or case["name"] == "false_tag_start"
    parser.finish()
    assert runnable(parser.parsed()) == tag_calls(case["expected"]["final"])


# Adversarial cases

FORM = {"deepseek_form": "deepseek_v3", "kimi_form": "kimi_k2", "qwen_coder_form": "qwen3_coder_xml"}
ATTACKS = load_cases("cases/beyond/text_dispatch_adversarial.json")


@pytest.mark.parametrize(
    "case", [case for case in ATTACKS if "text" in case["input"]], ids=lambda case: case["name"]
)
def test_adversarial_replies(case: dict[str, Any]) -> None:
    expected = [(call["name"], call["arguments"]) for call in case["expected"]["calls"]]
    format = FORM.get(case["name"], "tool_call")
    if format not in formats():
        pytest.skip(f"no format {format!r}")
    parsed = parse_text(case["input"]["text"], format, KNOWN)
    assert runnable(parsed) == expected
    assert bool(case["expected"].get("issue")) == any(call.problem for call in parsed.calls)


@each("format", sorted(formats()))
@each("case", [case for case in ATTACKS if "output" in case["input"]], ids=lambda case: case["name"])
def test_a_result_cannot_leave_its_tag(case: dict[str, Any], format: str) -> None:
    chosen, output = format_named(format), case["input"]["output"]
    said = escape_markers(output, chosen.reserved)
    assert output not in said
    assert (
        parse_text(chosen.write_result(ResultText(case["input"]["tool"], "c1", said)), chosen, KNOWN).calls
        == []
    )


@pytest.mark.parametrize(
    "case",
    [case for case in load_cases("cases/beyond/tool_names.json") if "providers" in case["input"]],
    ids=lambda case: case["name"],
)
def test_names_on_the_wire(case: dict[str, Any]) -> None:
    name = case["input"]["name"]
    names = wire_names(Request([], tools=[ToolSpec(name, "", {"type": "object"})]))
    wire = str(names.get(name, name))
    assert re.search(case["expected"]["matches"], wire)
    assert inverse(names).get(wire, wire) == name


@pytest.mark.parametrize(
    "case", load_cases("cases/json-repair/vllm_tool_text.json"), ids=lambda case: case["name"]
)
def test_recorded_texts_of_two_families(case: dict[str, Any]) -> None:
    format = "llama3_json" if "/llama3/" in case["name"] else "tool_call"
    expected = case["expected"]
    calls = runnable(parse_text(case["input"], format, tools_of(expected)))
    assert calls == [(call["name"], call["arguments"]) for call in expected]
