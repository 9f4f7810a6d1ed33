"""Text formats with parameters in tags and special tokens: the odd, the ambiguous and the broken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases import each
from tests.tagged_formats import calls, read, written

# A call of two parameters: what may stand in the first, for formats that mark only the ends of text.
INNER = {
    "qwen3_coder_xml": (
        "<tool_call>",
        "</tool_call>",
        "<function=write>",
        "</function>",
        "<parameter=zzz>",
        "</parameter>",
    ),
    "invoke": (
        "<function_calls>",
        "</function_calls>",
        '<invoke name="write">',
        "</invoke>",
        '<parameter name="zzz">',
        "</parameter>",
    ),
    "glm47": (
        "<tool_call>write<arg_key>zzz</arg_key><arg_value>",
        "</tool_call>",
        "<arg_key>",
        "</arg_key>",
        "<arg_value>",
        "</arg_value>",
    ),
}
LOOK_ALIKES = (
    "</parameters>",
    "<parameter>",
    "</parameter",
    "</function >",
    "<function>",
    "</arg_values>",
    "<|im_end|>",
    "]]>",
    "&lt;",
)


def raw(format: str, first: str, second: str = "b") -> str:
    """A call with these values as they are, nothing in them made harmless."""
    text = written(format, ("write", {"content": "@1@", "path": "@2@"}))
    return text.replace("@1@", first).replace("@2@", second)


@pytest.mark.parametrize("format", INNER)
class TestTagsInsideOfValues:
    @pytest.mark.parametrize("value", LOOK_ALIKES)
    def test_what_only_looks_like_a_tag_is_text(self, format: str, value: str) -> None:
        text = raw(format, f"a {value} b", value)
        assert calls(read(format, text)) == [("write", {"content": f"a {value} b", "path": value})]

    @pytest.mark.parametrize("index", range(6))
    def test_a_single_tag_of_the_format_in_a_value_ends_nothing_or_runs_nothing(
        self, format: str, index: int
    ) -> None:
        value = f"say {INNER[format][index]} and so on"
        parsed = read(format, raw(format, value))
        ran = [json.loads(str(call.arguments)) for call in parsed.calls if not call.problem]
        assert ran in ([], [{"content": value, "path": "b"}])

    def test_a_closing_tag_in_a_value_ends_nothing(self, format: str) -> None:
        value = f"say {INNER[format][-1]} and so on"
        assert calls(read(format, raw(format, value))) == [("write", {"content": value, "path": "b"})]

    def test_a_whole_call_in_a_value_is_text(self, format: str) -> None:
        value = f"Write like this:\n{written(format, ('now', {'zzz': '1'}))}\nand stop."
        assert calls(read(format, raw(format, value))) == [("write", {"content": value, "path": "b"})]

    def test_a_parameter_without_its_end_is_understood(self, format: str) -> None:
        text = raw(format, "a", "b").replace("\n" + INNER[format][-1], INNER[format][-1])
        text = text.replace(INNER[format][-1], "", 1)
        assert calls(read(format, text)) == [("write", {"content": "a", "path": "b"})]

    def test_a_last_parameter_without_its_end_is_understood(self, format: str) -> None:
        text = raw(format, "a", "b").replace("\n" + INNER[format][-1], INNER[format][-1])
        before, after = text.rsplit(INNER[format][-1], 1)
        assert calls(read(format, before + after)) == [("write", {"content": "a", "path": "b"})]

    def test_a_value_of_which_nobody_knows_the_end_runs_nothing(self, format: str) -> None:
        closing = INNER[format][-1]
        text = raw(format, f"one {closing} two", f"three {closing} four")
        before, after = text.rsplit(closing, 1)
        parsed = read(format, before + after + written(format, ("now", {})))
        assert all(call.problem for call in parsed.calls)
        assert parsed.calls


MARKS = {
    "minimax_m3": "]<]minimax[>[",
    "deepseek_v3.2_dsml": "｜DSML｜",
    "deepseek_v4_dsml": "｜DSML｜",
}  # written §


def marked(format: str, text: str) -> str:
    return text.replace("§", MARKS.get(format, "§"))


ODD: list[tuple[str, str, list[tuple[str, Any]], str]] = [
    # format, text, calls, text that is shown
    ("qwen3_coder_xml", "<function=now>\n</function>", [("now", {})], ""),
    ("qwen3_coder_xml", "<function=now>\n</function>\n</tool_call>", [("now", {})], ""),
    ("qwen3_coder_xml", "<tool_call><function=now></tool_call> ok", [("now", {})], "ok"),
    ("qwen3_coder_xml", '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>', [("now", {})], ""),
    ("qwen3_coder_xml", '<function=write>{"path": "a"}</function>', [("write", {"path": "a"})], ""),
    (
        "qwen3_coder_xml",
        "I may write <tool_call> or <function= later.",
        [],
        "I may write <tool_call> or <function= later.",
    ),
    ("qwen3_coder_xml", "<tool_call><function=now></function> and </tool_call>", [("now", {})], "and "),
    (
        "qwen3_coder_xml",
        "<tool_call><function=write><parameter=path>\n\n\n</parameter></function></tool_call>",
        [("write", {"path": "\n"})],
        "",
    ),
    ("qwen3_coder_xml", '<tool_call><function="now"></function></tool_call>', [("now", {})], ""),
    (
        "seed_oss",
        "<seed:think>x</seed:think><seed:tool_call><function=now></function></seed:tool_call>",
        [("now", {})],
        "",
    ),
    (
        "invoke",
        (
            "<function_calls><invoke name='write'><parameter name='path'>\na\n</parameter>"
            "</invoke></function_calls>"
        ),
        [("write", {"path": "\na\n"})],
        "",
    ),
    ("invoke", "See <invoke> and <invokes name='a'>.", [], "See <invoke> and <invokes name='a'>."),
    (
        "minimax_m2",
        (
            '<minimax:tool_call><invoke name="write"><parameter name="path">\na\n'
            "</parameter></invoke></minimax:tool_call>"
        ),
        [("write", {"path": "a"})],
        "",
    ),
    ("minimax_m2", '<invoke name="now"></invoke>', [], '<invoke name="now"></invoke>'),
    (
        "deepseek_v4_dsml",
        '<§function_calls><§invoke name="now"></§invoke>',
        [],
        '<§function_calls><§invoke name="now"></§invoke>',
    ),
    (
        "deepseek_v3.2_dsml",
        '<§function_calls>\n<§invoke name="write">\n{"path": "a"}\n</§invoke></§function_calls>',
        [("write", {"path": "a"})],
        "",
    ),
    (
        "deepseek_v3.2_dsml",
        (
            '<§function_calls><§invoke name="write">'
            '<§parameter name="input" string="true">{"path": "a"}</§parameter></§invoke>'
            "</§function_calls>"
        ),
        [("write", {"path": "a"})],
        "",
    ),
    (
        "deepseek_v3.2_dsml",
        (
            '<§function_calls><§invoke name="write">'
            '<§parameter name="input" string="false">{"a": 1}</§parameter>'
            '<§parameter name="path" string="true">b</§parameter></§invoke></§function_calls>'
        ),
        [("write", {"input": {"a": 1}, "path": "b"})],
        "",
    ),
    ("glm47", "<tool_call>now</tool_call> done", [("now", {})], "done"),
    ("glm47", "<tool_call> later, perhaps", [], "<tool_call> later, perhaps"),
    (
        "glm4_moe",
        '<tool_call>write\\n<arg_key>tags</arg_key>\\n<arg_value>[{\\"a\\": 1}]</arg_value></tool_call>',
        [("write", {"tags": [{"a": 1}]})],
        "",
    ),
    (
        "glm47",
        (
            "<tool_call>other<arg_key>a</arg_key><arg_value>42</arg_value><arg_key>b"
            "</arg_key><arg_value>007</arg_value></tool_call>"
        ),
        [("other", {"a": 42, "b": "007"})],
        "",
    ),
    (
        "minimax_m3",
        '§<invoke name="write">§<tags>§</tags>§</invoke>',
        [("write", {"tags": []})],
        "",
    ),
    (
        "minimax_m3",
        (
            '§<tool_call>§<invoke name="write">§<point>§<x>5§</x>§<label>5§</label>§'
            "</point>§</invoke>§</tool_call>"
        ),
        [("write", {"point": {"x": 5, "label": "5"}})],
        "",
    ),
    (
        "minimax_m3",
        '§<tool_call>§<invoke name="other">§<a>§<item>1§</item>§</a>§</invoke>§</tool_call>',
        [("other", {"a": ["1"]})],
        "",
    ),
    ("kimi_k2", "<|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}", [("now", {})], ""),
    (
        "kimi_k2",
        (
            "<think>hm<|tool_calls_section_begin|>noise<|tool_call_begin|>now:3"
            "<|tool_call_argument_begin|><|tool_call_end|><|tool_calls_section_end|>x"
        ),
        [("now", {})],
        "x",
    ),
    (
        "kimi_k2",
        (
            '<|tool_call_begin|>functions.write:0<|tool_call_argument_begin|>{"path": "'
            '<|tool_call_end|>"}<|tool_call_end|>'
        ),
        [("write", {"path": "<|tool_call_end|>"})],
        "",
    ),
    (
        "deepseek_v3",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        [("now", {})],
        "",
    ),
    (
        "deepseek_v3.1",
        (
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function"
            "<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        ),
        [("now", {})],
        "",
    ),
    (
        "functiongemma",
        (
            "<start_function_call>call:write{path:<escape>a}b<escape>,tags:[<escape>c"
            "<escape>]}<end_function_call>"
        ),
        [("write", {"path": "a}b", "tags": ["c"]})],
        "",
    ),
    (
        "gemma4",
        (
            "<|channel>thought\nhm<channel|>"
            "<|tool_call>call:write{count:4,path:12,deep:true,limit:null}<tool_call|>ok"
        ),
        [("write", {"count": 4, "path": "12", "deep": True, "limit": None})],
        "ok",
    ),
    (
        "gemma4",
        '<|tool_call>call:other{a:{"b" : [ 1 , -2.5e3,x y] },<|"|>c d<|"|>:"q\\n"}<tool_call|>',
        [("other", {"a": {"b": [1, -2500.0, "x y"]}, "c d": "q\n"})],
        "",
    ),
    (
        "gemma4",
        "<|tool_call>call:now{}<tool_call|><|tool_response>response:now{value:1}<tool_response|>",
        [("now", {})],
        "",
    ),
    ("harmony", "Just text.", [], "Just text."),
    ("harmony", " to=functions.now<|channel|>commentary<|message|>{}", [("now", {})], ""),
    (
        "harmony",
        (
            "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant"
            "<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}<|call|>"
        ),
        [("now", {})],
        "I look.",
    ),
    ("harmony", "analysis hm assistantfinal Done.", [], "Done."),
    (
        "harmony",
        (
            '<|channel|>analysis<|message|>{"name": "now"}<|end|><|start|>assistant'
            "<|channel|>final<|message|>ok<|return|>"
        ),
        [],
        "ok",
    ),
]


@each(("format", "text", "expected", "shown"), ODD)
def test_odd_but_clear(format: str, text: str, expected: list[tuple[str, Any]], shown: str) -> None:
    parsed = read(format, marked(format, text))
    assert calls(parsed) == expected
    assert parsed.text == marked(format, shown)


BROKEN = [
    ("qwen3_coder_xml", "<tool_call>\n<function=now\n</function>\n</tool_call>", "now"),
    ("qwen3_coder_xml", "<tool_call>\n<function=>\n</function>\n</tool_call>", ""),
    ("qwen3_coder_xml", "<tool_call><function=write>path is a</function></tool_call>", "write"),
    ("qwen3_coder_xml", '<tool_call><function=write>{"path": "a"</function></tool_call>', "write"),
    ("qwen3_coder_xml", "<tool_call>", ""),
    ("invoke", "<function_calls><invoke></invoke></function_calls>", ""),
    ("step3", "<｜tool_calls_begin｜>call now<｜tool_calls_end｜>", ""),
    (
        "minimax_m3",
        '§<tool_call>§<invoke name="write">§<path>a§</paths>§</invoke>§</tool_call>',
        "write",
    ),
    (
        "minimax_m3",
        '§<tool_call>§<invoke name="write">§<path>a§<b>c§</b>§</path>§</invoke>§</tool_call>',
        "write",
    ),
    (
        "kimi_k2",
        "<|tool_call_begin|>functions.now.0<|tool_call_argument_begin|>{}<|tool_call_end|>",
        "functions.now.0",
    ),
    (
        "kimi_k2",
        '<|tool_call_begin|>functions.write:0<|tool_call_argument_begin|>{"path": "a"<|tool_call_end|>',
        "write",
    ),
    (
        "kimi_k2",
        "<|tool_call_begin|>functions.write:0<|tool_call_argument_begin|>path a<|tool_call_end|>",
        "write",
    ),
    ("deepseek_v3", "<｜tool▁calls▁begin｜>now()<｜tool▁calls▁end｜>", ""),
    ("deepseek_v3.1", "<｜tool▁call▁begin｜>{}<｜tool▁call▁end｜>", "{}"),
    ("gemma4", "<|tool_call>call:write(path)<tool_call|>", "write(path)"),
    ("gemma4", "<|tool_call>call:write{path}<tool_call|>", "write"),
    ("harmony", "<|channel|>commentary to=functions.write", "write"),
    ("harmony", '<|channel|>commentary to=functions.write<|message|>{"path": <|call|>', "write"),
]


@pytest.mark.parametrize(("format", "text", "name"), BROKEN)
def test_what_is_meant_as_a_call_but_cannot_be_read_is_told_to_the_model(
    format: str, text: str, name: str
) -> None:
    parsed = read(format, marked(format, text))
    assert [call.name for call in parsed.calls] == [name]
    assert parsed.calls[0].problem
    assert not parsed.text


def test_a_parameter_that_is_given_twice_is_handed_on_twice() -> None:
    both = "<parameter=path>a</parameter><parameter=path>b</parameter>"
    text = f"<tool_call><function=write>{both}</function></tool_call>"
    assert read("qwen3_coder_xml", text).calls[0].arguments == '{"path": "a", "path": "b"}'


def test_a_broken_call_takes_none_of_its_neighbours_with_it() -> None:
    good = "<tool_call>\n<function=now>\n</function>\n</tool_call>"
    parsed = read(
        "qwen3_coder_xml", f"{good}\n<tool_call>\n<function=write\n</function>\n</tool_call>\n{good}"
    )
    assert [bool(call.problem) for call in parsed.calls] == [False, True, False]
