"""Whatever a model writes, however it is cut: no parser raises, its stream adds up, and the cost is linear."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.cases import each
from tests.growth import growth
from tests.properties import examples
from toolcrib.call import ToolCall
from toolcrib.codecs.text import Parsed, format_named, formats, parse_text, text_parser
from toolcrib.codecs.text.escaping import escape_json, escape_markers
from toolcrib.codecs.text.grammars.python_calls import literal
from toolcrib.codecs.text.scanner import Scanner, Steps, drive
from toolcrib.messages import CallChunk, Chunk, ReasoningChunk, RestartChunk, TextChunk

ALL = sorted(formats())
TOOLS = {"f": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}, "g": {}}
FRAGMENTS = [
    *{mark for name in ALL for mark in format_named(name).reserved},
    *(format_named(name).write_calls([ToolCall("f", {"a": 1, "b": "x"}, "c1")]) for name in ALL),
    "<think>", "</think>", "[THINK]", "<tool_call>", "</tool_call>", "<function=f>", "</function>", "<parameter=a>",
    "<invoke name=\"f\">", "</invoke>", '{"name": "f", "arguments": {', '"name": "f"', '"arguments":', "{}", "}", "{",
    "[", "]", '"', "'", "\\", ",", ":", ";", "f(a=1)", "[f(", "a=", ")", "```json\n", "```", "\n", "  ", "1", "-2.5e3",
    "null", "true", "hello", "<", ">", "/", "😀", "é", "\ud83d", "functools[", "f\n", ">>>", "Action:", "all\n",
    "<tools>", "</tools>", "<code>", "</code>", "<!--", "-->", "<tool_result", " name=", "<reasoning>", "</reasoning>",
    "<|im_end|>", "<|END_OF_TURN_TOKEN|>", "<EOS_TOKEN>", "Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]",
    "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
]  # fmt: skip
texts = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), max_size=12).map("".join)
values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**12), 10**12),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def streamed(format: str, pieces: Iterable[str]) -> tuple[Parsed, list[Chunk]]:
    parser = text_parser(format, TOOLS)
    chunks = [chunk for piece in pieces for chunk in parser.feed(piece)]
    chunks += parser.finish()
    return parser.parsed(), chunks


def summed(chunks: Iterable[Chunk]) -> tuple[str, str, list[tuple[str, str, str]]]:
    text, reasoning = "", ""
    calls: dict[int, tuple[str, str, str]] = {}
    for chunk in chunks:
        if isinstance(chunk, RestartChunk):
            text, reasoning, calls = "", "", {}
        elif isinstance(chunk, TextChunk):
            text += chunk.text
        elif isinstance(chunk, ReasoningChunk):
            reasoning += chunk.text
        elif isinstance(chunk, CallChunk):
            name, id, arguments = calls.get(chunk.index, ("", "", ""))
            assert not chunk.name or not name, "a name comes once"
            calls[chunk.index] = (name + chunk.name, id + chunk.id, arguments + chunk.arguments)
    assert list(calls) == list(range(len(calls)))
    return text, reasoning, list(calls.values())


def whole_again(text: str) -> str:
    """A character that was cut into two surrogates is one in a message."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def cut(text: str, sizes: list[int]) -> list[str]:
    pieces: list[str] = []
    at = 0
    for size in sizes:
        pieces.append(text[at : at + size])
        at += size
    return [*pieces, text[at:]]


@pytest.mark.parametrize("name", ALL)
@given(texts, st.lists(st.integers(0, 9), max_size=40))
@examples(60)
@example('[f(a="', [1] * 9)
@example("<tool_call>" + "[" * 3000 + "{" * 3000, [])
@example('{"name": "f", "arguments": ' + "[" * 3000, [])
@example("[f(a=" + "[" * 3000, [])
def test_any_text_however_cut_says_the_same_and_adds_up(name: str, text: str, sizes: list[int]) -> None:
    whole = parse_text(text, name, TOOLS)
    parsed, chunks = streamed(name, cut(text, sizes))
    assert parsed == whole
    said, thought, calls = summed(chunks)
    assert whole_again(said) == parsed.text
    assert whole_again(thought) == parsed.reasoning
    assert [(name, id, whole_again(arguments)) for name, id, arguments in calls] == [
        (call.name, call.id, call.arguments) for call in parsed.calls
    ]
    done = {chunk.index for chunk in chunks if isinstance(chunk, CallChunk) and chunk.done}
    assert {at for at, call in enumerate(parsed.calls) if not call.problem} <= done


