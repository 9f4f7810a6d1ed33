"""What stands inside a call's tag or fence, whatever shape a model gave it."""

from __future__ import annotations

import re
from typing import Final

from toolcrib.codecs.text.answer import CUT_OFF, UNCLEAR, Answer
from toolcrib.codecs.text.argument_writer import ArgumentWriter, TextValue
from toolcrib.codecs.text.call_objects import NO_JSON
from toolcrib.codecs.text.form import Tools
from toolcrib.codecs.text.parameter_values import Parameters
from toolcrib.codecs.text.scanner import Into, Scanner, Steps, markers_of
from toolcrib.codecs.text.tolerant_marks import CLOSER_MARKS, CLOSERS, OPENERS, STOPS
from toolcrib.codecs.text.tolerant_shapes import (
    NO_CALL,
    NO_SINGLE_PARAMETER,
    Shape,
    as_name,
    name_in,
    read_shapes,
    readable,
    short_members,
    typed,
)

IN_TAG: Final = re.compile(r"[^<>\n]+")
LONGEST_TAG: Final = 64
BETWEEN: Final = re.compile(r"[\s,;]+")
LANGUAGE: Final = re.compile(r"\w+")
LONGEST_LANGUAGE: Final = 16
ATTRIBUTE: Final = re.compile(r"""\s(?:name|tool)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
PARAMETER: Final = re.compile(
    r"""(?P<tag>[A-Za-z_][\w.:-]*)(?:\s*=\s*["']?(?P<equal>[^"'\s]+)["']?|(?P<attributes>\s[^<>]*))?\s*\Z"""
)
NAME_TAGS: Final = ("<name>", "<tool_name>", "<function_name>")
ARGUMENT_TAGS: Final = frozenset({"arguments", "parameters", "args", "input", "params"})


class Bodies:
    """Reads the calls of one answer; `unclear` once one was so broken that nobody knows where it ends."""

    def __init__(self, scan: Scanner, answer: Answer, tools: Tools) -> None:
        self.scan = scan
        self.answer = answer
        self.tools = tools
        self.unclear = False
        self._parameters = Parameters(tools)

    def report(self, shape: Shape) -> None:
        """A call that was read whole."""
        self._open(shape.name, shape.id)
        self.answer.arguments(shape.arguments)
        self._close(shape.problem)

    def is_name(self, name: str) -> bool:
        """Whether a word may name a tool: one of those there are, or any while they are not known."""
        return name in self.tools or (not self.tools and name.isidentifier())

    def _open(self, name: str, id: str = "") -> None:
        self.answer.open_call(name, id)

    def _close(self, problem: str = "") -> None:
        if problem or self.unclear:
            self.answer.fail_call(problem or UNCLEAR)
        else:
            self.answer.close_call()

    # JSON

    def json_calls(self, *, name: str = "") -> Steps[None]:
        """JSON values, one after another; with a `name`, they are its arguments."""
        while (yield from begins_json(self.scan)):
            start = self.scan.offset
            if (yield from self.scan.peek()) == "{" and not name:
                yield from self._object(start)
            else:
                self._whole(start, (yield from self.rest_of_json(0)), name)
            yield from self.scan.take_while(BETWEEN)
            if name:
                return

    def _object(self, start: int) -> Steps[None]:
        """An object: its arguments are handed on as they come, where they follow the name at once."""
        self.scan.skip(1)
        name = yield from self._name_before_arguments()
        if name is None:
            self._whole(start, (yield from self.rest_of_json(1)), "")
            return
        self._open(name)
        begin = self.scan.offset
        if not (yield from self.scan.json_value(self.answer.arguments, STOPS)):
            self._broken(CUT_OFF if self.scan.ended else NO_JSON)
            return
        arguments = self.scan.since(begin)
        yield from self.scan.skip_space()
        if (yield from self.scan.accept(("}",))):
            if readable(arguments):
                self._close()
            else:
                self._broken(NO_JSON)
            return
        ended = yield from self.rest_of_json(1)
        shapes = read_shapes(self.scan.since(start)) if ended else [Shape(name, problem=CUT_OFF)]
        self.answer.call_id(shapes[0].id)
        if len(shapes) != 1 or shapes[0].problem == NO_JSON:
            self._broken(NO_JSON if ended else CUT_OFF)
        else:
            self._close(shapes[0].problem)

    def _name_before_arguments(self) -> Steps[str | None]:
        """The name in `"name": "…", "arguments": {`, read up to the bracket; None where it goes otherwise."""
        scan = self.scan
        for token in ('"name"', ":"):
            yield from scan.skip_space()
            if not (yield from scan.accept((token,))):
                return None
        if (yield from scan.mark()) != '"':
            return None
        pieces: list[str] = []
        yield from scan.json_value(pieces.append)
        for token in (",", '"arguments"', ":"):
            yield from scan.skip_space()
            if not (yield from scan.accept((token,))):
                return None
        yield from scan.skip_space()
        name = as_name("".join(pieces))
        return name if name and (yield from scan.peek()) == "{" else None

    def rest_of_json(self, depth: int, into: Into | None = None) -> Steps[bool]:
        """The rest of a value of whose brackets so many are open; False where it was broken off."""
        into = into or ignore
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

    def _whole(self, start: int, ended: bool, name: str) -> None:
        text = self.scan.since(start)
        if not ended:
            self._open(name or name_in(text))
            self.answer.arguments("" if name else text)
            self._broken(CUT_OFF if self.scan.ended else NO_JSON)
            return
        given = [Shape(name, text.strip(), problem="" if readable(text) else NO_JSON)] if name else []
        for shape in given or read_shapes(text):
            self.report(shape)
            self.unclear = self.unclear or shape.problem == NO_JSON

    def _broken(self, problem: str) -> None:
        """The open call cannot be read, and what looks like another may be a part of it."""
        self.answer.fail_call(problem)
        self.unclear = True

    # Tags

    def tagged_call(self, name: str, closer: str) -> Steps[None]:
        """The rest of a call whose tag names the tool: JSON, or a tag for each parameter."""
        mark = yield from self.scan.mark()
        if mark == "{":
            yield from self.json_calls(name=name)
            yield from self.scan.accept((closer,))
            return
        self._open(name)
        writer = ArgumentWriter(self.answer)
        problem = yield from self._parameters_of(name, closer, writer)
        writer.end()
        self._close(problem)

    def _parameters_of(self, name: str, closer: str, writer: ArgumentWriter) -> Steps[str]:
        """The parameters up to the end of the call; what is wrong with them, if anything is."""
        own = markers_of((closer,))
        while True:
            yield from self.scan.skip_space()
            if (yield from self.scan.accept(own)) or (yield from self.scan.accept(CLOSER_MARKS)):
                return ""
            mark = yield from self.scan.peek()
            if mark != "<":
                return NO_CALL if mark else CUT_OFF
            tag = yield from self._tag()
            key, end = parameter_of(tag)
            if key is None:
                return CUT_OFF if self.scan.ended else NO_CALL
            kinds = self._parameters.place(name, key).kinds
            writer.name(key)
            value = TextValue(writer, kinds, "wrapped")
            complete = yield from read_tagged(self.scan, value.add, end)
            value.end()
            if not complete:
                return CUT_OFF

    def _tag(self) -> Steps[str]:
        """What stands between `<` and `>`; empty where no tag ends on this line."""
        self.scan.skip(1)
        pieces: list[str] = []
        yield from self.scan.take_while(IN_TAG, pieces.append, LONGEST_TAG)
        return "".join(pieces) if (yield from self.scan.accept((">",))) else ""

    def keyed_call(self, name: str) -> Steps[None]:
        """The rest of a call as GLM writes it, after its first `<arg_key>`."""
        scan = self.scan
        self._open(name)
        writer = ArgumentWriter(self.answer)
        while True:
            key: list[str] = []
            if (yield from scan.until(("</arg_key>",), key.append)) is None:
                break
            yield from scan.skip_space()
            if not (yield from scan.accept(("<arg_value>",))):
                break
            kinds = self._parameters.place(name, word := "".join(key).strip()).kinds
            writer.name(word)
            value = TextValue(writer, kinds, "wrapped")
            complete = yield from read_tagged(scan, value.add, "</arg_value>")
            value.end()
            if not complete:
                break
            if not (yield from scan.accept(("<arg_key>",))):
                writer.end()
                self._close()
                return
        self._close(CUT_OFF if scan.ended else NO_CALL)

    # Shortened lines

    def short_call(self, name: str, start: int) -> Steps[None]:
        """The rest of a shortened call, whose name ended at `start`, with the tag that ends it."""
        known = markers_of(('="', "='", *CLOSERS, *OPENERS), True)
        quotes = (yield from self.scan.peek()) not in (">", "/")
        while True:
            mark = yield from self.scan.until(known)
            if mark is None:
                self.report(Shape(name, problem=CUT_OFF))
                return
            if mark in CLOSERS:
                break
            if mark in OPENERS:
                self.report(Shape(name, problem=CUT_OFF))
                return
            if quotes:
                yield from self.scan.string_rest(mark[-1], ignore)
        text = self.scan.since(start)[: -len(mark)]
        schema = self.tools.get(name, {})
        members = short_members(text, schema)
        problem = NO_SINGLE_PARAMETER if text.lstrip().startswith(">") else NO_CALL
        if members is None:
            self.report(Shape(name, problem=problem))
        else:
            self.report(Shape(name, typed(members, self._parameters.of(name))))


def begins_json(scan: Scanner) -> Steps[bool]:
    """Whether an object or a list stands here, and no bracketed word such as `[TOOL_CALL]`."""
    mark = yield from scan.peek()
    return mark == "{" or (mark == "[" and (yield from scan.peek(2))[1:] not in ("/", "T"))


def ignore(_piece: str) -> None:
    """What is read again from the scanner."""


def read_tagged(scan: Scanner, into: Into, closer: str) -> Steps[bool]:
    """A value up to the tag that ends it, and the white space after that; whether it is complete.

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
