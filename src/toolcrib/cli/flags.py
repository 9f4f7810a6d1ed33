"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Autonomy(StrEnum):
    """How much may happen without asking."""

    READ_ONLY = "read_only"
    SUPERVISED = "supervised"
    FULL = "full"


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
    Autonomy,
    typer.Option(help="read_only: nothing is changed; supervised: changes are asked about; full: all runs."),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout instead of text.")]
Policy = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="Rules in TOML; your own policy.toml if it is left out."),
]
