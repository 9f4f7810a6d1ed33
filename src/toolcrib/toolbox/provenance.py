"""Provenance (taint): which tools brought in content from outside a run, and what the user of the run wrote.

Tracked only where a rule asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from toolcrib.access import Access, Reach
from toolcrib.effect import Effect
from toolcrib.prepared import Ready
from toolcrib.result import ToolResult
from toolcrib.toolbox.runs import Provenance, Runs

if TYPE_CHECKING:
    from toolcrib.messages import Message

__all__ = ["from_outside", "lies_elsewhere", "of_messages", "record_call"]


def of_messages(messages: Iterable[Message]) -> Provenance:
    """The provenance of a conversation: it may hold results that an earlier run took in from outside."""
    from toolcrib.messages import ResultPart

    known = list(messages)
    results = [part for message in known for part in message.parts if isinstance(part, ResultPart)]
    taint = frozenset(part.call.name for part in results if part.result.outside)
    return Provenance(taint, tuple(message.text for message in known if message.is_the_users))


def record_call(runs: Runs, ready: Ready, result: ToolResult) -> bool:
    """Whether the result of a call comes from outside, by itself or by calls that it made; its run is tainted then.

    A result may have the mark already: it was kept from an earlier call, or its tool says that it comes from outside.
    """
    if not (result.outside or runs.took_in(ready.key) or from_outside(ready)):
        return False
    runs.add_taint(ready.key.run, ready.call.name)
    return True


def from_outside(ready: Ready) -> bool:
    """Whether a call brings in what strangers may have written.

    The tool declares it (`open_world`; tools of servers always do), unless it says what the call reaches: then a
    call that only reads in the workspace brings in nothing foreign, and a call that reads elsewhere does.
    """
    facts = ready.tool.definition.facts
    open_world: bool = facts.open_world or facts.server != ""
    accesses = ready.accesses
    if accesses is None:
        return open_world
    if any(access.reach is Reach.READ and lies_elsewhere(access.target) for access in accesses):
        return True
    return open_world and (ready.effect is not Effect.READ or any(map(_unknown_source, accesses)))


def lies_elsewhere(path: str) -> bool:
    """Whether a path lies outside the workspace, so that strangers may have written what stands there."""
    return path.startswith(("/", "~", "../")) or path == ".."


def _unknown_source(access: Access) -> bool:
    return access.reach is Reach.CONNECT or (access.reach is Reach.RUN and not access.argv)
