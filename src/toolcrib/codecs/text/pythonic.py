"""The formats whose calls are Python: a list between markers, or unmarked where an answer begins."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolcrib.call import ToolCall
from toolcrib.codecs.text.answer import CUT_OFF, Answer
from toolcrib.codecs.text.escaping import escape_markers_in_json
from toolcrib.codecs.text.format import ResultText, TextFormat, Tools
from toolcrib.codecs.text.json_calls import CallObject, Found
from toolcrib.codecs.text.prose import Prose
from toolcrib.codecs.text.python_calls import NO_CALL, PythonCalls
from toolcrib.codecs.text.scanner import Scanner, Steps
from toolcrib.codecs.text.teaching import call_arguments, json_tool_list

if TYPE_CHECKING:
    from toolcrib.spec import ToolSpec

BETWEEN = "[],;"
IDENTIFIER = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One format: its markers, and whether a list may stand unmarked.

    `bare` lets the answer begin with a list of calls; `unmarked` is how it is taught then. `listed` puts the calls
    of a turn into one list.
    """

    name: str
    begin: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    bare: bool = False
    unmarked: bool = False
    listed: bool = True
    models: tuple[str, ...] = ()
    result: str = "tool_response"

    def parse(self, scan: Scanner, answer: Answer, tools: Tools) -> Steps[None]:
        """Read an answer to its end."""
        reader = _Reader(self, scan, answer)
        prose = Prose(scan, answer, self.begin + self.end, at_beginning=reader.bare if self.bare else None)
        while (marker := (yield from prose.until_marker())) is not None:
            if marker in self.begin:
                yield from reader.block()

    def form(self, calls: Sequence[str]) -> str:
        said = f"[{', '.join(calls)}]" if self.listed else "\n".join(calls)
        return said if self.unmarked else f"{self.begin[0]}{said}{self.end[0]}"

    def write_calls(self, calls: Sequence[ToolCall]) -> str:
        return self.form([_written(call) for call in calls])

    def write_result(self, result: ResultText) -> str:
        failed = ' error="true"' if result.is_error else ""
        return f'<{self.result} name="{result.name}"{failed}>\n{result.text}\n</{self.result}>'

    def teach(self, specs: Sequence[ToolSpec]) -> str:
        return (
            f"# Tools\n\nYou may call these tools:\n{json_tool_list(specs, wrapped=False)}\n\n"
            "To call tools, write the calls in Python's syntax, with named arguments that are literals, and "
            f"nothing else:\n{self.form(['name(parameter=value)', 'name2(parameter=value)'])}\n"
            f"The results come in <{self.result}> with the next message."
        )

    def format(self) -> TextFormat:
        return TextFormat(
            name=self.name,
            parse=self.parse,
            teach=self.teach,
            write_calls=self.write_calls,
            write_result=self.write_result,
            models=self.models,
            reserved=(*self.begin, *self.end),
        )


def _written(call: ToolCall) -> str:
    """A call in Python's syntax; arguments that are no names in Python make it an object."""
    arguments = call_arguments(call)
    if not all(IDENTIFIER.fullmatch(name) for name in arguments):
        return escape_markers_in_json({"name": call.name, "arguments": dict(arguments)})
    said = ", ".join(f"{name}={_literal(value)}" for name, value in arguments.items())
    return f"{call.name}({said})"


def _literal(value: Any) -> str:
    """A value as a Python literal; strings as in JSON, whose escapes Python knows."""
    if isinstance(value, str):
        return escape_markers_in_json(json.dumps(value, ensure_ascii=False))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(str(k))}: {_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return repr(value)


class _Reader:
    def __init__(self, row: Row, scan: Scanner, answer: Answer) -> None:
        self._stops = row.end + row.begin
        self._row = row
        self._scan = scan
        self._answer = answer

    def block(self) -> Steps[None]:
        """What follows a marker that announces calls: Python, or JSON objects, which some models write too."""
        scan, some = self._scan, False
        while True:
            space: list[str] = []
            mark = yield from scan.mark(space.append)
            if (yield from scan.accept(self._row.end)):
                return
            if mark and mark in BETWEEN:
                scan.skip(1)
                continue
            if not mark:
                if not some:
                    self._answer.fail_call(CUT_OFF)
                return
            if not some or mark == "{" or mark == "_" or mark.isalpha():
                found = yield from self._one(mark)
            elif self._row.end:
                self._answer.fail_call(NO_CALL)
                found = Found.FAILED
            else:
                self._answer.text("".join(space))
                return
            some = True
            if found is not Found.CALL and (yield from scan.until(self._stops)) not in self._row.begin:
                return

    def _one(self, mark: str) -> Steps[Found]:
        if mark == "{":
            call = CallObject(self._scan, self._answer, self._stops, certain=True)
            return (yield from call.read())
        return (yield from PythonCalls(self._scan, self._answer).call(certain=True))

    def bare(self) -> Steps[None]:
        """A list of calls with which an answer begins; what is none is text."""
        start = self._scan.offset
        if (yield from self._scan.mark()) == "[":
            self._scan.skip(1)
            yield from self._scan.skip_space()
            found = yield from self._list(self._answer)
            if found is Found.FAILED:
                yield from self._scan.until(self._stops)
            if found is not Found.NOTHING:
                return
        self._answer.text(self._scan.since(start))

    def _list(self, answer: Answer) -> Steps[Found]:
        """The calls of a list up to its bracket, the first of which must look like one."""
        calls = PythonCalls(self._scan, answer)
        found = yield from calls.call(certain=False)
        while found is Found.CALL:
            mark = yield from self._scan.mark()
            if mark == "]":
                self._scan.skip(1)
                return found
            if mark != ",":
                return found
            self._scan.skip(1)
            if (yield from self._scan.mark()) != "]":
                found = yield from calls.call(certain=True)
        return found


ROWS = (
    Row(
        name="llama4_pythonic",
        begin=("<|python_start|>",),
        end=("<|python_end|>",),
        bare=True,
        unmarked=True,
        models=(r"llama-?4",),
    ),
    Row(
        name="olmo3_pythonic",
        begin=("<function_calls>",),
        end=("</function_calls>",),
        listed=False,
        models=(r"olmo-?3",),
    ),
    Row(
        name="lfm2",
        begin=("<|tool_call_start|>",),
        end=("<|tool_call_end|>",),
        bare=True,
        models=(r"lfm-?2",),
    ),
    Row(
        name="pythonic",
        begin=("<|python_start|>", "<|python_tag|>"),
        end=("<|python_end|>",),
        bare=True,
        unmarked=True,
        models=(r"^(?!.*hermes).*llama-?3\.2", r"toolace", r"watt-tool"),
    ),
)

FORMATS: tuple[TextFormat, ...] = tuple(row.format() for row in ROWS)
