"""What follows a call that could not be read: where the next call begins, and whether it may run.

A call may run behind a broken one whose last bracket is certain. Else it may be a part of the broken call, such as a
value with a quote that was not escaped: it is reported, so that the model writes it again, and never runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from toolcrib.codecs.text.answer import UNCLEAR, AnswerBuilder
from toolcrib.codecs.text.scanner import Markers, Scanner, Steps

__all__ = ["MOST_REPORTED", "call_begins", "names_in", "past_broken_call", "report_unclear"]

MARKS: Final = ("{", "[", "}", "]", '"')
STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
NAMED: Final = r'\{{\s*"{}"\s*:\s*"([^"\\]{{1,64}})"'
MOST_REPORTED: Final = 20


def past_broken_call(
    scan: Scanner, answer: AnswerBuilder, stops: Markers, key: str, begun: int
) -> Steps[str | None]:
    """Goes on behind a call that began at `begun`: gives "" where its last bracket was read, else the stop that ended
    it, or None. The calls before that stop are reported; `key` is the first in each.
    """
    text = STRING.sub("", scan.since(begun))
    depth = sum(map(text.count, "{[")) - sum(map(text.count, "}]"))
    certain = '"' not in text and not answer.unclear
    stop: str | None = ""
    while certain and depth > 0:
        mark = yield from scan.until((*MARKS, *stops.words))
        if mark in MARKS:
            depth += 1 if mark in ("{", "[") else -1
            certain = mark != '"' and not (mark == "{" and (yield from call_begins(scan, key)))
        else:
            certain, stop = False, mark
    if certain:
        return ""
    stop = stop if stop != "" else (yield from scan.until(stops))
    if key:
        report_unclear(answer, names_in(scan.since(begun)[1:], key))
    return stop


def call_begins(scan: Scanner, key: str) -> Steps[bool]:
    """Whether a call begins behind a bracket that was read, with this key."""
    if not key:
        return False
    yield from scan.skip_space()
    return (yield from scan.peek(len(key) + 2)) == f'"{key}"'


def names_in(text: str, key: str) -> list[str]:
    """The names of the calls that begin in a text, which have them under this key."""
    return re.findall(NAMED.format(re.escape(key)), text)


def report_unclear(answer: AnswerBuilder, names: Iterable[str]) -> None:
    """Reports calls of these names which may be parts of a broken call before them."""
    for name in list(names)[:MOST_REPORTED]:
        answer.doubt_what_follows()
        answer.open_call(name)
        answer.fail_call(UNCLEAR)
