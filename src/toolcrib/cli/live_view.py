"""A run on a terminal, drawn from its events: text as it streams, and a card for each call.

On a terminal that can move its cursor, the cards of running calls are redrawn at the bottom, and finished calls
scroll away above them. Elsewhere (a pipe, a file, a dumb terminal) a call is written once, when it has finished.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from toolcrib.call import CallKey, CallState
from toolcrib.cli.call_card import Card
from toolcrib.cli.question_text import MARGIN, question_lines
from toolcrib.cli.wrapped_text import WrappedText
from toolcrib.errors import ErrorCode
from toolcrib.events import (
    AnswerRestarted,
    ArgumentsDelta,
    CallEvent,
    CallFinished,
    CallReviewed,
    Event,
    ModelAsked,
    ModelFellBack,
    ModelRetried,
    ModelSilent,
    Notice,
    ProcessEnded,
    ProcessPrinted,
    ProcessStarted,
    QuestionAnswered,
    QuestionAsked,
    ReasoningDelta,
    RunFinished,
    ServerChanged,
    StatusChanged,
    TextDelta,
    ToolStatus,
    TurnFinished,
    TurnStarted,
)
from toolcrib.visible import counted, escape_invisible, on_one_line

HIDDEN = {"attempt_completion"}  # its text is the run's answer, which is shown without a card
SHOWN_AFTER = 1.0  # seconds: a model that answers sooner is not shown as one that is waited for
FRAMES = 8  # a second
# The codes of calls that were refused before they ran, which are counted apart from calls that failed.
NOT_RUN = {
    ErrorCode.UNKNOWN_TOOL, ErrorCode.TOOL_CHANGED, ErrorCode.PRECHECK, ErrorCode.DENIED, ErrorCode.REJECTED,
    ErrorCode.NOBODY_TO_ASK, ErrorCode.RATE_LIMITED,
}  # fmt: skip


class LiveView:
    """Shows events on a console. With `asks`, questions are asked elsewhere, and not shown here."""

    def __init__(self, console: Console, *, asks: bool = False) -> None:
        self.console = console
        self.asks = asks
        self.live_cards = console.is_terminal and not console.is_dumb_terminal
        self.cards: dict[CallKey, Card] = {}
        self.exited = 0  # calls that succeeded, but whose command had another exit code than 0
        self.calls = self.failed = self.repaired = self.refused = 0
        self._callers: dict[str, str] = {}  # by the key of a call: the agent, or else the tool, that it asks
        self._live: Live | None = None
        self._asked_at: tuple[str, float] | None = None  # the model that is waited for, and since when
        self._words = WrappedText(console)

    def take(self, event: Event) -> None:
        """Show one event."""
        if self._asked_at is not None and isinstance(event, ANSWERS):
            self._asked_at = None
            if not self.cards:
                self.pause()
        handle = _HANDLERS.get(type(event))
        if handle is not None:
            handle(self, event)

    def pause(self) -> None:
        """Remove the cards of running calls from the screen, so that something else can be written."""
        self._words.end()
        if self._live is not None:
            self._live.stop()
            self._live = None

    def resume(self) -> None:
        """Draw the cards of running calls again."""
        if self.live_cards and (self.cards or self._asked_at) and self._live is None:
            self._words.end()
            live = self._live = Live(
                Cards(self.cards, self._waiting),
                console=self.console,
                transient=True,
                refresh_per_second=FRAMES,
            )
            live.start()

    def line(self, text: str = "", style: str = "") -> None:
        """Write a line."""
        self._print(Text(text, style))

    def _print(self, text: Text) -> None:
        self._words.end()
        if self.console.is_terminal and text.plain.startswith(MARGIN) and not text.no_wrap:
            body = Text(text.plain.removeprefix(MARGIN), text.style)
            for row in body.wrap(self.console, max(self.console.width - len(MARGIN), 10)):
                self.console.print(Text(MARGIN, text.style).append_text(row))
        elif self.console.is_terminal:
            self.console.print(text, no_wrap=text.no_wrap, overflow=text.overflow)
        else:
            self.console.print(text, soft_wrap=True)

    # -- one method an event

    def _text(self, event: TextDelta) -> None:
        self._stream(event.text, "")

    def _reasoning(self, event: ReasoningDelta) -> None:
        self._stream(event.text, "dim italic")

    def _restarted(self, event: AnswerRestarted) -> None:
        self.pause()
        self.cards.clear()
        self.line(f"{MARGIN}the answer broke off and begins again: {on_one_line(event.why)}", "yellow")

    def _model_asked(self, event: ModelAsked) -> None:
        self._asked_at = event.model, time.monotonic()
        self.resume()

    def _retried(self, event: ModelRetried) -> None:
        attempt = f"attempt {event.attempt} of {event.attempts}"
        self._wait_told(f"{event.problem}; trying again in {event.delay:.2g} s ({attempt})", event.model)

    def _fell_back(self, event: ModelFellBack) -> None:
        self._wait_told(f"{event.problem}; asking {event.model}", event.model)

    def _silent(self, event: ModelSilent) -> None:
        self._words.end()
        self.line(f"{MARGIN}no answer from {on_one_line(event.model)} for {event.seconds:g} s", "yellow")

    def _wait_told(self, text: str, model: str) -> None:
        self.line(f"{MARGIN}{on_one_line(text)}", "yellow")
        self._asked_at = model, time.monotonic()
        self.resume()

    def _waiting(self) -> str:
        """The line that says which model is waited for; "" while none is, or not long enough to be worth a line."""
        model, since = self._asked_at or ("", 0.0)
        seconds = time.monotonic() - since
        return (
            f"{MARGIN}waiting for {on_one_line(model)}: {seconds:.0f} s"
            if model and seconds >= SHOWN_AFTER
            else ""
        )

    def _stream(self, text: str, style: str) -> None:
        if self._live is not None:
            self.pause()
        self._words.write(escape_invisible(text), style)

    def _arguments(self, event: ArgumentsDelta) -> None:
        card = self.cards.get(event.key)
        if card is not None:
            card.grow(event)

    def _status(self, event: StatusChanged) -> None:
        if event.tool in HIDDEN:
            return
        card = self._card(event)
        if event.state is CallState.DOING and card.status.state is CallState.WAIT:
            card.since = time.monotonic()  # the tool's time begins after the person's answer
        card.status.apply(event)
        agent = card.status.params.get("agent")
        self._callers[str(event.key)] = agent if isinstance(agent, str) and agent else event.tool
        self.resume()

    def _finished(self, event: CallFinished) -> None:
        if event.tool in HIDDEN and event.state is CallState.SUCCESS:
            return
        self.calls += 1
        did_not_run = event.code in NOT_RUN
        self.refused += did_not_run
        self.failed += event.state is CallState.ERROR and not did_not_run
        self.repaired += bool(event.repairs)
        card = self._card(event)
        card.status.apply(event)
        card.finished = event
        self.exited += bool(card.exit_code) and event.state is CallState.SUCCESS
        del self.cards[event.key]
        self._callers.pop(str(event.key), None)
        if not self.cards:
            self.pause()
        for line in card.final_lines():
            self._print(line)

    def _card(self, event: CallEvent) -> Card:
        card = self.cards.get(event.key)
        if card is None:
            within = self._caller_of(event.key.run)
            card = self.cards[event.key] = Card(ToolStatus(event.key, event.tool), within)
        return card

    def _caller_of(self, run: str) -> str:
        """The agent or tool whose calls a run within a call holds; "" for a run of its own."""
        while (
            run and run not in self._callers
        ):  # its name is the key of the call, followed by places within it
            run = run.rpartition("/")[0]
        return self._callers.get(run, "")

    def _asked(self, event: QuestionAsked) -> None:
        self.pause()
        if not self.asks:
            for style, line in question_lines(event.question)[0]:
                self._print(Text(line, style))

    def _reviewed(self, event: CallReviewed) -> None:
        did = "allowed it" if event.allowed else "did not allow it"
        why = f": {on_one_line(event.reason)}" if event.reason else ""
        self._print(Text(f"the reviewer looked at {on_one_line(event.tool)} and {did}{why}", "cyan"))

    def _answered(self, event: QuestionAnswered) -> None:
        if not self.asks:
            verdict = event.verdict or "nobody to ask, so it is refused"
            by = f" (by {event.by})" if event.by else ""
            self._print(Text(f"  → {verdict}{by}", "yellow"))
        self.resume()

    def _notice(self, event: Notice) -> None:
        self._print(Text(f"note: {on_one_line(event.message)}", "yellow"))

    def _process_started(self, event: ProcessStarted) -> None:
        what = on_one_line(event.description or event.command)
        self._print(Text(f"in the background: {event.process_id} ({what})", "cyan"))

    def _process_printed(self, event: ProcessPrinted) -> None:
        if event.text.strip():
            last = event.text.rstrip().rpartition("\n")[2]
            self._print(Text(f"{event.process_id}: {on_one_line(last)}", "bright_black"))

    def _process_ended(self, event: ProcessEnded) -> None:
        how = f"exit code {event.exit_code}" if event.exit_code is not None else f"signal {event.signal}"
        if event.problem or event.stopped or (event.exit_code is None and event.signal is None):
            how = event.problem or "stopped"
        self._print(Text(f"in the background: {event.process_id} ended: {how}", "cyan"))

    def _server_changed(self, event: ServerChanged) -> None:
        name = on_one_line(event.server)
        if event.state == "failed":
            self._print(Text(f"MCP server {name} failed: {on_one_line(event.problem)}", "yellow"))
        elif event.state == "started":
            self._print(Text(f"MCP server {name} is ready, with {counted(event.tools or 0, 'tool')}", "cyan"))

    def _turn_started(self, event: TurnStarted) -> None:
        if event.turn > 1:
            self.pause()
            self.console.print()

    def _turn_finished(self, event: TurnFinished) -> None:
        self._words.end()

    def _run_finished(self, event: RunFinished) -> None:
        self.pause()
        if event.reason == "completed" and event.text:
            self._words.write(escape_invisible(event.text), "")
        self._words.end()


class Cards:
    """The model that is waited for and the cards of running calls, cut to the height of the screen."""

    def __init__(self, cards: dict[CallKey, Card], waiting: Callable[[], str]) -> None:
        self._cards = cards
        self._waiting = waiting

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(console.height - 2, 3)
        if waiting := self._waiting():
            yield Text(waiting, "dim", no_wrap=True, overflow="ellipsis")
            room -= 1
        for card in list(self._cards.values()):
            lines = card.live_lines(options.max_width)[:room]
            room -= len(lines)
            yield from lines


# What ends the wait for a model.
ANSWERS = (TextDelta, ReasoningDelta, ArgumentsDelta, CallEvent, TurnFinished, RunFinished)
_HANDLERS: dict[type[Event], Callable[[LiveView, Any], None]] = {
    ModelAsked: LiveView._model_asked,
    ModelRetried: LiveView._retried,
    ModelFellBack: LiveView._fell_back,
    ModelSilent: LiveView._silent,
    TextDelta: LiveView._text,
    AnswerRestarted: LiveView._restarted,
    ReasoningDelta: LiveView._reasoning,
    ArgumentsDelta: LiveView._arguments,
    StatusChanged: LiveView._status,
    CallFinished: LiveView._finished,
    CallReviewed: LiveView._reviewed,
    QuestionAsked: LiveView._asked,
    QuestionAnswered: LiveView._answered,
    Notice: LiveView._notice,
    ProcessStarted: LiveView._process_started,
    ProcessEnded: LiveView._process_ended,
    ProcessPrinted: LiveView._process_printed,
    ServerChanged: LiveView._server_changed,
    TurnStarted: LiveView._turn_started,
    TurnFinished: LiveView._turn_finished,
    RunFinished: LiveView._run_finished,
}
