"""Reads a transcript file as far as it can be read, and says what was wrong at which line."""

from __future__ import annotations

import json
import logging
from itertools import takewhile
from pathlib import Path
from typing import Any

from toolcrib.agent.transcript import RECORDS, is_cut
from toolcrib.call import FORMAT, ToolCall
from toolcrib.dataclass import dataclass, field, replace
from toolcrib.errors import ErrorCode
from toolcrib.mending import NAMELESS, mend, notes_on_one_line
from toolcrib.messages import Message, ResultPart, messages_from_json, result_from_dict, usage_from_dict

__all__ = ["TranscriptProblem", "TranscriptReading", "read_transcript", "scan_transcript"]


def read_transcript(path: str | Path) -> list[Message]:
    """The conversation of a transcript file, mended as `toolcrib.mending` says.

    Lines that cannot be read, as a crash leaves one at the end, are left out; the log says which. OSError, or
    ValueError for a file that is no transcript or one of another format.
    """
    path = Path(path)
    reading = scan_transcript(path)
    if reading.problems:
        logging.getLogger("toolcrib").warning("%s: %s", path.name, notes_on_one_line(reading.problems))
    return reading.mended


@dataclass(frozen=True, slots=True, order=True)
class TranscriptProblem:
    """What is wrong at a line of a transcript file."""

    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"


@dataclass(slots=True)
class TranscriptReading:
    """What could be read of a transcript file: the mended conversation, and what was wrong at which line."""

    mended: list[Message] = field(default_factory=list)
    problems: list[TranscriptProblem] = field(default_factory=list)


def scan_transcript(path: Path) -> TranscriptReading:
    """Reads as much of a transcript file as can be read. Raises what `read_transcript` raises."""
    reader = _Reader()
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                reader.take(number, line, is_last=number == len(lines))
            except _OtherFormat as problem:
                raise ValueError(f"{path.name}, line {number}: {problem}") from None
    begun = len(reader.problems) == 1 and lines[-1].strip() and is_cut(lines[-1])
    if reader.problems and not reader.records and not begun:
        first = str(reader.problems[0]).removesuffix("; the line is left out")
        raise ValueError(f"{path.name} is not a transcript; {first}")
    mended, notes = mend(reader.conversation())
    for note in notes:
        reader.problem(reader.lines[note.message], note.text)
    return TranscriptReading(mended, sorted(reader.problems))


class _OtherFormat(Exception):
    """A transcript of a format that is not known here."""


class _Reader:
    """Puts the records of a file together to a conversation, line by line."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.lines: list[int] = []  # where each message began
        self.problems: list[TranscriptProblem] = []
        self.records = 0
        self._calls: list[ToolCall] = []  # the calls that the next results belong to, by index
        self._answered: dict[Any, ResultPart] = {}
        self._more_results: dict[int, list[ResultPart]] = {}  # results after the first, by id(message)
        self._certain = True  # no line was lost that may have held the calls of the results that follow

    def problem(self, number: int, text: str) -> None:
        self.problems.append(TranscriptProblem(number, text))

    def take(self, number: int, line: bytes, *, is_last: bool) -> None:
        try:
            record = json.loads(line.decode("utf-8-sig"), object_pairs_hook=_with_each_key_once)
        except (ValueError, RecursionError):
            what = "the end is cut off" if is_last and is_cut(line) else "not JSON"
            self.problem(number, f"{what}; the line is left out")
            self._certain = False
            return
        kind = next((name for name in RECORDS if name in record), "") if isinstance(record, dict) else ""
        if not kind:
            beginning = line[:40].decode(errors="replace")
            self.problem(number, f"neither a message nor a result, but {beginning}; the line is left out")
            return
        if "format" in record and record["format"] != FORMAT:
            raise _OtherFormat(f"expected format {FORMAT}, got {record['format']!r}")
        self.records += 1
        try:
            getattr(self, f"_take_{kind}")(number, record)
        except ValueError as problem:
            self.problem(number, f"{problem}; the line is left out")
            self._certain &= kind != "message"

    def _take_format(self, number: int, record: dict[str, Any]) -> None:
        if "messages" in record:  # all in one line, as messages_to_json makes it
            self._take_messages(number, record)

    def _take_checkpoint(self, number: int, record: dict[str, Any]) -> None:
        """It is no part of the conversation: it says from which state of the files the turn went on."""

    def _take_lost(self, number: int, record: dict[str, Any]) -> None:
        kind = record["lost"]
        self.problem(number, f"a {kind} could not be written here: {record.get('why')}")
        self._certain &= kind != "message"

    def _take_messages(self, number: int, record: dict[str, Any]) -> None:
        for message in messages_from_json({**record, "format": FORMAT}):
            self._add(number, message)

    def _take_message(self, number: int, record: dict[str, Any]) -> None:
        self._add(number, _messages([record["message"]], "message")[0])

    def _take_head(self, number: int, record: dict[str, Any]) -> None:
        head = _messages(record["head"], "head")
        old = len(list(takewhile(lambda message: message.role == "system", self.messages)))
        self.messages[:old] = head
        self.lines[:old] = [number] * len(head)

    def _take_usage(self, number: int, record: dict[str, Any]) -> None:
        usage = usage_from_dict(record["usage"])
        answers_and_tasks = (m for m in reversed(self.messages) if m.role == "assistant" or m.is_the_users)
        noted_in = next(answers_and_tasks, None)
        if noted_in is not None and self._certain:
            noted_in.note_usage(usage)

    def _take_result(self, number: int, record: dict[str, Any]) -> None:
        result = result_from_dict(record["result"])
        name, id, index = record.get("tool"), record.get("id"), record.get("index")
        call = self._calls[index] if isinstance(index, int) and 0 <= index < len(self._calls) else None
        if call is not None and (name, id) not in ((call.name, call.id), (None, None)):
            call = None
        known = self._answered.get(index) if call is not None and self._certain else None
        if known is not None and known.result.code is ErrorCode.WAITING:  # answered by now
            known.record(result)
            return
        if known is not None and call is not None and known.result == result:
            self.problem(number, f"the result of {call.name} stood there twice; one is left out")
            return
        if call is None or known is not None or not self._certain:
            self.problem(number, "the call of this result is lost; it got a call of its own")
            part = ResultPart(ToolCall(str(name or NAMELESS), "", str(id or "")), result)
            self._append(number, Message("assistant", [part.call]))
        else:
            part = self._answered[index] = ResultPart(call, result)
        self._append_result(number, part)

    def _add(self, number: int, message: Message) -> None:
        self._append(number, message)
        if message.role != "tool":
            self._calls, self._answered, self._certain = message.calls, {}, True

    def _append_result(self, number: int, part: ResultPart) -> None:
        if self.messages[-1].role == "tool":
            self._more_results.setdefault(id(self.messages[-1]), []).append(part)
        else:
            self._append(number, Message("tool", [part]))

    def conversation(self) -> list[Message]:
        """The messages that were read, each with all its results."""
        return [
            replace(message, parts=[*message.parts, *more])
            if (more := self._more_results.get(id(message)))
            else message
            for message in self.messages
        ]

    def _append(self, number: int, message: Message) -> None:
        self.messages.append(message)
        self.lines.append(number)


def _with_each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of a line. A key that stands twice shows that the line was put together of two."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _messages(items: Any, where: str) -> list[Message]:
    try:
        return messages_from_json({"format": FORMAT, "messages": items})
    except ValueError as problem:
        raise ValueError(str(problem).replace("messages[0]", where)) from None
