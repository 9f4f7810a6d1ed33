"""Events: everything that happens in a run, as plain data. Statuses, statistics, logs and pages are built from them.

Every event has the run it belongs to, its number in that run (from 0, without gaps), the parent of that run
(the caller of a delegated run) and the time in seconds since the epoch. Events are built only when somebody
listens.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

from toolcrib.call import CallKey, CallState
from toolcrib.dataclass import dataclass, field
from toolcrib.frozen import made_when_read
from toolcrib.question import Question

__all__ = [
    "AnswerRestarted", "ArgumentsDelta", "CallEvent", "CallFinished", "CallRetried", "CallReviewed",
    "CheckpointTaken", "Event", "ModelAsked", "ModelFellBack", "ModelRetried", "ModelSilent", "Notice",
    "OutputDelta", "ProcessEnded", "ProcessPrinted", "ProcessStarted", "QuestionAnswered", "QuestionAsked",
    "ReasoningDelta", "RunFinished", "RunStarted", "ServerChanged", "StatusBoard", "StatusChanged",
    "TextDelta", "ToolStatus", "TurnFinished", "TurnStarted", "event_to_dict",
]  # fmt: skip


@dataclass(slots=True)
class Event:
    """The fields that all events share. The sink sets them when the event is emitted."""

    run: str = field(init=False, repr=False, compare=False)
    seq: int = field(init=False, repr=False, compare=False)
    parent: str = field(init=False, repr=False, compare=False)
    time: float = field(init=False, repr=False, compare=False)
    kind: ClassVar[str] = ""


@dataclass(slots=True)
class RunStarted(Event):
    """A run begins with a task, or goes on after it waited for answers (`resumed`)."""

    task: str
    model: str = ""
    resumed: bool = False
    kind = "run_started"


@dataclass(slots=True)
class TurnStarted(Event):
    """The model is asked; turns count from 1."""

    turn: int
    kind = "turn_started"


@dataclass(slots=True)
class ModelAsked(Event):
    """A request is sent to a model. Until the next event of the turn, the run waits for the model."""

    turn: int
    model: str
    kind = "model_asked"


@dataclass(slots=True)
class ModelRetried(Event):
    """A request failed, and is sent again after `delay` seconds: attempt number `attempt`, from 2, of `attempts`."""

    turn: int
    model: str
    attempt: int
    attempts: int
    delay: float
    problem: str
    kind = "model_retried"


@dataclass(slots=True)
class ModelFellBack(Event):
    """A model of a list did not answer, because of `problem`, and the next one, `model`, is asked."""

    turn: int
    model: str
    problem: str
    kind = "model_fell_back"


@dataclass(slots=True)
class ModelSilent(Event):
    """Nothing has come from the model for so many `seconds`: 20, then 40, and so on. The run goes on waiting."""

    turn: int
    model: str
    seconds: float
    kind = "model_silent"


@dataclass(slots=True)
class TextDelta(Event):
    """A piece of the model's text."""

    text: str
    kind = "text_delta"


@dataclass(slots=True)
class ReasoningDelta(Event):
    """A piece of the model's thinking."""

    text: str
    kind = "reasoning_delta"


@dataclass(slots=True)
class AnswerRestarted(Event):
    """The answer of this turn broke off and begins again. Its text and calls so far do not count."""

    turn: int
    why: str
    kind = "answer_restarted"


@dataclass(slots=True)
class ArgumentsDelta(Event):
    """A piece of a call's arguments at `path`: `delta` is more text of a string, or a finished value."""

    key: CallKey
    tool: str
    path: tuple[str | int, ...]
    delta: Any
    finished: bool = False
    kind = "arguments_delta"


@dataclass(slots=True)
class OutputDelta(Event):
    """A piece of a typed answer at `path`: `delta` is more text of a string, or a finished value.

    `finished` says that nothing more of it comes; the `delta` is then an empty text, object or list where all of it
    came before. `attempt` counts the answers that were begun, from 1: what came of an earlier one does not count.
    """

    attempt: int
    path: tuple[str | int, ...]
    delta: Any
    finished: bool = False
    kind = "output_delta"


@dataclass(slots=True)
class CallEvent(Event):
    """The fields that StatusChanged and CallFinished share. Only what changed is set (see `ToolStatus`)."""

    key: CallKey
    tool: str
    state: CallState
    tip: str | None = None
    progress: float | None = None
    params: dict[str, Any] | None = None
    result: Any = None
    code: str = ""


class _Unread(CallEvent):
    """Its `params` are read from `unread`, the text of a call's arguments, when somebody looks at them."""

    __slots__ = ("unread",)
    unread: str | None

    if not TYPE_CHECKING:
        params = made_when_read(CallEvent.params, lambda event: _data_of(event.unread))

    def __getstate__(self) -> Any:
        """What a copy is made of: the params and not the text, as they may be masked in the copy."""
        state: Any = object.__getstate__(self)
        return None, {**state[1], "params": self.params, "unread": None}


def _data_of(text: str | None) -> Any:
    from pydantic_core import from_json

    return from_json(text) if text else None if text is None else {}


@dataclass(slots=True)
class StatusChanged(_Unread):
    """A call changed its state, or its tool reported something. The end of a call is a CallFinished instead.

    Only a call whose answer broke off while it streamed has no result, and ends with the state ERROR here.

    `title` is the tool's name for people; it comes with the first event of a call whose tool is known.
    """

    title: str = ""
    kind = "status"


@dataclass(slots=True)
class CallFinished(CallEvent):
    """A call has its ToolResult as `result`, and its state is SUCCESS or ERROR.

    `duration` is in seconds. `problem` is the whole error, for the operator; the model is never shown it.
    """

    duration: float = 0.0
    problem: str = ""
    repairs: int = 0
    kind = "call_finished"


