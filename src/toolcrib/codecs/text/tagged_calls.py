"""The engine for formats with a tag for each parameter."""

from __future__ import annotations

from typing import Final

from toolcrib.codecs.text.answer import CUT_OFF, AnswerBuilder
from toolcrib.codecs.text.arguments import ArgumentWriter, Parameters
from toolcrib.codecs.text.call_objects import NO_JSON, NO_NAME
from toolcrib.codecs.text.engine import Engine, ignore
from toolcrib.codecs.text.form import Form, Tools
from toolcrib.codecs.text.scanner import Scanner, Steps
from toolcrib.codecs.text.tagged_parameters import (
    Header,
    ParameterValue,
    ValueReader,
    call_header,
    parameter_header,
)

__all__ = ["NO_PARAMETER", "TaggedEngine"]

NOT_CLOSED: Final = "the tag with the tool's name does not end; write the call again with every tag complete"
NO_PARAMETER: Final = (
    "the call holds text that is no parameter; write it again with parameters only, each in its own tags"
)


class TaggedEngine(Engine):
    """Reads one answer; the delimiters are those of the spelling that the last call was written in."""

    no_call = "the block of calls has no call in it; write the calls again in it, each in its own tags"

    def __init__(self, form: Form, scan: Scanner, answer: AnswerBuilder, tools: Tools) -> None:
        self._spelling_of = {
            opening: spelling
            for spelling in form.spellings
            for opening in spelling.openings(section_optional=form.section_optional)
        }
        super().__init__(form, scan, answer, tools)
        self.parameters = Parameters(tools)
        self._open_ended = False  # whether a value of the call ended without its closing tag

    def looked_for(self) -> tuple[str, ...]:
        return tuple(self._spelling_of)

    def read(self) -> Steps[None]:
        """Reads the answer to its end."""
        while True:
            if self.answer.if_last:  # closing tags would show that it went on
                self.prose.also_look_for(self.delimiters.closers)
            marker = yield from self.next_delimiter()
            if marker is None:
                return
            self.delimiters = self._spelling_of.get(marker, self.delimiters)
            if marker in self.delimiters.sections:
                yield from self.section(marker)
            elif marker == self.delimiters.call:
                yield from self.call_alone()
            elif self.answer.if_last:
                self.answer.doubt_last_call()
            else:
                self.answer.text(marker)

    def call_alone(self) -> Steps[None]:
        """Reads a call that stands by itself, or text that only mentions its tag."""
        scan, read = self.scan, [self.delimiters.call]
        if (yield from scan.peek()) == "{":
            yield from self.call_object(self.delimiters.in_call)
            yield from self._skip_call()
            return
        header = yield from call_header(self.delimiters, scan, read.append)
        if header is None or not (header.closed or (scan.ended and scan.at_end)):
            self.answer.text("".join(read))
            return
        yield from self._rest_of_call(header)
        if not self.ahead:
            space: list[str] = []
            yield from scan.skip_space(space.append)
            if not (yield from scan.accept(self.delimiters.section_ends)):
                self.answer.text("".join(space))

    def call(self) -> Steps[None]:
        """Reads a call in a section."""
        header = yield from call_header(self.delimiters, self.scan, ignore)
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
        """Goes on behind the call; where it holds a parameter, its end is not certain."""
        if self.ahead:
            return
        delimiters = self.delimiters
        while (found := (yield from self.scan.until(delimiters.in_call))) == delimiters.parameter:
            self.answer.doubt_what_follows()
        self.ahead += [found] if found and found != delimiters.call_end else []

    def body(self, tool: str) -> Steps[None]:
        """Reads the parameters of a call and its end, or one JSON object in their place."""
        scan, delimiters = self.scan, self.delimiters
        writer = ArgumentWriter(self.answer)
        self._open_ended = False
        yield from scan.skip_space()
        in_json = (yield from scan.peek()) == "{"
        whole = in_json and (yield from scan.json_value(self.answer.arguments, delimiters.in_call.words))
        while True:
            between: list[str] = []
            if self.ahead:
                marker: str | None = self.ahead.pop(0)
            else:
                marker = yield from scan.until(delimiters.in_call, between.append)
            if "".join(between).strip() or (in_json and marker == delimiters.parameter):
                self.ahead += [marker] if marker and marker != delimiters.parameter else []
                yield from self.fail(NO_PARAMETER if marker else CUT_OFF)
                return
            if marker is None and not whole:
                self.answer.fail_call(CUT_OFF)
                return
            if marker != delimiters.parameter:
                break
            header = yield from parameter_header(delimiters, scan, ignore)
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
        self.ahead[:0] = [marker] if marker and marker != delimiters.call_end else []

    def _value(self, tool: str, header: Header, writer: ArgumentWriter) -> Steps[Header | None]:
        """Reads one parameter; gives the header of the next one if it was read already."""
        root = self.parameters.of(tool)

        def is_next(name: str) -> bool:
            return root.declares(name) and name not in writer.names and name != header.name

        value = ParameterValue(self.form, self.parameters, tool, header, writer)
        end = yield from ValueReader(self.form.trim, self.delimiters, self.scan, value).read(is_next)
        if end.problem:
            self.answer.fail_call(end.problem.format(name=header.name))
            yield from self.scan.until(())
        self.ahead = end.ahead
        self._open_ended = self._open_ended or not end.closed
        return end.next
