"""Reads calls in tags: the opening tag, what stands in it, and the closing tags that belong to it."""

from __future__ import annotations

import re
from typing import Final

from toolcrib.call import ToolCall
from toolcrib.codecs.text.answer import CUT_OFF, AnswerBuilder
from toolcrib.codecs.text.call_objects import ARGUMENT_KEYS, NO_JSON, calls_in
from toolcrib.codecs.text.grammars.shortened_calls import name_in
from toolcrib.codecs.text.grammars.tolerant_bodies import (
    ATTRIBUTE,
    BRACKET,
    CLOSER_MARKS,
    CLOSERS,
    FUNCTION,
    IN_TAG,
    LONGEST_TAG,
    NAME_TAGS,
    OPENER_MARKS,
    OPENERS,
    TOOLS,
    CallBodies,
    begins_json,
    loosely_read,
)
from toolcrib.codecs.text.prose import SHOWN, THOUGHTS
from toolcrib.codecs.text.scanner import Markers, Scanner, Steps
from toolcrib.codecs.text.surroundings import LONGEST_WORD, TICKS, WORD, Surroundings, is_example

__all__ = ["TagReader"]

NOTHING_IN_IT: Final = (
    "what stands in the tag is no call; write one JSON object with name and arguments in it"
)
NAME: Final = re.compile(r"[A-Za-z_][\w.:-]{0,127}")
ARG_KEY: Final = "<arg_key>"
LANGUAGE: Final = re.compile(r"\w+")
LONGEST_LANGUAGE: Final = 16
THOUGHT_MARKS: Final = Markers(THOUGHTS, ignore_case=True)
WORD_ENDS: Final = Markers(("{", *CLOSERS, *OPENERS), ignore_case=True)


class _Block:
    """A block of calls behind an opening tag: where it begins, and which tag is to be read next."""

    __slots__ = ("at_line_start", "fenced", "foreign", "marker", "opened", "start")

    def __init__(self, marker: str, start: int, at_line_start: bool) -> None:
        self.marker = marker
        self.start = start
        self.at_line_start = at_line_start
        self.fenced = False
        self.foreign: str | None = None
        self.opened = 0

    def found(self) -> bool:
        """The calls in it were read."""
        self.marker = ""
        return True

    def closed(self) -> bool:
        """The calls in it were read, and its closing tag."""
        self.opened -= 1
        return self.found()

    def ended_by(self, marker: str | None) -> bool:
        """The calls in it were read, and the tag that ended a broken call, if there was one."""
        if marker is None:
            return self.found()
        return self.closed() if marker in CLOSERS else self.goes_on(marker)

    def goes_on(self, marker: str) -> bool:
        self.marker = marker
        return True


