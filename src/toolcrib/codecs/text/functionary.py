"""Functionary's formats: `<function=name>{...}</function>`, and recipients as `>>>name` on lines of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolcrib.call import ToolCall
from toolcrib.codecs.text.answer import CUT_OFF, Answer
from toolcrib.codecs.text.format import ResultText, TextFormat, Tools
from toolcrib.codecs.text.json_calls import NO_JSON, NO_NAME
from toolcrib.codecs.text.prose import Prose
from toolcrib.codecs.text.scanner import Scanner, Steps
from toolcrib.codecs.text.teaching import call_arguments_text, json_tools

if TYPE_CHECKING:
    from toolcrib.spec import ToolSpec

BEGIN, END, TURN = "<function=", "</function>", ">>>"
NAME_RUN = re.compile(r"[\w.:-]+")
EVERYBODY = "all"


def _tagged(scan: Scanner, answer: Answer, tools: Tools) -> Steps[None]:
    prose = Prose(scan, answer, (BEGIN, END, "<|eom_id|>", "<|eot_id|>"))
    while (marker := (yield from prose.until_marker())) is not None:
        if marker != BEGIN:
            continue
        name: list[str] = []
        yield from scan.take_while(NAME_RUN, name.append)
        if not name or not (yield from scan.accept((">",))):
            answer.fail_call(CUT_OFF if scan.ended and scan.at_end else NO_NAME, "".join(name))
            yield from scan.until((END,))
            continue
        answer.open_call("".join(name))
        yield from _arguments(scan, answer, (END, BEGIN))


def _arguments(scan: Scanner, answer: Answer, stops: tuple[str, ...]) -> Steps[None]:
    if (yield from scan.mark()) == "{" and (yield from scan.json_value(answer.arguments, stops)):
        answer.close_call()
    else:
        if answer.written:
            answer.doubt_what_follows()
        answer.fail_call(CUT_OFF if scan.ended else NO_JSON)


def _addressed(scan: Scanner, answer: Answer, tools: Tools) -> Steps[None]:
    """`all` and a line break is the text for the user; the name of a tool and one, a call."""
    prose = Prose(scan, answer, (TURN, "<|eot_id|>"))
    yield from prose.begin()
    start = scan.offset
    while True:
        name: list[str] = []
        yield from scan.take_while(NAME_RUN, name.append)
        called = "".join(name)
        line = bool(name) and (yield from scan.peek()) == "\n"
        if line:
            scan.skip(1)
        if line and called != EVERYBODY and (called in tools or (yield from scan.peek()) == "{"):
            answer.open_call(called)
            yield from _arguments(scan, answer, ())
        elif not line or called != EVERYBODY:
            answer.text(scan.since(start))
        marker = yield from prose.until_marker()
        while marker is not None and marker != TURN:
            marker = yield from prose.until_marker()
        if marker is None:
            return
        start = scan.offset - len(TURN)


def _teach(form: str, specs: Sequence[ToolSpec]) -> str:
    return (
        f"# Tools\n\nYou may call these tools:\n<tools>\n{json_tools(specs, wrapped=False)}\n</tools>\n\n"
        f"To call a tool, write exactly:\n{form}\n"
        "Several calls stand one after the other, each in this form. After your calls, stop: "
        "the results come in <tool_response> with the next message."
    )


def _teach_tagged(specs: Sequence[ToolSpec]) -> str:
    return _teach('<function=NAME>{"PARAMETER": "VALUE"}</function>', specs)


def _teach_addressed(specs: Sequence[ToolSpec]) -> str:
    form = '>>>NAME\n{"PARAMETER": "VALUE"}\nWhat is meant for the user begins with:\n>>>all'
    return _teach(form, specs)


def _write_tagged(calls: Sequence[ToolCall]) -> str:
    return "\n".join(f"{BEGIN}{call.name}>{call_arguments_text(call)}{END}" for call in calls)


def _write_addressed(calls: Sequence[ToolCall]) -> str:
    return "\n".join(f"{TURN}{call.name}\n{call_arguments_text(call)}" for call in calls)


def _write_result(result: ResultText) -> str:
    failed = ' error="true"' if result.is_error else ""
    return f'<tool_response name="{result.name}"{failed}>\n{result.text}\n</tool_response>'


FORMATS = (
    TextFormat(
        name="functionary_v3.1",
        parse=_tagged,
        teach=_teach_tagged,
        write_calls=_write_tagged,
        write_result=_write_result,
        models=(r"functionary.*v3\.1",),
    ),
    TextFormat(
        name="functionary_v3.2",
        parse=_addressed,
        teach=_teach_addressed,
        write_calls=_write_addressed,
        write_result=_write_result,
        models=(r"functionary",),
        reserved=(TURN,),
    ),
)
