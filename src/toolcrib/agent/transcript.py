"""A transcript on disk: one JSON line for each step, appended at once, readable after a crash at any point.

Its lines are `{"format": 1}`, then `{"message": ...}` for each message but those of results, `{"result": ..., "index":
...}` for each result of the calls before it, `{"usage": ...}` for what was used by then with the answer before it, or
for the task before it, `{"head": [...]}` where a run goes on with other instructions, `{"checkpoint": ...}` where the
files of the workspace were stored before the calls of a turn, and `{"lost": ...}` in place of a record that could not
be made.
"""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from toolcrib.call import FORMAT, CallKey, ToolCall
from toolcrib.mending import mend
from toolcrib.messages import Message, ResultPart, messages_to_json
from toolcrib.result import ToolResult
from toolcrib.toolbox.report import Record

__all__ = ["TranscriptFile", "recorder"]

RECORDS = ("lost", "format", "message", "result", "usage", "head", "checkpoint", "messages")


class TranscriptFile:
    """Appends a run's messages and results to a file as they come; linear in their length.

    `read_transcript` reads it back; `mask` takes secrets out of what is written. OSError when the file cannot
    be written, ValueError when there is another file than a transcript. What could not be written is kept, and
    written before the next record; `problem` says what the file lacks, and is "" while it lacks nothing.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path = Path(path)
        self.problem = ""
        self._waiting: list[bytes] = []  # lines that could not be written yet
        self._lost = False  # whether a line of the file says that a record could not be made
        self._torn = False  # whether the file ends with a part of a line that could not be cut off
        self.mask: Callable[[Any], Any] = lambda record: record
        self._calls: list[ToolCall] = []  # of the last message
        end = _end_of_records(path)
        self._file = path.open("ab", buffering=0)  # nothing of a write that failed may be written later
        self._file.truncate(end)
        self._fresh = end == 0
        try:
            if self._fresh:
                self._write({"format": FORMAT})
            elif _last_byte(path) != b"\n":
                self._append(b"\n")
        except BaseException:
            self._file.close()
            raise

    def message(self, message: Message) -> None:
        """Append a message. A message of role "tool" is written as its results, one by one."""
        self._fresh = False
        if message.role != "tool":
            self._calls = message.calls
            self._write({"message": messages_to_json([message])["messages"][0]})

    def result(self, key: CallKey, result: ToolResult) -> None:
        record: dict[str, Any] = {"result": result.to_dict(), "index": key.index}
        if key.index < len(self._calls):  # so that it finds its call where the call's own line is lost
            call = self._calls[key.index]
            record |= {"tool": call.name, "id": call.id}
        self._write(record)

    def usage(self, message: Message) -> None:
        """Append what was used by now since the last message of the user or the model, with the runs within calls."""
        self._write({"usage": messages_to_json([message])["messages"][0]["usage"]})

    def checkpoint(self, id: int) -> None:
        """Append the number of the checkpoint that was taken before the calls of the last message."""
        self._write({"checkpoint": id})

    def head(self, messages: Iterable[Message]) -> None:
        """Append the instructions that replace those at the head of the conversation."""
        self._write({"head": messages_to_json(messages)["messages"]})

    def conversation(self, messages: Iterable[Message]) -> None:
        """Append a whole conversation, with its results."""
        for number, message in enumerate(mend(list(messages))[0]):
            self.message(message)
            for index, result in enumerate(message.results):
                self.result(CallKey("", number, index), result)

    def catch_up(self, messages: Iterable[Message]) -> bool:
        """Append a conversation that goes on, unless the file has its beginning already. Returns whether it was new."""
        was_fresh = self._fresh
        if was_fresh:
            self.conversation(messages)
        return was_fresh

    def _write(self, record: dict[str, Any]) -> None:
        try:
            text = json.dumps(self.mask(record), ensure_ascii=False, default=str)
        except Exception as error:  # raised by the mask, or by `str` of a value
            kind, why = next(name for name in RECORDS if name in record), type(error).__name__
            self._lost, self.problem = True, f"a {kind} is not in {self.path.name}: {why}"
            self._append(f"{json.dumps({'lost': kind, 'why': why})}\n".encode())
            raise
        self._append(f"{text}\n".encode("utf-8", "backslashreplace"))  # in JSON, \ud800 is itself

    def _append(self, line: bytes) -> None:
        """Append a line after those that wait. Raises OSError, and then they wait for the next time."""
        self._waiting.append(line)
        self._append_waiting()

    def _append_waiting(self) -> None:
        try:
            while self._waiting:
                self._append_one(self._waiting[0])
                del self._waiting[0]
        except OSError as error:
            count = len(self._waiting)
            records = "a record is" if count == 1 else f"{count} records are"
            self.problem = f"{records} not in {self.path.name}: {error.strerror or error}"
            raise
        if not self._lost:
            self.problem = ""

    def _append_one(self, line: bytes) -> None:
        """Append a whole line, or, where the disk is full, nothing of it."""
        descriptor = self._file.fileno()
        status = os.fstat(descriptor)
        if not status.st_nlink and not self.path.exists():
            raise FileNotFoundError(errno.ENOENT, "the file was removed", str(self.path))
        try:
            rest = memoryview(b"\n" + line if self._torn else line)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        except BaseException:
            self._torn = True
            with suppress(OSError):
                os.ftruncate(descriptor, status.st_size)
                self._torn = False
            raise
        self._torn = False

    def close(self) -> None:
        """Close the file. What could not be written yet is tried once more, and else the log says so."""
        if self._file.closed:
            return
        try:
            self._append_waiting()
        except OSError:
            logging.getLogger("toolcrib").error("transcript: %s", self.problem)
        finally:
            self._file.close()


def recorder(message: Message, transcript: TranscriptFile | None) -> Record:
    """Puts results in their places in a message and in the transcript file.

    It has no reference to the run: a tool can reach it through its context, and from a run it could reach the model's
    key.
    """
    places = message.parts

    def record(key: CallKey, result: ToolResult) -> None:
        part = places[key.index]
        assert isinstance(part, ResultPart)
        part.record(result)
        if transcript is not None:
            transcript.result(key, result)

    return record


def is_cut(line: bytes) -> bool:
    """Whether a last line that cannot be read may be the beginning of a record."""
    return line[:1] in (b"{", b"\0")


def _end_of_records(path: Path) -> int:
    """Where the next record is to be written: after the last line, but in place of a line that was cut off.

    Raises ValueError for a file that holds something else.
    """
    data = path.read_bytes() if path.exists() else b""
    if not data.strip():
        return 0
    *lines, last = data.split(b"\n")
    whole = len(data) - len(last) if is_cut(last) and not _is_record(last) else len(data)
    foreign = whole == len(data) or any(line.strip() for line in lines)
    if foreign and not any(map(_is_record, [*lines, last])):
        raise ValueError(f"{path} is not a transcript; name another file, so that it is not written over")
    return whole


def _is_record(line: bytes) -> bool:
    if not line.startswith(b"{"):
        return False
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and not record.keys().isdisjoint(RECORDS)


def _last_byte(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1)
