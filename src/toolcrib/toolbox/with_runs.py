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
        """While this lasts, `covers` says what a checkpoint can bring back of what calls of the run change.

        Autonomy "sandboxed" rests on it. Without a checkpoint (None), the calls ask as under "supervised".
        """
        self._runs.set_covers(run, covers)
        try:
            yield
        finally:
            self._runs.set_covers(run, None)

    def begin(self, run: str, messages: Iterable[Message], account: Any = None) -> None:
        """Begin a run with these messages: their taint and the user's texts count for the policy's decisions.

        A run within a call has the provenance of the run that it belongs to: its task is no user's text. `account` is
        what runs within its calls are counted in.
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
        """Taint a call with what a run within it took in. It ended before the call waited, and does not run again."""
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
        """An object that a run owns: made by `make(emit)` at its first use, closed with the run."""
        return self._runs.owned.get(run, make, partial(self.sink.emit, run))

    def at_work(self, run: str) -> bool:
        """Whether something that a run owns, such as a background process, may change files between its calls."""
        return self._runs.owned.at_work(run)

    def news(self, run: str) -> list[str]:
        """The news since the last call of what a run owns, in sentences for the model."""
        return self._runs.owned.news(run)

    async def last_news(self, run: str) -> list[str]:
        """As `news`, but called when the model wants to end the run: waits for news that it should not miss."""
        return await self._runs.owned.last_news(run)

    @property
    def tracks_taint(self) -> bool:
        """Whether the policy looks at what came from outside."""
        return self._decider.tracks_taint

    def provenance(self, run: str) -> Provenance:
        """The taint of a run and its user's texts; empty where no rule asks for them."""
        return self._runs.provenance(run)
