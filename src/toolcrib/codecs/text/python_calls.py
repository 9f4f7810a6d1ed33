"""Calls in Python's syntax: `[f(a=1, b='x'), g()]`, between delimiters or where an answer begins."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from toolcrib.call import ToolCall
from toolcrib.codecs.text.answer import CUT_OFF, Answer
from toolcrib.codecs.text.call_objects import CallObject, Found
from toolcrib.codecs.text.escaping import escape_json
from toolcrib.codecs.text.form import Form, Tools
from toolcrib.codecs.text.prose import Prose
from toolcrib.codecs.text.python_literals import literal
from toolcrib.codecs.text.scanner import Scanner, Steps
from toolcrib.codecs.wire_json import arguments_object

__all__ = ["read", "write_call"]

NAME: Final = re.compile(r"[^\W\d][\w.-]*")
NAME_RUN: Final = re.compile(r"[\w.-]+")
KEYWORD: Final = re.compile(r"[^\W\d]\w*")
KEYWORD_RUN: Final = re.compile(r"\w+")
NAMED: Final = re.compile(r"\s*(\w+)\s*=(?!=)")
BETWEEN: Final = "[],;"

NO_LITERAL: Final = (
    "the value of {} is no Python literal; write the call again with numbers, strings, lists or dicts"
)
NO_KEYWORD: Final = (
    "an argument has no name; write the call again with all of them named, as in {}(name=value)"
)
NO_CALL: Final = "what was written is no call; write it again as name(parameter=value)"


def write_call(form: Form, call: ToolCall) -> str:
    """A call in Python's syntax; a JSON object where an argument's name is no name in Python."""
    arguments = arguments_object(call.arguments)
    if not all(KEYWORD.fullmatch(name) for name in arguments):
        return escape_json({"name": call.name, "arguments": dict(arguments)}, form.reserved)
    written = ", ".join(f"{name}={_literal(value, form)}" for name, value in arguments.items())
    return f"{call.name}({written})"


def _literal(value: Any, form: Form) -> str:
    """A value as a Python literal; strings as in JSON, whose escapes Python knows."""
    if isinstance(value, str):
        return escape_json(json.dumps(value, ensure_ascii=False), form.reserved)
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{_literal(str(k), form)}: {_literal(v, form)}" for k, v in value.items()) + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_literal(item, form) for item in value) + "]"
    return repr(value)


def read(form: Form, scan: Scanner, answer: Answer, tools: Tools) -> Steps[None]:
    """Read an answer to its end."""
    reader = _Reader(form, scan, answer)
    at_beginning = reader.unmarked if form.unmarked else None
    prose = Prose(scan, answer, form.delimiters.words, at_beginning=at_beginning)
    while (marker := (yield from prose.until_marker())) is not None:
        if marker in form.delimiters.sections:
            yield from reader.section()


class _Reader:
    def __init__(self, form: Form, scan: Scanner, answer: Answer) -> None:
        self._delimiters = form.delimiters
        self._scan = scan
        self._answer = answer

    def section(self) -> Steps[None]:
        """What follows the beginning of a section: Python, or JSON objects, which some models write too."""
        scan, some = self._scan, False
        while True:
            space: list[str] = []
            mark = yield from scan.mark(space.append)
            if (yield from scan.accept(self._delimiters.section_ends)):
                return
            if mark and mark in BETWEEN:
                scan.skip(1)
                continue
            if not mark:
                if not some:
                    self._answer.fail_call(CUT_OFF)
                return
            if not some or mark == "{" or mark == "_" or mark.isalpha():
                found = yield from self._one(mark)
            elif self._delimiters.section_ends:
                self._answer.fail_call(NO_CALL)
                found = Found.FAILED
            else:
                self._answer.text("".join(space))
                return
            some = True
            if (
                found is not Found.CALL
                and (yield from scan.until(self._delimiters.all)) not in self._delimiters.sections
            ):
                return

    def _one(self, mark: str) -> Steps[Found]:
        if mark == "{":
            call = CallObject(self._scan, self._answer, self._delimiters.words, certain=True)
            return (yield from call.read())
        return (yield from PythonCalls(self._scan, self._answer).call(certain=True))

    def unmarked(self) -> Steps[None]:
        """A list of calls with which an answer begins; what is none is text."""
        start = self._scan.offset
        if (yield from self._scan.mark()) == "[":
            self._scan.skip(1)
            yield from self._scan.skip_space()
            found = yield from self._list(self._answer)
            if found is Found.FAILED:
                yield from self._scan.until(self._delimiters.all)
            if found is not Found.NOTHING:
                return
        self._answer.text(self._scan.since(start))

    def _list(self, answer: Answer) -> Steps[Found]:
        """The calls of a list up to its bracket, the first of which must look like one."""
        calls = PythonCalls(self._scan, answer)
        found = yield from calls.call(certain=False)
        while found is Found.CALL:
            mark = yield from self._scan.mark()
            if mark == "]":
                self._scan.skip(1)
                return found
            if mark != ",":
                return found
            self._scan.skip(1)
            if (yield from self._scan.mark()) != "]":
                found = yield from calls.call(certain=True)
        return found


class PythonCalls:
    """Reads calls in Python's syntax and reports them, their arguments as JSON."""

    def __init__(self, scan: Scanner, answer: Answer) -> None:
        self._scan = scan
        self._answer = answer

    def call(self, *, certain: bool) -> Steps[Found]:
        """One call; without certainty what does not begin like `f(a=` or `f()` is none, and not reported."""
        scan = self._scan
        name: list[str] = []
        yield from scan.take_while(NAME_RUN, name.append)
        yield from scan.skip_space()
        called = "".join(name)
        if not NAME.fullmatch(called) or (yield from scan.peek()) != "(":
            return self._failed(NO_CALL, called) if certain else Found.NOTHING
        scan.skip(1)
        return (yield from self.arguments_of(called, certain=certain))

    def arguments_of(self, called: str, *, certain: bool) -> Steps[Found]:
        """The rest of a call after its bracket."""
        scan, answer = self._scan, self._answer
        key = yield from self._keyword()
        if key is None:
            return self._failed(NO_KEYWORD.format(called), called) if certain else Found.NOTHING
        answer.open_call(called)
        answer.arguments("{")
        first = True
        while key:
            answer.arguments(f"{'' if first else ', '}{json.dumps(key, ensure_ascii=False)}: ")
            first = False
            if not (yield from literal(scan, answer.arguments)):
                return self._failed(NO_LITERAL.format(key), called)
            if (yield from scan.mark()) == ",":
                scan.skip(1)
            elif (yield from scan.peek()) != ")":
                return self._failed(NO_LITERAL.format(key), called)
            key = yield from self._keyword()
            if key is None:
                return self._failed(NO_KEYWORD.format(called), called)
        answer.arguments("}")
        answer.close_call()
        return Found.CALL

    def _keyword(self) -> Steps[str | None]:
        """The next argument's name, with its `=`; empty after the last one, None for what is neither."""
        scan = self._scan
        if (named := scan.take(NAMED)) is not None:
            return named[1]
        if (yield from scan.mark()) == ")":
            scan.skip(1)
            return ""
        name: list[str] = []
        yield from scan.take_while(KEYWORD_RUN, name.append)
        yield from scan.skip_space()
        ahead = yield from scan.peek(2)
        if not name or ahead[:1] != "=" or ahead == "==":
            return None
        scan.skip(1)
        return "".join(name)

    def _failed(self, problem: str, name: str) -> Found:
        cut_off = self._scan.ended and self._scan.at_end
        if self._answer.written:
            self._answer.doubt_what_follows()
        self._answer.fail_call(CUT_OFF if cut_off else problem, name)
        return Found.FAILED
