"""Provenance (taint): which tools brought in content from outside a run, and what the user of the run wrote.

Tracked only where a rule asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from toolcrib.access import Access, Reach
from toolcrib.effect import Effect
from toolcrib.prepared import Ready
from toolcrib.toolbox.policy import accesses_of

if TYPE_CHECKING:
    from toolcrib.messages import Message


class Provenance(NamedTuple):
    """The tools through which a run took in something from outside, and the user's messages."""

    taint: frozenset[str] = frozenset()
    user_texts: tuple[str, ...] = ()


NOTHING = Provenance()


class ProvenanceTracker:
    """The mark of each run; what calls inside of calls take in counts to the run that is outermost."""

    def __init__(self, outermost: Callable[[str], str]) -> None:
        self._outermost = outermost
        self._runs: dict[str, Provenance] = {}

    def of(self, run: str) -> Provenance:
        return self._runs.get(self._outermost(run), NOTHING) if self._runs else NOTHING

    def start_run(self, run: str, messages: Iterable[Message]) -> None:
        """A run begins with these: they may hold results that an earlier one took in."""
        from toolcrib.messages import ResultPart

        known = list(messages)
        results = [part for message in known for part in message.parts if isinstance(part, ResultPart)]
        taint = frozenset(part.call.name for part in results if part.result.outside)
        self._runs[self._outermost(run)] = Provenance(taint, tuple(m.text for m in known if m.role == "user"))

    def record_call(self, ready: Ready) -> bool:
        """A call ended; whether what it gave came from outside, itself or by calls that it made.

        Its run is marked with it then, and the run that is outermost.
        """
        inner = self._runs.pop(str(ready.key), None)
        if inner is None and not from_outside(ready):
            return False
        for run in {ready.key.run, self._outermost(ready.key.run)}:
            mark = self._runs.get(run, NOTHING)
            self._runs[run] = mark._replace(taint=mark.taint | {ready.call.name})
        return True

    def forget(self, run: str) -> None:
        self._runs.pop(run, None)


def from_outside(ready: Ready) -> bool:
    """Whether a call brings in what strangers may have written.

    What its tool declares (`open_world`; a server's word does not count), unless the tool says what the call
    reaches: then one that only reads in the workspace does not, and one that reads elsewhere does.
    """
    assert ready.bound is not None
    facts = ready.bound.definition.facts
    open_world: bool = facts.open_world or facts.server != ""
    accesses = accesses_of(ready)
    if accesses is None:
        return open_world
    if any(access.reach is Reach.READ and _elsewhere(access.target) for access in accesses):
        return True
    return open_world and (ready.effect is not Effect.READ or any(map(_unknown_source, accesses)))


def _elsewhere(path: str) -> bool:
    return path.startswith(("/", "~", "../")) or path == ".."


def _unknown_source(access: Access) -> bool:
    return access.reach is Reach.CONNECT or (access.reach is Reach.RUN and not access.argv)