class TagReader:
    """Reads the tagged calls of one answer; `unclosed` counts the tags whose closing tag may still come."""

    def __init__(
        self, scan: Scanner, answer: AnswerBuilder, around: Surroundings, bodies: CallBodies
    ) -> None:
        self.scan = scan
        self.answer = answer
        self.around = around
        self.bodies = bodies
        self.unclosed = 0

    def read(self, marker: str) -> Steps[str | None]:
        """Reads the calls behind an opening tag, and further opening tags that only repeat it.

        Gives a marker that was read and does not belong to the calls.
        """
        block = _Block(marker, self.scan.offset - len(marker), self.around.line_start)
        while block.marker:
            name = yield from self._header(block.marker)
            if name is None:
                self._release(block)
                return None
            if self.around.for_show:
                yield from self._set_aside(block)
                return None
            block.opened += 1
            if name:
                closer = "</function>" if block.marker == FUNCTION else f"</{block.marker[1:]}>"
                yield from self.bodies.tagged_call(name, closer)
                block.opened -= 1
                block.found()
            elif not (yield from self._body(block)):
                self._release(block)
                return block.foreign
        self.around.called()
        yield from self._close(block)
        return None

    def _close(self, block: _Block) -> Steps[None]:
        """Reads the closing tags, of whatever name; missing ones may come later."""
        opened = block.opened
        yield from self.scan.skip_space()
        if block.fenced:
            yield from self.scan.accept(("```",))
            yield from self.scan.skip_space()
        space: list[str] = []
        while opened > 0 and (yield from self.scan.accept(CLOSER_MARKS)):
            opened -= 1
            space.clear()
            yield from self.scan.skip_space(space.append)
        self.around.text("".join(space))
        self.unclosed = max(0, opened)

    def _header(self, marker: str) -> Steps[str | None]:
        """Reads the rest of an opening tag; gives the tool's name in it, if it has one, or None if it is no tag."""
        if marker == BRACKET:
            return ""
        rest: list[str] = []
        yield from self.scan.take_while(IN_TAG, rest.append, LONGEST_TAG)
        if not (yield from self.scan.accept((">",))):
            return None
        text = "".join(rest)
        if marker == FUNCTION:
            return as_word(text.strip().strip("\"'"))
        if not text.strip():
            return ""
        named = ATTRIBUTE.search(text)
        if named is None or not text[0].isspace():
            return None
        return as_word(next(group for group in named.groups() if group is not None))

    def _body(self, block: _Block) -> Steps[bool]:
        """Reads what stands in a tag; False if it holds neither calls nor another opening tag."""
        while True:
            yield from self.scan.skip_space()
            if (yield from begins_json(self.scan)):
                return block.ended_by((yield from self.bodies.json_calls()))
            mark = yield from self.scan.peek()
            if mark == "`" and not block.fenced:
                yield from self.scan.take_while(TICKS)
                yield from self.scan.take_while(LANGUAGE, most=LONGEST_LANGUAGE)
                yield from self.scan.skip_space()
                block.fenced = True
                if not (yield from begins_json(self.scan)):
                    return False
            elif mark == "<":
                found = yield from self._inner(block)
                if found is not None:
                    return found
            elif not mark:
                if block.at_line_start:
                    self.answer.fail_call(CUT_OFF)
                return block.found() if block.at_line_start else False
            else:
                return (yield from self._line(block))

    def _inner(self, block: _Block) -> Steps[bool | None]:
        """Reads a tag inside of the tag; None if the body goes on behind it."""
        scan = self.scan
        if (marker := (yield from scan.accept(OPENER_MARKS))) is not None:
            return block.goes_on(marker)
        if (yield from scan.accept(CLOSER_MARKS)):
            return False
        if (marker := (yield from scan.accept(THOUGHT_MARKS))) is not None:
            yield from scan.until((THOUGHTS[marker],), self.answer.reasoning)
            self.answer.end_reasoning()
            return None
        if (yield from scan.accept((TOOLS,))):
            block.foreign = TOOLS
            return False
        if (marker := (yield from scan.accept(NAME_TAGS))) is not None:
            pieces: list[str] = []
            if (yield from scan.until((f"</{marker[1:]}",), pieces.append)) is None:
                return False
            return (yield from self._named(block, "".join(pieces).strip()))
        tag: list[str] = []
        scan.skip(1)
        yield from scan.take_while(IN_TAG, tag.append, LONGEST_TAG)
        name = as_word("".join(tag).strip())
        if not (yield from scan.accept((">",))) or not name or not self._may_name(block, name):
            return False
        yield from self.bodies.tagged_call(name, f"</{name}>")
        return block.found()

    def _named(self, block: _Block, name: str) -> Steps[bool]:
        """Reads the arguments behind `<name>…</name>`, in a tag of their own or not."""
        scan = self.scan
        yield from scan.skip_space()
        tag: list[str] = []
        if (yield from scan.peek()) == "<" and not (yield from scan.accept(CLOSER_MARKS)):
            scan.skip(1)
            yield from scan.take_while(IN_TAG, tag.append, LONGEST_TAG)
            yield from scan.accept((">",))
        word = "".join(tag)
        if as_word(name) is None or (word and word not in ARGUMENT_KEYS):
            return False
        yield from self.bodies.tagged_call(name, f"</{word}>")
        return block.found()

    def _may_name(self, block: _Block, name: str) -> bool:
        """Whether a word in a tag is taken for a tool's name; an unknown name only at the beginning of a line."""
        return self.bodies.is_name(name) or (block.at_line_start and f"<{name}" not in SHOWN)

    def _line(self, block: _Block) -> Steps[bool]:
        """Reads a shortened call that begins with the tool's name, or words before the JSON."""
        scan = self.scan
        words: list[str] = []
        yield from scan.take_while(WORD, words.append, LONGEST_WORD)
        name = as_word("".join(words))
        after = scan.offset
        if name is not None:
            mark = yield from scan.peek()
            if mark in (">", "(", "/") and mark:
                yield from self.bodies.short_call(name, after)
                return block.closed()
            spaced = mark = yield from scan.mark()
            if mark == "{" and self.bodies.is_name(name):
                yield from self.bodies.json_arguments(name)
                return block.found()
            if mark == "<":
                if (yield from scan.accept(("<code>",))):
                    yield from self.bodies.short_call(name, after)
                    return block.closed()
                if (yield from scan.peek(len(ARG_KEY))) == ARG_KEY:
                    yield from self.bodies.tagged_call(name, "</tool_call>")
                    return block.closed()
                if name in self.bodies.tools and (yield from scan.accept(CLOSER_MARKS)):
                    self.bodies.report(ToolCall(name, "{}"))
                    return block.closed()
            elif (
                spaced
                and (yield from scan.take_while(WORD, most=LONGEST_WORD))
                and (yield from scan.peek()) == "="
            ):
                yield from self.bodies.short_call(name, after)
                return block.closed()
        return (yield from self._words(block)) if block.at_line_start else False

    def _words(self, block: _Block) -> Steps[bool]:
        """Reads words in a block, behind which JSON on a line of its own may end the block."""
        scan = self.scan
        marker = yield from scan.until(WORD_ENDS)
        read = scan.since(block.start)
        if marker is None:
            return False
        if marker in CLOSERS:
            self.answer.fail_call(NOTHING_IN_IT)
            return block.closed()
        if marker != "{":
            self.around.text(read[: -len(marker)])
            block.start = scan.offset - len(marker)
            return block.goes_on(marker)
        if read[:-1].rpartition("\n")[2].strip() or is_example(read):
            return False
        start = scan.offset - 1
        complete = yield from self.bodies.rest_of_json(1)
        text = scan.since(start)
        yield from scan.skip_space()
        if not complete or not (yield from scan.accept(CLOSER_MARKS)):
            return False
        value = loosely_read(text)
        if value is None:
            self.answer.fail_call(NO_JSON, name_in(text))
        else:
            for call in calls_in([value]):
                self.bodies.report(call)
        return block.closed()

    def _release(self, block: _Block) -> None:
        """Gives out what was read of the block as text; a marker in it is kept back, to be read again."""
        read = self.scan.since(block.start)
        self.around.text(read[: -len(block.foreign)] if block.foreign else read)

    def _set_aside(self, block: _Block) -> Steps[None]:
        """Reads a call that is only shown, up to its end, as text."""
        self._release(block)
        yield from self.scan.skip_space(self.around.text)
        if (yield from self.scan.peek()) in ("{", "["):
            yield from self.scan.json_value(self.around.text)
        end = self.scan.offset
        marker = yield from self.scan.until(CLOSER_MARKS, self.around.text)
        if marker is not None:
            self.around.text(self.scan.since(end)[-len(marker) :])
        self.around.shown()


def as_word(text: str) -> str | None:
    """The tool's name that a text is, or None."""
    return text.strip() if NAME.fullmatch(text.strip()) else None
