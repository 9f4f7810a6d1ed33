"""Reads what stands in the tag or code fence of a call, in whatever shape a model wrote it."""

from __future__ import annotations

import re
from itertools import product
from typing import Any, Final

from toolcrib.call import ToolCall
from toolcrib.codecs.text.after_failures import names_in, report_unclear
from toolcrib.codecs.text.answer import CUT_OFF, AnswerBuilder
from toolcrib.codecs.text.arguments import ArgumentWriter, Parameters, TextValue, Tools, read_value
from toolcrib.codecs.text.call_objects import NO_JSON, CallObject, calls_in, readable
from toolcrib.codecs.text.engine import ignore
from toolcrib.codecs.text.grammars.shortened_calls import arrow_call, members_of, name_in
from toolcrib.codecs.text.scanner import Into, Markers, Scanner, Steps, markers_of
from toolcrib.codecs.wire_json import compact
from toolcrib.json_text.lenient_grammar import Unreadable
from toolcrib.json_text.lenient_reader import read_json

__all__ = ["ATTRIBUTE", "IN_TAG", "LONGEST_TAG", "NAME_TAGS", "CallBodies", "begins_json", "loosely_read"]

NAMESPACES: Final = ("", "minimax:", "antml:", "seed:", "steptml:")
WRAPPERS: Final = (
    *("tool_call", "tool_calls", "toolcall", "toolcalls", "tool-call", "tool-calls", "tool_use"),
    *("function_call", "function_calls", "function-call", "function-calls", "functioncall", "functioncalls"),
    "invoke",
)
TAG_NAMES: Final = tuple(space + name for space, name in product(NAMESPACES, WRAPPERS))
OPENERS: Final = tuple(f"<{name}" for name in TAG_NAMES)
BRACKET: Final = "[TOOL_CALL]"
FUNCTION: Final = "<function="
CLOSERS: Final = (*(f"</{name}>" for name in TAG_NAMES), "</function>", "</arg_value>", "[/TOOL_CALL]")
STOPS: Final = (*OPENERS, *CLOSERS)

TOOLS: Final = "<tools"
OPENER_MARKS: Final = Markers((*OPENERS, BRACKET, FUNCTION), ignore_case=True)
CLOSER_MARKS: Final = Markers(CLOSERS, ignore_case=True)
END_MARKS: Final = Markers((*CLOSERS, *OPENERS, BRACKET), ignore_case=True)

FENCES: Final = frozenset(WRAPPERS)  # code fences of these languages hold calls


