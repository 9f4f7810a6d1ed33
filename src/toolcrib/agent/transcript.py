"""A transcript on disk: one JSON line for each step, appended at once, valid after a crash at any point."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from toolcrib.call import FORMAT, CallKey
from toolcrib.errors import ErrorCode
from toolcrib.messages import Message, ResultPart, Usage, messages_from_json, messages_to_json
from toolcrib.result import ToolResult
from toolcrib.toolbox.report import Record

__all__ = ["TranscriptFile", "read_transcript", "recorder"]

INTERRUPTED = "The run was interrupted before this call had a result; whether it did its work is unknown."


class TranscriptFile:
    """Appends a run's messages and results to a file as they come; linear in their length.

    `read_transcript` reads it back; `mask` takes secrets out of what is written. OSError when the file cannot
    be written.
    """

    def __init__(self, path: Path) -> None:
        self.mask: Callable[[Any], Any] = lambda record: record
        _drop_cut_line(path)
        self._file = path.open("a", encoding="utf-8", errors="backslashreplace")  # in JSON, \ud800 is itself
        self._fresh = self._file.tell() == 0
        if self._fresh:
            self._write({"format": FORMAT})

    def message(self, message: Message) -> None:
        """Append a message. A message of role "tool" is written as its results, one by one."""
        if message.role != "tool":
            self._write({"message": messages_to_json([message])["messages"][0]})

    def result(self, key: CallKey, result: ToolResult) -> None:
        self._write({"result": result.to_dict(), "index": key.index})

    def usage(self, message: Message) -> None:
        """Append what the last answer used by now, with the runs within its calls."""
        self._write({"usage": messages_to_json([message])["messages"][0]["usage"]})

    def catch_up(self, messages: Iterable[Message]) -> None:
        """Append a conversation that goes on, unless the file has its beginning already."""
        for message in messages if self._fresh else ():
            self.message(message)
            for index, result in enumerate(message.results):
                self.result(CallKey("", 0, index), result)
        self._fresh = False

    def _write(self, record: dict[str, Any]) -> None:
        self._file.write(json.dumps(self.mask(record), ensure_ascii=False, default=str) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def read_transcript(path: Path) -> list[Message]:
    """The messages of a transcript file. A call without a result gets the result that it was interrupted.

    A last line that was cut off is left out. ValueError, with the line, for what cannot be read.
    """
    messages: list[Message] = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            if number == len(lines):  # no newline after it: the write was cut off
                break
            raise ValueError(f"{path.name}, line {number}: not JSON") from None
        if "format" in record and record["format"] != FORMAT:
            raise ValueError(
                f"{path.name}, line {number}: expected format {FORMAT}, got {record['format']!r}"
            )
        if "message" in record:
            messages.append(messages_from_json({"format": FORMAT, "messages": [record["message"]]})[0])
            calls = messages[-1].calls
            if calls:
                unknown = ToolResult.of(INTERRUPTED, code=ErrorCode.OUTCOME_UNKNOWN)
                messages.append(Message("tool", [ResultPart(call, unknown) for call in calls]))
        elif "usage" in record:
            answers = [message for message in messages[-2:] if message.role == "assistant"]
            if answers:
                answers[-1].usage = Usage(**record["usage"])
        elif "result" in record:
            _place(messages, record, path, number)
    return messages


def _drop_cut_line(path: Path) -> None:
    """Remove an incomplete last line, so that the next line does not continue it."""
    if path.exists():
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(path, whole)


def _place(messages: list[Message], record: dict[str, Any], path: Path, number: int) -> None:
    parts = messages[-1].parts if messages and messages[-1].role == "tool" else []
    index = record.get("index", -1)
    if not 0 <= index < len(parts):
        raise ValueError(f"{path.name}, line {number}: a result of no call")
    part = parts[index]
    assert isinstance(part, ResultPart)
    part.result = ToolResult.from_dict(record["result"])


def recorder(message: Message, transcript: TranscriptFile | None) -> Record:
    """Puts results in their places in a message and in the transcript file.

    It does not lead to the run: a tool's context leads to what records its call, and a run leads to the model's key.
    """
    places = message.parts

    def record(key: CallKey, result: ToolResult) -> None:
        part = places[key.index]
        assert isinstance(part, ResultPart)
        part.result = result
        if transcript is not None:
            transcript.result(key, result)

    return record
