"""Searches texts for a regular expression with a deadline: the matching runs in a child process.

Python's `re` cannot be interrupted, and some patterns never finish. ripgrep has no such patterns, but its syntax
differs, and a search should find the same on every machine: so it only tells where to look (`ripgrep.py`).
"""

from __future__ import annotations

import io
import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toolcrib.command.sandbox.files.own_files import python
from toolcrib.dataclass import dataclass
from toolcrib.errors import ToolError

WORKER = Path(__file__).with_name("regex_worker.py")
TICK = 0.1  # seconds between looks at whether the call was cancelled
ENVIRONMENT = ("SYSTEMROOT",)  # without it Python does not start on Windows


class BadPattern(Exception):
    """The worker could not compile the pattern; the text says why."""


class TooSlow(Exception):
    """The deadline passed while the worker was matching."""


@dataclass(frozen=True, slots=True)
class LineMatch:
    """The matching lines of one text: their number, and the lines to show as (number, text, whether it matched)."""

    count: int
    lines: list[tuple[int, str, bool]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a worker looks for.

    `filter` is an expression that each matching line has a match of; empty where there is none. Of the matching lines
    of all texts, `skip` are passed over and `room` shown, with the lines `before` and `after` each, at most `width`
    characters of a line. With `most`, that many are counted in each text.
    """

    pattern: str
    filter: str = ""
    ignore_case: bool = False
    multiline: bool = False
    before: int = 0
    after: int = 0
    skip: int = 0
    room: int = 1
    width: int = 1
    most: int | None = None


class RegexSearcher:
    """A worker process for one search; use it in a `with` block. The process starts with the first texts."""

    def __init__(self, wanted: Wanted, deadline: float, check: Callable[[], None]) -> None:
        self._wanted = wanted
        self._deadline = deadline
        self._check = check
        self._waiting = b""
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._child: subprocess.Popen[bytes] | None = None
        self._writer: threading.Thread | None = None
        self._reader: threading.Thread | None = None

    def _start(self) -> None:
        if not python():
            raise ToolError("Searching needs a Python interpreter, and this program has none to run.")
        self._child = subprocess.Popen(
            [python(), "-I", "-S", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
            start_new_session=True,
        )
        self._waiting = json.dumps(asdict(self._wanted)).encode() + b"\n"
        reader = threading.Thread(target=self._read, name="toolcrib search", daemon=True)
        reader.start()
        self._reader = reader

    def __enter__(self) -> RegexSearcher:
        return self

    def __exit__(self, *_: object) -> None:
        child = self._child
        if child is None:
            return
        child.kill()
        child.wait()
        if self._reader is not None:
            self._reader.join()
        if self._writer is not None:
            self._writer.join()
        if child.stdin is not None:
            child.stdin.close()

    def search(self, texts: list[bytes]) -> list[LineMatch]:
        """The matches in each of the UTF-8 texts; raises TooSlow when the deadline passes."""
        self.send(texts)
        return self.receive()

    def send(self, texts: list[bytes]) -> None:
        """Lets the worker begin with the texts. What it finds must be received before more is sent.

        Two threads wait on the two pipes, so that the deadline holds whatever the child does, on every system.
        """
        if self._child is None:
            self._start()
        data = b"".join([self._waiting, json.dumps([len(text) for text in texts]).encode(), b"\n", *texts])
        self._waiting = b""
        writer = threading.Thread(target=self._write, args=(data,), name="toolcrib search", daemon=True)
        writer.start()
        self._writer = writer

    def receive(self) -> list[LineMatch]:
        """The matches in each of the texts that were sent; raises TooSlow when the deadline passes."""
        answer: list[tuple[int, list[list[Any]]]] | str = json.loads(self._answer())
        if isinstance(answer, str):
            raise BadPattern(answer)
        return [LineMatch(count, [(line[0], line[1], line[2]) for line in lines]) for count, lines in answer]

    def _answer(self) -> bytes:
        while True:
            self._check()
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TooSlow
            try:
                line = self._lines.get(timeout=min(TICK, left))
            except queue.Empty:
                continue
            if not line.endswith(b"\n"):
                raise ToolError("The search ended unexpectedly. Simplify the pattern.")
            return line

    def _write(self, data: bytes) -> None:
        assert self._child is not None and self._child.stdin is not None
        view = memoryview(data)
        try:
            while view:
                view = view[self._child.stdin.write(view) or 0 :]
        except (OSError, ValueError):  # the child has ended, or was killed at the deadline
            pass

    def _read(self) -> None:
        assert self._child is not None and self._child.stdout is not None
        stdout = self._child.stdout
        with io.BufferedReader(stdout) as lines:  # type: ignore[type-var] # unbuffered, as it was opened
            for line in lines:
                self._lines.put(line)
        self._lines.put(b"")
