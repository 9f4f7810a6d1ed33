"""A run on a terminal: its events in a live view, and its questions to the person."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, TextIO

from toolcrib.cli.console import asking_stream
from toolcrib.cli.group_prompt import ask_together
from toolcrib.cli.live_view import LiveView
from toolcrib.cli.prompt import console_on
from toolcrib.cli.run_display import EndedRun
from toolcrib.cli.run_summary import summary_lines
from toolcrib.events import Event
from toolcrib.question import Answer, Question


class Asker:
    """The approver of a display: a question waits until the display has shown all earlier events."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[Answer | None]] = {}
        self._together: dict[int, tuple[Question, ...]] = {}

    async def __call__(self, question: Question) -> Answer | None:
        return (await self.ask_all((question,)))[0]

    async def ask_all(self, questions: tuple[Question, ...]) -> list[Answer | None]:
        """The answers to questions that the display asks together."""
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Answer | None]] = [loop.create_future() for _ in questions]
        for question, future in zip(questions, futures, strict=True):
            self._waiting[id(question)], self._together[id(question)] = future, questions
        try:
            return await asyncio.gather(*futures)
        finally:
            for question in questions:
                del self._waiting[id(question)], self._together[id(question)]

    def together(self, question: Question) -> tuple[Question, ...]:
        """The questions that are asked together with one, in their order."""
        return self._together.get(id(question), (question,))

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
        if self.asker is None or self.asker.waiting(question) is None:
            return
        together = self.asker.together(question)
        waiting = [(one, future) for one in together if (future := self.asker.waiting(one)) is not None]
        console = self.view.console if self.view.console.is_terminal else console_on(asking_stream())
        asked = [one for one, _ in waiting]
        reading = asyncio.create_task(ask_together(console, asked))
        watched: list[asyncio.Future[Any]] = [future for _, future in waiting]
        # The run may be cancelled while the person thinks.
        await asyncio.wait((reading, *watched), return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            for (_, future), answer in zip(waiting, reading.result(), strict=True):
                if not future.done():
                    future.set_result(answer)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        if any(future.cancelled() for _, future in waiting):
            console.print()

    def finish(self, ended: EndedRun) -> None:
        self.view.line()
        for style, line in summary_lines(ended, self.view):
            self.view.line(line, style)
        if self.transcript is not None:
            self.view.line(f"transcript: {self.transcript}", "dim")
