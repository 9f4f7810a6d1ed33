"""Functionary's messages to recipients: `>>>NAME` and a line break begin a call, `>>>all` the text for the user.

The answer begins with a recipient without `>>>`, because the prompt ends with that. It is a grammar of its own
because nothing ends a message but the next one.
"""

from __future__ import annotations

import re
from typing import Final

from toolcrib.codecs.text.after_failures import report_unclear
from toolcrib.codecs.text.answer import CUT_OFF, AnswerBuilder
from toolcrib.codecs.text.call_objects import NO_JSON
from toolcrib.codecs.text.form import Form, Tools
from toolcrib.codecs.text.prose import Prose
from toolcrib.codecs.text.scanner import Scanner, Steps

__all__ = ["read"]

SWALLOWED: Final = re.compile(r"\n>>>([\w.:-]+)\n")
NAME: Final = re.compile(r"[\w.:-]+")
EVERYBODY: Final = "all"


def read(form: Form, scan: Scanner, answer: AnswerBuilder, tools: Tools) -> Steps[None]:
    """Reads an answer to its end."""
    begin = form.delimiters.call
    prose = Prose(scan, answer, form.delimiters.words)
    yield from prose.begin()
    start = scan.offset
    while True:
        pieces: list[str] = []
        yield from scan.take_while(NAME, pieces.append)
        name = "".join(pieces)
        line = bool(name) and (yield from scan.peek()) == "\n"
        if line:
            scan.skip(1)
        if line and name != EVERYBODY and (name in tools or (yield from scan.peek()) == "{"):
            yield from _call(name, scan, answer)
        elif not line or name != EVERYBODY:
            answer.text(scan.since(start))
        marker = yield from prose.until_marker()
        while marker is not None and marker != begin:
            marker = yield from prose.until_marker()
        if marker is None:
            return
        start = scan.offset - len(begin)


def _call(name: str, scan: Scanner, answer: AnswerBuilder) -> Steps[None]:
    answer.open_call(name)
    begun = scan.offset
    if (yield from scan.mark()) == "{" and (yield from scan.json_value(answer.arguments)):
        answer.close_call()
        return
    if answer.written:
        answer.doubt_what_follows()
    answer.fail_call(CUT_OFF if scan.ended else NO_JSON)
    report_unclear(answer, SWALLOWED.findall(scan.since(begun)))
