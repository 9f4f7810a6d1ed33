"""The runs of a toolbox, as an agent begins and ends them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from toolcrib.errors import belongs_to_caller, traceback_text
from toolcrib.events import Event
from toolcrib.sink import EventSink
from toolcrib.toolbox.approver import Approving
from toolcrib.toolbox.decide import Decider
from toolcrib.toolbox.operator_log import OperatorLog
from toolcrib.toolbox.policy import Covers
from toolcrib.toolbox.provenance import of_messages
from toolcrib.toolbox.registry import Registry
from toolcrib.toolbox.runs import Clock, Limiter, Provenance, Runs
from toolcrib.toolset import reporters

if TYPE_CHECKING:
    from toolcrib.messages import Message

__all__ = ["WithRuns"]

T = TypeVar("T")


class WithRuns:
    """The part of a toolbox that begins runs, and forgets what it kept of them when they are over."""

    _runs: Runs
    _decider: Decider
    _limiter: Limiter | None
    _approving: Approving
    sink: EventSink
    _operator: OperatorLog
    registry: Registry

    @contextmanager
    def covered_by(self, run: str, covers: Covers | None) -> Generator[None]:
        """A context manager: while it lasts, `covers` says what a checkpoint can bring back after calls of the run.

        Under autonomy "sandboxed", calls that are confined to it run unasked. With None, there is no checkpoint, and
        they ask as under "supervised".
        """
        self._runs.set_covers(run, covers)
        try:
            yield
        finally:
            self._runs.set_covers(run, None)

    def begin(self, run: str, messages: Iterable[Message], account: Any = None) -> None:
        """Begin a run with these messages, so that the policy knows what came from outside and what the user wrote.

        A run within a call takes both from the run that it belongs to, as its task was written by a model. `account`
        counts what the runs within its calls use.
        """
        self._runs.set_account(run, account)
        for toolset in self.registry.toolsets:
            for reporter in reporters(toolset):
                if not self._runs.owned.has(self._runs.outermost(run), reporter.for_run):
                    self.of_run(run, reporter.for_run)
        if not self._decider.tracks_taint:
            return
        provenance = of_messages(messages)
        if not self._runs.is_nested(run):
            self._runs.set_provenance(run, provenance)
        for tool in provenance.taint:
            self._runs.add_taint(run, tool)

    def recall(self, run: str, messages: Iterable[Message]) -> None:
        """Count a run within a call that had ended before the call waited for an answer, and is not run again.

        What it read from outside marks the run that it belongs to, as it did then.
        """
        if self._decider.tracks_taint:
            for tool in of_messages(messages).taint:
                self._runs.add_taint(run, tool)
        self.forget(run)

    def forget(self, run: str) -> None:
        """A run is over: drop what was remembered for it (always-answers, provenance, counts, event numbers)."""
        self._runs.forget(run)
        if self._limiter is not None:
            try:
                self._limiter.forget(run)
            except BaseException as problem:  # raised by a user's limiter: the run has its outcome already
                if belongs_to_caller(problem):
                    raise
                self._operator.problem("a limiter could not forget a run", traceback_text(problem))

    async def end(self, run: str) -> None:
        """A run is over: close what it owns (its background processes), then forget it."""
        try:
            await self._runs.owned.close(run)
        finally:
            self.forget(run)

    @contextmanager
    def paused_while_asking(self, run: str, clock: Clock) -> Generator[None]:
        """While this lasts, the clock stands still whenever a person is asked about calls of the run or within it."""
        clocks = self._runs.clocks
        clocks[run] = clock
        try:
            yield
        finally:
            clocks.pop(run, None)

    def of_run(self, run: str, make: Callable[[Callable[[Event], None]], T]) -> T:
        """An object that belongs to a run: `make(emit)` makes it at its first use, and `end` closes it."""
        return self._runs.owned.get(run, make, partial(self.sink.emit, run))

    def at_work(self, run: str) -> bool:
        """Whether an object that belongs to a run, such as a background process, may change files between its calls."""
        return self._runs.owned.at_work(run)

    def news(self, run: str) -> list[str]:
        """What happened since the last call of this, in sentences for the model: a background process ended, say."""
        return self._runs.owned.news(run)

    async def last_news(self, run: str) -> list[str]:
        """`news` for a model that wants to end the run: waits for tasks whose results it should not miss."""
        return await self._runs.owned.last_news(run)

    @property
    def tracks_taint(self) -> bool:
        """Whether the policy looks at what came from outside."""
        return self._decider.tracks_taint

    def provenance(self, run: str) -> Provenance:
        """The taint of a run and its user's texts; empty where no rule asks for them."""
        return self._runs.provenance(run)
