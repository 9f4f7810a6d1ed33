"""How a run ended, and the budgets that can end it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, Generic, cast

from toolcrib.agent.output_type import Rung
from toolcrib.agent.output_var import Out
from toolcrib.dataclass import dataclass, field
from toolcrib.errors import ToolcribError
from toolcrib.messages import Message, TokenLogprob, Usage
from toolcrib.question import Question
from toolcrib.visible import counted

__all__ = ["NO_OUTPUT", "Budget", "NotFinished", "Outcome", "Reason"]

NO_OUTPUT: Final[Any] = object()


class Reason(StrEnum):
    """Why a run ended or pauses; `words` says it in a sentence."""

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
    INVALID_OUTPUT = "invalid_output"  # no answer fitted the output type, also when it was asked again

    @property
    def words(self) -> str:
        """The reason in words that a person reads."""
        return _WORDS[self]


_WORDS = {
    Reason.ANSWERED: "finished",
    Reason.COMPLETED: "finished",
    Reason.TURN_LIMIT: "not finished",
    Reason.BUDGET: "not finished",
    Reason.TOO_LONG: "not finished",
    Reason.PAUSED: "paused",
    Reason.CANCELLED: "cancelled",
    Reason.MODEL_ERROR: "the model failed",
    Reason.FAILED: "failed",
    Reason.WAITING: "waiting",
    Reason.REFUSED: "the model did not answer",
    Reason.INVALID_OUTPUT: "no answer of the right form",
}


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
            return f"the budget of {counted(self.seconds, 'second')} has passed"
        if self.calls is not None and usage.calls > self.calls:
            asked = counted(usage.calls, "call")
            return f"the model asked for {asked}, and the limit is {self.calls}"
        return ""


class NotFinished(ToolcribError):
    """A run ended before its task was done; `outcome` says why, and has the conversation."""

    def __init__(self, outcome: Outcome[Any]) -> None:
        words = outcome.reason.words
        super().__init__(f"{words}: {outcome.detail}" if outcome.detail else words)
        self.outcome = outcome


@dataclass(slots=True)
class Outcome(Generic[Out]):
    """What a run gave, and why it ended.

    Attributes:
        reason: Why the run ended or pauses.
        text: The final answer, or the summary of a run that a limit ended.
        messages: The whole conversation. To go on with it, hand it to another run as `messages=`.
        usage: Tokens, calls and cost, with those of the runs within its calls.
        turns: How often the model was asked.
        run: The name of the run in events.
        detail: More about the reason, in a sentence.
        nested: The outcomes of the runs within its calls, in the order in which they ended.
        questions: What a run that waits for a person asks.
        attempts: How many answers the model gave for the output of a typed run.
        rung: How the model was asked for a typed output.
        guarantee: What the model's server promised of the form of a typed output (see `guided.Lowered`).
        losses: What of the output type the server could not be told. The output was validated against all of it.
        item_problems: Which items of a list that is validated item by item were left out, and why.
        logprobs: The log-probabilities of the last answer, if they were asked for.
    """

    reason: Reason
    text: str
    messages: list[Message]
    usage: Usage
    turns: int
    run: str
    detail: str = ""
    nested: list[Outcome[Any]] = field(default_factory=list)
    questions: tuple[Question, ...] = ()
    saved: dict[str, Any] | None = field(default=None, repr=False)
    is_typed: bool = False
    attempts: int = 0
    rung: Rung | None = None
    guarantee: str = ""
    losses: tuple[Any, ...] = ()
    item_problems: dict[int, str] = field(default_factory=dict)
    logprobs: tuple[TokenLogprob, ...] = field(default=(), repr=False)
    _value: Any = field(default=NO_OUTPUT, repr=False)

    def to_json(self) -> dict[str, Any]:
        """A run that waits, as plain JSON data with a format version; `Agent.resume` goes on from it in any process.

        ValueError for a run that does not wait: `messages_to_json(outcome.messages)` saves its conversation.
        """
        if self.saved is None:
            raise ValueError(f"the run does not wait for answers: it ended as {self.reason.value!r}")
        return self.saved

    @property
    def output(self) -> Out:
        """The value of a typed run, and the text of any other. Raises NotFinished where the run ended without it."""
        if self._value is not NO_OUTPUT:
            value: Out = self._value
            return value
        if not self.finished or self.is_typed:
            raise NotFinished(self)
        return cast("Out", self.text)

    @property
    def has_output(self) -> bool:
        """Whether there is an output."""
        return self._value is not NO_OUTPUT or (self.finished and not self.is_typed)

    @property
    def finished(self) -> bool:
        """Whether the model itself considered the task done."""
        return self.reason in (Reason.ANSWERED, Reason.COMPLETED)
