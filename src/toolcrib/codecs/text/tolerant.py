"""The tolerant reader, for models of which nothing is known but that they were shown `<tool_call>`.

It takes the tags that models confuse (`<toolcall>`, `<function_call>`, `<invoke name=…>`, `<function=…>`),
fences of the language `tool_call`, several calls in one block, and what `tolerant_blocks.py` reads inside.
It runs nothing that is only shown: in code, in quotations, in examples, in thinking, in `<tools>`, where tools
are declared, or as JSON in the middle of prose.
"""

from __future__ import annotations

import re
from typing import Any, Final

from toolcrib.codecs.text.answer import CUT_OFF, Answer
from toolcrib.codecs.text.call_objects import read_string
from toolcrib.codecs.text.form import Form, Tools
from toolcrib.codecs.text.scanner import Scanner, Steps
from toolcrib.codecs.text.tolerant_blocks import (
    Bodies,
    begins_json,
    ignore,
)
from toolcrib.codecs.text.tolerant_marks import (
    BRACKET,
    CLOSER_MARKS,
    CLOSERS,
    FENCES,
    FUNCTION,
    OPENERS,
    TOOLS,
)
from toolcrib.codecs.text.tolerant_prose import ShownProse
from toolcrib.codecs.text.tolerant_shapes import ARGUMENT_KEYS, declared_call, envelope, name_in
from toolcrib.codecs.text.tolerant_tags import Tags
from toolcrib.json_text.lenient_grammar import Unreadable
from toolcrib.json_text.lenient_reader import read_json

ENVELOPE_KEYS: Final = frozenset({"tool_calls", "toolcalls", "function_call", "content", "role", "function"})
CALL_KEYS: Final = frozenset({"name", "type", "id", *ARGUMENT_KEYS})
END_TOKENS: Final = ("<eom>", "<|eom|>", "<|im_end|>", "<|eot_id|>", "</s>")
MARKERS: Final = (*OPENERS, *CLOSERS, FUNCTION, BRACKET, TOOLS)
STARTS: Final = frozenset((*OPENERS, FUNCTION, BRACKET))
ENVELOPE: Final = re.compile(
    r"""\{\s*"(?:content"\s*:.*?"tool_?calls|tool_?calls|function_call)\"""", re.DOTALL
)


def read(_form: Form, scan: Scanner, answer: Answer, tools: Tools) -> Steps[None]:
    """Read an answer to its end."""
    yield from _Reader(scan, answer, tools).run()


