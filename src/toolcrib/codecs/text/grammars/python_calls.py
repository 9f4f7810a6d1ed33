"""Calls in Python's syntax: `[f(a=1, b='x'), g()]`, between delimiters or where an answer begins.

It is a grammar of its own because names, arguments and values are Python. Values are read as text, and only
literals; nothing is ever evaluated.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any, Final

from toolcrib.call import ToolCall
from toolcrib.codecs.text.after_failures import report_unclear
from toolcrib.codecs.text.answer import CUT_OFF, AnswerBuilder
from toolcrib.codecs.text.call_objects import Found
from toolcrib.codecs.text.engine import Engine
from toolcrib.codecs.text.escaping import escape_json
from toolcrib.codecs.text.form import Form, Tools
from toolcrib.codecs.text.scanner import Into, Scanner, Steps
from toolcrib.codecs.wire_json import arguments_object

__all__ = ["literal", "read", "write_call"]

NAME: Final = re.compile(r"[^\W\d][\w.-]*")
NAME_RUN: Final = re.compile(r"[\w.-]+")
KEYWORD: Final = re.compile(r"[^\W\d]\w*")
KEYWORD_RUN: Final = re.compile(r"\w+")
NAMED: Final = re.compile(r"\s*(\w+)\s*=(?!=)")

JSON_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
LONGEST_NUMBER: Final = 4000

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


CALLED: Final = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\(")


class PythonEngine(Engine):
    """The engine for calls in Python's syntax; in a section, some models write JSON objects all the same."""

    unreadable = NO_CALL
    only_in_lists = True

    def begins_call(self, mark: str) -> bool:
        return mark in ("{", "_") or mark.isalpha()

    def read_call(self, *, certain: bool) -> Steps[Found]:
        if certain and (yield from self.scan.peek()) == "{":
            return (yield from self.call_object(self.delimiters.all))
        return (yield from PythonCalls(self.scan, self.answer).call(certain=certain))

    def next_call(self, begun: int) -> Steps[bool]:
        """Reports the calls behind one that could not be read: they may be parts of it."""
        stop, _, called = yield from self._rest()
        report_unclear(self.answer, called)
        return stop in self.delimiters.sections

    def no_call_here(self) -> Steps[bool]:
        """Reports what stands between the calls of a section and is none, and the calls behind it; else it is text."""
        stop, rest, called = yield from self._rest()
        if called:
            self.answer.open_call("")
            self.answer.arguments(rest.strip())
            self.answer.fail_call(self.unreadable)
            report_unclear(self.answer, called)
        else:
            self.answer.text(rest)
        return stop in self.delimiters.sections

    def _rest(self) -> Steps[tuple[str | None, str, list[str]]]:
        """Reads to the next delimiter: gives it, the text before it, and the tools that look called in the text."""
        pieces: list[str] = []
        stop = yield from self.scan.until(self.delimiters.all, pieces.append)
        rest = "".join(pieces)
        return stop, rest, [name for name in CALLED.findall(rest) if name in self.tools]


def read(form: Form, scan: Scanner, answer: AnswerBuilder, tools: Tools) -> Steps[None]:
    """Reads an answer to its end."""
    yield from PythonEngine(form, scan, answer, tools).read()


class PythonCalls:
    """Reads calls in Python's syntax and reports them, their arguments as JSON."""

    def __init__(self, scan: Scanner, answer: AnswerBuilder) -> None:
        self._scan = scan
        self._answer = answer

    def call(self, *, certain: bool) -> Steps[Found]:
        """Reads one call; without certainty, what does not begin like `f(a=` or `f()` is no call and not reported."""
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
        """Reads the rest of a call behind its bracket."""
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
        """Reads the next argument's name and its `=`; empty behind the last argument, None if neither stands here."""
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


NUMBER_RUN: Final = re.compile(r"[\w.+-]+")
# A number or a string of one reading, with what must follow it.
SIMPLE: Final = re.compile(r"""(?:(-?(?:0|[1-9][0-9]{0,15}))|"([^"\\\n]*)"|'([^'\\\n]*)')(?=\s*[,)\]}])""")
PLAIN: Final = {quote: re.compile(rf"[^\\{quote}]+") for quote in "'\""}
CONSTANTS: Final = {
    "True": "true",
    "False": "false",
    "None": "null",
    "true": "true",
    "false": "false",
    "null": "null",
}
ESCAPES: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "a": "\a",
    "v": "\v",
    "0": "\0",
    "\n": "",
}
CODES: Final = {"x": 2, "u": 4, "U": 8}  # hexadecimal digits behind a backslash and this letter
CLOSING: Final = {"[": "]", "(": ")", "{": "}"}


