"""One run in front of a person or a program: its events are shown, its questions asked, and signals end it cleanly."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import time
from typing import Protocol, TextIO

from toolcrib.agent import Outcome, Run
from toolcrib.cli.console import READER_GONE
from toolcrib.cli.signals import STOPPING, at_signals
from toolcrib.dataclass import dataclass, field
from toolcrib.events import Event, QuestionAsked, event_to_dict
from toolcrib.question import Question


@dataclass(slots=True)
class EndedRun:
    """A run that is over: its outcome, how long it took, and the signals that came."""

    outcome: Outcome
    seconds: float
    signals: list[int] = field(default_factory=list)
    reader_gone: bool = False  # the process that read our output has gone

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        if self.signals:
            return 128 + self.signals[0]
        if self.reader_gone:
            return READER_GONE
        return 0 if self.outcome.finished else 1


class Display(Protocol):
    """Where a run is shown."""

    @property
    def stream(self) -> TextIO:
        """What the run is written to."""
        ...

    def take(self, event: Event) -> None:
        """Show an event."""
        ...

    async def ask(self, question: Question) -> None:
        """Let the person answer a question, if this display asks them."""
        ...

    def finish(self, ended: EndedRun) -> None:
        """Show how the run ended."""
        ...


class JsonLines:
    """A display for programs: every event is a JSON object on a line."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def take(self, event: Event) -> None:
        self.stream.write(json.dumps(event_to_dict(event), ensure_ascii=True, default=str) + "\n")
        self.stream.flush()

    async def ask(self, question: Question) -> None:
        return None

    def finish(self, ended: EndedRun) -> None:
        return None


async def show_run(run: Run, display: Display) -> EndedRun:
    """Show a run to its end. Ctrl-C, SIGTERM and SIGHUP cancel it; a second signal ends the program at once."""
    loop = asyncio.get_running_loop()
    started = time.monotonic()
    signals: list[int] = []
    reader_gone = False

    def stop(number: int) -> None:
        signals.append(number)
        if len(signals) > 1:
            os._exit(128 + number)
        run.cancel()

    def reader_left() -> None:
        nonlocal reader_gone
        reader_gone = True
        if watched is not None:
            loop.remove_reader(watched)
        os.dup2(os.open(os.devnull, os.O_WRONLY), display.stream.fileno())
        run.cancel()

    watched = _pipe_of(display.stream)
    if watched is not None:  # a pipe becomes readable for its writer when the reader has gone
        loop.add_reader(watched, reader_left)
    try:
        with at_signals(STOPPING, stop):
            async for event in run:
                if reader_gone:
                    continue
                try:
                    display.take(event)
                    if isinstance(event, QuestionAsked):
                        await display.ask(event.question)
                except BrokenPipeError:
                    if not reader_gone:
                        reader_left()
            outcome = await run
    finally:
        if watched is not None:
            loop.remove_reader(watched)
    return EndedRun(outcome, time.monotonic() - started, signals, reader_gone)


def _pipe_of(stream: TextIO) -> int | None:
    """The descriptor of a stream if it is a pipe that can be watched, as on every system but Windows."""
    if sys.platform == "win32":
        return None
    try:
        descriptor = stream.fileno()
        return descriptor if stat.S_ISFIFO(os.fstat(descriptor).st_mode) else None
    except (OSError, ValueError):  # a stream in memory has none
        return None
