"""Calls whose tags are the tools' own names: `<read_file><path>a.txt</path></read_file>`.

A parameter is a tag in the call; its value is text, trimmed but in `content`, and in CDATA it may hold any
tag. A closing tag ends a value where another tag follows it. A tool's name in prose, in code or in a
quotation is no call. It is a grammar of its own because the delimiters are the tools' names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from toolcrib.call import ToolCall
from toolcrib.codecs.text.answer import CUT_OFF, AnswerBuilder
from toolcrib.codecs.text.arguments import ArgumentWriter, Parameters, Place, TextValue, read_value
from toolcrib.codecs.text.form import Form, Tools
from toolcrib.codecs.text.prose import CautiousProse
from toolcrib.codecs.text.scanner import Into, Scanner, Steps, markers_of
from toolcrib.codecs.wire_json import arguments_object

__all__ = ["read", "write_call"]

VERBATIM: Final = frozenset(
    {"content"}
)  # parameters that keep their white space, but one line break each side
CDATA: Final = "<![CDATA["
CDATA_END: Final = "]]>"
NAME: Final = re.compile(r"[A-Za-z_][\w.:-]{0,127}")
IN_TAG: Final = re.compile(r"[^<>\n]+")
LONGEST_TAG: Final = 64
ELEMENT: Final = re.compile(r"\s*<([A-Za-z_][\w.-]*)>(.*?)</\1>\s*", re.DOTALL)
MAX_DEPTH: Final = 8

NO_PARAMETER: Final = (
    "in a call there may be only parameters, each in a tag of its own; write it again with nothing else"
)
NESTED: Final = "a call stands in another call; write them one after the other"
TWICE: Final = "the parameter {name!r} stands twice; write the call again with each of them once"


def read(_form: Form, scan: Scanner, answer: AnswerBuilder, tools: Tools) -> Steps[None]:
    """Reads an answer to its end."""
    yield from _Reader(scan, answer, tools).run()


class _Reader:
    def __init__(self, scan: Scanner, answer: AnswerBuilder, tools: Tools) -> None:
        self.scan = scan
        self.answer = answer
        self.tools = tools
        self.prose = CautiousProse(scan, answer, tuple(f"<{name}>" for name in tools))
        self.parameters = Parameters(tools)

    def run(self) -> Steps[None]:
        around = self.prose.around
        while (marker := (yield from self.prose.until_marker())) is not None:
            start = self.scan.offset - len(marker)
            name = marker[1:-1]
            if around.for_show:
                self.prose.release(start)
                yield from self.scan.until((f"</{name}>",), around.text)
                around.shown()
                continue
            at_line_start = around.line_start
            mark = yield from self.scan.mark()
            if mark != "<" and (mark or not at_line_start):
                self.prose.release(start)
                continue
            yield from self.call(name)
            around.called()

    def call(self, name: str) -> Steps[None]:
        """Reads the parameters of a call up to its end."""
        self.answer.open_call(name)
        writer = ArgumentWriter(self.answer)
        lists: dict[str, list[Any]] = {}
        end = markers_of((f"</{name}>",))
        while not (yield from self.scan.accept(end)):
            problem = yield from self.parameter(name, writer, lists)
            if problem:
                self.answer.fail_call(CUT_OFF if self.scan.ended and problem == NO_PARAMETER else problem)
                if problem != CUT_OFF:
                    yield from self.scan.until(end)
                return
            yield from self.scan.skip_space()
        for key, items in lists.items():
            writer.name(key)
            writer.value(items)
        writer.end()
        self.answer.close_call()

    def parameter(self, tool: str, writer: ArgumentWriter, lists: dict[str, list[Any]]) -> Steps[str]:
        """Reads one parameter; gives the problem if it cannot be read."""
        name = yield from self.tag()
        if name is None:
            return NO_PARAMETER
        place = self.parameters.place(tool, name)
        if name in self.tools and not self.parameters.of(tool).declares(name):
            return NESTED
        if name in writer.names:
            return TWICE.format(name=name)
        if place.is_text:
            writer.name(name)
            value = TextValue(writer, place.kinds, "none")
            complete = yield from self.value(name, value.add)
            value.end()
            return "" if complete else CUT_OFF
        pieces: list[str] = []
        complete = yield from self.value(name, pieces.append)
        found = structured("".join(pieces), place)
        if "array" in place.kinds and "string" not in place.kinds:
            lists.setdefault(name, []).extend(found if isinstance(found, list) else [found])
        else:
            writer.name(name)
            writer.value(found)
        return "" if complete else CUT_OFF

    def tag(self) -> Steps[str | None]:
        """Reads an opening tag; gives its name, or None if none stands here."""
        if (yield from self.scan.peek()) != "<":
            return None
        self.scan.skip(1)
        pieces: list[str] = []
        yield from self.scan.take_while(IN_TAG, pieces.append, LONGEST_TAG)
        name = "".join(pieces)
        return name if (yield from self.scan.accept((">",))) and NAME.fullmatch(name) else None

    def value(self, name: str, into: Into) -> Steps[bool]:
        """Reads a value up to its closing tag; False if there is none."""
        closer = f"</{name}>"
        marks = markers_of((closer, CDATA))
        trimmed = _Trimmed(into, keeps=name in VERBATIM)
        while (marker := (yield from self.scan.until(marks, trimmed.add))) is not None:
            if marker == CDATA:
                if (yield from self.scan.until((CDATA_END,), trimmed.exactly)) is None:
                    return False
                continue
            space: list[str] = []
            yield from self.scan.skip_space(space.append)
            if (yield from self.scan.peek()) in ("<", ""):
                return True
            trimmed.add(closer + "".join(space))
        return False


class _Trimmed:
    """Drops the white space around a value, which is layout, except in values that keep it and in CDATA."""

    __slots__ = ("_into", "_keeps", "_pending", "_started")

    def __init__(self, into: Into, *, keeps: bool) -> None:
        self._into = into
        self._keeps = keeps
        self._started = False
        self._pending: list[str] = []  # white space that may turn out to be layout

    def add(self, piece: str) -> None:
        if not self._started:
            piece = piece.removeprefix("\n") if self._keeps else piece.lstrip()
            self._started = bool(piece) or self._keeps
        bare = piece.removesuffix("\n") if self._keeps else piece.rstrip()
        if bare or self._keeps:
            self._hand_on(bare)
        if len(bare) < len(piece):
            self._pending.append(piece[len(bare) :])

    def exactly(self, piece: str) -> None:
        self._started = True
        self._hand_on(piece)

    def _hand_on(self, piece: str) -> None:
        self._into("".join(self._pending) + piece)
        self._pending.clear()


def structured(text: str, place: Place, depth: int = 0) -> Any:
    """The value of a text that is no string: JSON, or tags in tags where the schema takes an object or a list."""
    bare = text.strip()
    if depth < MAX_DEPTH and bare.startswith("<") and place.kinds & {"object", "array"}:
        members = _elements(bare)
        if members is not None and "object" in place.kinds:
            return {key: structured(inner, place.member(key), depth + 1) for key, inner in members}
        if members is not None:
            item = place.item(0)
            return [structured(inner, item, depth + 1) for _, inner in members]
    return read_value(text, place.kinds)


def _elements(text: str) -> list[tuple[str, str]] | None:
    """The elements of a text that is nothing else."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = ELEMENT.match(text, at)
        if match is None:
            return None
        found.append((match[1], match[2]))
        at = match.end()
    return found


def write_call(_form: Form, call: ToolCall) -> str:
    """A call as an element with an element for each argument."""
    return f"<{call.name}>{_members(arguments_object(call.arguments))}</{call.name}>"


def _members(arguments: Mapping[str, Any]) -> str:
    return "".join(f"<{name}>{_written(value)}</{name}>" for name, value in arguments.items())


def _written(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if "<" not in text and text == text.strip():
        return text
    return CDATA + text.replace(CDATA_END, f"]]{CDATA_END}{CDATA}>") + CDATA_END
