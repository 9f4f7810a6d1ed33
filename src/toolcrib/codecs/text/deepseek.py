"""DeepSeek: special tokens up to V3.1, tags with the mark DSML since V3.2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from toolcrib.call import ToolCall
from toolcrib.codecs.text.escaping import escape_markers, escape_markers_in_json
from toolcrib.codecs.text.format import ResultText, TextFormat
from toolcrib.codecs.text.invoke import invoke_form
from toolcrib.codecs.text.teaching import call_arguments_text
from toolcrib.codecs.text.token_calls import Tokens

if TYPE_CHECKING:
    from toolcrib.spec import ToolSpec

# The first word is what V3 was trained on; R1 and servers that lose the mark ▁ write the others too.
TOKENS = Tokens(
    section=("<｜tool▁calls▁begin｜>", "<｜tool_calls_begin｜>"),
    section_end=("<｜tool▁calls▁end｜>", "<｜tool_calls_end｜>"),
    call="<｜tool▁call▁begin｜>",
    separator="<｜tool▁sep｜>",
    call_end="<｜tool▁call▁end｜>",
)
DSML_RULE = (
    'Write a string as it is with string="true", any other value as JSON with string="false"; '
    "never escape anything."
)


def _with_fence(call: ToolCall) -> str:
    return f"function{TOKENS.separator}{call.name}\n```json\n{call_arguments_text(call)}\n```"


def _plain(call: ToolCall) -> str:
    return f"{call.name}{TOKENS.separator}{call_arguments_text(call)}"


def _token_format(
    name: str, models: tuple[str, ...], one: Callable[[ToolCall], str], line: str
) -> TextFormat:
    """A format of special tokens; `one` writes what stands in a call, `line` what stands between calls."""

    def write_calls(calls: Sequence[ToolCall]) -> str:
        written = line.join(f"{TOKENS.call}{one(call)}{TOKENS.call_end}" for call in calls)
        return f"{TOKENS.section[0]}{written}{TOKENS.section_end[0]}"

    def write_result(result: ResultText) -> str:
        return f"<｜tool▁output▁begin｜>{result.text}<｜tool▁output▁end｜>"

    def teach(specs: Sequence[ToolSpec]) -> str:
        declared = "\n\n".join(
            f"### {spec.name}\nDescription: {escape_markers(spec.description)}\n\n"
            f"Parameters: {escape_markers_in_json(spec.input_schema)}"
            for spec in specs
        )
        return (
            f"## Tools\nYou have access to these tools:\n\n{declared}\n\n"
            f"To call a tool, write exactly:\n{write_calls([ToolCall('NAME', {'PARAMETER': 'VALUE'})])}\n"
            "The arguments are one JSON object. For several calls repeat what stands between "
            f"{TOKENS.section[0]} and {TOKENS.section_end[0]}. After your calls, stop: the results come with "
            "the next message."
        )

    return TextFormat(
        name=name,
        parse=TOKENS.parse,
        teach=teach,
        write_calls=write_calls,
        write_result=write_result,
        models=models,
        reserved=TOKENS.words,
    )


DSML = (  # name, models, section, what stands behind the mark
    ("deepseek_v4.1_dsml", (r"deepseek.*v-?4\.[1-9]",), "calls", " "),
    ("deepseek_v4_dsml", (r"deepseek.*v-?[4-9]",), "tool_calls", ""),
    ("deepseek_v3.2_dsml", (r"deepseek.*v-?3\.[2-9]",), "function_calls", ""),
)
MARK, *SLIPS = ("｜DSML｜", "|DSML|", "｜｜DSML｜｜", "||DSML||")  # as it is, and as models slip

FORMATS: tuple[TextFormat, ...] = (
    *(
        invoke_form(
            name,
            models,
            section,
            prefix=f"{MARK}{space}",
            variants=tuple(f"{slip}{space}" for slip in SLIPS),
            typed=True,
            rule=DSML_RULE,
            thinking=("<think>", "</think>"),
            result="<tool_result>{text}</tool_result>"
            if "v4" in name
            else "<function_results>\n<result>{text}</result>\n</function_results>",
        ).format()
        for name, models, section, space in DSML
    ),
    _token_format("deepseek_v3.1", (r"deepseek.*v-?3\.1", r"deepseek.*terminus"), _plain, ""),
    _token_format("deepseek_r1", (r"deepseek.*r-?1",), _with_fence, "\n"),
    _token_format("deepseek_v3", (r"deepseek",), _with_fence, "\n"),
)
