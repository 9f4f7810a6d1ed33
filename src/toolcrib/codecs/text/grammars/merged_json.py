"""The whole answer as one JSON object, `{"content": ..., "tool_calls": [...]}`: what a merged schema allows.

It is a grammar of its own because the text for the user is a member of the object, too.
"""

from __future__ import annotations

import re

from toolcrib.codecs.text.after_failures import names_in, past_broken_call, report_unclear
from toolcrib.codecs.text.answer import AnswerBuilder
from toolcrib.codecs.text.call_objects import NO_JSON, CallObject, Found, loaded, read_string
from toolcrib.codecs.text.form import Form, Tools
from toolcrib.codecs.text.prose import Prose
from toolcrib.codecs.text.scanner import Markers, Scanner, Steps

__all__ = ["read"]

PLAIN_RUN = re.compile(r'[^"\\]+')
ESCAPED = {"u": 6}  # characters of an escape; all others have two
NOTHING = Markers(())
HIGH_SURROGATE = re.compile(r"\\u[dD][89abAB]")


def read(_form: Form, scan: Scanner, answer: AnswerBuilder, _tools: Tools) -> Steps[None]:
    """Reads an answer to its end; an answer that is no such object is text."""
    prose = Prose(scan, answer, (), at_beginning=lambda: _object(scan, answer))
    yield from prose.until_marker()


def _object(scan: Scanner, answer: AnswerBuilder) -> Steps[None]:
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


def _content(scan: Scanner, answer: AnswerBuilder) -> Steps[None]:
    """Reads a JSON string and hands on its text while it comes."""
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


def _calls(scan: Scanner, answer: AnswerBuilder) -> Steps[bool]:
    while True:
        mark = yield from scan.mark()
        if mark == ",":
            scan.skip(1)
        elif mark == "{":
            begun = scan.offset
            found = yield from CallObject(scan, answer, (), certain=True).read()
            if found is not Found.CALL and (
                yield from past_broken_call(scan, answer, NOTHING, "name", begun)
            ):
                return False
        else:
            scan.skip(1 if mark == "]" else 0)
            if mark and mark != "]":
                rest: list[str] = []
                yield from scan.until(NOTHING, rest.append)
                answer.fail_call(NO_JSON)
                report_unclear(answer, names_in("".join(rest), "name"))
            return mark == "]"
