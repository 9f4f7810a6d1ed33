"""The options for the rules and the autonomy that decide about calls."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolcrib.dataclass import dataclass
from toolcrib.toolbox.policy import Autonomy

RulesFile = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="A file of rules; if left out, your own policy.toml."),
]
AutonomyLevel = Annotated[
    Autonomy | None,
    typer.Option(
        help="read_only: nothing may change; supervised: you are asked before a change; sandboxed: only before what "
        "leaves the sandbox or could not be undone; full: everything runs. The lowest autonomy counts of this option, "
        "your rules and a trusted project's rules; without any, a run is sandboxed and a single call supervised."
    ),
]


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """The rules and the autonomy that decide about calls."""

    policy: RulesFile = None
    autonomy: AutonomyLevel = None
