"""A reviewer between policy and person: it may say yes to a call that would ask, and nothing else.

It is asked only where a person would be asked because of what a call can do. It is not asked where a person must
decide: where a rule asks, where the tool itself wants a person, for input, and for steps within a tool. What a rule
denies never comes to it. Whatever goes wrong in a reviewer, the person is asked.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeAlias

from toolcrib.dataclass import dataclass, replace
from toolcrib.errors import traceback_text
from toolcrib.events import CallReviewed
from toolcrib.question import Answer, Question, Verdict
from toolcrib.toolbox.operator_log import shown_value
from toolcrib.visible import on_one_line

if TYPE_CHECKING:
    from toolcrib.messages import Usage
    from toolcrib.prepared import Pending
    from toolcrib.sink import EventSink
    from toolcrib.toolbox.operator_log import Mask, OperatorLog
    from toolcrib.toolbox.runs import Runs
    from toolcrib.toolbox.suspension import Suspension

__all__ = ["Review", "ReviewRequest", "Reviewer", "Reviewing"]

LONGEST_REASON = 300  # characters of a reviewer's reason that are kept
SECONDS = 30.0  # after which the person is asked
WANTED = "a reviewer gives a Review(allow, reason), or in short True, or False or None, which ask the person"


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """What a reviewer decides on: nothing that a person would not be shown, and what the user wrote.

    Attributes:
        question: The question that a person would be asked, with the arguments, without secrets.
        user_texts: What the user of the run wrote, without secrets; empty where that is not tracked.
        taint: The tools that brought content from outside into the run. What such content says, the user did not say.
    """

    question: Question
    user_texts: tuple[str, ...] = ()
    taint: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Review:
    """A reviewer's decision: with `allow` the call runs, this once; else the person is asked and shown the `reason`.

    `usage` is what the review cost, where a model gave it.
    """

    allow: bool
    reason: str = ""
    usage: Usage | None = None


Reviewer: TypeAlias = Callable[[ReviewRequest], Awaitable[Review | bool | None] | Review | bool | None]
"""Says yes to a call, or passes the question on to the person. A sync function runs on a worker thread."""

Call: TypeAlias = Callable[[Callable[[Any], Any], Any, float | None], Awaitable[Any]]
"""Calls code of a user with an argument, within seconds."""


class Reviewing:
    """Asks the reviewer, and makes an answer of what it gives."""

    __slots__ = ("_call", "_mask", "_operator", "_runs", "_sink", "reviewer")

    def __init__(
        self, reviewer: Reviewer, call: Call, sink: EventSink, runs: Runs, operator: OperatorLog, mask: Mask
    ) -> None:
        self.reviewer = reviewer
        self._call = call
        self._sink = sink
        self._runs = runs
        self._operator = operator
        self._mask = mask

    async def review(self, pending: Pending, suspension: Suspension | None) -> tuple[Pending, Answer | None]:
        """A yes, for a call that the reviewer allows; else the call, with the reviewer's reason in its question."""
        question = pending.question
        if question.strict or pending.ready.must_ask or pending.ready.changed:
            return pending, None
        if suspension is not None and suspension.given(question) is not None:
            return pending, None
        provenance = self._runs.provenance(question.key.run)
        # A reviewer may shorten what it is handed, in place: the person is shown the whole all the same.
        own = replace(question, arguments=deepcopy(question.arguments))
        request = ReviewRequest(own, tuple(map(self._mask, provenance.user_texts)), provenance.taint)
        started = time.perf_counter()
        review = await self._reviewed(request)
        if review is None:
            return pending, None
        seconds = time.perf_counter() - started
        reason = on_one_line(self._mask(review.reason), LONGEST_REASON)
        if review.usage is not None and (account := self._runs.account(question.key.run)) is not None:
            account.add(review.usage)
        if self._sink:
            event = CallReviewed(question.key, question.tool, review.allow, reason, seconds, review.usage)
            self._sink.emit(question.key.run, event)
        if review.allow:
            return pending, Answer(Verdict.YES, by=f"the reviewer: {reason}" if reason else "the reviewer")
        if not reason or reason in question.reason:
            return pending, None
        told = replace(question, reason=f"{question.reason}; the reviewer did not allow it: {reason}")
        return replace(pending, question=told), None

    async def _reviewed(self, request: ReviewRequest) -> Review | None:
        """What the reviewer gives within its time; None where it fails or gives nothing that can be read."""
        from toolcrib.toolbox.deadline import DeadlinePassed

        try:
            given = await self._call(self.reviewer, request, SECONDS)
        except DeadlinePassed:
            self._operator.problem_once(
                "the reviewer's time", "the reviewer took too long; the person is asked", ""
            )
            return None
        except Exception as problem:
            self._operator.problem("the reviewer failed; the person is asked", traceback_text(problem))
            return None
        review = _as_review(given)
        if review is None:
            what = f"the reviewer gave {shown_value(given)}; the person is asked"
            self._operator.problem_once("the reviewer's decisions", what, WANTED)
        return review


def _as_review(given: Any) -> Review | None:
    """What a reviewer gave, as a review; None if it cannot be read."""
    if given is True or given is False or given is None:
        return Review(given is True)
    if not isinstance(given, Review):
        return None
    from toolcrib.messages import Usage

    fits = isinstance(given.allow, bool) and isinstance(given.reason, str)
    return given if fits and isinstance(given.usage, Usage | None) else None
