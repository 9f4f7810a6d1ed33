"""Calls whose arguments are elements in elements, each tag behind a mark: MiniMax M3.

It is a grammar of its own because the tags are the names of keys, at any depth.

An element holds text or other elements. It is a list where the schema says so, or where its first element
is an `item` that the schema does not name; else an object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from toolcrib.codecs.text.answer import CUT_OFF, AnswerBuilder
from toolcrib.codecs.text.arguments import ArgumentWriter, Place, TextValue
from toolcrib.codecs.text.delimiters import Delimiters
from toolcrib.codecs.text.escaping import escape_json
from toolcrib.codecs.text.form import Form, Tools, safe_name
from toolcrib.codecs.text.scanner import Markers, Scanner, Steps
from toolcrib.codecs.text.tagged_calls import NO_PARAMETER, TaggedEngine
from toolcrib.codecs.text.tagged_parameters import Header, attributes, read_tag
from toolcrib.dataclass import dataclass

__all__ = ["DELIMITERS", "MARK", "read", "write_parameter"]

MARK: Final = "]<]minimax[>["
MAX_DEPTH: Final = 50
ELEMENT: Final = re.compile(r"\s*([^\s/]+)\s*")
CROSSED = (
    "the elements of the call are not closed in the order in which they were opened; "
    "write it again, each closing tag for the last that is open"
)
TOO_DEEP = f"the arguments nest deeper than {MAX_DEPTH} levels; write the call again with flatter ones"

DELIMITERS: Final = Delimiters(
    sections={f"{MARK}<tool_call>": f"{MARK}</tool_call>"},
    section_ends=(f"{MARK}</tool_call>",),
    call=f"{MARK}<invoke",
    call_end=f"{MARK}</invoke>",
    call_name="attribute",
    parameter=f"{MARK}<",
    parameter_end=f"{MARK}</",
)
_MARKS: Final = Markers((MARK,))
_TAG: Final = Markers(("</", "<"))


def write_parameter(form: Form, name: str, value: Any) -> str:
    """An argument as an element on a line of its own."""
    try:
        return f"{_element(form, name, value)}\n"
    except RecursionError:  # deeper than a model would write
        return f"{_element(form, name, escape_json(value, form.reserved))}\n"


def _element(form: Form, name: str, value: Any) -> str:
    tag = safe_name(name)
    if isinstance(value, Mapping):
        inner = "".join(_element(form, str(key), item) for key, item in value.items())
    elif isinstance(value, list):
        inner = "".join(_element(form, "item", item) for item in value)
    else:
        inner = form.value(value)
    return f"{MARK}<{tag}>{inner}{MARK}</{tag}>"


@dataclass(slots=True)
class _Element:
    """An open element, and what was read in it so far."""

    tag: str
    place: Place
    value: TextValue | None = None  # None for the arguments as a whole
    has_text: bool = False
    inner: int | None = None  # elements in it, once there are any
    listed: bool = False

    def add(self, text: str) -> None:
        self.has_text = self.has_text or not text.isspace()
        if self.value is not None and self.inner is None:
            self.value.add(text)

    def begin(self, name: str) -> str:
        """The JSON before the next element in this element."""
        if self.inner is None:
            kinds = self.place.kinds
            named = name == "item" and not self.place.declares(name)
            self.listed = "array" in kinds and ("object" not in kinds or named)
        first, self.inner = self.inner is None, (self.inner or 0) + 1
        mark = ("[" if self.listed else "{") if first else ", "
        return mark if self.listed else f"{mark}{json.dumps(name, ensure_ascii=False)}: "

    def inside(self, name: str) -> Place:
        return self.place.item((self.inner or 1) - 1) if self.listed else self.place.member(name)

    @property
    def mixed(self) -> bool:
        """Whether the element holds text, so that no element can stand in it."""
        return self.has_text or (self.value is not None and self.value.streams)

    def end(self, writer: ArgumentWriter) -> None:
        kinds = self.place.kinds
        if self.inner is not None:
            writer.json("]" if self.listed else "}")
        elif self.value is None or (
            not self.has_text and "string" not in kinds and kinds & {"object", "array"}
        ):
            writer.json("[]" if "array" in kinds else "{}")
        else:
            self.value.end()


def _name_in_tag(text: str) -> Header | None:
    match = ELEMENT.fullmatch(text)
    return Header(match[1]) if match else None


def _opening(text: str) -> Header | None:
    """The name in `<NAME>`, or in `<parameter name="NAME">` as earlier models of the family write it."""
    kind, _, rest = text.partition(" ")
    if kind == "parameter" and rest:
        return attributes(f" {rest}")
    return _name_in_tag(text)


class ElementEngine(TaggedEngine):
    """The engine for tagged calls, with elements as arguments."""

    def body(self, tool: str) -> Steps[None]:
        """Reads the arguments of a call and its end."""
        scan = self.scan
        if (yield from scan.mark()) == "{":
            yield from super().body(tool)
            return
        writer = ArgumentWriter(self.answer)
        open = [_Element("", self.parameters.of(tool))]
        while True:
            if (yield from scan.until(_MARKS, open[-1].add)) is None:
                self.answer.fail_call(CUT_OFF)
                return
            read = [MARK]
            yield from scan.skip_space(read.append)
            kind = (yield from scan.accept(_TAG)) or ""
            read.append(kind)
            header = (yield from read_tag(scan, _opening, read.append)) if kind else None
            if header is None or not header.closed:
                open[-1].add("".join(read))
                continue
            if kind == "<":
                problem = self._open(open, header.name, "".join(read), writer)
            else:
                problem = self._close(open, header.name, writer)
                if header.name in ("invoke", "tool_call"):
                    if problem:
                        self.answer.fail_call(problem)
                        self.answer.doubt_what_follows()
                    self.answer.close_call()
                    self.ahead += [] if header.name == "invoke" else list(self.delimiters.section_ends)
                    return
            if problem:
                self.answer.doubt_what_follows()  # for what is left of the values may look like calls
                yield from self.fail(problem)
                return

    def _open(self, open: list[_Element], name: str, read: str, writer: ArgumentWriter) -> str:
        """Opens an element; gives the problem if none may begin here."""
        around = open[-1]
        if around.mixed:
            return NO_PARAMETER
        if len(open) > MAX_DEPTH:
            return TOO_DEEP
        writer.json(around.begin(name))
        place = around.inside(name)
        tag = "parameter" if "<parameter " in read else name
        open.append(_Element(tag, place, TextValue(writer, place.kinds, "wrapped")))
        return ""

    def _close(self, open: list[_Element], name: str, writer: ArgumentWriter) -> str:
        """Closes an element, or the call; gives the problem if it may not end here."""
        is_call = name in ("invoke", "tool_call")
        around = open[-1]
        if around.tag != ("" if is_call else name) or (is_call and len(open) > 1):
            return CROSSED
        if len(open) == 1 and around.has_text:
            return NO_PARAMETER
        open.pop().end(writer)
        return ""


def read(form: Form, scan: Scanner, answer: AnswerBuilder, tools: Tools) -> Steps[None]:
    """Reads an answer to its end."""
    yield from ElementEngine(form, scan, answer, tools).read()