@dataclass(slots=True)
class QuestionAsked(Event):
    """A call waits for a person."""

    question: Question
    kind = "question_asked"


@dataclass(slots=True)
class QuestionAnswered(Event):
    """A person answered. The verdict is empty if nobody could be asked; `chosen` are options of an input."""

    key: CallKey
    verdict: str
    message: str = ""
    by: str = ""
    chosen: tuple[str, ...] = ()
    kind = "question_answered"


@dataclass(slots=True)
class CallReviewed(Event):
    """The reviewer looked at a call that would ask: it allowed it, or passed it on. `usage` is the review's."""

    key: CallKey
    tool: str
    allowed: bool
    reason: str = ""
    seconds: float = 0.0
    usage: Any = None
    kind = "call_reviewed"


@dataclass(slots=True)
class CallRetried(Event):
    """A transient failure of an idempotent tool, which is tried again; `attempt`, from 1, is the failed one."""

    key: CallKey
    tool: str
    attempt: int
    delay: float
    problem: str
    kind = "call_retried"


@dataclass(slots=True)
class Notice(Event):
    """Something an operator should know: a tool set aside, an output that does not fit its schema."""

    message: str
    tool: str = ""
    kind = "notice"


@dataclass(slots=True)
class CheckpointTaken(Event):
    """The files of the workspace were stored before the calls of a turn; `checkpoint` is the number to go back to."""

    turn: int
    checkpoint: int
    label: str
    kind = "checkpoint_taken"


@dataclass(slots=True)
class ProcessStarted(Event):
    """A command goes on in the background of the run, under the id by which the model names it."""

    process_id: str
    command: str
    description: str = ""
    kind = "process_started"


@dataclass(slots=True)
class ProcessPrinted(Event):
    """A background process printed something: `text` is the end of its output, `total` the bytes of all of it so far.

    At most one a second for each process, and one at its end.
    """

    process_id: str
    text: str
    total: int
    kind = "process_printed"


@dataclass(slots=True)
class ProcessEnded(Event):
    """A background process ended: with an exit code, by a signal, or because it was stopped, also with its run.

    `problem` says why it could not be started.
    """

    process_id: str
    exit_code: int | None = None
    signal: int | None = None
    stopped: bool = False
    seconds: float = 0.0
    problem: str = ""
    kind = "process_ended"


@dataclass(slots=True)
class ServerChanged(Event):
    """An MCP server changed its `state` (a `ServerState`) or its tools; `tools` is their number, None if unknown.

    `problem` says why it failed.
    """

    server: str
    state: str
    tools: int | None = None
    problem: str = ""
    kind = "server_changed"


@dataclass(slots=True)
class TurnFinished(Event):
    """The model's answer is complete."""

    turn: int
    calls: int
    stop_reason: str
    usage: dict[str, Any] = field(default_factory=dict)
    kind = "turn_finished"


@dataclass(slots=True)
class RunFinished(Event):
    """A run ended or paused; `reason` is a `Reason` of the agent."""

    reason: str
    text: str = ""
    detail: str = ""
    kind = "run_finished"


def event_to_dict(event: Event) -> dict[str, Any]:
    """An event as plain JSON data: its kind, the fields of all events, and its own."""
    data: dict[str, Any] = {"kind": event.kind}
    for item in fields(event):
        value = getattr(event, item.name, None)
        to_dict = getattr(value, "to_dict", None)
        if to_dict is not None:
            value = to_dict()
        elif isinstance(value, tuple):
            value = list(value)
        data[item.name] = value
    return data


@dataclass(slots=True)
class ToolStatus:
    """What a person is shown of one call, built from its events.

    New params are merged by key; a new result replaces the last. Times are seconds since the epoch; `duration`
    is known once the call has ended. `title` is the tool's name for people, if its author gave one.
    """

    key: CallKey
    tool: str
    state: CallState = CallState.WAIT
    tip: str = ""
    progress: float | None = None
    params: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    started: float = 0.0
    ended: float | None = None
    title: str = ""

    @property
    def duration(self) -> float | None:
        """Seconds from start to end; None while the call runs."""
        return None if self.ended is None else max(0.0, self.ended - self.started)  # a clock may be set back

    def apply(self, event: CallEvent) -> bool:
        """Apply a change. Returns False, and changes nothing, if the call has ended."""
        if self.state.terminal:
            return False
        time = getattr(event, "time", 0.0)
        self.started = self.started or time
        self.state = event.state
        self.title = getattr(event, "title", "") or self.title
        if event.tip is not None:
            self.tip = event.tip
        if event.progress is not None:
            self.progress = event.progress
        if event.params is not None:
            self.params = {**self.params, **event.params}
        if isinstance(event, CallFinished):
            # What the tool itself reported stays; otherwise the person is shown the model's result.
            self.result = event.result.text if self.result is None else self.result
        elif event.result is not None:
            self.result = event.result
        if event.state.terminal:
            self.ended = time
        return True


class StatusBoard:
    """The statuses of many calls, built from their events.

    >>> board = StatusBoard()
    >>> board.apply(StatusChanged(CallKey("r", 1, 0), "shell", CallState.DOING, tip="pytest"))
    >>> [status.tip for status in board.statuses.values()]
    ['pytest']
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.statuses: dict[CallKey, ToolStatus] = {}
        for event in events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Apply an event; events that are about no call's status are ignored."""
        if isinstance(event, CallEvent):
            status = self.statuses.get(event.key)
            if status is None:
                status = self.statuses[event.key] = ToolStatus(event.key, event.tool)
            status.apply(event)
        elif isinstance(event, QuestionAsked) and event.question.key in self.statuses:
            self.statuses[event.question.key].title = event.question.title