IN_TAG: Final = re.compile(r"[^<>\n]+")
LONGEST_TAG: Final = 64
BETWEEN: Final = re.compile(r"[\s,;]+")
ATTRIBUTE: Final = re.compile(r"""\s(?:name|tool)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
PARAMETER: Final = re.compile(
    r"""(?P<tag>[A-Za-z_][\w.:-]*)(?:\s*=\s*["']?(?P<equal>[^"'\s]+)["']?|(?P<attributes>\s[^<>]*))?\s*\Z"""
)
NAME_TAGS: Final = ("<name>", "<tool_name>", "<function_name>")

NO_CALL: Final = (
    "what was written in its place is no call; write it again as one JSON object with name and arguments"
)
NO_SINGLE_PARAMETER: Final = (
    "the call gives one value, and the tool has not exactly one parameter that it could be; "
    "write it again as one JSON object with name and arguments"
)


class CallBodies:
    """Reads the calls of one answer."""

    def __init__(self, scan: Scanner, answer: AnswerBuilder, tools: Tools) -> None:
        self.scan = scan
        self.answer = answer
        self.tools = tools
        self._parameters = Parameters(tools)

    def report(self, call: ToolCall) -> None:
        """Reports a call that was read completely."""
        self.answer.open_call(call.name, call.id)
        self.answer.arguments(str(call.arguments))
        self._close(call.problem)

    def is_name(self, name: str) -> bool:
        """Whether a word may name a tool: a known one, or any where the tools are not known."""
        return name in self.tools or (not self.tools and name.isidentifier())

    def _close(self, problem: str = "") -> None:
        if problem:
            self.answer.fail_call(problem)
        else:
            self.answer.close_call()

    # JSON

    def json_calls(self) -> Steps[str | None]:
        """Reads calls that are JSON objects, one after another or in a list; gives the tag that ended a broken one."""
        scan, listed = self.scan, False
        while True:
            yield from scan.take_while(BETWEEN)
            mark = yield from scan.peek()
            if mark == "{":
                begun = scan.offset
                if not (yield from self._object()):
                    self.answer.doubt_what_follows()
                    report_unclear(self.answer, names_in(scan.since(begun)[1:], "name"))
                    return (yield from scan.until(END_MARKS))
            elif mark == "]" and listed:
                scan.skip(1)
                listed = False
            elif (yield from begins_json(scan)):
                scan.skip(1)
                listed = True
            else:
                if listed:
                    yield from self.rest_of_json(1)
                    self.answer.fail_call(NO_JSON)
                return None

    def _object(self) -> Steps[bool]:
        """Reads one object; False if it could not be read to its end."""
        scan, start = self.scan, self.scan.offset
        call = CallObject(scan, self.answer, STOPS, certain=True, checked=True)
        scan.skip(1)
        if (yield from scan.mark()) in ('"', "}"):
            yield from call.read(opened=True)
            return call.complete
        complete = yield from self.rest_of_json(1)
        text = scan.since(start)
        value = loosely_read(text) if complete else None
        if value is None:
            self.answer.open_call(name_in(text))
            self.answer.arguments(text)
            self.answer.fail_call(CUT_OFF if scan.ended and not complete else NO_JSON)
            return False
        for made in calls_in([value]):
            self.report(made)
        return True

    def json_arguments(self, name: str) -> Steps[None]:
        """Reads a JSON value that holds the arguments of a call of this tool."""
        start = self.scan.offset
        complete = yield from self.rest_of_json(0)
        text = self.scan.since(start).strip()
        problem = (
            "" if complete and readable(text) else CUT_OFF if self.scan.ended and not complete else NO_JSON
        )
        self.report(ToolCall(name, text if complete else "", problem=problem))
        if problem:
            self.answer.doubt_what_follows()
        yield from self.scan.take_while(BETWEEN)

    def rest_of_json(self, depth: int, into: Into = ignore) -> Steps[bool]:
        """Reads the rest of a JSON value of which `depth` brackets are open; False if it is broken off."""
        known = markers_of(('"', "'", "{", "}", "[", "]", *STOPS))
        while True:
            mark = yield from self.scan.until(known, into)
            into(mark or "")
            if mark is None or mark in STOPS:
                return False
            if mark in ('"', "'"):
                if not (yield from self.scan.string_rest(mark, into)):
                    return False
                continue
            depth += 1 if mark in "{[" else -1
            if depth <= 0:
                return True

    # Tags

    def tagged_call(self, name: str, closer: str) -> Steps[None]:
        """Reads the rest of a call whose tag names the tool: JSON, or a tag for each parameter."""
        mark = yield from self.scan.mark()
        if mark == "{":
            yield from self.json_arguments(name)
            yield from self.scan.accept((closer,))
            return
        self.answer.open_call(name)
        writer = ArgumentWriter(self.answer)
        problem = yield from self._parameters_of(name, closer, writer)
        writer.end()
        self._close(problem)

    def _parameters_of(self, name: str, closer: str, writer: ArgumentWriter) -> Steps[str]:
        """Reads the parameters up to the end of the call; gives the problem if they cannot be read."""
        scan, own = self.scan, markers_of((closer,))
        while True:
            yield from scan.skip_space()
            if (yield from scan.accept(own)) or (yield from scan.accept(CLOSER_MARKS)):
                return ""
            mark = yield from scan.peek()
            if mark != "<":
                return NO_CALL if mark else CUT_OFF
            key, end = yield from self._key()
            if key is None:
                return CUT_OFF if scan.ended else NO_CALL
            writer.name(key)
            value = TextValue(writer, self._parameters.place(name, key).kinds, "wrapped")
            complete = yield from read_tagged(scan, value.add, end)
            value.end()
            if not complete:
                return CUT_OFF

    def _key(self) -> Steps[tuple[str | None, str]]:
        """Reads a tag; gives the parameter that it begins, or None, and the closing tag that ends the value."""
        scan, pieces = self.scan, list[str]()
        scan.skip(1)
        yield from scan.take_while(IN_TAG, pieces.append, LONGEST_TAG)
        tag = "".join(pieces)
        if not (yield from scan.accept((">",))):
            return None, ""
        if tag != "arg_key":
            return parameter_of(tag)
        key: list[str] = []
        if (yield from scan.until(("</arg_key>",), key.append)) is None:
            return None, ""
        yield from scan.skip_space()
        found = yield from scan.accept(("<arg_value>",))
        return "".join(key).strip() if found else None, "</arg_value>"

    # Shortened lines

    def short_call(self, name: str, start: int) -> Steps[None]:
        """Reads the rest of a shortened call, whose name ended at `start`, and the tag that ends it."""
        known = markers_of(('="', "='", *CLOSERS, *OPENERS), True)
        quotes = (yield from self.scan.peek()) not in (">", "/")
        while True:
            mark = yield from self.scan.until(known)
            if mark is None:
                self.report(ToolCall(name, "{}", problem=CUT_OFF))
                return
            if mark in CLOSERS:
                break
            if mark in OPENERS:
                self.report(ToolCall(name, "{}", problem=CUT_OFF))
                return
            if quotes:
                yield from self.scan.string_rest(mark[-1], ignore)
        text = self.scan.since(start)[: -len(mark)]
        members = members_of(text, self.tools.get(name, {}))
        problem = NO_SINGLE_PARAMETER if text.lstrip().startswith(">") else NO_CALL
        if members is None:
            self.report(ToolCall(name, "{}", problem=problem))
        else:
            root = self._parameters.of(name)
            typed = {key: read_value(value, root.member(key).kinds) for key, value in members.items()}
            self.report(ToolCall(name, compact(typed)))


def begins_json(scan: Scanner) -> Steps[bool]:
    """Whether an object or a list stands here, and no bracketed word such as `[TOOL_CALL]`."""
    mark = yield from scan.peek()
    return mark == "{" or (mark == "[" and (yield from scan.peek(2))[1:] not in ("/", "T"))


def loosely_read(text: str) -> Any:
    """The value of a text that is JSON, nearly JSON, or a call written with arrows; None for any other."""
    try:
        return read_json(text).value
    except Unreadable:
        return arrow_call(text)


def read_tagged(scan: Scanner, into: Into, closer: str) -> Steps[bool]:
    """Reads a value up to its closing tag, and the white space behind that; False if it does not end.

    The same tag followed by anything but another tag is a part of the value.
    """
    end = markers_of((closer,))
    while (yield from scan.until(end, into)) is not None:
        space: list[str] = []
        yield from scan.skip_space(space.append)
        if (yield from scan.peek()) in ("<", "`", "[", ""):
            return True
        into(closer + "".join(space))
    return False


def parameter_of(tag: str) -> tuple[str | None, str]:
    """The parameter that an opening tag begins, and the closing tag that ends it."""
    match = PARAMETER.match(tag)
    if match is None:
        return None, ""
    closer = f"</{match['tag']}>"
    if match["equal"]:
        return match["equal"], closer
    named = ATTRIBUTE.search(match["attributes"] or "")
    if named is not None:
        return next(group for group in named.groups() if group is not None), closer
    return (None if match["attributes"] else match["tag"]), closer
