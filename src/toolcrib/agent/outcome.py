"""How a run ended, and the budgets that can end it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from toolcrib.messages import Message, Usage
from toolcrib.question import Question

__all__ = ["Budget", "Outcome", "Reason"]


class Reason(StrEnum):
    """Why a run ended or pauses."""

    ANSWERED = "answered"  # the model answered without calls
    COMPLETED = "completed"  # attempt_completion
    TURN_LIMIT = "turn_limit"
    BUDGET = "budget"
    PAUSED = "paused"  # one tool failed too often in a row
    CANCELLED = "cancelled"
    MODEL_ERROR = "model_error"
    TOO_LONG = "too_long"  # for the model's context window
    FAILED = "failed"  # the caller's own code raised, and so does the run
    WAITING = "waiting"  # for a person's answers: `Agent.resume` goes on
    REFUSED = "refused"  # the model or its provider declined, or the answer was cut off


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a run, or of a conversation; None for no limit.

    `cost` is in US dollars; an unknown price ends the run at once. `calls` are calls of tools, without
    attempt_completion: the answer that asks for more ends the run, and none of its calls is run. Runs within calls
    count with the run that they belong to.
    """

    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    calls: int | None = None

    def __post_init__(self) -> None:
        for name in ("tokens", "cost", "seconds", "calls"):
            limit = getattr(self, name)
            number = isinstance(limit, int | float) and not isinstance(limit, bool)
            if limit is not None and not (number and limit >= 0):
                raise TypeError(
                    f"{name} of a Budget must be a number from 0, or None for no limit; got {limit!r}"
                )

    def spent(self, usage: Usage, seconds: float = 0.0) -> str:
        """A sentence that says which limit is reached; "" while no limit is reached."""
        if self.tokens is not None and usage.total_tokens >= self.tokens:
            return f"{usage.total_tokens:,} of {self.tokens:,} tokens are used"
        if self.cost is not None and usage.cost is None and usage.total_tokens:
            return "what the model costs is not known, so its cost cannot be limited: limit tokens, or name prices"
        if self.cost is not None and usage.cost is not None and usage.cost >= self.cost:
            return f"${usage.cost:.4f} of ${self.cost:.4f} are spent"
        if self.seconds is not None and seconds >= self.seconds:
            return f"{self.seconds:g} seconds have passed"
        if self.calls is not None and usage.calls > self.calls:
            asked = "1 call" if usage.calls == 1 else f"{usage.calls} calls"
            return f"the model asked for {asked}, and the limit is {self.calls}"
        return ""


@dataclass(slots=True)
class Outcome:
    """The outcome of a run. `messages` is the whole transcript: hand it to `run` again to go on.

    `nested` are the outcomes of the runs within its calls, in the order in which they ended; what they used is part
    of `usage`.
    `detail` says more about the reason; `text` is the final answer or summary. A run that waits has `questions`.
    """

    reason: Reason
    text: str
    messages: list[Message]
    usage: Usage
    turns: int
    run: str
    detail: str = ""
    nested: list[Outcome] = field(default_factory=list)
    questions: tuple[Question, ...] = ()
    saved: dict[str, Any] | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """A run that waits, as plain JSON data with a format version; `Agent.resume` goes on from it in any process.

        ValueError for a run that does not wait: `messages_to_json(outcome.messages)` saves its conversation.
        """
        if self.saved is None:
            raise ValueError(f"the run does not wait for answers: it ended as {self.reason.value!r}")
        return self.saved

    @property
    def finished(self) -> bool:
        """Whether the model itself considered the task done."""
        return self.reason in (Reason.ANSWERED, Reason.COMPLETED)
