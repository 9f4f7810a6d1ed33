"""The tolerant reader, for unknown models, which were only shown `<tool_call>` in the prompt.

It is a grammar of its own because such models mix the forms of several families.

It takes the tags that models confuse (`<toolcall>`, `<function_call>`, `<invoke name=…>`, `<function=…>`),
fences of the language `tool_call`, several calls in one block, and what `tolerant_bodies.py` reads inside.
It runs nothing that is only shown: in code, in quotations, in examples, in thinking, in `<tools>`, where tools
are declared, or as JSON in the middle of prose.
"""

from __future__ import annotations

import re
from typing import Any, Final

from toolcrib.call import ToolCall
from toolcrib.codecs.text.answer import CUT_OFF, AnswerBuilder
from toolcrib.codecs.text.call_objects import (
    ARGUMENT_KEYS,
    ID_KEYS,
    LIST_KEYS,
    OTHER_KEYS,
    WRAPPER_KEYS,
    calls_in,
    read_string,
)
from toolcrib.codecs.text.engine import ignore
from toolcrib.codecs.text.form import Form, Tools
from toolcrib.codecs.text.grammars.shortened_calls import name_in
from toolcrib.codecs.text.grammars.tolerant_bodies import (
    BRACKET,
    CLOSER_MARKS,
    CLOSERS,
    FENCES,
    FUNCTION,
    OPENERS,
    TOOLS,
    CallBodies,
    begins_json,
    loosely_read,
)
from toolcrib.codecs.text.grammars.tolerant_tags import TagReader
from toolcrib.codecs.text.prose import CautiousProse
from toolcrib.codecs.text.scanner import Scanner, Steps

__all__ = ["RESERVED", "read"]

ANSWER_KEYS: Final = frozenset({"content", "role", "reasoning_content"})
# The keys with which an answer that is a call, or a list of calls, may begin; or "name" and the name of a tool.
FIRST_KEYS: Final = ANSWER_KEYS | LIST_KEYS | WRAPPER_KEYS | ARGUMENT_KEYS | ID_KEYS | OTHER_KEYS
END_TOKENS: Final = ("<eom>", "<|eom|>", "<|im_end|>", "<|eot_id|>", "</s>")
MARKERS: Final = (*OPENERS, *CLOSERS, FUNCTION, BRACKET, TOOLS)
STARTS: Final = frozenset((*OPENERS, FUNCTION, BRACKET))
ENVELOPE: Final = re.compile(
    r"""\{\s*"(?:content"\s*:.*?"tool_?calls|tool_?calls|function_call)\"""", re.DOTALL
)
RESERVED: Final = (BRACKET, "```tool ", *(f"```{language}" for language in sorted(FENCES)))


def read(_form: Form, scan: Scanner, answer: AnswerBuilder, tools: Tools) -> Steps[None]:
    """Reads an answer to its end."""
    yield from _Reader(scan, answer, tools).run()


