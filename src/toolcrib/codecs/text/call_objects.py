"""Calls that are written as JSON objects: `{"name": ..., "arguments": {...}}`, under any of the usual keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from enum import Enum
from typing import Any, Final

from toolcrib.call import ToolCall
from toolcrib.codecs.text.answer import CUT_OFF, AnswerBuilder
from toolcrib.codecs.text.scanner import Scanner, Steps, drive
from toolcrib.codecs.wire_json import compact
from toolcrib.json_text.lenient_grammar import Unreadable
from toolcrib.json_text.lenient_reader import read_json

__all__ = [
    "ARGUMENT_KEYS",
    "ID_KEYS",
    "LIST_KEYS",
    "NO_JSON",
    "NO_NAME",
    "OTHER_KEYS",
    "WRAPPER_KEYS",
    "CallObject",
    "Found",
    "calls_in",
    "loaded",
    "read_keyed_calls",
    "read_string",
    "readable",
]

# All keys under which models write the parts of a call. No other module has such a list.
NAME_KEYS: Final = frozenset({"name", "tool_name", "tool", "function_name"})
ARGUMENT_KEYS: Final = frozenset({"arguments", "parameters", "args", "input", "params", "tool_input"})
ID_KEYS: Final = frozenset({"id", "tool_call_id", "call_id"})
WRAPPER_KEYS: Final = frozenset({"function", "function_call", "tool_call"})  # what holds name and arguments
LIST_KEYS: Final = frozenset({"tool_calls", "toolcalls"})  # what holds several calls
OTHER_KEYS: Final = frozenset({"type", "index"})
CALL_KEYS: Final = NAME_KEYS | ARGUMENT_KEYS | ID_KEYS | WRAPPER_KEYS | OTHER_KEYS
DECLARING_KEYS: Final = frozenset({"description", "input_schema", "inputSchema"})
SCHEMA_KEYS: Final = frozenset(
    {"type", "properties", "required", "additionalProperties", "$defs", "description", "title", "$schema"}
)

NO_JSON: Final = (
    "what was written for the call is no JSON object; "
    "write it again as one, its strings escaped as JSON wants"
)
NO_NAME: Final = "the call does not say which tool is meant; write it again with the tool's name"
NO_ARGUMENTS: Final = "the call has no arguments; write it again with them, as {} where there are none"
DECLARATION: Final = (
    "this is the declaration of a tool and no call of it; give values for its parameters, not their schema"
)
TWO_CALLS: Final = "the call names two tools; write one call for each"
TWO_ARGUMENTS: Final = (
    "the call has its arguments twice, under different keys; write it again with the right ones alone"
)

PLAIN_STRING: Final = re.compile(r'"([^"\\\ud800-\udfff]*)"')  # halves of a character are for the decoder
_DECODER: Final = json.JSONDecoder(strict=False)


class Found(Enum):
    """The kinds of things that a JSON object can turn out to be."""

    CALL = "call"
    FAILED = "failed"  # a call that can never run; it was reported with its problem
    NOTHING = "nothing"  # no call; nothing was reported


class CallObject:
    """Reads one object that is a call, or perhaps is one; the arguments are handed on while they are read.

    `stops` are delimiters that end it wherever they stand outside of a string. `certain` says that a delimiter
    announced it: what cannot be read is then a failed call; else it is no call and is not reported. `checked`
    fails a call whose arguments are no JSON, or whose last bracket is missing.
    """

    __slots__ = (
        "_answer",
        "_certain",
        "_checked",
        "_declares",
        "_early",
        "_foreign",
        "_given",
        "_id",
        "_listed",
        "_name",
        "_opened",
        "_problem",
        "_scan",
        "_start",
        "_stops",
        "_whole",
        "complete",
    )

    def __init__(
        self,
        scan: Scanner,
        answer: AnswerBuilder,
        stops: tuple[str, ...],
        *,
        certain: bool,
        checked: bool = False,
    ) -> None:
        self._scan = scan
        self._answer = answer
        self._stops = stops
        self._certain = certain
        self._checked = checked
        self._start = scan.offset
        self._name = ""
        self._id = ""
        self._opened = False
        self._listed = False  # whether it holds a list of calls, some of which were read
        self._whole = True  # whether the arguments were read to their end
        self._early: list[str] | None = None  # arguments that came before the name
        self._given = ""  # the key of the arguments
        self._foreign = False  # whether it has members that no call has
        self._declares = False  # whether it has members that only the declaration of a tool has
        self._problem = ""
        self.complete = False  # whether its last bracket was read

    def read(self, *, needs_arguments: bool = False, opened: bool = False) -> Steps[Found]:
        """Read the object that begins here, or whose bracket was read if it is `opened`."""
        depth = 1 if opened else 0
        complete = False
        while True:
            mark = yield from self._scan.mark()
            if mark == "{" and depth == 0:
                self._scan.skip(1)
                depth = 1
            elif mark == "}":
                self._scan.skip(1)
                depth -= 1
                if depth <= 0:
                    complete = True
                    break
            elif mark == ",":
                self._scan.skip(1)
            elif mark in ('"', "'") and mark:
                step = yield from self._member(mark)
                if step == "deeper":
                    depth += 1
                elif step == "foreign":
                    return Found.NOTHING
                elif step == "broken":
                    break
            else:
                break
        if not complete and self._opened and self._whole and self._stops and not self._checked:
            ahead = yield from self._scan.peek(max(map(len, self._stops)))
            complete = ahead.startswith(self._stops)  # nothing is missing but the last bracket
        self.complete = complete
        return self._end(complete, needs_arguments)

    def _member(self, quote: str) -> Steps[str]:
        key = yield from read_string(self._scan, quote)
        if key is None:
            return "broken"
        if not self._certain and key not in CALL_KEYS and key not in LIST_KEYS:
            return "foreign"
        if (yield from self._scan.mark()) != ":":
            return "broken"
        self._scan.skip(1)
        mark = yield from self._scan.mark()
        if key in WRAPPER_KEYS and mark == "{":
            self._scan.skip(1)
            return "deeper"
        if key in LIST_KEYS and mark == "[" and not self._opened and not self._name:
            return (yield from self._list())
        if key in ARGUMENT_KEYS and self._given:
            self._problem = TWO_ARGUMENTS
        elif key in ARGUMENT_KEYS:
            self._given = key
            return (yield from self._arguments(mark))
        value: list[str] = []
        if not (yield from self._scan.json_value(value.append, self._stops)):
            return "broken"
        self._foreign = self._foreign or key not in CALL_KEYS
        self._declares = self._declares or key in DECLARING_KEYS
        if isinstance(text := loaded("".join(value)), str):
            if key in NAME_KEYS or key == "function":
                self._named(text)
            elif key in ID_KEYS and not self._id:
                self._id = text
                self._answer.call_id(text if self._opened else "")
        return "read"

    def _list(self) -> Steps[str]:
        """Several calls under one key."""
        self._scan.skip(1)
        while True:
            mark = yield from self._scan.mark()
            if mark == "]":
                self._scan.skip(1)
                return "read"
            if mark == ",":
                self._scan.skip(1)
                continue
            if mark != "{":
                return "broken"
            inner = CallObject(
                self._scan,
                self._answer,
                self._stops,
                certain=self._certain or self._listed,
                checked=self._checked,
            )
            found = yield from inner.read()
            if found is not Found.CALL:
                return "broken" if self._listed or found is Found.FAILED else "foreign"
            self._listed = True

    def _named(self, name: str) -> None:
        if self._name:
            self._problem = self._problem or (TWO_CALLS if name != self._name else "")
            return
        self._name = name
        if self._early is not None:
            self._open()
            self._answer.arguments("".join(self._early))

    def _open(self) -> None:
        self._answer.open_call(self._name, self._id)
        self._opened = True

    def _arguments(self, mark: str) -> Steps[str]:
        if mark != "{":
            if not self._certain and mark != '"':
                return "foreign"
            value: list[str] = []
            complete = yield from self._scan.json_value(value.append, self._stops)
            if not complete:
                return "broken"
            self._early = [_unwrapped("".join(value))]
            if self._name:
                self._open()
                self._answer.arguments(self._early[0])
            return "read"
        if not self._name:
            self._early = []
            return "read" if (yield from self._scan.json_value(self._early.append, self._stops)) else "broken"
        self._open()
        complete = yield from self._scan.json_value(self._answer.arguments, self._stops)
        self._whole = complete
        return "read" if complete else "broken"

    def _end(self, complete: bool, needs_arguments: bool) -> Found:
        if self._opened and complete:
            problem = self._problem or (DECLARATION if self._is_declaration() else "")
            if not problem and self._checked and not readable(self._answer.written):
                problem = NO_JSON
                self._answer.doubt_what_follows()
            if problem:
                self._answer.fail_call(problem)
                return Found.FAILED
            self._answer.close_call()
            return Found.CALL
        if self._listed:
            return Found.CALL if complete else Found.FAILED
        if self._opened:
            self._answer.fail_call(CUT_OFF if self._scan.ended else NO_JSON)
            self._answer.doubt_what_follows()  # a quote that was not escaped may have ended a string too early
            return Found.FAILED
        if not self._certain:
            return Found.NOTHING
        bare = self._declares or self._foreign or needs_arguments  # then it is no call without arguments
        if complete and self._name and not bare:
            self._open()
            self._answer.arguments("{}")
            self._answer.close_call()
            return Found.CALL
        problem = NO_ARGUMENTS if complete and self._name else NO_NAME if complete else CUT_OFF
        self._answer.open_call(self._name, self._id)
        self._answer.arguments(self._scan.since(self._start))
        self._answer.fail_call(DECLARATION if complete and self._declares else problem)
        return Found.FAILED

    def _is_declaration(self) -> bool:
        """Whether the object declares a tool: its arguments are a schema, or stand beside a description."""
        if self._declares and self._given in ("parameters", "params"):
            return True
        text = self._answer.written
        if '"properties"' not in text:
            return False
        value = loaded(text)
        return (
            isinstance(value, dict)
            and value.keys() <= SCHEMA_KEYS
            and value.get("type") == "object"
            and isinstance(value.get("properties"), dict)
        )


def calls_in(values: Iterable[Any], *, certain: bool = True) -> list[ToolCall]:
    """The calls among JSON values. With `certain`, a value that is not a call becomes a call with a problem."""
    scan, answer = Scanner(), AnswerBuilder()
    scan.feed("".join(map(compact, values)))
    scan.end()
    drive(_all_calls(scan, answer, certain))
    answer.finish()
    return [part for part in answer.parts() if isinstance(part, ToolCall)]


def _all_calls(scan: Scanner, answer: AnswerBuilder, certain: bool) -> Steps[None]:
    while (yield from scan.mark()):
        if (yield from scan.peek()) == "{":
            call = CallObject(scan, answer, (), certain=certain, checked=True)
            if (yield from call.read()) is Found.NOTHING:
                answer.fail_call(NO_ARGUMENTS)
                return
        else:
            yield from scan.json_value(lambda _: None)
            answer.fail_call(NO_NAME)


def readable(text: str) -> bool:
    """Whether a text is JSON, or has one reading as JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        try:
            read_json(text)
        except Unreadable:
            return False
    return True


