"""Tagged parameters: the names in tags, and where the value between two tags ends.

A value is text, and may hold the very tags that stand around it. A closing tag counts where the format goes
on after it as it must: with another parameter, or with the end of the call. Tags that a value itself opens
are closed by its own closing tags. A missing closing tag is understood where the next parameter of the tool
begins, or where the call ends, if no other call follows. A value that has two readings all the same makes a
failed call.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from toolcrib.codecs.text.answer import CUT_OFF
from toolcrib.codecs.text.arguments import ArgumentWriter, Parameters, TextValue, Trim
from toolcrib.codecs.text.delimiters import Delimiters
from toolcrib.codecs.text.form import Form
from toolcrib.codecs.text.scanner import Into, Scanner, Steps, markers_of
from toolcrib.dataclass import dataclass, field

__all__ = [
    "Header",
    "ParameterValue",
    "ValueReader",
    "attributes",
    "call_header",
    "parameter_header",
    "read_tag",
]


IN_TAG: Final = re.compile(r"[^<>\n]+")
EQUALS: Final = re.compile(r"""(?:"([^"]*)"|'([^']*)'|([^"'\s]\S*))\s*""")
ATTRIBUTE: Final = re.compile(r"""\s+(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'/]+))""")
PLAIN_NAME: Final = re.compile(r"[^\s<>{}\\]+")
PLAIN_KEY: Final = re.compile(r"[^<>]+")


@dataclass(frozen=True, slots=True)
class Header:
    """The name in a tag, whether the format says that the value is JSON or a string, and whether the tag ends."""

    name: str
    as_json: bool | None = None
    closed: bool = True


def equals(text: str) -> Header | None:
    """The name in `<function=NAME>`, of which the text is what follows the `=`."""
    match = EQUALS.fullmatch(text)
    return Header(next(group for group in match.groups() if group is not None).strip()) if match else None


def attributes(text: str) -> Header | None:
    """The name in `<invoke name="NAME">`; `string="true"` or `"false"` beside it says whether the value is a string."""
    found: dict[str, str] = {}
    position = 0
    while match := ATTRIBUTE.match(text, position):
        key, *values = match.groups()
        found.setdefault(key, next(value for value in values if value is not None))
        position = match.end()
    if "name" not in found or text[position:].strip():
        return None
    as_json = {"true": False, "false": True}.get(found.get("string", ""))
    return Header(found["name"].strip(), as_json)


NAME_IN_TAG: Final = {"equals": equals, "attribute": attributes}


def call_header(delimiters: Delimiters, scan: Scanner, into: Into) -> Steps[Header | None]:
    """Reads the rest of a tag that begins a call; None if it is no such tag. All that is read goes to `into`."""
    if delimiters.call_name == "plain":
        return (yield from _plain_name(delimiters, scan, into))
    return (yield from read_tag(scan, NAME_IN_TAG[delimiters.call_name], into))


def parameter_header(delimiters: Delimiters, scan: Scanner, into: Into) -> Steps[Header | None]:
    """Reads the rest of a tag that begins a parameter; None if it is no such tag. All that is read goes to `into`."""
    if delimiters.parameter_name == "plain":
        return (yield from _plain_key(delimiters, scan, into))
    return (yield from read_tag(scan, NAME_IN_TAG[delimiters.parameter_name], into))


def read_tag(scan: Scanner, read: Callable[[str], Header | None], into: Into) -> Steps[Header | None]:
    """Reads the rest of an opening tag up to its `>`; `read` finds the name in it."""
    pieces: list[str] = []
    yield from scan.take_while(IN_TAG, pieces.append)
    text = "".join(pieces)
    into(text)
    header = read(text)
    if (yield from scan.peek()) == ">":
        scan.skip(1, into)
        return header
    return None if header is None else Header(header.name, header.as_json, closed=False)


def _plain_name(delimiters: Delimiters, scan: Scanner, into: Into) -> Steps[Header | None]:
    """Reads a name behind its tag; only a parameter or the end of the call may follow it."""
    follows = tuple(filter(None, (delimiters.parameter, delimiters.call_end, delimiters.separator)))
    name: list[str] = []
    yield from scan.skip_space(into)
    yield from scan.take_while(PLAIN_NAME, name.append)
    into("".join(name))
    yield from _skip_layout(scan, into)
    if not (yield from scan.peek()):
        return Header("".join(name), closed=False)
    if not (yield from scan.peek(max(map(len, follows)))).startswith(follows):
        return None
    if delimiters.separator:
        into((yield from scan.accept((delimiters.separator,))) or "")
    return Header("".join(name))


def _plain_key(delimiters: Delimiters, scan: Scanner, into: Into) -> Steps[Header | None]:
    """Reads a parameter's name in an element of its own, and the tag that begins its value."""
    *_, value = delimiters.key_ends
    key: list[str] = []
    yield from scan.take_while(PLAIN_KEY, key.append)
    into("".join(key))
    found = yield from scan.accept(markers_of(delimiters.key_ends))
    into(found or "")
    if found is not None and found != value:
        yield from _skip_layout(scan, into)
        found = yield from scan.accept((value,))
        into(found or "")
    return Header("".join(key).strip(), closed=found == value)


def _skip_layout(scan: Scanner, into: Into) -> Steps[None]:
    """Reads white space, and line breaks that some servers send escaped."""
    while True:
        yield from scan.skip_space(into)
        if (yield from scan.peek()) != "\\" or (yield from scan.peek(2)) != "\\n":
            return
        scan.skip(2, into)


