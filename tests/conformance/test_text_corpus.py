"""Recorded outputs of models that write their calls as text: the same calls, however the text is cut."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.cases import each
from tests.conformance.conftest import load_cases
from toolcrib.codecs.text import Parsed, formats, parse_text, text_parser
from toolcrib.json_text.values import same_json
from toolcrib.messages import CallChunk, Chunk, ReasoningChunk, RestartChunk, TextChunk

ELSEWHERE = {"zeroclaw_mixed"}  # what unknown models write: test_text_cases.py
CASES = [
    case
    for name in ("complete", "streaming")
    for case in load_cases(f"corpora/text-tool-calls/{name}.jsonl")
    if case["format"] not in ELSEWHERE
]
BUILT = [case for case in CASES if case["format"] in formats()]

PROSE = "a list of calls behind prose has no mark that tells it from what the prose quotes"
# What we read otherwise, and why.
CALLS_OTHERWISE = {
    "t:vllm:granite:8": "the marker announces a call, and its object is whole though it stands in no list",
    "t:sglang:llama3_json:1": "a call inside the arguments of a broken one is not run; the model is told",
    "s:sglang:pythonic:2": PROSE,
    "s:sglang:pythonic:9": PROSE,
    "s:sglang:pythonic:3": "our answer to the whole text is that of its stream: two lists, two calls",
    "s:sglang:pythonic:13": "our answer to the whole text is that of its stream: two lists, two calls",
    "s:sglang:json_array:6": "a string that never ends is no call without arguments",
    "t:vllm:glm4_moe:8": "a key whose tag is not closed ends where its value begins",
    "t:vllm:minimax_m1:10": "the JSON of a call may stand on several lines",
    "t:vllm:qwen3_coder_xml:11": "a tag that does not end names no tool; the model is told",
    "s:vllm:step3:2": "our answer to the whole text is that of its stream: a call",
    "s:vllm:step3:5": "our answer to the whole text is that of its stream: a call",
}
CUT_OFF = "a call that breaks off is told to the model; its text is not shown"
TEXT_OTHERWISE = {
    "t:vllm:granite_20b_fc:8": CUT_OFF,
    "s:vllm:granite_20b_fc:7": CUT_OFF,
    "t:vllm:hermes:4": CUT_OFF,
    "t:vllm:longcat:8": CUT_OFF,
    "s:sglang:gigachat3:2": CUT_OFF,
    "t:vllm:mistral_pre_v11:10": "a marker without a call behind it is told to the model as such",
    "t:sglang:lfm2:5": "text between two calls is kept",
    "t:llama.cpp:mistral:2": "thinking is told from the text without being asked to",
    "t:llama.cpp:command_r:2": "thinking is told from the text without being asked to",
    "s:vllm:glm47:1": CUT_OFF,
    "s:vllm:glm4_moe:3": CUT_OFF,
    "s:vllm:glm4_moe:4": CUT_OFF,
    "s:vllm:glm4_moe:7": CUT_OFF,
    "s:vllm:glm4_moe:8": CUT_OFF,
    "s:vllm:glm4_moe:9": CUT_OFF,
    "s:vllm:glm4_moe:12": CUT_OFF,
    "s:sglang:glm47:11": CUT_OFF,
    "s:sglang:glm47:12": CUT_OFF,
    "s:sglang:glm47:13": CUT_OFF,
    "t:vllm:glm4_moe:12": CUT_OFF,
    "t:vllm:glm4_moe:7": "thinking is told from the text without being asked to",
    "t:vllm:minimax_m1:7": "thinking is told from the text without being asked to",
    "t:llama.cpp:qwen3_coder_xml:2": "thinking is told from the text without being asked to",
    "t:sglang:minimax_m3:16": "a call whose elements cross is told to the model; its text is not shown",
    "s:vllm:kimi_k2:14": "text after the calls is kept",
    "s:vllm:step3:2": "our answer to the whole text is that of its stream: a call",
    "s:vllm:step3:5": "our answer to the whole text is that of its stream: a call",
    "t:llama.cpp:mistral:7": "a fence around an answer in JSON is part of the answer",
}


def tools(case: dict[str, Any]) -> dict[str, Any]:
    return {tool["name"]: tool.get("parameters") or {} for tool in case["tools"] if tool.get("name")}


def value(text: Any) -> Any:
    try:
        return json.loads(text or "{}", strict=False)
    except ValueError:
        return text


def runnable(parsed: Parsed) -> list[tuple[str, Any]]:
    return [(call.name, value(call.arguments)) for call in parsed.calls if not call.problem]


def expected(case: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls of a recorded reading; what it calls incomplete may not run here."""
    return [call for call in case["expected"] if not call.get("incomplete")]


