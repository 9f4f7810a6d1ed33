"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from toolcrib.cli.confine import Confinement


class Autonomy(StrEnum):
    """How much may happen without asking."""

    READ_ONLY = "read_only"
    SUPERVISED = "supervised"
    FULL = "full"


class Files(StrEnum):
    """What commands may change."""

    READ_ONLY = "read_only"
    WORKSPACE_WRITE = "workspace_write"
    DANGER_NO_SANDBOX = "danger_no_sandbox"


class Network(StrEnum):
    """Whether commands may speak to anybody."""

    OFF = "off"
    ON = "on"


Sandbox = Annotated[
    Files,
    typer.Option(
        "--sandbox",
        help="What commands may change: nothing, the workspace (and your files by its tools), or all that you can.",
    ),
]
NetworkOption = Annotated[
    Network | None, typer.Option("--network", help="Whether commands may speak to anybody; off if left out.")
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host", metavar="HOST[:PORT]", help="The hosts that commands may reach; may be repeated."
    ),
]
OuterSandbox = Annotated[
    str,
    typer.Option(
        "--outer-sandbox",
        metavar="WORDS",
        help="Which sandbox is around all of this, as you declare; none is made.",
    ),
]


Workspace = Annotated[
    Path, typer.Option("--workspace", "-w", help="The folder that the tools work in and cannot leave.")
]
From = Annotated[
    list[str] | None,
    typer.Option(
        "--from", "-f", metavar="MODULE[:ATTRIBUTE]", help="Your own tools to load; may be repeated."
    ),
]
AutonomyOption = Annotated[
    Autonomy | None,
    typer.Option(
        help="read_only: nothing is changed; supervised: changes are asked about; full: all runs. Left out: what your "
        "rules say, else supervised. Of this, your rules and a trusted project's, the lowest counts."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout instead of text.")]
Policy = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="Rules in TOML; your own policy.toml if it is left out."),
]


def confinement(sandbox: Files, network: Network | None, hosts: list[str] | None, outer: str) -> Confinement:
    """What was said of the sandbox."""
    from toolcrib.cli.confine import Confinement

    return Confinement(sandbox.value, network.value if network else "", tuple(hosts or ()), outer)