class _Reader:
    def __init__(self, scan: Scanner, answer: AnswerBuilder, tools: Tools) -> None:
        self.scan = scan
        self.answer = answer
        self.tools = tools
        self.prose = CautiousProse(
            scan, answer, MARKERS, fenced=self.fence, at_beginning=self.whole_answer, ignore_case=True
        )
        self.around = self.prose.around
        self.bodies = CallBodies(scan, answer, tools)
        self.tags = TagReader(scan, answer, self.around, self.bodies)
        self.no_more_declarations = False

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
        """Reads the calls in a code fence whose language announces calls; False if it announces none."""
        if len(words) == 1 and words[0].lower() in FENCES:
            return (yield from self.fenced_calls(""))
        if len(words) == 2 and words[0] == "tool" and self.bodies.is_name(words[1]):
            return (yield from self.fenced_calls(words[1]))
        return False

    def fenced_calls(self, name: str) -> Steps[bool]:
        """Reads the calls in a code fence up to its end; False, with nothing reported, if it holds none."""
        if (yield from self.scan.mark()) not in ("{", "["):
            return False
        if name:
            yield from self.bodies.json_arguments(name)
        else:
            yield from self.bodies.json_calls()
        self.around.called()
        if not (yield from self.scan.accept(("```",))):
            yield from self.scan.accept(CLOSER_MARKS)
        return True

    def declarations(self, start: int) -> Steps[None]:
        """Reads `<tools>`: everything in it is text, except one object that can only be a call."""
        if not (yield from self.scan.accept((">",))):
            self.prose.release(start)
            return
        yield from self.scan.skip_space()
        json_start = self.scan.offset
        mentioned = (yield from self.scan.peek()) not in ("{", "[")  # and nothing is declared
        if not self.around.for_show and (yield from self.scan.peek()) == "{":
            complete = yield from self.scan.json_value(ignore)
            text = self.scan.since(json_start)
            yield from self.scan.skip_space()
            closed = yield from self.scan.accept(("</tools>", *CLOSERS))
            call = _call_among_declarations(loosely_read(text)) if complete else None
            if call is not None and (closed or self.scan.ended) and (yield from self.scan.peek()) != "{":
                self.bodies.report(call)
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
        begun = self.scan.offset
        if not mentioned or not self.no_more_declarations:
            into = ignore if mentioned else self.around.text
            self.no_more_declarations = (yield from self.scan.until(("</tools>",), into)) is None
            if mentioned and self.no_more_declarations:
                self.scan.rewind(begun)
            elif mentioned:
                self.prose.release(begun)
            elif not self.no_more_declarations:
                self.around.text("</tools>")

    # Calls

    def whole_answer(self) -> Steps[None]:
        """Reads the calls of an answer that is nothing but JSON; tags in its strings are text."""
        start = self.scan.offset
        yield from self.scan.skip_space()
        begin = self.scan.offset
        if not (yield from begins_json(self.scan)) or (yield from self.prose.begins_here()):
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
        value = loosely_read(text) if complete else None
        calls = _calls_of_answer(value, self.tools) if complete else []
        if (yield from self.scan.peek()):
            self.prose.release(start)
        elif not complete and ENVELOPE.match(text) and self.bodies.is_name(name_in(text)):
            self.answer.fail_call(CUT_OFF, name_in(text))
        elif not calls:
            self.prose.release(start)
        else:
            if isinstance(value, dict) and isinstance(value.get("content"), str):
                self.answer.text(value["content"])
            for call in calls:
                self.bodies.report(call)

    def first_key(self) -> Steps[tuple[int, str | None]]:
        """Reads the brackets with which an answer begins, and the first key; gives how many, and the key or None."""
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
        """Whether an object with this first key may be a call; reads the name if the key is `name`."""
        if key != "name":
            return key in FIRST_KEYS
        yield from self.scan.skip_space()
        return (yield from self.scan.peek()) == '"' and (yield from read_string(self.scan, '"')) in self.tools


def _calls_of_answer(value: Any, known: Tools) -> list[ToolCall]:
    """The calls of a whole answer that is JSON; empty where it is anything but calls.

    `{"tool_calls": [...]}` says that it holds calls; an object with name and arguments must name a known tool.
    """
    items, marked = value if isinstance(value, list) else [value], False
    if isinstance(value, dict):
        for key in (*LIST_KEYS, "function_call"):
            inner = value.get(key)
            if isinstance(inner, dict if key == "function_call" else list):
                marked, items = True, [inner] if isinstance(inner, dict) else inner
                if value.keys() - ANSWER_KEYS - {key}:
                    return []
                break
    calls = calls_in(items, certain=False)
    if any(call.problem or not (call.name in known or (marked and not known)) for call in calls):
        return []
    return calls


def _call_among_declarations(value: Any) -> ToolCall | None:
    """The call in `<tools>`, where tools are declared: an object of exactly a name and arguments."""
    if not isinstance(value, dict) or value.keys() - {"id"} != {"name", "arguments"}:
        return None
    [call] = calls_in([value])
    return None if call.problem or not isinstance(value["arguments"], dict | str) else call
