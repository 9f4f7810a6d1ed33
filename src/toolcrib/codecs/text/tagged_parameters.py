"""Calls with a tag for each parameter, for every format that differs in its markers alone."""

from __future__ import annotations

from collections.abc import Sequence

from toolcrib.codecs.text.answer import CUT_OFF, Answer
from toolcrib.codecs.text.argument_writer import ArgumentWriter
from toolcrib.codecs.text.format import Parse, Tools
from toolcrib.codecs.text.json_calls import NO_JSON, NO_NAME, CallObject
from toolcrib.codecs.text.parameter_values import Parameters
from toolcrib.codecs.text.prose import Prose
from toolcrib.codecs.text.scanner import Scanner, Steps, markers_of
from toolcrib.codecs.text.tag_headers import Header
from toolcrib.codecs.text.tagged_value import ParameterValue, ValueReader
from toolcrib.codecs.text.tags import Tags

NOT_CLOSED = "the tag with the tool's name does not end; write the call again with every tag complete"
NO_PARAMETER = (
    "in the call stands what is no parameter; write it again with only parameters in it, each in its own tags"
)
NO_CALL = "in the block of calls stands none; write the calls in it again, each in its own tags"


class TagReader:
    """Reads one answer."""

    def __init__(self, tags: Tags, scan: Scanner, answer: Answer, parameters: Parameters) -> None:
        self.tags = tags
        self.scan = scan
        self.answer = answer
        self.parameters = parameters
        self.kin: tuple[TagReader, ...] = (
            self,
        )  # readers of the same format with its tags written otherwise
        self.ahead: list[str] = []  # markers that were read already and come next
        self._open_ended = False  # whether a value of the call ended without its closing tag
        self._ends = tuple(tags.sections.values())
        openings = (tags.call, *tags.sections)
        self._outer = markers_of((*openings, *self._ends))
        self._in_call = markers_of((*openings, *self._ends, tags.call_end, tags.parameter))
        self._in_value = markers_of((*self._in_call.words, tags.parameter_end))
        self._strays = (*self._ends, tags.call_end, tags.parameter_end)

    @property
    def _openings(self) -> tuple[str, ...]:
        """What may begin calls in prose."""
        tags = self.tags
        return (*tags.sections, *((tags.call,) if tags.bare or not tags.sections else ()))

    def read(self) -> Steps[None]:
        """Read the answer to its end."""
        readers = {opening: reader for reader in self.kin for opening in reader._openings}
        prose = Prose(self.scan, self.answer, tuple(readers), blocks=self.tags.thinking)
        reader = self
        while True:
            if self.answer.if_last:  # closing tags would show that it went on
                prose.look_out_for(reader._strays)
            marker = reader.ahead.pop(0) if reader.ahead else (yield from prose.until_marker())
            if marker is None:
                return
            reader = readers.get(marker, reader)
            if marker in reader.tags.sections:
                yield from reader._section(marker)
            elif marker == reader.tags.call:
                yield from reader._bare_call()
            elif self.answer.if_last:
                self.answer.doubt_last_call()
            else:
                self.answer.text(marker)

    def _section(self, opening: str) -> Steps[None]:
        """What follows the beginning of a section: calls, or text that only mentions it."""
        scan, tags, some = self.scan, self.tags, False
        space = [opening]
        while True:
            if self.ahead:
                marker: str | None = self.ahead.pop(0)
            else:
                yield from scan.skip_space(space.append)
                marker = yield from scan.accept(self._outer)
            if marker == tags.call:
                some = True
                yield from self._call()
            elif marker in self._ends:
                return
            elif marker is not None:
                continue
            elif (first := (yield from scan.peek())) == "":
                if not some:
                    self.answer.fail_call(CUT_OFF)
                return
            elif first == "{":
                some = True
                yield from CallObject(scan, self.answer, self._outer.words, certain=True).read()
            elif some or tags.silent:
                found = yield from scan.until(self._outer, None if tags.silent else self.answer.text)
                self.ahead += [found] if found else []
                if not some and found in self._ends:
                    self.answer.fail_call(NO_CALL)
            else:
                self.answer.text("".join(space))
                return

    def _bare_call(self) -> Steps[None]:
        """A call that stands by itself, or text that only mentions its tag."""
        scan, read = self.scan, [self.tags.call]
        if (yield from scan.peek()) == "{":
            yield from CallObject(scan, self.answer, self._in_call.words, certain=True).read()
            yield from self._skip_call()
            return
        header = yield from self.tags.call_header(scan, read.append)
        if header is None or not (header.closed or (scan.ended and scan.at_end)):
            self.answer.text("".join(read))
            return
        yield from self._rest_of_call(header)
        if not self.ahead:
            space: list[str] = []
            yield from scan.skip_space(space.append)
            if not (yield from scan.accept(self._ends)):
                self.answer.text("".join(space))

    def _call(self) -> Steps[None]:
        header = yield from self.tags.call_header(self.scan, _nowhere)
        yield from self._rest_of_call(header)

    def _rest_of_call(self, header: Header | None) -> Steps[None]:
        if header is not None and header.closed and header.name:
            self.answer.open_call(header.name)
            yield from self.body(header.name)
            return
        unclosed = header is not None and not header.closed
        cut = self.scan.ended and self.scan.at_end
        self.answer.open_call("" if header is None else header.name)
        yield from self.fail(CUT_OFF if cut else NOT_CLOSED if unclosed else NO_NAME)

    def fail(self, problem: str) -> Steps[None]:
        """The open call can never run; go on behind its end."""
        self.answer.fail_call(problem)
        yield from self._skip_call()

    def _skip_call(self) -> Steps[None]:
        """Go on behind the call; where a value stood in it, nobody knows where that ends."""
        if self.ahead:
            return
        while (found := (yield from self.scan.until(self._in_call))) == self.tags.parameter:
            self.answer.doubt_what_follows()
        self.ahead += [found] if found and found != self.tags.call_end else []

    def body(self, tool: str) -> Steps[None]:
        """The parameters of a call and its end, or one JSON object in their place."""
        scan, tags = self.scan, self.tags
        writer = ArgumentWriter(self.answer)
        self._open_ended = False
        yield from scan.skip_space()
        in_json = (yield from scan.peek()) == "{"
        whole = in_json and (yield from scan.json_value(self.answer.arguments, self._in_call.words))
        while True:
            between: list[str] = []
            marker = (
                self.ahead.pop(0) if self.ahead else (yield from scan.until(self._in_call, between.append))
            )
            if "".join(between).strip() or (in_json and marker == tags.parameter):
                self.ahead += [marker] if marker and marker != tags.parameter else []
                yield from self.fail(NO_PARAMETER if marker else CUT_OFF)
                return
            if marker is None and not whole:
                self.answer.fail_call(CUT_OFF)
                return
            if marker != tags.parameter:
                break
            header = yield from tags.parameter_header(scan, _nowhere)
            if header is None or not header.closed:
                self.answer.doubt_what_follows()
                yield from self.fail(CUT_OFF if scan.ended and scan.at_end else NO_PARAMETER)
                return
            while header is not None:
                header = yield from self._value(tool, header, writer)
            if not self.answer.call_open:
                return
        if not in_json:
            writer.end()
        elif not whole:
            self.answer.fail_call(NO_JSON)
        self.answer.close_call(if_last=self._open_ended)
        self.ahead[:0] = [marker] if marker and marker != tags.call_end else []

    def _value(self, tool: str, header: Header, writer: ArgumentWriter) -> Steps[Header | None]:
        """One parameter; the header of the next where that was read already."""
        root = self.parameters.of(tool)

        def is_next(name: str) -> bool:
            return root.declares(name) and name not in writer.names and name != header.name

        value = ParameterValue(self.tags, self.parameters, tool, header, writer)
        end = yield from ValueReader(self.tags, self.scan, self._in_value, value).read(is_next)
        if end.problem:
            self.answer.fail_call(end.problem.format(name=header.name))
            yield from self.scan.until(())
        self.ahead = end.ahead
        self._open_ended = self._open_ended or not end.closed
        return end.next


def _nowhere(text: str) -> None:
    """For tags that are not text whatever becomes of them."""


def tag_parser(tags: Tags, reader: type[TagReader] = TagReader, *, others: Sequence[Tags] = ()) -> Parse:
    """A parser for the format with these markers, or with one of `others` in their place.

    `reader` reads what stands in a call in its own way.
    """

    def parse(scan: Scanner, answer: Answer, tools: Tools) -> Steps[None]:
        parameters = Parameters(tools)
        first = reader(tags, scan, answer, parameters)
        first.kin = (first, *(reader(kin, scan, answer, parameters) for kin in others))
        yield from first.read()

    return parse
