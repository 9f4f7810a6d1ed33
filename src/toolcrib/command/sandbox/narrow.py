"""A level for one command is never wider than the one that the sandbox was made for."""

from __future__ import annotations

from toolcrib.command.sandbox.interface import Files, Level, Network, SandboxError

WIDTH = {
    Files.READ_ONLY: 0,
    Files.WORKSPACE_WRITE: 1,
    Files.OFF: 2,
    Network.OFF: 0,
    Network.ALLOWLIST: 1,
    Network.ON: 2,
}


def narrowed(made_for: Level, asked: Level | None) -> Level:
    """The level to launch with. Raises SandboxError if the asked one is wider."""
    if asked is None:
        return made_for
    wider_hosts = asked.network is made_for.network is Network.ALLOWLIST and not set(asked.hosts) <= set(
        made_for.hosts
    )
    if (
        WIDTH[asked.files] > WIDTH[made_for.files]
        or WIDTH[asked.network] > WIDTH[made_for.network]
        or wider_hosts
        or not set(asked.writable) <= set(made_for.writable)
        or not set(asked.readable) <= {*made_for.readable, *made_for.writable}
        or not set(made_for.hidden) <= set(asked.hidden)
        or not set(made_for.kept) <= {*asked.kept, *asked.hidden}
    ):
        raise SandboxError("a command cannot be given more than its sandbox was made for")
    return asked
