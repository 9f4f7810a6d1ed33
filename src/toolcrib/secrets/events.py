"""Masks secrets in events, so that no listener gets one, not even in pieces.

Texts that arrive in pieces (text, thinking, streamed arguments) are held back where they may be the beginning of a
secret, and given when they are not. Reports of a tool are not held back, because each is shown by itself: the end of a
report is left out if it may be the beginning of a secret, and the rest of such a secret is masked in the next report.
"""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from toolcrib.events import (
    AnswerRestarted,
    ArgumentsDelta,
    CallEvent,
    CallFinished,
    Event,
    ModelSilent,
    QuestionAsked,
    ReasoningDelta,
    RunFinished,
    TextDelta,
)
from toolcrib.secrets.stream import RedactedStream, SuccessiveTexts

if TYPE_CHECKING:
    from toolcrib.secrets.masking import Masking

__all__ = ["MaskedEvents"]

NEVER_SECRET = frozenset(
    {"run", "parent", "kind", "code", "verdict", "reason"}
)  # fields that hold our own words
IN_PIECES: dict[type[Event], str] = {TextDelta: "text", ReasoningDelta: "text", ArgumentsDelta: "delta"}


class MaskedEvents:
    """Masks the events of one toolbox. Called with an event, it returns the events to hand on instead, in order."""

    def __init__(self, masking: Masking) -> None:
        self._masking = masking
        self._open: dict[tuple[Any, ...], tuple[RedactedStream, Event]] = {}
        self._shown: dict[tuple[Any, str], SuccessiveTexts] = {}

    def __call__(self, run: str, event: Event) -> list[Event]:
        if isinstance(event, AnswerRestarted):  # the answer so far is void
            for place in [place for place in self._open if place[0] == run]:
                del self._open[place]
        if isinstance(event, ModelSilent):  # comes in the middle of a text, which goes on
            return [event]
        name = IN_PIECES.get(type(event))
        if name is not None and isinstance(getattr(event, name), str):
            return self._in_pieces(run, event, name)
        if isinstance(event, RunFinished):
            self._shown = {place: kept for place, kept in self._shown.items() if place[0].run != run}
        ended = self._ended(run, event)
        if isinstance(event, QuestionAsked):  # the question was masked when it was made
            return [*ended, event]
        return [*ended, self._report(event) if isinstance(event, CallEvent) else self._masked(event)]

    def _in_pieces(self, run: str, event: Any, name: str) -> list[Event]:
        if isinstance(event, ArgumentsDelta):
            place: tuple[Any, ...] = (run, event.key, event.path)
            before = self._flushed(
                [open_ for open_ in self._open if open_[:2] == place[:2] and open_ != place]
            )
            before += self._flushed([open_ for open_ in self._open if open_[0] == run and len(open_) == 2])
        else:
            place = (run, event.kind)
            before = self._flushed([open_ for open_ in self._open if open_[0] == run and open_ != place])
        stream = self._open[place][0] if place in self._open else self._masking.redactor.stream()
        made = self._masked(event) if isinstance(event, ArgumentsDelta) else copy.copy(event)
        setattr(made, name, stream.feed(getattr(event, name)))
        if isinstance(event, ArgumentsDelta) and event.finished:
            setattr(made, name, getattr(made, name) + stream.finish())
            self._open.pop(place, None)
        else:
            self._open[place] = stream, made
        return [*before, made] if getattr(made, name) else before

    def _ended(self, run: str, event: Event) -> list[Event]:
        """The events for text that was held back and ends before this event."""
        key = getattr(event, "key", None)
        if key is None and not isinstance(event, ArgumentsDelta):
            return self._flushed([place for place in self._open if place[0] == run])
        return self._flushed(
            [place for place in self._open if place[0] == run and (len(place) == 2 or place[1] == key)]
        )

    def _flushed(self, places: list[tuple[Any, ...]]) -> list[Event]:
        made: list[Event] = []
        for place in places:
            stream, last = self._open.pop(place)
            if rest := stream.finish():
                event: Any = copy.copy(last)
                setattr(event, IN_PIECES[type(last)], rest)
                made.append(event)
        return made

    def _report(self, event: CallEvent) -> CallEvent:
        made: CallEvent = self._masked(event, but=("tip", "result"))
        for name in ("tip", "result"):
            value = getattr(event, name)
            if isinstance(value, str):
                place = event.key, name
                if place not in self._shown:
                    self._shown[place] = SuccessiveTexts()
                setattr(made, name, self._masking.mask_successive(self._shown[place], value))
            elif value is not None and not isinstance(event, CallFinished):
                setattr(made, name, self._masking.mask_report(value))
        if event.state.terminal:
            for name in ("tip", "result"):
                self._shown.pop((event.key, name), None)
        return made

    def _masked(self, event: Any, but: tuple[str, ...] = ()) -> Any:
        """A copy with every text and all data masked."""
        made = copy.copy(event)
        for item in fields(event):
            value = getattr(event, item.name, None)
            if type(value) in (str, dict, list) and item.name not in NEVER_SECRET and item.name not in but:
                setattr(made, item.name, self._masking.mask(value))
        if isinstance(event, ArgumentsDelta):
            made.path = tuple(self._masking.mask(event.path))
        return made