@pytest.mark.parametrize("name", ALL)
@given(texts)
@examples(30)
def test_a_beginning_shows_no_more_than_the_whole(name: str, text: str) -> None:
    """What was handed out while more could come is never taken back, but by a restart."""
    parser = text_parser(name, TOOLS)
    chunks: list[Chunk] = []
    for piece in text:
        chunks += parser.feed(piece)
    said = whole_again("".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk)))
    chunks += parser.finish()
    if not any(isinstance(chunk, RestartChunk) for chunk in chunks):
        assert parser.parsed().text.startswith(said.rstrip("\ud83d"))


@given(st.dictionaries(st.from_regex("[a-z_]{1,5}", fullmatch=True), values, max_size=3))
@examples(100)
def test_json_and_python_formats_give_back_what_was_written(arguments: dict[str, Any]) -> None:
    for name in (
        "hermes",
        "llama3_json",
        "mistral",
        "mistral_pre_v11",
        "granite",
        "apertus",
        "command_r",
        "lfm2",
    ):
        text = format_named(name).write_calls([ToolCall("f", arguments, "c1")])
        found = parse_text(text, name, TOOLS).calls
        assert [call.problem for call in found] == [""], (name, text)
        assert json.loads(str(found[0].arguments)) == json.loads(json.dumps(arguments)), (name, text)


@given(values.map(repr) | st.text(alphabet="[]{}(),:'\"\\ntxu0123.-_eTruFalsNon ", max_size=20))
@examples(300)
@example("'a' 'b'")
@example("0,")
@example("'''a'b'''")
@example("r'\\d'")
@example("{'a': (1, 2,), 'b': [True, None]}")
def test_literals_are_those_of_python(source: str) -> None:
    """What is read as a literal is what Python reads, as JSON."""
    pieces: list[str] = []
    scan = Scanner()

    def steps() -> Steps[bool]:
        return (yield from literal(scan, pieces.append))

    results: list[bool] = []

    def outer() -> Steps[None]:
        results.append((yield from steps()))
        rest: list[str] = []
        yield from scan.until((), rest.append)
        results.append(not "".join(rest).strip())

    running = outer()
    drive(running)
    for piece in source + "\n;":
        scan.feed(piece)
        drive(running)
    scan.end()
    drive(running)
    if not results[0]:
        return
    read = "".join(pieces)
    json.loads(read)  # whatever was taken is JSON
    try:
        meant = ast.literal_eval(f"[{source}\n]")  # where a comma ends the literal
        expected = json.loads(json.dumps(meant))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return
    if isinstance(meant, list) and len(meant) == 1:
        assert [json.loads(read)] == expected


@given(texts)
@examples(300)
def test_what_is_guarded_stays_guarded(text: str) -> None:
    once = escape_markers(text)
    assert escape_markers(once) == once
    assert json.loads(escape_json(json.dumps(text))) == text
    assert json.loads(escape_json({"a": text}, ("functools[", ">>>"))) == {"a": text}


PATTERNS: dict[str, str] = {
    "plain text": "some words, and more of them. ",
    "half tags": "<tool_",
    "openings": "<",
    "white space": " \n",
    "calls": '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>\n',
    "begins only": "<tool_call>",
    "lists of Python": "[f(a=1)] ",
    "Mistral": '[TOOL_CALLS]f[ARGS]{"a": 1}',
    "thinking": "<think>a</think>",
    "ends of thinking": "a</think>",
    "brackets": "[",
    "braces": "{",
    "invoke": '<invoke name="f"><parameter name="a">1</parameter></invoke>',
    "parameters": "<function=f><parameter=a>1</parameter></function>",
    "fences": "```json\n",
    "escapes": "\\",
    "quotes": "\"'",
}


def work(name: str, text: str, size: int) -> Callable[[], object]:
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return lambda: streamed(name, pieces)


# One format for each way of reading: the others differ in their words alone.
PARSERS = {
    (
        getattr(form.read, "__func__", form.read),
        bool(form.parameter),
        "{call}" in form.call,
        form.special_tokens,
    ): name
    for name, form in sorted(formats().items())
}


@pytest.mark.slow
@each("name", PARSERS.values())
@each("size", [1, 10**9], ids=["by character", "whole"])
def test_the_cost_is_linear(name: str, size: int) -> None:
    """All patterns together: a single one that costs the square of its length outweighs the others."""
    own = format_named(name).write_calls([ToolCall("f", {"a": 1, "b": "x"}, "c1")])
    patterns = [*PATTERNS.values(), own, own[: len(own) // 2]]
    heads = ["", own.partition("x")[0]]

    def make(length: int) -> Callable[[], object]:
        works = [
            work(name, head + pattern * (length // len(pattern)), size)
            for head in heads
            for pattern in (patterns if not head else patterns[:8])
        ]
        return lambda: [run() for run in works]

    assert growth(make, 160, 32 * 160, 50) < 50