class _Reader:
    def __init__(self, scan: Scanner, answer: Answer, tools: Tools) -> None:
        self.scan = scan
        self.answer = answer
        self.tools = tools
        self.prose = ShownProse(
            scan, answer, MARKERS, fenced=self.fence, at_beginning=self.whole_answer, ignore_case=True
        )
        self.around = self.prose.around
        self.bodies = Bodies(scan, answer, tools)
        self.tags = Tags(scan, answer, self.around, self.bodies)

    def run(self) -> Steps[None]:
        while (marker := (yield from self.prose.until_marker())) is not None:
            start = self.scan.offset - len(marker)
            if marker in STARTS and (marker := (yield from self.tags.read(marker))) is not None:
                start = self.scan.offset - len(marker)
            if marker == TOOLS:
                yield from self.declarations(start)
            elif marker in CLOSERS and self.tags.unclosed:
                self.tags.unclosed -= 1
            elif marker is not None:
                self.prose.release(start)

    def fence(self, words: list[str]) -> Steps[bool]:
        """The calls in a fence whose language says that there are any."""
        if len(words) == 1 and words[0].lower() in FENCES:
            return (yield from self.fenced_calls(""))
        if len(words) == 2 and words[0] == "tool" and self.bodies.is_name(words[1]):
            return (yield from self.fenced_calls(words[1]))
        return False

    def fenced_calls(self, name: str) -> Steps[bool]:
        """The calls in a fence up to its end; False, nothing reported, where it holds none."""
        if (yield from self.scan.mark()) not in ("{", "["):
            return False
        yield from self.bodies.json_calls(name=name)
        self.around.called()
        if not (yield from self.scan.accept(("```",))):
            yield from self.scan.accept(CLOSER_MARKS)
        return True

    def declarations(self, start: int) -> Steps[None]:
        """`<tools>`: all of it is text, but for the one object that can only be a call."""
        if not (yield from self.scan.accept((">",))):
            self.prose.release(start)
            return
        yield from self.scan.skip_space()
        json_start = self.scan.offset
        if not self.around.for_show and (yield from self.scan.peek()) == "{":
            complete = yield from self.scan.json_value(ignore)
            text = self.scan.since(json_start)
            yield from self.scan.skip_space()
            closed = yield from self.scan.accept(("</tools>", *CLOSERS))
            shape = declared_call(_loaded(text)) if complete else None
            if shape is not None and (closed or self.scan.ended) and (yield from self.scan.peek()) != "{":
                self.bodies.report(shape)
                self.around.called()
                return
            self.prose.release(start)
            if closed == "</tools>":
                return
        else:
            self.prose.release(start)
            while (yield from self.scan.peek()) in ("[", "{"):
                yield from self.scan.json_value(self.around.text)
                yield from self.scan.skip_space(self.around.text)
        if (yield from self.scan.until(("</tools>",), self.around.text)) is not None:
            self.around.text("</tools>")

    # Calls

    def whole_answer(self) -> Steps[None]:
        """An answer that is JSON: its calls, where it is nothing else; tags in its strings are text."""
        start = self.scan.offset
        yield from self.scan.skip_space()
        begin = self.scan.offset
        if not (yield from begins_json(self.scan)):
            self.prose.release(start)
            return
        depth, key = yield from self.first_key()
        if not (yield from self.is_calls_key(key)):
            self.prose.release(start)
            if key is not None:
                yield from self.bodies.rest_of_json(depth, self.around.text)
            return
        complete = yield from self.bodies.rest_of_json(depth)
        text = self.scan.since(begin)
        yield from self.scan.skip_space()
        while (yield from self.scan.accept(END_TOKENS)):
            yield from self.scan.skip_space()
        value = _loaded(text) if complete else None
        shapes = envelope(value, self.tools)
        if (yield from self.scan.peek()):
            self.prose.release(start)
        elif not complete and ENVELOPE.match(text) and self.bodies.is_name(name_in(text)):
            self.answer.fail_call(CUT_OFF, name_in(text))
        elif not shapes:
            self.prose.release(start)
        else:
            if isinstance(value, dict) and isinstance(value.get("content"), str):
                self.answer.text(value["content"])
            for shape in shapes:
                self.bodies.report(shape)

    def first_key(self) -> Steps[tuple[int, str | None]]:
        """How many brackets open an answer that is JSON, and the first key in it; None where it is none."""
        depth = 0
        while depth < 2:
            mark = yield from self.scan.peek()
            if not mark or mark not in "{[":
                break
            self.scan.skip(1)
            depth += 1
            yield from self.scan.skip_space()
            if mark == "{":
                break
        if (yield from self.scan.peek()) != '"':
            return depth, None
        key = yield from read_string(self.scan, '"')
        yield from self.scan.skip_space()
        return depth, key if (yield from self.scan.accept((":",))) else None

    def is_calls_key(self, key: str | None) -> Steps[bool]:
        """Whether an object that begins with a key may be calls; reads the name where it begins with one."""
        if key != "name":
            return key in ENVELOPE_KEYS or key in CALL_KEYS
        yield from self.scan.skip_space()
        return (yield from self.scan.peek()) == '"' and (yield from read_string(self.scan, '"')) in self.tools


def _loaded(text: str) -> Any:
    try:
        return read_json(text).value
    except Unreadable:
        return None


RESERVED: Final = (BRACKET, "```tool ", *(f"```{language}" for language in sorted(FENCES)))
