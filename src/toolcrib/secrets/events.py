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
    OutputDelta,
    ProcessEnded,
    ProcessPrinted,
    ProcessStarted,
    QuestionAsked,
    ReasoningDelta,
    ServerChanged,
    TextDelta,
)
from toolcrib.secrets.json_strings import replace_strings
from toolcrib.secrets.stream import RedactedStream, SuccessiveTexts

if TYPE_CHECKING:
    from toolcrib.secrets.masking import Masking

__all__ = ["MaskedEvents"]

NEVER_SECRET = frozenset(
    {"run", "parent", "kind", "code", "verdict", "reason"}
)  # fields that hold our own words
IN_PIECES: dict[type[Event], str] = {
    TextDelta: "text", ReasoningDelta: "text", ArgumentsDelta: "delta", OutputDelta: "delta",
}  # fmt: skip
BESIDE = (ModelSilent, ProcessStarted, ProcessEnded, ServerChanged)
OF_JSON = (ArgumentsDelta, OutputDelta)  # pieces that have a path

UNREADABLE = "[Left out: this report is no JSON data, so that it cannot be searched for secrets.]"
MAX_PLACES = (
    1_000  # in the data that running calls report, whose texts are followed from one report to the next
)
OpenReports = dict[tuple[Any, ...], SuccessiveTexts]
"""By call, field and path in the data: the texts that a running call reported there."""
OpenTexts = dict[tuple[Any, ...], tuple[RedactedStream, Event]]
"""By kind of text, or by call and path in its arguments: what was held back, and the last event."""


class MaskedEvents:
    """Masks the events of one toolbox. Called with an event, it returns the events to hand on instead, in order."""

    def __init__(self, masking: Masking) -> None:
        self._masking = masking
        self._runs: dict[str, _Unfinished] = {}

    def forget(self, run: str) -> None:
        """The run is over: drop what was kept of its texts."""
        self._runs.pop(run, None)

    def __call__(self, run: str, event: Event) -> list[Event]:
        if isinstance(event, BESIDE):  # comes in the middle of a text, which goes on
            return [self._masked(event)]
        kept = self._runs.get(run) or _Unfinished()
        if isinstance(event, ProcessPrinted):
            self._runs[run] = kept
            return [self._printed(kept.processes, event)]
        if isinstance(event, AnswerRestarted):  # the answer so far is void
            kept.open.clear()
        name = IN_PIECES.get(type(event))
        if name is not None and isinstance(getattr(event, name), str):
            made = self._in_pieces(kept.open, event, name)
        else:
            made = _ended(kept.open, event)
            if isinstance(event, QuestionAsked):  # the question was masked when it was made
                made.append(event)
            else:
                report = isinstance(event, CallEvent)
                made.append(self._report(kept.shown, event) if report else self._masked(event))
        if kept.open or kept.shown or kept.processes:
            self._runs[run] = kept
        else:
            self._runs.pop(run, None)
        return made

    def _in_pieces(self, open_texts: OpenTexts, event: Any, name: str) -> list[Event]:
        if isinstance(event, OF_JSON):
            place: tuple[Any, ...] = (_owner(event), event.path)
            before = _flushed(open_texts, [one for one in open_texts if one[0] == place[0] and one != place])
            before += _flushed(open_texts, [one for one in open_texts if len(one) == 1])
        else:
            place = (event.kind,)
            before = _flushed(open_texts, [one for one in open_texts if one != place])
        stream = open_texts[place][0] if place in open_texts else self._masking.redactor.stream()
        made = self._masked(event) if isinstance(event, OF_JSON) else copy.copy(event)
        setattr(made, name, stream.feed(getattr(event, name)))
        finished = isinstance(event, OF_JSON) and event.finished
        if finished:
            setattr(made, name, getattr(made, name) + stream.finish())
            open_texts.pop(place, None)
        else:
            open_texts[place] = stream, made
        return [*before, made] if getattr(made, name) or finished else before

    def _report(self, shown: OpenReports, event: Any) -> CallEvent:
        made: CallEvent = self._masked(event, but=("tip", "result", "params"))
        if event.params is not None:
            readable = _is_readable(event.params)
            made.params = self._masking.mask(event.params) if readable else {"…": UNREADABLE}
        for name in ("tip", "result"):
            value = getattr(event, name)
            if isinstance(value, str):
                place = event.key, name
                if place not in shown:
                    shown[place] = SuccessiveTexts()
                setattr(made, name, self._masking.mask_successive(shown[place], value))
            elif value is not None and not isinstance(event, CallFinished):
                place = event.key, name
                readable = _is_readable(value)
                setattr(made, name, self._successive(shown, place, value) if readable else UNREADABLE)
        if event.state.terminal:
            for name in ("tip", "result"):
                for place in [place for place in shown if place[:2] == (event.key, name)]:
                    del shown[place]
        return made

    def _successive(self, shown: OpenReports, place: tuple[Any, ...], value: Any) -> Any:
        """A tool's report without secrets, even if one is spread over several reports, at the same place in each.

        An object in which nothing is masked is returned as it is.
        """
        data = replace_strings(value, str, other=_as_data)
        whole = self._masking.mask_report(data)

        def held(one: Any, place: tuple[Any, ...]) -> Any:
            if isinstance(one, dict):
                return {key: held(item, (*place, key)) for key, item in one.items()}
            if isinstance(one, list):
                return [held(item, (*place, number)) for number, item in enumerate(one)]
            if not isinstance(one, str) or (place not in shown and len(shown) >= MAX_PLACES):
                return one
            return self._masking.mask_successive(shown.setdefault(place, SuccessiveTexts()), one)

        made = held(whole, place)
        return value if made == data else made

    def _printed(self, shown: dict[str, SuccessiveTexts], event: ProcessPrinted) -> ProcessPrinted:
        made: ProcessPrinted = self._masked(event, but=("text",))
        pieces = shown.setdefault(event.process_id, SuccessiveTexts())
        made.text = self._masking.mask_successive(pieces, event.text)
        return made

    def _masked(self, event: Any, but: tuple[str, ...] = ()) -> Any:
        """A copy with every text and all data masked."""
        made = copy.copy(event)
        for item in fields(event):
            value = getattr(event, item.name, None)
            if type(value) in (str, dict, list) and item.name not in NEVER_SECRET and item.name not in but:
                setattr(made, item.name, self._masking.mask(value))
        if isinstance(event, OF_JSON):
            made.path = tuple(self._masking.mask(event.path))
        return made


