"""What is remembered of each run while it lasts: approvals, provenance, its account, and which run called which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from toolcrib.call import CallKey
from toolcrib.errors import is_object_with
from toolcrib.sink import EventSink
from toolcrib.toolbox.operator_log import Mask, unmasked
from toolcrib.toolbox.owned import OwnedObjects

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from toolcrib.rules.limits import Limit
    from toolcrib.toolbox.policy import Covers
    from toolcrib.toolbox.suspension import Suspension

__all__ = ["Clock", "Limiter", "Provenance", "Runs", "limiter_of"]


class Clock(Protocol):
    """Measures the time of a run or a call, and can stand still."""

    def paused(self) -> AbstractContextManager[None]: ...


class Limiter(Protocol):
    """Says when a tool may not run any more; `toolcrib.rules.RateLimits` is one."""

    def take(self, run: str, tool: str) -> str: ...
    def give_back(self, run: str, tool: str) -> None: ...
    def forget(self, run: str) -> None: ...


def limiter_of(limits: Limiter | Iterable[Limit] | None) -> Limiter | None:
    """A limiter as it is, or a `RateLimits` of the limits that are listed. TypeError for anything else."""
    if limits is None or is_object_with(limits, "take"):
        return cast("Limiter | None", limits)
    from toolcrib.rules.limits import RateLimits

    listed: Any = limits  # RateLimits says itself what it cannot take
    return RateLimits(listed)


class Provenance(NamedTuple):
    """Where the content of a run comes from: the tools that brought in some from outside, and the user's texts."""

    taint: frozenset[str] = frozenset()
    user_texts: tuple[str, ...] = ()


UNKNOWN = Provenance()
BEFORE = "an earlier call"  # in the place of a tool's name, where nobody knows which it was


class Runs:
    """The runs of a toolbox.

    Calls that a tool makes form a run of their own, named by the key of the call that made them. They count to the run
    that is outermost: its approvals hold for them, and its limits.
    """

    def __init__(self, sink: EventSink, mask: Mask = unmasked) -> None:
        self._sink = sink
        self._provenance: dict[str, Provenance] = {}
        self._approved: dict[str, list[tuple[Any, Any]]] = {}
        self.suspensions: dict[str, Suspension] = {}
        self._described: dict[str, dict[Any, Any]] = {}
        self._accounts: dict[str, Any] = {}
        self._covers: dict[str, Covers] = {}
        self.owned = OwnedObjects(mask)
        self.clocks: dict[str, Clock] = {}  # of runs whose time is limited
        self.reviewed = False  # whether a reviewer looks at where content came from, and what the user wrote

    def outermost(self, run: str) -> str:
        """The run that a call counts to."""
        return self._sink.outermost(run) if self._sink.parents else run

    def is_nested(self, run: str) -> bool:
        """Whether a run belongs to a call of another run."""
        return run in self._sink.parents

    @property
    def parents(self) -> Mapping[str, str]:
        """The run that each run of inner calls belongs to."""
        return self._sink.parents

    def open_inner(self, key: CallKey, clock: Clock | None) -> str:
        """The run of the calls that a tool makes in its call. `clock` measures the time of that call."""
        run = str(key)
        if clock is not None:
            self.clocks[run] = clock
        self._sink.parents[run] = key.run
        return run

    def open_nested(self, key: CallKey, outer: str) -> str:
        """The run of an agent that a call began; `key` is the agent's place among what the call made.

        It belongs to the run `outer`: that of the call's own calls, or the call's run where it goes on after the call.
        """
        run = str(key)
        self._sink.parents[run] = outer
        return run

    def close_inner(self, key: CallKey) -> None:
        """A call has ended: drop the run of the calls that it made."""
        self._drop(str(key))

    def forget(self, run: str) -> None:
        """The run is over: drop its approvals, its provenance, its account and the numbers of its events."""
        self._drop(run)
        self._described.pop(run, None)

    def _drop(self, run: str) -> None:
        self._provenance.pop(run, None)
        self._approved.pop(run, None)
        self._accounts.pop(run, None)
        self._covers.pop(run, None)
        self.clocks.pop(run, None)
        self.suspensions.pop(run, None)
        self._sink.forget(run)

    # -- what factories made

    def described(self, run: str) -> dict[Any, Any]:
        """The definitions of the tools that factories made earlier in the run to be described, by their entries."""
        return self._described.get(run) or {}

    def keep_described(self, run: str, definitions: dict[Any, Any]) -> None:
        self._described[run] = definitions

    # -- provenance

    def provenance(self, run: str) -> Provenance:
        """The provenance that counts for a call of the run: that of the outermost run."""
        return self._provenance.get(self.outermost(run), UNKNOWN) if self._provenance else UNKNOWN

    def set_provenance(self, run: str, provenance: Provenance) -> None:
        self._provenance[self.outermost(run)] = provenance

    def took_in(self, key: CallKey) -> bool:
        """Whether calls that this call made brought in content from outside."""
        return str(key) in self._provenance

    def add_taint(self, run: str, tool: str) -> None:
        """A tool brought in content from outside: the run, and all runs that it belongs to, are tainted by it."""
        for name in self._with_parents(run):
            known = self._provenance.get(name, UNKNOWN)
            self._provenance[name] = known._replace(taint=known.taint | {tool})

    def taint_untracked(self) -> None:
        """Taint the runs of agents that began when nobody looked at what came from outside: they may have read some."""
        for run in list(self._accounts):
            if self.outermost(run) not in self._provenance:
                self.add_taint(run, BEFORE)

    # -- what a run uses

    def set_account(self, run: str, account: Any) -> None:
        """The account in which a run counts what it uses."""
        self._accounts[run] = account

    def account(self, run: str) -> Any:
        """The account of the run, or of the nearest run that it belongs to; None if nobody counts."""
        return next(
            (self._accounts[name] for name in self._with_parents(run) if name in self._accounts), None
        )

    # -- what can be undone

    def set_covers(self, run: str, covers: Covers | None) -> None:
        """What the checkpoint of the run's turn can bring back; None where no checkpoint was taken."""
        if covers is None:
            self._covers.pop(run, None)
        else:
            self._covers[run] = covers

    def covers(self, run: str) -> Covers | None:
        """What can be brought back for the calls of a run: by its own checkpoint, or that of a run it belongs to."""
        if not self._covers:
            return None
        return next((self._covers[name] for name in self._with_parents(run) if name in self._covers), None)

    def owner(self, run: str) -> str:
        """The run that owns what a call makes for later: the nearest that an agent began, or the outermost."""
        names = self._with_parents(run)
        return next((name for name in names if name in self._accounts), names[-1])

    def _with_parents(self, run: str) -> list[str]:
        names = [run]
        while run in self._sink.parents:
            run = self._sink.parents[run]
            names.append(run)
        return names

    # -- questions that wait

    def suspension(self, run: str) -> Suspension | None:
        """The suspension of a run that ends at its questions, or of the nearest run it belongs to; None without one."""
        if not self.suspensions:
            return None
        return next(
            (self.suspensions[name] for name in self._with_parents(run) if name in self.suspensions), None
        )

    def suspend(self, run: str, suspension: Suspension) -> None:
        """Let the questions of a run wait."""
        self.suspensions[run] = suspension

    # -- approvals

    def approved(self, run: str) -> list[tuple[Any, Any]]:
        """The approvals that hold for the run, each with the tool that it was given for."""
        return self._approved.get(self.outermost(run), []) if self._approved else []

    def add_approved(self, run: str, tool: Any, approval: Any) -> None:
        self._approved.setdefault(self.outermost(run), []).append((tool, approval))
