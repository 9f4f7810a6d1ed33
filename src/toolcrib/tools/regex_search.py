"""Searches texts for a regular expression with a deadline: the matching runs in a child process.

Python's `re` cannot be interrupted, and some patterns never finish. ripgrep has no such patterns, but it opens
paths itself, outside the workspace's confinement, and its syntax differs; a search should find the same on
every machine.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolcrib.command.sandbox.files.own_files import python
from toolcrib.errors import ToolError

WORKER = Path(__file__).with_name("regex_worker.py")
TICK = 0.1  # seconds between looks at whether the call was cancelled
WRITE_SIZE = 65_536


class BadPattern(Exception):
    """The worker could not compile the pattern; the text says why."""


class TooSlow(Exception):
    """The deadline passed while the worker was matching."""


@dataclass(frozen=True, slots=True)
class LineMatch:
    """The matching lines of one text: their number, and the lines to show as (number, text, whether it matched)."""

    count: int
    lines: list[tuple[int, str, bool]]


class RegexSearcher:
    """A worker process for one search; use it in a `with` block."""

    def __init__(
        self,
        pattern: str,
        *,
        ignore_case: bool,
        context: int,
        room: int,
        count_all: bool,
        width: int,
        deadline: float,
        check: Callable[[], None],
    ) -> None:
        self._deadline = deadline
        self._check = check
        if not python():
            raise ToolError("Searching needs a Python interpreter, and this program has none to run.")
        self._child = subprocess.Popen(
            [python(), "-I", "-S", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={},
            start_new_session=True,
        )
        asked = {
            "pattern": pattern,
            "ignore_case": ignore_case,
            "context": context,
            "room": room,
            "all": count_all,
            "width": width,
        }
        self._waiting = json.dumps(asked).encode() + b"\n"

    def __enter__(self) -> RegexSearcher:
        return self

    def __exit__(self, *_: object) -> None:
        child = self._child
        child.kill()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
        child.wait()

    def search(self, texts: list[bytes]) -> list[LineMatch]:
        """The matches in each of the UTF-8 texts; raises TooSlow when the deadline passes."""
        data = b"".join([self._waiting, json.dumps([len(text) for text in texts]).encode(), b"\n", *texts])
        self._waiting = b""
        answer: list[tuple[int, list[list[Any]]]] | str = json.loads(self._exchange(data))
        if isinstance(answer, str):
            raise BadPattern(answer)
        return [LineMatch(count, [(line[0], line[1], line[2]) for line in lines]) for count, lines in answer]

    def _exchange(self, data: bytes) -> bytes:
        """Writes the request and reads one line of answer, without ever waiting on only one of the two pipes."""
        assert self._child.stdin is not None and self._child.stdout is not None
        to_child, from_child = self._child.stdin.fileno(), self._child.stdout.fileno()
        os.set_blocking(to_child, False)
        view = memoryview(data)
        answer = bytearray()
        while not answer.endswith(b"\n"):
            self._check()
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TooSlow
            readable, writable, _ = select.select(
                [from_child], [to_child] if view else [], [], min(TICK, left)
            )
            if writable:
                try:
                    view = view[os.write(to_child, view[:WRITE_SIZE]) :]
                except BlockingIOError:
                    pass
                except BrokenPipeError:
                    raise ToolError("The search ended unexpectedly. Simplify the pattern.") from None
            if readable:
                piece = os.read(from_child, WRITE_SIZE)
                if not piece:
                    raise ToolError("The search ended unexpectedly. Simplify the pattern.")
                answer += piece
        return bytes(answer)
