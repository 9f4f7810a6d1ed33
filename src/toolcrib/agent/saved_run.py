"""A run that waits for answers, as JSON data from which any process goes on.

Its conversation, its usage, turns and failures go on; so do its approvals, its taint, and its name, so that no key of
a call is used twice. The data is masked like a transcript. Who may write it may approve: keep it like a session.

A run within a call of another run is a part of what is saved of the outermost run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

from toolcrib.agent.outcome import Outcome, Reason
from toolcrib.call import FORMAT, CallKey
from toolcrib.dataclass import dataclass, field, replace
from toolcrib.errors import ErrorCode, ToolError
from toolcrib.fingerprint import fingerprint
from toolcrib.messages import (
    Message,
    ResultPart,
    Usage,
    messages_from_json,
    messages_to_json,
    usage_from_dict,
)
from toolcrib.question import Answer
from toolcrib.result import ToolResult
from toolcrib.toolbox.approver import parse_answer
from toolcrib.toolbox.policy import Reply
from toolcrib.toolbox.suspension import GivenAnswer, Suspension, key_of
from toolcrib.toolbox.suspensions import checked_memory

__all__ = ["Answers", "SavedRun", "nested_before", "nested_to_dict"]

KIND = "waiting run"
Answers = Mapping[str, Reply | str]
"""Answers by the `id` of their questions; None, or no entry, leaves a question waiting. A text is a verdict's word."""


