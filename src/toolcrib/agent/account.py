"""What a run uses, with the runs within its calls, and the limits that end it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from toolcrib.agent.outcome import Budget
from toolcrib.errors import ToolError
from toolcrib.messages import Usage

if TYPE_CHECKING:
    from toolcrib.agent.outcome import Outcome

__all__ = ["Account"]

MAX_DEPTH = 5  # runs within calls of runs; an agent may be its own tool
WHOLE = "the budget of the whole run is used up: "


class Account:
    """Counts what a run uses. What a run within one of its calls uses counts here too, and its limits end both.

    `outer` is the account of the run that the call belongs to; ToolError where runs would lie too deep.
    """

    def __init__(self, budget: Budget, outer: Account | None = None) -> None:
        self.budget = budget
        self.outer = outer
        self.usage = Usage()
        self.nested: list[Outcome] = []
        self._started = time.monotonic()
        if len(self._with_outer()) > MAX_DEPTH + 1:
            raise ToolError(f"Nothing was done: agents may call agents {MAX_DEPTH} deep at most.")

    def begin(self) -> None:
        """The run begins: its time counts from now on."""
        self._started = time.monotonic()

    def add(self, usage: Usage) -> None:
        """Count what a request used, here and in the runs that this one belongs to."""
        for account in self._with_outer():
            account.usage = account.usage + usage

    def spent(self) -> str:
        """A sentence that says which limit is reached, of this run or of one that it belongs to; "" if none is."""
        spent = self.budget.spent(self.usage, time.monotonic() - self._started)
        if spent or self.outer is None:
            return spent
        above = self.outer.spent().removeprefix(WHOLE)
        return f"{WHOLE}{above}" if above else ""

    def _with_outer(self) -> list[Account]:
        accounts, account = [self], self.outer
        while account is not None:
            accounts.append(account)
            account = account.outer
        return accounts
