"""The hosts that a command may connect to without naming them, as far as its sandbox lets it.

A rule about a host that may be one of them asks, as a rule does about a path that a command may reach.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolcrib.access import ANY_HOST, Access, Reach
from toolcrib.command.judge import Judgement, names_its_hosts
from toolcrib.command.sandbox import Network, Sandbox


def possible_hosts(judgement: Judgement, sandbox: Sandbox | None) -> Iterator[Access]:
    """The hosts that a command does not name. `sandbox` is None where no command will run."""
    if sandbox is None or sandbox.level.network is Network.OFF or _names_all(judgement):
        return
    for host in sandbox.level.hosts or (ANY_HOST,):
        yield Access(Reach.CONNECT, host, subtree=True, free=True)


def _names_all(judgement: Judgement) -> bool:
    """Whether a command connects to what it names alone, or not at all. A project's own checks count as harmless."""
    return judgement.proved and all(
        part.effect != "network" or names_its_hosts(part.argv) for part in judgement.parts
    )
