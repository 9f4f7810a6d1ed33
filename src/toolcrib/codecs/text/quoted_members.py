"""Calls as `call:NAME{key:value,...}` with a special token for quotes: FunctionGemma, Gemma 4."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from toolcrib.codecs.text.answer import CUT_OFF, Answer
from toolcrib.codecs.text.argument_writer import escaped
from toolcrib.codecs.text.escaping import escape_markers_in_json
from toolcrib.codecs.text.format import Tools
from toolcrib.codecs.text.json_calls import NO_NAME, CallObject, read_string
from toolcrib.codecs.text.parameter_values import Parameters, Place, read_value
from toolcrib.codecs.text.prose import THINKING, Prose
from toolcrib.codecs.text.scanner import Markers, Scanner, Steps, markers_of
from toolcrib.codecs.text.tag_forms import plain_text

NO_MEMBERS = "the arguments are not of the form {key:value,...}; write the call again with all of them in it"
TOO_DEEP = "the arguments nest too deeply; write the call again with flatter ones"
MAX_DEPTH: Final = 100
_NAME = re.compile(r"[^\s{}<>:,]+")
_KEY = re.compile(r"[^\s:,{}\[\]<>\"]+")
_BARE = re.compile(r"[^,{}\[\]<\n]+")
_PREFIX = Markers(("call:",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """The special tokens of one format; `turn_over` begins what only others may write."""

    begin: str
    end: str
    quote: str
    turn_over: str
    thinking: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> tuple[str, ...]:
        return (self.begin, self.end, self.quote, self.turn_over)

    def parse(self, scan: Scanner, answer: Answer, tools: Tools) -> Steps[None]:
        """Read an answer to its end."""
        parameters = Parameters(tools)
        blocks = {**THINKING, **self.thinking}
        prose = Prose(scan, answer, (self.begin, self.end, self.turn_over), blocks=blocks)
        while (marker := (yield from prose.until_marker())) is not None:
            if marker == self.turn_over:
                yield from scan.until(())
            while marker == self.begin:
                marker = yield from _Call(self, scan, answer, parameters).read()

    def written(self, value: Any) -> str:
        """A value as the format writes it, or as JSON where it nests too deeply for that."""
        try:
            return self._written(value)
        except RecursionError:
            return escape_markers_in_json(value, self.words)

    def _written(self, value: Any) -> str:
        if isinstance(value, str):
            return f"{self.quote}{plain_text(value, self.words)}{self.quote}"
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


@dataclass(slots=True)
class _Open:
    """An object or array that is open."""

    place: Place
    listed: bool
    count: int = 0

    def next(self, key: str) -> tuple[str, Place]:
        """The JSON that stands before its next value, and where that stands."""
        place = self.place.item(self.count) if self.listed else self.place.member(key)
        comma = ", " if self.count else ""
        self.count += 1
        return comma if self.listed else f"{comma}{json.dumps(key, ensure_ascii=False)}: ", place


class _Call:
    """Reads one call, whose token was read."""

    def __init__(self, members: Members, scan: Scanner, answer: Answer, parameters: Parameters) -> None:
        self._scan = scan
        self._answer = answer
        self._parameters = parameters
        self._quote = markers_of((members.quote,))
        self._end = markers_of((members.end,))
        self._outer = markers_of((members.end, members.begin))

    def read(self) -> Steps[str | None]:
        """Read the call; the marker of the next one, where it follows without an end of this."""
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
        """The arguments, as JSON to the answer; why they cannot be read, or nothing."""
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
        """A key and its colon; None where there is none."""
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
        """One value that is neither an object nor an array; why it cannot be read, or nothing."""
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
