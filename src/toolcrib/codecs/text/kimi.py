"""Kimi K2: special tokens, and ids that hold the name: `functions.NAME:0`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolcrib.call import ToolCall
from toolcrib.codecs.text.format import ResultText, TextFormat
from toolcrib.codecs.text.teaching import call_arguments_text, json_tool_list
from toolcrib.codecs.text.token_calls import Callee, Tokens

if TYPE_CHECKING:
    from toolcrib.spec import ToolSpec

NO_ID = "what names the tool is not of the form functions.NAME:NUMBER; write the call again with an id of that form"
_ID = re.compile(r"(?:functions\.)?([^\s:]+):(\d+)")
_NAME = re.compile(r"(?:functions\.)?([\w-]+)")
_LONGEST = 200

TOKENS = Tokens(
    section=("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"),
    section_end=("<|tool_calls_section_end|>", "<|tool_call_section_end|>"),
    call="<|tool_call_begin|>",
    separator="<|tool_call_argument_begin|>",
    call_end="<|tool_call_end|>",
    callee=lambda head: callee(head),
    ends_thinking=True,
)


def callee(head: str) -> Callee:
    """The tool that an id names."""
    if match := _ID.fullmatch(head):
        return Callee(match[1], head)
    if match := _NAME.fullmatch(head):
        return Callee(match[1])
    return Callee(head[:_LONGEST], problem=NO_ID if head else "")


def _wire_id(call: ToolCall, index: int) -> str:
    return call.id if _ID.fullmatch(call.id) else f"functions.{call.name}:{index}"


def write_calls(calls: Sequence[ToolCall]) -> str:
    written = "".join(
        f"{TOKENS.call}{_wire_id(call, index)}{TOKENS.separator}{call_arguments_text(call)}{TOKENS.call_end}"
        for index, call in enumerate(calls)
    )
    return f"{TOKENS.section[0]}{written}{TOKENS.section_end[0]}"


def write_result(result: ResultText) -> str:
    id = result.id if _ID.fullmatch(result.id) else f"functions.{result.name}"
    return f"## Return of {id}\n{result.text}"


def teach(specs: Sequence[ToolSpec]) -> str:
    example = ToolCall("NAME", '{"PARAMETER": "VALUE"}')
    return (
        f"# Tools\n\n{json_tool_list(specs)}\n\n"
        f"To call a tool, write exactly:\n{write_calls([example])}\n"
        "The number at the end of the id counts all calls of the conversation from 0; the arguments are one "
        "JSON object. Several calls stand in one section, one after the other. After your calls, stop: the "
        "results come with the next message."
    )


FORMATS: tuple[TextFormat, ...] = (
    TextFormat(
        name="kimi_k2",
        parse=TOKENS.parse,
        teach=teach,
        write_calls=write_calls,
        write_result=write_result,
        models=(r"kimi", r"moonshot"),
        reserved=TOKENS.words,
        thinking=("<think>", "</think>"),
    ),
)