def agrees(got: tuple[str, Any], wanted: dict[str, Any]) -> bool:
    name, arguments = got
    if wanted["name"] != name:
        return False
    return same_json(arguments, wanted["arguments"])


def streamed(case: dict[str, Any], pieces: Iterator[str] | list[str]) -> tuple[Parsed, list[Chunk]]:
    parser = text_parser(case["format"], tools(case))
    chunks = [chunk for piece in pieces for chunk in parser.feed(piece)]
    chunks += parser.finish()
    return parser.parsed(), chunks


def summed(chunks: list[Chunk]) -> tuple[str, str, list[list[str]]]:
    """What a stream of chunks says in all: text, reasoning, and the name, id and arguments of each call."""
    text, reasoning, calls = "", "", list[list[str]]()
    for chunk in chunks:
        match chunk:
            case RestartChunk():
                text, reasoning, calls = "", "", []
            case TextChunk():
                text += chunk.text
            case ReasoningChunk():
                reasoning += chunk.text
            case CallChunk():
                if chunk.index == len(calls):
                    calls.append(["", "", ""])
                call = calls[chunk.index]
                call[0] += chunk.name
                call[1] += chunk.id
                call[2] += chunk.arguments
    return text, reasoning, calls


def said(parsed: Parsed) -> tuple[str, str, list[list[str]]]:
    calls = [[call.name, call.id, str(call.arguments)] for call in parsed.calls]
    return parsed.text, parsed.reasoning, calls


def test_every_format_is_built() -> None:
    missing = Counter(case["format"] for case in CASES if case["format"] not in formats())
    assert not missing, f"formats without a parser, with their cases: {dict(missing)}"


@each("case", BUILT, ids=lambda case: case["id"])
def test_calls(case: dict[str, Any]) -> None:
    parsed = parse_text(case["text"], case["format"], tools(case))
    got, wanted = runnable(parsed), expected(case)
    same = len(got) == len(wanted) and all(map(agrees, got, wanted))
    if case["id"] in CALLS_OTHERWISE:
        assert not same, "no longer different: take it off the table"
        return
    assert same, (case["text"], wanted, parsed.parts)
    for call, want in zip([call for call in parsed.calls if not call.problem], wanted, strict=True):
        if want.get("id"):
            assert call.id == want["id"]


@each("case", BUILT, ids=lambda case: case["id"])
def test_text_and_thinking(case: dict[str, Any]) -> None:
    parsed = parse_text(case["text"], case["format"], tools(case))
    wanted = case.get("complete_content", case.get("expected_content"))
    same = wanted is None or parsed.text.split() == wanted.split()
    if case["id"] in TEXT_OTHERWISE:
        assert not same, "no longer different: take it off the table"
        return
    assert same or case["id"] in CALLS_OTHERWISE, (case["text"], wanted, parsed.parts)
    if case.get("expected_reasoning"):
        assert parsed.reasoning.split() == case["expected_reasoning"].split()


@each("case", BUILT, ids=lambda case: case["id"])
def test_cut_anywhere_it_says_the_same(case: dict[str, Any]) -> None:
    text = case["text"]
    whole = parse_text(text, case["format"], tools(case))
    cuts = [[text[:at], text[at:]] for at in range(len(text))]
    for pieces in [case.get("chunks") or [text], list(text), *cuts]:
        if "".join(pieces) != text:
            continue
        parsed, chunks = streamed(case, pieces)
        assert parsed == whole, pieces
        assert summed(chunks) == said(parsed), pieces
