"""One run in front of a person or a program: its events are shown, its questions asked, its end is clean."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from toolcrib.agent import Outcome, Reason
from toolcrib.events import Event, QuestionAsked, event_to_dict
from toolcrib.question import Answer, Question

if TYPE_CHECKING:
    from toolcrib.agent import Run
    from toolcrib.cli.view import View

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
REASONS = {
    Reason.ANSWERED: "Finished.",
    Reason.COMPLETED: "Finished.",
    Reason.TURN_LIMIT: "Not finished",
    Reason.BUDGET: "Not finished",
    Reason.PAUSED: "Paused",
    Reason.CANCELLED: "Cancelled",
    Reason.MODEL_ERROR: "The model failed",
    Reason.FAILED: "Failed",
    Reason.REFUSED: "The model did not answer",
}


class Face(Protocol):
    """Where the events of a run are shown."""

    @property
    def stream(self) -> TextIO: ...
    def take(self, event: Event) -> None: ...
    async def ask(self, question: Question) -> None: ...


class Asker:
    """The approver of a face: the question waits until the face has shown all that came before it."""

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
        """The answer that is waited for; None once nobody waits for it any more."""
        future = self._waiting.get(id(question))
        return None if future is None or future.done() else future


class Terminal:
    """A run on a terminal; without an asker, questions are shown and answered elsewhere."""

    def __init__(self, view: View, asker: Asker | None = None) -> None:
        self.view = view
        self.asker = asker

    @property
    def stream(self) -> TextIO:
        return self.view.console.file  # type: ignore[return-value]

    def take(self, event: Event) -> None:
        self.view.take(event)

    async def ask(self, question: Question) -> None:
        from toolcrib.cli.ask import ask_on, asking_stream

        future = self.asker.waiting(question) if self.asker is not None else None
        if future is None:
            return
        console = self.view.console if self.view.console.is_terminal else console_for(asking_stream())
        reading = asyncio.create_task(ask_on(console, question))
        # The run may be cancelled while the person thinks.
        await asyncio.wait((reading, future), return_when=asyncio.FIRST_COMPLETED)
        if reading.done() and not future.done():
            future.set_result(reading.result())
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        if future.cancelled():
            console.print()


class JsonLines:
    """Every event as a JSON object on a line."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def take(self, event: Event) -> None:
        self.stream.write(json.dumps(event_to_dict(event), ensure_ascii=True, default=str) + "\n")
        self.stream.flush()

    async def ask(self, question: Question) -> None:
        return None


@dataclass(slots=True)
class Shown:
    """A run that is over: its outcome, how long it took, and the signal that ended it, if one did."""

    outcome: Outcome
    seconds: float
    signals: list[int] = field(default_factory=list)
    unheard: bool = False  # whoever read our output has gone

    @property
    def exit_code(self) -> int:
        if self.signals:
            return 128 + self.signals[0]
        if self.unheard:
            return 128 + signal.SIGPIPE
        return 0 if self.outcome.finished else 1


async def show_run(run: Run, face: Face) -> Shown:
    """Show a run to its end. Ctrl-C, SIGTERM and SIGHUP cancel it; a second one ends the program."""
    loop = asyncio.get_running_loop()
    started = time.monotonic()
    signals: list[int] = []
    unheard = False

    def stop(number: int) -> None:
        signals.append(number)
        if len(signals) > 1:
            os._exit(128 + number)
        run.cancel()

    def left() -> None:
        nonlocal unheard
        unheard = True
        if watched is not None:
            loop.remove_reader(watched)
        os.dup2(os.open(os.devnull, os.O_WRONLY), face.stream.fileno())
        run.cancel()

    for number in STOPPING:
        loop.add_signal_handler(number, stop, number)
    watched = _pipe_of(face.stream)
    if watched is not None:  # a pipe that we write to becomes readable when its reader has gone
        loop.add_reader(watched, left)
    try:
        async for event in run:
            if unheard:
                continue
            try:
                face.take(event)
                if isinstance(event, QuestionAsked):
                    await face.ask(event.question)
            except BrokenPipeError:
                if not unheard:
                    left()
        outcome = await run
    finally:
        if watched is not None:
            loop.remove_reader(watched)
        for number in STOPPING:
            loop.remove_signal_handler(number)
    return Shown(outcome, time.monotonic() - started, signals, unheard)


def _pipe_of(stream: TextIO) -> int | None:
    """The descriptor of a stream that is a pipe."""
    try:
        descriptor = stream.fileno()
        return descriptor if stat.S_ISFIFO(os.fstat(descriptor).st_mode) else None
    except (OSError, ValueError):  # a stream in memory has none
        return None


def summary_lines(done: Shown, view: View) -> list[tuple[str, str]]:
    """How a run ended, in (style, line) pairs."""
    from toolcrib.cli.shown import on_one_line

    outcome = done.outcome
    style = "bold green" if outcome.finished else "bold yellow"
    head = REASONS[outcome.reason]
    if view.refused and outcome.finished:
        style = "bold yellow"
        head = f"{head.rstrip('.')}, but {view.refused} of {_counted(view.calls, 'call')} did not run."
    if outcome.detail and not outcome.finished:
        head += f": {on_one_line(outcome.detail)}"
    return [(style, head), ("dim", " · ".join(_figures(done, view)))]


def _figures(done: Shown, view: View) -> list[str]:
    usage = done.outcome.usage
    asides = [
        f"{number} {word}"
        for number, word in ((view.refused, "not run"), (view.failed, "failed"), (view.repaired, "repaired"))
        if number
    ]
    asides += [f"{_counted(view.exited, 'command')} failed"] if view.exited else []
    calls = _counted(view.calls, "call") + (f" ({', '.join(asides)})" if asides else "")
    tokens = "tokens unknown"
    if usage.total_tokens:
        tokens = f"{usage.total_tokens:,} tokens ({usage.input_tokens:,} in, {usage.output_tokens:,} out)"
    cost = "cost unknown" if usage.cost is None else f"${usage.cost:.4f}"
    return [_counted(done.outcome.turns, "turn"), calls, f"{done.seconds:.1f} s", tokens, cost]


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number:,} {word}s"


def console_for(stream: Any) -> Any:
    """A console on a stream, which says itself whether it is a terminal."""
    from rich.console import Console

    return Console(file=stream, highlight=False, markup=False, emoji=False)
