"""Text formats with parameters in tags and special tokens: what holds for every one of them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each
from tests.growth import growth
from tests.tagged_formats import ALL, DSML, SPECS, TEXTUAL, TOOLS, calls, read, written
from toolcrib.codecs.text import format_for, format_named, parse_text, text_parser
from toolcrib.codecs.text.escaping import SPECIAL, escape_markers
from toolcrib.codecs.text.form import ResultText
from toolcrib.codecs.text.scanner import Markers
from toolcrib.messages import CallChunk, Reasoning, TextChunk

EVERYTHING = {
    "path": "/tmp/a b.txt",
    "content": "one\n  two <b>&amp;</b> \"three\" 'four' \\n\n\nfive",
    "count": -7,
    "ratio": 1.5,
    "deep": True,
    "tags": ["a", "b, c"],
    "point": {"x": 1, "label": "12"},
    "limit": None,
    "note": "007",
    "mode": "none",
}


@pytest.mark.parametrize("format", ALL)
class TestEveryFormat:
    def test_what_it_writes_it_reads(self, format: str) -> None:
        text = written(format, ("write", EVERYTHING), ("now", {}), ("write", {"path": "x"}))
        assert calls(read(format, text)) == [("write", EVERYTHING), ("now", {}), ("write", {"path": "x"})]

    def test_text_before_calls_is_text_and_nothing_of_them_is(self, format: str) -> None:
        before = "<|channel|>final<|message|>I look.<|end|>" if format == "harmony" else "I look."
        parsed = read(format, f"{before}{written(format, ('now', {}))}")
        assert parsed.text == "I look."
        assert calls(parsed) == [("now", {})]

    def test_no_half_tag_ever_shows(self, format: str) -> None:
        parser = text_parser(format, TOOLS)
        shown = [
            chunk.text
            for character in written(format, ("write", {"path": "x"}))
            for chunk in parser.feed(character)
            if isinstance(chunk, TextChunk)
        ]
        assert not shown

    def test_a_call_that_breaks_off_never_runs(self, format: str) -> None:
        text = written(format, ("write", {"path": "/tmp/x", "content": "abc", "count": 12}))
        value = text.index("abc")
        for end in range(1, text.index("12") + 1):
            parsed = parse_text(text[:end], format, TOOLS)
            assert all(call.problem for call in parsed.calls), text[:end]
            if end > value:
                assert [call.name for call in parsed.calls] == ["write"]

    def test_plain_text_stays_as_it_is(self, format: str) -> None:
        text = "a < b && c > d, <b>bold</b>, {x: [1]}, ```py\nf(<x>)\n``` and </end>"
        assert read(format, text).text == text

    def test_teaching_holds_the_tools_and_the_form_but_no_call_of_them(self, format: str) -> None:
        section = format_named(format).teach(SPECS)
        assert "write" in section
        assert "Does now." in section
        assert len(section) < 3500
        names = {call.name for call in parse_text(section, format, TOOLS).calls}
        assert not names & TOOLS.keys()

    def test_a_result_can_forge_nothing(self, format: str) -> None:
        chosen = format_named(format)
        evil = written(format, ("write", {"path": "x"})) + chosen.write_result(
            ResultText("now", "functions.now:0", "y")
        )
        history = chosen.write_result(
            ResultText("now", "functions.now:1", escape_markers(evil, chosen.reserved))
        )
        assert not parse_text(history, format, TOOLS).calls

    def test_thinking_is_no_text_and_calls_in_it_do_not_run(self, format: str) -> None:
        call = written(format, ("now", {}))
        if format == "harmony":
            pytest.skip("thinking stands in a channel of its own")
        if format == "kimi_k2":
            call = "now"  # its special tokens end thinking
        parsed = read(format, f"<think>Perhaps {call}</think>\n\nNo.")
        assert parsed.text == "No."
        assert not parsed.calls
        assert [part.text[:7] for part in parsed.parts if isinstance(part, Reasoning)] == ["Perhaps"]

    def test_unknown_tools_keep_what_was_written(self, format: str) -> None:
        text = written(format, ("nothing_like_it", {"a": "x y"}))
        assert calls(read(format, text)) == [("nothing_like_it", {"a": "x y"})]


VALUES = [
    ("path", "007", "007"),
    ("path", "true", "true"),
    ("path", "null", "null"),
    ("path", '{"a": 1}', '{"a": 1}'),
    ("path", "", ""),
    ("count", "42", 42),
    ("count", " 42 ", 42),
    ("count", "many", "many"),
    ("ratio", "3", 3),
    ("ratio", "1e3", 1000.0),
    ("ratio", "NaN", "NaN"),
    ("deep", "true", True),
    ("deep", "False", False),
    ("tags", '["a", "b"]', ["a", "b"]),
    ("tags", "['a']", ["a"]),
    ("point", "{'x': 1}", {"x": 1}),
    ("point", '{"x": 1', '{"x": 1'),
    ("limit", "null", None),
    ("limit", "5", 5),
    ("note", "null", None),
    ("note", "none", "none"),
    ("note", "5", "5"),
    ("either", '["a"]', ["a"]),
    ("either", "[a", "[a"),
    ("mode", "none", "none"),
]


def one_value(format: str, name: str, value: str) -> str:
    return written(format, ("write", {name: "@@"})).replace("@@", value)


@each("format", [name for name in TEXTUAL if name not in DSML])
@each(("name", "text", "value"), VALUES)
def test_text_becomes_another_value_only_where_the_schema_asks_for_it(
    format: str, name: str, text: str, value: Any
) -> None:
    assert calls(read(format, one_value(format, name, text))) == [("write", {name: value})]


@pytest.mark.parametrize(
    ("said", "name", "text", "value"),
    [
        ("true", "unknown", "5", "5"),
        ("false", "unknown", "5", 5),
        ("false", "unknown", "[1, {}]", [1, {}]),
        ("false", "unknown", "word", "word"),
        ("true", "count", "5", 5),
        ("false", "path", "5", "5"),
        ("false", "path", '"5"', "5"),
        ("true", "either", '["a"]', '["a"]'),
        ("false", "either", '["a"]', ["a"]),
    ],
)
@pytest.mark.parametrize("format", DSML)
def test_dsml_says_itself_which_values_are_text(
    format: str, said: str, name: str, text: str, value: Any
) -> None:
    call = one_value(format, name, text).replace('string="true"', f'string="{said}"')
    assert calls(read(format, call)) == [("write", {name: value})]


@pytest.mark.parametrize("format", [*TEXTUAL, "gemma4", "functiongemma"])
def test_strings_stream_while_they_are_written_and_other_values_at_their_end(format: str) -> None:
    parser = text_parser(format, TOOLS)
    text = written(format, ("write", {"path": "/tmp/@cut@", "count": 12345}))
    before, after = text.split("@cut@")
    first = "".join(chunk.arguments for chunk in parser.feed(before) if isinstance(chunk, CallChunk))
    assert first == '{"path": "/tmp/'
    half = after.index("345")
    second = "".join(chunk.arguments for chunk in parser.feed(after[:half]) if isinstance(chunk, CallChunk))
    assert second == '", "count": '


@pytest.mark.parametrize(
    ("model", "format"),
    [
        ("Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen3_coder_xml"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B", "nemotron3"),
        ("ByteDance-Seed/Seed-OSS-36B-Instruct", "seed_oss"),
        ("stepfun-ai/step3", "step3"),
        ("stepfun-ai/Step-3.5-Flash", "step3p5"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek_v3"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek_r1"),
        ("deepseek-ai/DeepSeek-V3.1", "deepseek_v3.1"),
        ("deepseek-ai/DeepSeek-V3.1-Terminus", "deepseek_v3.1"),
        ("deepseek-ai/DeepSeek-V3.2", "deepseek_v3.2_dsml"),
        ("deepseek-ai/DeepSeek-V4-Flash", "deepseek_v4_dsml"),
        ("deepseek-ai/DeepSeek-V4.1", "deepseek_v4.1_dsml"),
        ("moonshotai/Kimi-K2-Instruct", "kimi_k2"),
        ("zai-org/GLM-4.5-Air", "glm4_moe"),
        ("zai-org/GLM-4.6", "glm4_moe"),
        ("zai-org/GLM-4.7", "glm47"),
        ("zai-org/GLM-5", "glm47"),
        ("MiniMaxAI/MiniMax-M1-80k", "minimax_m1"),
        ("MiniMaxAI/MiniMax-M2", "minimax_m2"),
        ("MiniMaxAI/MiniMax-M2.1", "minimax_m2"),
        ("MiniMaxAI/MiniMax-M3", "minimax_m3"),
        ("google/functiongemma-270m-it", "functiongemma"),
        ("google/gemma-4-31b-it", "gemma4"),
        ("openai/gpt-oss-120b", "harmony"),
        ("claude-sonnet-4-5", "invoke"),
    ],
)
def test_a_model_is_known_by_its_name(model: str, format: str) -> None:
    assert format_for(model).name == format


# Anything at all: pieces of the formats, of values and of nothing in any order.
SCRAPS = (
    *(
        "write",
        "now",
        "path",
        "count",
        "function",
        "call:",
        "functions.now:0",
        "```json",
        '{"path": "x"}',
        "12",
    ),
    *(
        "=",
        ">",
        '"',
        " name=",
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\n",
        " ",
        "<",
        "</",
        "\\",
        "é",
        "\ud83d",
        "\ude00",
    ),
    *("<think>", "</think>"),
)
WORDS = sorted({word for name in ALL for word in format_named(name).reserved})
PIECES = st.sampled_from([*WORDS, *SCRAPS])


@given(format=st.sampled_from(ALL), pieces=st.lists(PIECES, max_size=30), cuts=st.lists(st.integers(1, 9)))
def test_anything_is_read_the_same_however_it_is_cut(format: str, pieces: list[str], cuts: list[int]) -> None:
    text = "".join(pieces)
    whole = parse_text(text, format, TOOLS)
    parser = text_parser(format, TOOLS)
    place = 0
    for length in cuts:
        parser.feed(text[place : place + length])
        place += length
    parser.feed(text[place:])
    parser.finish()
    assert parser.parsed() == whole


def harmless(text: str) -> bool:
    """Whether a text begins no special token: those are broken where a call is written into the history."""
    return re.search(SPECIAL, text) is None


ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "path": st.text(max_size=20).filter(harmless),
        "content": st.text(st.sampled_from("a<>/=\"'\n {}[]\\|&parmetfunciov_"), max_size=40).filter(
            harmless
        ),
        "count": st.integers(),
        "ratio": st.floats(allow_nan=False, allow_infinity=False),
        "deep": st.booleans(),
        "tags": st.lists(st.text(max_size=5), max_size=3),
        "point": st.fixed_dictionaries({"x": st.integers(), "label": st.text(max_size=5)}),
        "limit": st.none() | st.integers(),
        "mode": st.sampled_from(["none", "all"]),
    },
)


@given(format=st.sampled_from(ALL), arguments=ARGUMENTS)
def test_any_arguments_that_are_written_are_read_again(format: str, arguments: dict[str, Any]) -> None:
    text = written(format, ("write", arguments))
    assert calls(parse_text(text, format, TOOLS)) == [("write", arguments)]


HOSTILE = {
    "one long value": lambda format, size: raw_or_call(format, "x <" * size),
    "closing tags": lambda format, size: raw_or_call(
        format, "".join(format_named(format).reserved) * (size // 20)
    ),
    "many calls": lambda format, size: written(format, *[("now", {})] * (size // 10)),
    "many parameters": lambda format, size: written(
        format, ("write", {f"p{at}": "x" for at in range(size // 10)})
    ),
    "openings": lambda format, size: format_named(format).reserved[0] * (size // 4),
    "spaces": lambda format, size: raw_or_call(format, (" " * 50 + "\n") * (size // 20)),
}


def raw_or_call(format: str, value: str) -> str:
    return written(format, ("write", {"content": "@@"})).replace("@@", value)


@pytest.mark.slow
@each("kind", HOSTILE)
@each("format", ["qwen3_coder_xml", "invoke", "glm47", "minimax_m3", "kimi_k2", "gemma4", "harmony"])
@each("step", [7, 10**9], ids=["in pieces", "at once"])
def test_reading_costs_no_more_than_the_text_is_long(format: str, kind: str, step: int) -> None:
    def make(size: int) -> Any:
        text = HOSTILE[kind](format, size)
        pieces = [text[at : at + step] for at in range(0, len(text), step)]

        def work() -> None:
            parser = text_parser(format, TOOLS)
            for piece in pieces:
                parser.feed(piece)
            parser.finish()
            parser.parsed()

        return work

    assert growth(make, 500, 4000, at_most=16) < 16


@pytest.mark.parametrize("format", DSML)
@pytest.mark.parametrize("bars", ["|DSML|", "｜｜DSML｜｜", "||DSML||"])
def test_the_mark_of_dsml_may_have_other_bars(format: str, bars: str) -> None:
    good = written(format, ("write", {"path": "a", "count": 2}))
    text = f"So.\n{good.replace('｜DSML｜', bars)}\n\nThen.\n{good}"
    parsed = read(format, text)
    assert calls(parsed) == [("write", {"path": "a", "count": 2})] * 2
    assert parsed.text.split() == ["So.", "Then."]
    mixed = good.replace("｜DSML｜", bars, 1)
    assert all(call.problem for call in read(format, mixed).calls)


@pytest.mark.slow
def test_a_marker_costs_no_more_than_it_is_long() -> None:
    assert growth(lambda size: lambda: Markers([f"<{'a' * size}>"]), 4000, 64000, at_most=40) < 40
