"""The whole answer as one JSON object, `{"content": ..., "tool_calls": [...]}`: what a merged schema allows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolcrib.call import ToolCall
from toolcrib.codecs.text.answer import Answer
from toolcrib.codecs.text.constraints import json_schema
from toolcrib.codecs.text.escaping import escape_markers_in_json
from toolcrib.codecs.text.format import ResultText, TextFormat, Tools
from toolcrib.codecs.text.json_calls import CallObject, Found, loaded, read_string
from toolcrib.codecs.text.prose import Prose
from toolcrib.codecs.text.scanner import Scanner, Steps
from toolcrib.codecs.text.teaching import call_arguments, json_tools

if TYPE_CHECKING:
    from toolcrib.spec import ToolSpec

PLAIN_RUN = re.compile(r'[^"\\]+')
ESCAPED = {"u": 6}  # characters of an escape; all others have two
HIGH_SURROGATE = re.compile(r"\\u[dD][89abAB]")


def parse(scan: Scanner, answer: Answer, tools: Tools) -> Steps[None]:
    """Read an answer; one that is no such object is text."""
    prose = Prose(scan, answer, (), at_beginning=lambda: _object(scan, answer))
    yield from prose.until_marker()


def _object(scan: Scanner, answer: Answer) -> Steps[None]:
    start = scan.offset
    if (yield from scan.mark()) != "{":
        answer.text(scan.since(start))
        return
    scan.skip(1)
    known = False
    while True:
        mark = yield from scan.mark()
        if mark == ",":
            scan.skip(1)
            continue
        key = (yield from read_string(scan, mark)) if mark == '"' else None
        if key is not None:
            yield from scan.skip_space()
        if key not in ("content", "tool_calls") or (yield from scan.peek()) != ":":
            break
        scan.skip(1)
        mark = yield from scan.mark()
        if key == "content" and mark == '"':
            known = True
            scan.skip(1)
            yield from _content(scan, answer)
        elif key == "tool_calls" and mark == "[":
            known = True
            scan.skip(1)
            if not (yield from _calls(scan, answer)):
                break
        elif not (yield from scan.json_value(lambda _: None)):
            break
    if not known:
        answer.text(scan.since(start))
    else:
        yield from scan.until(())


def _content(scan: Scanner, answer: Answer) -> Steps[None]:
    """The text of a JSON string, as it comes."""
    while True:
        yield from scan.take_while(PLAIN_RUN, answer.text)
        ahead = yield from scan.peek(2)
        if not ahead.startswith("\\"):
            scan.skip(1)
            return
        length = ESCAPED.get(ahead[1:], 2)
        if length > 2 and HIGH_SURROGATE.match((yield from scan.peek(12))):
            length = 12
        escape = yield from scan.peek(length)
        text = loaded(f'"{escape}"')
        scan.skip(length)
        answer.text(text if isinstance(text, str) else escape)


def _calls(scan: Scanner, answer: Answer) -> Steps[bool]:
    while True:
        mark = yield from scan.mark()
        if mark == ",":
            scan.skip(1)
        elif mark == "{":
            if (yield from CallObject(scan, answer, (), certain=True).read()) is not Found.CALL:
                return False
        else:
            scan.skip(1 if mark == "]" else 0)
            return mark == "]"


def _teach(specs: Sequence[ToolSpec]) -> str:
    return (
        f"# Tools\n\nYou may call these tools:\n<tools>\n{json_tools(specs, wrapped=False)}\n</tools>\n\n"
        "Your whole answer is one JSON object: the text for the user, and the calls, none or several:\n"
        '{"content": "TEXT", "tool_calls": [{"name": "NAME", "arguments": {"PARAMETER": "VALUE"}}]}\n'
        "The results of calls come in <tool_response> with the next message."
    )


def _write_calls(calls: Sequence[ToolCall]) -> str:
    said = [{"name": call.name, "arguments": call_arguments(call)} for call in calls]
    return escape_markers_in_json({"content": "", "tool_calls": said})


def _write_result(result: ResultText) -> str:
    failed = ' error="true"' if result.is_error else ""
    return f'<tool_response name="{result.name}"{failed}>\n{result.text}\n</tool_response>'


FORMATS = (
    TextFormat(
        name="merged_json",
        parse=parse,
        teach=_teach,
        write_calls=_write_calls,
        write_result=_write_result,
        constraints={"json_schema": json_schema},
    ),
)