def literal(scan: Scanner, into: Into) -> Steps[bool]:
    """Reads one Python literal and writes it as JSON; False if it is no literal or not complete."""
    open_: list[str] = []  # the brackets around, "{:" for a dict whose value comes next
    while True:
        mark = yield from scan.mark()
        if mark in ("[", "{", "("):
            if open_ and open_[-1] == "{":
                return False  # no key
            scan.skip(1)
            into("{" if mark == "{" else "[")
            open_.append(mark)
            if (yield from scan.mark()) != CLOSING[mark]:
                continue
        elif open_ and open_[-1] == "{":
            if mark not in ("'", '"') or not (yield from _strings(scan, into)):
                return False
            if (yield from scan.mark()) != ":":
                return False
            scan.skip(1)
            into(": ")
            open_[-1] = "{:"
            continue
        elif not (yield from _scalar(scan, into, mark)):
            return False
        # A value is complete: close what it completes.
        while open_:
            if open_[-1] == "{:":
                open_[-1] = "{"
            mark = yield from scan.mark()
            if mark == ",":
                scan.skip(1)
                if (yield from scan.mark()) != CLOSING[open_[-1]]:
                    into(", ")
                    break
                mark = CLOSING[open_[-1]]
            if mark != CLOSING[open_[-1]]:
                return False
            scan.skip(1)
            into("}" if mark == "}" else "]")
            open_.pop()
        else:
            return True


def _scalar(scan: Scanner, into: Into, mark: str) -> Steps[bool]:
    if (simple := scan.take(SIMPLE)) is not None:
        number, *quoted = simple.groups()
        into(number or json.dumps(next(text for text in quoted if text is not None), ensure_ascii=False))
        return True
    if mark in ("'", '"'):
        return (yield from _strings(scan, into))
    pieces: list[str] = []
    yield from scan.take_while(NUMBER_RUN, pieces.append)
    word = "".join(pieces)
    if word in ("r", "u", "R", "U") and (yield from scan.peek()) in ("'", '"') and not scan.at_end:
        return (yield from _strings(scan, into, raw=word in "rR"))
    value = CONSTANTS.get(word) or _number(word)
    if value is None or (scan.ended and scan.at_end):
        return False
    into(value)
    return True


def _number(word: str) -> str | None:
    """A Python number as JSON: as it is written where JSON writes it alike, so that it keeps its digits."""
    if len(word) >= LONGEST_NUMBER:
        return None
    if JSON_NUMBER.fullmatch(word):
        return word
    try:
        return str(int(word, 0))
    except ValueError:
        pass
    try:
        number = float(word)
        exact = math.isfinite(number) and Decimal(word) == Decimal(repr(number))
        return json.dumps(number) if exact else None
    except (ValueError, ArithmeticError):
        return None


def _strings(scan: Scanner, into: Into, *, raw: bool = False) -> Steps[bool]:
    """Reads one string, or several side by side, as one JSON string."""
    into('"')
    while True:
        quote = yield from scan.peek(3)
        if quote not in ("'''", '"""'):
            quote = quote[:1]
        scan.skip(len(quote))
        if not (yield from _string(scan, into, quote, raw)):
            return False
        if (yield from scan.mark()) not in ("'", '"') or scan.at_end:
            into('"')
            return True


def _string(scan: Scanner, into: Into, quote: str, raw: bool) -> Steps[bool]:
    def write(text: str) -> None:
        into(json.dumps(text, ensure_ascii=False)[1:-1])

    plain = PLAIN[quote[0]]
    while True:
        yield from scan.take_while(plain, write)
        ahead = yield from scan.peek(len(quote))
        if ahead == quote:
            scan.skip(len(quote))
            return True
        if ahead[:1] != "\\":
            if not ahead:
                return False
            write(ahead[0])  # a quote inside a string of three
            scan.skip(1)
            continue
        ahead = yield from scan.peek(2)
        if len(ahead) < 2:
            return False
        scan.skip(2)
        if raw:
            write(ahead)
        elif (length := CODES.get(ahead[1])) is not None:
            digits = yield from scan.peek(length)
            try:
                write(chr(int(digits, 16)))
                scan.skip(length)
            except (ValueError, OverflowError):
                write(ahead)
        elif ahead[1] in "\\'\"":
            write(ahead[1])
        else:
            write(ESCAPES.get(ahead[1], ahead))
