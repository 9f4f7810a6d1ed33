"""Reads what a model wrote, as a whole text or as a stream: text, thinking and calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from toolcrib.call import ToolCall
from toolcrib.codecs.text.answer import AnswerBuilder
from toolcrib.codecs.text.engine import Engine
from toolcrib.codecs.text.form import Form, Tools
from toolcrib.codecs.text.formats import format_named
from toolcrib.codecs.text.scanner import Scanner, Steps, drive
from toolcrib.codecs.text.tagged_calls import TaggedEngine
from toolcrib.codecs.wire_json import arguments_object
from toolcrib.content import Text
from toolcrib.dataclass import dataclass
from toolcrib.messages import Chunk, MessagePart, Reasoning
from toolcrib.schema.given import listed_specs

if TYPE_CHECKING:
    from toolcrib.spec import ToolSpec

__all__ = ["Parsed", "TextParser", "check_readable", "parse_text", "text_parser"]

SAMPLE = ToolCall("look_up", {"words": "two words", "limit": 2})
SAMPLE_TOOLS: Tools = {
    "look_up": {"type": "object", "properties": {"words": {"type": "string"}, "limit": {"type": "integer"}}}
}


@dataclass(frozen=True, slots=True)
class Parsed:
    """The parts of a text, in order."""

    parts: list[MessagePart]

    @property
    def calls(self) -> list[ToolCall]:
        """All calls, those with a `problem` included."""
        return [part for part in self.parts if isinstance(part, ToolCall)]

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def reasoning(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Reasoning))


class TextParser:
    """Reads one answer as it comes: `feed` gives the chunks of each piece, `finish` the last ones.

    `thinking` says that the prompt has opened a block of thinking, in which the answer then begins.
    """

    def __init__(self, format: Form, tools: Tools, *, thinking: bool = False) -> None:
        self.answer = AnswerBuilder(in_thinking=thinking)
        self._scan = Scanner()
        self._steps = _steps(format, self._scan, self.answer, tools)
        self._running = drive(self._steps)

    def feed(self, piece: str) -> list[Chunk]:
        """The chunks that a piece of text brings."""
        if piece and self._scan.feed(piece):
            self._running = self._running and drive(self._steps)
        return self.answer.take()

    def finish(self) -> list[Chunk]:
        """The last chunks, once the text has ended."""
        self._scan.end()
        self._running = self._running and drive(self._steps)
        self.answer.finish()
        return self.answer.take()

    def parsed(self) -> Parsed:
        """All parts; called after `finish`."""
        return Parsed(self.answer.parts())


def text_parser(
    format: str | Form, tools: Iterable[ToolSpec] | Tools = (), *, thinking: bool = False
) -> TextParser:
    """A parser for one answer in a format; ValueError for an unknown name.

    `tools` are specs, or input schemas by name: they say which values are converted, and what an unmarked
    call may name.
    """
    chosen = format_named(format) if isinstance(format, str) else format
    return TextParser(chosen, schemas(tools), thinking=thinking)


def parse_text(
    text: str,
    format: str | Form,
    tools: Iterable[ToolSpec] | Tools = (),
    *,
    thinking: bool = False,
) -> Parsed:
    """The parts of a whole text in a format.

    >>> text = 'Sure.<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
    >>> parse_text(text, "hermes").calls[0].arguments
    '{"a": 1}'
    """
    parser = text_parser(format, tools, thinking=thinking)
    parser.feed(text)
    parser.finish()
    return parser.parsed()


def check_readable(form: Form) -> None:
    """Raise ValueError for a format whose own calls are not read back as they were written."""
    written = form.write_calls([SAMPLE])
    read = parse_text(written, form, SAMPLE_TOOLS).calls
    if [(call.name, arguments_object(call.arguments)) for call in read] != [(SAMPLE.name, SAMPLE.arguments)]:
        raise ValueError(
            f"text format {form.name!r}: it writes a call as {written!r}, but reads "
            f"{'that differently' if read else 'no call in that'}. Put delimiters around each part of a call that "
            "no name and no JSON contains"
        )


def schemas(tools: Iterable[ToolSpec] | Tools) -> Tools:
    """Input schemas by name."""
    if isinstance(tools, Mapping):
        return cast("Tools", tools)
    return {spec.name: spec.input_schema for spec in listed_specs(tools)}


def _steps(form: Form, scan: Scanner, answer: AnswerBuilder, tools: Tools) -> Steps[None]:
    if form.read is not None:
        yield from form.read(form, scan, answer, tools)
    else:
        engine = TaggedEngine if form.parameter else Engine
        yield from engine(form, scan, answer, tools).read()
    yield from scan.until((), answer.text)  # a reader that stopped early loses no text
