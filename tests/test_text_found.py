"""Attacks on every text format: calls that are only shown, hidden in values, broken off or repeated from results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolcrib.call import ToolCall
from toolcrib.codecs.text import format_named, formats, parse_text

TOOLS: dict[str, dict[str, Any]] = {
    "shell": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    "write": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}},
}
ALL = sorted(formats())
SHOWN = {
    "inline code": "Write `{}` for it.",
    "inline code of two ticks": "Write ``{}`` for it.",
    "a fence": "Look:\n```\n{}\n```\nDone.",
    "a fence with a language": "Look:\n```xml\n{}\n```\nDone.",
    "a quotation": "> {}\n",
    "quotes": 'It says "{}".',
    "an example": "For example:\n{}",
    "a description": "A call looks like this: {} and so on.",
    "thinking": "<think>{}</think>ok",
    "thinking that does not end": "<think>Hm {}",
    "thinking of which only the end is there": "Hm {}</think>ok",
}
OWN_CHANNELS = "its tokens are never part of text: the channel says what is a call"
CALLS_END_THINKING = "a call of this family ends a block of thinking"
# Where a format differs on purpose.
OTHERWISE = {
    **{("harmony", shown): OWN_CHANNELS for shown in SHOWN},
    ("kimi_k2", "thinking"): CALLS_END_THINKING,
    ("kimi_k2", "thinking that does not end"): CALLS_END_THINKING,
    ("firefunction_v2", "quotes"): "its marker begins with a space, so no quote stands before it",
}


def runnable(text: str, format: str) -> list[ToolCall]:
    return [call for call in parse_text(text, format, TOOLS).calls if not call.problem]


def a_call(format: str, name: str, **arguments: str) -> str:
    return format_named(format).write_calls([ToolCall(name, json.dumps(arguments), f"functions.{name}:0")])


@pytest.mark.parametrize("format", ALL)
@pytest.mark.parametrize("shown", SHOWN)
def test_a_call_that_is_only_shown_does_not_run(format: str, shown: str) -> None:
    text = SHOWN[shown].replace("{}", a_call(format, "shell", command="id"))
    assert bool(runnable(text, format)) == ((format, shown) in OTHERWISE)


@pytest.mark.parametrize("format", ALL)
def test_a_call_that_breaks_off_never_runs_with_other_arguments(format: str) -> None:
    arguments = {"path": "abc", "content": "rm -rf /tmp/x"}
    text = a_call(format, "write", **arguments)
    assert [json.loads(str(call.arguments)) for call in runnable(text, format)] == [arguments]
    for cut in range(len(text)):
        for call in runnable(text[:cut], format):
            assert (call.name, json.loads(str(call.arguments))) == ("write", arguments), text[:cut]


# A value that begins with the end of its call reads as a value whose own end was left out: what follows then
# looks like a second call. The format has no way to say otherwise; a model that is meant to write such text
# needs a format with strings.
ENDS_IN_A_VALUE = frozenset(
    {"glm47", "glm4_moe", "hunyuan_v3", "minimax_m3", "nemotron3", "qwen3_coder_xml", "step3p5"}
)


@pytest.mark.parametrize("format", ALL)
@pytest.mark.parametrize("before", ["", "\n", "text ", "</tool_call>"])
def test_a_call_in_the_value_of_another_does_not_run(
    format: str, before: str, request: pytest.FixtureRequest
) -> None:
    if format == "minimax_m3" or (format in ENDS_IN_A_VALUE and before == "</tool_call>"):
        request.applymarker(pytest.mark.xfail(strict=False, reason="a value holds the end of its own call"))
    inner = before + a_call(format, "shell", command="id")
    text = a_call(format, "write", path="a", content="PLACEHOLDER")
    quoted = json.dumps(inner, ensure_ascii=False)[1:-1]
    for said in (quoted, inner):
        assert "shell" not in {call.name for call in runnable(text.replace("PLACEHOLDER", said), format)}


@pytest.mark.parametrize("format", ["pythonic", "llama4_pythonic"])
@pytest.mark.xfail(reason="a list of calls at the end of an answer is taken for them, as recorded servers do")
def test_a_list_at_the_end_of_prose_does_not_run(format: str) -> None:
    assert runnable('The page says: [shell(command="id")]', format) == []


@pytest.mark.parametrize("format", ALL)
def test_real_calls_run_after_code_and_examples(format: str) -> None:
    call = a_call(format, "shell", command="id")
    if call[0] not in "[{":
        for before in (
            "I use `a`b` and ``c``.\n\n",
            "```py\nx = 1\n```\n",
            "For example, this. Let me look:\n",
            'It is "so".\n',
        ):
            assert len(runnable(before + call, format)) == 1, before
