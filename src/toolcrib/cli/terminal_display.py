"""A run on a terminal: its events in a live view, and its questions to the person."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TextIO

from toolcrib.cli.console import asking_stream
from toolcrib.cli.live_view import LiveView
from toolcrib.cli.prompt import ask_on, console_on
from toolcrib.cli.run_display import EndedRun
from toolcrib.cli.run_summary import summary_lines
from toolcrib.events import Event
from toolcrib.question import Answer, Question


class Asker:
    """The approver of a display: a question waits until the display has shown all earlier events."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[Answer | None]] = {}

    async def __call__(self, question: Question) -> Answer | None:
        future: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self._waiting[id(question)] = future
        try:
            return await future
        finally:
            del self._waiting[id(question)]

    def waiting(self, question: Question) -> asyncio.Future[Answer | None] | None:
        """The future that a question's answer is put into; None if nobody waits for the answer any more."""
        future = self._waiting.get(id(question))
        return None if future is None or future.done() else future


class TerminalDisplay:
    """A display for a person; without an asker, questions are only shown. `transcript` is named at the end."""

    def __init__(self, stream: TextIO, asker: Asker | None = None, *, transcript: Path | None = None) -> None:
        self.stream = stream
        self.view = LiveView(console_on(stream), asks=asker is not None)
        self.asker = asker
        self.transcript = transcript

    def take(self, event: Event) -> None:
        self.view.take(event)

    async def ask(self, question: Question) -> None:
        future = self.asker.waiting(question) if self.asker is not None else None
        if future is None:
            return
        console = self.view.console if self.view.console.is_terminal else console_on(asking_stream())
        reading = asyncio.create_task(ask_on(console, question))
        # The run may be cancelled while the person thinks.
        await asyncio.wait((reading, future), return_when=asyncio.FIRST_COMPLETED)
        if reading.done() and not future.done():
            future.set_result(reading.result())
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        if future.cancelled():
            console.print()

    def finish(self, ended: EndedRun) -> None:
        self.view.line()
        for style, line in summary_lines(ended, self.view):
            self.view.line(line, style)
        if self.transcript is not None:
            self.view.line(f"transcript: {self.transcript}", "dim")
