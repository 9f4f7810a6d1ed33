"""What a run uses, with the runs within its calls, and the limits that end it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from toolcrib.agent.completion import COMPLETION
from toolcrib.agent.outcome import Budget
from toolcrib.messages import Message, Usage

if TYPE_CHECKING:
    from toolcrib.agent.outcome import Outcome

__all__ = ["Account"]

UNLIMITED = Budget()
NOTHING = Usage()
WHOLE = "the budget of the whole run is used up: "


class Account:
    """Counts what a run uses, with the runs within its calls. When a limit of this run is reached, those end too.

    What is counted is noted in a message too: in `task` before the first answer, then in the last answer. `agent`
    stands for the agent whose run it is. `earlier` is what was used in the conversation before the run. `outer` is the
    account of the run that the call belongs to. `conversation` limits the run together with what its earlier `messages`
    used.
    """

    def __init__(
        self,
        task: Message,
        budget: Budget,
        conversation: Budget = UNLIMITED,
        messages: Iterable[Message] = (),
        outer: Account | None = None,
        agent: object = None,
    ) -> None:
        self.budget = budget
        self.agent = agent
        self.outer = outer
        self.usage = Usage()
        self.nested: list[Outcome[Any]] = []
        self._limited = budget != UNLIMITED
        self._conversation = None if conversation == UNLIMITED else conversation
        self.earlier = Usage()
        if self._conversation is not None:
            self.earlier = sum((m.usage for m in messages if m.usage is not None), Usage())
        self._noted_in = task
        self._started = time.monotonic()

    @property
    def agents(self) -> list[object]:
        """The agent whose run this is, and the agents of the runs that it belongs to."""
        return [self.agent, *([] if self.outer is None else self.outer.agents)]

    def begin(self, seconds: float) -> None:
        """The run begins: its time counts from now on, with the seconds that it had used before it was saved."""
        self._started = time.monotonic() - seconds

    def restore(self, usage: Usage, earlier: Usage, nested: list[Outcome[Any]], answer: Message) -> None:
        """Take over what a run that waited had used when it was saved, and its last answer."""
        self.usage, self.earlier, self.nested, self._noted_in = usage, earlier, nested, answer

    @property
    def seconds(self) -> float:
        """How long the run has been running."""
        return time.monotonic() - self._started

    def answered(self, answer: Message, usage: Usage) -> None:
        """Count what a request used, with the number of its calls."""
        calls = len([call for call in answer.calls if call.name != COMPLETION])
        self._noted_in = answer
        answer.note_usage(NOTHING)
        self.add(_with_calls(usage, calls) if calls else usage)

    def add(self, usage: Usage) -> None:
        """Count what was used, also by an answer that broke off or a run within a call, here and in the outer runs."""
        if usage == NOTHING:
            return
        self.usage = self.usage + usage
        noted = self._noted_in.usage
        self._noted_in.note_usage(usage if noted is None else noted + usage)
        if self.outer is not None:
            self.outer.add(usage)

    @property
    def limits_calls(self) -> bool:
        """Whether calls are limited, of this run or of one that it belongs to."""
        budgets = [self.budget] if self._conversation is None else [self.budget, self._conversation]
        mine = any(budget.calls is not None for budget in budgets)
        return mine or (self.outer is not None and self.outer.limits_calls)

    def spent(self) -> str:
        """A sentence that says which limit is reached, of this run or of one that it belongs to; "" if none is."""
        if self._limited and (spent := self.budget.spent(self.usage, self.seconds)):
            return spent
        if self._conversation is not None:
            spent = self._conversation.spent(self.earlier + self.usage)
            if spent:
                return f"in this conversation {spent}"
        above = "" if self.outer is None else self.outer.spent().removeprefix(WHOLE)
        return f"{WHOLE}{above}" if above else ""


def _with_calls(usage: Usage, calls: int) -> Usage:
    """The usage of a request with the number of its calls; `dataclasses.replace` takes eight times as long."""
    return Usage(
        usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens,
        usage.reasoning_tokens, usage.cost, calls,
    )  # fmt: skip