@dataclass(slots=True)
class SavedRun:
    """What a run needs to go on."""

    run: str
    messages: list[Message]
    usage: Usage
    earlier: Usage  # what the conversation had used before the run
    turns: int
    restarted: int
    seconds: float
    chosen: bool
    failures: dict[str, int]
    nested: list[Outcome[Any]] = field(default_factory=list)  # ended runs within its calls
    output: dict[str, Any] = field(default_factory=dict)  # how its typed answer is asked for
    box: dict[str, Any] = field(default_factory=dict)  # of the outermost run: what its toolbox remembered
    suspension: Suspension = field(default_factory=Suspension)

    def to_dict(self, mask: Callable[[Any], Any]) -> dict[str, Any]:
        """The run's own state as plain JSON data, in which known secrets are masked."""
        from pydantic_core import to_jsonable_python

        data = {name: getattr(self, name) for name in STATE}
        data["messages"] = messages_to_json(self.messages)["messages"]
        data["usage"], data["earlier"] = asdict(self.usage), asdict(self.earlier)
        data["nested"] = [_outcome_to_dict(outcome) for outcome in self.nested]
        masked: dict[str, Any] = mask(to_jsonable_python(data, fallback=str))
        return masked

    def to_json(self, mask: Callable[[Any], Any]) -> dict[str, Any]:
        """The run with its calls that wait and what its toolbox remembered, as plain JSON data."""
        from pydantic_core import to_jsonable_python

        more = to_jsonable_python({**self.suspension.to_dict(), "box": self.box}, fallback=str)
        return {"format": FORMAT, "kind": KIND, **self.to_dict(mask), **mask(more)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SavedRun:
        """The state that `to_dict` gave. Raises KeyError, TypeError or ValueError for other data."""
        return cls(
            run=str(data["run"]),
            messages=messages_from_json({"format": FORMAT, "messages": data["messages"]}),
            usage=_usage(data["usage"]),
            earlier=_usage(data["earlier"]),
            turns=int(data["turns"]),
            restarted=int(data["restarted"]),
            seconds=_seconds(data["seconds"]),
            chosen=bool(data["chosen"]),
            failures=dict(data["failures"]),
            nested=[_nested_outcome(item) for item in data.get("nested", ())],
            output=dict(data.get("output", {})),
        )

    @classmethod
    def resumed(cls, saved: Outcome[Any] | Mapping[str, Any], answers: Answers) -> SavedRun:
        """A saved run with answers to its questions. ValueError for unreadable data, or answers to other questions."""
        data: Any = saved.to_json() if isinstance(saved, Outcome) else saved
        if isinstance(data, str | bytes):
            raise ValueError(
                "a saved run that was stored as JSON text is read by json.loads before it is resumed"
            )
        found = data.get("format") if isinstance(data, Mapping) else type(data).__name__
        if found != FORMAT or data.get("kind") != KIND:
            raise ValueError(
                f"expected what outcome.to_json() gave of a run that waits, of format {FORMAT}; got format {found!r}"
            )
        if not isinstance(answers, Mapping):
            raise TypeError(f"answers are a mapping of question.id to answers, got {answers!r}")
        try:
            run = cls.from_dict(data)
            run.box = checked_memory(data["box"])
            run.suspension = Suspension.from_dict(data)
            run._check_turn()
            questions = {
                str(item["id"]): ((key_of(item["key"]), str(item["fingerprint"])), str(item["digest"]))
                for call in data["calls"]
                for item in call["questions"]
            }
        except (AttributeError, KeyError, IndexError, OverflowError, TypeError) as problem:
            raise ValueError(f"the saved run is not whole: {type(problem).__name__}: {problem}") from None
        _give(answers, questions, run.suspension)
        return run

    def _check_turn(self) -> None:
        """The last turn has a result for each call, and those that wait are saved."""
        places, calls = self.messages[-1].parts, self.messages[-2].calls
        if [part.call for part in places if isinstance(part, ResultPart)] != calls or not calls:
            raise KeyError("the calls of its last turn have no results")
        own = [key for key in self.suspension.saved if key.run == self.run]
        if not own or any(key.turn != self.turns or not 0 <= key.index < len(calls) for key in own):
            raise KeyError("calls that wait are not in its last turn")

    def done(self, suspension: Suspension) -> dict[int, ToolResult]:
        """The results that the last turn has so far, by the index of their call."""
        calls = self.messages[-2].calls
        waiting = [calls[key.index] for key in suspension.saved if key.run == self.run]
        return {
            index: result
            for index, result in enumerate(self.messages[-1].results)
            if not (result.code is ErrorCode.WAITING and calls[index] in waiting)
        }


Questions = Mapping[str, tuple[tuple[CallKey, str], str]]
"""Questions that wait: by their ids, the place of their answer, and the digest of what was shown."""

STATE = [item.name for item in fields(SavedRun) if item.name not in ("box", "suspension")]


def nested_before(suspension: Suspension, run: str, task: Message) -> tuple[SavedRun | None, Outcome | None]:
    """The saved state of a run within a call, or its outcome if it had ended; neither if it had not begun.

    ToolError if a tool that runs again begins another run in its place.
    """
    data = suspension.runs.get(run)
    if data is None:
        return None, None
    if data["task"] != mark_of(task):
        raise ToolError("The run that waited for an answer was about something else. Nothing more was run.")
    return (
        (None, _nested_outcome({"run": run, **data}))
        if "reason" in data
        else (SavedRun.from_dict(data), None)
    )


def nested_to_dict(
    task: Message, ended: Outcome[Any] | SavedRun, mask: Callable[[Any], Any]
) -> dict[str, Any]:
    """A run within a call that waits, or that ended in a call that may still wait."""
    data = ended.to_dict(mask) if isinstance(ended, SavedRun) else mask(_outcome_to_dict(ended))
    return {"task": mark_of(task), **data}


def mark_of(task: Message) -> str:
    """The fingerprint of a task, without what was used for it so far."""
    return fingerprint("task", messages_to_json([replace(task, usage=None)])["messages"])


def _outcome_to_dict(outcome: Outcome[Any]) -> dict[str, Any]:
    return {
        "run": outcome.run,
        "reason": outcome.reason.value,
        "text": outcome.text,
        "detail": outcome.detail,
        "turns": outcome.turns,
        "usage": asdict(outcome.usage),
        "messages": messages_to_json(outcome.messages)["messages"],
        "nested": [_outcome_to_dict(nested) for nested in outcome.nested],
    }


def _nested_outcome(data: Mapping[str, Any]) -> Outcome[Any]:
    messages = messages_from_json({"format": FORMAT, "messages": data["messages"]})
    usage, reason = _usage(data["usage"]), Reason(data["reason"])
    nested = [_nested_outcome(item) for item in data.get("nested", ())]
    turns, detail = int(data["turns"]), str(data["detail"])
    return Outcome(reason, str(data["text"]), messages, usage, turns, str(data["run"]), detail, nested)


def _give(answers: Answers, questions: Questions, suspension: Suspension) -> None:
    """Take answers in. Each belongs to a question that waits and has none yet."""
    for id, reply in answers.items():
        if id not in questions:
            waiting = ", ".join(questions) or "none"
            raise ValueError(
                f"no question {id!r} waits in this run (any more); the ids of those that wait are: {waiting}"
            )
        if reply is None:
            continue
        answer = parse_answer(reply)
        if not isinstance(answer, Answer):
            raise ValueError(
                f"an answer is an Answer, a Verdict, True, False, 'yes', 'no' or 'always'; got {reply!r}"
            )
        place, digest = questions[id]
        suspension.answers[place] = GivenAnswer(answer, digest)


def _usage(data: Any) -> Usage:
    """The saved usage. Raises TypeError or ValueError for data that is no usage, also for null."""
    usage = usage_from_dict(data)
    if usage is None:
        raise TypeError("usage: expected an object, got null")
    return usage


def _seconds(given: Any) -> float:
    """Seconds that have passed. ValueError for what no clock gives: a budget would never end by it."""
    seconds = float(given)
    if not 0 <= seconds < math.inf:
        raise ValueError(f"seconds: expected a number from 0 on, got {given!r}")
    return seconds
