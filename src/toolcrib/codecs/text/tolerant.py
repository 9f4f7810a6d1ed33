"""The tolerant reader, for models of which nothing is known but that they were shown `<tool_call>`.

It takes the tags that models confuse (`<toolcall>`, `<function_call>`, `<invoke name=…>`, `<function=…>`),
fences of the language `tool_call`, several calls in one block, and what `tolerant_blocks.py` reads inside.
It runs nothing that is only shown: in code, in quotations, in examples, in thinking, in `<tools>`, where tools
are declared, or as JSON in the middle of prose.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from toolcrib.call import ToolCall
from toolcrib.codecs.text.answer import CUT_OFF, Answer
from toolcrib.codecs.text.format import TextFormat, Tools, Written
from toolcrib.codecs.text.json_calls import read_string
from toolcrib.codecs.text.safe import guarded_json
from toolcrib.codecs.text.scanner import Markers, Scanner, Steps, markers_of
from toolcrib.codecs.text.teaching import call_arguments, json_tools
from toolcrib.codecs.text.tolerant_blocks import (
    TICKS,
    WORD,
    Bodies,
    ignore,
    name_in,
)
from toolcrib.codecs.text.tolerant_marks import (
    BRACKET,
    CLOSER_MARKS,
    CLOSERS,
    FENCES,
    FUNCTION,
    MARKS,
    OPENERS,
    SHOWN,
    THOUGHTS,
    TICK,
    TILDES,
    TOOLS,
    Surroundings,
)
from toolcrib.codecs.text.tolerant_shapes import ARGUMENT_KEYS, NAME, declared_call, envelope
from toolcrib.codecs.text.tolerant_tags import Tags
from toolcrib.lenient_grammar import Unreadable
from toolcrib.lenient_json import read_json

if TYPE_CHECKING:
    from toolcrib.tool import ToolSpec

NOTHING_IN_IT: Final = "what stands in the tag is no call: expected an object with name and arguments"
ENVELOPE_KEYS: Final = frozenset({"tool_calls", "toolcalls", "function_call", "content", "role", "function"})
CALL_KEYS: Final = frozenset({"name", "type", "id", *ARGUMENT_KEYS})
BLANK: Final = re.compile(r"[ \t]+")
TILDE_RUN: Final = re.compile(r"~+")
END_TOKENS: Final = re.compile(r"(?:\s|<eom>|<\|eom\|>|<\|im_end\|>|<\|eot_id\|>|</s>)+")
PARAGRAPH: Final = ("\n\n", "\n\r\n", "\n \n")
COLON: Final = re.compile(r"[\s:]+")
NAME_ALONE: Final = re.compile(NAME)
ENVELOPE: Final = re.compile(
    r"""\{\s*"(?:content"\s*:.*?"tool_?calls|tool_?calls|function_call)\"""", re.DOTALL
)
THOUGHT_MARKS: Final = Markers(THOUGHTS, ignore_case=True)
WORD_ENDS: Final = Markers(("{", *CLOSERS, *OPENERS), ignore_case=True)


def parse(scan: Scanner, answer: Answer, tools: Tools) -> Steps[None]:
    """Read an answer to its end."""
    yield from _Reader(scan, answer, tools).run()