def _is_readable(value: Any) -> bool:
    """Whether a reported value has JSON data, in which secrets can be searched for. It may hold itself, say."""
    try:
        _as_data(value)
    except Exception:  # an object may raise anything where it is written
        return False
    return True


def _as_data(value: Any) -> Any:
    from pydantic_core import to_jsonable_python

    if isinstance(value, bytes | bytearray):
        return value
    return to_jsonable_python(value, bytes_mode="base64", fallback=str)


class _Unfinished:
    """The texts of a run that go on: those that come in pieces, and those that a call shows one after another."""

    __slots__ = ("open", "processes", "shown")

    def __init__(self) -> None:
        self.open: OpenTexts = {}
        self.shown: OpenReports = {}
        self.processes: dict[str, SuccessiveTexts] = {}


def _ended(open_texts: OpenTexts, event: Event) -> list[Event]:
    """The events for text that was held back and ends before this event."""
    owner = _owner(event)
    if owner is None:
        return _flushed(open_texts, list(open_texts))
    return _flushed(open_texts, [place for place in open_texts if len(place) == 1 or place[0] == owner])


def _owner(event: Event) -> Any:
    """The call that an event is about, or what stands for the typed answer; None for other events."""
    return event.kind if isinstance(event, OutputDelta) else getattr(event, "key", None)


def _flushed(open_texts: OpenTexts, places: list[tuple[Any, ...]]) -> list[Event]:
    made: list[Event] = []
    for place in places:
        stream, last = open_texts.pop(place)
        if rest := stream.finish():
            event: Any = copy.copy(last)
            setattr(event, IN_PIECES[type(last)], rest)
            made.append(event)
    return made