WRAPPERS = frozenset({"arguments", "input", "parameters"})
AMBIGUOUS = (
    "where the value of {name!r} ends is not clear, for it holds tags of calls, and what follows was not read; "
    "write the call again alone, each value closed by its tag and without tags of calls in it"
)


@dataclass(slots=True)
class ValueEnd:
    """Where a value ended: at delimiters that were read already, at the next parameter, or nowhere.

    `closed` says that its closing tag stood there.
    """

    ahead: list[str] = field(default_factory=list)
    next: Header | None = None
    problem: str = ""
    closed: bool = False


class ParameterValue:
    """One value of a call, or a parameter that wraps all arguments of the call."""

    __slots__ = ("_name", "_value", "_wraps", "_writer", "add")

    def __init__(
        self, form: Form, parameters: Parameters, tool: str, header: Header, writer: ArgumentWriter
    ) -> None:
        root = parameters.of(tool)
        self._name = header.name
        self._writer = writer
        first_of_all = form.says_which_are_strings and not writer.names and header.name in WRAPPERS
        self._wraps = first_of_all and root.is_known and not root.declares(header.name)
        if not self._wraps:
            writer.name(header.name)
        self._value = TextValue(
            writer,
            frozenset({"object"}) if self._wraps else parameters.place(tool, header.name).kinds,
            form.trim,
            untyped_json=form.untyped_json,
            as_json=header.as_json,
        )
        self.add = self._value.add

    @property
    def at_line_start(self) -> bool:
        return self._value.at_line_start

    def end(self, *, closed: bool = True) -> None:
        if not self._wraps:
            self._value.end(closed=closed)
            return
        found = self._value.read()
        if isinstance(found, dict):
            self._writer.wrapper(self._name, found)
        else:
            self._writer.name(self._name)
            self._writer.value(found)


class ValueReader:
    """Reads one value."""

    __slots__ = ("_delimiters", "_doubtful", "_opened", "_scan", "_trim", "_value")

    def __init__(self, trim: Trim, delimiters: Delimiters, scan: Scanner, value: ParameterValue) -> None:
        self._trim = trim
        self._delimiters = delimiters
        self._scan = scan
        self._value = value
        self._opened = {"parameter": 0, "call": 0, "section": 0}  # by the value itself, and not yet closed
        self._doubtful = False  # whether tags of parameters stand in the value

    def read(self, is_next: Callable[[str], bool]) -> Steps[ValueEnd]:
        """Reads to the end of the value. `is_next` says whether a parameter of this name may come now."""
        delimiters, add = self._delimiters, self._value.add
        found: str | None = None
        while True:
            found = found or (yield from self._scan.until(self._delimiters.in_value, add))
            if found is None:
                return ValueEnd(problem=CUT_OFF)
            if found in (delimiters.parameter, delimiters.call):
                tag = [found]
                reads = parameter_header if found == delimiters.parameter else call_header
                header = yield from reads(delimiters, self._scan, tag.append)
                if header is not None and header.closed:
                    if found == delimiters.parameter and self._may_end() and is_next(header.name):
                        self._value.end(closed=False)
                        return ValueEnd(next=header)
                    self._opened["parameter" if found == delimiters.parameter else "call"] += 1
                    self._doubtful = self._doubtful or found == delimiters.parameter
                add("".join(tag))
                found = None
            elif found in delimiters.sections:
                self._opened["section"] += 1
                add(found)
                found = None
            else:
                closed = yield from self._closer(found)
                if isinstance(closed, ValueEnd):
                    return closed
                found = closed

    def _may_end(self) -> bool:
        clear = not self._doubtful and not any(self._opened.values())
        return clear and (self._trim == "none" or self._value.at_line_start)

    def _closer(self, found: str) -> Steps[ValueEnd | str | None]:
        """Decides on a closing tag: it ends the value, or belongs to it; gives a delimiter that was read behind it."""
        delimiters, scan = self._delimiters, self._scan
        kind = (
            "parameter"
            if found == delimiters.parameter_end
            else "call"
            if found == delimiters.call_end
            else "section"
        )
        if self._opened[kind]:
            self._opened[kind] -= 1
            self._value.add(found)
            return None
        space: list[str] = []
        yield from scan.skip_space(space.append)
        follows = yield from scan.accept(self._delimiters.in_value)
        at_end = follows is None and (yield from scan.peek()) == ""
        if at_end or self._goes_on(kind, follows):
            if kind != "parameter" and self._doubtful:
                return ValueEnd(problem=AMBIGUOUS)
            self._value.end(closed=kind == "parameter")
            ahead = [marker for marker in (found, follows) if marker and marker != delimiters.parameter_end]
            return ValueEnd(ahead, closed=kind == "parameter")
        self._doubtful = self._doubtful or kind == "parameter"
        self._value.add(found + "".join(space))
        return follows

    def _goes_on(self, kind: str, follows: str | None) -> bool:
        """Whether this may follow a closing tag of this kind in the format."""
        delimiters = self._delimiters
        around = (delimiters.call, *delimiters.sections)
        if kind == "parameter":
            return follows is not None and follows != delimiters.parameter_end
        return follows in around or (kind == "call" and follows in delimiters.sections.values())
