"""The notation of FunctionGemma and Gemma 4: `call:NAME{key:value,...}`, with a special token as quotation mark.

It is a grammar of its own because the arguments are no JSON: keys and strings have no quotes of JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from toolcrib.codecs.text.answer import CUT_OFF, AnswerBuilder
from toolcrib.codecs.text.arguments import Parameters, Place, escaped, read_value
from toolcrib.codecs.text.call_objects import NO_NAME, CallObject, read_string
from toolcrib.codecs.text.escaping import escape_json, escape_words
from toolcrib.codecs.text.form import Form, Tools, safe_name
from toolcrib.codecs.text.prose import THINKING, Prose
from toolcrib.codecs.text.scanner import Markers, Scanner, Steps, markers_of
from toolcrib.codecs.wire_json import arguments_object
from toolcrib.dataclass import dataclass, field

if TYPE_CHECKING:
    from toolcrib.spec import ToolSpec

__all__ = ["FUNCTION_GEMMA", "GEMMA_4", "Notation"]

NO_MEMBERS = "the arguments are not of the form {key:value,...}; write the call again with all of them in it"
TOO_DEEP = "the arguments nest too deeply; write the call again with flatter ones"
MAX_DEPTH: Final = 100
_NAME = re.compile(r"[^\s{}<>:,]+")
_KEY = re.compile(r"[^\s:,{}\[\]<>\"]+")
_BARE = re.compile(r"[^,{}\[\]<\n]+")
_PREFIX = Markers(("call:",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """The special tokens of one format: around a call, a string, a declaration and a result.

    Text behind the beginning of a result is not the model's. `thinking` are further blocks of thinking.
    """

    call: tuple[str, str]
    quote: str
    declaration: tuple[str, str]
    result: tuple[str, str]
    thinking: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> tuple[str, ...]:
        return (*self.call, self.quote, *self.declaration, *self.result)

    def form(self, name: str, *models: str) -> Form:
        """The format of this notation."""
        return Form(
            name=name,
            models=models,
            call=f"{self.call[0]}{{call}}{self.call[1]}",
            between="",
            write_call=lambda _, call: (
                f"call:{safe_name(call.name)}{self.written(arguments_object(call.arguments))}"
            ),
            read=self.read,
            also_reserved=self.words,
            result=(
                f"{self.result[0]}response:{{name}}{{{{failed}}:{self.quote}{{text}}{self.quote}}}{self.result[1]}"
            ),
            error_marks=("value", "error"),
            declare=self.declare,
            declaration="You can call these functions:\n{tools}",
            instruction="To call a function, write exactly:",
            rules=(
                f"Strings stand between {self.quote} and {self.quote}, as they are; numbers, true, false and null "
                "as they are; objects as {key:value,...}, lists as [value,...]. Several calls stand one after the "
                "other. After your calls, stop: the results come with the next message."
            ),
        )

    def declare(self, specs: Sequence[ToolSpec]) -> str:
        """The tools in this notation."""
        before, after = self.declaration
        return "\n".join(
            f"{before}declaration:{spec.name}"
            f"{self.written({'description': spec.description, 'parameters': _in_capitals(spec.input_schema)})}"
            f"{after}"
            for spec in specs
        )

    def read(self, _form: Form, scan: Scanner, answer: AnswerBuilder, tools: Tools) -> Steps[None]:
        """Reads an answer to its end."""
        parameters = Parameters(tools)
        begin, end = self.call
        prose = Prose(scan, answer, (begin, end, self.result[0]), blocks={**THINKING, **self.thinking})
        while (marker := (yield from prose.until_marker())) is not None:
            if marker == self.result[0]:
                yield from scan.until(())
            while marker == begin:
                marker = yield from _Call(self, scan, answer, parameters).read()

    def written(self, value: Any) -> str:
        """A value as the format writes it, or as JSON where it nests too deeply for that."""
        try:
            return self._written(value)
        except RecursionError:
            return escape_json(value, self.words)

    def _written(self, value: Any) -> str:
        if isinstance(value, str):
            return f"{self.quote}{escape_words(value, self.words)}{self.quote}"
        if isinstance(value, Mapping):
            return (
                "{"
                + ",".join(f"{self._key(str(key))}:{self._written(item)}" for key, item in value.items())
                + "}"
            )
        if isinstance(value, list | tuple):
            return f"[{','.join(map(self._written, value))}]"
        return json.dumps(value, default=str)

    def _key(self, key: str) -> str:
        return key if _KEY.fullmatch(key) else self._written(key)


def _in_capitals(schema: Any) -> Any:
    """A schema with the names of types in capitals, as the families were trained on."""
    if isinstance(schema, Mapping):
        return {
            key: value.upper() if key == "type" and isinstance(value, str) else _in_capitals(value)
            for key, value in schema.items()
        }
    return [_in_capitals(item) for item in schema] if isinstance(schema, list) else schema


@dataclass(slots=True)
class _Open:
    """An object or array that is open."""

    place: Place
    listed: bool
    count: int = 0

    def next(self, key: str) -> tuple[str, Place]:
        """The JSON before the next value in it, and the place of that value."""
        place = self.place.item(self.count) if self.listed else self.place.member(key)
        comma = ", " if self.count else ""
        self.count += 1
        return comma if self.listed else f"{comma}{json.dumps(key, ensure_ascii=False)}: ", place


class _Call:
    """Reads one call, whose first token was read."""

    def __init__(
        self, notation: Notation, scan: Scanner, answer: AnswerBuilder, parameters: Parameters
    ) -> None:
        self._scan = scan
        self._answer = answer
        self._parameters = parameters
        self._quote = markers_of((notation.quote,))
        self._end = markers_of((notation.call[1],))
        self._outer = markers_of(notation.call)

    def read(self) -> Steps[str | None]:
        """Reads the call; gives the token that begins the next call, if it follows without an end of this one."""
        scan, answer = self._scan, self._answer
        if (yield from scan.mark()) == "{":
            yield from CallObject(scan, answer, self._outer.words, certain=True).read()
            return (yield from scan.until(self._outer))
        name: list[str] = []
        yield from scan.accept(_PREFIX)
        yield from scan.take_while(_NAME, name.append)
        first = yield from scan.mark()
        answer.open_call("".join(name))
        if name and first == "{":
            problem = yield from self._object("".join(name))
        else:
            problem = CUT_OFF if not first else NO_MEMBERS if name else NO_NAME
        if problem:
            answer.fail_call(problem)
            return (yield from scan.until(self._outer))
        answer.close_call()
        space: list[str] = []
        yield from scan.skip_space(space.append)
        if not (yield from scan.accept(self._end)):
            answer.text("".join(space))
        return None

    def _object(self, tool: str) -> Steps[str]:
        """Reads the arguments, as JSON to the answer; gives the problem if they cannot be read."""
        scan, write = self._scan, self._answer.arguments
        scan.skip(1)
        write("{")
        open = [_Open(self._parameters.of(tool), listed=False)]
        while open:
            around = open[-1]
            mark = yield from scan.mark()
            if mark == ("]" if around.listed else "}"):
                scan.skip(1)
                write(mark)
                open.pop()
                continue
            if mark == ",":
                scan.skip(1)
                continue
            key = "" if around.listed else (yield from self._key(mark))
            if key is None or (around.listed and mark == "}"):
                return CUT_OFF if scan.ended and scan.at_end else NO_MEMBERS
            before, place = around.next(key)
            mark = yield from scan.mark()
            write(before)
            if mark in ("{", "["):
                if len(open) > MAX_DEPTH:
                    return TOO_DEEP
                scan.skip(1)
                write(mark)
                open.append(_Open(place, listed=mark == "["))
            elif problem := (yield from self._scalar(place, mark)):
                return problem
        return ""

    def _key(self, mark: str) -> Steps[str | None]:
        """Reads a key and its colon; None if there is no key."""
        scan = self._scan
        key: list[str] = []
        if mark == '"':
            text = yield from read_string(scan, mark)
            key += [] if text is None else [text]
        elif (yield from scan.accept(self._quote)):
            yield from scan.until(self._quote, key.append)
        else:
            yield from scan.take_while(_KEY, key.append)
        yield from scan.skip_space()
        if not key or (yield from scan.peek()) != ":":
            return None
        scan.skip(1)
        return "".join(key)

    def _scalar(self, place: Place, mark: str) -> Steps[str]:
        """Reads a value that is neither an object nor an array; gives the problem if it cannot be read."""
        scan, write = self._scan, self._answer.arguments
        if (yield from scan.accept(self._quote)):
            write('"')
            closed = yield from scan.until(self._quote, lambda piece: write(escaped(piece)))
            write('"')
            return "" if closed else CUT_OFF
        if mark == '"':
            text = yield from read_string(scan, mark)
            write(json.dumps(text, ensure_ascii=False))
            return CUT_OFF if text is None else ""
        bare: list[str] = []
        yield from scan.take_while(_BARE, bare.append)
        after = yield from scan.peek()
        if not after or (not bare and after not in (",", "}", "]")):
            return NO_MEMBERS if after else CUT_OFF
        write(
            json.dumps(read_value("".join(bare).strip(), place.kinds, untyped_json=True), ensure_ascii=False)
        )
        return ""


FUNCTION_GEMMA: Final = Notation(
    call=("<start_function_call>", "<end_function_call>"),
    quote="<escape>",
    declaration=("<start_function_declaration>", "<end_function_declaration>"),
    result=("<start_function_response>", "<end_function_response>"),
).form("functiongemma", r"function-?gemma")

GEMMA_4: Final = Notation(
    call=("<|tool_call>", "<tool_call|>"),
    quote='<|"|>',
    declaration=("<|tool>", "<tool|>"),
    result=("<|tool_response>", "<tool_response|>"),
    thinking={"<|channel>thought\n": "<channel|>", "<|channel>": "<channel|>"},
).form("gemma4", r"gemma-?[4-9]")