def read_string(scan: Scanner, quote: str) -> Steps[str | None]:
    """The JSON string that begins here with a quote; None where it does not end."""
    if (plain := scan.take(PLAIN_STRING)) is not None:
        return plain[1]
    scan.skip(1)
    pieces: list[str] = [quote]
    if not (yield from scan.string_rest(quote, pieces.append)):
        return None
    text = "".join(pieces)
    value = loaded(text)
    return value if isinstance(value, str) else text[1:-1]


def loaded(text: str) -> Any:
    """The JSON value of a text, in whose strings control characters are allowed; None if the text is not JSON."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _unwrapped(text: str) -> str:
    """Arguments that are JSON in a string are that JSON; null means none."""
    if text == "null":
        return "{}"
    inner = loaded(text)
    return inner if isinstance(inner, str) and inner.lstrip().startswith("{") else text


def read_keyed_calls(scan: Scanner, answer: AnswerBuilder, stops: tuple[str, ...]) -> Steps[Found]:
    """Read the calls in an object whose keys are the tools' names: `{"get_weather": {...}}`."""
    start = scan.offset
    scan.skip(1)
    while True:
        mark = yield from scan.mark()
        if mark == "}":
            scan.skip(1)
            return Found.CALL
        if mark == ",":
            scan.skip(1)
            continue
        name = (yield from read_string(scan, mark)) if mark == '"' else None
        if name is not None:
            yield from scan.skip_space()
        if name is None or (yield from scan.peek()) != ":":
            answer.open_call("")
            answer.arguments(scan.since(start))
            answer.fail_call(CUT_OFF if scan.ended else NO_JSON)
            return Found.FAILED
        scan.skip(1)
        answer.open_call(name)
        if not (yield from scan.json_value(answer.arguments, stops)):
            answer.fail_call(CUT_OFF if scan.ended else NO_JSON)
            answer.doubt_what_follows()
            return Found.FAILED
        answer.close_call()