class _Reader:
    def __init__(self, scan: Scanner, answer: Answer, tools: Tools) -> None:
        self.scan = scan
        self.answer = answer
        self.tools = tools
        self.around = Surroundings(answer)
        self.bodies = Bodies(scan, answer, tools)
        self.thought = False
        self.tags = Tags(scan, answer, self.around, self.bodies)

    def run(self) -> Steps[None]:
        yield from self.whole_answer()
        while (marker := (yield from self.scan.until(MARKS, self.around.text))) is not None:
            while marker is not None:
                marker = yield from self.marker(marker)

    def marker(self, marker: str) -> Steps[str | None]:
        """What begins with a marker; gives another that it led to."""
        start = self.scan.offset - len(marker)
        if marker in OPENERS or marker in (FUNCTION, BRACKET):
            return (yield from self.tags.read(marker))
        if marker == TICK:
            yield from self.ticks(start)
        elif marker == TILDES:
            yield from self.tildes(start)
        elif marker in THOUGHTS:
            yield from self.thinking(marker)
        elif marker in SHOWN:
            yield from self.shown(start, SHOWN[marker])
        elif marker == TOOLS:
            yield from self.declarations(start)
        elif marker in CLOSERS and self.tags.unclosed:
            self.tags.unclosed -= 1
        elif marker in CLOSERS or self.thought:
            self.release(start)
        else:  # the lone end of a block that the prompt had opened
            self.thought = True
            self.answer.retract(self.scan.since(0)[: -len(marker)])
            self.around.called()
            yield from self.whole_answer()
        return None

    def release(self, start: int) -> None:
        """What was read from `start` on is text."""
        self.around.text(self.scan.since(start))

    # What is not meant

    def thinking(self, marker: str) -> Steps[None]:
        self.thought = True
        first = self.around.untouched
        yield from self.scan.until((THOUGHTS[marker],), self.answer.reasoning)
        self.answer.end_reasoning()
        if first:
            yield from self.whole_answer()

    def shown(self, start: int, closer: str) -> Steps[None]:
        """An element whose contents are shown; a word that only begins like its tag is none."""
        after = yield from self.scan.peek()
        self.release(start)
        if closer == "-->" or after in (">", " ", "\n", "\t"):
            yield from self.scan.until((closer,), self.around.text)
            self.around.text(closer if not self.scan.ended else "")

    def ticks(self, start: int) -> Steps[None]:
        """Inline code, or a fence."""
        at_start = self.around.line_start
        yield from self.scan.take_while(TICKS)
        run = self.scan.since(start)
        if at_start and len(run) >= 3:
            yield from self.fence(start, run, TICKS)
            return
        self.around.text(run)
        known = markers_of((run, *PARAGRAPH))
        while (marker := (yield from self.scan.until(known, self.around.text))) is not None:
            self.around.text(marker)
            if marker != run:
                return
            more: list[str] = []
            yield from self.scan.take_while(TICKS, more.append)
            self.around.text("".join(more))
            if not more:
                return

    def tildes(self, start: int) -> Steps[None]:
        at_start = self.around.line_start
        yield from self.scan.take_while(TILDE_RUN)
        if at_start:
            yield from self.fence(start, self.scan.since(start), TILDE_RUN)
        else:
            self.release(start)

    def fence(self, start: int, run: str, runs: re.Pattern[str]) -> Steps[None]:
        """A fence: of calls if its language says so, else of code."""
        info: list[str] = []
        if len(run) == 3:
            yield from self.scan.take_while(BLANK, info.append)
            yield from self.scan.take_while(WORD, info.append)
            yield from self.scan.take_while(BLANK, info.append)
            yield from self.scan.take_while(WORD, info.append)
            yield from self.scan.take_while(BLANK)
            words = "".join(info).split()
            begins = (yield from self.scan.peek()) == "\n" and not self.around.for_show
            plain = begins and len(words) == 1 and words[0].lower() in FENCES
            named = begins and len(words) == 2 and words[0] == "tool" and self.bodies.is_name(words[1])
            if (plain or named) and (yield from self.fenced_calls(words[1] if named else "")):
                return
        self.release(start)
        yield from self.code(run, runs)

    def fenced_calls(self, name: str) -> Steps[bool]:
        """The calls in a fence up to its end; False, nothing reported, where it holds none."""
        yield from self.scan.skip_space()
        if (yield from self.scan.peek()) not in ("{", "["):
            return False
        yield from self.bodies.json_calls(name=name)
        self.around.called()
        if not (yield from self.scan.accept(("```",))):
            yield from self.scan.accept(CLOSER_MARKS)
        return True

    def code(self, run: str, runs: re.Pattern[str]) -> Steps[None]:
        """The rest of a code fence."""
        known = markers_of((run,))
        while (yield from self.scan.until(known, self.around.text)) is not None:
            at_start = self.around.line_start
            self.around.text(run)
            yield from self.scan.take_while(runs, self.around.text)
            yield from self.scan.take_while(BLANK, self.around.text)
            if at_start and (yield from self.scan.peek()) in ("", "\n", "\r"):
                return

    def declarations(self, start: int) -> Steps[None]:
        """`<tools>`: all of it is text, but for the one object that can only be a call."""
        if not (yield from self.scan.accept((">",))):
            self.release(start)
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
            self.release(start)
            if closed == "</tools>":
                return
        else:
            self.release(start)
            while (yield from self.scan.peek()) in ("[", "{"):
                yield from self.scan.json_value(self.around.text)
                yield from self.scan.skip_space(self.around.text)
        if (yield from self.scan.until(("</tools>",), self.around.text)) is not None:
            self.around.text("</tools>")

    # Calls

    def whole_answer(self) -> Steps[None]:
        """An answer that is JSON and nothing else, and says calls."""
        start = self.scan.offset
        yield from self.scan.skip_space()
        mark = yield from self.scan.peek()
        begin = self.scan.offset
        if mark not in ("{", "[") or not (yield from self.may_be_call(mark)):
            self.release(start)
            return
        complete = yield from self.bodies.rest_of_json(1 if mark == "{" else 2)
        text = self.scan.since(begin)
        yield from self.scan.take_while(END_TOKENS)
        if (yield from self.scan.peek()):
            self.release(start)
            return
        value = _loaded(text) if complete else None
        shapes = envelope(value, self.tools)
        if not complete and ENVELOPE.match(text) and self.bodies.is_name(name_in(text)):
            self.answer.fail_call(CUT_OFF, name_in(text))
        elif not shapes:
            self.release(start)
        elif isinstance(value, dict) and isinstance(value.get("content"), str):
            self.answer.text(value["content"])
        for shape in shapes:
            self.bodies.report(shape)

    def may_be_call(self, mark: str) -> Steps[bool]:
        """Whether an answer begins as one that is nothing but calls does; reads as far as it must."""
        self.scan.skip(1)
        yield from self.scan.skip_space()
        if mark == "[":
            if not (yield from self.scan.accept(("{",))):
                return False
            yield from self.scan.skip_space()
        if (yield from self.scan.peek()) != '"':
            return False
        key = yield from read_string(self.scan, '"')
        if key != "name":
            return key in ENVELOPE_KEYS or key in CALL_KEYS
        yield from self.scan.take_while(COLON)
        if (yield from self.scan.peek()) != '"':
            return False
        return (yield from read_string(self.scan, '"')) in self.tools


def _loaded(text: str) -> Any:
    try:
        return read_json(text).value
    except Unreadable:
        return None


def teach(specs: Sequence[ToolSpec]) -> str:
    """The section of the prompt that declares the tools and the form of a call."""
    return (
        "# Tools\n\nYou may call these tools:\n"
        f"{json_tools(specs, wrapped=False)}\n\n"
        "To call one, write JSON in a tag, outside of code and of your thinking, one tag for each call:\n"
        '<tool_call>{"name": "NAME", "arguments": {"PARAMETER": "VALUE"}}</tool_call>\n'
        "Then stop; the results come in the next message."
    )


def write_calls(calls: Sequence[ToolCall]) -> str:
    return "\n".join(
        f"<tool_call>{guarded_json({'name': call.name, 'arguments': call_arguments(call)})}</tool_call>"
        for call in calls
    )


def write_result(result: Written) -> str:
    failed = ' error="true"' if result.is_error else ""
    return f'<tool_result name="{result.name}"{failed}>\n{result.text}\n</tool_result>'


FORMATS: tuple[TextFormat, ...] = (
    TextFormat(
        name="tool_call", parse=parse, teach=teach, write_calls=write_calls, write_result=write_result
    ),
)
