"""The state of a server, for people and programs.

| state      | meaning                                                                     |
| ---------- | --------------------------------------------------------------------------- |
| configured | nothing is known but its configuration                                      |
| known      | its tools are known from the last time; it does not run                     |
| starting   | it is being started                                                         |
| started    | it runs, and its tools are listed                                           |
| failed     | it could not be started, or has crashed; the next call that needs it starts it again |

"""

from __future__ import annotations

from enum import StrEnum

from toolcrib.dataclass import dataclass

__all__ = ["ServerState", "ServerStatus"]


class ServerState(StrEnum):
    """What is known of a server and whether it runs; the table is in `toolcrib.mcp.client.status`."""

    CONFIGURED = "configured"
    KNOWN = "known"
    STARTING = "starting"
    STARTED = "started"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """A server at one moment, for people.

    Attributes:
        name: Its configured name.
        state: What is known of it and whether it runs.
        tools: How many tools are used of it; None if they are not known.
        problem: Why it failed last; "" if it did not.
        warnings: What is wrong with what it lists, a sentence each.
        title: What it calls itself, and its version.
        protocol: The revision of the protocol that was agreed on.
        fetched: When its tools were listed, in seconds since the epoch; None if they are not known.
        pid: The process id of a running local server; 0 for others.
        source: The file that it is configured in.
    """

    name: str
    state: ServerState
    tools: int | None
    problem: str = ""
    warnings: tuple[str, ...] = ()
    title: str = ""
    protocol: str = ""
    fetched: float | None = None
    pid: int = 0
    source: str = ""
